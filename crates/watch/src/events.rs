//! What has happened: states that changed, resets, deaths, faults, limits that were crossed.

use crate::client::Death;
use model::{Alert, Bytes, Device, DeviceId, Fault, Process, Severity, Snapshot, State, Timestamp, Usage};
use show::text;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What has happened, the latest last.
#[derive(Debug, Default)]
pub struct Events {
    all: VecDeque<Event>,
    /// How many there ever were.
    told: usize,
    /// Limits that are exceeded now, so that each is told once.
    exceeded: BTreeSet<(DeviceId, Limit)>,
    /// When each fault was last there: one that comes and goes is not told each time.
    faults: BTreeMap<Fault, Timestamp>,
    /// The latest death that was told.
    mourned_until: Option<Timestamp>,
}

/// What is looked at: a moment of a machine, and who has died.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// What was measured.
    pub snapshot: &'a Snapshot,
    /// Processes that have ended.
    pub deaths: &'a [Death],
}

/// One thing that has happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// When.
    pub time: Timestamp,
    /// How much it matters.
    pub weight: Weight,
    /// Which one, where it is one.
    pub device: Option<DeviceId>,
    /// For people.
    pub text: String,
}

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Just so.
    Note,
    /// Something is well again.
    Good,
    /// Worth a look.
    Warning,
    /// Something is wrong.
    Bad,
}

/// A limit that can be crossed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Limit {
    Temperature,
    Power,
    Dram,
    Link,
}

/// So many are remembered.
const MOST: usize = 1000;
/// A fault that was away for so long is told again, in milliseconds.
const FORGET_FAULT: i64 = 60_000;
/// How full DRAM is when that is worth a word.
const NEARLY_FULL: f64 = 0.95;

impl Events {
    /// Compares a moment with the one before. Tells how many events there are more.
    pub fn notice(&mut self, before: Seen<'_>, now: Seen<'_>) -> usize {
        let told = self.told;
        let is_first = before.snapshot.taken_at.0 == 0;
        // What a device says of itself comes later, and so is the newest.
        self.tell_faults(now.snapshot);
        for device in &now.snapshot.devices {
            let earlier = before.snapshot.devices.iter().find(|earlier| earlier.id == device.id);
            self.compare(earlier, device, now.snapshot.taken_at, is_first);
        }
        for device in &before.snapshot.devices {
            if !now.snapshot.devices.iter().any(|other| other.id == device.id) {
                self.add(now.snapshot, Weight::Bad, Some(device), format!("device {} is gone", device.id));
            }
        }
        if !is_first {
            self.compare_processes(before, now);
        }
        self.tell_deaths(now, is_first);
        self.tell_alerts(before.snapshot, now.snapshot);
        self.told - told
    }

    /// Puts in front what somebody else has seen before.
    pub fn begin_with(&mut self, older: &[Event]) {
        let first = self.all.front().map_or(Timestamp(i64::MAX), |event| event.time);
        for event in older.iter().rev().filter(|event| event.time < first) {
            if self.all.len() == MOST {
                return;
            }
            self.all.push_front(event.clone());
            self.told += 1;
        }
    }

    /// Takes them out, the oldest first. What was told is not told again for that.
    pub fn take(&mut self) -> VecDeque<Event> {
        std::mem::take(&mut self.all)
    }

    /// Those until a moment, the latest first.
    pub fn latest(&self, until: Timestamp) -> impl Iterator<Item = &Event> {
        self.all.iter().rev().filter(move |event| event.time <= until)
    }

    /// The newest that matters, for the last line, if it is not older than this.
    pub fn newest(&self, now: Timestamp, not_older_ms: i64) -> Option<&Event> {
        self.latest(now).find(|event| event.weight > Weight::Note).filter(|event| now.0 - event.time.0 <= not_older_ms)
    }

