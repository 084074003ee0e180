//! `--tt-smi`: the JSON of the official `tt-smi -s` 6.8, for programs that read it.
//!
//! The layout, the padding of its strings and the order of its keys are its own. What a deep read knows is in it, else what the
//! driver provides without a device being opened. The rest has the type that it has there: a raw word is `null`, a text `"N/A"`, a limit `0`. Half of a word that is
//! not known is zero. Without a deep read, `dram_status` is true of a device that works. Two of its bugs are left out: a made-up `cm_fw_date` on
//! Blackhole, and processes numbered differently from the devices.

use super::process_row::ProcessRow;
use crate::habits::tt_smi::VERSION;
use crate::json::{JsonNode, Object};
use model::{Arch, Device, DeviceId, Snapshot, State};
use registers::Registers;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

mod registers;
#[cfg(test)]
mod tests;

/// What tt-smi says of the host beyond what a snapshot knows.
pub struct TtSmiHost {
    pub distro: String,
    pub platform: String,
    pub memory: String,
}

impl TtSmiHost {
    /// Another one, of which a snapshot is all that is known.
    pub fn unknown() -> TtSmiHost {
        TtSmiHost { distro: NA.into(), platform: NA.into(), memory: NA.into() }
    }

    pub fn this() -> TtSmiHost {
        let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
        let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
        let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kib = memory
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse::<f64>().ok());
        TtSmiHost {
            distro: name.map_or(NA.into(), |name| name.trim_matches('"').to_owned()),
            platform: rustix::system::uname().machine().to_string_lossy().into_owned(),
            memory: kib.map_or(NA.into(), |kib| format!("{:.2} GB", kib / 1024.0 / 1024.0)),
        }
    }
}

const NA: &str = "N/A";

/// A text, where it is known.
fn known<T: ToString>(text: Option<T>) -> JsonNode {
    text.map_or(NA.into(), |text| text.to_string().into())
}

/// The whole snapshot. `time` is local, without a zone, to the microsecond.
pub fn text(snapshot: &Snapshot, host: &TtSmiHost, time: &str) -> String {
    let host_info = Object(vec![
        ("OS", "Linux".into()),
        ("Distro", host.distro.clone().into()),
        ("Kernel", known(snapshot.host.kernel.as_ref())),
        ("Hostname", known(snapshot.host.name.as_ref())),
        ("Platform", host.platform.clone().into()),
        ("Python", NA.into()),
        ("Memory", host.memory.clone().into()),
        ("Driver", known(snapshot.host.driver_version.as_ref().map(|version| format!("TT-KMD {version}")))),
    ]);
    let versions = [("tt_smi", VERSION.into()), ("pyluwen", NA.into()), ("tt_umd", NA.into())];
    let root = Object(vec![
        ("time", time.into()),
        ("host_info", JsonNode::Object(host_info)),
        ("host_sw_vers", JsonNode::Object(Object(versions.into()))),
        ("device_info", JsonNode::List(chips(snapshot).into_iter().map(device_info).collect())),
        ("processes", JsonNode::List(processes(snapshot))),
    ]);
    ascii(&pretty(&root))
}

/// The chips as tt-umd counts: by PCI address, those without PCIe last.
pub fn chips(snapshot: &Snapshot) -> Vec<&Device> {
    let mut devices: Vec<&Device> = snapshot.devices.iter().filter(|device| device.state != State::NoDriver).collect();
    devices.sort_by_key(|device| (device.state == State::Remote, device.pci_address.clone()));
    devices
}

fn device_info(device: &Device) -> Object {
    let read = Registers::of(device);
    let section = |deep: fn(&Registers) -> Object, plain: fn(&Device) -> Object| {
        JsonNode::Object(read.as_ref().map_or_else(|| plain(device), deep))
    };
    Object(vec![
        ("smbus_telem", section(Registers::smbus, smbus)),
        ("board_info", JsonNode::Object(board_info(device, read.as_ref()))),
        ("telemetry", section(Registers::telemetry, telemetry)),
        ("gddr_telemetry", section(Registers::gddr, gddr)),
        ("firmwares", section(Registers::firmwares, firmwares)),
        ("limits", section(Registers::limits, limits)),
    ])
}

