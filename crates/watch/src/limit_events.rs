//! Events of figures that are judged: a temperature that is critical, a capacity that is full, a degraded link, power at its limit.

use alerts::{DEGRADED_LINK, HOT_DEVICE, MEMORY_FULL};
use model::figure::device::{ASIC_TEMP, DEVICE_FIGURES, DRAM_USED};
use model::figure::{Figure, Judge};
use model::judgement::{AT_LIMIT, HYSTERESIS};
use model::throttle::{self, ClockLimit};
use model::{ClockLimiter, Device, DeviceKey, Event, KnownDevices, State, Timestamp, Weight};
use std::collections::{BTreeMap, BTreeSet};

/// What was reported, so that each is reported once.
#[derive(Debug, Default)]
pub struct LimitEvents {
    known: KnownDevices,
    /// Figures that are critical or full, and links that are degraded.
    exceeded: BTreeSet<Key>,
    /// Loads at their limit: since when.
    at_limit: BTreeMap<Key, Timestamp>,
    /// When each load that was reported was last at its limit.
    reported: BTreeMap<Key, Timestamp>,
    /// When something was said of each figure.
    said: BTreeMap<&'static str, Timestamp>,
}

/// A figure of a device.
type Key = (DeviceKey, &'static str);

/// Full load is normal: it is worth a word after so many milliseconds at the limit.
const AT_LIMIT_FOR: i64 = 30_000;
/// A load that comes back to its limit is no news for so long.
const SAME_LOAD: i64 = 3_600_000;
/// After a word on one device, others at their limit are gathered for so long.
const GATHERED_FOR: i64 = 600_000;
/// The key of the link, which is judged by two figures.
const LINK: &str = "link";

impl LimitEvents {
    /// What is new in a snapshot.
    pub fn notice(&mut self, devices: &[Device], time: Timestamp) -> Vec<Event> {
        let mut events = Vec::new();
        // The last values of a device that does not answer say nothing of now.
        let is_current =
            |device: &Device| device.sample_age_seconds.is_some_and(|age| age <= 0.0) || device.state == State::Remote;
        let mut current: Vec<(&Device, DeviceKey)> = devices.iter().zip(self.known.meet(devices)).collect();
        current.retain(|(device, _)| is_current(device));
        for (device, key) in &current {
            let event = |(weight, text)| Event::new(time, weight, Some(device.id.clone()), text);
            events.extend(DEVICE_FIGURES.iter().filter_map(|figure| self.exceeds(figure, device, *key)).map(event));
            events.extend(self.link(device, *key).map(event));
        }
        // Voltage and current follow from power, which history keeps.
        for figure in DEVICE_FIGURES.iter().filter(|figure| figure.judge == Judge::Load && figure.history) {
            let due = current.iter().filter(|(device, key)| self.is_due(figure, device, *key, time));
            let due: Vec<&(&Device, DeviceKey)> = due.collect();
            let is_fresh = self.said.get(figure.name).is_some_and(|at| time.0 - at.0 < GATHERED_FOR);
            if is_fresh || due.is_empty() {
                continue;
            }
            self.said.insert(figure.name, time);
            self.reported.extend(due.iter().map(|(_, key)| ((*key, figure.name), time)));
            let due: Vec<&Device> = due.iter().map(|(device, _)| *device).collect();
            events.extend(at_limit_event(figure, &due, time));
        }
        events
    }

    /// Whether an event has said of the device what this rule says.
    pub fn says(&self, rule: &str, device: &Device) -> bool {
        let figure = match rule {
            HOT_DEVICE => ASIC_TEMP.name,
            MEMORY_FULL => DRAM_USED.name,
            DEGRADED_LINK => LINK,
            _ => return false,
        };
        self.known.find(device).is_some_and(|key| self.exceeded.contains(&(key, figure)))
    }

    /// What to say of a figure that has become critical or full.
    fn exceeds(
        &mut self,
        figure: &'static Figure<Device>,
        device: &Device,
        key: DeviceKey,
    ) -> Option<(Weight, String)> {
        let (_, critical) = figure.judge.thresholds()?;
        let (value, limit) = (figure.number(device)?, figure.limit_of(device)?);
        let weight = if figure.judge == Judge::Heat { Weight::Bad } else { Weight::Warning };
        self.cross((key, figure.name), value / limit, critical).then(|| {
            let word = figure.judge.word(figure.judge.judge(value / limit));
            let (value, limit) = (figure.unit.number(value), figure.unit.number(limit));
            (weight, format!("device {}: {} {word}: {value} of {limit}", device.id, title_in_text(figure)))
        })
    }

    /// What to say of a link that has become slower or narrower than it could be.
    fn link(&mut self, device: &Device, key: DeviceKey) -> Option<(Weight, String)> {
        let is_degraded = device.pcie.is_degraded()?;
        self.cross((key, LINK), f64::from(u8::from(is_degraded)), 1.0).then(|| {
            let link = &device.pcie;
            let number = |n: Option<u8>| n.map_or("?".into(), |n| n.to_string());
            let [now, most] = [(link.generation, link.width), (link.max_generation, link.max_width)]
                .map(|(generation, width)| format!("Gen{} x{}", number(generation), number(width)));
            let text = format!("device {}: PCIe link degraded: {now} (max {most})", device.id);
            (Weight::Warning, text)
        })
    }

    /// Whether a share has reached a threshold that it was well below before.
    fn cross(&mut self, key: Key, share: f64, threshold: f64) -> bool {
        if share >= threshold {
            return self.exceeded.insert(key);
        }
        if share < threshold * HYSTERESIS {
            self.exceeded.remove(&key);
        }
        false
    }

    /// Whether a load has been at its limit for long enough, and that was not reported yet.
    fn is_due(&mut self, figure: &'static Figure<Device>, device: &Device, key: DeviceKey, time: Timestamp) -> bool {
        let Some(share) = figure.share(device) else { return false };
        // One event is enough: what limits the clock is said with the clock.
        if throttle::clock_limit(device) == Some(ClockLimit::Firmware(ClockLimiter::Power)) {
            return false;
        }
        let key = (key, figure.name);
        if share < AT_LIMIT {
            // It was a short peak, or it is over.
            self.at_limit.remove(&key);
            return false;
        }
        let since = *self.at_limit.entry(key).or_insert(time);
        let mut is_known = false;
        if let Some(last) = self.reported.get_mut(&key).filter(|last| time.0 - last.0 < SAME_LOAD) {
            (*last, is_known) = (time, true);
        }
        !is_known && time.0 - since.0 >= AT_LIMIT_FOR
    }
}

fn at_limit_event(figure: &Figure<Device>, due: &[&Device], time: Timestamp) -> Option<Event> {
    let title = title_in_text(figure);
    let (device, text) = match due {
        [] => return None,
        [one] => {
            let value = figure.text(one).unwrap_or_default();
            (Some(one.id.clone()), format!("device {} at its {title} limit: {value}", one.id))
        }
        several => (None, format!("{} devices at their {title} limit", several.len())),
    };
    Some(Event::new(time, Weight::Note, device, text))
}

/// The title of a figure within a sentence: "temperature critical", and "DRAM full" rather than "DRAM used full".
pub fn title_in_text(figure: &Figure<Device>) -> String {
    let title = figure.title.trim_end_matches(" used");
    // An abbreviation stays as it is.
    if title.chars().skip(1).any(char::is_lowercase) { title.to_lowercase() } else { title.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Bytes, Celsius, DeviceId, Watts};

    fn device(n: u32) -> Device {
        Device { sample_age_seconds: Some(0.0), ..Device::new(DeviceId::Local(n)) }
    }

    fn texts(events: Vec<Event>) -> Vec<String> {
        events.into_iter().map(|event| format!("{:?} {}", event.weight, event.text)).collect()
    }

    #[test]
    fn a_critical_temperature_is_reported_once_and_again_only_after_it_was_well_below() {
        let mut limits = LimitEvents::default();
        let mut at = |celsius| {
            let (asic_temp, asic_temp_max) = (Some(Celsius(celsius)), Some(Celsius(100.0)));
            texts(limits.notice(&[Device { asic_temp, asic_temp_max, ..device(0) }], Timestamp(1)))
        };
        assert_eq!(at(94.0), [""; 0]);
        assert_eq!(at(95.5), ["Bad device 0: temperature critical: 95.5 °C of 100.0 °C"]);
        assert_eq!([at(91.0), at(95.0), at(90.0)].concat(), [""; 0]);
        assert_eq!(at(95.0).len(), 1);
    }

    #[test]
    fn a_full_memory_and_a_degraded_link_are_warnings() {
        let mut device = device(3);
        device.memory.dram_total = Some(Bytes(100 << 30));
        device.memory.dram_used = Some(Bytes(96 << 30));
        (device.pcie.generation, device.pcie.max_generation) = (Some(4), Some(5));
        (device.pcie.width, device.pcie.max_width) = (Some(16), Some(16));
        let mut limits = LimitEvents::default();
        assert_eq!(
            texts(limits.notice(std::slice::from_ref(&device), Timestamp(1))),
            [
                "Warning device 3: DRAM full: 96.0 GiB of 100 GiB",
                "Warning device 3: PCIe link degraded: Gen4 x16 (max Gen5 x16)"
            ]
        );
        assert_eq!(texts(limits.notice(&[device], Timestamp(2))), [""; 0]);
    }

    #[test]
    fn full_power_is_a_note_after_half_a_minute_and_one_for_all_devices() {
        let at = |n, watts| Device { power: Some(Watts(watts)), power_max: Some(Watts(150.0)), ..device(n) };
        let all = |watts| (0..8).map(|n| at(n, watts)).collect::<Vec<_>>();
        let mut limits = LimitEvents::default();
        let mut notice = |devices: &[Device], second: i64| texts(limits.notice(devices, Timestamp(second * 1000)));
        assert_eq!([notice(&all(150.0), 0), notice(&all(150.0), 29)].concat(), [""; 0]);
        assert_eq!(notice(&all(150.0), 30), ["Note 8 devices at their power limit"]);
        assert_eq!([notice(&all(149.0), 31), notice(&all(120.0), 90)].concat(), [""; 0], "reported already, then over");
        assert_eq!([notice(&[at(1, 150.0)], 100), notice(&[at(1, 100.0)], 120)].concat(), [""; 0], "a short peak");
        assert_eq!([notice(&[at(1, 150.0)], 129), notice(&[at(1, 150.0)], 159)].concat(), [""; 0], "no news so soon");
        let (hour, later) = (3_800, 3_831);
        assert_eq!([notice(&[at(1, 100.0)], 3_600), notice(&[at(1, 150.0)], hour)].concat(), [""; 0]);
        assert_eq!(notice(&[at(1, 150.0)], later), ["Note device 1 at its power limit: 150.0 W"]);
    }

    #[test]
    fn the_last_values_of_a_device_that_does_not_answer_are_not_judged() {
        let (asic_temp, asic_temp_max) = (Some(Celsius(99.0)), Some(Celsius(100.0)));
        let silent = Device { sample_age_seconds: Some(3.0), asic_temp, asic_temp_max, ..device(0) };
        assert_eq!(LimitEvents::default().notice(&[silent], Timestamp(1)), []);
    }
}
