//! What has happened: states that changed, resets, exits, faults, limits that were reached, messages of the kernel.

use crate::deep_events::DeepEvents;
use crate::kernel_events;
use crate::limit_events::LimitEvents;
use alerts::{IDLE_HOLDER, POWER_LIMIT, STATE_RULES};
use model::judgement::is_idle_holder;
use model::{
    Alert, Device, DeviceId, ExitRecord, Fault, Held, Process, Severity, Snapshot, State, Timestamp, Usage,
    earlier_devices,
};
pub use model::{Event, Weight};
use show::command::{self, display_name};
use show::text;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Events, the latest last.
#[derive(Debug, Default)]
pub struct Events {
    all: VecDeque<Event>,
    /// How many there ever were.
    count: usize,
    limits: LimitEvents,
    deep: DeepEvents,
    /// When each fault was last there: one that comes and goes is not reported each time.
    faults: BTreeMap<Fault, Timestamp>,
    /// Processes that hold memory and run nothing, by pid and start time.
    idle: BTreeSet<(u32, Option<Timestamp>)>,
    /// The latest exit that was reported.
    reported_until: Option<Timestamp>,
}

/// What events are found in: a snapshot, and the processes that exited.
#[derive(Debug, Clone, Copy)]
pub struct Observation<'a> {
    /// The snapshot.
    pub snapshot: &'a Snapshot,
    /// Processes that exited in the last minutes.
    pub exits: &'a [ExitRecord],
}

const MOST: usize = 1000;
/// A fault that was away for so long is reported again, in milliseconds.
const FORGET_FAULT: i64 = 60_000;

impl Events {
    /// Compares a snapshot with the one before. Returns how many events were added.
    pub fn notice(&mut self, before: Observation<'_>, now: Observation<'_>) -> usize {
        let count = self.count;
        let (time, is_first) = (now.snapshot.taken_at, before.snapshot.taken_at.0 == 0);
        // What is known of a device is more important, so it comes later, and is the newest.
        self.report_faults(now.snapshot);
        kernel_events::news(before.snapshot, now.snapshot).for_each(|event| self.push(event));
        let earlier = earlier_devices(&before.snapshot.devices, &now.snapshot.devices);
        let is_gone = |device: &Device| !earlier.iter().flatten().any(|same| same.id == device.id);
        let gone: Vec<&Device> = before.snapshot.devices.iter().filter(|device| is_gone(device)).collect();
        let mut replaced = Vec::new();
        for (device, same) in now.snapshot.devices.iter().zip(&earlier) {
            match gone.iter().find(|gone| same.is_none() && gone.id == device.id) {
                Some(other) => {
                    replaced.push(&other.id);
                    let text = format!("device {} is another card now{}", device.id, serials(other, device));
                    self.add(time, Weight::Warning, Some(device.id.clone()), text);
                }
                None => self.compare(*same, device, time, is_first),
            }
        }
        for event in self.limits.notice(&now.snapshot.devices, time) {
            self.push(event);
        }
        for event in self.deep.notice(&now.snapshot.devices, time) {
            self.push(event);
        }
        self.report_idle(now.snapshot);
        for device in gone.iter().filter(|device| !replaced.contains(&&device.id)) {
            self.add(time, Weight::Bad, Some(device.id.clone()), format!("device {} disappeared", device.id));
        }
        if !is_first {
            self.compare_processes(before, now);
        }
        self.report_exits(now, is_first);
        self.report_alerts(before.snapshot, now.snapshot, &earlier);
        self.count - count
    }

    /// Since when a limit holds the clock of a device down, where one does.
    pub fn clock_limited_since(&self, device: &Device) -> Option<Timestamp> {
        self.deep.limited_since(device)
    }

    /// Puts older events in front, which a service has found.
    pub fn begin_with(&mut self, older: &[Event]) {
        let first = self.all.front().map_or(Timestamp(i64::MAX), |event| event.time);
        for event in older.iter().rev().filter(|event| event.time < first) {
            if self.all.len() == MOST {
                return;
            }
            self.all.push_front(event.clone());
            self.count += 1;
        }
    }

