//! One PCI function and everything it shows: plain data, to be changed at will before it is laid.

use super::files::NO_FAN;
use crate::BoardKind;
use crate::wave::scatter;
use model::{Arch, TelemetryTag};

/// A PCI function with its driver's attributes. Numbers are in the files' own units; `files.rs` has the file of each.
#[expect(missing_docs, reason = "most have the name of their file")]
#[derive(Debug, Clone, PartialEq)]
pub struct Chip {
    /// N of `/dev/tenstorrent/N`.
    pub index: u32,
    /// PCI address, `0000:01:00.0`.
    pub address: String,
    /// PCI address of the bridge above it.
    pub bridge: String,
    pub arch: Arch,
    /// PCI subsystem device.
    pub subsystem: u16,
    /// PCI revision.
    pub revision: u8,
    /// −1 when the firmware of the host does not say.
    pub numa_node: i32,
    /// The PCIe link now.
    pub link: PcieLink,
    /// The most that slot and card can do.
    pub max_link: PcieLink,
    /// The part of the PCI configuration that anyone may read.
    pub config: Vec<u8>,
    /// Whether the driver is bound. If not, there is nothing but the PCI function.
    pub bound: bool,
    /// Whether it no longer answers: the driver reads all-ones, and its files show what its arithmetic makes of them.
    pub is_hung: bool,
    pub aiclk: Option<u32>,
    pub axiclk: Option<u32>,
    pub arcclk: Option<u32>,
    /// One for all chips of a board.
    pub serial: Option<u64>,
    pub card_type: Option<String>,
    pub asic_id: Option<u64>,
    pub fw_bundle: Option<String>,
    pub m3app_fw: Option<String>,
    pub m3bl_fw: Option<String>,
    pub arc_fw: Option<String>,
    pub eth_fw: Option<String>,
    pub ttflash: Option<String>,
    pub heartbeat: Option<u32>,
    pub therm_trip_count: Option<u32>,
    /// The six kinds of the driver's documentation, each on NoC 0 and NoC 1.
    pub counters: Option<[u32; 12]>,
    /// One, or none with a firmware that is too old; old drivers left some behind after a reset.
    pub hwmon: Vec<Hwmon>,
    /// One process id per open file, newest first.
    pub pids: Option<Vec<u32>>,
    /// Where on its board: 0 and 1 on a p300, 1 to 8 on a Galaxy tray. No file shows it.
    pub location: u8,
    /// Whether its Ethernet links have gone down. Only the table shows it.
    pub links_down: bool,
    /// The firmware's telemetry table, which a reader of the node finds. None: the node is an empty file.
    pub table: Option<Vec<TelemetryTag>>,
}

/// A PCIe link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PcieLink {
    /// As the kernel spells it: `32.0 GT/s PCIe`.
    pub speed: String,
    /// Lanes.
    pub width: u32,
}

/// A chip's hwmon node: m°C, mV, mA, µW and rpm. Labels are there in any case.
#[expect(missing_docs, reason = "each has the name of its sensor")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hwmon {
    /// M of `hwmonM`.
    pub number: u32,
    pub temp: Option<u32>,
    pub temp_max: Option<u32>,
    pub vcore: Option<u32>,
    pub vcore_max: Option<u32>,
    pub current: Option<u32>,
    pub current_max: Option<u32>,
    pub power: Option<u32>,
    pub power_max: Option<u32>,
    /// All-ones on a Blackhole without a fan, no file on a Wormhole.
    pub fan: Option<u32>,
}

/// A function for each kind of board: a chip of it with nothing to do. Two chips of a p300 share a board, those with index 0 and 1
/// and so on.
macro_rules! idle_chips {
    ($($name:ident $kind:ident),+ $(,)?) => {
        impl Chip {
            $(#[doc = concat!("A chip of a ", stringify!($name), " with nothing to do.")]
            pub fn $name(index: u32) -> Chip {
                Chip::of(BoardKind::$kind, index)
            })+
        }
    };
}

idle_chips! {
    n150 N150, n300 N300, p100a P100a, p150a P150a, p150b P150b, p150c P150c, p300a P300a, p300b P300b, p300c P300c,
    galaxy_wormhole GalaxyWormhole, galaxy_blackhole GalaxyBlackhole,
}

