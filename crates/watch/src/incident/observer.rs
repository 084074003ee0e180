//! Finds facts in snapshots, one after the other, and in the entries of a log.

use super::cause::Cause;
use super::fact::{Fact, FactSource};
use super::from_events;
use super::growth::Growth;
use super::names::{devices_text, exit_name, held_text, process_of_user};
use crate::events::state_reason;
use crate::kernel_events;
use model::figure::Figure;
use model::figure::device::{ASIC_TEMP, DRAM_USED};
use model::judgement::HYSTERESIS;
use model::{
    Device, DeviceId, Event, ExitRecord, KernelEvent, LogEntry, OperationTotals, Process, Snapshot, State, Timestamp,
    earlier_devices, throttle,
};
use show::text::signal;
use std::collections::{BTreeMap, BTreeSet};

/// What was found so far.
#[derive(Debug, Default)]
pub struct Observer {
    before: Option<Snapshot>,
    /// When snapshots were taken.
    pub(super) times: Vec<Timestamp>,
    pub(super) facts: Vec<Fact>,
    pub(super) kernel: Vec<Event>,
    /// Whether the kernel's log was read at all.
    pub(super) reads_kernel_log: bool,
    pub(super) exits: Vec<ExitRecord>,
    pub(super) left: Vec<Departure>,
    pub(super) arrived: Vec<Arrival>,
    pub(super) recovered: Vec<(DeviceId, Timestamp)>,
    pub(super) operations: Vec<OperationTotals>,
    growth: Growth,
    devices: BTreeMap<DeviceId, Followed>,
}

/// A process that no longer has a device.
#[derive(Debug, Clone)]
pub(super) struct Departure {
    pub process: Process,
    pub time: Timestamp,
    /// When it still had it.
    pub not_before: Timestamp,
}

/// A process that began to use a device.
#[derive(Debug, Clone)]
pub(super) struct Arrival {
    pub name: String,
    pub devices: Vec<DeviceId>,
    pub time: Timestamp,
}

/// What has to be remembered of a device.
#[derive(Debug, Default)]
struct Followed {
    heat: Level,
    is_throttled: bool,
    /// When a deep read last said that heat does not hold the clock down.
    not_throttled: Option<Timestamp>,
    memory: Level,
    is_slow: bool,
    /// The last count of thermal trips, and when it was read.
    trips: Option<(u32, Timestamp)>,
    heartbeat: Option<(u32, Timestamp)>,
    /// When each Ethernet port was last seen up.
    up: Vec<Option<Timestamp>>,
}

/// A record that is so many milliseconds apart from the last sample of a process is about its end.
const EXPLAINED_WITHIN: i64 = 15_000;
/// The service notices within so many milliseconds that a process has exited.
const NOTICED_WITHIN: i64 = 1000;

impl Observer {
    /// The next snapshot.
    pub fn see(&mut self, snapshot: Snapshot) {
        self.times.push(snapshot.taken_at);
        self.growth.see(&snapshot);
        self.reads_kernel_log |= snapshot.kernel_log.is_some();
        let nothing = Snapshot::empty();
        let before = self.before.take();
        let earlier = before.as_ref().unwrap_or(&nothing);
        kernel_events::news(earlier, &snapshot).for_each(|event| self.kernel(event));
        self.compare_devices(earlier, &snapshot);
        if before.is_some() {
            self.compare_machine(earlier, &snapshot);
        }
        self.before = Some(snapshot);
    }

    /// An entry of the log.
    pub fn enter(&mut self, entry: LogEntry) {
        match entry {
            LogEntry::Event(event) if event.kernel.is_some() => {
                self.reads_kernel_log = true;
                self.kernel(event);
            }
            LogEntry::Event(event) => self.event(&event),
            LogEntry::Exit(exit) => self.exit(*exit),
            LogEntry::Operations(totals) => self.operations.push(totals),
            LogEntry::Start(_) => {}
        }
    }