    /// Takes them out, the oldest first. What was reported is not reported again.
    pub fn take(&mut self) -> VecDeque<Event> {
        std::mem::take(&mut self.all)
    }

    /// Those until a time, the latest first.
    pub fn latest(&self, until: Timestamp) -> impl Iterator<Item = &Event> {
        self.all.iter().rev().filter(move |event| event.time <= until)
    }

    /// The newest that matters, for the last line, if it is not older than this.
    pub fn newest(&self, now: Timestamp, not_older_ms: i64) -> Option<&Event> {
        self.latest(now).find(|event| event.weight > Weight::Note).filter(|event| now.0 - event.time.0 <= not_older_ms)
    }

    fn add(&mut self, time: Timestamp, weight: Weight, device: Option<DeviceId>, text: String) {
        self.push(Event::new(time, weight, device, text));
    }

    fn push(&mut self, event: Event) {
        if self.all.len() == MOST {
            self.all.pop_front();
        }
        self.all.push_back(event);
        self.count += 1;
    }

    fn compare(&mut self, earlier: Option<&Device>, device: &Device, time: Timestamp, is_first: bool) {
        let (id, state) = (&device.id, device.state);
        let mut report = |weight, text| self.add(time, weight, Some(id.clone()), text);
        let Some(earlier) = earlier else {
            let is_well = weight_of(state) == Weight::Good;
            if is_first && !is_well {
                report(weight_of(state), format!("device {id}: {}", state.name()));
            } else if !is_first {
                report(Weight::Good, format!("device {id} appeared ({})", state.name()));
            }
            return;
        };
        if let Some(text) = renumbered(earlier, device) {
            report(Weight::Warning, text);
        }
        if earlier.state != state {
            let text =
                format!("device {id}: {} → {}{}", earlier.state.name(), state.name(), state_reason(earlier, device));
            report(weight_of(state), text);
        }
        if let (Some(a), Some(b)) = (earlier.heartbeat, device.heartbeat) {
            if b < a && a - b < u32::MAX / 2 {
                report(Weight::Warning, format!("device {id} was reset (heartbeat restarted)"));
            }
        }
        if let (Some(a), Some(b)) = (earlier.thermal_trips, device.thermal_trips) {
            if b > a {
                report(Weight::Bad, format!("device {id} shut down at critical temperature ({b} times so far)"));
            }
        }
    }

    fn compare_processes(&mut self, before: Observation<'_>, now: Observation<'_>) {
        let time = now.snapshot.taken_at;
        let identity = |process: &Process| (process.pid, process.started_at);
        let identities = |snapshot: &Snapshot| snapshot.processes.iter().map(identity).collect::<BTreeSet<_>>();
        let (were, are) = (identities(before.snapshot), identities(now.snapshot));
        for process in now.snapshot.processes.iter().filter(|process| !were.contains(&identity(process))) {
            let text = format!("{} uses {}", name_of(process), devices_of(&process.devices));
            self.add(time, Weight::Note, only_device(&process.devices), text);
        }
        for process in before.snapshot.processes.iter().filter(|process| !are.contains(&identity(process))) {
            // The service knows more of it, and that is reported instead.
            if now.exits.iter().any(|exit| exit.pid == process.pid && self.is_news(exit)) {
                continue;
            }
            let held = held_text(process.usage());
            let weight = if held.is_empty() { Weight::Note } else { Weight::Warning };
            let text = format!("{} released {}{held}", name_of(process), devices_of(&process.devices));
            self.add(time, weight, only_device(&process.devices), text);
        }
    }

