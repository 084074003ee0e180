//! Memory figures from regions that this very test keeps mapped, as a workload does.

use crate::support::Machine;
use serde_json::{Value, json};
use sim::region::{Amounts, AttachedRegion};
use sim::tree::Chip;
use std::process::Command;

/// A region of the chip that this test is attached to under its own pid. The tests share a process, so each has a chip of its
/// own number.
fn attach(machine: &Machine, number: u64, device: u32) -> AttachedRegion {
    let shm = machine.0.path().join("dev/shm");
    std::fs::create_dir_all(&shm).unwrap();
    AttachedRegion::attach(&shm.join(format!("tt_device_{number}_memory")), number, device, std::process::id(), "test")
        .unwrap()
}

fn memory(snapshot: &Value, device: usize) -> [Value; 3] {
    let memory = &snapshot["devices"][device]["memory"];
    ["dram_used_bytes", "stale_bytes", "untracked_processes"].map(|key| memory[key].clone())
}

#[test]
fn a_child_that_inherited_the_device_tells_for_its_dead_parent() {
    let chip = Chip { asic_id: Some(0xA1), ..Chip::p150a(0) };
    let machine = Machine::with(std::slice::from_ref(&chip));
    let mut region = attach(&machine, chip.unique_ids()[0], 0);
    region.set(Amounts { dram: 4096, ..Amounts::default() });
    let mut dead = Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    machine.set_pids(0, &[dead.id()]);
    let snapshot = machine.json(&[]);
    assert_eq!(snapshot["processes"][0]["pid"], std::process::id());
    assert_eq!(memory(&snapshot, 0), [json!(4096), json!(0), json!(0)], "nobody is left who does not tell");
}

#[test]
fn the_remote_chip_of_an_n300_has_memory_of_its_own() {
    let chip = Chip::n300(0);
    let machine = Machine::with(std::slice::from_ref(&chip));
    let [left, right] = chip.unique_ids()[..] else { panic!("an n300 has two chips") };
    let (mut left, mut right) = (attach(&machine, left, 0), attach(&machine, right, 1));
    left.set(Amounts { dram: 100, ..Amounts::default() });
    right.set(Amounts { dram: 7, l1: 3, ..Amounts::default() });
    machine.set_pids(0, &[std::process::id()]);
    let snapshot = machine.json(&[]);
    assert_eq!(memory(&snapshot, 0), [json!(100), json!(0), json!(0)]);
    assert_eq!(memory(&snapshot, 1), [json!(7), json!(0), json!(0)]);
    let held = &snapshot["processes"][0]["devices"];
    assert_eq!([&held[0]["id"], &held[0]["index"], &held[0]["dram_bytes"]], [&json!("0"), &json!(0), &json!(100)]);
    assert_eq!([&held[1]["id"], &held[1]["index"], &held[1]["dram_bytes"]], [&json!("0R"), &json!(null), &json!(7)]);
    assert_eq!(held[1]["l1_bytes"], 3);
}

#[test]
fn a_process_that_does_not_tell_makes_the_sum_a_lower_bound() {
    let chip = Chip { asic_id: Some(0xA2), ..Chip::p150a(0) };
    let machine = Machine::with(std::slice::from_ref(&chip));
    let mut region = attach(&machine, chip.unique_ids()[0], 0);
    region.set(Amounts { dram: 1 << 30, ..Amounts::default() });
    let mut silent = Command::new("sleep").arg("600").spawn().unwrap();
    machine.set_pids(0, &[std::process::id(), silent.id()]);
    let snapshot = machine.json(&[]);
    let table = crate::support::run(
        Command::new(crate::support::TTMON).args(["--root", machine.root()]).env("LANG", "C.UTF-8"),
    )
    .out;
    silent.kill().unwrap();
    silent.wait().unwrap();
    assert_eq!(memory(&snapshot, 0), [json!(1 << 30), json!(0), json!(1)]);
    assert!(table.contains("≥1.0/32.0 GiB"), "{table}");
}

#[test]
fn what_the_driver_counts_comes_before_a_region_and_is_not_mixed_with_it() {
    // An n300's numbers come from its serial number.
    let chip = Chip { serial: Some(0x0100_0145_1170_00A3), ..Chip::n300(0) };
    let machine = Machine::with(std::slice::from_ref(&chip));
    let mut region = attach(&machine, chip.unique_ids()[0], 0);
    region.set(Amounts { dram: 4096, trace: 512, ..Amounts::default() });
    let pid = std::process::id();
    machine.set_pids(0, &[pid]);
    let told = |snapshot: &Value| {
        let held = &snapshot["processes"][0]["devices"][0];
        ["dram_used_bytes", "dram_bytes", "trace_bytes", "source"].map(|key| held[key].clone())
    };
    assert_eq!(told(&machine.json(&[])), [json!(4608), json!(4096), json!(512), json!("shm")]);
    machine.open(pid, 3, 0, &["drm-client-id: 1", "drm-memory-dram: 5 KiB"]);
    let snapshot = machine.json(&[]);
    assert_eq!(told(&snapshot), [json!(5120), json!(null), json!(null), json!("kernel")]);
    assert_eq!(memory(&snapshot, 0), [json!(5120), json!(0), json!(0)]);
    assert_eq!(snapshot["devices"][0]["memory"]["trace_used_bytes"], json!(null));
    assert_eq!(memory(&snapshot, 1)[2], json!(1), "of the chip behind it the driver tells nothing");
}

#[test]
fn a_simulated_driver_that_counts_tells_memory_and_how_busy_a_device_is() {
    for (word, is_busy) in [("fdinfo", true), ("processes", false)] {
        let spec = format!("--sim=p150x2,{word}");
        let run = crate::support::ttmon(&["smi", &spec, "--json", "--loop-ms", "300", "-c", "2"]);
        let last: Value = serde_json::from_str(run.out.lines().last().unwrap()).unwrap();
        let held = &last["processes"][0]["devices"][0];
        assert_eq!(held["source"], "kernel", "{last}");
        assert!(held["dram_used_bytes"].as_u64().unwrap() > 1 << 30, "{last}");
        assert_eq!(held["utilization_percent"].is_number(), is_busy, "{last}");
        assert_eq!(last["faults"], json!([]));
        let run = crate::support::ttmon(&["smi", &spec, "pmon", "-c", "2", "-d", "0.3"]);
        let last = run.out.lines().rfind(|line| line.trim_start().starts_with("0 ")).unwrap();
        let util = last.split_whitespace().nth(7).unwrap();
        assert_eq!(util.parse::<u8>().is_ok_and(|percent| percent <= 100), is_busy, "{}", run.out);
    }
}
