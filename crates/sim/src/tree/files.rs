//! The texts of all files and the targets of all links, without writing them.
//!
//! Formats are those of driver 2.10: one value and one newline, identifiers in upper-case hex without a prefix. Most files
//! are 0444, as sysfs has them. Links are relative, as sysfs has them.

use super::{Chip, Hwmon, telemetry};
use model::Arch;
use std::fmt::Display;

pub(crate) struct File {
    pub path: String,
    pub mode: u32,
    pub bytes: Vec<u8>,
}

pub(crate) const VENDOR: u16 = 0x1E52;

/// `fan1_input` of a Blackhole whose firmware turns no fan.
pub(crate) const NO_FAN: u32 = u32::MAX;

/// The kinds of traffic, each counted on NoC 0 and NoC 1.
const COUNTERS: [&str; 6] = [
    "slv_posted_wr_data_word_received",
    "slv_nonposted_wr_data_word_received",
    "slv_rd_data_word_sent",
    "mst_posted_wr_data_word_sent",
    "mst_nonposted_wr_data_word_sent",
    "mst_rd_data_word_received",
];

/// What is there even without a device.
pub(crate) const FOLDERS: [&str; 8] = [
    "sys/class/tenstorrent",
    "sys/class/hwmon",
    "sys/bus/pci/devices",
    DRIVER,
    "sys/dev/char",
    "proc/driver/tenstorrent",
    "dev/tenstorrent/by-id",
    "dev/shm",
];

const DRIVER: &str = "sys/bus/pci/drivers/tenstorrent";
const MODULE: &str = "sys/module/tenstorrent";
const MAJOR: u32 = 240;

pub(crate) fn device_number(arch: Arch) -> u16 {
    match arch {
        Arch::Wormhole => 0x401E,
        Arch::Blackhole => 0xB140,
    }
}

pub(crate) fn module(version: &str) -> Vec<File> {
    let mut files = FolderFiles::new(MODULE.into(), false);
    files.line("version", version);
    files.line("initstate", "live");
    for (parameter, value) in [
        ("max_devices", "32"),
        ("dma_address_bits", "0"),
        ("reset_limit", "10"),
        ("auto_reset_timeout", "10"),
        ("power_policy", "Y"),
    ] {
        files.line(&format!("parameters/{parameter}"), value);
    }
    files.add("parameters/idle_power_down_grace_ms", 0o644, "5000\n");
    files.all
}

/// How often the driver is in use: once for each open file.
pub(crate) fn reference_count(chips: &[Chip]) -> File {
    let open: usize = chips.iter().flat_map(|chip| &chip.pids).map(Vec::len).sum();
    File { path: format!("{MODULE}/refcnt"), mode: 0o444, bytes: format!("{open}\n").into() }
}

pub(crate) fn of(chip: &Chip) -> Vec<File> {
    let mut files = pci(chip);
    if chip.bound {
        files.extend(class(chip));
        files.extend(chip.hwmon.iter().flat_map(|hwmon| sensors(chip, hwmon)));
        let pids = chip.pids.iter().map(|pids| pids.iter().map(|pid| format!("{pid}\n")).collect::<String>());
        files.extend(pids.map(|text| File {
            path: format!("{}/pids", chip.proc_folder()),
            mode: 0o444,
            bytes: text.into(),
        }));
        let memory = chip.table.as_ref().map(|table| telemetry::memory(chip, table)).unwrap_or_default();
        files.push(File { path: chip.node(), mode: 0o666, bytes: memory.into() });
    }
    files
}

/// All links of a chip: those that lead to it from elsewhere, then its own.
pub(crate) fn links(chip: &Chip) -> Vec<(String, String)> {
    let (pci, class, address, n) = (chip.pci_folder(), chip.class_folder(), &chip.address, chip.index);
    let mut links = Vec::new();
    let mut to = |path: String, target: &str| {
        let target = relative(&path, target);
        links.push((path, target));
    };
    if chip.bound {
        to(format!("sys/class/tenstorrent/tenstorrent!{n}"), &class);
        to(format!("sys/dev/char/{MAJOR}:{n}"), &class);
        for hwmon in &chip.hwmon {
            to(format!("sys/class/hwmon/hwmon{}", hwmon.number), &chip.hwmon_folder(hwmon));
        }
        // What udev's rule makes of `tt_asic_id`.
        if let Some(asic) = chip.asic_id {
            to(format!("dev/tenstorrent/by-id/{}-{asic:016X}", chip.arch.name()), &chip.node());
        }
        to(format!("{DRIVER}/{address}"), &pci);
    }
    to(format!("sys/bus/pci/devices/{address}"), &pci);
    if chip.bound {
        to(format!("{pci}/driver"), DRIVER);
        to(format!("{class}/subsystem"), "sys/class/tenstorrent");
        // The kernel leads back to the function by its name, not by dots alone.
        let function = format!("../../../{address}");
        for hwmon in chip.hwmon.iter().map(|hwmon| chip.hwmon_folder(hwmon)) {
            links.push((format!("{hwmon}/subsystem"), relative(&format!("{hwmon}/subsystem"), "sys/class/hwmon")));
            links.push((format!("{hwmon}/device"), function.clone()));
        }
        links.push((format!("{class}/device"), function));
    }
    links
}

