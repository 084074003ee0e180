//! Which lines of the kernel's log are about our devices, and what they mean.
//!
//! Ours are the driver's own lines, those of firmware that it forwards (`SMC: …`, `DMC: …`), and what the kernel says of the PCIe
//! link or the IOMMU with the address of a device or of a bridge above it. The table has all that the driver says, from 1.34 to what
//! is proposed for 2.11.

use super::record::Record;
use crate::devices::is_pci_address;
use model::KernelMessageKind::{self, *};
use model::Weight::{self, *};
use model::{DeviceId, PciAddress};

/// Where our devices are.
#[derive(Debug, Default, Clone)]
pub struct PciPlaces(pub Vec<PciPlace>);

/// Where one device is.
#[derive(Debug, Clone)]
pub struct PciPlace {
    /// Its name.
    pub id: DeviceId,
    /// Its address.
    pub address: PciAddress,
    /// The bridges above it.
    pub bridges: Vec<PciAddress>,
}

/// A line that is about one of our devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meaning {
    /// What it is about.
    pub kind: KernelMessageKind,
    /// How much it matters.
    pub weight: Weight,
    /// The device, where it is about one.
    pub device: Option<DeviceId>,
    /// The address that the line names.
    pub pci_address: Option<PciAddress>,
    /// What it means. Absent where the kernel's own text says it.
    pub sentence: Option<&'static str>,
    /// Whether it is a detail of an error that a line before it has reported.
    pub is_detail: bool,
}

/// What the driver says begins so, or has this in it.
struct Known(&'static str, KernelMessageKind, Weight, &'static str);

static DRIVER: &[Known] = &[
    Known("Timeout waiting for ARC response", Timeout, Bad, "the firmware did not answer the driver in time"),
    Known(
        "Timeout waiting for space in ARC message queue",
        Timeout,
        Bad,
        "the firmware takes no messages of the driver",
    ),
    Known("Timed out waiting for FW telemetry", Timeout, Warning, "the firmware did not publish telemetry in time"),
    Known("Timeout waiting for ARC FW initialization", Timeout, Bad, "the firmware did not start in time"),
    Known("Timeout waiting for SPI bootrom", Timeout, Bad, "the firmware did not start in time"),
    Known("FW message timeout", Timeout, Bad, "the firmware did not answer the driver in time"),
    Known("hung executing message", Timeout, Bad, "the firmware hangs in a message of the driver"),
    Known(
        "Watchdog is disabled and device is unresponsive",
        Reset,
        Bad,
        "the device does not respond, and cannot be reset",
    ),
    Known("Device is unresponsive, cannot reset", Reset, Bad, "the device does not respond, and cannot be reset"),
    Known("NOC is likely hung", Reset, Bad, "the driver could not reach the firmware for a reset"),
    Known("returned all-1s; device gone?", PcieError, Bad, "the device does not answer on PCIe"),
    Known("device timeout during link up", PcieError, Warning, "the PCIe link did not come up in time"),
    Known("pcie init failed", PcieError, Warning, "the PCIe link could not be restored after a reset"),
    Known(
        "Failed to set initial power state",
        Power,
        Warning,
        "the firmware did not take the power state of a process that opened the device",
    ),
    Known("Failed to send ARC message for A0 state", Power, Warning, "the firmware did not take the order to power up"),
    Known(
        "Failed to send ARC message for A3 state",
        Power,
        Warning,
        "the firmware did not take the order to power down",
    ),
    Known(
        "Failed to set ARC watchdog timeout",
        Firmware,
        Note,
        "the firmware did not take the driver's watchdog time, as old firmware does",
    ),
    Known("due to FW not running", Firmware, Warning, "the firmware is not running, and the driver left out a message"),
    Known("FW message unrecognized", Firmware, Warning, "the firmware does not know a message of the driver"),
    Known("ARC message queue not available", Firmware, Note, "the firmware has no message queue, as old firmware"),
    Known("FW log forwarding enabled", Firmware, Note, "the firmware's log is forwarded"),
    Known("FW log forwarding disabled", Firmware, Note, "the firmware's log is not forwarded: that needs an IOMMU"),
    Known("FW log: sequence gap", Firmware, Warning, "lines of the firmware's log were lost"),
    Known("FW log: bad record", Firmware, Warning, "the firmware's log cannot be read"),
    Known("FW log buffer corrupted", Firmware, Warning, "the firmware's log cannot be read until the next reset"),
    Known("FW log: firmware did not initialize buffer", Firmware, Warning, "the firmware's log is not forwarded"),
    Known(
        "FW log: protocol version mismatch",
        Firmware,
        Warning,
        "the firmware's log is not forwarded: its version is not the driver's",
    ),
    Known("FW log: buffer allocation failed", Firmware, Warning, "the firmware's log is not forwarded: no memory"),
    Known("Telemetry not available", Telemetry, Warning, "the firmware has published no telemetry"),
    Known(
        "Unsupported telemetry version",
        Telemetry,
        Warning,
        "the driver does not know this version of the firmware's telemetry",
    ),
    Known("has invalid address", Telemetry, Warning, "a telemetry tag of the firmware has an invalid address"),
    Known("Failed to initialize hwmon", Telemetry, Warning, "the driver could not offer its sensors"),
    Known("too old for hwmon support", Telemetry, Warning, "the firmware is too old for sensors"),
    Known("Failed to read ARC FW version", Telemetry, Note, "the firmware does not say its version, as old firmware"),
    Known("PCIe perf counters unavailable", Telemetry, Warning, "the driver could not offer its PCIe counters"),
    Known("pin_user_pages_longterm failed", HostMemory, Warning, "a process could not pin host memory for the device"),
    Known("could only pin", HostMemory, Warning, "a process could not pin host memory for the device"),
    Known("vzalloc failed", HostMemory, Warning, "the host has too little memory to pin more for the device"),
    Known(
        "alloc_chained_sgt_for_pages failed",
        HostMemory,
        Warning,
        "the host has too little memory to pin more for the device",
    ),
    Known("dma_map_sg failed", HostMemory, Warning, "host memory could not be mapped for the device"),
    Known("discontiguous mapping", HostMemory, Warning, "host memory could not be mapped for the device in one piece"),
    Known("dma-mapped (", HostMemory, Warning, "host memory could not be mapped for the device in one piece"),
    Known(
        "pages discontiguous",
        HostMemory,
        Warning,
        "host memory that a process pins is not in one piece: huge pages or an IOMMU are needed",
    ),
    Known(
        "Failed to allocate mmap_vma on fork()",
        HostMemory,
        Warning,
        "a forked process has lost its mappings of the device",
    ),
    Known("Device initialization failed", Other, Bad, "the driver could not start the device"),
    Known("Unsupported device", Other, Warning, "the driver does not support this device"),
    Known(
        "Galaxy ordinal",
        Other,
        Warning,
        "the number of this place in the Galaxy is in use, and the device has another one",
    ),
    Known("Found a Tenstorrent", Other, Note, "the driver has found the device"),
    Known("Clearing untrusted flag", Other, Note, "the driver trusts a device behind an external port"),
    Known("Unloading Tenstorrent AI driver module", Other, Note, "the driver is unloaded"),
    Known("Loading Tenstorrent AI driver module", Other, Note, "the driver is loaded"),
];

