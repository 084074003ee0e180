//! The table of attributes: which file of the driver fills which figure of a device, and how.
//!
//! One decimal, hex or dotted value a file, in three folders ([`Folder`]). The driver hides an attribute, or answers `ENODATA`, when
//! the firmware lacks the telemetry tag. How often a file is read follows from the figure ([`model::figure::Freshness`]), and so does
//! what is kept from the sample before. A new attribute of the driver is one row here.

use super::parse::{self, Number, Parse};
use super::pcie;
use crate::devices;
use crate::dir::{Dir, Trouble};
use model::figure::device as figures;
use model::figure::{Figure, Value};
use model::{Arch, Board, Device};

/// One file of the driver or of the kernel, and the figure that it fills.
pub struct Attribute {
    /// Where the file is.
    pub folder: Folder,
    /// Its name.
    pub file: &'static str,
    /// The figure that it fills. Its freshness says how often the file is read.
    pub figure: &'static Figure<Device>,
    /// Which label of the figure it fills; 0 where the figure has none.
    pub label: usize,
    /// The only chips that have it. Absent: all.
    pub only: Option<Arch>,
    /// How its text becomes a value.
    pub(crate) parse: Parse,
}

/// A folder of one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Folder {
    /// `/sys/class/tenstorrent/tenstorrent!<N>/`: identity, clocks in MHz, counters, firmware versions.
    Class,
    /// `…/device/hwmon/hwmon*/`: sensors and their limits, in the units of the hwmon ABI: m°C, µW, mV, mA, rpm.
    Hwmon,
    /// `…/device/`: what the kernel knows of the PCI function and its link.
    Pci,
}

use Folder::{Class, Hwmon, Pci};

/// All attributes, in the order in which they are read.
///
/// The clock comes first: on a chip that does not respond each read may stall, and the config space then tells enough.
pub static ATTRIBUTES: &[Attribute] = &[
    row(Class, "tt_aiclk", &figures::AICLK, Parse::Number(MEGAHERTZ)),
    row(Class, "tt_heartbeat", &figures::HEARTBEAT, Parse::Number(COUNT)),
    row(Hwmon, "temp1_input", &figures::ASIC_TEMP, Parse::Number(TEMPERATURE)),
    row(Hwmon, "power1_input", &figures::POWER, Parse::Number(MICROWATTS)),
    row(Hwmon, "fan1_input", &figures::FAN, Parse::Number(FAN_SPEED)),
    // Firmware 19.11 and later allows this limit to change at any time.
    row(Hwmon, "power1_max", &figures::POWER_MAX, Parse::Number(limit(MICROWATTS))),
    row(Hwmon, "in0_input", &figures::VCORE, Parse::Number(MILLIVOLTS)),
    row(Hwmon, "curr1_input", &figures::CURRENT, Parse::Number(MILLIAMPERES)),
    row(Class, "tt_axiclk", &figures::AXICLK, Parse::Number(MEGAHERTZ)),
    row(Class, "tt_arcclk", &figures::ARCCLK, Parse::Number(MEGAHERTZ)),
    row(Class, "tt_therm_trip_count", &figures::THERMAL_TRIPS, Parse::Number(COUNT)),
    row(Pci, "current_link_speed", &figures::PCIE_GENERATION, Parse::Text(parse::link_speed)),
    row(Pci, "current_link_width", &figures::PCIE_WIDTH, Parse::Text(parse::link_width)),
    row(Class, "tt_card_type", &figures::BOARD, Parse::Text(parse::board_name)),
    row(Pci, "uevent", &figures::ARCH, Parse::Special(arch)),
    row(Pci, "numa_node", &figures::NUMA_NODE, Parse::Text(parse::numa_node)),
    row(Class, "tt_serial", &figures::SERIAL, Parse::Text(parse::hex_id)),
    row(Class, "tt_asic_id", &figures::ASIC_ID, Parse::Text(parse::hex_id)),
    row(Class, "tt_fw_bundle_ver", &figures::FIRMWARE_BUNDLE, Parse::Text(parse::version)),
    row(Class, "tt_m3app_fw_ver", &figures::FIRMWARE_DM_APP, Parse::Text(parse::version)),
    wormhole("tt_m3bl_fw_ver", &figures::FIRMWARE_DM_BOOTLOADER),
    wormhole("tt_arc_fw_ver", &figures::FIRMWARE_ARC),
    wormhole("tt_eth_fw_ver", &figures::FIRMWARE_ETHERNET),
    wormhole("tt_ttflash_ver", &figures::FIRMWARE_TT_FLASH),
    row(Hwmon, "temp1_max", &figures::ASIC_TEMP_MAX, Parse::Number(limit(MILLIDEGREES))),
    row(Hwmon, "in0_max", &figures::VCORE_MAX, Parse::Number(limit(Number { all_ones: Some(65_535), ..MILLIVOLTS }))),
    row(Hwmon, "curr1_max", &figures::CURRENT_MAX, Parse::Number(limit(MILLIAMPERES))),
    row(Pci, "max_link_speed", &figures::PCIE_MAX_GENERATION, Parse::Special(pcie::max_generation)),
    row(Pci, "max_link_width", &figures::PCIE_MAX_WIDTH, Parse::Special(pcie::max_width)),
];

