//! What a process did on its chips, as its book has it.

use ledger::book::activity::{
    self, ActivitySource, BusyTime, ChipActivity, DeviceRecord, DispatchSample, Launch, LaunchOf, NoRecords, NotKnown,
    OPERATIONS, RecordedActivity, RecordedOperation, SingleReader, SingleRecord, monotonic,
};
use ledger::book::{self, BookError, Writer};
use proptest::prelude::*;
use std::os::unix::fs::FileExt;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
/// Ticks per ns.
const CLOCK: f64 = 0.8;

/// A book with one chip that is recorded, and the time at which that began.
fn recorded() -> (Writer, u64) {
    let writer = Writer::with_room("a test", 16).unwrap();
    let since = monotonic();
    writer.chip(0, None).unwrap();
    assert!(writer.record_activity(since));
    writer.chip_opened(0, ActivitySource::Profiler, since);
    (writer, since)
}

fn read(writer: &Writer, now: u64) -> Result<Option<RecordedActivity>, BookError> {
    let book = book::read(book::of_file(writer.file())).unwrap();
    activity::activity(book::of_file(writer.file()), &book, now)
}

fn chip(writer: &Writer, now: u64) -> ChipActivity {
    read(writer, now).unwrap().unwrap().chips[0]
}

fn operations(writer: &Writer, now: u64) -> Vec<RecordedOperation> {
    activity::operations(book::of_file(writer.file()), &read(writer, now).unwrap().unwrap(), now).unwrap()
}

/// A record of the time from `start` to `end`, in ns since a time that the host does not know.
fn record(id: u16, start: u64, end: u64) -> DeviceRecord {
    let ticks = |ns: u64| 7_000_000_000 + (ns as f64 * CLOCK) as u64;
    DeviceRecord {
        chip: 0,
        runtime_id: id,
        operation: None,
        start: ticks(start),
        end: ticks(end),
        cycles_per_ns: CLOCK,
    }
}

fn launch(writer: &Writer, id: u16, now: u64) {
    writer.launched(Launch { operation: writer.operation(b"Matmul"), runtime_id: Some(id) }, now);
}

#[test]
fn a_book_of_an_agent_that_records_none_has_no_activity() {
    let writer = Writer::with_room("", 16).unwrap();
    writer.chip(0, None).unwrap();
    assert_eq!(read(&writer, monotonic()).unwrap(), None);
}

#[test]
fn activity_changes_nothing_of_what_the_book_had_before() {
    let (writer, since) = recorded();
    let before = book::read(book::of_file(writer.file())).unwrap();
    launch(&writer, 1, since);
    writer.records([record(1, 0, S)].into_iter(), 0, since + S);
    let after = book::read(book::of_file(writer.file())).unwrap();
    assert_eq!(before, after);
    assert!(after.is_of_one_moment);
}

#[test]
fn a_chip_that_is_half_busy_is_half_utilized() {
    let (writer, since) = recorded();
    for n in 0..200u64 {
        launch(&writer, n as u16, since + n * 10 * MS);
        let end = n * 10 * MS + 5 * MS;
        writer.records([record(n as u16, end - 5 * MS, end)].into_iter(), 0, since + end);
    }
    let now = since + 2 * S;
    let chip = chip(&writer, now);
    assert_eq!((chip.records, chip.late, chip.source), (200, 0, Some(ActivitySource::Profiler)));
    assert_eq!(chip.busy_ticks, 200 * (5 * MS) * 8 / 10);
    assert!(chip.busy.abs_diff(S) < 1_000, "{chip:?}");
    let utilization = chip.utilization(now).unwrap();
    assert!((0.49..=0.51).contains(&utilization.ratio), "{utilization:?}");
    assert!((500 * MS..1_100 * MS).contains(&utilization.window) && !utilization.is_lower_limit, "{utilization:?}");
    assert!(chip.at(now).is_tail_known, "the last record is that of the last launch");
}

