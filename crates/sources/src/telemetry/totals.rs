//! Sums that continue whatever happens to the chip's own counters: traffic over PCIe in bytes, and thermal trips.

use model::{Counters, Device, Transferred};
use std::time::Instant;

/// The sums of one device since it was first read.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Totals {
    transferred: Transferred,
    /// The last counters that were read, when, and whether the device was well ever since.
    counted: Option<(Counters, Instant, bool)>,
    /// The last count of thermal trips, and their sum.
    trips: Option<(u32, u64)>,
}

impl Totals {
    /// Adds what has gone over PCIe since the counters were read before. Without counters the device was not well.
    pub fn add_traffic(&mut self, now: Option<(Counters, Instant)>, device: &Device) {
        let (Some((counters, when)), Some(arch)) = (now, device.arch) else {
            return self.interrupt();
        };
        if let Some((earlier, then, unbroken)) = self.counted {
            let seconds = (when - then).as_secs_f64();
            self.transferred.add(&earlier, &counters, seconds, unbroken, arch, &device.pcie);
        }
        self.counted = Some((counters, when, true));
    }

    /// The device was not well, or away: its counters may have restarted.
    pub fn interrupt(&mut self) {
        self.counted = self.counted.map(|(counters, when, _)| (counters, when, false));
    }

    /// Adds thermal trips. A power cycle sets the chip's own count back.
    pub fn add_trips(&mut self, trips: u32) {
        let (last, sum) = self.trips.unwrap_or_default();
        self.trips = Some((trips, sum + u64::from(trips.checked_sub(last).unwrap_or(trips))));
    }

    /// Sets the device's totals.
    pub fn show(&self, device: &mut Device) {
        device.thermal_trips_total = self.trips.map(|(_, sum)| sum);
        let transferred = self.counted.map(|_| self.transferred);
        device.pcie.host_to_device_total = transferred.map(|sum| sum.host_to_device);
        device.pcie.device_to_host_total = transferred.map(|sum| sum.device_to_host);
    }
}