fn pci(chip: &Chip) -> Vec<File> {
    let (device, subsystem) = (device_number(chip.arch), chip.subsystem);
    let mut files = FolderFiles::new(chip.pci_folder(), chip.is_hung);
    files.line("vendor", format!("0x{VENDOR:04x}"));
    files.line("device", format!("0x{device:04x}"));
    files.line("subsystem_vendor", format!("0x{VENDOR:04x}"));
    files.line("subsystem_device", format!("0x{subsystem:04x}"));
    files.line("class", "0x120000");
    files.line("revision", format!("0x{:02x}", chip.revision));
    files.add("numa_node", 0o644, format!("{}\n", chip.numa_node));
    files.line("current_link_speed", &chip.link.speed);
    files.line("current_link_width", chip.link.width);
    files.line("max_link_speed", &chip.max_link.speed);
    files.line("max_link_width", chip.max_link.width);
    files.line("power_state", "D0");
    files.add("enable", 0o644, if chip.bound { "1\n" } else { "0\n" });
    let driver = if chip.bound { "DRIVER=tenstorrent\n" } else { "" };
    files.add(
        "uevent",
        0o644,
        format!(
            "{driver}PCI_CLASS=120000\nPCI_ID={VENDOR:04X}:{device:04X}\nPCI_SUBSYS_ID={VENDOR:04X}:{subsystem:04X}\n\
             PCI_SLOT_NAME={}\nMODALIAS=pci:v{VENDOR:08X}d{device:08X}sv{VENDOR:08X}sd{subsystem:08X}bc12sc00i00\n",
            chip.address
        ),
    );
    files.add("config", 0o644, chip.config.clone());
    files.add("resource", 0o444, resource(chip));
    files.all
}

/// The address ranges: first, last, flags; the thirteen of every PCI function.
fn resource(chip: &Chip) -> String {
    const PREFETCHABLE_64_BIT: u64 = 0x14_220C;
    const MEMORY_64_BIT: u64 = 0x14_0204;
    let n = u64::from(chip.index);
    let window = match chip.arch {
        Arch::Wormhole => 32 << 20,
        Arch::Blackhole => 32 << 30,
    };
    let base = 0x3800_0000_0000 + (n << 36);
    let mut ranges = [(0, 0, 0); 13];
    ranges[0] = (base, 512 << 20, PREFETCHABLE_64_BIT);
    ranges[2] = (0xF000_0000 + (n << 20), 1 << 20, MEMORY_64_BIT);
    ranges[4] = (base + (1 << 35), window, PREFETCHABLE_64_BIT);
    let line = |(first, len, flags): (u64, u64, u64)| {
        format!("0x{first:016x} 0x{:016x} 0x{flags:016x}\n", (first + len).saturating_sub(1))
    };
    ranges.map(line).concat()
}