#[test]
fn a_long_program_is_running_not_idle_and_never_more_than_full() {
    let (writer, since) = recorded();
    launch(&writer, 1, since);
    // 5 s in one launch: nothing before it ends.
    for ms in (100..5_000).step_by(100) {
        let now = since + ms * MS;
        let unknown = chip(&writer, now).utilization(now).unwrap_err();
        assert_eq!(unknown, NotKnown::Running(ms * MS), "at {ms} ms");
    }
    writer.records([record(1, 0, 5 * S)].into_iter(), 0, since + 5 * S);
    let now = since + 5 * S + 20 * MS;
    let utilization = chip(&writer, now).utilization(now).unwrap();
    assert!((0.95..=1.0).contains(&utilization.ratio), "{utilization:?}");
    // And another one.
    launch(&writer, 2, now);
    let later = now + 100 * MS;
    assert!(chip(&writer, later).utilization(later).unwrap().ratio > 0.9, "what is complete");
    let later = now + 3 * S;
    let unknown = chip(&writer, later).utilization(later).unwrap_err();
    assert_eq!(unknown.to_string(), "a program has been running for 3 s");
    writer.records([record(2, 5 * S + 20 * MS, 10 * S)].into_iter(), 0, since + 10 * S);
    let now = since + 10 * S + MS;
    assert!((0.99..=1.0).contains(&chip(&writer, now).utilization(now).unwrap().ratio));
    let now = since + 11 * S + MS;
    assert_eq!(chip(&writer, now).utilization(now).unwrap().ratio, 0.0, "measured, complete, no record");
}

#[test]
fn a_chip_is_idle_when_nothing_was_launched_or_all_of_it_has_ended() {
    let (writer, since) = recorded();
    let idle = |now: u64| chip(&writer, now).at(now).is_tail_known;
    assert!(idle(since + 300 * MS));
    assert_eq!(chip(&writer, since + 300 * MS).utilization(since + 300 * MS).unwrap().ratio, 0.0);
    assert_eq!(chip(&writer, since + 50 * MS).utilization(since + 50 * MS), Err(NotKnown::TooEarly));

    launch(&writer, 1, since + 400 * MS);
    launch(&writer, 2, since + 401 * MS);
    assert!(!idle(since + 500 * MS));
    // The record of the first one is not enough, though a wait for it has ended.
    writer.records([record(1, 400 * MS, 402 * MS)].into_iter(), 0, since + 402 * MS);
    writer.wait_begins(since + 402 * MS);
    writer.wait_ends(Some(1), since + 403 * MS);
    assert!(!idle(since + 900 * MS));
    // A wait for all is, a little later.
    writer.wait_begins(since + 950 * MS);
    writer.wait_ends(Some(2), since + 960 * MS);
    assert!(!idle(since + 970 * MS));
    assert!(idle(since + 1_170 * MS));
    let found = read(&writer, since + 2 * S).unwrap().unwrap().launches;
    assert_eq!((found.waited, found.waits, found.waiting_since), (11 * MS, 2, 0));
    assert_eq!((found.finished, found.finished_at, found.unfinished_since), (2, since + 960 * MS, 0));
}

#[test]
fn a_chip_of_which_no_record_ever_came_is_not_called_idle() {
    let (writer, since) = recorded();
    launch(&writer, 1, since);
    writer.wait_begins(since);
    writer.wait_ends(Some(1), since + MS);
    let now = since + S;
    assert_eq!(chip(&writer, now).utilization(now), Err(NotKnown::NoRecords(NoRecords::Unknown)));
}

#[test]
fn a_closed_device_keeps_its_totals_and_opens_again_with_other_ticks() {
    let (writer, since) = recorded();
    launch(&writer, 1, since);
    writer.records([record(1, 0, S)].into_iter(), 0, since + S);
    writer.chip_closed(0, since + 2 * S);
    let closed = chip(&writer, since + 3 * S);
    assert_eq!(closed.utilization(since + 3 * S), Err(NotKnown::Closed));
    assert!(closed.busy.abs_diff(S) < 10 && !closed.at(since + 3 * S).is_tail_known);

    writer.chip_opened(0, ActivitySource::Profiler, since + 10 * S);
    launch(&writer, 2, since + 10 * S);
    let again = DeviceRecord { start: 0, end: (S as f64 * CLOCK) as u64, ..record(2, 0, S) };
    writer.records([again].into_iter(), 0, since + 11 * S);
    let now = since + 11 * S + MS;
    let again = chip(&writer, now);
    assert_eq!((again.records, again.late, again.closed_at), (2, 0, 0));
    assert!(again.busy.abs_diff(2 * S) < 10, "{again:?}");
    assert_eq!(again.busy_ticks, 2 * (S as f64 * CLOCK) as u64);
    assert!(again.utilization(now).unwrap().ratio > 0.98);
}

