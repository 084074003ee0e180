//! `--tt-smi`: the JSON of the official `tt-smi -s` 6.8, for programs that read it.
//!
//! The layout, the padding of its strings and the order of its keys are its own. What the driver provides without a device being
//! opened is filled in; the rest is `null` where it has a raw value and `"N/A"` where it has text. Two of its bugs are left
//! out: a made-up `cm_fw_date` on Blackhole, and processes numbered differently from the devices.

use model::{Arch, Device, DeviceId, Snapshot, State};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use std::sync::Arc;

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

/// A JSON object that keeps the order of its keys.
struct Object(Vec<(&'static str, JsonNode)>);

enum JsonNode {
    Value(Value),
    Object(Object),
    List(Vec<Object>),
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, node) in &self.0 {
            match node {
                JsonNode::Value(value) => map.serialize_entry(key, value)?,
                JsonNode::Object(object) => map.serialize_entry(key, object)?,
                JsonNode::List(list) => map.serialize_entry(key, list)?,
            }
        }
        map.end()
    }
}

impl<T: Into<Value>> From<T> for JsonNode {
    fn from(value: T) -> JsonNode {
        JsonNode::Value(value.into())
    }
}

/// The whole snapshot. `time` is local, without a zone, to the microsecond.
pub fn text(snapshot: &Snapshot, host: &TtSmiHost, time: &str) -> String {
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| NA.into());
    let driver = snapshot.host.driver_version.as_ref().map_or(NA.into(), |version| format!("TT-KMD {version}"));
    let host_info = Object(vec![
        ("OS", "Linux".into()),
        ("Distro", host.distro.clone().into()),
        ("Kernel", known(&snapshot.host.kernel).into()),
        ("Hostname", known(&snapshot.host.name).into()),
        ("Platform", host.platform.clone().into()),
        ("Python", NA.into()),
        ("Memory", host.memory.clone().into()),
        ("Driver", driver.into()),
    ]);
    let versions = ["tt_smi", "pyluwen", "tt_umd"].map(|key| (key, NA.into()));
    // As tt-umd counts: by PCI address, the chips without PCIe last.
    let mut devices: Vec<&Device> = snapshot.devices.iter().filter(|device| device.state != State::NoDriver).collect();
    devices.sort_by_key(|device| (device.state == State::Remote, device.pci_address.clone()));
    let root = Object(vec![
        ("time", time.into()),
        ("host_info", JsonNode::Object(host_info)),
        ("host_sw_vers", JsonNode::Object(Object(versions.into()))),
        ("device_info", JsonNode::List(devices.into_iter().map(device_info).collect())),
        ("processes", JsonNode::List(processes(snapshot))),
    ]);
    ascii(&pretty(&root))
}

fn device_info(device: &Device) -> Object {
    Object(vec![
        ("smbus_telem", JsonNode::Object(smbus(device))),
        ("board_info", JsonNode::Object(board_info(device))),
        ("telemetry", JsonNode::Object(telemetry(device))),
        ("gddr_telemetry", JsonNode::Object(gddr(device))),
        ("firmwares", JsonNode::Object(firmwares(device))),
        ("limits", JsonNode::Object(limits(device))),
    ])
}

