//! Events of what deep reads know: a clock that a limit holds down, and Ethernet links that are no longer up.

use model::throttle::{self, ClockLimit};
use model::{Device, DeviceId, DeviceKey, Event, KnownDevices, State, Timestamp, Weight};
use std::collections::BTreeMap;

/// What was found in the samples before.
#[derive(Debug, Default)]
pub struct DeepEvents {
    known: KnownDevices,
    limited: BTreeMap<DeviceKey, LimitedClock>,
    /// Whether the link of each port was up, where it was said, and whether it was reported that it is not.
    ports: BTreeMap<DeviceKey, Vec<PortBefore>>,
}

/// A clock that a limit holds down.
#[derive(Debug, Clone)]
struct LimitedClock {
    id: DeviceId,
    limit: ClockLimit,
    since: Timestamp,
    /// When it was last so.
    last: Timestamp,
    is_reported: bool,
}

#[derive(Debug, Default, Clone, Copy)]
struct PortBefore {
    up: Option<bool>,
    is_reported: bool,
}

/// Under full load a clock is often limited: it is worth a word after so many milliseconds, but heat is at once.
const LIMITED_FOR: i64 = 30_000;
/// It is over when it was not so for so many milliseconds: deep reads are seconds apart.
const OVER_AFTER: i64 = 10_000;

impl DeepEvents {
    /// What is new in a snapshot.
    pub fn notice(&mut self, devices: &[Device], time: Timestamp) -> Vec<Event> {
        let keys = self.known.meet(devices);
        let mut events = Vec::new();
        for (device, key) in devices.iter().zip(keys) {
            if let Some(limit) = throttle::clock_limit(device) {
                self.limit(key, device, limit, time);
            }
            events.extend(self.links(key, device, time));
        }
        events.extend(self.begun(devices, time));
        events.extend(self.over(time));
        events
    }

    /// Since when a limit holds the clock of a device down.
    pub fn limited_since(&self, device: &Device) -> Option<Timestamp> {
        let limited = self.limited.get(&self.known.find(device)?)?;
        throttle::clock_limit(device).map(|_| limited.since)
    }

    fn limit(&mut self, key: DeviceKey, device: &Device, limit: ClockLimit, time: Timestamp) {
        let id = device.id.clone();
        let new = LimitedClock { id: id.clone(), limit, since: time, last: time, is_reported: false };
        let entry = self.limited.entry(key).or_insert_with(|| new.clone());
        // Heat is another matter than full load.
        if limit.is_warning() && !entry.limit.is_warning() {
            *entry = new;
        }
        // Power and current limits take turns under full load; that is not worth an event each.
        if !entry.is_reported {
            entry.limit = limit;
        }
        (entry.id, entry.last) = (id, time);
    }

    /// What begins to be limited, one event for all devices with the same limit.
    fn begun(&mut self, devices: &[Device], time: Timestamp) -> Vec<Event> {
        let due = |one: &LimitedClock| {
            let wait = if one.limit.is_warning() { 0 } else { LIMITED_FOR };
            !one.is_reported && one.last == time && time.0 - one.since.0 >= wait
        };
        let due: Vec<&mut LimitedClock> = self.limited.values_mut().filter(|one| due(one)).collect();
        let mut events: Vec<(ClockLimit, Vec<DeviceId>)> = Vec::new();
        for one in due {
            one.is_reported = true;
            match events.iter_mut().find(|(limit, _)| *limit == one.limit) {
                Some((_, ids)) => ids.push(one.id.clone()),
                None => events.push((one.limit, vec![one.id.clone()])),
            }
        }
        let sentence = |id: &DeviceId| {
            let device = devices.iter().find(|device| device.id == *id)?;
            throttle::sentence(device, None)
        };
        let event = |(limit, ids): (ClockLimit, Vec<DeviceId>)| {
            let weight = if limit.is_warning() { Weight::Warning } else { Weight::Note };
            let text = match &ids[..] {
                [one] => format!("device {one}: {}", sentence(one).unwrap_or_else(|| limited_by(limit))),
                several => format!("{} devices: {}", several.len(), limited_by(limit)),
            };
            Event { time, weight, device: only(ids), text, kernel: None }
        };
        events.into_iter().map(event).collect()
    }

