//! Every row of the table of attributes: which file fills which figure, and how often it is read.

use crate::support::{BLACKHOLE, Machine, WORMHOLE};
use expect_test::expect;
use model::figure::device::{
    DEVICE_FIGURES, ENERGY_TOTAL, HEARTBEAT, HEARTBEAT_VERIFIED, LINK_DEGRADED, SAMPLE_AGE, THERMAL_TRIPS_TOTAL,
    figures_of,
};
use model::figure::{Figure, Freshness, Section};
use model::{Arch, Device};
use sources::{ATTRIBUTES, Attribute, Folder, Options, Sampler};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Two texts for every file, and the value of the figure that each of them means.
const EXAMPLES: &str = "
    tt_aiclk            | 801                     801 MHz    | 802                     802 MHz
    tt_heartbeat        | 1001                    1001       | 1002                    1002
    temp1_input         | 51250                   51.2 °C    | 65530750                -5.2 °C
    power1_input        | 61500000                61.5 W     | 62500000                62.5 W
    fan1_input          | 2001                    2001 rpm   | 2002                    2002 rpm
    power1_max          | 151000000               151.0 W    | 152000000               152.0 W
    in0_input           | 741                     0.741 V    | 742                     0.742 V
    curr1_input         | 81500                   81.5 A     | 82500                   82.5 A
    tt_axiclk           | 901                     901 MHz    | 902                     902 MHz
    tt_arcclk           | 701                     701 MHz    | 702                     702 MHz
    tt_therm_trip_count | 3                       3          | 4                       4
    current_link_speed  | 16.0 GT/s PCIe          4          | 8.0 GT/s PCIe           3
    current_link_width  | 8                       8          | 4                       4
    tt_card_type        | board-1                 board-1    | board-2                 board-2
    uevent              | PCI_ID=1E52:401E        wormhole   | PCI_ID=1E52:401E        wormhole
    numa_node           | 1                       1          | 2                       2
    tt_serial           | 00000403319140A1        00000403319140A1 | 00000403319140A2  00000403319140A2
    tt_asic_id          | 8F3A6C21D4E5B791        8F3A6C21D4E5B791 | 8F3A6C21D4E5B792  8F3A6C21D4E5B792
    tt_fw_bundle_ver    | 19.6.0.1                19.6.0.1   | 19.6.0.2                19.6.0.2
    tt_m3app_fw_ver     | 5.12.0.1                5.12.0.1   | 5.12.0.2                5.12.0.2
    tt_m3bl_fw_ver      | 129.2.0.1               129.2.0.1  | 129.2.0.2               129.2.0.2
    tt_arc_fw_ver       | 2.37.0.1                2.37.0.1   | 2.37.0.2                2.37.0.2
    tt_eth_fw_ver       | 7.0.0.1                 7.0.0.1    | 7.0.0.2                 7.0.0.2
    tt_ttflash_ver      | 3.1.1.1                 3.1.1.1    | 3.1.1.2                 3.1.1.2
    temp1_max           | 91000                   91.0 °C    | 92000                   92.0 °C
    in0_max             | 901                     0.901 V    | 902                     0.902 V
    curr1_max           | 201000                  201.0 A    | 202000                  202.0 A
    max_link_speed      | 32.0 GT/s PCIe          5          | 16.0 GT/s PCIe          4
    max_link_width      | 16                      16         | 8                       8
";

/// One of the two texts of a file, and what the figure says then.
fn example(file: &str, which: usize) -> (&'static str, &'static str) {
    let mut lines = EXAMPLES.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let words = lines.find(|words| words[0] == file).unwrap_or_else(|| panic!("no example for {file}"));
    let (text, value) = words[1 + which].split_once("  ").unwrap();
    (text.trim(), value.trim())
}

#[test]
fn for_one_sample_only_the_files_of_wanted_figures_are_read() {
    let machine = crate::support::p150a();
    let read = Arc::new(Mutex::new(Vec::new()));
    let files = read.clone();
    let note: sources::Inject = Arc::new(move |path: &Path| {
        files.lock().unwrap().push(path.file_name().unwrap().to_string_lossy().into_owned());
        None
    });
    let mut sampler = Sampler::new(machine.root().with_faults(note), Options::default());
    sampler.set_once(Box::new(|figure, devices| devices == 1 && figure.section != Section::Power));
    let device = sampler.sample().devices.remove(0);
    assert!(device.asic_temp.is_some() && device.serial.is_some());
    assert_eq!((device.power, device.vcore), (None, None));
    let read = read.lock().unwrap();
    let was_read = |file: &str| read.iter().filter(|read| *read == file).count();
    assert_eq!((was_read("temp1_input"), was_read("power1_input"), was_read("in0_input")), (1, 0, 0));
}

