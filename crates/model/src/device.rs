//! One chip.

use crate::{Amperes, Bytes, BytesPerSecond, Celsius, DeviceId, Megahertz, PciAddress, Rpm, Volts, Watts};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One chip as it was at the moment of the snapshot. What was not measured is `None`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// What people call it.
    #[serde(flatten)]
    pub id: DeviceId,
    /// Where it is. A remote chip has the address of its gateway.
    pub pci_address: Option<PciAddress>,
    /// Chip generation.
    pub arch: Option<Arch>,
    /// Board name as the driver spells it: `p150a`, `n300`, `galaxy-wormhole`.
    pub board: Option<Arc<str>>,
    /// Board id, 16 hex digits. The chips of one board share it.
    pub serial: Option<Arc<str>>,
    /// Chip id, 16 hex digits.
    pub asic_id: Option<Arc<str>>,
    /// How it is.
    pub state: State,
    /// How old the readings are. Absent when there never were any.
    pub sample_age_seconds: Option<f64>,
    /// The memory node of the host that it hangs on.
    pub numa_node: Option<u32>,
    /// Chip temperature.
    #[serde(rename = "asic_temp_celsius")]
    pub asic_temp: Option<Celsius>,
    /// Above this the firmware throttles.
    #[serde(rename = "asic_temp_max_celsius")]
    pub asic_temp_max: Option<Celsius>,
    /// Power of the chip (not of the board).
    #[serde(rename = "power_watts")]
    pub power: Option<Watts>,
    /// Power limit of the chip.
    #[serde(rename = "power_max_watts")]
    pub power_max: Option<Watts>,
    /// Core voltage.
    #[serde(rename = "vcore_volts")]
    pub vcore: Option<Volts>,
    /// Core voltage limit.
    #[serde(rename = "vcore_max_volts")]
    pub vcore_max: Option<Volts>,
    /// Core current.
    #[serde(rename = "current_amperes")]
    pub current: Option<Amperes>,
    /// Core current limit.
    #[serde(rename = "current_max_amperes")]
    pub current_max: Option<Amperes>,
    /// Absent on passively cooled boards, and on Wormhole.
    #[serde(rename = "fan_rpm")]
    pub fan: Option<Rpm>,
    /// Clock of the Tensix cores.
    #[serde(rename = "aiclk_megahertz")]
    pub aiclk: Option<Megahertz>,
    /// Clock of the AXI bus.
    #[serde(rename = "axiclk_megahertz")]
    pub axiclk: Option<Megahertz>,
    /// Clock of the management core.
    #[serde(rename = "arcclk_megahertz")]
    pub arcclk: Option<Megahertz>,
    /// Counts up about ten times a second while the firmware lives.
    pub heartbeat: Option<u32>,
    /// Shutdowns by critical temperature since the last power cycle.
    pub thermal_trips: Option<u32>,
    /// The same, counted on when a power cycle has set it back while it was watched.
    #[serde(default)]
    pub thermal_trips_total: Option<u64>,
    /// Who holds tt-umd's lock on the chip.
    pub in_use_by_pid: Option<u32>,
    /// Openers of the device that cannot be named here: they live in a PID namespace that this one does not see.
    pub foreign_holders: u32,
    /// The PCIe link.
    pub pcie: Link,
    /// Firmware versions.
    pub firmware: Firmware,
    /// Device memory.
    pub memory: Memory,
}

/// Chip generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// n150, n300, Galaxy.
    Wormhole,
    /// p100, p150, p300, Blackhole Galaxy.
    Blackhole,
}

/// How a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It answers.
    Ok,
    /// A reset is under way (the driver answers `ENODATA`).
    Resetting,
    /// It answers all-ones, or its heartbeat has stood still for three seconds.
    Hung,
    /// No answer within the deadline. A reset or a sick chip can hold a reader for ten seconds.
    Silent,
    /// It was there and is gone.
    Lost,
    /// The PCI function is there, but no driver is bound to it.
    #[serde(rename = "no driver")]
    NoDriver,
    /// A chip without PCIe, reached through its neighbour. Its telemetry cannot be read without disturbing it.
    Remote,
}

/// The PCIe link and what goes over it.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// PCIe generation now: 1 to 6.
    pub generation: Option<u8>,
    /// Lanes now.
    pub width: Option<u8>,
    /// The best generation of slot and card.
    pub max_generation: Option<u8>,
    /// The most lanes of slot and card.
    pub max_width: Option<u8>,
    /// From the second sample on.
    #[serde(rename = "host_to_device_bytes_per_second")]
    pub host_to_device: Option<BytesPerSecond>,
    /// From the second sample on.
    #[serde(rename = "device_to_host_bytes_per_second")]
    pub device_to_host: Option<BytesPerSecond>,
    /// What has gone that way since the counters were first read; it never falls, whatever the chip's counters do. What went
    /// while nobody could look is missing.
    #[serde(default, rename = "host_to_device_bytes_total")]
    pub host_to_device_total: Option<Bytes>,
    /// Likewise.
    #[serde(default, rename = "device_to_host_bytes_total")]
    pub device_to_host_total: Option<Bytes>,
}

