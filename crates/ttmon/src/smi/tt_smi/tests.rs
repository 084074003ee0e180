//! What the official `tt-smi -s` 6.8 prints for a Blackhole and a Wormhole, line by line, for all that the driver provides as well. Of
//! words whose other half is unknown, that half is zero.

use super::{TtSmiHost, text};
use model::*;

/// The chip that the official program was shown.
fn blackhole() -> Device {
    let mut device = Device::new(DeviceId::Local(0));
    device.pci_address = Some(PciAddress("0000:01:00.0".into()));
    device.arch = Some(Arch::Blackhole);
    device.board = Some("p150a".into());
    device.serial = Some("0000040001311010".into());
    device.vcore = Some(Volts(0.75));
    device.vcore_max = Some(Volts(0.9));
    device.current = Some(Amperes(80.0));
    device.current_max = Some(Amperes(500.0));
    device.power = Some(Watts(60.0));
    device.power_max = Some(Watts(300.0));
    device.asic_temp = Some(Celsius(45.0));
    device.asic_temp_max = Some(Celsius(90.0));
    device.aiclk = Some(Megahertz(800));
    device.axiclk = Some(Megahertz(960));
    device.arcclk = Some(Megahertz(800));
    device.heartbeat = Some(6000);
    device.fan = Some(Rpm(1500));
    device.thermal_trips = Some(0);
    device.pcie.generation = Some(5);
    device.pcie.width = Some(16);
    device.firmware.bundle = Some("19.15.0.0".into());
    device.firmware.dm_app = Some("0.15.0.0".into());
    device
}

const BLACKHOLE: &str = r#"
                "BOARD_ID_HIGH": "0x400",
                "BOARD_ID_LOW": "0x1311010",
                "VCORE": "0x2ee",
                "TDP": "0x3c",
                "TDC": "0x50",
                "VDD_LIMITS": "0x3840000",
                "ASIC_TEMPERATURE": "0x2d0000",
                "AICLK": "0x320",
                "AXICLK": "0x3c0",
                "ARCCLK": "0x320",
                "DM_APP_FW_VERSION": "0xf0000",
                "FLASH_BUNDLE_VERSION": "0x130f0000",
                "TIMER_HEARTBEAT": "0x1770",
                "FAN_RPM": "0x5dc",
                "TDC_LIMIT_MAX": "0x1f4",
                "THM_LIMIT_THROTTLE": "0x5a",
                "THERM_TRIP_COUNT": "0x0",
                "TDP_LIMIT_MAX": "0x12c",
                "bus_id": "0000:01:00.0",
                "board_type": "p150a",
                "board_id": "0000040001311010",
                "coords": "N/A",
                "dram_status": true,
                "pcie_speed": 5,
                "pcie_width": "16"
                "voltage": "0.75",
                "current": " 80.0",
                "power": " 60.0",
                "aiclk": " 800",
                "asic_temperature": "45.0",
                "fan_speed": "1500",
                "heartbeat": "1000"
                "fw_bundle_version": "19.15.0.0",
                "dm_app_fw": "0.15.0.0",
                "vdd_min": 0,
                "vdd_max": "0.90",
                "tdp_limit": "300",
                "tdc_limit": "500",
                "therm_trip_l1_limit": "90",
                "bus_peak_limit": 0,
                "fan_rpm_limit": 0,
"#;

fn wormhole() -> Device {
    let mut device = blackhole();
    device.arch = Some(Arch::Wormhole);
    device.board = None;
    device.serial = Some("0010001851173005".into());
    device.vcore_max = Some(Volts(0.95));
    device.current = Some(Amperes(40.0));
    device.current_max = Some(Amperes(170.0));
    device.power = Some(Watts(30.0));
    device.power_max = Some(Watts(160.0));
    device.asic_temp_max = Some(Celsius(75.0));
    device.aiclk = Some(Megahertz(500));
    device.heartbeat = Some(5000);
    device.fan = None;
    device.firmware.arc = Some("2.34.0.0".into());
    device.firmware.ethernet = Some("7.1.0".into());
    device
}

const WORMHOLE: &str = r#"
                "BOARD_ID_HIGH": "0x100018",
                "BOARD_ID_LOW": "0x51173005",
                "ARC0_FW_VERSION": "0x2220000",
                "ETH_FW_VERSION": "0x71000",
                "ARC3_HEALTH": "0x1388",
                "AICLK": "0x1f4",
                "VCORE": "0x2ee",
                "ASIC_TEMPERATURE": "0x2d0",
                "TDP": "0xa0001e",
                "TDC": "0xaa0028",
                "VDD_LIMITS": "0x3b60000",
                "THM_LIMITS": "0x4b",
                "FW_BUNDLE_VERSION": "0x130f0000",
                "board_type": "N/A L",
                "board_id": "0010001851173005",
                "voltage": "0.75",
                "current": " 40.0",
                "power": " 30.0",
                "board_power": "N/A",
                "aiclk": " 500",
                "asic_temperature": "45.0",
                "heartbeat": "1000"
                "fw_bundle_version": "19.15.0.0",
                "cm_fw": "2.34.0.0",
                "eth_fw": "7.1.0",
                "gddr_fw": "N/A"
                "vdd_max": "0.95",
                "tdp_limit": "160",
                "tdc_limit": "170",
                "thm_limit": "75",
"#;

