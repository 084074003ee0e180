//! What `ttmon smi` says about real tt-metal programs with the agent inside: what their allocators say, to the byte.
//!
//! Runs when `TTMON_TTNN` and `TTMON_TTNN_OLD` name unpacked wheels, as `scripts/fetch-ttnn [VERSION]` prints them.

use crate::support::Machine;
use crate::support::harness::{Harness, built, needs_root, number};
use crate::support::needs::{wheel, wheels};
use serde_json::{Value, json};
use sim::tree::Chip;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

#[test]
fn what_the_allocator_has_reserved_is_shown_while_shm_counts_wishes() {
    for ttnn in wheels("what_the_allocator_has_reserved_is_shown_while_shm_counts_wishes") {
        let bench = Bench::n150(&ttnn);
        let mut program = bench.start(&[], None);
        // One tile in L1 takes a page in each of 64 banks.
        for command in
            ["alloc 1 2048 2048 l1", "alloc 2 2097152 2048 dram", "alloc 3 4096 4096 trace", "alloc 4 34816 34 dram"]
        {
            assert!(program.ask(command).starts_with("OK "), "{command}");
        }
        let snapshot = bench.machine.json(&[]);
        let held = held(&snapshot, program.pid, 0);
        assert_eq!((&held["source"], &held["l1_bytes"]), (&json!("exact"), &json!(131_072)));
        agree(&mut program, &held, &["dram", "l1", "trace"]);
        assert_eq!(held["exact"]["l1"]["logical_bytes"], 2048);
        let memory = &snapshot["devices"][0]["memory"];
        assert_eq!((&memory["l1_used_bytes"], &memory["untracked_processes"]), (&json!(131_072), &json!(0)));
        // Other tests have regions and books of chips that this machine does not have.
        let faults = snapshot["faults"].as_array().unwrap().iter();
        let own = format!("/proc/{}", program.pid);
        let of_process = faults.filter(|fault| fault["path"].as_str().unwrap().starts_with(&own));
        assert_eq!(of_process.collect::<Vec<_>>(), Vec::<&Value>::new());
        // Without the agent's book the same program has the bytes that it asked for.
        assert_eq!(bench.shm_l1(), 2048);

        program.ok("free 2");
        program.ok("free 1");
        let held = self::held(&bench.machine.json(&[]), program.pid, 0);
        agree(&mut program, &held, &["dram", "l1", "trace"]);
        assert_eq!((&held["l1_bytes"], &held["exact"]["l1"]["peak_bytes"]), (&json!(0), &json!(131_072)));
    }
}

#[test]
fn a_blackhole_chip_agrees_as_well() {
    let Some(ttnn) = wheel("a_blackhole_chip_agrees_as_well") else { return };
    let bench = Bench::p150(&ttnn);
    let mut program = bench.start(&[], None);
    assert!(program.ask("alloc 1 2048 2048 l1").starts_with("OK "));
    assert!(program.ask("alloc 2 1048576 4096 dram").starts_with("OK "));
    let held = held(&bench.machine.json(&[]), program.pid, 0);
    assert_eq!(held["l1_bytes"], 2048 * 110);
    agree(&mut program, &held, &["dram", "l1"]);
}

