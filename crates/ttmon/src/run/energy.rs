//! Energy of each device, from samples of its power.

use model::{Celsius, Device, DeviceKey, Joules, KnownDevices, State, Watts};
use std::collections::BTreeMap;
use std::time::Duration;

/// What the devices took while the command ran.
#[derive(Debug)]
pub struct Meter {
    /// Samples that lie further apart than this say nothing of the time between them.
    longest: Duration,
    known: KnownDevices,
    tallies: BTreeMap<DeviceKey, Tally>,
}

#[derive(Debug, Clone)]
pub struct Tally {
    /// The device as it was seen last.
    pub device: Device,
    /// By the trapezoid rule. Absent until there are two samples in a row.
    pub energy: Option<Joules>,
    /// The time over which the energy is known.
    pub known: Duration,
    pub peak_power: Option<Watts>,
    pub peak_temp: Option<Celsius>,
    last: Option<(Duration, Watts)>,
}

impl Meter {
    pub fn new(longest: Duration) -> Meter {
        Meter { longest, known: KnownDevices::default(), tallies: BTreeMap::new() }
    }

    /// Takes a sample, `at` so long after the start.
    pub fn add(&mut self, at: Duration, devices: &[Device]) {
        let keys = self.known.meet(devices);
        for (device, key) in devices.iter().zip(&keys) {
            let tally = self.tallies.entry(*key).or_insert_with(|| Tally::of(device));
            tally.device.clone_from(device);
            let reading = is_fresh(device).then_some(device);
            let power = reading.and_then(|device| device.power);
            let temp = reading.and_then(|device| device.asic_temp);
            tally.peak_power = higher(tally.peak_power, power);
            tally.peak_temp = higher(tally.peak_temp, temp);
            let before = std::mem::replace(&mut tally.last, power.map(|power| (at, power)));
            if let (Some((then, before)), Some(power)) = (before, power) {
                tally.add(at.saturating_sub(then), before, power, self.longest);
            }
        }
        // A device that is not listed has not been read.
        for (_, tally) in self.tallies.iter_mut().filter(|(key, _)| !keys.contains(key)) {
            tally.last = None;
        }
    }

    pub fn tallies(self) -> Vec<Tally> {
        let mut tallies: Vec<Tally> = self.tallies.into_values().collect();
        tallies.sort_by(|a, b| a.device.id.cmp(&b.device.id));
        tallies
    }
}

impl Tally {
    fn of(device: &Device) -> Tally {
        let (device, known) = (device.clone(), Duration::ZERO);
        Tally { device, energy: None, known, peak_power: None, peak_temp: None, last: None }
    }

    fn add(&mut self, time: Duration, before: Watts, after: Watts, longest: Duration) {
        if !time.is_zero() && time <= longest {
            let joules = self.energy.map_or(0.0, |energy| energy.0);
            self.energy = Some(Joules(joules + (before.0 + after.0) / 2.0 * time.as_secs_f64()));
            self.known += time;
        }
    }

    pub fn is_known(&self) -> bool {
        self.peak_power.is_some() || self.peak_temp.is_some()
    }

    /// Whether the energy is that of the whole time, but for a moment at both ends.
    pub fn covers(&self, duration: Duration) -> bool {
        self.known + duration.mul_f64(0.02) + Duration::from_millis(100) >= duration
    }
}

fn is_fresh(device: &Device) -> bool {
    device.sample_age_seconds == Some(0.0) && !matches!(device.state, State::Silent | State::Lost)
}

fn higher<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Option<T> {
    a.into_iter().chain(b).reduce(|a, b| if b > a { b } else { a })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{DeviceId, PciAddress};

    #[test]
    fn energy_is_counted_by_card_when_numbers_swap() {
        let mut meter = Meter::new(Duration::from_secs(2));
        for (second, slots) in [[1, 2], [2, 1]].into_iter().enumerate() {
            let card = |(n, slot): (usize, u32)| Device {
                id: DeviceId::Local(n as u32),
                pci_address: Some(PciAddress(format!("0000:{slot:02}:00.0").into())),
                ..device(Some(f64::from(slot) * 100.0))
            };
            let devices: Vec<Device> = slots.into_iter().enumerate().map(card).collect();
            meter.add(Duration::from_secs(second as u64), &devices);
        }
        let energy: Vec<_> = meter.tallies().iter().map(|tally| (tally.device.id.to_string(), tally.energy)).collect();
        assert_eq!(energy, [("0".into(), Some(Joules(200.0))), ("1".into(), Some(Joules(100.0)))]);
    }

    fn device(power: Option<f64>) -> Device {
        let mut device = Device::new(DeviceId::Local(0));
        device.power = power.map(Watts);
        device.sample_age_seconds = Some(0.0);
        device
    }

    /// The device after samples at these seconds.
    fn metered(samples: &[(f64, Device)]) -> Tally {
        let mut meter = Meter::new(Duration::from_secs(2));
        for (at, device) in samples {
            meter.add(Duration::from_secs_f64(*at), std::slice::from_ref(device));
        }
        meter.tallies().remove(0)
    }

    #[test]
    fn energy_is_the_area_under_the_power() {
        let tally = metered(&[(0.0, device(Some(10.0))), (1.0, device(Some(30.0))), (1.5, device(Some(30.0)))]);
        assert_eq!(tally.energy, Some(Joules(20.0 + 15.0)));
        assert_eq!((tally.known, tally.peak_power), (Duration::from_millis(1500), Some(Watts(30.0))));
        assert!(tally.covers(Duration::from_millis(1550)) && !tally.covers(Duration::from_secs(2)));
    }

    #[test]
    fn a_gap_is_not_bridged() {
        let silent = Device { state: State::Silent, sample_age_seconds: Some(0.5), ..device(Some(500.0)) };
        let tally = metered(&[
            (0.0, device(Some(10.0))),
            (1.0, device(Some(10.0))),
            (1.5, silent),
            (2.0, device(Some(10.0))),
            (2.5, device(None)),
            (3.0, device(Some(10.0))),
            (4.0, device(Some(10.0))),
        ]);
        assert_eq!((tally.energy, tally.known), (Some(Joules(20.0)), Duration::from_secs(2)));
        assert_eq!(tally.peak_power, Some(Watts(10.0)), "an old value is no sample");
    }

    #[test]
    fn a_stopped_program_does_not_know_what_happened_meanwhile() {
        let tally = metered(&[(0.0, device(Some(10.0))), (600.0, device(Some(10.0))), (601.0, device(Some(20.0)))]);
        assert_eq!((tally.energy, tally.known), (Some(Joules(15.0)), Duration::from_secs(1)));
    }

    #[test]
    fn a_device_that_was_away_begins_anew() {
        let mut meter = Meter::new(Duration::from_secs(2));
        meter.add(Duration::ZERO, &[device(Some(10.0))]);
        meter.add(Duration::from_millis(500), &[]);
        meter.add(Duration::from_secs(1), &[device(Some(10.0))]);
        assert_eq!(meter.tallies()[0].energy, None);
    }

    #[test]
    fn one_sample_has_a_height_but_no_area() {
        let tally = metered(&[(0.0, device(Some(10.0)))]);
        assert_eq!((tally.energy, tally.peak_power, tally.peak_temp), (None, Some(Watts(10.0)), None));
        assert!(!metered(&[(0.0, device(None))]).is_known());
    }
}
