//! What `ttmon smi` says about processes that keep a book.

use crate::support::harness::{Harness, built, needs_root, number};
use crate::support::{Machine, program_for_all, run};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use sim::tree::Chip;
use std::process::Command;

const CHIP: u64 = 0xB00C;

fn machine() -> Machine {
    Machine::with(&[Chip { asic_id: Some(CHIP), ..Chip::p150a(0) }])
}

fn keeper(wrapper: &[&str], seed: u64) -> Harness {
    Harness::start(wrapper, &["book", &CHIP.to_string(), &seed.to_string()], &[])
}

/// A keeper that has allocated and freed for a while and now rests, and what it holds of DRAM, L1 and TRACE.
fn rested(mut keeper: Harness) -> (Harness, [u64; 3]) {
    keeper.ok("hurry");
    std::thread::sleep(std::time::Duration::from_millis(20));
    let truth = truth(&keeper.ask("stop"));
    (keeper, truth)
}

fn truth(reply: &str) -> [u64; 3] {
    ["dram", "l1", "trace"].map(|kind| number(reply, kind))
}

fn held(snapshot: &Value, pid: u32) -> Value {
    let processes = snapshot["processes"].as_array().unwrap();
    let process = processes.iter().find(|process| process["pid"] == pid).unwrap_or_else(|| panic!("{pid}: {snapshot}"));
    process["devices"][0].clone()
}

/// DRAM, L1 and TRACE of a process, and where that is known from.
fn told(snapshot: &Value, pid: u32) -> Value {
    let held = held(snapshot, pid);
    ["dram_bytes", "l1_bytes", "trace_bytes", "source"].iter().map(|key| held[key].clone()).collect()
}

/// The parts of what is used, which add up to it: DRAM and L1 buffers, traces; and who does not report.
fn used(snapshot: &Value) -> Value {
    let memory = &snapshot["devices"][0]["memory"];
    let sum = |parts: &[&str]| parts.iter().map(|part| memory[part].as_u64()).sum::<Option<u64>>();
    assert_eq!(memory["dram_used_bytes"].as_u64(), sum(&["dram_bytes", "trace_used_bytes"]));
    assert_eq!(memory["l1_used_bytes"].as_u64(), sum(&["l1_bytes", "l1_small_used_bytes", "cb_used_bytes"]));
    ["dram_bytes", "l1_bytes", "trace_used_bytes", "untracked_processes"].map(|key| memory[key].clone()).into()
}

fn exactly([dram, l1, trace]: [u64; 3]) -> Value {
    json!([dram, l1, trace, "exact"])
}

#[test]
fn a_book_is_found_through_the_process_that_keeps_it() {
    let machine = machine();
    let (keeper, truth) = rested(keeper(&[], 1));
    machine.set_pids(0, &[keeper.pid]);
    let snapshot = machine.json(&[]);
    assert_eq!(told(&snapshot, keeper.pid), exactly(truth));
    assert_eq!(used(&snapshot), json!([truth[0], truth[1], truth[2], 0]));
    assert_eq!(snapshot["processes"][0]["agent"], "ttmetal-harness");
    let dram = &held(&snapshot, keeper.pid)["exact"]["dram"];
    assert_eq!(dram["bytes"], truth[0]);
    assert_eq!(dram["buffers"].as_u64(), Some(dram["allocations"].as_u64().unwrap() - dram["frees"].as_u64().unwrap()));
    assert!(dram["peak_bytes"].as_u64() >= dram["bytes"].as_u64());
    assert_eq!(dram["banks"], json!(null), "nobody asked an allocator");
    assert_eq!(snapshot["faults"], json!([]));
}

#[test]
fn a_book_comes_before_what_the_driver_counts() {
    let machine = machine();
    let (keeper, truth) = rested(keeper(&[], 1));
    machine.set_pids(0, &[keeper.pid]);
    machine.open(keeper.pid, 3, 0, &["drm-client-id: 1", "drm-memory-dram: 7 KiB"]);
    let snapshot = machine.json(&[]);
    assert_eq!(told(&snapshot, keeper.pid), exactly(truth));
    assert_eq!(used(&snapshot), json!([truth[0], truth[1], truth[2], 0]));
}