    /// All facts, each once, in the order of time.
    pub(super) fn all_facts(&self) -> Vec<Fact> {
        let mut facts = self.facts.clone();
        facts.extend(self.growth.facts());
        // The kernel does not say which devices a process had.
        for fact in facts.iter_mut().filter(|fact| fact.source == FactSource::KernelLog) {
            let left = self.left.iter().filter(|departure| Some(departure.process.pid) == fact.pid);
            let devices = left.flat_map(|departure| &departure.process.devices).map(|held| held.id.clone());
            fact.touches.devices.extend(devices);
        }
        for fact in facts.iter_mut().filter(|fact| fact.source == FactSource::Events) {
            let at = self.times.partition_point(|time| *time < fact.time);
            // A second is the usual time between samples.
            fact.not_before = at.checked_sub(1).map_or(Timestamp(fact.time.0 - 1000), |at| self.times[at]);
        }
        facts.sort_by_key(|fact| fact.time);
        let is_told: Vec<bool> = facts.iter().map(|fact| self.is_told_by_event(fact, &facts)).collect();
        facts.into_iter().zip(is_told).filter(|(_, is_told)| !is_told).map(|(fact, _)| fact).collect()
    }

    /// Whether a fact is so from the first sample on, and an event says when it began.
    fn is_told_by_event(&self, fact: &Fact, all: &[Fact]) -> bool {
        let (Some(device), Timestamp(0)) = (&fact.device, fact.not_before) else { return false };
        let mut earlier = all.iter().filter(|other| other.source == FactSource::Events && other.time <= fact.time);
        let Some(event) = earlier.rfind(|other| other.is_like(fact)) else { return false };
        !self.recovered.iter().any(|(id, time)| id == device && (event.time..=fact.time).contains(time))
    }

    /// Processes that held memory and are gone, without a record of how they ended.
    pub(super) fn gone(&self) -> impl Iterator<Item = Fact> {
        let is_explained = |pid: u32, time: Timestamp| {
            let is_near = |other: Timestamp| (time.0 - other.0).abs() <= EXPLAINED_WITHIN;
            let by_exit = self.exits.iter().any(|exit| exit.pid == pid && is_near(exit.died_at));
            by_exit || self.facts.iter().any(|fact| fact.pid == Some(pid) && is_near(fact.time))
        };
        let unknown = self.left.iter().filter(move |one| !is_explained(one.process.pid, one.time));
        unknown.filter_map(|Departure { process, time, not_before }| {
            let ids = process.devices.iter().map(|held| &held.id);
            let (name, devices, held) =
                (process_of_user(process), devices_text(ids.clone()), held_text(process.usage())?);
            let text = format!("{name} no longer has {devices}, where it held {held}; how it ended is not recorded");
            let mut fact = Fact::at(Cause::Gone, *time, *not_before, text, FactSource::Processes).of(process.pid);
            fact.touches.devices.extend(ids.cloned());
            Some(fact)
        })
    }

    fn compare_devices(&mut self, before: &Snapshot, now: &Snapshot) {
        let earlier = earlier_devices(&before.devices, &now.devices);
        for (device, earlier) in now.devices.iter().zip(&earlier) {
            // One that has lost its number is called by it.
            let id = earlier.map_or(&device.id, |earlier| &earlier.id).clone();
            let mut found = self.state_change(*earlier, device, &id, before, now);
            if earlier.is_some_and(|earlier| earlier.state != State::Ok) && device.state == State::Ok {
                self.recovered.push((id.clone(), now.taken_at));
            }
            found.extend(self.devices.entry(id.clone()).or_default().follow(device, before.taken_at, now.taken_at));
            self.add(found.into_iter().map(|fact| fact.on(id.clone())), before, now);
        }
        let is_gone = |device: &&Device| !earlier.iter().flatten().any(|same| same.id == device.id);
        let lost = before.devices.iter().filter(is_gone).map(|device| {
            let (text, source) =
                (format!("device {} disappeared", device.id), FactSource::Telemetry(device.id.clone()));
            Fact::at(Cause::Lost, now.taken_at, before.taken_at, text, source).on(device.id.clone())
        });
        self.add(lost.collect::<Vec<_>>(), before, now);
    }

