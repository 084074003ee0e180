//! What the book of a process says of its chips, as a sample has it.

use crate::support::{BLACKHOLE, Machine};
use ledger::Mapping;
use ledger::book::Writer;
use ledger::book::activity::{ActivitySource, DeviceRecord, Launch, NoRecords, monotonic};
use model::{Activity, Snapshot};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

const MILLISECOND: u64 = 1_000_000;

/// A process that keeps a book: this program once more. A sampler leaves out its own process.
struct Holder(Child, BufReader<std::process::ChildStdout>);

impl Holder {
    fn start() -> Holder {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "activity::keeps_a_book", "--nocapture", "--quiet"])
            .env("TTMON_TEST_HOLDER", "yes")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Holder(child, out)
    }

    /// Has it do something, and waits until it is done.
    fn ask(&mut self, what: &str) {
        writeln!(self.0.stdin.as_mut().unwrap(), "{what}").unwrap();
        let done = self.1.by_ref().lines().map(Result::unwrap).any(|line| line.ends_with("done"));
        assert!(done, "{what}");
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the other process does. It is no test by itself.
#[test]
fn keeps_a_book() {
    if std::env::var_os("TTMON_TEST_HOLDER").is_none() {
        return;
    }
    let (mut book, mut unwritten) = (None, None);
    for line in std::io::stdin().lines().map(Result::unwrap) {
        let began = monotonic() - 2_000 * MILLISECOND;
        if line == "make" {
            unwritten = Some(an_unwritten_book());
            println!("done");
        }
        if line == "begin" {
            drop(unwritten.take());
            let new = Writer::create("a test").unwrap();
            new.chip(0, Some(0x8F3A_6C21_D4E5_B790)).unwrap();
            book = Some(new);
        }
        let Some(book) = &book else { continue };
        let matmul = || book.operation(b"MatmulDeviceOperation");
        match line.as_str() {
            "inactive" => {
                assert!(book.record_activity(began));
                book.chip_unrecorded(0, NoRecords::Inactive);
            }
            // Busy for half of the last two seconds, in four programs. A tick is a nanosecond.
            "run" => {
                book.chip_opened(0, ActivitySource::Profiler, began);
                for n in 0..4u16 {
                    let (operation, start) = (matmul(), began + u64::from(n) * 500 * MILLISECOND);
                    book.launched(Launch { operation, runtime_id: Some(n) }, start);
                    let end = start + 250 * MILLISECOND;
                    let record = DeviceRecord { chip: 0, runtime_id: n, operation, start, end, cycles_per_ns: 1.0 };
                    book.records([record].into_iter(), 0, end);
                }
            }
            "lose" => {
                book.chip_opened(0, ActivitySource::DispatchTelemetry, monotonic());
                book.dispatch_unknown(0, NoRecords::Inactive);
            }
            "launch" => book.launched(Launch { operation: matmul(), runtime_id: Some(4) }, monotonic()),
            _ => {}
        }
        println!("done");
    }
}

/// What a sample sees of a book between its creation and its first record.
fn an_unwritten_book() -> (File, Mapping) {
    let file = File::from(rustix::fs::memfd_create("ttmon-book", rustix::fs::MemfdFlags::CLOEXEC).unwrap());
    file.set_len(4096).unwrap();
    let mapping = Mapping::of(&file, 4096).unwrap();
    (file, mapping)
}

fn shown(activity: &Activity) -> String {
    let value = match (activity.utilization_percent, activity.utilization_unknown) {
        (Some(percent), _) => format!("{percent:.0}%"),
        (None, Some(why)) => why.name().to_owned(),
        (None, None) => "nothing".to_owned(),
    };
    format!("{value}, busy {:?} s, {:?} programs", activity.busy_seconds_total, activity.programs_total)
}

/// The device, and the process on it.
fn both(snapshot: &Snapshot) -> (String, String) {
    assert!(snapshot.faults.is_empty(), "{:?}", snapshot.faults);
    (shown(&snapshot.devices[0].activity), shown(&snapshot.processes[0].devices[0].activity))
}

#[test]
fn a_sample_has_what_the_book_of_a_holder_records() {
    let machine = Machine::new().device(0, "0000:01:00.0", BLACKHOLE).with("0/tt_asic_id = 8F3A6C21D4E5B790");
    let mut sampler = machine.sampler(true);
    assert_eq!(shown(&sampler.sample().devices[0].activity), "not in use, busy None s, None programs");

    let mut holder = Holder::start();
    machine.set(&format!("0/pids = {}", holder.0.id()));
    assert_eq!(both(&sampler.sample()).0, "no agent, busy None s, None programs");

    holder.ask("make");
    let mut sampler = machine.sampler(true);
    assert_eq!(both(&sampler.sample()).0, "no agent, busy None s, None programs", "it is not written yet");

    holder.ask("begin");
    let mut sampler = machine.sampler(true);
    assert_eq!(both(&sampler.sample()).1, "old agent, busy None s, None programs");

    holder.ask("inactive");
    assert_eq!(both(&sampler.sample()).0, "profiler inactive, busy None s, None programs");

    holder.ask("run");
    let snapshot = sampler.sample();
    let (device, process) = both(&snapshot);
    assert_eq!(device, process, "nobody else uses it");
    assert!(device.ends_with(" busy Some(1.0) s, Some(4) programs"), "{device}");
    let percent = snapshot.devices[0].activity.utilization_percent.unwrap();
    assert!((20.0..=60.0).contains(&percent), "{percent}: it was busy for half of the time");
    let operation = &snapshot.processes[0].operations[0];
    assert_eq!((operation.name.as_str(), operation.launches), ("MatmulDeviceOperation", 4));
    assert_eq!((operation.device_seconds, operation.longest_seconds), (Some(1.0), Some(0.25)));
    assert!(snapshot.processes[0].idle_seconds.is_some_and(|idle| idle > 0.2), "all that was launched has ended");

    // It launches on, and no record has come yet.
    holder.ask("launch");
    let snapshot = sampler.sample();
    assert_eq!(snapshot.processes[0].idle_seconds, None, "it may be running");
    assert!(snapshot.processes[0].operations[0].in_flight);
    assert!(snapshot.processes[0].launches_per_second.is_some_and(|rate| rate > 0.0));
    assert_eq!(snapshot.processes[0].launches_total, Some(5));

    // Records stop for good: what was counted is still known.
    holder.ask("lose");
    assert_eq!(both(&sampler.sample()).0, "profiler inactive, busy Some(1.0) s, Some(4) programs");

    // Totals stay with the device when its process is gone.
    drop(holder);
    machine.bytes("proc/driver/tenstorrent/0/pids", b"");
    assert_eq!(shown(&sampler.sample().devices[0].activity), "not in use, busy Some(1.0) s, Some(4) programs");
}