    fn add(&mut self, snapshot: &Snapshot, weight: Weight, device: Option<&Device>, text: String) {
        self.push(snapshot.taken_at, weight, device.map(|device| device.id.clone()), text);
    }

    fn push(&mut self, time: Timestamp, weight: Weight, device: Option<DeviceId>, text: String) {
        if self.all.len() == MOST {
            self.all.pop_front();
        }
        self.all.push_back(Event { time, weight, device, text });
        self.told += 1;
    }

    fn compare(&mut self, earlier: Option<&Device>, device: &Device, time: Timestamp, is_first: bool) {
        let id = &device.id;
        let tell = |events: &mut Events, weight, text| events.push(time, weight, Some(id.clone()), text);
        let was = earlier.map(|earlier| earlier.state);
        let is_fine = |state: State| matches!(state, State::Ok | State::Remote);
        match was {
            None if is_first && !is_fine(device.state) => {
                tell(self, weight_of(device.state), format!("device {id} is {}", device.state.name()));
            }
            None if !is_first => {
                tell(self, Weight::Good, format!("device {id} has appeared: {}", device.state.name()));
            }
            Some(was) if was != device.state => {
                let text = format!("device {id}: {}, was {}", device.state.name(), was.name());
                tell(self, weight_of(device.state), text);
            }
            _ => {}
        }
        let Some(earlier) = earlier else { return self.judge(device, time) };
        if let (Some(a), Some(b)) = (earlier.heartbeat, device.heartbeat)
            && b < a
            && a - b < u32::MAX / 2
        {
            tell(self, Weight::Warning, format!("device {id} was reset: its heartbeat began anew"));
        }
        if let (Some(a), Some(b)) = (earlier.thermal_trips, device.thermal_trips)
            && b > a
        {
            tell(self, Weight::Bad, format!("device {id} has shut down by critical temperature ({b} times so far)"));
        }
        self.judge(device, time);
    }

    /// Tells of limits that are crossed. Each is told again only after it was well below.
    fn judge(&mut self, device: &Device, time: Timestamp) {
        if device.sample_age_seconds.is_none_or(|age| age > 0.0) && device.state != State::Remote {
            return;
        }
        let part = |value: Option<f64>, most: Option<f64>| Some(value? / most.filter(|most| *most > 0.0)?);
        let memory = &device.memory;
        let bytes = |bytes: Option<Bytes>| bytes.map(|bytes| bytes.0 as f64);
        let temperature = part(device.asic_temp.map(|v| v.0), device.asic_temp_max.map(|v| v.0));
        self.cross(device, time, Limit::Temperature, temperature, 1.0, || {
            format!("device {} is at its temperature limit: {}", device.id, shown(device.asic_temp))
        });
        let power = part(device.power.map(|v| v.0), device.power_max.map(|v| v.0));
        self.cross(device, time, Limit::Power, power, 1.0, || {
            format!("device {} is at its power limit: {}", device.id, shown(device.power))
        });
        let used = bytes(memory.dram_used).map(|used| used + bytes(memory.trace_used).unwrap_or(0.0));
        let dram = part(used, bytes(memory.dram_total));
        self.cross(device, time, Limit::Dram, dram, NEARLY_FULL, || {
            format!("device {} has hardly any DRAM left: {} in use", device.id, shown(memory.dram_used))
        });
        let link = &device.pcie;
        let lower = |now: Option<u8>, most: Option<u8>| matches!((now, most), (Some(now), Some(most)) if now < most);
        let is_degraded = lower(link.generation, link.max_generation) || lower(link.width, link.max_width);
        self.cross(device, time, Limit::Link, Some(f64::from(u8::from(is_degraded))), 1.0, || {
            let gen_of = |n: Option<u8>| n.map_or("?".into(), |n| n.to_string());
            format!(
                "device {}: PCIe runs at Gen{} x{} instead of Gen{} x{}",
                device.id,
                gen_of(link.generation),
                gen_of(link.width),
                gen_of(link.max_generation),
                gen_of(link.max_width)
            )
        });
    }

