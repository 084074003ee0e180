//! What `ttmon smi --json` says about memory that the real `libtt_metal.so` of the ttnn wheel has written.
//!
//! Runs when `TTMON_TTNN` names the unpacked wheel, as `scripts/fetch-ttnn` prints it.

use crate::support::harness::{Harness, needs_root};
use crate::support::{Machine, needs, program_for_all, run};
use serde_json::{Value, json};
use sim::tree::Chip;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

#[test]
fn every_kind_of_two_processes_counts_and_frees_are_taken_off() {
    let Some(bench) = Bench::new("every_kind_of_two_processes_counts_and_frees_are_taken_off") else { return };
    let (mut first, mut second) = (bench.harness(), bench.harness());
    bench.machine.set_pids(0, &[first.pid, second.pid]);
    assert_eq!(bench.used(), json!(null), "two processes hold the device and tell nothing yet");

    first.ok(&bench.open());
    second.ok(&bench.open());
    assert_eq!(bench.held(first.pid), json!([0, 0, 0, 0, 0, "shm"]), "attached, nothing allocated");

    for (bytes, kind) in [(2_097_152, "dram"), (131_072, "l1"), (4096, "l1_small"), (8192, "trace"), (786_432, "cb")] {
        first.ok(&format!("alloc 0 {bytes} {kind}"));
    }
    second.ok("alloc 0 1048576 dram");
    second.ok("alloc 0 65536 l1");
    second.ok("free 0 16384 l1");
    assert_eq!(bench.held(first.pid), json!([2_097_152, 131_072, 4096, 8192, 786_432, "shm"]));
    assert_eq!(bench.held(second.pid), json!([1_048_576, 49_152, 0, 0, 0, "shm"]));
    assert_eq!(bench.used(), json!([3_145_728, 180_224, 4096, 8192, 786_432]));
    assert_eq!(bench.stale(), json!(0));
    let process = &bench.processes()[0];
    assert_eq!(process["runtime"], "tt-metal");
    assert_eq!(process["name"], "ttmetal-harness");
}

#[test]
fn a_clean_close_gives_everything_back() {
    let Some(bench) = Bench::new("a_clean_close_gives_everything_back") else { return };
    let mut harness = bench.harness();
    bench.machine.set_pids(0, &[harness.pid]);
    harness.ok(&bench.open());
    harness.ok("alloc 0 1000 dram");
    harness.ok("close 0");
    assert_eq!(bench.held(harness.pid), json!([null, null, null, null, null, null]), "open, but no longer counting");
    harness.ok("quit");
    harness.child.wait().unwrap();
    bench.machine.set_pids(0, &[]);
    assert_eq!((bench.used(), bench.stale()), (json!([0, 0, 0, 0, 0]), json!(0)));
}

#[test]
fn the_bytes_of_a_killed_process_become_stale_and_are_never_used() {
    let Some(bench) = Bench::new("the_bytes_of_a_killed_process_become_stale_and_are_never_used") else { return };
    let (mut survivor, mut victim) = (bench.harness(), bench.harness());
    bench.machine.set_pids(0, &[survivor.pid, victim.pid]);
    survivor.ok(&bench.open());
    survivor.ok("alloc 0 1000 dram");
    victim.ok(&bench.open());
    victim.ok("alloc 0 5000 dram");
    victim.ok("alloc 0 300 l1");
    victim.child.kill().unwrap();
    victim.child.wait().unwrap();
    bench.machine.set_pids(0, &[survivor.pid]);
    assert_eq!((bench.used(), bench.stale()), (json!([1000, 0, 0, 0, 0]), json!(5300)));
    survivor.ok("close 0");
    survivor.ok("quit");
    survivor.child.wait().unwrap();
    bench.machine.set_pids(0, &[]);
    assert_eq!(
        (bench.used(), bench.stale()),
        (json!([0, 0, 0, 0, 0]), json!(5300)),
        "the leak stays after a clean close"
    );
    assert_eq!(bench.processes(), Vec::<Value>::new());
}