#[test]
fn every_sample_of_a_watch_reads_the_book_anew() {
    let machine = machine();
    let (mut keeper, first) = rested(keeper(&[], 2));
    machine.set_pids(0, &[keeper.pid]);
    let mut watch = Command::new(crate::support::TTMON)
        .args(["smi", "--json", "--loop-ms=50", "--root", machine.root()])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(watch.stdout.take().unwrap()));
    let pid = keeper.pid;
    let mut next = || told(&serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap(), pid);
    assert_eq!(next(), exactly(first));
    keeper.ok("hurry");
    std::thread::sleep(std::time::Duration::from_millis(100));
    let second = exactly(truth(&keeper.ask("stop")));
    assert!((0..40).any(|_| next() == second));
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn a_process_with_a_book_has_nothing_on_a_device_that_the_book_does_not_name() {
    let machine = Machine::with(&[Chip { asic_id: Some(CHIP), ..Chip::p150a(0) }, Chip::p150a(1)]);
    let (keeper, truth) = rested(keeper(&[], 3));
    machine.set_pids(0, &[keeper.pid]);
    machine.set_pids(1, &[keeper.pid]);
    let snapshot = machine.json(&[]);
    assert_eq!(told(&snapshot, keeper.pid), exactly(truth));
    let other = &snapshot["processes"][0]["devices"][1];
    assert_eq!((&other["dram_bytes"], &other["source"]), (&json!(0), &json!("exact")));
    assert_eq!(snapshot["devices"][1]["memory"]["dram_used_bytes"], 0);
}

#[test]
fn a_chip_that_is_not_on_this_machine_is_named_and_not_counted() {
    let machine = machine();
    let mut keeper = Harness::start(&[], &["book", "424242", "4"], &[]);
    keeper.ok("go");
    assert!(keeper.ask("stop").starts_with("OK"));
    machine.set_pids(0, &[keeper.pid]);
    let snapshot = machine.json(&[]);
    assert_eq!(told(&snapshot, keeper.pid), json!([null, null, null, null]));
    assert_eq!(used(&snapshot), json!([null, null, null, 1]));
    let reason = "its device 0 (chip 0000000000067932) cannot be matched with one device of this machine";
    assert_eq!(snapshot["faults"][0]["reason"], reason);
}

#[test]
fn a_process_cannot_put_figures_on_a_device_that_it_does_not_hold() {
    let machine = Machine::with(&[Chip { asic_id: Some(CHIP), ..Chip::p150a(0) }, Chip::p150a(1)]);
    let (honest, truth) = rested(keeper(&[], 9));
    let (liar, _) = rested(keeper(&[], 10));
    machine.set_pids(0, &[honest.pid]);
    machine.set_pids(1, &[liar.pid]);
    let snapshot = machine.json(&[]);
    assert_eq!(used(&snapshot), json!([truth[0], truth[1], truth[2], 0]));
    let fault = &snapshot["faults"][0];
    assert_eq!(fault["reason"], "reports memory on device 0, which the process does not hold");
    assert!(fault["path"].as_str().unwrap().starts_with(&format!("/proc/{}/fd/", liar.pid)));
}

/// What the kernel lists of the locks of some processes.
fn list_locks(machine: &Machine, pids: &[u32]) {
    let locks = std::fs::read_to_string("/proc/locks").unwrap();
    let is_of = |line: &&str| pids.iter().any(|pid| line.split_whitespace().any(|word| word == pid.to_string()));
    let lines: Vec<&str> = locks.lines().filter(is_of).collect();
    assert!(!lines.is_empty(), "{locks}");
    std::fs::write(machine.0.path().join("proc/locks"), lines.join("\n")).unwrap();
}

#[test]
fn a_process_that_inherited_a_device_is_shown_though_the_driver_does_not_list_it() {
    let machine = machine();
    let (keeper, truth) = rested(keeper(&[], 13));
    machine.set_pids(0, &[]);
    machine.open(keeper.pid, 7, 0, &[]);
    list_locks(&machine, &[keeper.pid]);
    let snapshot = machine.json(&[]);
    assert_eq!(told(&snapshot, keeper.pid), exactly(truth));
    assert_eq!(used(&snapshot), json!([truth[0], truth[1], truth[2], 0]));
    assert_eq!(snapshot["faults"], json!([]));
}

