//! Machines as they are met in the field: old drivers, odd values and numbering, counters, holders.

use crate::support::{BLACKHOLE, Machine, WORMHOLE, check, p150a, seen, watching};
use expect_test::expect;
use sources::{Options, Sampler};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

#[test]
fn a_healthy_p150a_is_read_in_full() {
    check(
        &p150a(),
        expect![[r#"
            0 ok board=p150a serial=0000040331914049 temp=54.012 temp_max=90 power=65 power_max=150 vcore=0.742 amps=88 fan=2068 aiclk=1350 beat=482113 trips=0 gen=5 lanes=16 dram=32.0 GiB l1=180 MiB used=0 stale=0
        "#]],
    );
}

#[test]
fn driver_2_4_has_no_pids_no_heartbeat_and_no_limits_on_blackhole() {
    let machine = p150a();
    for gone in ["tt_heartbeat", "tt_therm_trip_count"] {
        std::fs::remove_file(machine.path(&format!("sys/class/tenstorrent/tenstorrent!0/{gone}"))).unwrap();
    }
    for gone in ["temp1_max", "in0_max", "curr1_max", "power1_max"] {
        std::fs::remove_file(machine.path(&format!("sys/class/tenstorrent/tenstorrent!0/device/hwmon/hwmon2/{gone}")))
            .unwrap();
    }
    std::fs::remove_dir_all(machine.path("proc/driver/tenstorrent")).unwrap();
    machine.file("sys/module/tenstorrent/version", "2.4.1");
    let mut snapshot = machine.sample();
    if !rustix::process::geteuid().is_root() {
        // Processes of other users may not be searched, which is a fault of its own.
        snapshot.faults.retain(|fault| fault.path != "/proc");
    }
    expect![[r#"
        0 ok board=p150a serial=0000040331914049 temp=54.012 power=65 vcore=0.742 amps=88 fan=2068 aiclk=1350 gen=5 lanes=16 dram=32.0 GiB l1=180 MiB used=0 stale=0
    "#]]
    .assert_eq(&seen(&snapshot));
}

/// As its public source describes it: parameters of the module and lines in the kernel's log are new, no file of a device is.
#[test]
fn driver_2_11_has_the_files_of_2_10() {
    let machine = p150a();
    let before = machine.sample();
    machine.file("sys/module/tenstorrent/version", "2.11.0");
    machine.file("sys/module/tenstorrent/parameters/fw_logging", "Y");
    machine.file("sys/module/tenstorrent/parameters/fw_log_level", "2");
    machine.file("sys/module/tenstorrent/parameters/idle_power_down_grace_ms", "5000");
    let now = machine.sample();
    assert_eq!(now.host.driver_version.as_deref(), Some("2.11.0"));
    let devices = |snapshot: &model::Snapshot| {
        let mut devices = snapshot.devices.clone();
        devices.iter_mut().for_each(|device| device.sample_age_seconds = None);
        devices
    };
    assert_eq!(devices(&now), devices(&before));
    assert_eq!(now.faults, []);
}

#[test]
fn without_the_driver_s_list_holders_are_found_by_their_open_files() {
    let machine = p150a();
    std::fs::remove_dir_all(machine.path("proc/driver/tenstorrent")).unwrap();
    machine.bytes("dev/tenstorrent/0", b"");
    let node = std::fs::File::open(machine.path("dev/tenstorrent/0")).unwrap();
    let mut child = std::process::Command::new("sleep").arg("60").stdin(node).spawn().unwrap();
    let snapshot = machine.sample();
    child.kill().unwrap();
    child.wait().unwrap();
    let found: Vec<_> =
        snapshot.processes.iter().map(|p| (p.pid, p.name.clone().unwrap(), p.devices[0].id.to_string())).collect();
    // This test holds the file's folder open too, but not the device: and the monitor itself never appears.
    assert_eq!(found, [(child.id(), "sleep".into(), "0".into())]);
}

#[test]
fn driver_1_34_has_no_counters() {
    let machine = p150a();
    let mut sampler = machine.sampler(true);
    sampler.sample();
    let snapshot = sampler.sample();
    assert_eq!(snapshot.devices[0].pcie.host_to_device, None);
    assert_eq!(snapshot.faults, []);
}

#[test]
fn a_wormhole_whose_firmware_still_boots_has_a_link_and_no_readings() {
    let machine = Machine::new().device(0, "0000:81:00.0", WORMHOLE).with(
        "
        0/pci/current_link_speed = 16.0 GT/s PCIe
        0/pci/current_link_width = 16
        0/pci/numa_node = -1
        ",
    );
    check(
        &machine,
        expect![[r#"
            0 no telemetry gen=4 lanes=16 used=0 stale=0
            fault tenstorrent/tenstorrent!0: no telemetry: the firmware has published none (it is booting, or has failed)
        "#]],
    );
}

#[test]
fn readings_appear_when_the_firmware_is_up() {
    let machine = Machine::new().device(0, "0000:81:00.0", BLACKHOLE).with("0/pci/current_link_width = 16");
    let mut sampler = machine.sampler(false);
    assert_eq!(sampler.sample().devices[0].aiclk, None);
    machine.set(crate::support::P150A);
    let snapshot = sampler.sample();
    assert_eq!(snapshot.devices[0].board.as_deref(), Some("p150a"));
    assert_eq!(snapshot.devices[0].asic_temp.unwrap().0, 54.012);
}

#[test]
fn a_wormhole_whose_telemetry_comes_late_and_in_parts_gets_its_name() {
    let machine = Machine::new().device(0, "0000:81:00.0", WORMHOLE).with("0/pci/current_link_width = 16");
    let mut sampler = machine.sampler(false);
    for _ in 0..7 {
        assert_eq!(sampler.sample().devices[0].state.name(), "no telemetry");
    }
    machine.set(
        "0/tt_serial = 0100014511800001\n0/tt_aiclk = 500\n0/tt_arc_fw_ver = 2.37.0.0\n0/hwmon2/temp1_input = 51250\n0/hwmon2/temp1_max = 75000",
    );
    let device = sampler.sample().devices.remove(0);
    assert_eq!((device.state.name(), device.aiclk.unwrap().0, device.asic_temp.unwrap().0), ("ok", 500, 51.25));
    assert_eq!(
        (device.serial.as_deref(), device.firmware.arc.as_deref()),
        (Some("0100014511800001"), Some("2.37.0.0"))
    );
    machine.set("0/tt_card_type = n300");
    std::thread::sleep(Duration::from_millis(5100));
    let snapshot = sampler.sample();
    let device = &snapshot.devices[0];
    assert_eq!((device.board.as_deref(), device.asic_temp_max.unwrap().0), (Some("n300"), 75.0));
    assert_eq!((snapshot.devices[1].id.to_string(), device.memory.dram_total.is_some()), ("0R".into(), true));
}

#[test]
fn a_driver_without_limits_does_not_cause_all_fixed_attributes_to_be_read_each_time() {
    let machine = p150a();
    std::fs::remove_file(machine.path("sys/class/tenstorrent/tenstorrent!0/device/hwmon/hwmon2/temp1_max")).unwrap();
    let reads = Arc::new(AtomicUsize::new(0));
    let counted = reads.clone();
    let inject = move |path: &Path| {
        let fixed = ["tt_serial", "tt_asic_id", "tt_card_type", "tt_fw_bundle_ver", "in0_max", "curr1_max"];
        counted.fetch_add(usize::from(fixed.iter().any(|name| path.ends_with(name))), Ordering::Relaxed);
        None
    };
    let mut sampler = Sampler::new(machine.root().with_faults(Arc::new(inject)), Options::default());
    for _ in 0..5 {
        assert_eq!(sampler.sample().devices[0].board.as_deref(), Some("p150a"));
    }
    assert_eq!(reads.load(Ordering::Relaxed), 6, "each of them once");
}

#[test]
fn limits_and_versions_of_0_are_absent() {
    let snapshot = p150a()
        .with(
            "
            0/hwmon2/temp1_max = 0
            0/hwmon2/power1_max = 0
            0/hwmon2/in0_max = 0
            0/hwmon2/curr1_max = 0
            0/tt_fw_bundle_ver = 0.0.0.0
            0/tt_m3app_fw_ver = 0.0.0
            ",
        )
        .sample();
    let device = &snapshot.devices[0];
    assert_eq!(
        (device.asic_temp_max, device.power_max, device.vcore_max, device.current_max),
        (None, None, None, None)
    );
    assert_eq!(device.firmware, model::Firmware::default());
    assert_eq!(snapshot.faults, []);
}

#[test]
fn a_folder_that_was_replaced_is_opened_again() {
    let machine = p150a();
    let mut sampler = watching(&machine, false);
    let pci = machine.path("sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0");
    std::fs::remove_dir_all(&pci).unwrap();
    std::fs::remove_file(machine.path("sys/class/tenstorrent/tenstorrent!0")).unwrap();
    std::fs::remove_file(machine.path("sys/bus/pci/devices/0000:01:00.0")).unwrap();
    let machine = machine.device(0, "0000:01:00.0", BLACKHOLE).with(crate::support::P150A).with("0/tt_aiclk = 800");
    assert_eq!(sampler.sample().devices[0].aiclk.unwrap().0, 800);
    drop(machine);
}

#[test]
fn a_file_that_may_not_be_read_is_named() {
    let machine = p150a();
    let inject = |path: &Path| path.ends_with("tt_aiclk").then(|| io::Error::from_raw_os_error(13));
    let snapshot = Sampler::new(machine.root().with_faults(Arc::new(inject)), Options::default()).sample();
    assert_eq!(snapshot.devices[0].aiclk, None);
    assert_eq!(snapshot.devices[0].power.unwrap().0, 65.0, "one bad file costs no other reading");
    assert!(snapshot.faults[0].path.ends_with("tenstorrent!0/tt_aiclk"));
    assert_eq!(snapshot.faults[0].reason, "permission denied: run as the owner or as root");
}

#[test]
fn a_firmware_that_controls_no_fan_has_no_fan_speed() {
    let snapshot = p150a().with("0/hwmon2/fan1_input = 4294967295").sample();
    assert_eq!((snapshot.devices[0].fan, snapshot.devices[0].state.name()), (None, "ok"));
    assert_eq!(snapshot.faults, []);
}

#[test]
fn of_two_hwmon_folders_the_newest_counts() {
    let machine = p150a().with("0/hwmon10/temp1_input = 61000\n0/hwmon10/power1_input = 70000000");
    let snapshot = machine.sample();
    assert_eq!(snapshot.devices[0].asic_temp.unwrap().0, 61.0);
    assert_eq!(snapshot.devices[0].power.unwrap().0, 70.0);
}

#[test]
fn garbage_is_no_measurement() {
    let machine = p150a().with(
        "
        0/hwmon2/temp1_input = 3340000000
        0/hwmon2/in0_input = 3211313
        0/hwmon2/curr1_input = 3340000000
        0/hwmon2/power1_input = 1000000000
        0/hwmon2/fan1_input = 30000
        0/tt_axiclk = 10000
        0/tt_serial = 12
        0/tt_fw_bundle_ver = nineteen
        0/tt_card_type = p150a; reboot
        0/tt_heartbeat = -5
        0/pci/current_link_speed = 99 GT/s
        0/pci/current_link_width = 17
        ",
    );
    check(
        &machine,
        expect![[r#"
            0 ok temp_max=90 power_max=150 aiclk=1350 trips=0 used=0 stale=0
            fault device/current_link_speed: not a PCIe speed: "99 GT/s"
            fault hwmon2/curr1_input: implausible value 3340000000
            fault hwmon2/fan1_input: implausible value 30000
            fault hwmon2/in0_input: implausible value 3211313
            fault hwmon2/power1_input: implausible value 1000000000
            fault hwmon2/temp1_input: implausible value 3340000000
            fault tenstorrent!0/tt_axiclk: implausible value 10000
            fault tenstorrent!0/tt_card_type: not a board name: "p150a; reboot"
            fault tenstorrent!0/tt_fw_bundle_ver: not a version: "nineteen"
            fault tenstorrent!0/tt_heartbeat: not a number: "-5"
            fault tenstorrent!0/tt_serial: not 16 hex digits: "12"
        "#]],
    );
}

#[test]
fn a_cold_chip_has_a_negative_temperature() {
    let snapshot = p150a().with("0/hwmon2/temp1_input = 65530750").sample();
    assert_eq!(snapshot.devices[0].asic_temp.unwrap().0, -5.25);
}

#[test]
fn a_function_without_a_driver_is_shown_as_such() {
    let machine = p150a();
    machine.function("0000:41:00.0", WORMHOLE);
    machine.function("0000:42:00.0", "8086:1533");
    machine.function("0000:43:00.0", "1E52:FACA");
    let snapshot = machine.sample();
    let names: Vec<_> = snapshot.devices.iter().map(|d| format!("{} {}", d.id, d.state.name())).collect();
    assert_eq!(names, ["0 ok", "0000:41:00.0 no driver"]);
}

#[test]
fn a_galaxy_has_32_chips_in_the_order_of_their_numbers() {
    let mut machine = Machine::new();
    for n in 0..32 {
        let address = format!("0000:{}{}:00.0", ["c", "8", "0", "4"][n as usize / 8], n % 8 + 1);
        machine = machine.device(n, &address, WORMHOLE).with(&format!(
            "
            {n}/tt_aiclk = 1000
            {n}/tt_card_type = galaxy-wormhole
            {n}/tt_serial = 01000351000000{:02X}
            ",
            n / 8
        ));
    }
    let snapshot = machine.sample();
    let indices: Vec<_> = snapshot.devices.iter().map(|device| device.id.index().unwrap()).collect();
    assert_eq!(indices, (0..32).collect::<Vec<_>>());
    assert_eq!(&*snapshot.devices[9].pci_address.as_ref().unwrap().0, "0000:82:00.0");
    assert!(snapshot.devices.iter().all(|device| device.memory.l1_total.unwrap().to_string() == "114 MiB"));
}

#[test]
fn the_chips_of_a_p300_are_two_devices_with_one_serial() {
    let chip = |n| format!("{n}/tt_card_type = p300a\n{n}/tt_serial = 000004513190F004\n{n}/tt_aiclk = 800");
    let machine = Machine::new()
        .device(0, "0000:01:00.0", BLACKHOLE)
        .device(1, "0000:02:00.0", BLACKHOLE)
        .with(&chip(0))
        .with(&chip(1));
    check(
        &machine,
        expect![[r#"
            0 ok board=p300a serial=000004513190F004 aiclk=800 dram=32.0 GiB l1=180 MiB used=0 stale=0
            1 ok board=p300a serial=000004513190F004 aiclk=800 dram=32.0 GiB l1=180 MiB used=0 stale=0
        "#]],
    );
}

#[test]
fn an_n300_has_a_second_chip_that_the_driver_does_not_show() {
    let machine = Machine::new()
        .device(2, "0000:81:00.0", WORMHOLE)
        .with("2/tt_card_type = n300\n2/tt_serial = 010001451170C0C4\n2/tt_aiclk = 500");
    check(
        &machine,
        expect![[r#"
        2 ok board=n300 serial=010001451170C0C4 aiclk=500 dram=12.0 GiB l1=91.5 MiB used=0 stale=0
        2R remote board=n300 serial=010001451170C0C4 dram=12.0 GiB l1=91.5 MiB used=0 stale=0
    "#]],
    );
}

#[test]
fn numbers_may_have_holes_and_count_as_numbers() {
    let machine = Machine::new()
        .device(10, "0000:03:00.0", BLACKHOLE)
        .device(2, "0000:02:00.0", BLACKHOLE)
        .with("2/tt_aiclk = 800\n10/tt_aiclk = 800");
    let ids: Vec<_> = machine.sample().devices.iter().map(|device| device.id.to_string()).collect();
    assert_eq!(ids, ["2", "10"]);
}

fn counters(value: u32) -> String {
    let kinds = [
        "mst_posted_wr_data_word_sent",
        "mst_nonposted_wr_data_word_sent",
        "slv_rd_data_word_sent",
        "mst_rd_data_word_received",
        "slv_posted_wr_data_word_received",
        "slv_nonposted_wr_data_word_received",
    ];
    let lines =
        kinds.iter().flat_map(|kind| (0..2).map(move |noc| format!("0/pcie_perf_counters/{kind}{noc} = {value}\n")));
    lines.collect()
}

#[test]
fn a_counter_that_wraps_counts_on_and_one_that_restarts_gives_no_rate() {
    let machine = p150a().with(&counters(u32::MAX - 99_999));
    let mut sampler = machine.sampler(true);
    assert_eq!(sampler.sample().devices[0].pcie.host_to_device, None, "a rate needs two samples");
    std::thread::sleep(Duration::from_millis(20));
    machine.set(&(counters(100_000) + "0/tt_heartbeat = 482114"));
    // 200 000 flits of 64 bytes on each of six counters, in a little more than 20 ms.
    let rate = sampler.sample().devices[0].pcie.host_to_device.unwrap().0;
    assert!((1e6..=6.0 * 200_000.0 * 64.0 / 0.02).contains(&rate), "{rate}");
    std::thread::sleep(Duration::from_millis(20));
    machine.set(&(counters(5) + "0/tt_heartbeat = 3"));
    assert_eq!(sampler.sample().devices[0].pcie.host_to_device, None);
}

#[test]
fn what_went_over_pcie_is_summed_over_wraps_resets_and_absences() {
    let machine = p150a().with(&counters(u32::MAX - 99));
    let mut sampler = machine.sampler(true);
    let mut flits = || {
        std::thread::sleep(Duration::from_millis(20));
        // 64 bytes each, on each of six counters.
        sampler.sample().devices[0].pcie.host_to_device_total.map(|bytes| bytes.0 / 64 / 6)
    };
    assert_eq!(flits(), Some(0), "what went before the first sample is not known");
    machine.set(&(counters(100) + "0/tt_heartbeat = 482114"));
    assert_eq!(flits(), Some(200), "a wrap");
    machine.set(&(counters(5) + "0/tt_heartbeat = 3"));
    assert_eq!(flits(), Some(205), "a reset");
    machine.set(crate::support::HUNG);
    assert_eq!(flits(), Some(205), "a chip that does not respond");
    machine.set(crate::support::P150A);
    machine.set(&(counters(2) + "0/tt_heartbeat = 900"));
    assert_eq!(flits(), Some(207), "a reset between two samples");
    std::fs::rename(machine.path("sys/class/tenstorrent"), machine.path("away")).unwrap();
    assert_eq!(flits(), Some(207), "a device that is gone");
    std::fs::rename(machine.path("away"), machine.path("sys/class/tenstorrent")).unwrap();
    machine.set(&(counters(10) + "0/tt_heartbeat = 901"));
    assert_eq!(flits(), Some(215), "a device that is back");
}

#[test]
fn thermal_trips_add_up_when_the_chip_forgets_them() {
    let machine = p150a().with("0/tt_therm_trip_count = 2");
    let mut sampler = machine.sampler(false);
    let mut trips = || {
        let device = sampler.sample().devices[0].clone();
        (device.thermal_trips, device.thermal_trips_total)
    };
    assert_eq!(trips(), (Some(2), Some(2)));
    machine.set("0/tt_therm_trip_count = 1\n0/tt_heartbeat = 3");
    assert_eq!(trips(), (Some(1), Some(3)));
}

#[test]
fn bytes_of_a_process_that_cannot_be_read_in_time_are_not_called_stale() {
    let machine = p150a();
    let mut holder = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    machine.set(&format!("0/pids = {}", holder.id()));
    // A region of the chip in which the holder has 1000 bytes of DRAM.
    let mut region = vec![0; 8576];
    for (at, word) in [(0, 3), (48, 1000), (856, u64::from(holder.id())), (864, 1000)] {
        region[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
    machine.bytes("dev/shm/tt_device_10320680388634458000_memory", &region);
    assert_eq!(machine.sample().devices[0].memory.stale.unwrap().0, 1000, "it has not mapped the region: not its own");
    let maps = format!("/proc/{}/maps", holder.id());
    let inject = move |path: &Path| {
        while path == Path::new(&maps) {
            std::thread::park();
        }
        None
    };
    let options = Options { deadline: Duration::from_millis(300), rates: false, relaxed: false };
    let snapshot = Sampler::new(machine.root().with_faults(Arc::new(inject)), options).sample();
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!(snapshot.devices[0].memory.stale, None);
    assert_eq!((snapshot.processes[0].pid, &snapshot.processes[0].name), (holder.id(), &None), "held, but not read");
    assert!(snapshot.faults.iter().any(|fault| fault.reason == "no answer within 300 ms"), "{:?}", snapshot.faults);
}

#[test]
fn a_region_that_is_replaced_or_removed_is_not_read_from_its_old_file() {
    let machine = p150a();
    let name = "dev/shm/tt_device_10320680388634458000_memory";
    let holding = |bytes: u64| {
        let mut region = vec![0; 8576];
        // Of a process that there is not.
        for (at, word) in [(0, 3), (48, bytes), (856, 0x7fff_fff0), (864, bytes)] {
            region[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        machine.bytes(name, &region);
    };
    holding(1000);
    let mut sampler = watching(&machine, false);
    let mut stale = || sampler.sample().devices[0].memory.stale.map(|bytes| bytes.0);
    assert_eq!(stale(), Some(1000));
    std::fs::remove_file(machine.path(name)).unwrap();
    holding(2000);
    assert_eq!(stale(), Some(2000));
    std::fs::remove_file(machine.path(name)).unwrap();
    assert_eq!(stale(), Some(0));
}

#[test]
fn a_hwmon_folder_that_is_replaced_is_found_again() {
    let machine = p150a();
    let mut sampler = watching(&machine, false);
    let hwmon = machine.path("sys/class/tenstorrent/tenstorrent!0/device/hwmon");
    std::fs::remove_dir_all(hwmon.join("hwmon2")).unwrap();
    machine.set("0/hwmon7/temp1_input = 62000\n0/hwmon7/power1_input = 70000000");
    let snapshot = sampler.sample();
    assert_eq!(snapshot.devices[0].asic_temp.unwrap().0, 62.0);
    assert_eq!(snapshot.devices[0].power.unwrap().0, 70.0);
}

#[test]
fn a_power_limit_that_is_changed_is_seen() {
    let machine = p150a();
    let mut sampler = machine.sampler(false);
    assert_eq!(sampler.sample().devices[0].power_max.unwrap().0, 150.0);
    machine.set("0/hwmon2/power1_max = 100000000");
    assert_eq!(sampler.sample().devices[0].power_max.unwrap().0, 100.0);
}

#[test]
fn a_card_in_a_slower_slot_does_as_well_as_it_can() {
    let machine = p150a().with("0/pci/current_link_speed = 16.0 GT/s PCIe");
    let link = |machine: &Machine| machine.sample().devices[0].clone();
    assert!(link(&machine).link_is_degraded());
    machine.file("sys/devices/pci0000:00/0000:00:01.0/max_link_speed", "16.0 GT/s PCIe");
    machine.file("sys/devices/pci0000:00/0000:00:01.0/max_link_width", "16");
    let device = link(&machine);
    assert_eq!((device.pcie.max_generation, device.link_is_degraded()), (Some(4), false));
}

#[test]
fn a_lost_device_has_no_rate() {
    let machine = p150a().with(&counters(0));
    let mut sampler = machine.sampler(true);
    sampler.sample();
    std::thread::sleep(Duration::from_millis(20));
    machine.set(&(counters(1000) + "0/tt_heartbeat = 482114"));
    assert!(sampler.sample().devices[0].pcie.host_to_device.is_some());
    std::fs::rename(machine.path("sys/class/tenstorrent"), machine.path("away")).unwrap();
    assert_eq!(sampler.sample().devices[0].pcie.host_to_device, None);
}

#[test]
fn a_new_firmware_is_noticed_after_its_reset() {
    let machine = p150a();
    let mut sampler = watching(&machine, false);
    machine.set("0/tt_fw_bundle_ver = 19.16.0.0\n0/tt_heartbeat = 482120");
    assert_eq!(sampler.sample().devices[0].firmware.bundle.as_deref(), Some("19.6.0.0"), "what is fixed is read once");
    machine.set("0/tt_heartbeat = 7");
    assert_eq!(sampler.sample().devices[0].firmware.bundle.as_deref(), Some("19.16.0.0"));
}

#[test]
fn holders_that_cannot_be_named_make_the_memory_unknown_and_not_zero() {
    // One opener in another PID namespace; one that has exited, whose file a child must have inherited.
    let mut exited = std::process::Command::new("true").spawn().unwrap();
    exited.wait().unwrap();
    for (pids, foreign, faults) in [("0 0".to_owned(), 2, 0), (format!("{0} {0}", exited.id()), 0, 1)] {
        let snapshot = p150a().with(&format!("0/pids = {pids}")).sample();
        let device = &snapshot.devices[0];
        assert_eq!((device.foreign_holders, device.memory.untracked_processes), (foreign, 1), "{pids}");
        assert_eq!((device.memory.dram_used, snapshot.faults.len()), (None, faults), "{pids}");
        assert_eq!(snapshot.processes, []);
    }
}

#[test]
fn a_child_that_inherited_the_open_file_of_an_exited_process_is_named() {
    let mut exited = std::process::Command::new("true").spawn().unwrap();
    exited.wait().unwrap();
    let machine = p150a().with(&format!("0/pids = {}", exited.id()));
    machine.bytes("dev/tenstorrent/0", b"");
    let node = std::fs::File::open(machine.path("dev/tenstorrent/0")).unwrap();
    let mut child = std::process::Command::new("sleep").arg("60").stdin(node).spawn().unwrap();
    let mut sampler = machine.sampler(false);
    for _ in 0..2 {
        let snapshot = sampler.sample();
        assert_eq!(snapshot.processes.iter().map(|process| process.pid).collect::<Vec<_>>(), [child.id()]);
        assert_eq!((snapshot.devices[0].memory.untracked_processes, snapshot.faults), (1, vec![]));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_monitor_itself_never_appears() {
    let snapshot = p150a().with(&format!("0/pids = {}", std::process::id())).sample();
    assert_eq!((snapshot.processes.len(), snapshot.devices[0].memory.untracked_processes), (0, 0));
}

#[test]
fn no_driver_is_no_device() {
    let machine = Machine(tempfile::tempdir().unwrap());
    let sampler = &mut machine.sampler(false);
    assert!(!sampler.driver_is_loaded());
    assert_eq!(sampler.sample().devices, []);
}

#[test]
fn a_file_that_stays_open_gives_every_new_value() {
    let machine = p150a();
    let mut sampler = watching(&machine, false);
    for (value, beat) in [(800, 482_114), (1350, 482_115), (7, 482_116), (1000, 482_117)] {
        machine.set(&format!("0/tt_aiclk = {value}\n0/tt_heartbeat = {beat}"));
        let device = &sampler.sample().devices[0];
        assert_eq!((device.aiclk.unwrap().0, device.heartbeat), (value, Some(beat)));
    }
}

#[test]
fn a_file_that_is_empty_or_not_yet_whole_is_read_again() {
    let machine = p150a();
    let mut sampler = watching(&machine, false);
    let path = "sys/class/tenstorrent/tenstorrent!0/tt_aiclk";
    for (bytes, expected) in [("", None), ("12", Some(12)), ("900\n", Some(900)), ("90\n\n\n\0\0", Some(90))] {
        machine.bytes(path, bytes.as_bytes());
        let snapshot = sampler.sample();
        assert_eq!(snapshot.devices[0].aiclk.map(|clock| clock.0), expected, "{bytes:?}");
        assert_eq!(snapshot.faults, [], "{bytes:?}");
    }
}

#[test]
fn what_changes_seldom_is_not_read_every_time_but_after_a_reset() {
    let machine = p150a();
    let mut sampler = watching(&machine, false);
    let before = sampler.sample().devices[0].axiclk;
    let mut axiclk = |beat: u32| {
        machine.set(&format!("0/tt_axiclk = 333\n0/tt_heartbeat = {beat}"));
        sampler.sample().devices[0].axiclk
    };
    assert_eq!(axiclk(482_115), before);
    assert_eq!(axiclk(3).unwrap().0, 333);
}

#[test]
fn what_went_wrong_is_reported_every_time() {
    let machine = p150a();
    machine.set("0/tt_axiclk = nonsense");
    let mut sampler = machine.sampler(false);
    for _ in 0..4 {
        assert_eq!(sampler.sample().faults.len(), 1);
    }
}

#[test]
fn faults_reach_files_that_are_open() {
    let machine = p150a();
    let fails = Arc::new(AtomicBool::new(false));
    let now = fails.clone();
    let inject = move |path: &Path| {
        let failing = now.load(Ordering::Relaxed) && path.ends_with("tt_aiclk");
        failing.then(|| io::Error::from_raw_os_error(13))
    };
    let mut sampler = Sampler::new(machine.root().with_faults(Arc::new(inject)), Options::default());
    for _ in 0..3 {
        assert_eq!(sampler.sample().devices[0].aiclk.unwrap().0, 1350);
    }
    fails.store(true, Ordering::Relaxed);
    let snapshot = sampler.sample();
    assert_eq!(snapshot.devices[0].aiclk, None);
    assert_eq!(snapshot.faults[0].reason, "permission denied: run as the owner or as root");
    fails.store(false, Ordering::Relaxed);
    assert_eq!(sampler.sample().devices[0].aiclk.unwrap().0, 1350);
}

#[test]
fn holders_come_and_go_while_their_list_is_open() {
    let machine = p150a();
    let mut sampler = watching(&machine, false);
    let mut holder = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let mut seen = |pids: &str| {
        machine.bytes("proc/driver/tenstorrent/0/pids", pids.as_bytes());
        sampler.sample().processes.iter().map(|process| process.pid).collect::<Vec<_>>()
    };
    assert_eq!(seen(&format!("{}\n", holder.id())), [holder.id()]);
    assert_eq!(seen(""), [0; 0]);
    for _ in 0..3 {
        assert_eq!(seen(&format!("{0}\n{0}\n", holder.id())), [holder.id()]);
    }
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!(seen(&format!("{}\n", holder.id())), [0; 0], "exited");
}