#[test]
fn a_mesh_of_eight_chips_has_its_buffers_on_each() {
    let Some(ttnn) = wheel("a_mesh_of_eight_chips_has_its_buffers_on_each") else { return };
    let bench = Bench::t3k(&ttnn);
    let mut program = bench.start(&[], Some("2x4"));
    assert!(program.ask("tensor 1 2097152 2048 dram").starts_with("OK "));
    assert!(program.ask("tensor 2 2048 2048 l1").starts_with("OK "));
    let snapshot = bench.machine.json(&[]);
    let devices = snapshot["devices"].as_array().unwrap();
    let ids: Vec<&str> = devices.iter().map(|device| device["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["0", "0R", "1", "1R", "2", "2R", "3", "3R"]);
    for (n, device) in devices.iter().enumerate() {
        let held = held(&snapshot, program.pid, n);
        assert_eq!(held["id"], device["id"]);
        agree(&mut program, &held, &["dram", "l1"]);
        assert_eq!(device["memory"]["dram_used_bytes"], held["dram_bytes"]);
        assert_eq!(device["memory"]["l1_used_bytes"], 131_072);
    }
}

#[test]
fn a_chip_sums_up_exact_and_other_figures_of_its_processes() {
    let Some(ttnn) = wheel("a_chip_sums_up_exact_and_other_figures_of_its_processes") else { return };
    let bench = Bench::n150(&ttnn);
    let mut with = bench.start(&[], None);
    let mut with_too = bench.start(&[], None);
    let mut without = bench.start_with(&[], None, &[("TTMON_AGENT", "off")]);
    bench.machine.set_pids(0, &[with.pid, with_too.pid, without.pid]);
    for program in [&mut with, &mut with_too, &mut without] {
        assert!(program.ask("alloc 1 2048 2048 l1").starts_with("OK "));
    }
    let snapshot = bench.machine.json(&[]);
    let told = |pid| {
        let held = held(&snapshot, pid, 0);
        [held["l1_bytes"].clone(), held["source"].clone()]
    };
    assert_eq!(told(with.pid), [json!(131_072), json!("exact")]);
    assert_eq!(told(with_too.pid), [json!(131_072), json!("exact")]);
    assert_eq!(told(without.pid), [json!(2048), json!("shm")]);
    assert_eq!(snapshot["devices"][0]["memory"]["l1_used_bytes"], 2 * 131_072 + 2048);

    with_too.child.kill().unwrap();
    with_too.child.wait().unwrap();
    bench.machine.set_pids(0, &[with.pid, without.pid]);
    let memory = bench.machine.json(&[])["devices"][0]["memory"].clone();
    assert_eq!(memory["l1_used_bytes"], 131_072 + 2048, "the dead one's bytes are not used");
}

#[test]
fn allocations_of_another_thread_count_though_shm_misses_them() {
    let Some(ttnn) = wheel("allocations_of_another_thread_count_though_shm_misses_them") else { return };
    let bench = Bench::n150(&ttnn);
    let mut program = bench.start(&[], None);
    assert!(program.ask("thread alloc 1 2097152 2048 dram").starts_with("OK "));
    let held = held(&bench.machine.json(&[]), program.pid, 0);
    assert_eq!(held["exact"]["dram"]["logical_bytes"], 2_097_152);
    agree(&mut program, &held, &["dram"]);
}

#[test]
fn the_banks_are_right_after_a_burst_and_gone_with_the_device() {
    let Some(ttnn) = wheel("the_banks_are_right_after_a_burst_and_gone_with_the_device") else { return };
    let bench = Bench::n150(&ttnn);
    let mut program = bench.start(&[], None);
    program.ok("hold 300 2048 2048 dram");
    let held = held(&bench.machine.json(&[]), program.pid, 0);
    assert!(held["exact"]["dram"]["banks"].is_object());
    agree(&mut program, &held, &["dram"]);
    program.ok("close");
    let held = self::held(&bench.machine.json(&[]), program.pid, 0);
    assert_eq!((&held["dram_bytes"], &held["exact"]["dram"]["banks"]), (&json!(0), &json!(null)));
}

#[test]
fn the_largest_free_block_is_of_now_though_the_allocator_was_asked_long_ago() {
    for ttnn in wheels("the_largest_free_block_is_of_now_though_the_allocator_was_asked_long_ago") {
        let bench = Bench::n150(&ttnn);
        let mut program = bench.start(&[], None);
        program.ok("hold 3000 4096 4096 dram");
        // Most of a bank: what the allocator said before would be several times what is left.
        program.ok("hold 200 52428800 2048 dram");
        let snapshot = bench.machine.json(&[]);
        let held = held(&snapshot, program.pid, 0);
        agree(&mut program, &held, &["dram"]);
        let banks = &held["exact"]["dram"]["banks"];
        let [free, largest] = ["free_bytes", "largest_free_bytes"].map(|key| banks[key].as_f64().unwrap());
        assert!(largest <= free && free < 250e6, "{banks}");
        assert_eq!(banks["fragmentation"], ((1.0 - largest / free) * 1e4).round() / 1e4);
        assert!(banks["age_seconds"].is_null());
    }
}

#[test]
fn a_forked_child_does_not_count_what_its_parent_holds() {
    let Some(ttnn) = wheel("a_forked_child_does_not_count_what_its_parent_holds") else { return };
    let bench = Bench::n150(&ttnn);
    let mut program = bench.start(&[], None);
    assert!(program.ask("alloc 1 2048 2048 l1").starts_with("OK "));
    let child = program.number("fork alloc 2 4096 2048 l1", "child") as u32;
    bench.machine.set_pids(0, &[program.pid, child]);
    let snapshot = bench.machine.json(&[]);
    assert_eq!(held(&snapshot, program.pid, 0)["l1_bytes"], 131_072);
    let of_child = held(&snapshot, child, 0);
    assert_eq!(
        (&of_child["l1_bytes"], &of_child["source"]),
        (&json!(131_072), &json!("exact")),
        "its own buffer alone"
    );
    assert_eq!(of_child["exact"]["l1"]["logical_bytes"], 4096);
}

#[test]
fn a_program_in_a_container_is_exact_too() {
    let test = "a_program_in_a_container_is_exact_too";
    let Some(ttnn) = wheel(test).filter(|_| needs_root(test)) else { return };
    let bench = Bench::n150(&ttnn);
    let script = "mount -t tmpfs tmpfs /dev/shm && exec \"$@\"";
    let wrapper = ["unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script, "sh"];
    let mut program = bench.start(&wrapper, None);
    assert_eq!(program.inner_pid, 1);
    assert!(program.ask("alloc 1 2048 2048 l1").starts_with("OK "));
    let held = held(&bench.machine.json(&[]), program.pid, 0);
    assert_eq!((&held["l1_bytes"], &held["source"]), (&json!(131_072), &json!("exact")));
    agree(&mut program, &held, &["l1"]);
}

#[test]
fn the_report_and_the_query_show_banks_and_fragmentation() {
    let Some(ttnn) = wheel("the_report_and_the_query_show_banks_and_fragmentation") else { return };
    let bench = Bench::n150(&ttnn);
    let mut program = bench.start(&[], None);
    for id in 1..=8 {
        assert!(program.ask(&format!("alloc {id} 131072 2048 l1")).starts_with("OK "));
    }
    // A hole below the top: what is free is no longer in one piece.
    program.ok("free 3");
    let stats = program.ask("stats l1");
    let (free, largest) = (number(&stats, "free"), number(&stats, "largest_free"));
    assert!(largest < free, "{stats}");
    let fields =
        "l1_bytes,l1_buffers,l1_banks,l1_bank_free_bytes,l1_bank_largest_free_bytes,l1_fragmentation_percent,source";
    let run = crate::support::ttmon(&[
        "smi",
        "--root",
        bench.machine.root(),
        "--query-processes",
        fields,
        "--format=csv,noheader",
    ]);
    let percent = 100.0 * (1.0 - largest as f64 / free as f64);
    assert_eq!(run.out.trim(), format!("917504, 7, 64, {free}, {largest}, {percent:.2}, exact"));
    let run = crate::support::ttmon(&["smi", "--root", bench.machine.root(), "-q", "-d", "PIDS"]);
    assert!(run.out.contains(&format!("({largest} B)\n")), "{}", run.out);
}

/// Checks that a process's figures are its allocator's, kind by kind, totals and banks.
fn agree(program: &mut Harness, held: &Value, kinds: &[&str]) {
    for kind in kinds {
        let stats = program.ask(&format!("stats {kind}"));
        let expected = number(&stats, "allocated") * number(&stats, "banks");
        assert_eq!(held[format!("{kind}_bytes")], expected, "{kind}: {stats}");
        let banks = &held["exact"][kind]["banks"];
        for key in ["allocatable", "allocated", "free", "largest_free"].iter().filter(|_| !banks.is_null()) {
            assert_eq!(banks[format!("{key}_bytes")], number(&stats, key), "{kind} {key}");
        }
    }
}

fn held(snapshot: &Value, pid: u32, device: usize) -> Value {
    let processes = snapshot["processes"].as_array().unwrap();
    let process = processes.iter().find(|process| process["pid"] == pid).unwrap_or_else(|| panic!("{pid}: {snapshot}"));
    process["devices"][device].clone()
}

/// A machine with chips that a real tt-metal takes for its own.
struct Bench<'a> {
    ttnn: &'a Path,
    machine: Machine,
    cluster: PathBuf,
    numbers: Vec<u64>,
}

impl Bench<'_> {
    fn n150(ttnn: &Path) -> Bench<'_> {
        let chips = [Chip { serial: Some(unused()), ..Chip::n150(0) }];
        Bench::new(ttnn, include_str!("../../harness/clusters/n150.yaml"), &chips, &["7310579611150000150".into()])
    }

    fn p150(ttnn: &Path) -> Bench<'_> {
        let chips = [Chip { asic_id: Some(unused()), ..Chip::p150a(0) }];
        Bench::new(ttnn, include_str!("../../harness/clusters/p150.yaml"), &chips, &["7310579611500000150".into()])
    }

    /// Four n300: the chips behind the first four are the last four.
    fn t3k(ttnn: &Path) -> Bench<'_> {
        let chips =
            [0, 1, 2, 3].map(|n| Chip { serial: Some(unused() & 0x0FFF_FFFF | 0x0100_0145 << 32), ..Chip::n300(n) });
        let names: Vec<String> = (0..8).map(|chip| format!("731057961180000080{chip}")).collect();
        let mut bench = Bench::new(ttnn, include_str!("../../harness/clusters/t3k.yaml"), &chips, &[]);
        let all: Vec<Vec<u64>> = chips.iter().map(Chip::unique_ids).collect();
        bench.numbers = (0..8).map(|chip| all[chip % 4][chip / 4]).collect();
        let text = std::fs::read_to_string(&bench.cluster).unwrap();
        std::fs::write(&bench.cluster, replaced(&text, &names, &bench.numbers)).unwrap();
        bench
    }

    fn new<'a>(ttnn: &'a Path, cluster: &str, chips: &[Chip], names: &[String]) -> Bench<'a> {
        let machine = Machine::with_real_shm(chips);
        let numbers: Vec<u64> = chips.iter().flat_map(Chip::unique_ids).collect();
        let path = machine.0.path().join("cluster.yaml");
        std::fs::write(&path, replaced(cluster, names, &numbers)).unwrap();
        Bench { ttnn, machine, cluster: path, numbers }
    }

    /// A program with the agent, which holds every device of the machine.
    fn start(&self, wrapper: &[&str], shape: Option<&str>) -> Harness {
        self.start_with(wrapper, shape, &[])
    }

    fn start_with(&self, wrapper: &[&str], shape: Option<&str>, environment: &[(&str, &str)]) -> Harness {
        let agent = built("libttmon_agent.so");
        let mut arguments = vec!["mock", self.ttnn.to_str().unwrap(), self.cluster.to_str().unwrap()];
        arguments.extend(shape);
        let environment =
            [environment, &[("TMPDIR", self.machine.root()), ("LD_PRELOAD", agent.to_str().unwrap())]].concat();
        let program = Harness::start(wrapper, &arguments, &environment);
        (0..4).filter(|n| self.has_device(*n)).for_each(|n| self.machine.set_pids(n, &[program.pid]));
        program
    }

    fn has_device(&self, n: u32) -> bool {
        self.machine.0.path().join(format!("proc/driver/tenstorrent/{n}")).exists()
    }

    /// What tt-metal's own region says of L1.
    fn shm_l1(&self) -> u64 {
        let region = std::fs::read(format!("/dev/shm/tt_device_{}_memory", self.numbers[0])).unwrap();
        u64::from_le_bytes(region[56..64].try_into().unwrap())
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        for number in &self.numbers {
            // Absent if the test failed early, or the program had a /dev/shm of its own.
            let _ = std::fs::remove_file(format!("/dev/shm/tt_device_{number}_memory"));
        }
    }
}

fn replaced(text: &str, names: &[String], numbers: &[u64]) -> String {
    names.iter().zip(numbers).fold(text.to_owned(), |text, (name, number)| {
        assert!(text.contains(name), "{name}");
        text.replace(name, &number.to_string())
    })
}

/// A number that no other test has.
fn unused() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    (now << 8 >> 2) + NEXT.fetch_add(1, Ordering::Relaxed)
}