#[test]
fn the_firmware_is_read_where_the_memory_of_a_board_depends_on_it() {
    let known = |board: &str| {
        let machine = crate::support::p150a().with(&format!("0/tt_card_type = {board}"));
        let mut sampler = Sampler::new(machine.root(), Options::default());
        sampler.set_once(Box::new(|figure, _| figure.section != Section::Firmware));
        let device = sampler.sample().devices.remove(0);
        (device.memory.l1_total.map(|bytes| bytes.to_string()), device.firmware.bundle)
    };
    assert_eq!(known("p150a"), (Some("180 MiB".into()), Some("19.6.0.0".into())));
    assert_eq!(known("galaxy-blackhole"), (Some("195 MiB".into()), None));
}

/// What the figure of a row is on a device, under the label of the row.
fn text_of(row: &Attribute, device: &Device) -> Option<String> {
    (row.figure.get)(device, row.label).map(|value| row.figure.unit.text(&value))
}

fn path(row: &Attribute) -> String {
    let folder = match row.folder {
        Folder::Class => "0",
        Folder::Hwmon => "0/hwmon2",
        Folder::Pci => "0/pci",
    };
    format!("{folder}/{}", row.file)
}

/// Lays one of the texts of every file, but for that of one figure.
fn lay(machine: &Machine, which: usize, except: &Figure<Device>) {
    for row in ATTRIBUTES.iter().filter(|row| row.figure != except) {
        machine.set(&format!("{} = {}", path(row), example(row.file, which).0));
    }
}

fn sampler(machine: &Machine, relaxed: bool) -> Sampler {
    Sampler::new(machine.root(), Options { deadline: Duration::from_secs(10), rates: false, relaxed })
}

/// A chip on which every attribute exists. Its board has no known name, so that the PCI function is asked for the chip.
fn machine() -> Machine {
    let machine = Machine::new().device(0, "0000:01:00.0", WORMHOLE);
    lay(&machine, 0, &SAMPLE_AGE);
    machine
}

/// The files of which the second text was read, among those with two values.
fn read_from_second(device: &Device) -> Vec<&'static str> {
    let mut second = Vec::new();
    for row in ATTRIBUTES.iter().filter(|row| example(row.file, 0).1 != example(row.file, 1).1) {
        let value = text_of(row, device).unwrap_or_else(|| panic!("{} has no value", row.figure.name));
        match [0, 1].map(|which| example(row.file, which).1 == value) {
            [true, false] => {}
            [false, true] => second.push(row.file),
            _ => panic!("{}: {value:?} is in neither text", row.file),
        }
    }
    second
}

fn files(is_meant: impl Fn(Freshness) -> bool) -> Vec<&'static str> {
    let rows = ATTRIBUTES.iter().filter(|row| is_meant(row.figure.freshness));
    rows.map(|row| row.file).filter(|file| example(file, 0).1 != example(file, 1).1).collect()
}