/// Every official line must be in our text, in the same order.
fn check(device: Device, official: &str) {
    let snapshot = Snapshot { devices: vec![device], processes: vec![], faults: vec![], ..show::example::machine() };
    let host = TtSmiHost { distro: "x".into(), platform: "x".into(), memory: "x".into() };
    let ours = text(&snapshot, &host, "");
    let mut lines = ours.lines();
    for line in official.lines().filter(|line| !line.is_empty()) {
        assert!(lines.any(|ours| ours == line), "{line:?} is missing, or out of order, in\n{ours}");
    }
    assert!(ours.ends_with("    \"processes\": []\n}\n"), "an empty list is on one line");
}

#[test]
fn a_blackhole_reads_as_the_official_program_prints_it() {
    check(blackhole(), BLACKHOLE);
}

#[test]
fn a_wormhole_reads_as_the_official_program_prints_it() {
    check(wormhole(), WORMHOLE);
}

/// A device with a deep read of this table, on which some tags have other words.
fn read_deeply(number: u32, chip: sim::tree::Chip, changed: &[(u16, u32)]) -> Device {
    let mut entries = sim::telemetry_table(&chip);
    entries.retain(|entry| changed.iter().all(|(tag, _)| *tag != entry.tag));
    entries.extend(changed.iter().map(|(tag, value)| TelemetryTag { tag: *tag, value: *value }));
    let deep = deep::decode(&deep::RawTable { arch: chip.arch, version: 0x100, entries });
    Device {
        arch: Some(chip.arch),
        serial: chip.serial.map(|serial| format!("{serial:016X}").into()),
        pci_address: Some(PciAddress(chip.address.as_str().into())),
        deep: Some(Box::new(deep)),
        ..Device::new(DeviceId::Local(number))
    }
}

/// Compared by hand with what the official program prints of the same registers, see the commit: only the date that it makes up on
/// Blackhole differs, and coordinates, which are not in the table.
#[test]
fn a_deep_read_fills_in_what_the_official_program_reads() {
    use sim::tree::Chip;
    let newest = |chip: Chip| Chip { fw_bundle: Some("19.15.0.0".into()), ..chip };
    let devices = vec![
        read_deeply(0, newest(Chip::p150a(0)), &[(58, 0x0304_0000), (27, 0x8102_0000), (3, 0)]),
        // A channel is switched off, another has failed, errors were corrected on a third.
        read_deeply(1, newest(Chip::p100a(1)), &[(22, 0x1515_1595), (46, 0xFF02_0003), (50, 0b0110), (23, 14_500)]),
        // Without self tests and without a fan.
        read_deeply(2, Chip::p150b(2), &[(22, 0x5555), (36, 0xFF)]),
        read_deeply(3, Chip::n300(3), &[]),
        read_deeply(4, newest(Chip::n150(4)), &[(22, 0b01_11_00_01_01_01), (23, 16_000), (41, 0xFFFF_0BB8), (31, 40)]),
    ];
    let snapshot = Snapshot { devices, processes: vec![], faults: vec![], ..show::example::machine() };
    let text = text(&snapshot, &TtSmiHost::unknown(), "2026-01-02T03:04:05.678000");
    expect_test::expect_file!["../golden/tt-smi-deep.json"].assert_eq(&text);
}

/// What the official program printed of these registers.
const READ_DEEPLY: &str = r#"
                "VDD_LIMITS": "0x38402bc",
                "THM_LIMIT_SHUTDOWN": "0x6e",
                "DDR_STATUS": "0x55555555",
                "DDR_SPEED": "0x3e80",
                "ETH_FW_VERSION": "0x10700",
                "GDDR_FW_VERSION": "0x2000f",
                "ENABLED_GDDR": "0xff",
                "GDDR_0_1_TEMP": "0x30313233",
                "BOARD_POWER_LIMIT": "0x258",
                "AICLK_LIMIT_MAX": "0x546",
                "INPUT_POWER": "0x4b"
                "dram_status": true,
                "dram_speed": "16G",
                "board_power": " 75.0",
                "speed": "16G",
                "max_temp": "52",
                "enabled_mask": "0xff",
                        "channel": 0,
                        "harvested": false,
                        "enabled": true,
                        "training": "pass",
                        "bist": "pass",
                        "temp_top": "50",
                        "temp_bottom": "51",
                        "corr_rd": "0",
                        "corr_wr": "0",
                        "uncorr_rd": "0",
                        "uncorr_wr": "0"
                        "channel": 7,
                        "temp_top": "48",
                        "temp_bottom": "49",
                "tt_flash_version": "3.4.0.0",
                "cm_fw": "0.23.0.0",
                "eth_fw": "1.7.0",
                "dm_bl_fw": "129.2.0.0",
                "gddr_fw": "2.15"
                "vdd_min": "0.70",
                "asic_fmax": "1350",
                "thm_limit": "110",
                "board_power_limit": "600"
"#;

#[test]
fn the_registers_of_a_blackhole_mean_what_they_mean_there() {
    let mut words = vec![
        (9, 0x0384_02BC),
        (10, 110),
        (22, 0x5555_5555),
        (23, 16_000),
        (24, 0x1_0700),
        (25, 0x2_000F),
        (27, 0x8102_0000),
        (28, 0x130F_0000),
        (29, 0x17_0000),
        (36, 0xFF),
        (50, 0),
        (51, 52),
        (53, 600),
        (54, 75),
        (58, 0x0304_0000),
        (63, 1350),
    ];
    words.extend((0..4).flat_map(|pair| [(42 + pair, 0x3031_3233), (46 + pair, 0)]));
    let tags = words.into_iter().map(|(tag, value)| TelemetryTag { tag, value }).collect();
    check(Device { deep: Some(Box::new(Deep { tags, ..Deep::default() })), ..blackhole() }, READ_DEEPLY);
}
