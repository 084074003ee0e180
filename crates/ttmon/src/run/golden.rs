//! Receipts as people read them.

use super::account::tests::{SECOND, asic, new, p150a, process_of};
use super::account::{End, Fate, RunAccount, RunProcess};
use super::energy::{Meter, Tally};
use super::json;
use super::receipt::{COLUMNS, duration, joules_and_hours, text, thousands};
use expect_test::{Expect, expect, expect_file};
use ledger::book::activity::{ActivitySource, DeviceRecord, Launch, NoRecords, monotonic};
use ledger::book::{AllocatorBanks, Chips, MemoryKind, Writer};
use model::{Celsius, Device, Timestamp, Watts};
use show::text::width;
use std::time::Duration;

/// Twelve seconds of these devices, at so many watts.
fn metered(devices: &[(Device, f64)], gap: bool) -> Vec<Tally> {
    let mut meter = Meter::new(Duration::from_secs(2));
    for second in (0u32..=12).filter(|second| !gap || ![3, 4, 5].contains(second)) {
        let read = |(device, watts): &(Device, f64)| {
            let mut device = device.clone();
            device.power = Some(Watts(watts + f64::from(second)));
            device.asic_temp = Some(Celsius(49.25 + f64::from(second)));
            device.sample_age_seconds = Some(0.0);
            device
        };
        meter.add(Duration::from_secs(second.into()), &devices.iter().map(read).collect::<Vec<_>>());
    }
    meter.tallies()
}

fn account(processes: Vec<RunProcess>, devices: Vec<Tally>) -> RunAccount {
    RunAccount {
        command: ["/usr/bin/python3", "serve.py", "--model", "llama 3"].map(str::to_owned).to_vec(),
        began: Timestamp(1_767_323_045_678),
        duration: Duration::from_millis(12_020),
        end: End::Code(0),
        is_followed: true,
        processes,
        no_device: devices.is_empty().then_some("energy: there is no Tenstorrent device here"),
        devices,
        is_simulated: false,
        remarks: vec![],
    }
}

fn check(account: &RunAccount, leaks: bool, expected: Expect) {
    let text = text(account, leaks);
    let widest = text.lines().map(width).max().unwrap();
    assert!(widest <= COLUMNS, "{widest}: {text}");
    expected.assert_eq(&text);
}

/// Eleven seconds with the first chip open, in which it ran a thousand programs; the second one is not recorded.
fn worked(writer: &Writer) {
    let began = monotonic() - 12 * SECOND;
    assert!(writer.record_activity(began));
    writer.chip_opened(0, ActivitySource::Profiler, began);
    writer.chip_unrecorded(1, NoRecords::Inactive);
    for n in 0..1000u64 {
        let name: &[u8] = if n % 4 == 0 { b"SoftmaxDeviceOperation" } else { b"MatmulDeviceOperation" };
        let (operation, start) = (writer.operation(name), began + n * 10_000_000);
        writer.launched(Launch { operation, runtime_id: Some(n as u16) }, start);
        let end = start + if n % 4 == 0 { 1_000_000 } else { 8_000_000 };
        let runtime_id = n as u16;
        let record = DeviceRecord { chip: 0, runtime_id, operation, start, end, cycles_per_ns: 1.0 };
        writer.records([record].into_iter(), 0, end);
    }
    writer.wait_begins(began + 8 * SECOND);
    writer.wait_ends(Some(1000), began + 10 * SECOND);
    writer.held_back(300_000_000);
    writer.chip_closed(0, began + 11 * SECOND);
}

fn server(pid: u32, fate: Fate) -> RunProcess {
    process_of(pid, fate, &[p150a(0), p150a(1)], |writer| {
        let first = Chips::one(writer.chip(0, Some(asic(0))).unwrap());
        let both = first | Chips::one(writer.chip(1, Some(asic(1))).unwrap());
        for id in 100..4_000 {
            writer.allocate(&new(id, first, MemoryKind::Dram, 32 << 20, 8, ""));
            writer.free(id);
        }
        writer.allocate(&new(1, both, MemoryKind::Dram, 64 << 20, 8, "kv-cache"));
        writer.allocate(&new(2, first, MemoryKind::L1, 1024, 128, "attention \u{1b}[2J mask"));
        writer.allocate(&new(3, first, MemoryKind::L1, 2048, 128, ""));
        worked(writer);
        writer.banks(
            0,
            MemoryKind::L1,
            AllocatorBanks { banks: 128, allocatable: 9000, allocated: 3072, free: 5928, largest_free: 1482 },
        );
    })
}