#[test]
fn what_is_lost_makes_a_lower_limit() {
    let (writer, since) = recorded();
    for n in 0..20u64 {
        launch(&writer, n as u16, since + n * 10 * MS);
        let end = (n + 1) * 10 * MS;
        writer.records([record(n as u16, end - MS, end)].into_iter(), 0, since + end);
    }
    let now = since + 200 * MS;
    assert!(!chip(&writer, now).utilization(now).unwrap().is_lower_limit);
    writer.records([].into_iter(), 3, since + 200 * MS);
    let utilization = chip(&writer, now).utilization(now).unwrap();
    assert!(utilization.is_lower_limit);
    let found = read(&writer, now).unwrap().unwrap();
    assert_eq!((found.delivery.dropped, found.delivery.dropped_at), (3, since + 200 * MS));

    // One of these was dropped, and the other one is the last launch: nothing is running.
    launch(&writer, 20, since + 210 * MS);
    launch(&writer, 21, since + 211 * MS);
    writer.records([record(21, 220 * MS, 221 * MS)].into_iter(), 1, since + 221 * MS);
    assert!(chip(&writer, since + 222 * MS).at(since + 222 * MS).is_tail_known);
}

#[test]
fn operations_have_names_and_figures_and_the_last_one_is_for_the_rest() {
    let (writer, since) = recorded();
    for n in 0..OPERATIONS as u64 + 88 {
        let operation = writer.operation(format!("Operation {n}").as_bytes());
        writer.launched(Launch { operation, runtime_id: None }, since + n);
        let record = DeviceRecord { operation, ..record(1, n * MS, n * MS + 1_000) };
        writer.records([record].into_iter(), 0, since + n * MS + 2_000);
    }
    writer.replayed([(Some(3), 5), (None, 2)].into_iter(), Launch { operation: Some(3), runtime_id: Some(9) }, since);
    let now = since + S;
    let operations = operations(&writer, now);
    assert_eq!(operations.len(), OPERATIONS);
    let third = &operations[3];
    assert_eq!((third.name.as_str(), third.launches, third.programs, third.records), ("Operation 3", 1, 6, 1));
    assert!(third.device_time.abs_diff(1_000) <= 1 && third.longest == third.device_time, "{third:?}");
    let rest = operations.last().unwrap();
    assert_eq!((rest.name.as_str(), rest.number, rest.launches, rest.records), ("other", 511, 89, 89));
    let found = read(&writer, now).unwrap().unwrap();
    let launches = found.launches;
    assert_eq!((launches.programs, launches.launches, launches.replays), (607, 600, 1));
    assert_eq!((launches.last_runtime_id, launches.last_operation), (Some(9), Some(3)));
    assert!(third.is_last_launched(&launches) && !rest.is_last_launched(&launches));
}

#[test]
fn samples_of_the_dispatch_core_give_a_utilization_too() {
    let writer = Writer::with_room("", 16).unwrap();
    let since = monotonic();
    writer.chip(0, None).unwrap();
    writer.record_activity(since);
    writer.chip_unrecorded(0, NoRecords::Inactive);
    assert_eq!(chip(&writer, since).utilization(since), Err(NotKnown::NoRecords(NoRecords::Inactive)));
    writer.chip_opened(0, ActivitySource::DispatchTelemetry, since);
    for n in 0..5u64 {
        let time = since + n * 500 * MS;
        let sample =
            DispatchSample { busy_ticks: 900 + n * 100 * MS, tick: 1_000 + n * 400 * MS, time, programs: n * 7 };
        writer.dispatch_sampled(0, sample);
    }
    let now = since + 2_100 * MS;
    let found = chip(&writer, now);
    assert_eq!((found.records, found.reason, found.busy_ticks), (28, None, 400 * MS));
    let utilization = found.utilization(now).unwrap();
    assert!((0.249..0.251).contains(&utilization.ratio), "{utilization:?}");
    let now = now + 3 * S;
    assert_eq!(found.utilization(now).unwrap_err().to_string(), "not read for 3 s");
}

#[test]
fn a_dispatch_core_that_cannot_be_read_is_unknown_at_once_and_begins_again() {
    let writer = Writer::with_room("", 16).unwrap();
    let since = monotonic();
    writer.chip(0, None).unwrap();
    writer.record_activity(since);
    let sample = |n: u64| {
        let time = since + n * 500 * MS;
        writer.chip_opened(0, ActivitySource::DispatchTelemetry, time);
        let sample = DispatchSample { busy_ticks: n * 250 * MS, tick: n * 500 * MS, time, programs: n };
        writer.dispatch_sampled(0, sample);
        chip(&writer, time).utilization(time).map(|utilization| utilization.ratio)
    };
    assert_eq!([sample(0), sample(1), sample(2)], [Err(NotKnown::TooEarly), Ok(0.5), Ok(0.5)]);
    writer.dispatch_unknown(0, NoRecords::ClockStopped);
    let now = since + 1_500 * MS;
    let found = chip(&writer, now);
    assert_eq!(found.utilization(now), Err(NotKnown::NoRecords(NoRecords::ClockStopped)));
    assert_eq!((found.busy_ticks, found.records), (500 * MS, 2), "the totals stay");
    assert_eq!([sample(20), sample(21)], [Err(NotKnown::TooEarly), Ok(0.5)], "the gap is neither idle nor busy");
}