    fn state_change(
        &self,
        earlier: Option<&Device>,
        device: &Device,
        id: &DeviceId,
        before: &Snapshot,
        now: &Snapshot,
    ) -> Vec<Fact> {
        let is_first = self.times.len() == 1;
        let was = earlier.map(|earlier| earlier.state);
        if was == Some(device.state) || (was.is_none() && !is_first) {
            return Vec::new();
        }
        let Some(cause) = Cause::of_state(device.state) else { return Vec::new() };
        let (text, not_before) = match earlier {
            Some(earlier) => {
                let (was, is) = (earlier.state.name(), device.state.name());
                // A heartbeat has to stand still for three seconds.
                let is_readable = earlier.heartbeat.is_some() && earlier.heartbeat == device.heartbeat;
                let lag = if device.state == State::Hung && is_readable { 4000 } else { 0 };
                let reason = state_reason(earlier, device);
                (format!("device {id}: {was} → {is}{reason}"), Timestamp(before.taken_at.0 - lag))
            }
            None => (format!("device {id}: {} since before the first sample", device.state.name()), Timestamp(0)),
        };
        vec![Fact::at(cause, now.taken_at, not_before, text, FactSource::Telemetry(id.clone()))]
    }

    fn compare_machine(&mut self, before: &Snapshot, now: &Snapshot) {
        if let (Some(version), None) = (&before.host.driver_version, &now.host.driver_version) {
            let text = format!("the driver was unloaded (version {version} before)");
            let mut fact = Fact::at(Cause::DriverUnloaded, now.taken_at, before.taken_at, text, FactSource::Module);
            fact.touches.devices.extend(before.devices.iter().map(|device| device.id.clone()));
            self.add([fact], before, now);
        }
        let identity = |process: &Process| (process.pid, process.started_at);
        let all = |snapshot: &Snapshot| snapshot.processes.iter().map(identity).collect::<BTreeSet<_>>();
        let (were, are) = (all(before), all(now));
        let left = before.processes.iter().filter(|process| !are.contains(&identity(process)));
        self.left.extend(left.map(|process| Departure {
            process: process.clone(),
            time: now.taken_at,
            not_before: before.taken_at,
        }));
        let new = now.processes.iter().filter(|process| !were.contains(&identity(process)));
        self.arrived.extend(new.map(|process| Arrival {
            name: process_of_user(process),
            devices: process.devices.iter().map(|held| held.id.clone()).collect(),
            time: now.taken_at,
        }));
    }

    fn event(&mut self, event: &Event) {
        if let Some(device) = from_events::recovered(event) {
            self.recovered.push((device, event.time));
        }
        if let Some((cause, device)) = from_events::cause(event) {
            let fact = Fact::at(cause, event.time, event.time, event.text.clone(), FactSource::Events).on(device);
            self.facts.push(fact);
        }
    }

    fn exit(&mut self, exit: ExitRecord) {
        if let Some(number) = exit.signal {
            let held = held_text(exit.usage()).map(|held| format!(", holding {held}")).unwrap_or_default();
            let cause = Cause::of_signal(number);
            let how = if cause == Cause::Killed { "killed" } else { "ended" };
            let text = format!("{} was {how} by {}{held}", exit_name(&exit), signal(number));
            // The service may have noticed it a little later.
            let not_before = Timestamp(exit.died_at.0 - NOTICED_WITHIN);
            let mut fact = Fact::at(cause, exit.died_at, not_before, text, FactSource::ExitRecord).of(exit.pid);
            fact.touches.devices.extend(exit.devices.iter().map(|held| held.id.clone()));
            self.facts.push(fact);
        }
        self.exits.push(exit);
    }