/// What the kernel says of PCIe, by what is in the line. The first one counts.
static PCIE: &[Known] = &[
    Known("containment event", PcieError, Bad, "PCIe errors have closed the port (DPC)"),
    Known("Link Down", PcieError, Bad, "the PCIe link is down"),
    Known("Card not present", PcieError, Bad, "the card is not in its slot any more"),
    Known("recovery failed", PcieError, Bad, "the device has not recovered from a PCIe error"),
    Known("recovery successful", PcieError, Note, "the device has recovered from a PCIe error"),
    Known("can't recover", PcieError, Bad, "the device cannot recover from a PCIe error"),
    Known("Uncorrect", PcieError, Bad, "an uncorrected PCIe error"),
    Known("Fatal", PcieError, Bad, "an uncorrected PCIe error"),
    Known("Correct", PcieError, Warning, "a corrected PCIe error"),
];

const PCIE_MARKS: [&str; 7] =
    ["AER:", "PCIe Bus Error:", "DPC:", "pciehp", "[Hardware Error]", "error status/mask=", "TLP Header:"];
/// Follow the line of the port that has received an error.
const PCIE_DETAILS: [&str; 4] =
    ["PCIe Bus Error:", "error status/mask=", "TLP Header:", "Error of this Agent is reported first"];
const IOMMU_MARKS: [&str; 4] = ["DMAR:", "AMD-Vi:", "arm-smmu", "iommu"];
const WARNING: u8 = 4;
const ERROR: u8 = 3;