    /// Reports alerts that began to fire, and those that are resolved.
    fn report_alerts(&mut self, before: &Snapshot, now: &Snapshot, earlier: &[Option<&Device>]) {
        // An alert stays with its device, whose number may be another one now.
        let is_of = |alert: &Alert, device: &Device| alert.device.as_ref() == Some(&device.id.to_string());
        let same_device = |a: &Alert, b: &Alert| {
            let mut pairs =
                earlier.iter().zip(&now.devices).filter_map(|(earlier, device)| Some(((*earlier)?, device)));
            match pairs.find(|(earlier, _)| is_of(a, earlier)) {
                Some((_, device)) => is_of(b, device),
                None => a.device == b.device,
            }
        };
        let same = |a: &Alert, b: &Alert| a.name == b.name && a.process == b.process && same_device(a, b);
        let device = |alert: &Alert| {
            let found = now.devices.iter().find(|device| Some(device.id.to_string()) == alert.device);
            found.map(|device| device.id.clone())
        };
        for alert in before.alerts.iter().filter(|alert| !now.alerts.iter().any(|other| same(alert, other))) {
            if is_of_changed_state(alert, &now.devices, earlier) || is_of_event(alert) {
                continue;
            }
            let text = format!("{} resolved: {}", alert.name, alert.text);
            self.add(now.taken_at, Weight::Good, device(alert), text);
        }
        for alert in now.alerts.iter().filter(|alert| !before.alerts.iter().any(|other| same(other, alert))) {
            if is_of_changed_state(alert, &now.devices, earlier) || is_of_event(alert) {
                continue;
            }
            // One event is enough.
            let is_its = |device: &&Device| is_of(alert, device);
            if now.devices.iter().find(is_its).is_some_and(|device| self.limits.says(&alert.name, device)) {
                continue;
            }
            let weight = match alert.severity {
                Severity::Info => Weight::Note,
                Severity::Warning => Weight::Warning,
                Severity::Critical => Weight::Bad,
            };
            self.add(now.taken_at, weight, device(alert), format!("{}: {}", alert.name, alert.text));
        }
    }

    /// Reports processes that hold memory and have run nothing for long, each once.
    fn report_idle(&mut self, snapshot: &Snapshot) {
        let key = |process: &Process| (process.pid, process.started_at);
        let idle: Vec<&Process> = snapshot.processes.iter().filter(|process| is_idle_holder(process)).collect();
        let known = std::mem::replace(&mut self.idle, idle.iter().map(|process| key(process)).collect());
        for process in idle.iter().filter(|process| !known.contains(&key(process))) {
            let is_alert = |alert: &&Alert| alert.name == IDLE_HOLDER && alert.process == Some(process.pid);
            // One event is enough.
            if snapshot.alerts.iter().any(|alert| is_alert(&alert)) {
                continue;
            }
            let minutes = process.idle_seconds.unwrap_or_default() as u64 / 60;
            let held = process.usage().total().unwrap_or_default();
            let (name, devices) = (name_of(process), devices_of(&process.devices));
            let text = format!("{name} idle for {minutes} min, holding {held} on {devices}");
            self.add(snapshot.taken_at, Weight::Note, only_device(&process.devices), text);
        }
    }

    fn is_news(&self, exit: &ExitRecord) -> bool {
        self.reported_until.is_none_or(|until| exit.died_at > until)
    }

    fn report_exits(&mut self, now: Observation<'_>, is_first: bool) {
        let mut news: Vec<&ExitRecord> = now.exits.iter().filter(|exit| self.is_news(exit)).collect();
        news.sort_by_key(|exit| exit.died_at);
        for exit in &news {
            let held = held_text(exit.usage());
            let how = match (exit.signal, exit.exit_code) {
                (Some(signal), _) => format!("was killed by {}", text::signal(signal)),
                (None, Some(code)) => format!("exited with code {code}"),
                (None, None) => "exited".into(),
            };
            let name = command::name_of(exit.name.as_deref(), exit.command.as_deref());
            let name = name.as_deref().or(exit.command.as_deref()).unwrap_or("?");
            let weight = if held.is_empty() || is_first { Weight::Note } else { Weight::Warning };
            let text = format!("pid {} ({name}) {how}{held}", exit.pid);
            self.add(exit.died_at, weight, only_device(&exit.devices), text);
        }
        self.reported_until = news.last().map(|exit| exit.died_at).or(self.reported_until);
    }

