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