/// The raw telemetry words, as far as the driver's figures are the words themselves.
fn smbus(device: &Device) -> Object {
    let number = |value: Option<f64>| value.map(|value| value.round() as u64);
    let version = |text: &Option<Arc<str>>| text.as_deref().and_then(packed);
    let serial = device.serial_number();
    let firmware = &device.firmware;
    let known: Vec<(&str, Option<u64>)> = match device.arch {
        Some(Arch::Wormhole) => vec![
            ("BOARD_ID_HIGH", serial.map(|n| n >> 32)),
            ("BOARD_ID_LOW", serial.map(|n| n & 0xFFFF_FFFF)),
            ("ARC0_FW_VERSION", version(&firmware.arc)),
            ("ETH_FW_VERSION", firmware.ethernet.as_deref().and_then(packed_ethernet)),
            ("DM_BL_FW_VERSION", version(&firmware.dm_bootloader)),
            ("DM_APP_FW_VERSION", version(&firmware.dm_app)),
            ("AXICLK", device.axiclk.map(|v| v.0.into())),
            ("ARCCLK", device.arcclk.map(|v| v.0.into())),
            ("VCORE", number(device.vcore.map(|v| v.0 * 1e3))),
            ("ASIC_TEMPERATURE", device.asic_temp.filter(|v| v.0 >= 0.0).map(|v| (v.0 * 16.0) as u64)),
            ("TDP", halves(device.power_max.map(|v| v.0), device.power.map(|v| v.0))),
            ("TDC", halves(device.current_max.map(|v| v.0), device.current.map(|v| v.0))),
            ("TT_FLASH_VERSION", version(&firmware.tt_flash)),
            ("FW_BUNDLE_VERSION", version(&firmware.bundle)),
        ],
        _ => vec![
            ("BOARD_ID_HIGH", serial.map(|n| n >> 32)),
            ("BOARD_ID_LOW", serial.map(|n| n & 0xFFFF_FFFF)),
            ("VCORE", number(device.vcore.map(|v| v.0 * 1e3))),
            ("TDP", number(device.power.map(|v| v.0))),
            ("TDC", number(device.current.map(|v| v.0))),
            ("ASIC_TEMPERATURE", device.asic_temp.map(|v| sixteen_sixteen(v.0))),
            ("AICLK", device.aiclk.map(|v| v.0.into())),
            ("AXICLK", device.axiclk.map(|v| v.0.into())),
            ("ARCCLK", device.arcclk.map(|v| v.0.into())),
            ("DM_APP_FW_VERSION", version(&firmware.dm_app)),
            ("FLASH_BUNDLE_VERSION", version(&firmware.bundle)),
            ("TIMER_HEARTBEAT", device.heartbeat.map(Into::into)),
            ("FAN_RPM", device.fan.map(|v| v.0.into())),
            ("TDC_LIMIT_MAX", number(device.current_max.map(|v| v.0))),
            ("THM_LIMIT_THROTTLE", number(device.asic_temp_max.map(|v| v.0))),
            ("THERM_TRIP_COUNT", device.thermal_trips.map(Into::into)),
            ("ASIC_ID_HIGH", device.asic_number().map(|n| n >> 32)),
            ("ASIC_ID_LOW", device.asic_number().map(|n| n & 0xFFFF_FFFF)),
            ("TDP_LIMIT_MAX", number(device.power_max.map(|v| v.0))),
        ],
    };
    let tags = if device.arch == Some(Arch::Wormhole) { &WORMHOLE_TAGS[..] } else { &BLACKHOLE_TAGS[..] };
    let word = |tag: &&'static str| {
        let value = known.iter().find(|(name, _)| name == tag).and_then(|(_, value)| *value);
        (*tag, JsonNode::Value(value.map_or(Value::Null, |value| format!("{value:#x}").into())))
    };
    Object(tags.iter().map(word).collect())
}

fn board_info(device: &Device) -> Object {
    let remote = device.state == State::Remote;
    let address = device.pci_address.as_ref().filter(|_| !remote).map_or(NA.into(), ToString::to_string);
    let serial = device.serial_number();
    let suffix = match device.arch {
        Some(Arch::Wormhole) if remote => " R",
        Some(Arch::Wormhole) => " L",
        _ => "",
    };
    Object(vec![
        ("bus_id", address.into()),
        ("board_type", format!("{}{suffix}", serial.map_or(NA, board_type)).into()),
        ("board_id", serial.map_or(NA.into(), |serial| format!("{serial:016x}")).into()),
        ("coords", NA.into()),
        ("dram_status", JsonNode::Value(Value::Null)),
        ("dram_speed", NA.into()),
        ("pcie_speed", device.pcie.generation.map_or(NA.into(), |generation| JsonNode::Value(generation.into()))),
        ("pcie_width", device.pcie.width.map_or(NA.into(), |width| width.to_string()).into()),
    ])
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
    let text = |text: Option<String>| JsonNode::from(text.unwrap_or_else(|| NA.into()));
    // tt-smi slows the counter down to about one step per refresh of its screen.
    let per_step = if device.arch == Some(Arch::Wormhole) { 5 } else { 6 };
    Object(vec![
        ("voltage", text(device.vcore.map(|v| format!("{:4.2}", v.0)))),
        ("current", text(device.current.map(|v| format!("{:5.1}", v.0)))),
        ("power", text(device.power.map(|v| format!("{:5.1}", v.0)))),
        ("board_power", NA.into()),
        ("aiclk", text(device.aiclk.map(|v| format!("{:4}", v.0)))),
        ("asic_temperature", text(device.asic_temp.map(|v| format!("{:4.1}", v.0)))),
        ("fan_speed", text(device.fan.map(|v| v.0.to_string()))),
        ("heartbeat", text(device.heartbeat.map(|beat| (beat / per_step).to_string()))),
    ])
}

