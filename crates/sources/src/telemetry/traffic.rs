//! PCIe traffic of one device: rates in bytes per second, from its counters of two samples.

use super::pcie;
use super::read_mode::ReadMode;
use super::totals::Totals;
use crate::dir::{Dir, Trouble};
use model::{Counters, Device, State, Traffic, traffic};
use std::time::Instant;

/// The counters of the last sample that read them.
#[derive(Default)]
pub(crate) struct TrafficReader {
    folder: Option<Dir>,
    earlier: Option<(Counters, Instant)>,
    rates: Traffic,
}

impl TrafficReader {
    /// With the counters that were read last, for the new folders of the device.
    pub fn reopened(&self) -> TrafficReader {
        TrafficReader { folder: None, ..*self }
    }

    /// Reads the counters if they are due, sets the device's rates, and adds to the totals.
    pub fn read(
        &mut self,
        class: &Dir,
        device: &mut Device,
        mode: ReadMode,
        totals: &mut Totals,
        trouble: &mut Trouble,
    ) {
        let now = Instant::now();
        // Twelve of the twenty files that are read with every sample are counters: in relaxed sampling a rate over two seconds is
        // enough.
        let is_recent = |(_, then): &(Counters, Instant)| now - *then < mode.rate_period();
        if device.state != State::Ok || !self.earlier.as_ref().is_some_and(is_recent) {
            let later = self.counters(class, now, device, trouble).map(|counters| (counters, now));
            totals.add_traffic(later, device);
            self.rates = self.rates_until(later.as_ref(), device);
            self.earlier = later;
        }
        device.pcie.host_to_device = self.rates.host_to_device;
        device.pcie.device_to_host = self.rates.device_to_host;
    }

    /// During a reset the counters answer garbage without an error.
    fn counters(&mut self, class: &Dir, now: Instant, device: &Device, trouble: &mut Trouble) -> Option<Counters> {
        if self.folder.is_none() {
            self.folder = class.open_dir("pcie_perf_counters").ok();
        }
        let folder = self.folder.as_ref().filter(|_| device.state == State::Ok)?;
        pcie::counters(folder, now, device.heartbeat, trouble)
    }

    fn rates_until(&self, later: Option<&(Counters, Instant)>, device: &Device) -> Traffic {
        let (Some((earlier, then)), Some((later, now)), Some(arch)) = (&self.earlier, later, device.arch) else {
            return Traffic::default();
        };
        traffic(earlier, later, (*now - *then).as_secs_f64(), arch, &device.pcie)
    }
}