    fn cross(
        &mut self,
        device: &Device,
        time: Timestamp,
        limit: Limit,
        part: Option<f64>,
        most: f64,
        text: impl Fn() -> String,
    ) {
        let key = (device.id.clone(), limit);
        match part {
            Some(part) if part >= most && self.exceeded.insert(key.clone()) => {
                self.push(time, Weight::Warning, Some(device.id.clone()), text());
            }
            Some(part) if part < most * 0.95 => drop(self.exceeded.remove(&key)),
            _ => {}
        }
    }

    fn compare_processes(&mut self, before: Seen<'_>, now: Seen<'_>) {
        let same = |a: &Process, b: &Process| a.pid == b.pid && a.started_at == b.started_at;
        let has = |snapshot: &Snapshot, one: &Process| snapshot.processes.iter().any(|other| same(one, other));
        for process in now.snapshot.processes.iter().filter(|process| !has(before.snapshot, process)) {
            let text = format!("{} uses {}", called(process), devices_of(process));
            self.push(now.snapshot.taken_at, Weight::Note, only_device(process), text);
        }
        for process in before.snapshot.processes.iter().filter(|process| !has(now.snapshot, process)) {
            // The service knows more of it, and tells below.
            if now.deaths.iter().any(|death| death.pid == process.pid && self.is_news(death)) {
                continue;
            }
            let usage = process.devices.iter().fold(Usage::default(), |sum, held| sum.plus(held.usage));
            let (weight, rest) = match usage.total().filter(|bytes| bytes.0 > 0) {
                Some(bytes) => (Weight::Warning, format!(", holding {bytes} until then")),
                None => (Weight::Note, String::new()),
            };
            let text = format!("{} does not use {} any more{rest}", called(process), devices_of(process));
            self.push(now.snapshot.taken_at, weight, only_device(process), text);
        }
    }

    /// Tells of alerts that have begun to fire, and of those that are over.
    fn tell_alerts(&mut self, before: &Snapshot, now: &Snapshot) {
        let same = |a: &Alert, b: &Alert| (&a.name, &a.device, a.process) == (&b.name, &b.device, b.process);
        let device = |snapshot: &Snapshot, alert: &Alert| {
            let found = snapshot.devices.iter().find(|device| Some(device.id.to_string()) == alert.device);
            found.map(|device| device.id.clone())
        };
        for alert in before.alerts.iter().filter(|alert| !now.alerts.iter().any(|other| same(alert, other))) {
            self.push(
                now.taken_at,
                Weight::Good,
                device(now, alert),
                format!("{} is over: {}", alert.name, alert.text),
            );
        }
        for alert in now.alerts.iter().filter(|alert| !before.alerts.iter().any(|other| same(alert, other))) {
            let weight = match alert.severity {
                Severity::Info => Weight::Note,
                Severity::Warning => Weight::Warning,
                Severity::Critical => Weight::Bad,
            };
            self.push(now.taken_at, weight, device(now, alert), format!("{}: {}", alert.name, alert.text));
        }
    }

    fn is_news(&self, death: &Death) -> bool {
        self.mourned_until.is_none_or(|until| death.died_at > until)
    }

    fn tell_deaths(&mut self, now: Seen<'_>, is_first: bool) {
        let mut news: Vec<&Death> = now.deaths.iter().filter(|death| self.is_news(death)).collect();
        news.sort_by_key(|death| death.died_at);
        for death in &news {
            let usage = death.devices.iter().fold(Usage::default(), |sum, held| sum.plus(held.usage));
            let held = usage.total().filter(|bytes| bytes.0 > 0);
            let how = match (death.signal, death.exit_code) {
                (Some(signal), _) => format!(" by {}", text::signal(signal)),
                (None, Some(code)) => format!(" with exit code {code}"),
                (None, None) => String::new(),
            };
            let rest = held.map(|bytes| format!(", holding {bytes}")).unwrap_or_default();
            let name = death.name.as_deref().or(death.command.as_deref()).unwrap_or("?");
            let weight = if held.is_some() && !is_first { Weight::Warning } else { Weight::Note };
            let device = death.devices.first().filter(|_| death.devices.len() == 1).map(|held| held.id.clone());
            self.push(death.died_at, weight, device, format!("pid {} ({name}) has died{how}{rest}", death.pid));
        }
        self.mourned_until = news.last().map(|death| death.died_at).or(self.mourned_until);
    }