fn gddr(device: &Device) -> Object {
    let channels: u64 = if device.arch == Some(Arch::Wormhole) { 6 } else { 8 };
    let channel = |channel: u64| {
        let mut keys = vec![
            ("channel", JsonNode::Value(channel.into())),
            ("harvested", JsonNode::Value(Value::Null)),
            ("enabled", JsonNode::Value(Value::Null)),
            ("training", "n/a".into()),
            ("bist", "n/a".into()),
        ];
        let rest = ["temp_top", "temp_bottom", "corr_rd", "corr_wr", "uncorr_rd", "uncorr_wr"];
        keys.extend(rest.map(|key| (key, NA.into())));
        Object(keys)
    };
    Object(vec![
        ("speed", NA.into()),
        ("max_temp", NA.into()),
        ("enabled_mask", NA.into()),
        ("channels", JsonNode::List((0..channels).map(channel).collect())),
    ])
}

fn firmwares(device: &Device) -> Object {
    let text = |text: &Option<Arc<str>>| JsonNode::from(text.as_deref().unwrap_or(NA).to_owned());
    let firmware = &device.firmware;
    Object(vec![
        ("fw_bundle_version", text(&firmware.bundle)),
        ("tt_flash_version", text(&firmware.tt_flash)),
        ("cm_fw", text(&firmware.arc)),
        ("cm_fw_date", NA.into()),
        ("eth_fw", text(&firmware.ethernet)),
        ("dm_bl_fw", text(&firmware.dm_bootloader)),
        ("dm_app_fw", text(&firmware.dm_app)),
        ("gddr_fw", NA.into()),
    ])
}

fn limits(device: &Device) -> Object {
    let text = |text: Option<String>| JsonNode::Value(text.map_or(Value::Null, Value::from));
    let throttle = text(device.asic_temp_max.map(|v| format!("{:2.0}", v.0)));
    let (first, second) = match device.arch {
        Some(Arch::Wormhole) => (text(None), throttle),
        _ => (throttle, text(None)),
    };
    Object(vec![
        ("vdd_min", text(None)),
        ("vdd_max", text(device.vcore_max.map(|v| format!("{:4.2}", v.0)))),
        ("tdp_limit", text(device.power_max.map(|v| format!("{:3.0}", v.0)))),
        ("tdc_limit", text(device.current_max.map(|v| format!("{:3.0}", v.0)))),
        ("asic_fmax", text(None)),
        ("therm_trip_l1_limit", first),
        ("thm_limit", second),
        ("bus_peak_limit", JsonNode::Value(0.into())),
        ("fan_rpm_limit", JsonNode::Value(0.into())),
        ("board_power_limit", text(None)),
    ])
}

fn processes(snapshot: &Snapshot) -> Vec<Object> {
    let mut rows: Vec<(u32, &model::Process)> = Vec::new();
    for process in &snapshot.processes {
        rows.extend(process.devices.iter().filter_map(|held| match held.id {
            DeviceId::Local(n) => Some((n, process)),
            _ => None,
        }));
    }
    rows.sort_by_key(|(n, process)| (*n, process.pid));
    let text = |text: &Option<String>| JsonNode::from(text.as_deref().unwrap_or("?").to_owned());
    let object = |(n, process): (u32, &model::Process)| {
        Object(vec![
            ("pid", JsonNode::Value(process.pid.into())),
            ("user", text(&process.user)),
            ("device", JsonNode::Value(n.into())),
            ("cmdline", text(&process.command)),
        ])
    };
    rows.into_iter().map(object).collect()
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

/// Limit and value in the two halves of a word.
fn halves(high: Option<f64>, low: Option<f64>) -> Option<u64> {
    Some(((high?.round() as u64) << 16) | low?.round() as u64)
}

/// Signed, with 16 bits behind the point: the smallest word that the driver prints as this temperature.
fn sixteen_sixteen(celsius: f64) -> u64 {
    let milli = (celsius * 1000.0).round() as i64;
    let (whole, fraction) = (milli.div_euclid(1000), milli.rem_euclid(1000));
    let word = (whole << 16) | ((fraction * 65_536 + 999) / 1000);
    u64::from(word as u32)
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
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| out += &format!("\\u{unit:04x}"));
        }
    }
    out
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