impl Chip {
    /// A chip of this kind of board with nothing to do, as driver 2.10 and firmware 19.6 show it.
    pub fn of(kind: BoardKind, index: u32) -> Chip {
        let arch = kind.arch();
        let wormhole = arch == Arch::Wormhole;
        let by_arch = |w: u32, b: u32| Some(if wormhole { w } else { b });
        let only_wormhole = |text: &str| wormhole.then(|| text.to_owned());
        let (address, bridge) = place_on_bus(kind, index);
        let speed = if wormhole { "16.0 GT/s PCIe" } else { "32.0 GT/s PCIe" };
        let link = PcieLink { speed: speed.into(), width: 16 };
        let revision = u8::from(wormhole);
        Chip {
            index,
            // Two sockets, half the buses each.
            numa_node: i32::from(address.as_bytes()[5] >= b'8'),
            address,
            bridge,
            arch,
            subsystem: kind.number(),
            revision,
            max_link: link.clone(),
            link,
            config: config(arch, kind.number(), revision),
            bound: true,
            is_hung: false,
            aiclk: Some(kind.clocks().0),
            axiclk: by_arch(900, 960),
            arcclk: by_arch(540, 800),
            serial: Some(serial(kind, index)),
            card_type: Some(kind.card_type().into()),
            asic_id: Some(scatter(&[0xA51C, kind.number().into(), index.into()])),
            fw_bundle: Some("19.6.0.0".into()),
            m3app_fw: Some(if wormhole { "5.9.0.0" } else { "0.24.0.0" }.into()),
            m3bl_fw: only_wormhole("129.2.0.0"),
            arc_fw: only_wormhole("2.37.0.0"),
            eth_fw: only_wormhole("7.2.0"),
            ttflash: only_wormhole("3.6.1.0"),
            heartbeat: Some(36_000),
            therm_trip_count: (!wormhole).then_some(0),
            counters: Some([0; 12]),
            hwmon: vec![Hwmon::of(kind, index + 2)],
            pids: Some(Vec::new()),
            location: match kind {
                BoardKind::GalaxyWormhole | BoardKind::GalaxyBlackhole => (index % 8 + 1) as u8,
                _ => (index % kind.functions()) as u8,
            },
            links_down: false,
            table: None,
        }
    }

    /// The same chip when it no longer answers.
    pub fn hung(&self) -> Chip {
        Chip {
            link: PcieLink { speed: "Unknown".into(), width: 63 },
            config: vec![0xFF; self.config.len()],
            asic_id: self.asic_id.map(|_| u64::MAX),
            counters: self.counters.map(|_| [u32::MAX; 12]),
            is_hung: true,
            ..self.clone()
        }
    }

    /// The numbers that tt-umd gives the chip and, behind it, the chip without PCIe of the same board.
    pub fn unique_ids(&self) -> Vec<u64> {
        let serial = self.serial.unwrap_or_default();
        // What Wormhole's Ethernet firmware keeps of the serial number.
        let mangled = ((serial >> 4) & 0xF000_0000) | (serial & 0x0FFF_FFFF);
        match self.card_type.as_deref() {
            Some("n150") => vec![serial],
            Some("n300") => vec![(2 << 32) | mangled, (3 << 32) | mangled],
            Some("galaxy-wormhole") => vec![(u64::from(self.location) << 56) | (serial & ((1 << 56) - 1))],
            Some("p300a" | "p300b" | "p300c") => vec![(serial << 5) | u64::from(self.location)],
            _ => vec![self.asic_id.unwrap_or_default()],
        }
    }

    /// The PCI function's folder below the root.
    pub fn pci_folder(&self) -> String {
        // The root bus is the bridge's address without device and function.
        let bus = self.bridge.rsplit_once(':').map_or("", |(bus, _)| bus);
        format!("sys/devices/pci{bus}/{}/{}", self.bridge, self.address)
    }

    /// The folder of the driver's attributes below the root.
    pub fn class_folder(&self) -> String {
        format!("{}/tenstorrent/tenstorrent!{}", self.pci_folder(), self.index)
    }

    /// The folder of an hwmon node below the root.
    pub fn hwmon_folder(&self, hwmon: &Hwmon) -> String {
        format!("{}/hwmon/hwmon{}", self.pci_folder(), hwmon.number)
    }

    /// The device node below the root.
    pub fn node(&self) -> String {
        format!("dev/tenstorrent/{}", self.index)
    }

    /// The driver's folder in `proc` below the root.
    pub fn proc_folder(&self) -> String {
        format!("proc/driver/tenstorrent/{}", self.index)
    }
}

impl Hwmon {
    fn of(kind: BoardKind, number: u32) -> Hwmon {
        let limits = kind.limits();
        let wormhole = kind.arch() == Arch::Wormhole;
        let vcore = if wormhole { 795 } else { 720 };
        Hwmon {
            number,
            temp: Some(35_000),
            temp_max: Some(limits.celsius * 1000),
            vcore: Some(vcore),
            vcore_max: Some(limits.millivolts),
            current: Some(limits.idle_watts * 1000 / vcore * 1000),
            current_max: Some(limits.amperes * 1000),
            power: Some(limits.idle_watts * 1_000_000),
            power_max: Some(limits.watts * 1_000_000),
            fan: (!wormhole).then_some(if kind.has_fan() { 1200 } else { NO_FAN }),
        }
    }
}