    /// What is no longer limited.
    fn over(&mut self, time: Timestamp) -> Vec<Event> {
        let is_over = |one: &LimitedClock| time.0 - one.last.0 >= OVER_AFTER;
        let mut events: Vec<(ClockLimit, Vec<DeviceId>, i64)> = Vec::new();
        for one in self.limited.values().filter(|one| is_over(one) && one.is_reported) {
            let lasted = one.last.0 - one.since.0;
            match events.iter_mut().find(|(limit, ..)| *limit == one.limit) {
                Some((_, ids, longest)) => {
                    ids.push(one.id.clone());
                    *longest = lasted.max(*longest);
                }
                None => events.push((one.limit, vec![one.id.clone()], lasted)),
            }
        }
        self.limited.retain(|_, one| !is_over(one));
        let event = |(limit, ids, longest): (ClockLimit, Vec<DeviceId>, i64)| {
            let weight = if limit.is_warning() { Weight::Good } else { Weight::Note };
            let (name, time_text) = (limit.name(), throttle::spoken(longest as f64 / 1000.0));
            let text = match &ids[..] {
                [one] => format!("device {one}: clock no longer limited by {name}, after {time_text}"),
                several => {
                    format!("{} devices: clock no longer limited by {name}, after up to {time_text}", several.len())
                }
            };
            Event { time, weight, device: only(ids), text, kernel: None }
        };
        events.into_iter().map(event).collect()
    }

    /// Links of a device that are no longer up, and those that are up again.
    fn links(&mut self, key: DeviceKey, device: &Device, time: Timestamp) -> Vec<Event> {
        let Some(deep) = device.deep.as_ref().filter(|_| device.state == State::Ok) else { return Vec::new() };
        let before = self.ports.entry(key).or_default();
        before.resize(before.len().max(deep.eth_link_up.len()), PortBefore::default());
        let (mut lost, mut back) = (Vec::new(), Vec::new());
        for (port, (before, up)) in before.iter_mut().zip(&deep.eth_link_up).enumerate() {
            let Some(up) = *up else { continue };
            match (before.up, up) {
                (Some(true), false) => {
                    lost.push(port);
                    before.is_reported = true;
                }
                (Some(false), true) if std::mem::take(&mut before.is_reported) => back.push(port),
                _ => {}
            }
            before.up = Some(up);
        }
        let event = |weight, ports: &[usize], what: &str| {
            let text = format!("device {}: Ethernet {} {what}", device.id, ports_text(ports));
            (!ports.is_empty()).then(|| Event { time, weight, device: Some(device.id.clone()), text, kernel: None })
        };
        [event(Weight::Warning, &lost, "no longer up"), event(Weight::Good, &back, "up again")]
            .into_iter()
            .flatten()
            .collect()
    }
}

fn limited_by(limit: ClockLimit) -> String {
    format!("clock limited by {}", limit.name())
}

fn only(mut ids: Vec<DeviceId>) -> Option<DeviceId> {
    ids.pop().filter(|_| ids.is_empty())
}

