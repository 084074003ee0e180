//! Sums that continue whatever happens to the chip's own counters: traffic over PCIe in bytes, and thermal trips.

use model::{Counters, Device, Transferred};
use std::time::Instant;

/// The sums of one device since it was first read.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Totals {
    /// Of which card they are.
    serial: Option<u64>,
    transferred: Transferred,
    /// The last counters that were read, when, and whether the device was well ever since.
    counted: Option<(Counters, Instant, bool)>,
    /// The last count of thermal trips, and their sum.
    trips: Option<(u32, u64)>,
}

impl Totals {
    /// Begins at zero for another card than before, and says so.
    pub fn begin(&mut self, serial: Option<u64>) -> bool {
        let is_other = self.serial.zip(serial).is_some_and(|(was, is)| was != is);
        if is_other {
            *self = Totals::default();
        }
        self.serial = serial.or(self.serial);
        is_other
    }

    /// Adds the sums of the time before.
    pub fn add_earlier(&mut self, before: &Totals) {
        self.transferred.host_to_device += before.transferred.host_to_device;
        self.transferred.device_to_host += before.transferred.device_to_host;
        self.trips = match (self.trips, before.trips) {
            // What the chip counts it has counted in both places.
            (Some((now, _)), Some((last, sum))) => Some((now, sum + u64::from(now.checked_sub(last).unwrap_or(now)))),
            (now, before) => now.or(before),
        };
    }

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