    fn kernel(&mut self, event: Event) {
        let Some(said) = &event.kernel else { return };
        let text = |event: &Event| event.kernel.as_ref().map(|kernel| kernel.text.clone());
        if self.kernel.iter().any(|known| known.time == event.time && text(known) == text(&event)) {
            return;
        }
        if let Some(cause) = Cause::of_kernel(said.kind, event.weight, &said.text) {
            let text = match victim(&said.text) {
                Some((pid, name)) if matches!(cause, Cause::HostOutOfMemory | Cause::MemoryLimit) => {
                    let why = match cause {
                        Cause::MemoryLimit => "its container had reached its memory limit",
                        _ => "the host was out of memory",
                    };
                    format!("the kernel killed pid {pid} ({name}): {why}")
                }
                _ => event.text.clone(),
            };
            let mut fact = Fact::at(cause, event.time, event.time, text, FactSource::KernelLog);
            if let Some((pid, _)) = victim(&said.text) {
                fact = fact.of(pid);
            }
            if let Some(device) = &event.device {
                fact = fact.on(device.clone());
            }
            fact.touches.pids.extend(holders(said));
            self.facts.push(fact);
        }
        self.kernel.push(event);
    }

    /// Adds facts of devices, with the processes that hold them.
    fn add(&mut self, facts: impl IntoIterator<Item = Fact>, before: &Snapshot, now: &Snapshot) {
        for mut fact in facts {
            let processes = before.processes.iter().chain(&now.processes);
            let holds = |process: &&Process| process.devices.iter().any(|held| fact.touches.devices.contains(&held.id));
            let pids: Vec<u32> = processes.filter(holds).map(|process| process.pid).collect();
            fact.touches.pids.extend(pids);
            self.facts.push(fact);
        }
    }
}

impl Followed {
    /// What else is new on a device.
    fn follow(&mut self, device: &Device, before: Timestamp, now: Timestamp) -> Vec<Fact> {
        let id = &device.id;
        let telemetry = || FactSource::Telemetry(id.clone());
        let mut found = Vec::new();
        // The last values of a device that does not answer say nothing of now.
        let is_current = device.sample_age_seconds.is_some_and(|age| age <= 0.0) && device.state == State::Ok;
        if let Some(trips) = device.thermal_trips.filter(|_| is_current) {
            if let Some((was, at)) = self.trips.replace((trips, now)).filter(|(was, _)| trips > *was) {
                let times = trips - was;
                let text = format!("device {id} shut down at critical temperature (thermal trips: +{times})");
                found.push(Fact::at(Cause::ThermalTrip, now, at, text, telemetry()));
            }
        }
        if let Some(beats) = device.heartbeat.filter(|_| is_current) {
            let restarted = |was: u32| beats < was && was - beats < u32::MAX / 2;
            if let Some((_, at)) = self.heartbeat.replace((beats, now)).filter(|(was, _)| restarted(*was)) {
                let text = format!("device {id} was reset (heartbeat restarted)");
                found.push(Fact::at(Cause::Reset, now, at, text, telemetry()));
            }
        }
        if is_current {
            if let Some(since) = self.heat.crosses(&ASIC_TEMP, device, now) {
                let text = format!("device {id}: {}", value_of(&ASIC_TEMP, device, "temperature critical"));
                found.push(Fact::at(Cause::Heat, now, since, text, telemetry()));
            }
            let sentence = throttle::clock_limit(device).filter(|limit| limit.is_warning());
            let sentence = sentence.and_then(|_| throttle::sentence(device, None));
            let is_throttled = sentence.is_some();
            if let Some(sentence) = sentence.filter(|_| !self.is_throttled) {
                let (text, source) = (format!("device {id}: {sentence}"), FactSource::DeepRead(id.clone()));
                found.push(Fact::at(Cause::Throttled, now, self.not_throttled.unwrap_or(before), text, source));
            }
            // Deep reads are seconds apart.
            if is_throttled || throttle::by(device).is_some() {
                self.is_throttled = is_throttled;
                self.not_throttled = Some(read_at(device, now)).filter(|_| !is_throttled);
            }
            // One that was full from the start is used so.
            if let Some(since) = self.memory.crosses(&DRAM_USED, device, now).filter(|since| since.0 > 0) {
                let text = format!("device {id}: {}", value_of(&DRAM_USED, device, "DRAM full"));
                found.push(Fact::at(Cause::MemoryFull, now, since, text, FactSource::Memory(id.clone())));
            }
            let is_slow = device.link_is_degraded();
            if is_slow && !self.is_slow && before.0 > 0 {
                let text = format!("device {id}: PCIe link degraded");
                found.push(Fact::at(Cause::SlowLink, now, before, text, telemetry()));
            }
            self.is_slow = is_slow;
        }
        found.extend(self.links(device, now));
        found
    }

