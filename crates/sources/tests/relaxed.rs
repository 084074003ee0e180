//! What relaxed sampling keeps for a while, and when it is read again.

use crate::support::{BLACKHOLE, HUNG, Machine, p150a};
use model::State;
use sources::{Options, Sampler};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

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

/// Nine devices of one kind, whose clock and sensors are set.
fn many() -> Machine {
    (0..9).fold(Machine::new(), |machine, n| {
        let attributes = format!("{n}/tt_aiclk = 800\n{n}/tt_heartbeat = 1000\n{n}/hwmon2/temp1_input = 50000\n{n}/hwmon2/power1_input = 20000000");
        machine.device(n, &format!("0000:{:02x}:00.0", n + 1), BLACKHOLE).with(&attributes)
    })
}

#[test]
fn the_clock_and_the_heartbeat_of_many_devices_are_kept_for_a_moment() {
    let machine = many();
    let (mut relaxed, mut normal) = (looking(&machine, true), looking(&machine, false));
    let clock_and_heat = |sampler: &mut Sampler| {
        let device = sampler.sample().devices.remove(3);
        (device.aiclk.map(|clock| clock.0), device.heartbeat, device.asic_temp.map(|temp| temp.0))
    };
    let before = (Some(800), Some(1000), Some(50.0));
    assert_eq!([&mut relaxed, &mut normal].map(clock_and_heat), [before; 2]);
    machine.set("3/tt_aiclk = 1350\n3/tt_heartbeat = 1010\n3/hwmon2/temp1_input = 60000");
    let after = (Some(1350), Some(1010), Some(60.0));
    assert_eq!([&mut relaxed, &mut normal].map(clock_and_heat), [(Some(800), Some(1000), Some(60.0)), after]);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(clock_and_heat(&mut relaxed), after);
}

#[test]
fn one_of_many_devices_that_hangs_or_resets_shows_that_at_once() {
    let machine = many();
    let reset = Arc::new(AtomicBool::new(false));
    let in_reset = reset.clone();
    let inject: sources::Inject = Arc::new(move |path| {
        let path = path.to_string_lossy();
        let is_telemetry = path.contains("tenstorrent!5") && (path.contains("/tt_") || path.contains("/hwmon"));
        (in_reset.load(Relaxed) && is_telemetry).then(|| std::io::Error::from_raw_os_error(61))
    });
    let options = Options { deadline: Duration::from_secs(10), rates: false, relaxed: true };
    let mut sampler = Sampler::new(machine.root().with_faults(inject), options);
    let mut states = || {
        let devices = sampler.sample().devices;
        let ill = devices.into_iter().filter(|device| device.state != State::Ok);
        ill.map(|device| (device.id.to_string(), device.state.name(), device.aiclk)).collect::<Vec<_>>()
    };
    assert_eq!(states(), []);
    machine.set(&HUNG.replace("0/", "2/"));
    reset.store(true, Relaxed);
    assert_eq!(states(), [("2".into(), "hung", None), ("5".into(), "resetting", None)]);
    reset.store(false, Relaxed);
    assert_eq!(states(), [("2".into(), "hung", None)]);
}

#[test]
fn regions_that_come_change_and_go_are_seen_at_once() {
    let machine = p150a();
    let region = |bytes: u64| {
        let mut region = vec![0; sources::decode::REGION_SIZE];
        // Version 3, the ASIC id, what the header claims, and a process that is not there.
        region[0] = 3;
        region[32..40].copy_from_slice(&0x8F3A_6C21_D4E5_B790_u64.to_le_bytes());
        region[48..56].copy_from_slice(&bytes.to_le_bytes());
        region[856..860].copy_from_slice(&i32::MAX.to_le_bytes());
        region[864..872].copy_from_slice(&bytes.to_le_bytes());
        region
    };
    let name = "dev/shm/tt_device_10320680388634458000_memory";
    let mut sampler = looking(&machine, true);
    let mut stale = || {
        let snapshot = sampler.sample();
        (snapshot.devices[0].memory.stale.map(|stale| stale.0), snapshot.faults.len())
    };
    // After a second without changes the folder is not listed any more.
    let settle = || std::thread::sleep(Duration::from_millis(1100));
    settle();
    assert_eq!((stale(), stale()), ((Some(0), 0), (Some(0), 0)));
    machine.bytes(name, &region(4096));
    assert_eq!((stale(), stale()), ((Some(4096), 0), (Some(4096), 0)));
    settle();
    assert_eq!((stale(), stale()), ((Some(4096), 0), (Some(4096), 0)));
    machine.bytes(name, &region(8192));
    assert_eq!(stale(), (Some(8192), 0));
    machine.bytes(name, b"cut");
    assert_eq!((stale().1, stale().1), (1, 1), "a fault is reported every time");
    machine.bytes(name, &region(12288));
    settle();
    assert_eq!((stale(), stale()), ((Some(12288), 0), (Some(12288), 0)));
    std::fs::remove_file(machine.path(name)).unwrap();
    assert_eq!(stale(), (Some(0), 0));
}
