//! Sums that continue whatever happens to the chip: traffic over PCIe in bytes, thermal trips, and energy from samples of power.

use model::{Counters, Device, Joules, Transferred, Watts};
use std::time::{Duration, Instant};

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
    energy: EnergySum,
}

/// The area under the power, by the trapezoid rule.
#[derive(Debug, Default, Clone, Copy)]
struct EnergySum {
    joules: f64,
    /// Whether power was ever read.
    is_known: bool,
    /// The last power, and when it was read. Absent after a sample without one.
    last: Option<(Watts, Instant)>,
    /// The time between the last two samples: usually the poll interval.
    step: Duration,
}

/// Samples that are further apart than three times the step before say nothing of the time between them. That is at least this
/// time, since a sample may be taken early, on request, and at most that, since then power changes unseen.
const SHORTEST_GAP: Duration = Duration::from_secs(5);
const LONGEST_STEP: Duration = Duration::from_secs(120);

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
        self.energy.joules += before.energy.joules;
        self.energy.is_known |= before.energy.is_known;
    }

    /// Adds what has gone over PCIe since the counters were read before. Without counters the device was not well.
    pub fn add_traffic(&mut self, now: Option<(Counters, Instant)>, device: &Device) {
        let (Some((counters, when)), Some(arch)) = (now, device.arch) else {
            return self.interrupt_traffic();
        };
        if let Some((earlier, then, unbroken)) = self.counted {
            let seconds = (when - then).as_secs_f64();
            self.transferred.add(&earlier, &counters, seconds, unbroken, arch, &device.pcie);
        }
        self.counted = Some((counters, when, true));
    }

    /// The device was not well, or away: its counters may have restarted.
    pub fn interrupt(&mut self) {
        self.interrupt_traffic();
        self.energy.last = None;
    }

    fn interrupt_traffic(&mut self) {
        self.counted = self.counted.map(|(counters, when, _)| (counters, when, false));
    }

    /// Adds the energy since the power was read before. Without a power, the time until the next one adds nothing.
    pub fn add_power(&mut self, power: Option<Watts>, when: Instant) {
        self.energy.add(power, when);
    }

    /// Adds thermal trips. A power cycle sets the chip's own count back.
    pub fn add_trips(&mut self, trips: u32) {
        let (last, sum) = self.trips.unwrap_or_default();
        self.trips = Some((trips, sum + u64::from(trips.checked_sub(last).unwrap_or(trips))));
    }

    /// Sets the device's totals.
    pub fn show(&self, device: &mut Device) {
        device.thermal_trips_total = self.trips.map(|(_, sum)| sum);
        device.energy_total = self.energy.total();
        let transferred = self.counted.map(|_| self.transferred);
        device.pcie.host_to_device_total = transferred.map(|sum| sum.host_to_device);
        device.pcie.device_to_host_total = transferred.map(|sum| sum.device_to_host);
    }
}

impl EnergySum {
    fn add(&mut self, power: Option<Watts>, when: Instant) {
        let before = std::mem::replace(&mut self.last, power.map(|power| (power, when)));
        self.is_known |= power.is_some();
        if let (Some((before, then)), Some(power)) = (before, power) {
            let step = when.saturating_duration_since(then);
            if step <= (self.step * 3).clamp(SHORTEST_GAP, LONGEST_STEP) {
                // A counter never falls.
                self.joules += ((before.0 + power.0) / 2.0 * step.as_secs_f64()).max(0.0);
            }
            self.step = step;
        }
    }

    /// In whole millijoules.
    fn total(&self) -> Option<Joules> {
        self.is_known.then_some(Joules((self.joules * 1000.0).round() / 1000.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The energy after samples of power, each so many seconds after the one before.
    fn energy(samples: &[(f64, Option<f64>)]) -> Option<f64> {
        let (mut totals, mut when) = (Totals::default(), Instant::now());
        for (seconds, power) in samples {
            when += Duration::from_secs_f64(*seconds);
            totals.add_power(power.map(Watts), when);
        }
        totals.energy.total().map(|energy| energy.0)
    }

    #[test]
    fn energy_is_the_area_under_the_power() {
        assert_eq!(energy(&[(0.0, None)]), None, "a device without power");
        assert_eq!(energy(&[(0.0, Some(10.0))]), Some(0.0), "a counter starts at 0");
        assert_eq!(energy(&[(0.0, Some(10.0)), (1.0, Some(30.0)), (0.5, Some(30.0))]), Some(20.0 + 15.0));
    }

    #[test]
    fn a_gap_adds_nothing() {
        let second = (1.0, Some(10.0));
        assert_eq!(energy(&[second, second, (1.0, None), second, second]), Some(20.0), "a sample without power");
        assert_eq!(energy(&[second, second, (600.0, Some(10.0)), second]), Some(20.0), "a stopped program");
        assert_eq!(energy(&[second, second, (4.0, Some(10.0)), second]), Some(60.0), "a few samples late");
        let minute = (60.0, Some(10.0));
        assert_eq!(
            energy(&[minute, minute, minute, minute]),
            Some(1200.0),
            "a poll interval of a minute, once it is known"
        );
        let hour = (3600.0, Some(10.0));
        assert_eq!(energy(&[hour, hour, hour, hour]), Some(0.0), "power once in an hour says nothing of the hour");
    }

    #[test]
    fn a_chip_that_has_moved_keeps_its_energy() {
        let (mut before, mut now, start) = (Totals::default(), Totals::default(), Instant::now());
        before.add_power(Some(Watts(10.0)), start);
        before.add_power(Some(Watts(10.0)), start + Duration::from_secs(1));
        now.add_power(Some(Watts(10.0)), start + Duration::from_secs(2));
        now.add_earlier(&before);
        now.add_power(Some(Watts(10.0)), start + Duration::from_secs(3));
        assert_eq!(now.energy.total(), Some(Joules(20.0)), "the move itself adds nothing");
        now.begin(Some(1));
        assert!(now.begin(Some(2)));
        assert_eq!(now.energy.total(), None, "another card");
    }

    proptest::proptest! {
        #[test]
        fn energy_never_falls_and_is_the_sum_of_its_trapezoids(
            samples in proptest::collection::vec((0.01f64..4.9, proptest::option::weighted(0.8, 0.0f64..500.0)), 1..60)
        ) {
            let totals: Vec<f64> = (1..=samples.len()).map(|n| energy(&samples[..n]).unwrap_or(0.0)).collect();
            assert!(totals.is_sorted(), "{totals:?}");
            let area = |pair: &[(f64, Option<f64>)]| match (pair[0].1, pair[1]) {
                (Some(before), (seconds, Some(power))) => (before + power) / 2.0 * seconds,
                _ => 0.0,
            };
            let sum: f64 = samples.windows(2).map(area).sum();
            assert!((totals[totals.len() - 1] - sum).abs() < 0.01, "{sum}");
        }
    }
}