#[test]
fn a_process_known_by_its_book_alone_is_shown_and_counts_only_with_the_device_open() {
    let machine = machine();
    let (keeper, _) = rested(keeper(&[], 14));
    let mut elsewhere = Harness::start(&[], &["book", "424242", "4"], &[]);
    elsewhere.ok("go");
    machine.set_pids(0, &[]);
    list_locks(&machine, &[keeper.pid, elsewhere.pid]);
    let snapshot = machine.json(&[]);
    let pids: Vec<&Value> = snapshot["processes"].as_array().unwrap().iter().map(|process| &process["pid"]).collect();
    assert_eq!(pids, [keeper.pid], "the other has a chip that is not here");
    assert_eq!(used(&snapshot), json!([0, 0, 0, 0]));
    let reasons: Vec<&Value> = snapshot["faults"].as_array().unwrap().iter().map(|fault| &fault["reason"]).collect();
    assert_eq!(reasons, ["reports memory on device 0, which the process does not hold"]);
}

#[test]
fn a_book_whose_file_was_closed_is_read_through_its_mapping() {
    let test = "a_book_whose_file_was_closed_is_read_through_its_mapping";
    if !needs_root(test) {
        return;
    }
    let machine = machine();
    let (mut keeper, truth) = rested(keeper(&[], 15));
    machine.set_pids(0, &[keeper.pid]);
    keeper.ok("close");
    let snapshot = machine.json(&[]);
    assert_eq!(told(&snapshot, keeper.pid), exactly(truth));
    assert_eq!(snapshot["faults"], json!([]));
    let run = crate::support::ttmon(&["mem", "--json", "--root", machine.root()]);
    let view: Value = serde_json::from_str(&run.out).unwrap();
    let buffers = view["buffers"].as_array().unwrap();
    assert_eq!(buffers.len() as u64, number(&keeper.ask("stop"), "buffers"));
}

#[test]
fn a_process_cannot_have_more_than_there_is() {
    let machine = machine();
    let (honest, truth) = rested(keeper(&[], 11));
    let mut liar = keeper(&[], 12);
    liar.ok("boast 18446744073709551000");
    machine.set_pids(0, &[honest.pid, liar.pid]);
    let snapshot = machine.json(&[]);
    assert_eq!(used(&snapshot), json!([truth[0], truth[1], truth[2], 1]), "one does not tell");
    assert_eq!(snapshot["faults"][0]["reason"], "reports more DRAM than device 0 has");
}

#[test]
fn a_process_in_a_container_is_found_with_its_book() {
    let test = "a_process_in_a_container_is_found_with_its_book";
    if !needs_root(test) {
        return;
    }
    let machine = machine();
    let wrapper = ["unshare", "--pid", "--mount", "--ipc", "--net", "--fork", "--kill-child", "--mount-proc"];
    // Two with the same inner pid: their books tell them apart.
    let (first, truth) = rested(keeper(&wrapper, 5));
    let (second, other) = rested(keeper(&wrapper, 6));
    assert_eq!((first.inner_pid, second.inner_pid), (1, 1));
    machine.set_pids(0, &[first.pid, second.pid]);
    let snapshot = machine.json(&[]);
    assert_eq!(told(&snapshot, first.pid), exactly(truth));
    assert_eq!(told(&snapshot, second.pid), exactly(other));
    assert_eq!(used(&snapshot)[0], truth[0] + other[0]);
}