/// Addresses of the function and of the bridge above it, in the order of indices.
fn place_on_bus(kind: BoardKind, index: u32) -> (String, String) {
    // The driver numbers the chips of a Galaxy by their bus: high digit for the tray, low digit for the chip.
    let trays = match kind {
        BoardKind::GalaxyWormhole => [0xC0, 0x80, 0x00, 0x40],
        BoardKind::GalaxyBlackhole => [0x00, 0x40, 0xC0, 0x80],
        _ => {
            let root = index % 32 * 8;
            return (format!("0000:{:02x}:00.0", root + 1), format!("0000:{root:02x}:01.1"));
        }
    };
    let (root, chip) = (trays[(index / 8 % 4) as usize], index % 8 + 1);
    (format!("0000:{:02x}:00.0", root + chip), format!("0000:{root:02x}:{chip:02x}.1"))
}

/// Shaped like real ones: bits 36 and up are the kind of board, the rest counts.
fn serial(kind: BoardKind, index: u32) -> u64 {
    let (base, board) = match kind {
        BoardKind::GalaxyWormhole => (0x0100_0001_0000_0000, index / 8),
        BoardKind::GalaxyBlackhole => (0x0000_0003_3000_0000, index / 8),
        BoardKind::N150 | BoardKind::N300 => (0x0100_0005_1170_C0C4, index),
        _ => (0x0000_0003_3191_4049, index / kind.functions()),
    };
    (base | u64::from(kind.number()) << 36) + u64::from(board)
}

fn config(arch: Arch, subsystem: u16, revision: u8) -> Vec<u8> {
    let mut config = vec![0; 64];
    let mut word = |at: usize, value: u16| config[at..at + 2].copy_from_slice(&value.to_le_bytes());
    word(0x00, super::files::VENDOR);
    word(0x02, super::files::device_number(arch));
    word(0x04, 0x0406);
    word(0x06, 0x0010);
    word(0x08, revision.into());
    word(0x0A, 0x1200);
    word(0x2C, super::files::VENDOR);
    word(0x2E, subsystem);
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_chips_are_those_of_tt_umd() {
        let n300 = Chip { serial: Some(0x0100_0145_1170_C0C4), ..Chip::n300(0) };
        assert_eq!(n300.unique_ids(), [9_956_278_468, 14_251_245_764]);
        let p300 = Chip { serial: Some(0x0000_0451_3190_F004), ..Chip::p300a(1) };
        assert_eq!(p300.unique_ids(), [(0x0000_0451_3190_F004 << 5) | 1]);
        let n150 = Chip::n150(3);
        assert_eq!(n150.unique_ids(), [n150.serial.unwrap()]);
        let p150 = Chip::p150b(3);
        assert_eq!(p150.unique_ids(), [p150.asic_id.unwrap()]);
        let galaxy = Chip { serial: Some(0x0100_0351_0000_0000), ..Chip::galaxy_wormhole(10) };
        assert_eq!(galaxy.unique_ids(), [0x0300_0351_0000_0000]);
    }

    #[test]
    fn a_galaxy_is_numbered_by_its_buses() {
        let bus = |chip: Chip| chip.address[5..7].to_owned();
        let wormhole = [0, 7, 8, 16, 31].map(|n| bus(Chip::galaxy_wormhole(n)));
        assert_eq!(wormhole, ["c1", "c8", "81", "01", "48"]);
        let blackhole = [0, 8, 16, 31].map(|n| bus(Chip::galaxy_blackhole(n)));
        assert_eq!(blackhole, ["01", "41", "c1", "88"]);
    }

    #[test]
    fn the_chips_of_a_board_share_its_serial_number() {
        assert_eq!(Chip::p300a(0).serial, Chip::p300a(1).serial);
        assert_ne!(Chip::p300a(1).serial, Chip::p300a(2).serial);
        assert_eq!(Chip::galaxy_blackhole(8).serial, Chip::galaxy_blackhole(15).serial);
        assert_ne!(Chip::galaxy_blackhole(7).serial, Chip::galaxy_blackhole(8).serial);
        let kind = |chip: Chip| chip.serial.unwrap() >> 36 & 0xF_FFFF;
        assert_eq!([kind(Chip::n300(1)), kind(Chip::p150a(1)), kind(Chip::galaxy_wormhole(1))], [0x14, 0x40, 0x35]);
    }
}