#[test]
fn a_process_in_a_pid_namespace_has_its_bytes_under_its_own_pid() {
    let test = "a_process_in_a_pid_namespace_has_its_bytes_under_its_own_pid";
    let Some(bench) = Bench::new(test).filter(|_| needs_root(test)) else { return };
    let mut inner = bench.harness_in(&["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    // The same inner pid again: on the host two processes, in the region one slot.
    assert_eq!(inner.inner_pid, 1);
    bench.machine.set_pids(0, &[inner.pid]);
    inner.ok(&bench.open());
    inner.ok("alloc 0 777 dram");
    assert_eq!(bench.held(inner.pid), json!([777, 0, 0, 0, 0, "shm"]));
    assert_eq!(bench.processes().len(), 1, "pid 1 of the host is not the owner");

    let mut twin = bench.harness_in(&["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    twin.ok(&bench.open());
    twin.ok("alloc 0 3 dram");
    bench.machine.set_pids(0, &[inner.pid, twin.pid]);
    assert_eq!(bench.held(inner.pid)[0], json!(null), "what is in one slot cannot be told apart");
    assert_eq!(bench.used()[0], json!(780));
}

#[test]
fn the_private_shm_of_a_container_is_found_through_its_process() {
    let test = "the_private_shm_of_a_container_is_found_through_its_process";
    let Some(bench) = Bench::new(test).filter(|_| needs_root(test)) else { return };
    let script = "mount -t tmpfs tmpfs /dev/shm && exec \"$@\"";
    let wrapper = ["unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script, "sh"];
    let mut inner = bench.harness_in(&wrapper);
    bench.machine.set_pids(0, &[inner.pid]);
    inner.ok(&bench.open());
    inner.ok("alloc 0 4242 dram");
    assert!(!bench.region.exists(), "the host does not see the file");
    assert_eq!(bench.held(inner.pid), json!([4242, 0, 0, 0, 0, "shm"]));
    assert_eq!(bench.used()[0], json!(4242));
}

#[test]
fn a_region_that_was_removed_is_read_through_the_process_that_still_has_it() {
    let test = "a_region_that_was_removed_is_read_through_the_process_that_still_has_it";
    let Some(bench) = Bench::new(test) else { return };
    let (mut old, mut new) = (bench.harness(), bench.harness());
    bench.machine.set_pids(0, &[old.pid, new.pid]);
    old.ok(&bench.open());
    old.ok("alloc 0 100 dram");
    std::fs::remove_file(&bench.region).unwrap();
    new.ok(&bench.open());
    new.ok("alloc 0 20 dram");
    assert_eq!(bench.held(old.pid)[0], json!(100));
    assert_eq!(bench.held(new.pid)[0], json!(20));
    assert_eq!(bench.used()[0], json!(120));
}

#[test]
fn another_user_sees_why_there_is_no_figure() {
    let test = "another_user_sees_why_there_is_no_figure";
    let Some(bench) = Bench::new(test).filter(|_| needs_root(test)) else { return };
    let mut harness = bench.harness();
    bench.machine.set_pids(0, &[harness.pid]);
    harness.ok(&bench.open());
    harness.ok("alloc 0 1000 dram");
    let folder = tempfile::tempdir().unwrap();
    let program = program_for_all(folder.path());
    program_for_all(bench.machine.0.path());
    let mut as_nobody = Command::new("setpriv");
    as_nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
    let run = run(as_nobody.args(["smi", "--json", "--root", bench.machine.root()]));
    let snapshot: Value = serde_json::from_str(&run.out).unwrap();
    let process = &snapshot["processes"][0];
    assert_eq!(process["pid"], harness.pid);
    assert_eq!(process["name"], "ttmetal-harness", "what everybody may know is known");
    assert_eq!((&process["runtime"], &process["devices"][0]["dram_bytes"]), (&json!(null), &json!(null)));
    assert_eq!(snapshot["devices"][0]["memory"]["dram_used_bytes"], json!(null));
    let name = bench.region.file_name().unwrap().to_str().unwrap();
    let faults = snapshot["faults"].as_array().unwrap();
    let fault = faults.iter().find(|fault| fault["path"].as_str().unwrap().ends_with(name));
    assert_eq!(fault.unwrap()["reason"], "belongs to user 0: run as that user or as root to see its memory");
}

#[test]
fn a_child_that_inherited_the_device_is_found_by_its_slot() {
    let Some(bench) = Bench::new("a_child_that_inherited_the_device_is_found_by_its_slot") else { return };
    let mut child = bench.harness();
    // The driver still names the opener, which is gone.
    bench.machine.set_pids(0, &[gone()]);
    child.ok(&bench.open());
    child.ok("alloc 0 64 dram");
    assert_eq!(bench.held(child.pid)[0], json!(64));
    assert_eq!(bench.used()[0], json!(64));
    assert_eq!(bench.snapshot()["devices"][0]["memory"]["untracked_processes"], 0);
}

#[test]
fn real_buffers_of_a_real_mesh_device_are_seen() {
    let Some(bench) = Bench::new("real_buffers_of_a_real_mesh_device_are_seen") else { return };
    let cluster = bench.machine.0.path().join("n150.yaml");
    let ours = include_str!("../../harness/clusters/n150.yaml");
    std::fs::write(&cluster, ours.replace("7310579611150000150", &bench.asic_id.to_string())).unwrap();
    let mut mock = bench.start(&[], &["mock", bench.ttnn.to_str().unwrap(), cluster.to_str().unwrap()]);
    bench.machine.set_pids(0, &[mock.pid]);
    assert!(mock.ask("alloc 1 2097152 2048 dram").starts_with("OK address="));
    assert!(mock.ask("alloc 2 131072 2048 l1").starts_with("OK address="));
    assert_eq!(bench.held(mock.pid), json!([2_097_152, 131_072, 0, 0, 0, "shm"]));
    assert_eq!(bench.processes()[0]["runtime"], "ttnn");
    mock.ok("free 1");
    assert_eq!(bench.used()[0], json!(0));
    mock.ok("quit");
}

/// One simulated p150a whose memory region a real tt-metal writes.
struct Bench {
    ttnn: PathBuf,
    machine: Machine,
    asic_id: u64,
    region: PathBuf,
}

impl Bench {
    fn new(test: &str) -> Option<Bench> {
        let ttnn = needs::wheel(test)?;
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let asic_id = (now << 8) + NEXT.fetch_add(1, Ordering::Relaxed);
        let machine = Machine::with_real_shm(&[Chip { asic_id: Some(asic_id), ..Chip::p150a(0) }]);
        let region = PathBuf::from(format!("/dev/shm/tt_device_{asic_id}_memory"));
        Some(Bench { ttnn, machine, asic_id, region })
    }

    fn open(&self) -> String {
        format!("open 0 {} 0", self.asic_id)
    }

    fn harness(&self) -> Harness {
        self.harness_in(&[])
    }

    /// A process that drives the real library, inside of whatever `wrapper` makes.
    fn harness_in(&self, wrapper: &[&str]) -> Harness {
        let library = self.ttnn.join("build/lib/libtt_metal.so");
        self.start(wrapper, &["shm", library.to_str().unwrap()])
    }

    fn start(&self, wrapper: &[&str], arguments: &[&str]) -> Harness {
        Harness::start(wrapper, arguments, &[("TMPDIR", self.machine.root())])
    }

    fn snapshot(&self) -> Value {
        self.machine.json(&[])
    }

    fn processes(&self) -> Vec<Value> {
        self.snapshot()["processes"].as_array().unwrap().clone()
    }

    /// DRAM, L1, L1_SMALL, TRACE and CB of a process on the device, and the source.
    fn held(&self, pid: u32) -> Value {
        let processes = self.processes();
        let process =
            processes.iter().find(|process| process["pid"] == pid).unwrap_or_else(|| panic!("{pid}: {processes:?}"));
        let held = &process["devices"][0];
        let keys = ["dram_bytes", "l1_bytes", "l1_small_bytes", "trace_bytes", "cb_bytes", "source"];
        keys.iter().map(|key| held[key].clone()).collect()
    }

    /// The same of the device; null when nothing is known.
    fn used(&self) -> Value {
        let memory = &self.snapshot()["devices"][0]["memory"];
        let keys = ["dram_bytes", "l1_bytes", "l1_small_used_bytes", "trace_used_bytes", "cb_used_bytes"];
        if memory[keys[0]].is_null() { Value::Null } else { keys.iter().map(|key| memory[key].clone()).collect() }
    }

    fn stale(&self) -> Value {
        self.snapshot()["devices"][0]["memory"]["stale_bytes"].clone()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // Absent if the test failed early, or removed it.
        let _ = std::fs::remove_file(&self.region);
    }
}

/// The pid of a process that is no more.
fn gone() -> u32 {
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}