/// What a record means, if it is about one of our devices.
pub fn of(record: &Record, places: &PciPlaces) -> Option<Meaning> {
    if !record.is_kernel {
        return None;
    }
    let text = record.text.as_str();
    let driver = text.strip_prefix("tenstorrent").filter(|rest| rest.starts_with([' ', ':']));
    let has = |marks: &[&str]| marks.iter().any(|mark| text.contains(mark));
    let is_iommu = has(&IOMMU_MARKS) && has(&["ault", "AULT", "vent"]);
    let is_pcie = has(&PCIE_MARKS);
    let (level, named) = (record.level, places.named(record));
    // Quiet lines of the kernel are about nothing that happened, but AER's first line of an error is one.
    let is_loud = level <= WARNING || (is_pcie && (has(&["rror", "Link Down", "Card not present", "recovery"])));
    match (driver, &named) {
        (Some(_), _) => {}
        (None, Some(Named::Device(_))) if is_loud => {}
        (None, Some(Named::Bridge(..))) if is_loud && (is_pcie || text.starts_with("pcieport ")) => {}
        _ => return None,
    }
    let said = driver.map_or(text, |rest| behind_address(rest));
    let is_bit = driver.is_some() && is_error_bit(said);
    let is_detail = is_bit || has(&PCIE_DETAILS);
    let by_level = match level {
        0..=2 => Bad,
        3..=WARNING => Warning,
        _ => Note,
    };
    let known = |table: &'static [Known]| table.iter().find(|known| text.contains(known.0));
    let (kind, weight, sentence) = if is_iommu {
        (IommuFault, Bad, Some("the IOMMU refused a memory access of the device"))
    } else if is_pcie || is_bit {
        match known(PCIE) {
            Some(&Known(_, kind, weight, sentence)) => (kind, weight, Some(sentence)),
            None => (PcieError, if level <= ERROR { Bad } else { by_level }, None),
        }
    } else if driver.is_some() && (said.starts_with("SMC: ") || said.starts_with("DMC: ")) {
        (Firmware, by_level, None)
    } else {
        match known(DRIVER).filter(|_| driver.is_some()) {
            Some(&Known(_, kind, weight, sentence)) => (kind, weight, Some(sentence)),
            None => (Other, by_level, None),
        }
    };
    let (device, pci_address) = match named {
        Some(Named::Device(place)) => (Some(place.id.clone()), Some(place.address.clone())),
        Some(Named::Bridge(address, below)) => (below.map(|place| place.id.clone()), Some(address)),
        // The driver names a device that is not there yet, or not any more.
        None => {
            let address = addresses(text).find(|address| is_pci_address(address)).map(|text| PciAddress(text.into()));
            (address.clone().map(DeviceId::NoDriver), address)
        }
    };
    Some(Meaning { kind, weight, device, pci_address, sentence, is_detail })
}

/// The kernel's text without what precedes the message: driver and address.
pub fn message(text: &str) -> &str {
    match text.strip_prefix("tenstorrent").filter(|rest| rest.starts_with([' ', ':'])) {
        Some(rest) => behind_address(rest),
        None => text,
    }
}

/// What a line names.
enum Named<'a> {
    Device(&'a PciPlace),
    /// A bridge, and the device below it, if there is only one.
    Bridge(PciAddress, Option<&'a PciPlace>),
}

impl PciPlaces {
    fn named(&self, record: &Record) -> Option<Named<'_>> {
        let own = record.pci_address.as_deref();
        // An error that a bridge reports names the device behind it in its text.
        let all = || addresses(&record.text).chain(own);
        if let Some(place) = all().find_map(|name| self.0.iter().find(|place| is_same(&place.address, name))) {
            return Some(Named::Device(place));
        }
        all().find_map(|name| {
            let above = |place: &&PciPlace| place.bridges.iter().any(|bridge| is_same(bridge, name));
            let mut below = self.0.iter().filter(above);
            let first = below.next()?;
            let bridge = first.bridges.iter().find(|bridge| is_same(bridge, name))?;
            Some(Named::Bridge(bridge.clone(), Some(first).filter(|_| below.next().is_none())))
        })
    }
}

/// Whether a text is this address. Some lines leave out the domain where it is zero.
fn is_same(address: &PciAddress, text: &str) -> bool {
    let full = &*address.0;
    full.eq_ignore_ascii_case(text) || full.strip_prefix("0000:").is_some_and(|short| short.eq_ignore_ascii_case(text))
}

/// All addresses in a text: `0000:01:00.0` or `01:00.0`.
fn addresses(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_ascii_hexdigit() || c == ':' || c == '.'));
    words.filter(|word| word.len() >= 7).filter_map(|word| {
        let word = word.trim_matches([':', '.']);
        // The end of a word before it may look like a part of it: `device:0000:01:00.0`.
        let mut ends = std::iter::once(0).chain(word.match_indices(':').map(|(at, _)| at + 1)).map(|at| &word[at..]);
        ends.find(|end| is_pci_address(end) || is_short_address(end))
    })
}

fn is_short_address(text: &str) -> bool {
    matches!(text.as_bytes(), [a, b, b':', c, d, b'.', function] if
        [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()) && function.is_ascii_digit())
}

/// ` 0000:01:00.0: Message`, or `: Message` → `Message`
fn behind_address(rest: &str) -> &str {
    rest.split_once(": ").map_or(rest, |(_, said)| said)
}

/// A line of AER's that names one error: `   [ 0] RxErr                  (First)`.
fn is_error_bit(said: &str) -> bool {
    let Some((number, name)) = said.trim_start().strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return false;
    };
    said.starts_with(' ') && !name.is_empty() && number.trim().parse::<u8>().is_ok()
}
