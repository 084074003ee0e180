//! One chip.

use crate::{
    Activity, Amperes, Bytes, BytesPerSecond, Celsius, Deep, DeviceId, Joules, Megahertz, PciAddress, Rpm, Unverified,
    Usage, Volts, Watts,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One chip as it was at the moment of the snapshot. What was not measured is `None`.
///
/// Each field is a figure: its row in [`crate::figure::device`] says what it is.
#[expect(missing_docs, reason = "the row of each figure has its sentence")]
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Device {
    #[serde(flatten)]
    pub id: DeviceId,
    /// A remote chip has the address of its gateway.
    pub pci_address: Option<PciAddress>,
    pub arch: Option<Arch>,
    pub board: Option<Arc<str>>,
    pub serial: Option<Arc<str>>,
    pub asic_id: Option<Arc<str>>,
    pub state: State,
    /// Absent when there never were any readings.
    pub sample_age_seconds: Option<f64>,
    pub numa_node: Option<u32>,
    #[serde(rename = "asic_temp_celsius")]
    pub asic_temp: Option<Celsius>,
    #[serde(rename = "asic_temp_max_celsius")]
    pub asic_temp_max: Option<Celsius>,
    #[serde(rename = "power_watts")]
    pub power: Option<Watts>,
    #[serde(rename = "power_max_watts")]
    pub power_max: Option<Watts>,
    #[serde(rename = "vcore_volts")]
    pub vcore: Option<Volts>,
    #[serde(rename = "vcore_max_volts")]
    pub vcore_max: Option<Volts>,
    #[serde(rename = "current_amperes")]
    pub current: Option<Amperes>,
    #[serde(rename = "current_max_amperes")]
    pub current_max: Option<Amperes>,
    #[serde(rename = "energy_joules_total")]
    pub energy_total: Option<Joules>,
    #[serde(rename = "fan_rpm")]
    pub fan: Option<Rpm>,
    #[serde(rename = "aiclk_megahertz")]
    pub aiclk: Option<Megahertz>,
    #[serde(rename = "axiclk_megahertz")]
    pub axiclk: Option<Megahertz>,
    #[serde(rename = "arcclk_megahertz")]
    pub arcclk: Option<Megahertz>,
    pub heartbeat: Option<u32>,
    pub heartbeat_verified: Option<bool>,
    pub thermal_trips: Option<u32>,
    pub thermal_trips_total: Option<u64>,
    pub in_use_by_pid: Option<u32>,
    pub foreign_holders: u32,
    #[serde(default)]
    pub names_all_holders: bool,
    /// What all processes had it do.
    #[serde(flatten)]
    pub activity: Activity,
    pub pcie: Link,
    pub firmware: Firmware,
    pub memory: Memory,
    /// What the firmware's own table says. Only where deep reads were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deep: Option<Box<Deep>>,
}

named! {
    /// Chip generation.
    pub enum Arch {
        /// n150, n300, Galaxy.
        Wormhole = "wormhole",
        /// p100, p150, p300, Blackhole Galaxy.
        Blackhole = "blackhole",
    }
}

named! {
    /// The condition of a device.
    #[derive(Default)]
    pub enum State {
        /// It responds.
        #[default]
        Ok = "ok",
        /// Its firmware has published no telemetry: it still boots, or it has failed.
        NoTelemetry = "no telemetry",
        /// A reset is under way (the driver answers `ENODATA`).
        Resetting = "resetting",
        /// Its PCI config space or most of its readings are all-ones, or its heartbeat has stopped for three seconds.
        Hung = "hung",
        /// No answer within the deadline. A read during a reset can block for ten seconds.
        Silent = "silent",
        /// It was there before, and is not any more.
        Lost = "lost",
        /// The PCI function is there, but no driver is bound to it.
        NoDriver = "no driver",
        /// A chip without PCIe, reached through its neighbour. Its telemetry cannot be read without disturbing it.
        Remote = "remote",
    }
}

/// The PCIe link and what goes over it.
#[expect(missing_docs, reason = "the row of each figure has its sentence")]
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Link {
    pub generation: Option<u8>,
    pub width: Option<u8>,
    pub max_generation: Option<u8>,
    pub max_width: Option<u8>,
    #[serde(rename = "host_to_device_bytes_per_second")]
    pub host_to_device: Option<BytesPerSecond>,
    #[serde(rename = "device_to_host_bytes_per_second")]
    pub device_to_host: Option<BytesPerSecond>,
    /// It never falls, whatever the chip's counters do. Traffic while the device was not read is missing.
    #[serde(rename = "host_to_device_bytes_total")]
    pub host_to_device_total: Option<Bytes>,
    /// The same for the other direction.
    #[serde(rename = "device_to_host_bytes_total")]
    pub device_to_host_total: Option<Bytes>,
}

/// Firmware versions as the driver spells them. The bundle names all the others.
#[expect(missing_docs, reason = "the row of each figure has its sentence")]
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Firmware {
    pub bundle: Option<Arc<str>>,
    pub dm_app: Option<Arc<str>>,
    pub dm_bootloader: Option<Arc<str>>,
    pub arc: Option<Arc<str>>,
    pub ethernet: Option<Arc<str>>,
    pub tt_flash: Option<Arc<str>>,
}

/// Device memory: what there is, what running processes use of it, and the parts of that.
#[expect(missing_docs, reason = "the row of each figure has its sentence")]
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    #[serde(rename = "dram_total_bytes")]
    pub dram_total: Option<Bytes>,
    #[serde(rename = "dram_used_bytes")]
    pub dram_used: Option<Bytes>,
    #[serde(rename = "l1_total_bytes")]
    pub l1_total: Option<Bytes>,
    #[serde(rename = "l1_used_bytes")]
    pub l1_used: Option<Bytes>,
    #[serde(rename = "dram_bytes")]
    pub dram: Option<Bytes>,
    #[serde(rename = "l1_bytes")]
    pub l1: Option<Bytes>,
    #[serde(rename = "l1_small_used_bytes")]
    pub l1_small_used: Option<Bytes>,
    #[serde(rename = "trace_used_bytes")]
    pub trace_used: Option<Bytes>,
    #[serde(rename = "cb_used_bytes")]
    pub cb_used: Option<Bytes>,
    #[serde(rename = "kernel_bytes")]
    pub kernel: Option<Bytes>,
    #[serde(rename = "stale_bytes")]
    pub stale: Option<Bytes>,
    /// How much of the stale memory is L1, where some is.
    #[serde(rename = "stale_l1_bytes", default, skip_serializing_if = "Option::is_none")]
    pub stale_l1: Option<Bytes>,
    /// Never part of used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unverified: Option<Unverified>,
    /// None where the driver counts what is used.
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
        Device { id, ..Device::default() }
    }

    /// The board id as a number. Neither zero nor all-ones, which a hung chip answers, is one.
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
        // One lane, by generation.
        let lanes = [0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9];
        let lane = lanes.get(usize::from(self.generation?).checked_sub(1)?)?;
        Some(BytesPerSecond(lane * f64::from(self.width?))).filter(|capacity| capacity.0 > 0.0)
    }
}

impl Memory {
    /// How much of the stale memory is DRAM.
    pub fn stale_dram(&self) -> Bytes {
        let bytes = |bytes: Option<Bytes>| bytes.map_or(0, |bytes| bytes.0);
        Bytes(bytes(self.stale).saturating_sub(bytes(self.stale_l1)))
    }

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

impl Arch {
    /// The Tensix clock of a chip that works and is held back by nothing.
    pub fn full_clock(self) -> Megahertz {
        match self {
            Arch::Wormhole => Megahertz(1000),
            Arch::Blackhole => Megahertz(1350),
        }
    }
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
