//! One chip.

use crate::{Amperes, Bytes, BytesPerSecond, Celsius, DeviceId, Megahertz, PciAddress, Rpm, Usage, Volts, Watts};
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
    /// DRAM held by running processes: buffers and traces.
    #[serde(rename = "dram_used_bytes")]
    pub dram_used: Option<Bytes>,
    /// L1 of the enabled Tensix cores.
    #[serde(rename = "l1_total_bytes")]
    pub l1_total: Option<Bytes>,
    /// L1 held by running processes: buffers, the small region and circular buffers.
    #[serde(rename = "l1_used_bytes")]
    pub l1_used: Option<Bytes>,
    /// Part of the DRAM used: buffers.
    #[serde(default, rename = "dram_bytes")]
    pub dram: Option<Bytes>,
    /// Part of the L1 used: buffers.
    #[serde(default, rename = "l1_bytes")]
    pub l1: Option<Bytes>,
    /// Part of the L1 used: buffers in the small L1 region.
    #[serde(rename = "l1_small_used_bytes")]
    pub l1_small_used: Option<Bytes>,
    /// Part of the DRAM used: recorded command traces.
    #[serde(rename = "trace_used_bytes")]
    pub trace_used: Option<Bytes>,
    /// Part of the L1 used: circular buffers.
    #[serde(rename = "cb_used_bytes")]
    pub cb_used: Option<Bytes>,
    /// Kernel code, where a process reports it. Beside L1, not part of the L1 used.
    #[serde(default, rename = "kernel_bytes")]
    pub kernel: Option<Bytes>,
    /// Memory still attributed to exited processes. Never part of the used figures.
    #[serde(rename = "stale_bytes")]
    pub stale: Option<Bytes>,
    /// Processes that hold the device and do not report how much: the used figures are a lower bound. None where the driver counts
    /// what is used.
    pub untracked_processes: u32,
    /// What the driver counts as used, where it does. It is in the used figures, and kept so that a later count does not replace it.
    #[serde(skip)]
    pub driver: DriverUsed,
}

/// What the driver counts as used on a device, over all processes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct DriverUsed {
    /// DRAM in use.
    pub dram: Option<Bytes>,
    /// L1 in use.
    pub l1: Option<Bytes>,
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
        self.pcie.is_degraded() == Some(true)
    }
}

impl Link {
    /// Whether the link runs slower or narrower than slot and card could, where that is known.
    pub fn is_degraded(&self) -> Option<bool> {
        let below = |now: Option<u8>, max: Option<u8>| Some(now? < max?);
        let (slower, narrower) = (below(self.generation, self.max_generation), below(self.width, self.max_width));
        slower.or(narrower)?;
        Some(slower == Some(true) || narrower == Some(true))
    }

    /// What the link carries in one direction, less what its line code takes.
    pub fn capacity(&self) -> Option<BytesPerSecond> {
        let lane = match self.generation? {
            1 => 0.25e9,
            2 => 0.5e9,
            3 => 0.985e9,
            4 => 1.969e9,
            5 => 3.938e9,
            6 => 7.563e9,
            _ => return None,
        };
        Some(BytesPerSecond(lane * f64::from(self.width?))).filter(|capacity| capacity.0 > 0.0)
    }
}

impl Memory {
    /// Counts what the processes on the device hold. What the driver counts as used is used as it says.
    pub fn count(&mut self, usage: Usage) {
        let Usage { dram_used, l1_used, dram, l1, l1_small, trace, cb, kernel } = usage;
        (self.dram_used, self.l1_used) = (self.driver.dram.or(dram_used), self.driver.l1.or(l1_used));
        (self.dram, self.l1) = (dram, l1);
        (self.l1_small_used, self.trace_used, self.cb_used, self.kernel) = (l1_small, trace, cb, kernel);
    }

    /// What the processes on the device hold together.
    pub fn usage(&self) -> Usage {
        Usage {
            dram_used: self.dram_used,
            l1_used: self.l1_used,
            dram: self.dram,
            l1: self.l1,
            l1_small: self.l1_small_used,
            trace: self.trace_used,
            cb: self.cb_used,
            kernel: self.kernel,
        }
    }
}

impl DriverUsed {
    /// Whether the driver counts all of the device's memory.
    pub fn is_complete(&self) -> bool {
        self.dram.is_some() && self.l1.is_some()
    }
}

fn number_of(hex: Option<&str>) -> Option<u64> {
    u64::from_str_radix(hex?, 16).ok().filter(|n| ![0, u64::MAX].contains(n))
}

named! { Arch: Wormhole = "wormhole", Blackhole = "blackhole" }

impl Arch {
    /// The Tensix clock of a chip that works and is held back by nothing.
    pub fn full_clock(self) -> Megahertz {
        match self {
            Arch::Wormhole => Megahertz(1000),
            Arch::Blackhole => Megahertz(1350),
        }
    }
}

named! {
    State: Ok = "ok", Resetting = "resetting", Hung = "hung", Silent = "silent", Lost = "lost", NoDriver = "no driver",
    Remote = "remote",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_counts_as_used_stays_whatever_processes_report() {
        let mut memory = Memory { driver: DriverUsed { dram: Some(Bytes(9)), l1: None }, ..Memory::default() };
        memory.count(Usage::measured(5, 3, 0, 0, 0));
        assert_eq!((memory.dram_used, memory.dram), (Some(Bytes(9)), Some(Bytes(5))));
        assert_eq!(memory.l1_used, Some(Bytes(3)), "which the driver does not count");
    }
}