    fn report_faults(&mut self, snapshot: &Snapshot) {
        let now = snapshot.taken_at;
        for fault in &snapshot.faults {
            if self.faults.insert(fault.clone(), now).is_none() {
                let device = device_of(fault, snapshot);
                // That it does not answer is one event: what could not be read follows from that.
                if device.is_some_and(|device| weight_of(device.state) >= Weight::Warning) {
                    continue;
                }
                let text = format!("{}: {}", fault.path, fault.reason);
                self.add(now, Weight::Warning, device.map(|device| device.id.clone()), text);
            }
        }
        self.faults.retain(|_, seen| now.0 - seen.0 < FORGET_FAULT);
    }
}

/// The device whose file could not be read.
fn device_of<'a>(fault: &Fault, snapshot: &'a Snapshot) -> Option<&'a Device> {
    let number = fault.path.split_once("tenstorrent!").map(|(_, rest)| rest);
    let number = number?.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
    snapshot.devices.iter().find(|device| device.id == DeviceId::Local(number))
}

/// Whether the device of an alert has just changed its state: that event has said so.
fn is_of_changed_state(alert: &Alert, devices: &[Device], earlier: &[Option<&Device>]) -> bool {
    let is_it = |(device, _): &(&Device, &Option<&Device>)| alert.device.as_ref() == Some(&device.id.to_string());
    let Some((device, earlier)) = devices.iter().zip(earlier).find(is_it) else { return false };
    let is_well = weight_of(device.state) == Weight::Good;
    let has_changed = earlier.map_or(!is_well, |earlier| earlier.state != device.state);
    alert.process.is_none() && has_changed
}

/// Whether events say it by themselves: each change of a state, and once for all devices that they are at their power limit, which
/// is normal.
fn is_of_event(alert: &Alert) -> bool {
    let is_normal_load = alert.name == POWER_LIMIT && alert.severity == Severity::Info;
    alert.process.is_none() && (is_normal_load || STATE_RULES.contains(&alert.name.as_str()))
}

/// What to say of a device that is called otherwise, or is elsewhere.
fn renumbered(earlier: &Device, device: &Device) -> Option<String> {
    let (was, is) = (earlier.pci_address.as_ref()?, device.pci_address.as_ref()?);
    match (&earlier.id, &device.id) {
        // Its gateway says so.
        (_, DeviceId::Remote(_)) => None,
        (DeviceId::Local(old), DeviceId::Local(new)) if old != new && was == is => {
            Some(format!("the device at {is} is number {new} now, was {old}"))
        }
        (DeviceId::Local(old), id) if was != is => {
            Some(format!("the chip at {was} is at {is} now: device {id}, was {old}"))
        }
        (DeviceId::Local(old), DeviceId::NoDriver(_)) => {
            Some(format!("the device at {is} has no number now, was {old}"))
        }
        (DeviceId::NoDriver(_), DeviceId::Local(new)) => Some(format!("the device at {is} is number {new} now")),
        _ => None,
    }
}

/// Which card is where another one was, where that is known.
fn serials(before: &Device, now: &Device) -> String {
    match (&before.serial, &now.serial) {
        (Some(was), Some(is)) if was != is => format!(" (serial {is}, was {was})"),
        _ => String::new(),
    }
}

fn weight_of(state: State) -> Weight {
    match state {
        State::Ok | State::Remote => Weight::Good,
        State::NoTelemetry | State::Resetting | State::NoDriver => Weight::Warning,
        State::Hung | State::Silent | State::Lost => Weight::Bad,
    }
}

/// What a state means, in brackets.
pub(crate) fn state_reason(earlier: &Device, device: &Device) -> &'static str {
    match device.state {
        State::Hung if earlier.heartbeat.is_some() && earlier.heartbeat == device.heartbeat => {
            " (firmware heartbeat stopped)"
        }
        State::Hung => " (firmware heartbeat stopped, or PCIe not responding)",
        State::Silent => " (did not answer in time)",
        State::Lost => " (disappeared from the bus)",
        State::Resetting => " (reset in progress)",
        State::NoTelemetry => " (the firmware has published none)",
        State::NoDriver => " (no driver is bound)",
        State::Ok | State::Remote => "",
    }
}

fn name_of(process: &Process) -> String {
    match display_name(process) {
        Some(name) => format!("pid {} ({name})", process.pid),
        None => format!("pid {}", process.pid),
    }
}