/// `port 8`, `ports 0–3, 7`.
fn ports_text(ports: &[usize]) -> String {
    let runs = ports.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [first, _, .., last] => format!("{first}–{last}"),
        few => few.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
    });
    let runs: Vec<String> = runs.collect();
    format!("{} {}", if ports.len() == 1 { "port" } else { "ports" }, runs.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Celsius, ClockDecision, ClockLimiter, Deep, Megahertz};

    /// A chip at 900 of 1350 MHz.
    fn limited(n: u32, by: ClockLimiter) -> Device {
        let deep = Deep {
            aiclk_max: Some(Megahertz(1350)),
            aiclk_ceiling: Some(Megahertz(900)),
            aiclk_ceiling_by: Some(by),
            aiclk_decided_by: Some(ClockDecision::Ceiling),
            gddr_top_temp: vec![Some(Celsius(90.0)), Some(Celsius(96.0))],
            ..Deep::default()
        };
        let aiclk = Some(Megahertz(900));
        Device { aiclk, sample_age_seconds: Some(0.0), deep: Some(Box::new(deep)), ..Device::new(DeviceId::Local(n)) }
    }

    fn full(n: u32) -> Device {
        Device { aiclk: Some(Megahertz(1350)), ..limited(n, ClockLimiter::Maximum) }
    }

    fn texts(events: Vec<Event>) -> Vec<String> {
        events.into_iter().map(|event| format!("{:?} {}", event.weight, event.text)).collect()
    }

    #[test]
    fn heat_is_reported_at_once_and_its_end_with_how_long_it_was() {
        let mut events = DeepEvents::default();
        let mut at = |device: Device, second: i64| texts(events.notice(&[device], Timestamp(second * 1000)));
        let hot = || limited(0, ClockLimiter::GddrTemperature);
        let begins = "Warning device 0: clock 900 of 1350 MHz: limited by GDDR temperature (channel 1, 96 °C)";
        assert_eq!(at(hot(), 0), [begins]);
        assert_eq!([at(hot(), 5), at(full(0), 10), at(hot(), 15), at(hot(), 40), at(full(0), 45)].concat(), [""; 0]);
        assert_eq!(at(full(0), 50), ["Good device 0: clock no longer limited by GDDR temperature, after 40 s"]);
        assert_eq!(at(full(0), 60), [""; 0]);
        assert_eq!(at(hot(), 70), [begins], "again");
    }

    #[test]
    fn full_load_is_a_note_after_half_a_minute_and_one_for_all_devices() {
        let mut events = DeepEvents::default();
        let all = |by| (0..8).map(|n| limited(n, by)).collect::<Vec<_>>();
        let mut at = |devices: Vec<Device>, second: i64| texts(events.notice(&devices, Timestamp(second * 1000)));
        use ClockLimiter::{Current, Power, Temperature};
        assert_eq!([at(all(Power), 0), at(all(Current), 10), at(all(Power), 20)].concat(), [""; 0]);
        assert_eq!(at(all(Power), 30), ["Note 8 devices: clock limited by chip power"]);
        assert_eq!(at(all(Current), 35), [""; 0], "limits of power and current take turns");
        let mut hot = all(Power);
        hot[3] = limited(3, Temperature);
        assert_eq!(at(hot, 40), ["Warning device 3: clock 900 of 1350 MHz: limited by temperature"]);
        let ends = at((0..8).map(full).collect(), 90);
        assert_eq!(
            ends,
            [
                "Note 7 devices: clock no longer limited by chip power, after up to 40 s",
                "Good device 3: clock no longer limited by temperature, after 0 s"
            ]
        );
    }

    #[test]
    fn how_long_a_clock_is_limited_is_known_while_it_is() {
        let mut events = DeepEvents::default();
        let device = limited(0, ClockLimiter::Power);
        events.notice(std::slice::from_ref(&device), Timestamp(1000));
        events.notice(std::slice::from_ref(&device), Timestamp(9000));
        assert_eq!(events.limited_since(&device), Some(Timestamp(1000)));
        assert_eq!(events.limited_since(&full(0)), None);
    }

    #[test]
    fn links_that_go_are_one_event_of_a_device_and_only_a_change_is_one() {
        let ports = |down: &[usize]| {
            let mut device = full(0);
            let deep = device.deep.get_or_insert_default();
            deep.eth_link_up = (0..16).map(|port| Some(!down.contains(&port))).collect();
            device
        };
        let mut events = DeepEvents::default();
        let mut at = |device: Device| texts(events.notice(&[device], Timestamp(0)));
        assert_eq!(at(ports(&[5])), [""; 0], "a port that never was up may have no cable");
        assert_eq!(at(ports(&[0, 1, 2, 5, 8, 9])), ["Warning device 0: Ethernet ports 0–2, 8, 9 no longer up"]);
        assert_eq!(at(Device { state: State::Resetting, ..ports(&[]) }), [""; 0]);
        assert_eq!(at(full(0)), [""; 0], "it says nothing");
        assert_eq!(at(ports(&[0])), ["Good device 0: Ethernet ports 1, 2, 8, 9 up again"]);
    }
}