#[test]
fn a_server_that_leaks() {
    let devices = metered(&[(p150a(0), 60.0), (p150a(1), 20.0), (p150a(2), 18.0), (p150a(3), 18.0)], false);
    check(
        &account(vec![server(4711, Fate::Clean)], devices),
        true,
        expect![[r#"
            ── ttmon run ── python3 serve.py --model 'llama 3' ─────────────────────────────
            exit code 0 after 12.0 s, 1 process ran with the agent
            device 0  p150a 0000:01:00.0                  peak        at exit    allocations
              DRAM                                     512 MiB        512 MiB          3,901
              L1                                       384 KiB        384 KiB              2
              busy 56.8 % of 11.0 s, 1,000 programs, 0.8 J each
              energy 792.0 J (0.220 Wh), peak 72.0 W, 61.2 °C
            device 1  p150a 0000:02:00.0
              DRAM                                     512 MiB        512 MiB              1
              busy: not known (profiler inactive)
              energy 312.0 J (0.087 Wh), peak 32.0 W, 61.2 °C
            2 other devices, not used with the agent: energy 576.0 J (0.160 Wh)
            1,000 programs launched; waited for devices 2.0 s (16.6 %), held back by full
              queues 0.3 s (2.5 %)
            operations by device time            share  device time    launches     longest
              MatmulDeviceOperation             96.0 %        6.0 s         750      8.0 ms
              SoftmaxDeviceOperation             4.0 %     250.0 ms         250      1.0 ms
            still allocated at exit: 3 buffers, 1.0 GiB
              2 chips   DRAM  1.0 GiB  pid 4711  age 11.9 s  kv-cache
              device 0  L1    256 KiB  pid 4711  age 11.7 s
              device 0  L1    128 KiB  pid 4711  age 11.8 s  attention ?[2J mask
            leaks: found, so the exit code is 3
        "#]],
    );
}

#[test]
fn the_same_for_programs() {
    let devices = metered(&[(p150a(0), 60.0), (p150a(1), 20.0)], false);
    let text = json::text(&account(vec![server(4711, Fate::Clean)], devices));
    expect_file!["../../tests/golden/run-receipt.json"].assert_eq(&text);
}

#[test]
fn two_processes_on_one_chip_of_which_one_was_killed() {
    let mut killed = account(
        vec![server(4711, Fate::Abrupt), server(4712, Fate::Running)],
        metered(&[(p150a(0), 60.0), (p150a(1), 20.0)], true),
    );
    killed.end = End::Signal(9);
    check(
        &killed,
        true,
        expect![[r#"
            ── ttmon run ── python3 serve.py --model 'llama 3' ─────────────────────────────
            killed by SIGKILL, exit code 137 after 12.0 s, 2 processes ran with the agent
            device 0  p150a 0000:01:00.0                  peak        at exit    allocations
              DRAM                                   ≤ 1.0 GiB        1.0 GiB          7,802
              L1                                     ≤ 768 KiB        768 KiB              4
              busy 100.0 % of 11.0 s, 2,000 programs
              energy 536.0 J (0.149 Wh) in 8.0 s that are known, peak 72.0 W, 61.2 °C
            device 1  p150a 0000:02:00.0
              DRAM                                   ≤ 1.0 GiB        1.0 GiB              2
              busy: not known (profiler inactive)
              energy 216.0 J (0.060 Wh) in 8.0 s that are known, peak 32.0 W, 61.2 °C
            2,000 programs launched; waited for devices 4.0 s (16.6 %), held back by full
              queues 0.6 s (2.5 %)
            operations by device time            share  device time    launches     longest
              MatmulDeviceOperation             96.0 %       12.0 s       1,500      8.0 ms
              SoftmaxDeviceOperation             4.0 %     500.0 ms         500      1.0 ms
            1 process ended abruptly, by a signal or with an error: what was held is no leak
            held until then: 3 buffers, 1.0 GiB
              2 chips   DRAM  1.0 GiB  pid 4711  age 11.9 s  kv-cache
              device 0  L1    256 KiB  pid 4711  age 11.7 s
              device 0  L1    128 KiB  pid 4711  age 11.8 s  attention ?[2J mask
            1 process still runs: its figures are as of now
            leaks: no verdict, because the command was killed
        "#]],
    );
}

#[test]
fn a_device_that_was_closed_under_its_buffers_and_many_that_leak() {
    let process = |pid| {
        process_of(pid, Fate::Clean, &[], |writer| {
            let chip = Chips::one(writer.chip(0, None).unwrap());
            writer.allocate(&new(1, chip, MemoryKind::Trace, 4096, 8, ""));
            writer.clear(7, Chips(1));
            for id in 1..=23 {
                let label = if id == 23 { "a label that is as long as labels can be, fifty-six bytes" } else { "" };
                writer.allocate(&new(id, chip, MemoryKind::L1, 32 * id, 64, label));
            }
            (30..1_080).for_each(|id| writer.allocate(&new(id, chip, MemoryKind::L1, 32, 64, "")));
        })
    };
    let mut many = account(vec![process(4711)], vec![]);
    check(
        &many,
        false,
        expect![[r#"
            ── ttmon run ── python3 serve.py --model 'llama 3' ─────────────────────────────
            exit code 0 after 12.0 s, 1 process ran with the agent
            the program's device 0                        peak        at exit    allocations
              L1                                       2.6 MiB        2.6 MiB          1,073
              TRACE                                   32.0 KiB            0 B              1
              1 buffer was still there when the device was closed (32.0 KiB)
            energy: there is no Tenstorrent device here
            still allocated at exit: 1,073 buffers, 2.6 MiB
              its device 0  L1  1,051 × 2.0 KiB  pid 4711  age ≤ 11.9 s
              its device 0  L1         46.0 KiB  pid 4711  age 9.7 s     a label that is as…
              its device 0  L1         44.0 KiB  pid 4711  age 9.8 s
              its device 0  L1         42.0 KiB  pid 4711  age 9.9 s
              its device 0  L1         40.0 KiB  pid 4711  age 10.0 s
              its device 0  L1         38.0 KiB  pid 4711  age 10.1 s
              its device 0  L1         36.0 KiB  pid 4711  age 10.2 s
              its device 0  L1         34.0 KiB  pid 4711  age 10.3 s
              its device 0  L1         32.0 KiB  pid 4711  age 10.4 s
              its device 0  L1         30.0 KiB  pid 4711  age 10.5 s
              its device 0  L1         28.0 KiB  pid 4711  age 10.6 s
              its device 0  L1         26.0 KiB  pid 4711  age 10.7 s
              its device 0  L1         24.0 KiB  pid 4711  age 10.8 s
              its device 0  L1         22.0 KiB  pid 4711  age 10.9 s
              its device 0  L1         20.0 KiB  pid 4711  age 11.0 s
              its device 0  L1         18.0 KiB  pid 4711  age 11.1 s
              its device 0  L1         16.0 KiB  pid 4711  age 11.2 s
              its device 0  L1         14.0 KiB  pid 4711  age 11.3 s
              its device 0  L1         12.0 KiB  pid 4711  age 11.4 s
              its device 0  L1         10.0 KiB  pid 4711  age 11.5 s
              and 3 more
        "#]],
    );
    many.processes.push(process(4_194_303));
    let text = text(&many, false);
    assert!(text.contains("\ndevice 0 of pid 4711 ") && text.contains("\ndevice 0 of pid 4194303\n"), "{text}");
}

#[test]
fn nothing_is_made_up() {
    let mut nothing = account(vec![], vec![]);
    nothing.duration = Duration::from_millis(3);
    check(
        &nothing,
        true,
        expect![[r#"
            ── ttmon run ── python3 serve.py --model 'llama 3' ─────────────────────────────
            exit code 0 after 3 ms
            memory: no process of it used tt-metal with the agent in it
            energy: there is no Tenstorrent device here
            leaks: no verdict, because no process ran with the agent, so the exit code is 5
        "#]],
    );
    nothing.is_followed = false;
    nothing.end = End::Code(1);
    check(
        &nothing,
        false,
        expect![[r#"
        ── ttmon run ── python3 serve.py --model 'llama 3' ─────────────────────────────
        exit code 1 after 3 ms
        memory was not followed: TTMON_AGENT disables the agent
        energy: there is no Tenstorrent device here
    "#]],
    );
}

#[test]
fn devices_of_which_no_book_tells_have_a_line_each() {
    let devices = metered(&[(p150a(0), 60.0), (p150a(1), 12_345.6)], false);
    check(
        &account(vec![], devices),
        false,
        expect![[r#"
            ── ttmon run ── python3 serve.py --model 'llama 3' ─────────────────────────────
            exit code 0 after 12.0 s
            memory: no process of it used tt-metal with the agent in it
            device 0  p150a 0000:01:00.0  792.0 J (0.220 Wh), peak 72.0 W, 61.2 °C
            device 1  p150a 0000:02:00.0  148,219.2 J (41.172 Wh), peak 12357.6 W, 61.2 °C
        "#]],
    );
}

#[test]
fn doubts_are_shown() {
    let mut process = process_of(4711, Fate::Clean, &[], |writer| {
        let chip = Chips::one(writer.chip(0, Some(0xABCD)).unwrap());
        writer.allocate(&new(1, chip, MemoryKind::Dram, 1024, 8, ""));
        writer.remark("the library has no accessors that this agent knows of, and its layouts could not be learnt");
        writer.free(99);
    });
    process.book.is_inexact = true;
    process.book.untabled = 2;
    process.book.is_of_one_moment = false;
    process.table.as_mut().unwrap().moved = true;
    let mut second = process_of(4712, Fate::Replaced, &[], |_| {});
    second.table = Err("the record at byte 135168 is broken".into());
    let mut doubtful = account(vec![process, second], vec![]);
    doubtful.remarks.push("the book of pid 4713 was not taken: is torn".into());
    check(
        &doubtful,
        true,
        expect![[r#"
            ── ttmon run ── python3 serve.py --model 'llama 3' ─────────────────────────────
            exit code 0 after 12.0 s, 2 processes ran with the agent
            chip 000000000000ABCD                         peak        at exit    allocations
              DRAM                                     8.0 KiB        8.0 KiB              1
            energy: there is no Tenstorrent device here
            still allocated at exit: 3 buffers, at least 8.0 KiB
              chip …ABCD  DRAM  8.0 KiB  pid 4711  age 11.9 s
              and 2 more
            1 book ended when a process became another program, by exec
            pid 4711: the library has no accessors that this agent knows of, and its layouts
              could not be learnt
            pid 4711: the agent's data is incomplete, and its figures are not exact
            pid 4711: the list had no room for 2 buffers; the sums above count them
            pid 4711: 1 buffer was freed that the agent had not seen allocated
            pid 4711: caught in the middle of a change; its sums may be one event apart
            pid 4711: the list of live buffers is not of one moment
            pid 4712: the list of live buffers cannot be read: the record at byte 135168 is
              broken
            the book of pid 4713 was not taken: is torn
            leaks: found, so the exit code is 3
        "#]],
    );
}

#[test]
fn numbers_are_as_people_write_them() {
    let times = [1, 99, 100, 59_990, 60_000, 3_599_999, 3_660_000].map(Duration::from_millis).map(duration);
    assert_eq!(times, ["1 ms", "99 ms", "0.1 s", "59.9 s", "1 min 00 s", "59 min 59 s", "1 h 01 min"]);
    assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    assert_eq!(joules_and_hours(824.06), "824.1 J (0.229 Wh)");
    assert_eq!(joules_and_hours(1999.96), "2,000.0 J (0.556 Wh)");
    assert_eq!(joules_and_hours(7.2e6), "7,200,000.0 J (2000 Wh)");
    assert_eq!(SECOND, 1_000_000_000);
}

proptest::proptest! {
    #[test]
    fn no_line_is_too_long(words in proptest::collection::vec("\\PC*", 1..4), remark in "\\PC*") {
        let mut odd = account(vec![], vec![]);
        (odd.command, odd.remarks) = (words, vec![remark]);
        for line in text(&odd, true).lines() {
            assert!(width(line) <= COLUMNS, "{line}");
        }
    }
}