/// The raw telemetry words, as far as the driver's figures give them. Wormhole has a limit in the high half of a word.
fn smbus(device: &Device) -> Object {
    let number = |value: Option<f64>| value.map(|value| value.round() as u64);
    let version = |text: &Option<Arc<str>>| text.as_deref().and_then(packed);
    let (serial, asic) = (device.serial_number(), device.asic_number());
    let (power, current) = (device.power.map(|v| v.0), device.current.map(|v| v.0));
    let (power_max, current_max) = (device.power_max.map(|v| v.0), device.current_max.map(|v| v.0));
    let firmware = &device.firmware;
    let halves = |high: Option<u64>, low: Option<u64>| {
        (high.is_some() || low.is_some()).then(|| (high.unwrap_or(0) << 16) | (low.unwrap_or(0) & 0xFFFF))
    };
    let millivolts_max = number(device.vcore_max.map(|v| v.0 * 1e3));
    let temperature = |steps: f64| device.asic_temp.map(|v| (v.0 * steps).round() as i64 as u64 & 0xFFFF_FFFF);
    let mut words = vec![
        ("BOARD_ID_HIGH", serial.map(|n| n >> 32)),
        ("BOARD_ID_LOW", serial.map(|n| n & 0xFFFF_FFFF)),
        ("VCORE", number(device.vcore.map(|v| v.0 * 1e3))),
        ("AXICLK", device.axiclk.map(|v| v.0.into())),
        ("ARCCLK", device.arcclk.map(|v| v.0.into())),
        ("DM_APP_FW_VERSION", version(&firmware.dm_app)),
        ("VDD_LIMITS", halves(millivolts_max, None)),
    ];
    let tags = if device.arch == Some(Arch::Wormhole) {
        words.extend([
            ("ARC0_FW_VERSION", version(&firmware.arc)),
            ("ETH_FW_VERSION", firmware.ethernet.as_deref().and_then(packed_ethernet)),
            ("DM_BL_FW_VERSION", version(&firmware.dm_bootloader)),
            ("TT_FLASH_VERSION", version(&firmware.tt_flash)),
            ("FW_BUNDLE_VERSION", version(&firmware.bundle)),
            ("ARC3_HEALTH", device.heartbeat.map(Into::into)),
            ("AICLK", device.aiclk.map(|v| v.0.into())),
            ("ASIC_TEMPERATURE", temperature(16.0).map(|word| word & 0xFFFF)),
            ("TDP", halves(number(power_max), number(power))),
            ("TDC", halves(number(current_max), number(current))),
            ("THM_LIMITS", number(device.asic_temp_max.map(|v| v.0))),
        ]);
        &WORMHOLE_TAGS[..]
    } else {
        words.extend([
            ("ASIC_TEMPERATURE", temperature(65536.0)),
            ("TDP", number(power)),
            ("TDC", number(current)),
            ("AICLK", device.aiclk.map(|v| v.0.into())),
            ("FLASH_BUNDLE_VERSION", version(&firmware.bundle)),
            ("TIMER_HEARTBEAT", device.heartbeat.map(Into::into)),
            ("FAN_RPM", device.fan.map(|v| v.0.into())),
            ("TDC_LIMIT_MAX", number(current_max)),
            ("THM_LIMIT_THROTTLE", number(device.asic_temp_max.map(|v| v.0))),
            ("THERM_TRIP_COUNT", device.thermal_trips.map(Into::into)),
            ("ASIC_ID_HIGH", asic.map(|n| n >> 32)),
            ("ASIC_ID_LOW", asic.map(|n| n & 0xFFFF_FFFF)),
            ("TDP_LIMIT_MAX", number(power_max)),
        ]);
        &BLACKHOLE_TAGS[..]
    };
    let word = |tag: &&'static str| {
        let value = words.iter().find(|(name, _)| name == tag).and_then(|(_, value)| *value);
        (*tag, value.map(|value| format!("{value:#x}")).into())
    };
    Object(tags.iter().map(word).collect())
}