/// Firmware versions as the driver spells them.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Firmware {
    /// The bundle, which names all the others.
    pub bundle: Option<Arc<str>>,
    /// Board management, application.
    pub dm_app: Option<Arc<str>>,
    /// Board management, boot loader (Wormhole).
    pub dm_bootloader: Option<Arc<str>>,
    /// Chip management (Wormhole).
    pub arc: Option<Arc<str>>,
    /// Ethernet (Wormhole).
    pub ethernet: Option<Arc<str>>,
    /// The tt-flash that wrote the bundle (Wormhole).
    pub tt_flash: Option<Arc<str>>,
}

/// Device memory: what there is, and what living processes hold of it.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Physical DRAM of the chip.
    #[serde(rename = "dram_total_bytes")]
    pub dram_total: Option<Bytes>,
    /// DRAM held by living processes.
    #[serde(rename = "dram_used_bytes")]
    pub dram_used: Option<Bytes>,
    /// L1 of the enabled Tensix cores.
    #[serde(rename = "l1_total_bytes")]
    pub l1_total: Option<Bytes>,
    /// L1 buffers of living processes.
    #[serde(rename = "l1_used_bytes")]
    pub l1_used: Option<Bytes>,
    /// Buffers in the small L1 region.
    #[serde(rename = "l1_small_used_bytes")]
    pub l1_small_used: Option<Bytes>,
    /// Recorded command traces (in DRAM).
    #[serde(rename = "trace_used_bytes")]
    pub trace_used: Option<Bytes>,
    /// Circular buffers (in L1).
    #[serde(rename = "cb_used_bytes")]
    pub cb_used: Option<Bytes>,
    /// Bytes that the books still carry for processes that are dead. Never part of the used figures.
    #[serde(rename = "stale_bytes")]
    pub stale: Option<Bytes>,
    /// Processes that hold the device and tell nobody how much: the used figures lack theirs.
    pub untracked_processes: u32,
}

impl Device {
    /// A device of which nothing is known but its name.
    pub fn new(id: DeviceId) -> Device {
        Device {
            id,
            pci_address: None,
            arch: None,
            board: None,
            serial: None,
            asic_id: None,
            state: State::Ok,
            sample_age_seconds: None,
            numa_node: None,
            asic_temp: None,
            asic_temp_max: None,
            power: None,
            power_max: None,
            vcore: None,
            vcore_max: None,
            current: None,
            current_max: None,
            fan: None,
            aiclk: None,
            axiclk: None,
            arcclk: None,
            heartbeat: None,
            thermal_trips: None,
            thermal_trips_total: None,
            in_use_by_pid: None,
            foreign_holders: 0,
            pcie: Link::default(),
            firmware: Firmware::default(),
            memory: Memory::default(),
        }
    }

    /// The board id as a number. Neither zero nor all-ones, which a dead chip answers, is one.
    pub fn serial_number(&self) -> Option<u64> {
        number_of(self.serial.as_deref())
    }

    /// The chip id as a number, likewise.
    pub fn asic_number(&self) -> Option<u64> {
        number_of(self.asic_id.as_deref())
    }

    /// An id that no other chip has, in nvidia-smi's manner: `TT-8F3A6C21D4E5B790`.
    pub fn uuid(&self) -> Option<String> {
        let id = self.asic_id.as_ref().or(self.serial.as_ref())?;
        Some(if matches!(self.id, DeviceId::Remote(_)) { format!("TT-{id}-R") } else { format!("TT-{id}") })
    }

    /// Whether the link runs slower or narrower than slot and card could.
    pub fn link_is_degraded(&self) -> bool {
        let below = |now: Option<u8>, max: Option<u8>| matches!((now, max), (Some(now), Some(max)) if now < max);
        below(self.pcie.generation, self.pcie.max_generation) || below(self.pcie.width, self.pcie.max_width)
    }
}

fn number_of(hex: Option<&str>) -> Option<u64> {
    u64::from_str_radix(hex?, 16).ok().filter(|n| ![0, u64::MAX].contains(n))
}

impl Arch {
    /// The name that people and the driver use.
    pub fn name(self) -> &'static str {
        match self {
            Arch::Wormhole => "wormhole",
            Arch::Blackhole => "blackhole",
        }
    }
}

impl State {
    /// As JSON, tables and queries spell it.
    pub fn name(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Resetting => "resetting",
            State::Hung => "hung",
            State::Silent => "silent",
            State::Lost => "lost",
            State::NoDriver => "no driver",
            State::Remote => "remote",
        }
    }
}