fn held_text(usage: Usage) -> String {
    usage.total().filter(|bytes| bytes.0 > 0).map(|bytes| format!(" (held {bytes})")).unwrap_or_default()
}

fn only_device(devices: &[Held]) -> Option<DeviceId> {
    devices.first().filter(|_| devices.len() == 1).map(|held| held.id.clone())
}

fn devices_of(devices: &[Held]) -> String {
    let follows =
        |pair: &[Held]| matches!((&pair[0].id, &pair[1].id), (DeviceId::Local(a), DeviceId::Local(b)) if a + 1 == *b);
    match devices {
        [] => "no device".into(),
        [one] => format!("device {}", one.id),
        [first, .., last] if devices.windows(2).all(follows) => format!("devices {}–{}", first.id, last.id),
        several if several.len() <= 4 => {
            let names: Vec<String> = several.iter().map(|held| held.id.to_string()).collect();
            format!("devices {}", names.join(", "))
        }
        [first, .., last] => format!("{} devices ({} to {})", devices.len(), first.id, last.id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::Moment;
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

    #[test]
    fn a_process_that_holds_memory_and_runs_nothing_is_reported_once() {
        let idle = |time, seconds: f64| moment(time, |snapshot| snapshot.processes[1].idle_seconds = Some(seconds));
        let found = texts(&[idle(1000, 0.0), idle(2000, 599.0), idle(3000, 605.0), idle(4000, 606.0)]);
        assert_eq!(found.last().unwrap(), "Note pid 4711 (serve.py) idle for 10 min, holding 12.4 GiB on device 0");
        assert_eq!(found.iter().filter(|text| text.contains("idle")).count(), 1, "{found:?}");
        let again = texts(&[idle(1000, 700.0), idle(2000, 1.0), idle(3000, 700.0)]);
        assert_eq!(again.iter().filter(|text| text.contains("idle")).count(), 2, "{again:?}");
        let firing = moment(1000, |snapshot| {
            snapshot.processes[1].idle_seconds = Some(700.0);
            snapshot.alerts = vec![Alert {
                name: IDLE_HOLDER.into(),
                severity: Severity::Info,
                state: model::AlertState::Firing,
                device: None,
                process: Some(4711),
                since: Timestamp(0),
                value: None,
                text: "pid 4711 (python3) holds device memory and runs nothing".into(),
            }];
        });
        let told = texts(&[firing]);
        assert_eq!(told.iter().filter(|text| text.contains("idle")).count(), 1, "the alert alone: {told:?}");
    }

    fn texts(moments: &[Moment]) -> Vec<String> {
        let mut events = Events::default();
        let nothing = Moment::default();
        let mut before = &nothing;
        for moment in moments {
            events.notice(before.observation(), moment.observation());
            before = moment;
        }
        events.all.iter().map(|event| format!("{:?} {}", event.weight, event.text)).collect()
    }

    /// What is reported of the change from the usual machine to another one.
    fn change(to: impl Fn(&mut Snapshot)) -> Vec<String> {
        let usual = texts(&[moment(1000, |_| {})]);
        texts(&[moment(1000, |_| {}), moment(2000, to)]).split_off(usual.len())
    }

    #[test]
    fn a_machine_that_does_not_change_has_no_events() {
        assert_eq!(change(|_| {}), [""; 0]);
    }

    #[test]
    fn a_change_of_state_has_both_names() {
        assert_eq!(
            change(|now| now.devices[1].state = State::Hung),
            ["Bad device 1: ok → hung (firmware heartbeat stopped, or PCIe not responding)"]
        );
        // Its heartbeat can be read, and is what it was.
        let stopped = change(|now| now.devices[0].state = State::Hung);
        assert_eq!(stopped, ["Bad device 0: ok → hung (firmware heartbeat stopped)"]);
        assert_eq!(change(|now| drop(now.devices.remove(1))), ["Bad device 1 disappeared"]);
        let bad_from_the_start = moment(1, |now| now.devices[0].state = State::Silent);
        assert!(texts(&[bad_from_the_start]).contains(&"Bad device 0: silent".to_owned()));
    }

    /// A moment of two cards, by the addresses of device 0 and of device 1.
    fn cards(time: i64, slots: [u32; 2]) -> Moment {
        moment(time, |now| {
            let card = |(n, slot): (usize, u32)| Device {
                pci_address: Some(model::PciAddress(format!("0000:{slot:02}:00.0").into())),
                serial: Some(format!("{slot}").into()),
                heartbeat: Some(slot * 1000),
                sample_age_seconds: Some(0.0),
                ..Device::new(DeviceId::Local(n as u32))
            };
            (now.devices, now.processes) = (slots.into_iter().enumerate().map(card).collect(), vec![]);
        })
    }

    #[test]
    fn numbers_that_swap_are_reported_as_such_and_not_as_resets() {
        assert_eq!(
            texts(&[cards(1, [1, 2]), cards(2, [2, 1])]),
            [
                "Warning the device at 0000:02:00.0 is number 0 now, was 1",
                "Warning the device at 0000:01:00.0 is number 1 now, was 0"
            ]
        );
        let replaced = texts(&[cards(1, [1, 2]), cards(2, [7, 2])]);
        assert_eq!(replaced, ["Warning device 0 is another card now (serial 7, was 1)"]);
    }

    #[test]
    fn an_alert_of_a_device_that_has_another_number_is_not_resolved() {
        let alert = |device: &str| Alert {
            name: "hot".into(),
            severity: Severity::Critical,
            state: model::AlertState::Firing,
            device: Some(device.into()),
            process: None,
            since: Timestamp(1),
            value: None,
            text: format!("device {device}: it is hot"),
        };
        let (mut before, mut after) = (cards(1, [1, 2]), cards(2, [2, 1]));
        before.snapshot.alerts.push(alert("0"));
        after.snapshot.alerts.push(alert("1"));
        let all = texts(&[before, after]);
        assert_eq!(all.iter().filter(|text| text.contains("hot")).count(), 1, "{all:?}");
    }

    #[test]
    fn a_heartbeat_that_falls_is_a_reset_and_one_that_wraps_is_not() {
        let beats = |from: u32, to: u32| {
            let all = texts(&[
                moment(1, |now| now.devices[0].heartbeat = Some(from)),
                moment(2, |now| now.devices[0].heartbeat = Some(to)),
            ]);
            all.into_iter().filter(|text| text.contains("reset")).count()
        };
        assert_eq!((beats(5000, 3), beats(u32::MAX - 1, 3), beats(5000, 5010)), (1, 0, 0));
    }

    #[test]
    fn a_process_that_ends_is_reported_with_what_it_held() {
        let all = change(|now| drop(now.processes.remove(1)));
        assert!(all[0].starts_with("Warning pid 4711 (serve.py) released device 0 (held "), "{all:?}");
        let come = texts(&[moment(1, |now| drop(now.processes.remove(1))), moment(2, |_| {})]);
        assert_eq!(come.last().unwrap(), "Note pid 4711 (serve.py) uses device 0");
    }

    #[test]
    fn an_exit_that_the_service_recorded_replaces_the_observation() {
        let mut gone = moment(2000, |now| drop(now.processes.remove(1)));
        let exit = |died_at| ExitRecord {
            signal: Some(9),
            devices: vec![Held { usage: Usage::measured(1 << 30, 0, 0, 0, 0), ..Held::new(DeviceId::Local(0)) }],
            ..ExitRecord::of(&Process { name: Some("python3".into()), ..Process::new(4711) }, Timestamp(died_at))
        };
        gone.exits.push(exit(1500));
        let mut later = moment(3000, |now| drop(now.processes.remove(1)));
        later.exits.push(exit(1500));
        let first = moment(1000, |_| {});
        let before = texts(std::slice::from_ref(&first)).len();
        let all = texts(&[first, gone, later]).split_off(before);
        assert_eq!(all, ["Warning pid 4711 (python3) was killed by SIGKILL (held 1.0 GiB)"]);
    }

    #[test]
    fn an_alert_is_reported_when_it_fires_and_when_it_is_resolved() {
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
        let all = texts(&[moment(1000, |_| {}), with(2000), with(3000), moment(4000, |_| {})]);
        let all: Vec<&String> = all.iter().filter(|text| text.contains("hot")).collect();
        assert_eq!(all, ["Bad hot: device 0: it is hot", "Good hot resolved: device 0: it is hot"]);
    }

    #[test]
    fn a_chip_that_does_not_answer_is_one_event_and_so_is_its_return() {
        let alert = Alert {
            name: "heartbeat-stopped".into(),
            severity: Severity::Critical,
            state: model::AlertState::Firing,
            device: Some("1".into()),
            process: None,
            since: Timestamp(2000),
            value: None,
            text: "device 1: firmware heartbeat stopped".into(),
        };
        let hung = |time| {
            moment(time, |now| {
                now.devices[1].state = State::Hung;
                now.alerts.push(alert.clone());
                now.faults.push(Fault::new("/sys/class/tenstorrent/tenstorrent!1/tt_aiclk", "PCIe not responding"));
            })
        };
        let well = |time| moment(time, |_| {});
        let all = texts(&[well(1000), hung(2000), hung(3000), well(4000)]);
        let all = &all[texts(&[well(1000)]).len()..];
        assert_eq!(
            all,
            [
                "Bad device 1: ok → hung (firmware heartbeat stopped, or PCIe not responding)",
                "Good device 1: hung → ok"
            ]
        );
    }

    #[test]
    fn an_hour_of_full_load_on_32_healthy_chips_has_few_events_and_no_warning() {
        let mut events = Events::default();
        let mut before = Moment::default();
        for second in (0..3600).step_by(2) {
            let mut snapshot = example::galaxy();
            snapshot.faults.clear();
            snapshot.taken_at = Timestamp(1_000_000 + second * 1000);
            for (n, device) in snapshot.devices.iter_mut().enumerate() {
                (device.state, device.sample_age_seconds) = (State::Ok, Some(0.0));
                device.heartbeat = Some(second as u32 + 10);
                // At its limit for most of the time, and a little below it now and then.
                let dip = (second + 7 * n as i64) % 90 < 4;
                let share = if dip { 0.9 } else { 1.0 };
                device.power = device.power_max.map(|limit| model::Watts(limit.0 * share));
                device.asic_temp = device.asic_temp_max.map(|limit| model::Celsius(limit.0 * 0.8));
                device.memory.dram_used = device.memory.dram_total.map(|total| model::Bytes(total.0 / 5 * 4));
                device.pcie = Default::default();
            }
            let moment = Moment::of(snapshot);
            events.notice(before.observation(), moment.observation());
            before = moment;
        }
        let all: Vec<&str> = events.all.iter().map(|event| event.text.as_str()).collect();
        assert!(all.len() <= 5, "{all:?}");
        assert!(events.all.iter().all(|event| event.weight <= Weight::Good), "{all:?}");
    }

    #[test]
    fn a_fault_that_stays_or_flickers_is_reported_once() {
        let with = |time| moment(time, |now| now.faults.push(Fault::new("/sys/x", "permission denied")));
        let all = texts(&[with(1000), with(2000), moment(3000, |_| {}), with(4000)]);
        assert_eq!(all.iter().filter(|text| text.contains("/sys/x: permission denied")).count(), 1);
        let all = texts(&[with(1000), moment(100_000, |_| {}), with(101_000)]);
        assert_eq!(all.iter().filter(|text| text.contains("/sys/x")).count(), 2);
    }

    #[test]
    fn devices_are_named_in_few_words() {
        let named = |ids: &[u32]| devices_of(&ids.iter().map(|n| Held::new(DeviceId::Local(*n))).collect::<Vec<_>>());
        assert_eq!([named(&[]), named(&[3])], ["no device", "device 3"]);
        assert_eq!([named(&[0, 1]), named(&[0, 2, 5])], ["devices 0–1", "devices 0, 2, 5"]);
        assert_eq!(named(&[0, 2, 4, 6, 8]), "5 devices (0 to 8)");
    }
}