fn board_info(device: &Device, read: Option<&Registers>) -> Object {
    let remote = device.state == State::Remote;
    let serial = device.serial_number();
    // The driver does not say whether DRAM is trained. A device that works has trained it when it booted.
    let works = matches!(device.state, State::Ok | State::Silent | State::Remote);
    Object(vec![
        ("bus_id", known(device.pci_address.as_ref().filter(|_| !remote))),
        ("board_type", board_type_of(device).into()),
        ("board_id", known(serial.map(|serial| format!("{serial:016x}")))),
        ("coords", NA.into()),
        ("dram_status", read.and_then(Registers::dram_status).unwrap_or(works).into()),
        ("dram_speed", known(read.and_then(Registers::dram_speed))),
        ("pcie_speed", device.pcie.generation.map_or(NA.into(), JsonNode::from)),
        ("pcie_width", known(device.pcie.width)),
    ])
}

/// The name that tt-smi has for the board of a chip, and which of its two chips this is on Wormhole.
pub fn board_type_of(device: &Device) -> String {
    let suffix = match device.arch {
        Some(Arch::Wormhole) if device.state == State::Remote => " R",
        Some(Arch::Wormhole) => " L",
        _ => "",
    };
    format!("{}{suffix}", device.serial_number().map_or(NA, board_type))
}

/// The name that tt-smi has for a board, from the part number in its id.
fn board_type(serial: u64) -> &'static str {
    match (serial >> 36) & 0xF_FFFF {
        0x8 => "nb_cb",
        0xB => "wh_4u",
        0x14 => "n300",
        0x18 => "n150",
        0x35 => "tt-galaxy-wh",
        0x36 => "bh-scrappy",
        0x40 => "p150a",
        0x41 => "p150b",
        0x42 => "p150c",
        0x43 => "p100a",
        0x44 => "p300b",
        0x45 => "p300a",
        0x46 => "p300c",
        0x47 | 0x202 => "tt-galaxy-bh",
        _ => NA,
    }
}

fn telemetry(device: &Device) -> Object {
    // tt-smi slows the counter down to about one step per refresh of its screen.
    let per_step = if device.arch == Some(Arch::Wormhole) { 5 } else { 6 };
    Object(vec![
        ("voltage", known(device.vcore.map(|v| format!("{:4.2}", v.0)))),
        ("current", known(device.current.map(|v| format!("{:5.1}", v.0)))),
        ("power", known(device.power.map(|v| format!("{:5.1}", v.0)))),
        ("board_power", NA.into()),
        ("aiclk", known(device.aiclk.map(|v| format!("{:4}", v.0)))),
        ("asic_temperature", known(device.asic_temp.map(|v| format!("{:4.1}", v.0)))),
        ("fan_speed", known(device.fan.map(|v| v.0))),
        ("heartbeat", known(device.heartbeat.map(|beat| beat / per_step))),
    ])
}

fn gddr(device: &Device) -> Object {
    let channels: u64 = if device.arch == Some(Arch::Wormhole) { 6 } else { 8 };
    let channel = |channel: u64| {
        let mut keys = vec![
            ("channel", channel.into()),
            ("harvested", Value::Null.into()),
            ("enabled", Value::Null.into()),
            ("training", "n/a".into()),
            ("bist", "n/a".into()),
        ];
        let rest = ["temp_top", "temp_bottom", "corr_rd", "corr_wr", "uncorr_rd", "uncorr_wr"];
        keys.extend(rest.map(|key| (key, NA.into())));
        Object(keys)
    };
    let mut keys = Vec::from(["speed", "max_temp", "enabled_mask"].map(|key| (key, NA.into())));
    keys.push(("channels", JsonNode::List((0..channels).map(channel).collect())));
    Object(keys)
}