#[test]
fn the_table_is_complete() {
    let mut text = String::new();
    for row in ATTRIBUTES {
        let only = row.only.map(|arch| format!(" ({} only)", arch.name())).unwrap_or_default();
        let (folder, name, every) = (format!("{:?}", row.folder), row.figure.name, row.figure.freshness);
        text += &format!("{folder:<5} {:<19} → {name}, {every:?}{only}\n", row.file);
    }
    expect![[r#"
        Class tt_aiclk            → aiclk_megahertz, Often
        Class tt_heartbeat        → heartbeat, Often
        Hwmon temp1_input         → asic_temp_celsius, Sample
        Hwmon power1_input        → power_watts, Sample
        Hwmon fan1_input          → fan_rpm, Relaxed
        Hwmon power1_max          → power_max_watts, Relaxed
        Hwmon in0_input           → vcore_volts, Relaxed
        Hwmon curr1_input         → current_amperes, Relaxed
        Class tt_axiclk           → axiclk_megahertz, Seldom
        Class tt_arcclk           → arcclk_megahertz, Seldom
        Class tt_therm_trip_count → thermal_trips, Seldom
        Pci   current_link_speed  → pcie_generation, Seldom
        Pci   current_link_width  → pcie_width, Seldom
        Class tt_card_type        → board, Fixed
        Pci   uevent              → arch, Fixed
        Pci   numa_node           → numa_node, Fixed
        Class tt_serial           → serial, Fixed
        Class tt_asic_id          → asic_id, Fixed
        Class tt_fw_bundle_ver    → firmware_bundle, Fixed
        Class tt_m3app_fw_ver     → firmware_dm_app, Fixed
        Class tt_m3bl_fw_ver      → firmware_dm_bootloader, Fixed (wormhole only)
        Class tt_arc_fw_ver       → firmware_arc, Fixed (wormhole only)
        Class tt_eth_fw_ver       → firmware_ethernet, Fixed (wormhole only)
        Class tt_ttflash_ver      → firmware_tt_flash, Fixed (wormhole only)
        Hwmon temp1_max           → asic_temp_max_celsius, Fixed
        Hwmon in0_max             → vcore_max_volts, Fixed
        Hwmon curr1_max           → current_max_amperes, Fixed
        Pci   max_link_speed      → pcie_max_generation, Fixed
        Pci   max_link_width      → pcie_max_width, Fixed
    "#]]
    .assert_eq(&text);
}

#[test]
fn every_row_fills_its_figure_from_its_file() {
    assert_eq!(EXAMPLES.trim().lines().count(), ATTRIBUTES.len(), "one example per row");
    for row in ATTRIBUTES {
        // Without its file the figure is absent, so nothing else fills it.
        let machine = Machine::new().device(0, "0000:01:00.0", if row.file == "uevent" { "" } else { WORMHOLE });
        lay(&machine, 0, row.figure);
        if row.file != "uevent" {
            assert_eq!(text_of(row, &machine.sample().devices[0]), None, "{}", row.file);
        }
        for which in [0, 1] {
            let (text, value) = example(row.file, which);
            machine.set(&format!("{} = {text}", path(row)));
            let snapshot = machine.sample();
            assert_eq!(text_of(row, &snapshot.devices[0]).as_deref(), Some(value), "{}", row.file);
            assert_eq!(snapshot.faults, [], "{}", row.file);
        }
    }
}

#[test]
fn a_figure_that_is_read_from_a_device_has_a_row() {
    let computed = [&HEARTBEAT_VERIFIED, &THERMAL_TRIPS_TOTAL, &ENERGY_TOTAL, &LINK_DEGRADED];
    for figure in DEVICE_FIGURES {
        let is_read = !matches!(figure.freshness, Freshness::Host | Freshness::Rate) && !computed.contains(figure);
        assert_eq!(ATTRIBUTES.iter().any(|row| row.figure == *figure), is_read, "{}", figure.name);
    }
}

#[test]
fn the_name_of_a_known_board_makes_asking_the_pci_function_unnecessary() {
    let machine = Machine::new().device(0, "0000:01:00.0", BLACKHOLE).with("0/tt_card_type = n150\n0/tt_aiclk = 500");
    assert_eq!(machine.sample().devices[0].arch, Some(Arch::Wormhole));
}

/// What was read, and when: first one text in every file, then another.
fn check_cadence(relaxed: bool) {
    let machine = machine();
    let mut sampler = sampler(&machine, relaxed);
    assert_eq!(read_from_second(&sampler.sample().devices[0]), [""; 0]);
    lay(&machine, 1, &SAMPLE_AGE);
    let always = |freshness| match freshness {
        Freshness::Sample | Freshness::Often => true,
        freshness => freshness == Freshness::Relaxed && !relaxed,
    };
    for _ in 0..2 {
        assert_eq!(read_from_second(&sampler.sample().devices[0]), files(always));
    }
    std::thread::sleep(Duration::from_millis(5050));
    machine.set("0/tt_heartbeat = 1003");
    let mut device = sampler.sample().devices.remove(0);
    device.heartbeat = Some(1002);
    let all_but_fixed = files(|freshness| freshness != Freshness::Fixed);
    assert_eq!(read_from_second(&device), all_but_fixed, "due again");
    machine.set("0/tt_heartbeat = 3");
    let mut device = sampler.sample().devices.remove(0);
    device.heartbeat = Some(1002);
    assert_eq!(read_from_second(&device), files(|_| true), "everything is read after a reset");
}

#[test]
fn every_row_is_read_as_often_as_its_figure_says() {
    check_cadence(false);
}

#[test]
fn in_relaxed_sampling_some_rows_are_read_less_often() {
    check_cadence(true);
}

#[test]
fn a_file_that_is_gone_after_a_reset_gives_no_value() {
    let machine = machine();
    let mut sampler = sampler(&machine, false);
    sampler.sample();
    for row in ATTRIBUTES.iter().filter(|row| !["tt_heartbeat", "uevent"].contains(&row.file)) {
        let folder = "sys/class/tenstorrent/tenstorrent!0";
        let path = path(row).replacen("0/hwmon2", "0/device/hwmon/hwmon2", 1).replacen("0/pci", "0/device", 1);
        std::fs::remove_file(machine.path(&path.replacen('0', folder, 1))).unwrap();
    }
    machine.set("0/tt_heartbeat = 3");
    let device = sampler.sample().devices.remove(0);
    let left = ATTRIBUTES.iter().filter(|row| text_of(row, &device).is_some());
    assert_eq!(left.map(|row| row.file).collect::<Vec<_>>(), ["tt_heartbeat", "uevent"]);
}

/// All figures but the firmware's heartbeat and what follows from it, and what processes record, as text.
fn figures(device: &Device) -> Vec<(&'static str, Option<String>)> {
    let is_heartbeat = |figure: &&'static Figure<Device>| [&HEARTBEAT, &HEARTBEAT_VERIFIED].contains(figure);
    let is_of_device =
        |figure: &&'static Figure<Device>| !is_heartbeat(figure) && figure.section != Section::Utilization;
    let all = figures_of(device).filter(is_of_device);
    all.map(|figure| (figure.name, figure.text(device))).collect()
}

/// Samples a machine on which nothing changes but the heartbeat, up to when everything is due again.
fn check_still(machine: &Machine, relaxed: bool) {
    let options = Options { deadline: Duration::from_secs(10), rates: true, relaxed };
    let mut sampler = Sampler::new(machine.root(), options);
    let mut beat = 1001;
    let mut sample = || {
        beat += 1;
        machine.set(&format!("0/tt_heartbeat = {beat}"));
        figures(&sampler.sample().devices[0])
    };
    let first = sample();
    for pause in [0, 0, 2000, 3100, 0] {
        std::thread::sleep(Duration::from_millis(pause));
        let again = sample();
        // Energy goes on while nothing else does.
        for (first, again) in first.iter().zip(&again).filter(|((name, _), _)| *name != ENERGY_TOTAL.name) {
            assert_eq!(first, again, "after {pause} ms");
        }
    }
    let absent: Vec<_> = first.iter().filter(|(_, text)| text.is_none()).map(|(name, _)| *name).collect();
    let without_a_source =
        ["in_use_by_pid", "host_to_device_bytes_per_second", "device_to_host_bytes_per_second", "kernel_bytes"];
    let unexpected = |name: &&&str| !without_a_source.contains(name) && !name.ends_with("_bytes_total");
    assert_eq!(absent.iter().find(unexpected), None, "{absent:?}");
}

#[test]
fn a_chip_that_hangs_keeps_its_identity_and_nothing_else() {
    let machine = n150();
    let mut sampler = sampler(&machine, false);
    let known = sampler.sample().devices.remove(0);
    machine.set("0/tt_aiclk = 4294967295");
    machine.bytes("sys/class/tenstorrent/tenstorrent!0/device/config", &[0xff; 64]);
    for _ in 0..2 {
        let hung = sampler.sample().devices.remove(0);
        assert_eq!(hung.state.name(), "hung");
        for row in ATTRIBUTES {
            let is_identity = matches!(row.figure.section, Section::Identity | Section::Firmware);
            let expected = text_of(row, &known).filter(|_| is_identity);
            assert_eq!(text_of(row, &hung), expected, "{}", row.figure.name);
        }
    }
}

/// A chip on which every attribute exists, with the name of a real board.
fn n150() -> Machine {
    machine().with("0/tt_card_type = n150")
}

#[test]
fn a_second_sample_of_a_still_machine_says_what_the_first_said() {
    check_still(&n150(), false);
}

#[test]
fn a_second_relaxed_sample_of_a_still_machine_says_what_the_first_said() {
    check_still(&n150(), true);
}
