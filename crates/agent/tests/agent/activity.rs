//! The agent in front of a library that stands in for tt-metal: launches, traces, waits, and a profiler whose records the test gives.

use crate::harness::{books, built, compile};
use ledger::book::activity::{
    self, ActivitySource, NoRecords, NotKnown, RecordedActivity, RecordedOperation, SingleReader, SingleRecord,
    monotonic,
};
use ledger::book::{self, Book};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tempfile::TempDir;

/// A program under the agent that does what it is told.
struct Workload {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    _folder: TempDir,
}

/// A record: runtime id, chip, start, end.
type Record = (u32, u32, u64, u64);

impl Workload {
    fn start() -> Workload {
        Workload::with(&[], &[("TT_METAL_MOCK_CLUSTER_DESC_PATH", "/a/mock")])
    }

    fn with(flags: &[&str], environment: &[(&str, &str)]) -> Workload {
        let folder = tempfile::tempdir().unwrap();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agent");
        let library = folder.path().join("libtt_metal.so");
        let how: Vec<&str> = ["-shared", "-fPIC", "-pthread"].into_iter().chain(flags.iter().copied()).collect();
        compile(&sources.join("metal.c"), &library, &how);
        let program = folder.path().join("workload");
        let rpath = format!("-Wl,-rpath,{}", folder.path().display());
        let status = Command::new("cc")
            .args(["-pthread", "-o"])
            .args([&program, &sources.join("workload.c")])
            .args(flags)
            .arg("-L")
            .arg(folder.path())
            .args(["-ltt_metal", &rpath])
            .status()
            .unwrap();
        assert!(status.success());
        let mut child = Command::new(&program)
            .env("LD_PRELOAD", built("libttmon_agent.so"))
            .env_remove("TTMON_AGENT")
            .env_remove("TT_METAL_MOCK_CLUSTER_DESC_PATH")
            .env_remove("TT_METAL_INSPECTOR")
            .env("TTMON_BOOK_SOCKET", "")
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Workload { child, stdin, stdout, _folder: folder }
    }

    fn say(&mut self, command: &str) -> i64 {
        writeln!(self.stdin.as_mut().unwrap(), "{command}").unwrap();
        self.answer()
    }

    fn answer(&mut self) -> i64 {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim().strip_prefix("OK ").unwrap_or_else(|| panic!("{line:?}")).parse().unwrap()
    }

    /// Delivers records, all with 0.5 ticks per ns, and the path of a kernel if there is one. True when the agent wanted them.
    fn records(&mut self, records: &[Record], dropped: u64, kernel: Option<usize>) -> bool {
        let mut text = format!("records {} {dropped}\n", records.len());
        for (id, chip, start, end) in records {
            let kernel = kernel.map_or(-1, |kernel| kernel as i64);
            text.push_str(&format!("{id} {chip} {start} {end} 0.5 {kernel}\n"));
        }
        self.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
        self.answer() == 1
    }

    fn file(&self) -> File {
        let mut books = books(self.child.id());
        assert_eq!(books.len(), 1);
        books.remove(0).into_file()
    }

    fn book(&self) -> Book {
        book::read(book::of_file(&self.file())).unwrap()
    }

    fn activity(&self) -> RecordedActivity {
        activity::activity(book::of_file(&self.file()), &self.book(), monotonic()).unwrap().unwrap()
    }

    fn operations(&self) -> Vec<RecordedOperation> {
        activity::operations(book::of_file(&self.file()), &self.activity(), monotonic()).unwrap()
    }

