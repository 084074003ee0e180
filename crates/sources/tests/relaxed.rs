//! What relaxed sampling keeps for a while, and when it is read again.

#![allow(clippy::unwrap_used)]

mod support;

use sources::{Options, Sampler};
use std::time::Duration;
use support::{BLACKHOLE, Machine, p150a};

fn looking(machine: &Machine, relaxed: bool) -> Sampler {
    Sampler::new(machine.root(), Options { deadline: Duration::from_secs(10), rates: false, relaxed })
}

#[test]
fn what_is_seldom_watched_is_kept_for_a_while_and_read_again_after_a_reset() {
    let machine = p150a();
    let mut sampler = looking(&machine, true);
    let mut voltage = || sampler.sample().devices[0].vcore.map(|volts| volts.0);
    machine.set("0/hwmon2/in0_input = 800\n0/tt_heartbeat = 1000");
    assert_eq!((voltage(), voltage()), (Some(0.8), Some(0.8)));
    machine.set("0/hwmon2/in0_input = 750\n0/tt_heartbeat = 1010");
    assert_eq!(voltage(), Some(0.8), "a moment old");
    machine.set("0/tt_heartbeat = 5");
    assert_eq!(voltage(), Some(0.75), "the chip was reset");
}

#[test]
fn relaxed_sampling_looks_for_devices_without_a_driver_when_one_with_a_driver_comes() {
    let machine = p150a();
    let mut sampler = looking(&machine, true);
    let mut names = || sampler.sample().devices.iter().map(|device| device.id.to_string()).collect::<Vec<_>>();
    assert_eq!(names(), ["0"]);
    machine.function("0000:02:00.0", BLACKHOLE);
    assert_eq!(names(), ["0"], "it was not listed again");
    let _machine = machine.device(1, "0000:03:00.0", BLACKHOLE);
    // While all are well they are not listed at every sample.
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(names(), ["0", "1", "0000:02:00.0"]);
}

#[test]
fn relaxed_sampling_keeps_the_owner_of_a_lock_for_a_while() {
    let machine = p150a();
    let parent = std::os::unix::process::parent_id();
    machine.bytes("proc/driver/tenstorrent/0/pids", format!("{parent}\n").as_bytes());
    let lock = |owner: u32| {
        let mut bytes = [0; 56];
        bytes[40..48].copy_from_slice(b"XTMDMUTT");
        bytes[52..56].copy_from_slice(&owner.to_le_bytes());
        machine.bytes("dev/shm/TT_UMD_LOCK.CHIP_IN_USE_0_PCIe", &bytes);
    };
    lock(parent);
    let (mut relaxed, mut normal) = (looking(&machine, true), looking(&machine, false));
    let owners = |relaxed: &mut Sampler, normal: &mut Sampler| {
        [relaxed, normal].map(|sampler| sampler.sample().devices[0].in_use_by_pid)
    };
    assert_eq!(owners(&mut relaxed, &mut normal), [Some(parent); 2]);
    lock(0);
    assert_eq!(owners(&mut relaxed, &mut normal), [Some(parent), None]);
}
