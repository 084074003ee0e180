//! The minutes before a machine is started: it is warm, and its past follows from the seed alone.

use model::{Activity, Arch, Device, DeviceId, Snapshot, State, Timestamp, UtilizationSource};
use sim::{SimMachine, Spec};
use std::path::Path;

fn machine(spec: &str) -> SimMachine {
    SimMachine::start(&spec.parse::<Spec>().unwrap(), Path::new(env!("CARGO_BIN_EXE_sim-workload"))).unwrap()
}

/// A first snapshot as somebody takes it who sees how busy the devices are.
fn first(devices: u32) -> Snapshot {
    let device = |index| {
        let activity = Activity::measured(50.0, UtilizationSource::Profiler);
        Device { arch: Some(Arch::Blackhole), activity, ..Device::new(DeviceId::Local(index)) }
    };
    Snapshot { taken_at: Timestamp(1_000_000), devices: (0..devices).map(device).collect(), ..Snapshot::empty() }
}

fn celsius(machine: &SimMachine, device: u32) -> f64 {
    let path = format!("sys/class/tenstorrent/tenstorrent!{device}/device/hwmon/hwmon{}/temp1_input", device + 2);
    let text = std::fs::read_to_string(machine.root().join(path)).unwrap();
    text.trim().parse::<f64>().unwrap() / 1000.0
}

#[test]
fn a_machine_is_warm_when_it_starts_and_its_past_leads_to_that() {
    let machine = machine("p150x4,seed=5");
    let past = machine.past(&first(4));
    assert_eq!(past.len(), 300);
    assert_eq!((past[0].taken_at.0, past[299].taken_at.0), (700_000, 999_000), "a second each");
    for device in 0..4 {
        let at = |moment: usize| past[moment].devices[device].asic_temp.unwrap().0;
        let now = celsius(&machine, device as u32);
        assert!((now - at(299)).abs() < 2.0, "device {device}: {} °C, then {now} °C", at(299));
        assert_eq!((45.0..75.0).contains(&now), device != 3, "device {device}: {now} °C");
        let busy = past.iter().filter_map(|moment| moment.devices[device].activity.utilization_percent);
        let mean = busy.sum::<f64>() / 300.0;
        assert_eq!(mean > 70.0, device != 3, "device {device}: {mean} %");
        let rates = past.iter().filter(|moment| moment.devices[device].pcie.host_to_device.is_some());
        assert_eq!(rates.count(), 299, "a rate is between two moments");
    }
}

#[test]
fn a_seed_decides_the_past() {
    let past = |spec: &str| machine(spec).past(&first(4));
    assert_eq!(past("p150x4,agent,seed=5"), past("p150x4,agent,seed=5"));
    assert_ne!(past("p150x4,agent,seed=5"), past("p150x4,agent,seed=6"));
}

#[test]
fn a_fault_before_the_start_is_over_when_the_machine_is_seen() {
    let machine = machine("p150x2,hang=1@-100s,reset=1@-60s");
    let past = machine.past(&first(2));
    let seconds = |state| past.iter().filter(|moment| moment.devices[1].state == state).count();
    assert_eq!((seconds(State::Hung), seconds(State::Resetting)), (40, 3));
    let hung = past.iter().find(|moment| moment.devices[1].state == State::Hung).unwrap();
    assert_eq!(hung.taken_at.0, 900_000);
    assert_eq!((hung.devices[1].asic_temp, hung.devices[1].activity.utilization_percent), (None, None));
    assert!(past.iter().all(|moment| moment.devices[0].state == State::Ok));
    let heartbeat = machine.root().join("sys/class/tenstorrent/tenstorrent!1/tt_heartbeat");
    let beats: u32 = std::fs::read_to_string(heartbeat).unwrap().trim().parse().unwrap();
    assert!((550..600).contains(&beats), "{beats}: since the reset");
}