#[test]
fn two_threads_that_wait_at_once_wait_once() {
    let (writer, since) = recorded();
    writer.wait_begins(since);
    writer.wait_begins(since + 10);
    writer.wait_ends(None, since + 20);
    writer.wait_ends(None, since + 50);
    writer.wait_begins(since + 100);
    let launches = read(&writer, since + S).unwrap().unwrap().launches;
    assert_eq!((launches.waited, launches.waits, launches.waiting_since), (50, 2, since + 100));
    assert_eq!(launches.waited_until(since + 130), 80);
}

#[test]
fn a_book_that_lies_is_refused_with_the_reason() {
    let why = |writer: &Writer, now: u64| read(writer, now).unwrap_err().to_string();
    let (writer, since) = recorded();
    launch(&writer, 1, since + 10 * S);
    assert_eq!(why(&writer, since), "the record at byte 896 is impossible: a launch or a wait in the future");

    let (writer, since) = recorded();
    // A record of an hour, just after the device was opened.
    writer.records([record(1, 0, 3_600 * S)].into_iter(), 0, since + MS);
    let error = why(&writer, since + 2 * S);
    assert_eq!(error, "the record at byte 5504 is impossible: busy for longer than it was recorded");

    let (writer, since) = recorded();
    writer.chip_closed(0, since + 5 * S);
    assert_eq!(why(&writer, since), "the record at byte 5504 is impossible: activity in the future");
}

/// A reader during writes by two threads finds each part whole.
#[test]
fn whoever_reads_meanwhile_finds_each_part_of_one_moment() {
    let (writer, since) = recorded();
    std::thread::scope(|scope| {
        let (done, is_done) = std::sync::mpsc::channel::<()>();
        let writer = &writer;
        let launching = scope.spawn(move || {
            for n in 0..20_000u64 {
                launch(writer, n as u16, since + n);
            }
            drop(done);
        });
        scope.spawn(move || {
            for n in 0..20_000u64 {
                writer.records([record(n as u16, n * 100, n * 100 + 50)].into_iter(), 0, since + n * 100 + 90);
            }
        });
        while is_done.try_recv() != Err(std::sync::mpsc::TryRecvError::Disconnected) {
            let now = since + S;
            let found = read(writer, now).unwrap().unwrap();
            assert_eq!(found.launches.launches, found.launches.programs);
            let chip = found.chips[0];
            assert!(chip.busy_ticks == chip.records * 40 && chip.late == 0, "{chip:?}");
            for operation in activity::operations(book::of_file(writer.file()), &found, now).unwrap() {
                assert_eq!((operation.name.as_str(), operation.launches), ("Matmul", operation.programs));
            }
        }
        launching.join().unwrap();
    });
}