// What the driver's arithmetic makes of a register that reads all-ones, in 32 bits.
const ALL_ONES: u64 = u32::MAX as u64;
const ALL_ONES_KILO: u64 = 4_294_966_296;
const ALL_ONES_MEGA: u64 = 4_293_967_296;

const COUNT: Number = Number { all_ones: Some(ALL_ONES), ..Number::COUNT };
const MEGAHERTZ: Number = Number { all_ones: Some(ALL_ONES), plausible: 0..=9_999, ..Number::COUNT };
const MILLIDEGREES: Number =
    Number { all_ones: Some(ALL_ONES_KILO), plausible: 0..=150_000, per_unit: 1e3, ..Number::COUNT };
const TEMPERATURE: Number =
    Number { all_ones: Some(65_535_999), plausible: -40_000..=150_000, signed: true, ..MILLIDEGREES };
const MICROWATTS: Number =
    Number { all_ones: Some(ALL_ONES_MEGA), plausible: 0..=999_999_999, per_unit: 1e6, ..Number::COUNT };
const MILLIVOLTS: Number = Number { all_ones: Some(ALL_ONES), plausible: 1..=1_999, per_unit: 1e3, ..Number::COUNT };
const MILLIAMPERES: Number =
    Number { all_ones: Some(ALL_ONES_KILO), plausible: 0..=999_999, per_unit: 1e3, ..Number::COUNT };
/// All-ones does not mean a chip that does not respond here: the firmware says that it controls no fan.
const FAN_SPEED: Number = Number { absent: Some(ALL_ONES), plausible: 0..=29_999, ..Number::COUNT };

/// A firmware that knows no limit says 0.
const fn limit(number: Number) -> Number {
    Number { absent: Some(0), ..number }
}

const fn row(folder: Folder, file: &'static str, figure: &'static Figure<Device>, parse: Parse) -> Attribute {
    Attribute { folder, file, figure, label: 0, only: None, parse }
}

/// A firmware version that only Wormhole has.
const fn wormhole(file: &'static str, figure: &'static Figure<Device>) -> Attribute {
    Attribute { only: Some(Arch::Wormhole), ..row(Class, file, figure, Parse::Text(parse::version)) }
}

impl Attribute {
    /// Reads the file and sets the figure, or clears it where there is no value.
    pub(crate) fn read(&self, folder: Option<&Dir>, device: &mut Device, trouble: &mut Trouble) {
        let exists = self.only.is_none_or(|arch| device.arch == Some(arch));
        let mut buffer = [0; 256];
        let value = folder.filter(|_| exists).and_then(|folder| match &self.parse {
            Parse::Special(read) => read(folder, device, trouble),
            Parse::Number(number) => parse::read(folder, self.file, |text| number.parse(text), &mut buffer, trouble),
            Parse::Text(parse) => parse::read(folder, self.file, parse, &mut buffer, trouble),
        });
        trouble.values += u32::from(self.folder != Pci && value.is_some());
        (self.figure.set)(device, self.label, &value.unwrap_or(Value::Absent));
    }
}

/// The name of a known board makes asking the PCI function unnecessary.
fn arch(pci: &Dir, device: &Device, trouble: &mut Trouble) -> Option<Value<'static>> {
    let of_board = device.board.as_deref().and_then(Board::named).map(Board::arch);
    let arch = of_board.or_else(|| devices::pci_facts(pci, trouble).arch)?;
    Some(Value::text(arch.name()))
}
