//! The states of a chip: hung, without telemetry, in reset, silent, lost, without its driver.

use crate::support::{BLACKHOLE, Machine, check, p150a, seen, stuck_while, watching};
use expect_test::expect;
use sources::{Options, Sampler};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[test]
fn a_heartbeat_is_verified_when_it_was_seen_to_count_up() {
    let machine = p150a();
    let mut sampler = machine.sampler(false);
    assert_eq!(sampler.sample().devices[0].heartbeat_verified, Some(false), "one reading proves nothing");
    machine.set("0/tt_heartbeat = 482115");
    assert_eq!(sampler.sample().devices[0].heartbeat_verified, Some(true));
}

#[test]
fn a_hung_chip_shows_no_numbers() {
    let machine = p150a().with(
        "
        0/tt_aiclk = 4294967295
        0/tt_axiclk = 4294967295
        0/tt_arcclk = 4294967295
        0/tt_serial = FFFFFFFFFFFFFFFF
        0/tt_asic_id = FFFFFFFFFFFFFFFF
        0/tt_card_type = unknown
        0/tt_fw_bundle_ver = 255.255.255.255
        0/tt_heartbeat = 4294967295
        0/tt_therm_trip_count = 4294967295
        0/hwmon2/temp1_input = 65535999
        0/hwmon2/in0_input = 4294967295
        0/hwmon2/curr1_input = 4294966296
        0/hwmon2/power1_input = 4293967296
        0/hwmon2/fan1_input = 4294967295
        0/pci/current_link_speed = Unknown
        0/pci/current_link_width = 63
        ",
    );
    check(
        &machine,
        expect![[r#"
            0 hung used=0 stale=0
            fault tenstorrent/tenstorrent!0: PCIe not responding (most readings are all-ones)
        "#]],
    );
}

#[test]
fn one_all_ones_value_is_a_fault_of_that_value_and_the_chip_is_ok() {
    for sentinel in [
        "0/tt_aiclk = 4294967295",
        "0/tt_axiclk = 4294967295",
        "0/tt_arcclk = 4294967295",
        "0/tt_therm_trip_count = 4294967295",
        "0/tt_serial = FFFFFFFFFFFFFFFF",
        "0/tt_asic_id = FFFFFFFFFFFFFFFF",
        "0/tt_fw_bundle_ver = 255.255.255.255",
        "0/tt_m3app_fw_ver = 255.255.255.255",
        "0/hwmon2/temp1_input = 65535999",
        "0/hwmon2/temp1_max = 4294966296",
        "0/hwmon2/in0_input = 4294967295",
        "0/hwmon2/in0_max = 65535",
        "0/hwmon2/curr1_input = 4294966296",
        "0/hwmon2/curr1_max = 4294966296",
        "0/hwmon2/power1_input = 4293967296",
        "0/hwmon2/power1_max = 4293967296",
    ] {
        let snapshot = p150a().with(sentinel).sample();
        let (device, (file, _)) = (&snapshot.devices[0], sentinel[2..].split_once(" = ").unwrap());
        assert_eq!(device.state.name(), "ok", "{sentinel}");
        assert!(device.power.is_some() || device.asic_temp.is_some(), "{sentinel}: the other values stay");
        let [fault] = &snapshot.faults[..] else { panic!("{sentinel}: {:?}", snapshot.faults) };
        assert!(fault.path.ends_with(file) && fault.reason == "all-ones, which is not a measurement", "{fault:?}");
    }
}

#[test]
fn most_values_all_ones_is_a_chip_that_does_not_respond() {
    let machine = p150a().with("0/hwmon2/temp1_input = 65535999\n0/hwmon2/power1_input = 4293967296");
    assert_eq!(machine.sample().devices[0].state.name(), "ok", "two of many");
    machine.set("0/tt_aiclk = 4294967295\n0/tt_heartbeat = 4294967295");
    assert_eq!(machine.sample().devices[0].state.name(), "hung");
}

const ANSWERS: &[u8] = &[0x52, 0x1e, 0x40, 0xb1];
const CONFIG: &str = "sys/class/tenstorrent/tenstorrent!0/device/config";

#[test]
fn a_chip_without_telemetry_is_no_telemetry_and_on_a_dead_bus_hung() {
    let machine = Machine::new().device(0, "0000:01:00.0", BLACKHOLE).with("0/pci/current_link_width = 16");
    machine.bytes(CONFIG, ANSWERS);
    check(
        &machine,
        expect![[r#"
            0 no telemetry lanes=16 used=0 stale=0
            fault tenstorrent/tenstorrent!0: no telemetry: the firmware has published none (it is booting, or has failed)
        "#]],
    );
    machine.bytes(CONFIG, &[0xff; 64]);
    check(
        &machine,
        expect![[r#"
            0 hung used=0 stale=0
            fault tenstorrent/tenstorrent!0: PCIe not responding (config space is all-ones)
        "#]],
    );
}

#[test]
fn one_all_ones_value_on_a_dead_bus_is_enough_and_no_other_is_read() {
    let machine = p150a().with("0/tt_aiclk = 4294967295");
    machine.bytes(CONFIG, &[0xff; 64]);
    let inject = |path: &Path| {
        assert!(!path.ends_with("tt_heartbeat"), "a dead read may stall");
        None
    };
    let snapshot = Sampler::new(machine.root().with_faults(Arc::new(inject)), Options::default()).sample();
    assert_eq!(snapshot.devices[0].state.name(), "hung");
}

#[test]
fn a_chip_that_hangs_keeps_its_name_while_it_is_watched() {
    let machine = p150a();
    let mut sampler = watching(&machine, false);
    machine.set(crate::support::HUNG);
    expect![[r#"
        0 hung board=p150a serial=0000040331914049 dram=32.0 GiB l1=180 MiB used=0 stale=0
        fault tenstorrent/tenstorrent!0: PCIe not responding (most readings are all-ones)
    "#]]
    .assert_eq(&seen(&sampler.sample()));
}

/// Answers as the driver does during a reset.
fn in_reset_while(reset: &Arc<AtomicBool>) -> sources::Inject {
    let reset = reset.clone();
    Arc::new(move |path| {
        let telemetry = path.to_string_lossy().contains("/tt_") || path.to_string_lossy().contains("/hwmon");
        (reset.load(Ordering::Relaxed) && telemetry).then(|| io::Error::from_raw_os_error(61))
    })
}

#[test]
fn a_chip_in_reset_is_resetting_and_comes_back() {
    let machine = p150a();
    let reset = Arc::new(AtomicBool::new(true));
    let mut sampler = Sampler::new(machine.root().with_faults(in_reset_while(&reset)), Options::default());
    expect![[r#"
        0 resetting gen=5 lanes=16 used=0 stale=0
        fault tenstorrent/tenstorrent!0: reset in progress
    "#]]
    .assert_eq(&seen(&sampler.sample()));
    reset.store(false, Ordering::Relaxed);
    assert_eq!(sampler.sample().devices[0].board.as_deref(), Some("p150a"));
}

#[test]
fn a_chip_that_resets_keeps_its_name_while_it_is_watched() {
    let machine = p150a();
    let reset = Arc::new(AtomicBool::new(false));
    let mut sampler = Sampler::new(machine.root().with_faults(in_reset_while(&reset)), Options::default());
    sampler.sample();
    reset.store(true, Ordering::Relaxed);
    for _ in 0..2 {
        let device = &sampler.sample().devices[0];
        assert_eq!((device.state.name(), device.board.as_deref()), ("resetting", Some("p150a")));
        assert_eq!((device.asic_temp, device.aiclk), (None, None), "no reading that is not its own");
    }
}

#[test]
fn one_attribute_without_data_is_absent_and_no_reset() {
    let machine = p150a();
    let inject = |path: &Path| path.ends_with("tt_therm_trip_count").then(|| io::Error::from_raw_os_error(61));
    let snapshot = Sampler::new(machine.root().with_faults(Arc::new(inject)), Options::default()).sample();
    assert_eq!((snapshot.devices[0].state.name(), snapshot.devices[0].thermal_trips), ("ok", None));
    assert_eq!(snapshot.faults, []);
}

#[test]
fn a_device_that_goes_away_under_the_reader_is_lost() {
    let machine = p150a();
    let inject = |path: &Path| path.to_string_lossy().contains("/tt_").then(|| io::Error::from_raw_os_error(19));
    let snapshot = Sampler::new(machine.root().with_faults(Arc::new(inject)), Options::default()).sample();
    assert_eq!(snapshot.devices[0].state.name(), "lost");
}

#[test]
fn a_device_that_was_there_is_lost_with_its_name_and_may_return() {
    let machine = p150a();
    let mut sampler = watching(&machine, false);
    std::fs::rename(machine.path("sys/class/tenstorrent"), machine.path("away")).unwrap();
    std::fs::create_dir(machine.path("sys/class/tenstorrent")).unwrap();
    std::fs::remove_file(machine.path("sys/bus/pci/devices/0000:01:00.0")).unwrap();
    let lost = sampler.sample();
    assert_eq!((lost.devices[0].state.name(), lost.devices[0].board.as_deref()), ("lost", Some("p150a")));
    std::fs::remove_dir(machine.path("sys/class/tenstorrent")).unwrap();
    std::fs::rename(machine.path("away"), machine.path("sys/class/tenstorrent")).unwrap();
    assert_eq!(sampler.sample().devices[0].state.name(), "ok");
}

#[test]
fn a_device_whose_driver_was_unloaded_is_listed_once_under_its_name() {
    let machine = p150a();
    let mut sampler = watching(&machine, false);
    std::fs::rename(machine.path("sys/class/tenstorrent"), machine.path("away")).unwrap();
    let snapshot = sampler.sample();
    let listed: Vec<_> =
        snapshot.devices.iter().map(|it| (it.id.to_string(), it.state.name(), it.board.as_deref())).collect();
    assert_eq!(listed, [("0".to_owned(), "no driver", Some("p150a"))]);
    assert_eq!(snapshot.devices[0].asic_temp, None, "no reading that is not its own");
    std::fs::rename(machine.path("away"), machine.path("sys/class/tenstorrent")).unwrap();
    assert_eq!(sampler.sample().devices[0].state.name(), "ok");
}

#[test]
fn a_read_that_never_returns_delays_no_other_and_is_remembered() {
    let machine = p150a().device(1, "0000:41:00.0", BLACKHOLE).with(&crate::support::P150A.replace("0/", "1/"));
    let stuck = Arc::new(AtomicBool::new(false));
    let now = stuck.clone();
    let inject = move |path: &Path| {
        while now.load(Ordering::Relaxed) && path.to_string_lossy().contains("tenstorrent!0") {
            std::thread::park();
        }
        None
    };
    let options = Options { deadline: Duration::from_secs(2), rates: false, relaxed: false };
    let mut sampler = Sampler::new(machine.root().with_faults(Arc::new(inject)), options);
    assert_eq!(sampler.sample().devices[0].state.name(), "ok");
    stuck.store(true, Ordering::Relaxed);
    let began = Instant::now();
    let snapshot = sampler.sample();
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let [first, second] = &snapshot.devices[..] else { panic!("{snapshot:?}") };
    assert_eq!((first.state.name(), first.board.as_deref()), ("silent", Some("p150a")));
    assert!(first.sample_age_seconds.unwrap() > 0.0 && first.asic_temp.is_some());
    assert_eq!((second.state.name(), second.sample_age_seconds), ("ok", Some(0.0)));
    assert_eq!(snapshot.faults[0].reason, "no answer within 2000 ms");
    // The next sample does not wait for it again.
    let began = Instant::now();
    assert_eq!(sampler.sample().devices[0].state.name(), "silent");
    assert!(began.elapsed() < Duration::from_millis(1500), "{:?}", began.elapsed());
}

#[test]
fn a_heartbeat_that_stops_for_three_seconds_is_a_hang() {
    let machine = p150a();
    let mut sampler = machine.sampler(false);
    assert_eq!(sampler.sample().devices[0].state.name(), "ok");
    std::thread::sleep(Duration::from_millis(3100));
    let snapshot = sampler.sample();
    assert_eq!(snapshot.devices[0].state.name(), "hung");
    assert!(snapshot.devices[0].asic_temp.is_some(), "what it still answers is shown");
    machine.set("0/tt_heartbeat = 482114");
    assert_eq!(sampler.sample().devices[0].state.name(), "ok");
}

#[test]
fn a_device_that_answers_too_late_continues_where_it_was() {
    let machine = p150a().with("0/tt_therm_trip_count = 2");
    let stuck = Arc::new(AtomicBool::new(false));
    let options = Options { deadline: Duration::from_millis(300), rates: false, relaxed: false };
    let mut sampler = Sampler::new(machine.root().with_faults(stuck_while(&stuck, "tt_aiclk")), options);
    sampler.sample();
    stuck.store(true, Ordering::Relaxed);
    for _ in 0..2 {
        let device = sampler.sample().devices.remove(0);
        assert_eq!((device.state.name(), device.thermal_trips_total), ("silent", Some(2)), "the last that is known");
    }
    assert!(sampler.is_stuck());
    stuck.store(false, Ordering::Relaxed);
    while sampler.is_stuck() {
        std::thread::yield_now();
    }
    machine.set("0/tt_therm_trip_count = 1\n0/tt_heartbeat = 3");
    let device = sampler.sample().devices.remove(0);
    assert_eq!((device.state.name(), device.thermal_trips_total), ("ok", Some(3)));
}

#[test]
fn the_holders_of_a_device_that_does_not_answer_are_still_there() {
    let machine = p150a();
    let mut holder = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    machine.set(&format!("0/pids = {}", holder.id()));
    let stuck = Arc::new(AtomicBool::new(false));
    let now = stuck.clone();
    let inject = move |path: &Path| {
        while now.load(Ordering::Relaxed) && path.ends_with("tt_aiclk") {
            std::thread::park();
        }
        None
    };
    let options = Options { deadline: Duration::from_millis(300), rates: false, relaxed: false };
    let mut sampler = Sampler::new(machine.root().with_faults(Arc::new(inject)), options);
    sampler.sample();
    stuck.store(true, Ordering::Relaxed);
    for _ in 0..2 {
        let snapshot = sampler.sample();
        assert_eq!(snapshot.devices[0].state.name(), "silent");
        assert_eq!(snapshot.processes.iter().map(|process| process.pid).collect::<Vec<_>>(), [holder.id()]);
        assert_eq!(snapshot.faults.len(), 1, "{:?}", snapshot.faults);
    }
    holder.kill().unwrap();
    holder.wait().unwrap();
}
