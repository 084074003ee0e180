//! Faults that take a while, or that are of the whole machine: each leaves in the files what the real one leaves.

use sim::{SimMachine, Spec};
use std::fs;
use std::path::Path;
use std::time::Duration;

fn machine(spec: &str) -> SimMachine {
    SimMachine::start(&spec.parse::<Spec>().unwrap(), Path::new(env!("CARGO_BIN_EXE_sim-workload"))).unwrap()
}

fn advance(machine: &mut SimMachine, seconds: u64) {
    machine.advance(Duration::from_secs(seconds)).unwrap();
}

fn read(machine: &SimMachine, path: &str) -> Option<String> {
    fs::read_to_string(machine.root().join(path)).ok().map(|text| text.trim_end().to_owned())
}

fn number(machine: &SimMachine, device: u32, name: &str) -> u64 {
    read(machine, &format!("sys/class/tenstorrent/tenstorrent!{device}/{name}")).unwrap().parse().unwrap()
}

fn celsius(machine: &SimMachine, device: u32) -> u64 {
    number(machine, device, &format!("device/hwmon/hwmon{}/temp1_input", device + 2)) / 1000
}

fn pids(machine: &SimMachine, device: u32) -> Vec<u32> {
    let text = read(machine, &format!("proc/driver/tenstorrent/{device}/pids")).unwrap();
    let mut pids: Vec<u32> = text.lines().map(|line| line.parse().unwrap()).collect();
    pids.dedup();
    pids
}

/// What shared memory says is in use of DRAM on all chips.
fn dram(machine: &SimMachine) -> u64 {
    let files = fs::read_dir(machine.root().join("dev/shm")).unwrap().map(|entry| entry.unwrap().path());
    let regions = files.filter(|path| path.to_string_lossy().ends_with("_memory"));
    regions.map(|path| u64::from_le_bytes(fs::read(path).unwrap()[48..56].try_into().unwrap())).sum()
}

#[test]
fn a_chip_without_cooling_throttles_trips_and_starts_again() {
    let mut machine = machine("p150,heat=0@1s");
    let (mut throttled_at, mut second) = (None, 0);
    while number(&machine, 0, "tt_therm_trip_count") == 0 {
        advance(&mut machine, 1);
        second += 1;
        assert!(second < 120, "{} °C", celsius(&machine, 0));
        if throttled_at.is_none() && number(&machine, 0, "tt_aiclk") == 900 {
            throttled_at = Some((second, celsius(&machine, 0)));
        }
    }
    let (at, degrees) = throttled_at.unwrap();
    assert!(at + 3 < second && degrees >= 90, "{at} s at {degrees} °C, {second} s");
    assert!(number(&machine, 0, "tt_heartbeat") < 50);
    advance(&mut machine, 60);
    assert!(celsius(&machine, 0) < 90);
    assert_eq!((number(&machine, 0, "tt_therm_trip_count"), number(&machine, 0, "tt_aiclk")), (1, 1350));
}

#[test]
fn a_process_that_fills_the_device_ends_and_one_that_leaks_does_not() {
    let mut filling = machine("n150,fill=0@1s");
    let before = dram(&filling);
    advance(&mut filling, 3);
    assert!(dram(&filling) > before + (4 << 30) && pids(&filling, 0).len() == 1);
    advance(&mut filling, 4);
    assert_eq!(pids(&filling, 0), [0; 0]);
    let mut leaking = machine("n150,leak=0@1s");
    let mut last = dram(&leaking);
    advance(&mut leaking, 2);
    for _ in 0..25 {
        advance(&mut leaking, 1);
        assert!(dram(&leaking) > last);
        last = dram(&leaking);
    }
    assert_eq!(pids(&leaking, 0).len(), 1);
}

#[test]
fn somebody_else_has_the_device_open_when_it_is_reset() {
    let mut machine = machine("p150x4,otherreset=1@1s");
    let holder = pids(&machine, 1);
    advance(&mut machine, 2);
    let both = pids(&machine, 1);
    assert_eq!((both.len(), both.last()), (2, holder.last()), "the newest is first");
    let command = fs::read_to_string(format!("/proc/{}/cmdline", both[0])).unwrap();
    assert_eq!(command, "tt-smi\0-r\0");
    advance(&mut machine, 5);
    assert_eq!(pids(&machine, 1), holder);
    assert!(number(&machine, 1, "tt_heartbeat") < 100);
}

#[test]
fn an_unloaded_driver_leaves_the_functions_on_the_bus() {
    let mut machine = machine("p150x2,unload@1s");
    assert!(read(&machine, "sys/module/tenstorrent/version").is_some());
    advance(&mut machine, 3);
    assert_eq!(read(&machine, "sys/module/tenstorrent/version"), None);
    assert!(!machine.root().join("sys/class/tenstorrent/tenstorrent!0").exists());
    assert_eq!(read(&machine, "sys/bus/pci/devices/0000:01:00.0/vendor").as_deref(), Some("0x1e52"));
}

#[test]
fn the_kernel_names_the_process_that_it_killed() {
    let mut machine = machine("p150x4,hostoom@1s");
    let [victim] = pids(&machine, 0)[..] else { panic!() };
    advance(&mut machine, 2);
    assert_eq!(pids(&machine, 0), [0; 0]);
    assert_eq!(pids(&machine, 2).len(), 1, "only one is killed");
    let log = read(&machine, "dev/kmsg").unwrap();
    assert!(log.contains(&format!(";Out of memory: Killed process {victim} (python3) total-vm:")), "{log}");
}