fn firmwares(device: &Device) -> Object {
    let firmware = &device.firmware;
    Object(vec![
        ("fw_bundle_version", known(firmware.bundle.as_ref())),
        ("tt_flash_version", known(firmware.tt_flash.as_ref())),
        ("cm_fw", known(firmware.arc.as_ref())),
        ("cm_fw_date", NA.into()),
        ("eth_fw", known(firmware.ethernet.as_ref())),
        ("dm_bl_fw", known(firmware.dm_bootloader.as_ref())),
        ("dm_app_fw", known(firmware.dm_app.as_ref())),
        ("gddr_fw", NA.into()),
    ])
}

fn limits(device: &Device) -> Object {
    // What is missing is a number there, and what is known a text.
    let limit = |text: Option<String>| text.map_or_else(|| 0.into(), JsonNode::from);
    let throttle = device.asic_temp_max.map(|v| format!("{:2.0}", v.0));
    let (first, second) = if device.arch == Some(Arch::Wormhole) { (None, throttle) } else { (throttle, None) };
    Object(vec![
        ("vdd_min", limit(None)),
        ("vdd_max", limit(device.vcore_max.map(|v| format!("{:4.2}", v.0)))),
        ("tdp_limit", limit(device.power_max.map(|v| format!("{:3.0}", v.0)))),
        ("tdc_limit", limit(device.current_max.map(|v| format!("{:3.0}", v.0)))),
        ("asic_fmax", limit(None)),
        ("therm_trip_l1_limit", limit(first)),
        ("thm_limit", limit(second)),
        ("bus_peak_limit", limit(None)),
        ("fan_rpm_limit", limit(None)),
        ("board_power_limit", limit(None)),
    ])
}

fn processes(snapshot: &Snapshot) -> Vec<Object> {
    let text = |text: &Option<String>| text.as_deref().unwrap_or("?").into();
    let object = |row: ProcessRow| {
        let DeviceId::Local(n) = row.held.id else { return None };
        let ProcessRow { process, .. } = row;
        Some(Object(vec![
            ("pid", process.pid.into()),
            ("user", text(&process.user)),
            ("device", n.into()),
            ("cmdline", text(&process.command)),
        ]))
    };
    ProcessRow::all(snapshot).into_iter().filter_map(object).collect()
}

/// `19.6.0.0` as the word that it was read from.
fn packed(version: &str) -> Option<u64> {
    model::Version::parse(version).map(|version| version.0.iter().fold(0, |word, part| (word << 8) | u64::from(*part)))
}

/// `7.2.0`, which Wormhole packs into 8, 4 and 12 bits.
fn packed_ethernet(version: &str) -> Option<u64> {
    let [major, minor, patch, _] = model::Version::parse(version)?.0.map(u64::from);
    Some((major << 16) | (minor << 12) | patch)
}

/// Indented by four, as Python does.
fn pretty(root: &Object) -> String {
    let mut text = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, formatter);
    // Strings, numbers and lists only, all of which JSON can write.
    root.serialize(&mut serializer).expect("is always JSON");
    String::from_utf8_lossy(&text).into_owned() + "\n"
}

/// Python escapes what is not ASCII. Outside of strings JSON has nothing of the kind.
fn ascii(text: &str) -> String {
    text.encode_utf16().fold(String::with_capacity(text.len()), |mut out, unit| {
        match char::from_u32(unit.into()).filter(char::is_ascii) {
            Some(c) => out.push(c),
            None => out += &format!("\\u{unit:04x}"),
        }
        out
    })
}

