//! Figures of processes and devices that a future driver counts.

use crate::support::{BLACKHOLE, Machine, P150A, p150a};
use expect_test::{Expect, expect};
use model::Snapshot;
use sources::{Options, Sampler};
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A process that holds devices because the machine's files say so.
struct Holder(Child);

impl Holder {
    fn start() -> Holder {
        Holder(Command::new("sleep").arg("600").spawn().unwrap())
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two devices, both held by these processes.
fn machine(holders: &[&Holder]) -> Machine {
    let machine = p150a().device(1, "0000:02:00.0", BLACKHOLE).with(&P150A.replace("0/", "1/"));
    let pids: Vec<String> = holders.iter().map(|holder| holder.pid().to_string()).collect();
    machine.set(&format!("0/pids = {0}\n1/pids = {0}", pids.join(" ")));
    machine
}

/// Opens device `n` under a descriptor, and lays what the driver says of it: `key value; key value`.
fn open(machine: &Machine, holder: &Holder, fd: u32, n: u32, keys: &str) {
    let folder = format!("proc/{}", holder.pid());
    fs::create_dir_all(machine.path(&format!("{folder}/fd"))).unwrap();
    let link = machine.path(&format!("{folder}/fd/{fd}"));
    let _ = fs::remove_file(&link);
    symlink(machine.path(&format!("dev/tenstorrent/{n}")), link).unwrap();
    say(machine, holder, fd, keys);
}

fn say(machine: &Machine, holder: &Holder, fd: u32, keys: &str) {
    let keys = keys.split("; ").filter(|key| !key.is_empty());
    let lines: String = keys.map(|key| format!("drm-{}\n", key.replacen(' ', ":\t", 1))).collect();
    let path = format!("proc/{}/fdinfo/{fd}", holder.pid());
    machine.bytes(&path, format!("pos:\t0\nflags:\t02\n{lines}").as_bytes());
}

/// What each process has where and from which source, what the devices have in use, and the faults; pids as letters.
fn seen(snapshot: &Snapshot, holders: &[&Holder]) -> String {
    let mut text = String::new();
    for process in &snapshot.processes {
        for held in &process.devices {
            let (usage, bytes) =
                (held.usage, |bytes: Option<model::Bytes>| bytes.map_or("-".into(), |b| b.0.to_string()));
            let source = held.source.map_or("-", |source| source.name());
            let busy = held.activity.utilization_percent.map(|percent| format!(" busy {percent}%")).unwrap_or_default();
            text += &format!(
                "{}@{} dram {} l1 {} {source}{busy}\n",
                process.pid,
                held.id,
                bytes(usage.dram_used),
                bytes(usage.l1_used)
            );
        }
    }
    for device in &snapshot.devices {
        let memory = &device.memory;
        let bytes = |bytes: Option<model::Bytes>| bytes.map_or("-".into(), |bytes| bytes.0.to_string());
        let (dram, trace, untracked) = (bytes(memory.dram_used), bytes(memory.trace_used), memory.untracked_processes);
        text += &format!("device {} dram {dram} trace {trace} untracked {untracked}\n", device.id);
    }
    for fault in &snapshot.faults {
        let path = fault.path.split_once("/proc/").map_or("", |(_, path)| path);
        text += &format!("fault {path}: {}\n", fault.reason);
    }
    for (holder, letter) in holders.iter().zip(["A", "B", "C"]) {
        text = text.replace(&holder.pid().to_string(), letter);
    }
    text
}

fn check(machine: &Machine, holders: &[&Holder], expected: Expect) {
    let seen_first = seen(&machine.sample(), holders);
    expected.assert_eq(&seen_first);
    // A sample that has no next one takes a shorter way.
    let mut once = Sampler::new(machine.root(), Options { deadline: Duration::from_secs(10), ..Options::default() });
    once.set_once(Box::new(|_, _| true));
    assert_eq!(seen(&once.sample(), holders), seen_first);
}

const FIRST: &str = "driver tenstorrent; pdev 0000:01:00.0; client-id 1";
const SECOND: &str = "driver tenstorrent; pdev 0000:02:00.0; client-id 1";

#[test]
fn a_driver_that_counts_needs_no_service_and_no_agent() {
    let a = Holder::start();
    let machine = machine(&[&a]);
    open(&machine, &a, 3, 0, &format!("{FIRST}; memory-dram 5 MiB; memory-l1 3 KiB"));
    open(&machine, &a, 4, 0, "driver tenstorrent; pdev 0000:01:00.0; client-id 2");
    open(&machine, &a, 5, 0, &format!("{FIRST}; memory-dram 5 MiB; memory-l1 3 KiB"));
    open(&machine, &a, 6, 1, &format!("{SECOND}; resident-dram 7; total-dram 9"));
    check(
        &machine,
        &[&a],
        expect![[r#"
            A@0 dram 5242880 l1 3072 kernel
            A@1 dram 7 l1 - kernel
            device 0 dram 5242880 trace - untracked 0
            device 1 dram 7 trace - untracked 0
        "#]],
    );
}

#[test]
fn what_was_passed_on_counts_once_and_files_of_others_are_not_looked_at() {
    let (a, b, stranger) = (Holder::start(), Holder::start(), Holder::start());
    let machine = machine(&[&a, &b]);
    open(&machine, &a, 3, 0, &format!("{FIRST}; memory-dram 100"));
    open(&machine, &b, 9, 0, &format!("{FIRST}; memory-dram 100"));
    open(&machine, &b, 10, 1, &format!("{SECOND}; memory-dram 20"));
    open(&machine, &stranger, 3, 0, "driver tenstorrent; pdev 0000:01:00.0; client-id 77; memory-dram 1000");
    fs::create_dir_all(machine.path(&format!("proc/{}/fd", b.pid()))).unwrap();
    symlink("/dev/null", machine.path(&format!("proc/{}/fd/11", b.pid()))).unwrap();
    say(&machine, &b, 11, &format!("{FIRST}; memory-dram 5000"));
    let seen = seen(&machine.sample(), &[&a, &b]);
    // Both may have begun in the same tick, and then the smaller pid is taken for the elder.
    assert!(seen.contains("device 0 dram 100 trace - untracked 1"), "{seen}");
    assert!(seen.contains("device 1 dram 20 trace - untracked 1"), "{seen}");
}

#[test]
fn engine_time_becomes_utilisation() {
    let a = Holder::start();
    let machine = machine(&[&a]);
    let at = |ns: u64| format!("{FIRST}; cycles-tensix {ns}; total-cycles-tensix {}; engine-capacity-tensix 2", ns * 2);
    open(&machine, &a, 3, 0, &at(1000));
    let mut sampler = machine.sampler(false);
    let first = sampler.sample();
    assert_eq!(first.processes[0].devices[0].activity.utilization_percent, None);
    say(&machine, &a, 3, &at(5000));
    let second = sampler.sample();
    assert_eq!(second.processes[0].devices[0].activity.utilization_percent, Some(25.0));
    assert_eq!(second.processes[0].devices[0].source, None, "memory has no source");
}

#[test]
fn a_folder_for_each_process_counts_too_and_open_files_come_first() {
    let (a, b) = (Holder::start(), Holder::start());
    let machine = machine(&[&a, &b]);
    let (of_a, of_b) = (a.pid(), b.pid());
    machine.set(&format!(
        "0/processes/{of_a}/dram_allocated = 4096
         0/processes/{of_a}/l1_allocated = 17
         0/processes/{of_a}/comm = sleep
         0/processes/{of_a}/eth_bytes = 5
         0/processes/{of_b}/dram_bytes = 100
         1/processes/{of_b}/dram_allocated = garbage
         1/processes/1/dram_allocated = 55"
    ));
    open(&machine, &b, 3, 0, &format!("{FIRST}; memory-dram 200"));
    check(
        &machine,
        &[&a, &b],
        expect![[r#"
            A@0 dram 4096 l1 17 kernel
            A@1 dram - l1 - -
            B@0 dram 200 l1 - kernel
            B@1 dram - l1 - -
            device 0 dram 4296 trace - untracked 0
            device 1 dram - trace - untracked 2
            fault : unknown kind of device memory: ignored
            fault : not a number: "garbage"
        "#]],
    );
}

#[test]
fn what_may_not_be_read_is_named_and_costs_no_other_process_anything() {
    let (a, b) = (Holder::start(), Holder::start());
    let machine = machine(&[&a, &b]);
    open(&machine, &a, 3, 0, &format!("{FIRST}; memory-dram 100"));
    open(&machine, &b, 3, 1, &format!("{SECOND}; memory-dram 200"));
    let closed = format!("{}/fdinfo/", b.pid());
    let root = machine.root().with_faults(Arc::new(move |path: &Path| {
        path.to_string_lossy().contains(&closed).then(|| io::Error::from_raw_os_error(13))
    }));
    let mut sampler = Sampler::new(root, Options { rates: false, relaxed: false, deadline: Duration::from_secs(10) });
    for _ in 0..2 {
        let snapshot = sampler.sample();
        let user = snapshot.processes[0].user.clone().unwrap();
        let seen = seen(&snapshot, &[&a, &b]);
        assert!(seen.contains("A@0 dram 100 l1 - kernel"), "{seen}");
        assert!(seen.contains("B@1 dram - l1 - -"), "{seen}");
        assert!(seen.contains(&format!("fault B: belongs to {user}: run as that user or as root")), "{seen}");
    }
}

#[test]
fn a_process_that_closes_a_file_or_ends_meanwhile_is_no_fault() {
    let (a, b) = (Holder::start(), Holder::start());
    let machine = machine(&[&a, &b]);
    open(&machine, &a, 3, 0, &format!("{FIRST}; memory-dram 100"));
    open(&machine, &b, 3, 1, &format!("{SECOND}; memory-dram 200"));
    let mut sampler = machine.sampler(false);
    let pids = (a.pid().to_string(), b.pid().to_string());
    sampler.sample();
    fs::remove_file(machine.path(&format!("proc/{}/fdinfo/3", a.pid()))).unwrap();
    fs::remove_file(machine.path(&format!("proc/{}/fd/3", a.pid()))).unwrap();
    drop(b);
    let seen = seen(&sampler.sample(), &[]).replace(&pids.0, "A").replace(&pids.1, "B");
    assert!(seen.contains("A@0 dram - l1 - -"), "{seen}");
    assert!(!seen.contains("B@"), "{seen}");
    assert!(!seen.contains("fdinfo"), "{seen}");
}

/// What device 0 has in use, its parts, how many processes are untracked, and the faults.
fn used(snapshot: &Snapshot) -> String {
    let memory = &snapshot.devices[0].memory;
    let bytes = |bytes: Option<model::Bytes>| bytes.map_or("-".into(), |bytes| bytes.0.to_string());
    let mut text = format!("dram {} l1 {}", bytes(memory.dram_used), bytes(memory.l1_used));
    text += &format!(" buffers {} untracked {}", bytes(memory.dram), memory.untracked_processes);
    for fault in &snapshot.faults {
        let path: Vec<&str> = fault.path.rsplit('/').take(2).collect();
        text += &format!(", {}/{}: {}", path[1], path[0], fault.reason);
    }
    text
}

#[test]
fn what_the_driver_counts_for_a_device_is_its_used_figure_and_no_lower_bound() {
    let a = Holder::start();
    let machine = machine(&[&a]);
    assert_eq!(used(&machine.sample()), "dram - l1 - buffers - untracked 1", "no source");
    machine.set("0/memory/dram_used = 5000\n0/memory/l1_used = 70");
    assert_eq!(used(&machine.sample()), "dram 5000 l1 70 buffers - untracked 0");
    assert_eq!(machine.sample().devices[1].memory.dram_used, None, "of the other device nothing is counted");
    machine.set(&format!("0/processes/{}/dram_allocated = 4000", a.pid()));
    let snapshot = machine.sample();
    assert_eq!(
        used(&snapshot),
        "dram 5000 l1 70 buffers - untracked 0",
        "as it says, whatever the processes add up to"
    );
    assert_eq!(snapshot.processes[0].devices[0].usage.dram_used, Some(model::Bytes(4000)));
}

#[test]
fn a_single_sample_has_what_the_driver_counts_for_every_device() {
    let a = Holder::start();
    let machine = machine(&[&a]).with("0/memory/dram_used = 5000\n1/memory/dram_used = 70");
    let mut once = Sampler::new(machine.root(), Options::default());
    once.set_once(Box::new(|_, _| true));
    let used = once.sample().devices.into_iter().map(|device| device.memory.dram_used.map(|bytes| bytes.0));
    assert_eq!(used.collect::<Vec<_>>(), [Some(5000), Some(70)]);
}

#[test]
fn either_folder_counts_and_what_one_lacks_the_other_may_have() {
    let a = Holder::start();
    let machine = machine(&[&a]).with("0/memory_stats/dram_used = 7");
    assert_eq!(used(&machine.sample()), "dram 7 l1 - buffers - untracked 1", "for L1 it is still a lower bound");
    machine.set("0/memory_stats/l1_used = 9\n0/memory/dram_used = 8");
    assert_eq!(used(&machine.sample()), "dram 8 l1 9 buffers - untracked 0");
}

#[test]
fn a_count_that_cannot_be_right_is_named_and_not_shown() {
    let machine = p150a().with("0/memory/dram_used = 99999999999999\n0/memory/l1_used = much");
    assert_eq!(
        used(&machine.sample()),
        "dram 0 l1 0 buffers 0 untracked 0, memory/dram_used: implausible value 99999999999999, \
         memory/l1_used: not a number: \"much\""
    );
}

#[test]
fn counts_of_a_device_are_read_with_every_sample_and_looked_for_once_a_minute() {
    let machine = p150a();
    let mut early = machine.sampler(false);
    early.sample();
    machine.set("0/memory/dram_used = 1\n0/memory/l1_used = 1");
    assert_eq!(early.sample().devices[0].memory.driver, model::DriverUsed::default(), "it was not there");
    let mut sampler = machine.sampler(false);
    for n in 1..=4 {
        machine.set(&format!("0/memory/dram_used = {n}"));
        assert_eq!(sampler.sample().devices[0].memory.dram_used, Some(model::Bytes(n)));
    }
    fs::rename(machine.path("sys/class/tenstorrent"), machine.path("away")).unwrap();
    let lost = sampler.sample();
    assert_eq!((lost.devices[0].state.name(), lost.devices[0].memory.dram_used), ("no driver", None));
}

/// A machine's sampler, and how often a file whose path has these words was read.
fn counting(machine: &Machine, words: &'static [&'static str]) -> (Sampler, Arc<AtomicUsize>) {
    let reads = Arc::new(AtomicUsize::new(0));
    let counted = reads.clone();
    let root = machine.root().with_faults(Arc::new(move |path: &Path| {
        if words.iter().any(|word| path.to_string_lossy().contains(word)) {
            counted.fetch_add(1, Ordering::Relaxed);
        }
        None
    }));
    (Sampler::new(root, Options { rates: false, relaxed: false, deadline: Duration::from_secs(10) }), reads)
}

#[test]
fn a_driver_that_counts_nothing_is_asked_once() {
    let (a, b) = (Holder::start(), Holder::start());
    let machine = machine(&[&a, &b]);
    for fd in 3..9 {
        open(&machine, &a, fd, fd % 2, "");
    }
    let (mut sampler, reads) = counting(&machine, &["fdinfo", "processes"]);
    let mut snapshots: Vec<Snapshot> = (0..5).map(|_| sampler.sample()).collect();
    assert_eq!(reads.load(Ordering::Relaxed), 1);
    assert_eq!(snapshots.pop().unwrap().processes[0].devices[0].source, None);
    machine.file("sys/module/tenstorrent/version", "3.0.0");
    open(&machine, &a, 3, 0, &format!("{FIRST}; memory-dram 100"));
    for fd in 4..9 {
        open(&machine, &a, fd, fd % 2, &format!("{SECOND}{fd}"));
    }
    sampler.sample();
    let counted = sampler.sample();
    assert_eq!(counted.processes.iter().flat_map(|p| &p.devices).filter(|held| held.source.is_some()).count(), 1);
}

#[test]
fn a_driver_that_counts_is_asked_every_time_and_its_files_stay_open() {
    let a = Holder::start();
    let machine = machine(&[&a]);
    open(&machine, &a, 3, 0, &format!("{FIRST}; memory-dram 1"));
    let (mut sampler, reads) = counting(&machine, &["fdinfo"]);
    for n in 1..=5 {
        say(&machine, &a, 3, &format!("{FIRST}; memory-dram {n}"));
        let snapshot = sampler.sample();
        assert_eq!(snapshot.processes[0].devices[0].usage.dram_used, Some(model::Bytes(n)));
    }
    assert_eq!(reads.load(Ordering::Relaxed), 5);
}

#[test]
fn a_driver_that_does_not_answer_costs_its_own_figures_and_nothing_else() {
    let a = Holder::start();
    let machine = machine(&[&a]);
    open(&machine, &a, 3, 0, &format!("{FIRST}; memory-dram 100"));
    machine.set(&format!("1/processes/{}/dram_allocated = 7", a.pid()));
    let root = machine.root().with_faults(Arc::new(|path: &Path| {
        while path.to_string_lossy().contains("fdinfo") {
            std::thread::park();
        }
        None
    }));
    let mut sampler = Sampler::new(root, Options { rates: false, relaxed: false, deadline: Duration::from_secs(2) });
    for _ in 0..2 {
        let seen = seen(&sampler.sample(), &[&a]);
        assert!(seen.contains("A@0 dram - l1 - -"), "{seen}");
        assert!(seen.contains("A@1 dram 7 l1 - kernel"), "{seen}");
        assert!(seen.contains("fault A/fdinfo: no answer within 2000 ms"), "{seen}");
    }
}