    fn tell_faults(&mut self, snapshot: &Snapshot) {
        let now = snapshot.taken_at;
        for fault in &snapshot.faults {
            if self.faults.insert(fault.clone(), now).is_none() {
                self.push(now, Weight::Warning, None, format!("{}: {}", fault.path, fault.reason));
            }
        }
        self.faults.retain(|_, seen| now.0 - seen.0 < FORGET_FAULT);
    }
}

fn weight_of(state: State) -> Weight {
    match state {
        State::Ok | State::Remote => Weight::Good,
        State::Resetting | State::NoDriver => Weight::Warning,
        State::Hung | State::Silent | State::Lost => Weight::Bad,
    }
}

fn called(process: &Process) -> String {
    match &process.name {
        Some(name) => format!("pid {} ({name})", process.pid),
        None => format!("pid {}", process.pid),
    }
}

fn only_device(process: &Process) -> Option<DeviceId> {
    process.devices.first().filter(|_| process.devices.len() == 1).map(|held| held.id.clone())
}

fn devices_of(process: &Process) -> String {
    match &process.devices[..] {
        [] => "no device".into(),
        [one] => format!("device {}", one.id),
        [first, .., last] => format!("{} devices ({} to {})", process.devices.len(), first.id, last.id),
    }
}

fn shown(value: Option<impl ToString>) -> String {
    value.map_or("?".into(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::Moment;
    use model::{Celsius, Held};
    use show::example;

    fn moment(time: i64, change: impl Fn(&mut Snapshot)) -> Moment {
        let mut snapshot = example::machine();
        snapshot.faults.clear();
        snapshot.devices.iter_mut().for_each(|device| {
            device.state = State::Ok;
            device.sample_age_seconds = Some(0.0);
        });
        snapshot.taken_at = Timestamp(time);
        change(&mut snapshot);
        Moment::of(snapshot)
    }

    fn told(moments: &[Moment]) -> Vec<String> {
        let mut events = Events::default();
        let nothing = Moment::default();
        let mut before = &nothing;
        for moment in moments {
            events.notice(before.seen(), moment.seen());
            before = moment;
        }
        events.all.iter().map(|event| format!("{:?} {}", event.weight, event.text)).collect()
    }

    /// What is told of the change from the usual machine to another one.
    fn change(to: impl Fn(&mut Snapshot)) -> Vec<String> {
        let usual = told(&[moment(1000, |_| {})]);
        told(&[moment(1000, |_| {}), moment(2000, to)]).split_off(usual.len())
    }

    #[test]
    fn a_machine_that_does_not_change_has_no_events() {
        assert_eq!(change(|_| {}), [""; 0]);
    }

    #[test]
    fn a_change_of_state_is_told_with_both_names() {
        assert_eq!(change(|now| now.devices[1].state = State::Hung), ["Bad device 1: hung, was ok"]);
        assert_eq!(change(|now| drop(now.devices.remove(1))), ["Bad device 1 is gone"]);
        let bad_from_the_start = moment(1, |now| now.devices[0].state = State::Silent);
        assert!(told(&[bad_from_the_start]).contains(&"Bad device 0 is silent".to_owned()));
    }

    #[test]
    fn a_heartbeat_that_falls_is_a_reset_and_one_that_wraps_is_not() {
        let beats = |from: u32, to: u32| {
            let all = told(&[
                moment(1, |now| now.devices[0].heartbeat = Some(from)),
                moment(2, |now| now.devices[0].heartbeat = Some(to)),
            ]);
            all.into_iter().filter(|text| text.contains("reset")).count()
        };
        assert_eq!((beats(5000, 3), beats(u32::MAX - 1, 3), beats(5000, 5010)), (1, 0, 0));
    }

    #[test]
    fn a_limit_is_told_once_and_again_only_after_it_was_well_below() {
        let at = |time, celsius: f64| {
            moment(time, move |now| {
                now.devices[0].asic_temp = Some(Celsius(celsius));
                now.devices[0].asic_temp_max = Some(Celsius(90.0));
            })
        };
        let all = told(&[at(1, 80.0), at(2, 91.0), at(3, 89.0), at(4, 91.0), at(5, 80.0), at(6, 90.0)]);
        let all: Vec<&String> = all.iter().filter(|text| text.contains("temperature limit")).collect();
        assert_eq!(all.len(), 2, "{all:?}");
        assert_eq!(all[0], "Warning device 0 is at its temperature limit: 91.0 °C");
    }

    #[test]
    fn a_process_that_goes_is_told_with_what_it_held() {
        let all = change(|now| drop(now.processes.remove(1)));
        assert!(all[0].starts_with("Warning pid 4711 (python3) does not use device 0 any more, holding "), "{all:?}");
        let come = told(&[moment(1, |now| drop(now.processes.remove(1))), moment(2, |_| {})]);
        assert_eq!(come.last().unwrap(), "Note pid 4711 (python3) uses device 0");
    }

    #[test]
    fn what_the_service_knows_of_a_death_takes_the_place_of_what_was_seen() {
        let mut gone = moment(2000, |now| drop(now.processes.remove(1)));
        let death = |died_at| Death {
            pid: 4711,
            user: None,
            name: Some("python3".into()),
            command: None,
            died_at: Timestamp(died_at),
            exit_code: None,
            signal: Some(9),
            devices: vec![Held { usage: Usage::measured(1 << 30, 0, 0, 0, 0), ..Held::new(DeviceId::Local(0)) }],
        };
        gone.deaths.push(death(1500));
        let mut later = moment(3000, |now| drop(now.processes.remove(1)));
        later.deaths.push(death(1500));
        let first = moment(1000, |_| {});
        let before = told(std::slice::from_ref(&first)).len();
        let all = told(&[first, gone, later]).split_off(before);
        assert_eq!(all, ["Warning pid 4711 (python3) has died by SIGKILL, holding 1.0 GiB"]);
    }

    #[test]
    fn an_alert_is_told_when_it_begins_and_when_it_is_over() {
        let alert = Alert {
            name: "hot".into(),
            severity: Severity::Critical,
            state: model::AlertState::Firing,
            device: Some("0".into()),
            process: None,
            since: Timestamp(2000),
            value: None,
            text: "device 0: it is hot".into(),
        };
        let with = |time| moment(time, |now| now.alerts.push(alert.clone()));
        let all = told(&[moment(1000, |_| {}), with(2000), with(3000), moment(4000, |_| {})]);
        let all: Vec<&String> = all.iter().filter(|text| text.contains("hot")).collect();
        assert_eq!(all, ["Bad hot: device 0: it is hot", "Good hot is over: device 0: it is hot"]);
    }

    #[test]
    fn a_fault_that_stays_or_flickers_is_told_once() {
        let with = |time| moment(time, |now| now.faults.push(Fault::new("/sys/x", "permission denied")));
        let all = told(&[with(1000), with(2000), moment(3000, |_| {}), with(4000)]);
        assert_eq!(all.iter().filter(|text| text.contains("/sys/x: permission denied")).count(), 1);
        let all = told(&[with(1000), moment(100_000, |_| {}), with(101_000)]);
        assert_eq!(all.iter().filter(|text| text.contains("/sys/x")).count(), 2);
    }
}