    fn links(&mut self, device: &Device, now: Timestamp) -> Option<Fact> {
        let deep = device.deep.as_ref().filter(|_| device.state == State::Ok)?;
        self.up.resize(self.up.len().max(deep.eth_link_up.len()), None);
        let mut down = Vec::new();
        for (port, (seen, up)) in self.up.iter_mut().zip(&deep.eth_link_up).enumerate() {
            match up {
                Some(true) => *seen = Some(read_at(device, now)),
                Some(false) => down.extend(seen.take().map(|seen| (seen, port))),
                None => {}
            }
        }
        let (last_up, _) = *down.iter().min()?;
        let ports: Vec<String> = down.iter().map(|(_, port)| port.to_string()).collect();
        let word = if ports.len() == 1 { "port" } else { "ports" };
        let text = format!("device {}: Ethernet {word} {} no longer up", device.id, ports.join(", "));
        Some(Fact::at(Cause::LinkDown, now, last_up, text, FactSource::DeepRead(device.id.clone())))
    }
}

/// When the deep read that a device has was made.
fn read_at(device: &Device, now: Timestamp) -> Timestamp {
    let age = device.deep.as_ref().and_then(|deep| deep.age_seconds).unwrap_or(0.0);
    Timestamp(now.0 - (age * 1000.0) as i64)
}

/// A value that can become critical.
#[derive(Debug, Default)]
struct Level {
    is_critical: bool,
    /// When it was last measured and was not.
    below: Option<Timestamp>,
}

impl Level {
    /// Since when it can have been critical, if it is so for the first time since it was well below. `Timestamp(0)` where it was so from
    /// the start.
    fn crosses(&mut self, figure: &Figure<Device>, device: &Device, now: Timestamp) -> Option<Timestamp> {
        let share = figure.share(device)?;
        let (_, critical) = figure.judge.thresholds()?;
        let is_new = share >= critical && !self.is_critical;
        if share >= critical || share < critical * HYSTERESIS {
            self.is_critical = share >= critical;
        }
        let since = self.below.unwrap_or_default();
        self.below = Some(now).filter(|_| !self.is_critical);
        is_new.then_some(since)
    }
}

fn value_of(figure: &Figure<Device>, device: &Device, what: &str) -> String {
    match (figure.number(device), figure.limit_of(device)) {
        (Some(value), Some(limit)) => {
            format!("{what}: {} of {}", figure.unit.number(value), figure.unit.number(limit))
        }
        _ => what.to_owned(),
    }
}

/// Pid and name in `Out of memory: Killed process 4711 (python3) total-vm:…`.
pub(super) fn victim(text: &str) -> Option<(u32, &str)> {
    let (_, rest) = text.split_once("Killed process ")?;
    let (pid, rest) = rest.split_once(" (")?;
    Some((pid.parse().ok()?, rest.split_once(')')?.0))
}

fn holders(said: &KernelEvent) -> impl Iterator<Item = u32> {
    said.held_by.iter().map(|holder| holder.pid)
}