fn class(chip: &Chip) -> Vec<File> {
    let n = chip.index;
    let mut files = FolderFiles::new(chip.class_folder(), chip.is_hung);
    files.line("dev", format!("{MAJOR}:{n}"));
    files.add("uevent", 0o644, format!("MAJOR={MAJOR}\nMINOR={n}\nDEVNAME=tenstorrent/{n}\n"));
    let hex = |id: Option<u64>| id.map(|id| format!("{id:016X}"));
    files.attribute("tt_aiclk", chip.aiclk, ONES);
    files.attribute("tt_axiclk", chip.axiclk, ONES);
    files.attribute("tt_arcclk", chip.arcclk, ONES);
    files.attribute("tt_serial", hex(chip.serial), ONES_HEX);
    files.attribute("tt_card_type", chip.card_type.as_ref(), "unknown");
    files.attribute("tt_asic_id", hex(chip.asic_id), ONES_HEX);
    files.attribute("tt_fw_bundle_ver", chip.fw_bundle.as_ref(), ONES_VERSION);
    files.attribute("tt_m3app_fw_ver", chip.m3app_fw.as_ref(), ONES_VERSION);
    files.attribute("tt_m3bl_fw_ver", chip.m3bl_fw.as_ref(), ONES_VERSION);
    files.attribute("tt_arc_fw_ver", chip.arc_fw.as_ref(), ONES_VERSION);
    files.attribute("tt_eth_fw_ver", chip.eth_fw.as_ref(), "255.15.4095");
    files.attribute("tt_ttflash_ver", chip.ttflash.as_ref(), ONES_VERSION);
    files.attribute("tt_heartbeat", chip.heartbeat, ONES);
    files.attribute("tt_therm_trip_count", chip.therm_trip_count, ONES);
    for (i, value) in chip.counters.iter().flatten().enumerate() {
        files.line(&format!("pcie_perf_counters/{}{}", COUNTERS[i / 2], i % 2), value);
    }
    files.all
}

fn sensors(chip: &Chip, hwmon: &Hwmon) -> Vec<File> {
    let wormhole = chip.arch == Arch::Wormhole;
    let mut files = FolderFiles::new(chip.hwmon_folder(hwmon), chip.is_hung);
    files.line("name", chip.arch.name());
    files.line("temp1_label", if wormhole { "asic1_temp" } else { "asic_temp" });
    files.line("in0_label", if wormhole { "vcore1" } else { "vcore" });
    files.line("curr1_label", if wormhole { "current1" } else { "current" });
    files.line("power1_label", if wormhole { "power1" } else { "power" });
    if !wormhole {
        files.line("fan1_label", "fan_rpm");
    }
    files.attribute("temp1_input", hwmon.temp, "65535999");
    files.attribute("temp1_max", hwmon.temp_max, ONES_KILO);
    files.attribute("in0_input", hwmon.vcore, ONES);
    files.attribute("in0_max", hwmon.vcore_max, "65535");
    files.attribute("curr1_input", hwmon.current, ONES_KILO);
    files.attribute("curr1_max", hwmon.current_max, ONES_KILO);
    files.attribute("power1_input", hwmon.power, ONES_MEGA);
    files.attribute("power1_max", hwmon.power_max, ONES_MEGA);
    files.attribute("fan1_input", hwmon.fan, ONES);
    files.all
}

// What the driver prints of all-ones: plain, times thousand or a million in 32 bits, in hex, and as a version. The temperature is 16
// bits of degrees and 16 of fraction.
const ONES: &str = "4294967295";
const ONES_KILO: &str = "4294966296";
const ONES_MEGA: &str = "4293967296";
const ONES_HEX: &str = "FFFFFFFFFFFFFFFF";
const ONES_VERSION: &str = "255.255.255.255";

struct FolderFiles {
    all: Vec<File>,
    folder: String,
    is_hung: bool,
}

impl FolderFiles {
    fn new(folder: String, is_hung: bool) -> FolderFiles {
        FolderFiles { all: Vec::new(), folder, is_hung }
    }

    fn add(&mut self, name: &str, mode: u32, bytes: impl Into<Vec<u8>>) {
        self.all.push(File { path: format!("{}/{name}", self.folder), mode, bytes: bytes.into() });
    }

    fn line(&mut self, name: &str, value: impl Display) {
        self.add(name, 0o444, format!("{value}\n"));
    }

    /// What the driver asks the chip for, if it does: a chip that is hung answers all-ones.
    fn attribute(&mut self, name: &str, value: Option<impl Display>, all_ones: &str) {
        match value {
            Some(_) if self.is_hung => self.line(name, all_ones),
            Some(value) => self.line(name, value),
            None => {}
        }
    }
}

/// The way from the folder that holds `path` to `target`, both from the root.
fn relative(path: &str, target: &str) -> String {
    let (path, target): (Vec<_>, Vec<_>) = (path.split('/').collect(), target.split('/').collect());
    let common = path.iter().zip(&target).take_while(|(a, b)| a == b).count();
    let mut steps = vec![".."; path.len() - 1 - common];
    steps.extend(&target[common..]);
    steps.join("/")
}