    fn names(&self) -> Vec<(String, u64, u64)> {
        let short = |operation: RecordedOperation| (operation.name, operation.launches, operation.programs);
        self.operations().into_iter().map(short).collect()
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The length of the union, by sorting.
fn union(records: impl Iterator<Item = (u64, u64)>) -> u64 {
    let mut records: Vec<_> = records.collect();
    records.sort_unstable();
    let (mut busy, mut end) = (0, 0);
    for (from, to) in records {
        busy += to.saturating_sub(from.max(end));
        end = end.max(to);
    }
    busy
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Records of two chips that overlap and arrive out of order, by up to 40 places; ids that come round.
fn shuffled(count: u32, seed: u64) -> Vec<Record> {
    let mut state = seed;
    let mut records: Vec<Record> = (0..count)
        .map(|n| {
            let start = 1_000 + u64::from(n) * 40 + random(&mut state) % 60;
            (n + 65_000, n % 2, start, start + 1 + random(&mut state) % 70)
        })
        .collect();
    for some in records.chunks_mut(40) {
        (0..some.len()).for_each(|at| some.swap(at, random(&mut state) as usize % some.len()));
    }
    records
}

#[test]
fn busy_time_is_the_union_of_the_records_to_the_tick() {
    for (flags, seed) in [(&[][..], 0x2545_F491_4F6C_DD1D), (&["-DSINGLE"][..], 99)] {
        let mut workload = Workload::with(flags, &[]);
        workload.say("activate 0");
        workload.say("activate 1");
        assert_eq!(workload.say("callbacks"), 0, "not before something is launched");
        workload.say("launch 0 1");
        assert_eq!(workload.say("callbacks"), 1);
        let records = shuffled(2_000, seed);
        let mut state = seed;
        let mut rest = &records[..];
        while !rest.is_empty() {
            let (batch, more) = rest.split_at((1 + random(&mut state) as usize % 50).min(rest.len()));
            assert!(workload.records(batch, 0, None));
            rest = more;
        }
        let found = workload.activity();
        assert!(found.delivery.is_registered && found.delivery.reason.is_none());
        for chip in 0..2u32 {
            let of_chip = || records.iter().filter(|record| record.1 == chip);
            let activity = found.chips[chip as usize];
            assert_eq!((activity.records, activity.late), (of_chip().count() as u64, 0));
            assert_eq!(activity.busy_ticks, union(of_chip().map(|record| (record.2, record.3))), "chip {chip}");
            assert_eq!(activity.busy, activity.busy_ticks * 2);
            let last = of_chip().max_by_key(|record| record.3).unwrap();
            assert_eq!(activity.end_tick, last.3);
            assert_eq!(activity.source, Some(ActivitySource::Profiler));
        }
    }
}

#[test]
fn records_that_are_dropped_late_or_impossible_are_counted() {
    let mut workload = Workload::start();
    workload.say("activate 0");
    workload.say("launch 0 1");
    let apart: Vec<Record> = (0..100).map(|n| (n, 0, 1_000 + 100 * u64::from(n), 1_010 + 100 * u64::from(n))).collect();
    workload.records(&apart, 3, None);
    // Before all that is known in detail, and for a chip that there is none of, and one that ends before it begins.
    workload.records(&[(1, 0, 5, 9), (2, 9, 1, 2), (3, 0, 50_000, 40_000)], 2, None);
    let found = workload.activity();
    assert_eq!((found.delivery.dropped, found.delivery.of_unknown_chips, found.delivery.broken), (5, 1, 1));
    let chip = found.chips[0];
    assert_eq!((chip.records, chip.late, chip.busy_ticks), (101, 1, 1_000));
}

#[test]
fn unregistering_waits_for_what_is_being_delivered_and_loses_nothing() {
    let mut workload = Workload::start();
    workload.say("activate 0");
    workload.say("launch 0 1");
    workload.say("deliver");
    while workload.say("delivered") < 5_000 {}
    workload.say("deactivate 0");
    assert_eq!(workload.say("callbacks"), 0);
    let delivered = workload.say("stop") as u64;
    let found = workload.activity();
    let chip = found.chips[0];
    assert_eq!((chip.records, chip.busy_ticks, chip.late), (delivered, delivered * 4, 0));
    assert!(!found.delivery.is_registered && chip.closed_at != 0);
    assert_eq!(chip.utilization(monotonic()), Err(NotKnown::Closed));

    // Opened again, with ticks from the start, it is registered again at the next launch.
    workload.say("activate 0");
    workload.say("launch 0 2");
    assert_eq!(workload.say("callbacks"), 1);
    workload.records(&[(2, 0, 10, 20)], 0, None);
    let again = workload.activity().chips[0];
    assert_eq!((again.records, again.busy_ticks, again.closed_at), (delivered + 1, delivered * 4 + 10, 0));
}

#[test]
fn a_library_without_a_profiler_or_with_one_that_is_not_active_gives_a_reason() {
    for (flags, reason) in [(&["-DWITHOUT_PROFILER"][..], NoRecords::NoProfiler), (&[][..], NoRecords::Inactive)] {
        let mut workload = Workload::with(flags, &[]);
        workload.say("launch 0 1");
        let found = workload.activity();
        assert_eq!((found.delivery.reason, found.launches.launches), (Some(reason), 1));
    }
    // Active on one of two chips: the other one is behind it.
    let mut workload = Workload::start();
    workload.say("activate 0");
    workload.say("activate 1");
    workload.say("deactivate 1");
    workload.say("launch 0 1");
    let found = workload.activity();
    assert_eq!(found.chips[0].reason, None);
    assert_eq!(found.chips[1].utilization(monotonic()), Err(NotKnown::Closed));
}

#[test]
fn names_come_with_launches_and_the_inspector_stays_off_where_it_was_turned_off() {
    let mut workload = Workload::start();
    workload.say("launch 0 1 Matmul");
    workload.say("launch 0 2 Softmax");
    workload.say("launch 0 3 Matmul");
    workload.say("launch 0 4");
    assert_eq!(workload.names(), [("Matmul".into(), 2, 2), ("Softmax".into(), 1, 1)]);
    let launches = workload.activity().launches;
    assert_eq!((launches.launches, launches.last_runtime_id, launches.last_operation), (4, Some(4), None));
    assert_eq!(workload.say("names"), 0, "nothing is passed on to an inspector that is off");

    for environment in [&[][..], &[("TT_METAL_MOCK_CLUSTER_DESC_PATH", "/a/mock"), ("TT_METAL_INSPECTOR", "0")][..]] {
        let mut workload = Workload::with(&[], environment);
        workload.say("launch 0 1 Matmul");
        assert_eq!((workload.names().len(), workload.activity().launches.launches), (0, 1), "{environment:?}");
    }
}

#[test]
fn records_are_of_the_operation_that_was_launched_or_that_the_kernel_names() {
    let mut workload = Workload::start();
    workload.say("activate 0");
    workload.say("launch 0 65537 Softmax");
    workload.say("launch 0 2");
    workload.say("launch 0 3");
    workload.records(&[(1, 0, 1_000, 1_100)], 0, Some(0));
    workload.records(&[(2, 0, 2_000, 2_050), (2, 0, 3_000, 3_010)], 0, Some(0));
    workload.records(&[(3, 0, 4_000, 4_500)], 0, Some(1));
    workload.records(&[(4, 0, 5_000, 5_001)], 0, None);
    let found: Vec<_> = workload
        .operations()
        .into_iter()
        .map(|operation| {
            (operation.name, operation.launches, operation.records, operation.device_time, operation.longest)
        })
        .collect();
    let expected = [("Softmax", 1, 1, 200, 200), ("binary", 0, 2, 120, 100), ("matmul", 0, 1, 1_000, 1_000)]
        .map(|it| (it.0.into(), it.1, it.2, it.3, it.4));
    assert_eq!(found, expected);
}

#[test]
fn a_replay_runs_what_its_trace_recorded() {
    let mut workload = Workload::start();
    workload.say("activate 0");
    workload.say("launch 0 1 Matmul");
    workload.say("begin 0 5");
    for (id, name) in [(10, "Matmul"), (11, "Softmax"), (12, "Matmul")] {
        workload.say(&format!("launch 0 {id} {name}"));
    }
    // Another queue is not recorded meanwhile.
    workload.say("launch 1 13 Add");
    workload.say("end 0");
    workload.say("launch 0 14 Add");
    let launches = workload.activity().launches;
    assert_eq!((launches.launches, launches.programs, launches.recorded, launches.replays), (3, 3, 3, 0));
    (0..4).for_each(|_| _ = workload.say("replay 0 5"));
    let launches = workload.activity().launches;
    assert_eq!((launches.launches, launches.programs, launches.recorded, launches.replays), (3, 15, 3, 4));
    assert_eq!(launches.last_runtime_id, Some(12));
    assert_eq!(workload.names(), [("Matmul".into(), 1, 9), ("Softmax".into(), 0, 4), ("Add".into(), 2, 2)]);
    // An id that comes round while its trace exists is that of neither.
    workload.say("launch 0 65547 Add");
    workload.records(&[(11, 0, 100, 200)], 0, Some(1));
    workload.records(&[(12, 0, 300, 400)], 0, Some(1));
    let records = |workload: &Workload| -> Vec<_> {
        workload.operations().into_iter().map(|operation| (operation.name, operation.records)).collect()
    };
    let expected = [("Matmul", 1), ("Softmax", 0), ("Add", 0), ("matmul", 1)].map(|(name, count)| (name.into(), count));
    assert_eq!(records(&workload), expected);
    workload.say("release 0 5");
    workload.say("launch 0 65548 Add");
    workload.records(&[(12, 0, 500, 600)], 0, Some(1));
    assert_eq!(records(&workload)[2], ("Add".into(), 1), "after its release it is that of the launch");
}

#[test]
fn waits_are_timed_and_cover_what_was_launched_on_their_queue() {
    let mut workload = Workload::start();
    workload.say("activate 0");
    workload.say("launch 0 1 Matmul");
    workload.say("launch 1 2 Matmul");
    workload.say("finish 0 0");
    let launches = workload.activity().launches;
    assert_eq!((launches.finished, launches.waits, launches.waiting_since), (1, 1, 0));
    assert!((2_000_000..60_000_000_000).contains(&launches.waited), "{}", launches.waited);
    // Of some sub-devices only.
    workload.say("finish 1 1");
    assert_eq!(workload.activity().launches.finished, 1);
    workload.say("finish 1 0");
    let launches = workload.activity().launches;
    assert_eq!((launches.finished, launches.unfinished_since), (2, 0));
    workload.say("event");
    let after = workload.activity().launches;
    assert!(after.waited >= launches.waited + 3_000_000 && after.waits == launches.waits + 1);

    // The library is asked for the function at the first call.
    workload.say("reserve 0");
    let before = workload.activity().launches.back_pressure;
    workload.say("reserve 1");
    let held_back = workload.activity().launches.back_pressure - before;
    assert!((3_900_000..60_000_000_000).contains(&held_back), "{held_back}");
}

#[test]
fn the_last_totals_of_a_killed_process_stay() {
    let mut workload = Workload::start();
    workload.say("activate 0");
    workload.say("launch 0 1 Matmul");
    workload.records(&[(1, 0, 1_000, 3_000)], 0, None);
    let file = workload.file();
    workload.child.kill().unwrap();
    workload.child.wait().unwrap();
    let book = book::read(book::of_file(&file)).unwrap();
    let found = activity::activity(book::of_file(&file), &book, monotonic()).unwrap().unwrap();
    assert_eq!((found.launches.launches, found.chips[0].busy_ticks), (1, 2_000));
    let operations = activity::operations(book::of_file(&file), &found, monotonic()).unwrap();
    assert_eq!((operations[0].name.as_str(), operations[0].device_time), ("Matmul", 4_000));
}

/// The single records of a workload.
fn singles(workload: &Workload) -> (Vec<SingleRecord>, bool) {
    let (mut reader, mut found) = (SingleReader::default(), Vec::new());
    reader.read(book::of_file(&workload.file()), false, |record| found.push(record)).unwrap();
    (found, reader.is_kept())
}

#[test]
fn single_records_are_kept_when_asked_for_with_queue_and_launch() {
    let mut workload = Workload::start();
    workload.say("activate 0");
    workload.say("launch 0 1 Matmul");
    workload.records(&[(1, 0, 1_000, 1_100)], 0, None);
    assert_eq!(singles(&workload), (vec![], false), "not by default");

    let timeline = [("TT_METAL_MOCK_CLUSTER_DESC_PATH", "/a/mock"), ("TTMON_TIMELINE", "1")];
    let mut workload = Workload::with(&[], &timeline);
    workload.say("activate 0");
    let before = monotonic();
    workload.say("launch 0 1 Matmul");
    workload.say("launch 1 65538 Softmax");
    // The same id on two queues at a time.
    workload.say("launch 0 3 Add");
    workload.say("launch 1 3 Add");
    workload.say("begin 0 5");
    workload.say("launch 0 10 Matmul");
    workload.say("end 0");
    workload.say("replay 0 5");
    let after = monotonic();
    let ids = [1, 2, 3, 10, 77];
    let records: Vec<Record> = (0..).zip(ids).map(|(n, id)| (id, 0, 1_000 + n * 100, 1_050 + n * 100)).collect();
    workload.records(&records, 0, None);
    let (found, is_kept) = singles(&workload);
    let names: Vec<String> = workload.operations().into_iter().map(|operation| operation.name).collect();
    let name = |one: &SingleRecord| one.operation.map(|operation| names[usize::from(operation)].as_str());
    let short: Vec<_> = found.iter().map(|one| (one.runtime_id, name(one), one.launch.queue)).collect();
    let expected = [
        (1, Some("Matmul"), Some(0)),
        (2, Some("Softmax"), Some(1)),
        (3, Some("Add"), None),
        (10, Some("Matmul"), Some(0)),
        (77, None, None),
    ];
    assert!(is_kept);
    assert_eq!(short, expected);
    for one in &found {
        assert_eq!(one.end - one.start, 100, "0.5 ticks per ns");
        assert_eq!(one.launch.time.is_some(), one.runtime_id != 77);
        assert!(one.launch.time.is_none_or(|time| (before..=after).contains(&time) && time <= one.start), "{one:?}");
    }
    assert!(found.windows(2).all(|pair| pair[1].start - pair[0].start == 200));
}