fn bytes(writer: &Writer) -> Vec<u8> {
    let mut bytes = vec![0; 135_168 + 16 * 128 + 65_536 + 4 * 512];
    writer.file().read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// Programs on one chip, one after the other: a pause before it, its length, and how late its record is, all in µs.
fn schedule() -> impl Strategy<Value = Vec<(u64, u64, u64)>> {
    let short = (0u64..30_000, 1u64..40_000, 0u64..20_000);
    let long = (0u64..3_000_000, 1u64..5_000_000, 0u64..50_000);
    prop::collection::vec(prop_oneof![8 => short, 1 => long], 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whenever it is looked at, a utilization is what the chip did in its window, and there is none while that is not known.
    #[test]
    fn a_utilization_is_that_of_its_window(schedule in schedule(), step in 37u64..200) {
        let (writer, since) = recorded();
        let (mut launches, mut records, mut busy, mut clock) = (Vec::new(), Vec::new(), Vec::new(), 10_000u64);
        for (n, (pause, length, delay)) in schedule.into_iter().enumerate() {
            let (start, end) = (clock + pause, clock + pause + length);
            launches.push((start.saturating_sub(5), n as u16));
            records.push((end + delay, start, end, n as u16));
            busy.push((start * 1_000, end * 1_000));
            clock = end;
        }
        // Records arrive in the order in which the programs ended.
        for at in 1..records.len() {
            records[at].0 = records[at].0.max(records[at - 1].0);
        }
        let (mut launches, mut records) = (launches.into_iter().peekable(), records.into_iter().peekable());
        let slowest = 50_000_000;
        for ms in (0..clock / 1_000 + 3_000).step_by(step as usize) {
            while let Some((time, id)) = launches.next_if(|it| it.0 <= ms * 1_000) {
                launch(&writer, id, since + time * 1_000);
            }
            while let Some((arrival, start, end, id)) = records.next_if(|it| it.0 <= ms * 1_000) {
                writer.records([record(id, start * 1_000, end * 1_000)].into_iter(), 0, since + arrival * 1_000);
            }
            let now = since + ms * MS;
            let Ok(utilization) = chip(&writer, now).utilization(now) else { continue };
            let (from, to) = (utilization.until - utilization.window - since, utilization.until - since);
            let truth: u64 = busy.iter().map(|&(start, end)| end.min(to).saturating_sub(start.max(from))).sum();
            let truth = truth as f64 / utilization.window as f64;
            // Host time is off by as much as the fastest record was delayed.
            let tolerance = 2.0 * slowest as f64 / utilization.window as f64;
            prop_assert!((utilization.ratio - truth).abs() <= tolerance, "{:?}, in truth {truth}, at {ms} ms", utilization);
            prop_assert!(utilization.window >= 100 * MS && utilization.until <= now && now - utilization.until <= 2 * S);
        }
    }
}

proptest! {
    #[test]
    fn changed_bytes_are_noticed_or_leave_what_was(changes in prop::collection::vec((0usize..1_000, any::<u8>()), 1..4)) {
        let (writer, since) = recorded();
        for n in 0..4u16 {
            launch(&writer, n, since);
            writer.records([record(n, u64::from(n) * MS, u64::from(n) * MS + 5)].into_iter(), 0, since + S);
        }
        let now = since + S;
        let whole = read(&writer, now).unwrap().unwrap();
        let mut bytes = bytes(&writer);
        let book = book::read(book::of_bytes(&bytes)).unwrap();
        for (place, change) in changes {
            let place = if place < 616 { 768 + place } else { 5_504 + place - 616 };
            bytes[place] ^= change;
        }
        if let Ok(Some(found)) = activity::activity(book::of_bytes(&bytes), &book, now) {
            // The version before, where the later one is broken.
            prop_assert!(found.launches.launches + 1 >= whole.launches.launches);
            prop_assert!(found.chips[0].records + 1 >= whole.chips[0].records);
            let _ = activity::operations(book::of_bytes(&bytes), &found, now);
            let BusyTime { busy, until, .. } = found.chips[0].at(now);
            prop_assert!(busy <= whole.chips[0].busy && until <= now);
        }
    }

    #[test]
    fn busy_time_is_that_of_all_ticks(
        records in prop::collection::vec((0u64..3_000, 1u64..40, any::<u16>()), 1..150), batch in 1usize..9,
    ) {
        let (writer, since) = recorded();
        let mut covered = vec![false; 4_000];
        for part in records.chunks(batch) {
            let of = |&(start, length, id): &(u64, u64, u16)| {
                let (start, end) = (9_000 + start, 9_000 + start + length);
                DeviceRecord { chip: 0, runtime_id: id, operation: None, start, end, cycles_per_ns: 1.0 }
            };
            writer.records(part.iter().map(of), 0, since + S);
            part.iter().for_each(|&(start, length, _)| covered[start as usize..(start + length) as usize].fill(true));
        }
        let found = chip(&writer, since + S);
        let busy = covered.iter().filter(|covered| **covered).count() as u64;
        let is_exact = found.late == 0;
        prop_assert!(if is_exact { found.busy_ticks == busy } else { found.busy_ticks <= busy }, "{:?}", found);
        prop_assert_eq!(found.records, records.len() as u64);
        let latest = records.iter().map(|(start, length, _)| 9_000 + start + length).max().unwrap();
        prop_assert_eq!(found.end_tick, latest);
    }
}

/// What a reader finds, and how much it lost.
fn singles(reader: &mut SingleReader, writer: &Writer, is_last: bool) -> Vec<SingleRecord> {
    let mut found = Vec::new();
    reader.read(book::of_file(writer.file()), is_last, |record| found.push(record)).unwrap();
    found
}

fn with_singles() -> (Writer, u64) {
    let writer = Writer::with_room("a test", 16).unwrap();
    let since = monotonic();
    writer.chip(0, None).unwrap();
    writer.keep_single_records();
    assert!(writer.record_activity(since));
    writer.chip_opened(0, ActivitySource::Profiler, since);
    (writer, since)
}

#[test]
fn every_single_record_is_read_once_with_its_launch() {
    let (writer, since) = with_singles();
    let mut reader = SingleReader::default();
    assert_eq!(singles(&mut reader, &writer, false), []);
    let matmul = writer.operation(b"Matmul");
    let launch = |id: u16, start: u64| LaunchOf { queue: (id != 2).then_some(1), time: Some(start - 500) };
    for id in 0..3 {
        let one = DeviceRecord { operation: matmul, ..record(id, u64::from(id) * MS, u64::from(id) * MS + 1000) };
        writer.launched_records([one].into_iter(), 0, since + u64::from(id) * MS + 1000, launch);
    }
    let found = singles(&mut reader, &writer, false);
    let short: Vec<_> = found.iter().map(|one| (one.number, one.runtime_id, one.launch.queue, one.operation)).collect();
    assert_eq!(short, [(0, 0, Some(1), matmul), (1, 1, Some(1), matmul), (2, 2, None, matmul)]);
    for (n, one) in (0..).zip(&found) {
        let near = |time: u64, expected: u64| time.abs_diff(expected) <= 4;
        assert!(near(one.end, since + n * MS + 1000) && near(one.start, since + n * MS), "{one:?}");
        assert_eq!(one.launch.time, Some(one.start - 500));
    }
    assert_eq!((singles(&mut reader, &writer, true), reader.lost(), reader.is_kept()), (vec![], 0, true));
}

#[test]
fn what_was_overwritten_is_counted_and_the_rest_is_read() {
    let (writer, since) = with_singles();
    let mut reader = SingleReader::default();
    let room = 1u64 << 16;
    let write = |from: u64, to: u64| {
        let records = (from..to).map(|n| record(n as u16, n * 1000, n * 1000 + 500));
        writer.records(records, 0, since + to * 1000);
    };
    write(0, 100);
    assert_eq!(singles(&mut reader, &writer, false).len(), 100);
    write(100, 100 + room);
    let found = singles(&mut reader, &writer, false);
    assert_eq!((found.len() as u64, reader.lost()), (room, 0), "a whole round is just read");
    write(100 + room, 100 + 3 * room);
    let found = singles(&mut reader, &writer, true);
    assert_eq!(reader.lost() + found.len() as u64, 2 * room, "each is either read or counted");
    assert_eq!(found.last().unwrap().number, 99 + 3 * room);
    assert!(found.windows(2).all(|pair| pair[0].number + 1 == pair[1].number));
    assert_eq!(reader.lost(), room, "as few as possible");
}

#[test]
fn a_book_without_single_records_has_none_and_a_broken_one_ends() {
    let (writer, since) = recorded();
    writer.records([record(1, 0, 10)].into_iter(), 0, since);
    let mut reader = SingleReader::default();
    assert_eq!((singles(&mut reader, &writer, true), reader.is_kept()), (vec![], false));
    // Whatever the bytes are, reading ends and says no record twice.
    let (writer, since) = with_singles();
    writer.records((0..2000).map(|n| record(n, u64::from(n) * 10, u64::from(n) * 10 + 5)), 0, since);
    let mut bytes = vec![0; writer.file().metadata().unwrap().len() as usize];
    writer.file().read_exact_at(&mut bytes, 0).unwrap();
    let ring = u64::from_le_bytes(bytes[768 + 16..768 + 24].try_into().unwrap()) as usize;
    for broken in [5usize, 700, 1999] {
        bytes[ring + broken * 64 + 3] ^= 0xff;
    }
    let mut reader = SingleReader::default();
    let mut numbers = Vec::new();
    reader.read(book::of_bytes(&bytes), true, |one| numbers.push(one.number)).unwrap();
    assert_eq!((numbers.len(), reader.lost()), (1997, 3));
    assert!(!numbers.iter().any(|number| [5, 700, 1999].contains(number)));
    bytes[ring..].fill(0xa5);
    let mut reader = SingleReader::default();
    reader.read(book::of_bytes(&bytes), true, |_| panic!("none is whole")).unwrap();
}