#[test]
fn a_user_sees_the_book_of_his_own_process_and_why_not_of_others() {
    let test = "a_user_sees_the_book_of_his_own_process_and_why_not_of_others";
    if !needs_root(test) {
        return;
    }
    let machine = machine();
    program_for_all(machine.0.path());
    let folder = tempfile::tempdir().unwrap();
    let ttmon = program_for_all(folder.path());
    let harness = folder.path().join("ttmetal-harness");
    crate::support::copy_program(&built("ttmetal-harness"), &harness);
    let as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let of_nobody = Harness::start_program(&harness, &as_nobody, &["book", &CHIP.to_string(), "7"], &[]);
    let (nobody, truth) = rested(of_nobody);
    let (root, of_root) = rested(keeper(&[], 8));
    machine.set_pids(0, &[nobody.pid, root.pid]);

    let snapshot = machine.json(&[]);
    assert_eq!(told(&snapshot, nobody.pid), exactly(truth), "root sees everybody's");
    assert_eq!(told(&snapshot, root.pid), exactly(of_root));

    let mut command = Command::new(as_nobody[0]);
    command.args(&as_nobody[1..]).arg(ttmon).args(["smi", "--json", "--root", machine.root()]);
    let snapshot: Value = serde_json::from_str(&run(&mut command).out).unwrap();
    assert_eq!(told(&snapshot, nobody.pid), exactly(truth));
    assert_eq!(told(&snapshot, root.pid), json!([null, null, null, null]));
    assert_eq!(used(&snapshot), json!([truth[0], truth[1], truth[2], 1]));
    let fault = &snapshot["faults"].as_array().unwrap()[0];
    assert_eq!(fault["path"], format!("/proc/{}", root.pid));
    assert_eq!(fault["reason"], "belongs to root: run as that user or as root to see its device memory");
}

#[test]
fn of_a_thousand_processes_the_sum_is_that_of_the_survivors() {
    let machine = machine();
    allow_open_files(4096);
    let some = |first: u64| (first..first + 250).map(|seed| Some(keeper(&[], seed))).collect::<Vec<_>>();
    let mut keepers: Vec<Option<Harness>> = std::thread::scope(|scope| {
        let quarters = [100, 350, 600, 850].map(|first| scope.spawn(move || some(first)));
        quarters.into_iter().flat_map(|quarter| quarter.join().unwrap()).collect()
    });
    keepers.iter_mut().flatten().for_each(|keeper| keeper.ok("go"));
    let pids: Vec<u32> = keepers.iter().flatten().map(|keeper| keeper.pid).collect();
    machine.set_pids(0, &pids);
    // While all of them allocate and free, every third dies: somewhere, and whenever it comes to it.
    let mut watch = Command::new(crate::support::TTMON)
        .args(["smi", "--json", "--loop-ms=200", "--deadline-ms=30000", "--root", machine.root()])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    for i in (0..1000).filter(|i| i * 7 % 3 == 0) {
        let mut victim = keepers[i].take().unwrap();
        victim.ok("hurry");
        std::thread::sleep(std::time::Duration::from_micros(i as u64 * 7919 % 3000));
        victim.child.kill().unwrap();
    }
    let mut survivors: Vec<Harness> = keepers.into_iter().flatten().collect();
    survivors.iter_mut().for_each(|keeper| keeper.tell("stop"));
    let truths: Vec<[u64; 3]> = survivors.iter_mut().map(|keeper| truth(&keeper.reply())).collect();
    watch.kill().unwrap();
    watch.wait().unwrap();

    let snapshot = machine.json(&["--deadline-ms=30000"]);
    assert_eq!(survivors.len(), 666);
    let sum = |kind: usize| truths.iter().map(|truth| truth[kind]).sum::<u64>();
    // The driver's list still has the dead: nobody can say that they did not pass the device on, but it is not in the sum.
    assert_eq!(used(&snapshot).as_array().unwrap()[..3], [json!(sum(0)), json!(sum(1)), json!(sum(2))]);
    machine.set_pids(0, &survivors.iter().map(|keeper| keeper.pid).collect::<Vec<_>>());
    let snapshot = machine.json(&["--deadline-ms=30000"]);
    assert_eq!(used(&snapshot), json!([sum(0), sum(1), sum(2), 0]));
    for (keeper, truth) in survivors.iter().zip(&truths) {
        assert_eq!(told(&snapshot, keeper.pid), exactly(*truth));
    }
}

/// A pipe to and one from each of a thousand children.
fn allow_open_files(number: u64) {
    let limit = getrlimit(Resource::Nofile);
    let maximum = limit.maximum.map_or(number, |maximum| maximum.max(number));
    let wanted = Rlimit { current: Some(limit.current.unwrap_or(0).max(number)), maximum: Some(maximum) };
    setrlimit(Resource::Nofile, wanted).unwrap_or_else(|error| panic!("{number} open files: {error}"));
}