#[rustfmt::skip]
const BLACKHOLE_TAGS: [&str; 66] = [
    "BOARD_ID_HIGH", "BOARD_ID_LOW", "ASIC_ID", "HARVESTING_STATE", "UPDATE_TELEM_SPEED", "VCORE", "TDP", "TDC", "VDD_LIMITS",
    "THM_LIMIT_SHUTDOWN", "ASIC_TEMPERATURE", "VREG_TEMPERATURE", "BOARD_TEMPERATURE", "AICLK", "AXICLK", "ARCCLK",
    "L2CPUCLK0", "L2CPUCLK1", "L2CPUCLK2", "L2CPUCLK3", "ETH_LIVE_STATUS", "DDR_STATUS", "DDR_SPEED", "ETH_FW_VERSION",
    "GDDR_FW_VERSION", "DM_APP_FW_VERSION", "DM_BL_FW_VERSION", "FLASH_BUNDLE_VERSION", "CM_FW_VERSION", "L2CPU_FW_VERSION",
    "FAN_SPEED", "TIMER_HEARTBEAT", "TELEMETRY_ENUM_COUNT", "ENABLED_TENSIX_COL", "ENABLED_ETH", "ENABLED_GDDR",
    "ENABLED_L2CPU", "PCIE_USAGE", "NOC_TRANSLATION", "FAN_RPM", "GDDR_0_1_TEMP", "GDDR_2_3_TEMP", "GDDR_4_5_TEMP",
    "GDDR_6_7_TEMP", "GDDR_0_1_CORR_ERRS", "GDDR_2_3_CORR_ERRS", "GDDR_4_5_CORR_ERRS", "GDDR_6_7_CORR_ERRS",
    "GDDR_UNCORR_ERRS", "MAX_GDDR_TEMP", "ASIC_LOCATION", "BOARD_POWER_LIMIT", "TDC_LIMIT_MAX", "THM_LIMIT_THROTTLE",
    "TT_FLASH_VERSION", "THERM_TRIP_COUNT", "ASIC_ID_HIGH", "ASIC_ID_LOW", "AICLK_LIMIT_MAX", "TDP_LIMIT_MAX", "AICLK_ARB_MIN",
    "AICLK_ARB_MAX", "ENABLED_MIN_ARB", "ENABLED_MAX_ARB", "NUMBER_OF_TAGS", "INPUT_POWER",
];

#[rustfmt::skip]
const WORMHOLE_TAGS: [&str; 52] = [
    "ENUM_VERSION", "DEVICE_ID", "ASIC_RO", "ASIC_IDD", "BOARD_ID_HIGH", "BOARD_ID_LOW", "ARC0_FW_VERSION", "ARC1_FW_VERSION",
    "ARC2_FW_VERSION", "ARC3_FW_VERSION", "SPIBOOTROM_FW_VERSION", "ETH_FW_VERSION", "DM_BL_FW_VERSION", "DM_APP_FW_VERSION",
    "DDR_STATUS", "ETH_STATUS0", "ETH_STATUS1", "PCIE_STATUS", "FAULTS", "ARC0_HEALTH", "ARC1_HEALTH", "ARC2_HEALTH",
    "ARC3_HEALTH", "FAN_SPEED", "AICLK", "AXICLK", "ARCCLK", "THROTTLER", "VCORE", "ASIC_TEMPERATURE", "VREG_TEMPERATURE",
    "BOARD_TEMPERATURE", "TDP", "TDC", "VDD_LIMITS", "THM_LIMITS", "WH_FW_DATE", "ASIC_TMON0", "ASIC_TMON1", "MVDDQ_POWER",
    "GDDR_TRAIN_TEMP0", "GDDR_TRAIN_TEMP1", "BOOT_DATE", "RT_SECONDS", "ETH_DEBUG_STATUS0", "ETH_DEBUG_STATUS1",
    "TT_FLASH_VERSION", "ETH_LOOPBACK_STATUS", "ETH_LIVE_STATUS", "FW_BUNDLE_VERSION", "NUMBER_OF_TAGS", "INPUT_POWER",
];
