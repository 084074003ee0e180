//! Finds the incident that somebody asks for in a recording, without reading more of it than is needed.

use super::story::Scene;
use super::{Incident, Observer, incidents};
use crate::record::Recording;
use model::{Device, DeviceId, LogEntry, Selector, Snapshot, Timestamp};
use std::collections::BTreeSet;
use std::io;

/// Which incident. Without anything, the last one.
#[derive(Debug, Default, Clone)]
pub struct Wanted {
    /// A moment near it.
    pub at: Option<Timestamp>,
    /// A device that it touches.
    pub device: Option<Selector>,
    /// A process that it touches.
    pub pid: Option<u32>,
    /// Also one that is minor.
    pub is_any: bool,
}

/// What was found in a stretch of a recording.
pub struct Found {
    /// All facts and events of the stretch.
    pub observer: Observer,
    /// The incident, if there is one.
    pub incident: Option<Incident>,
    /// The machine before and after it.
    pub scene: Scene,
    /// The devices that were there, and those that the selector names.
    pub devices: BTreeSet<DeviceId>,
    /// Devices that the selector names.
    pub named: BTreeSet<DeviceId>,
    /// The stretch that was read.
    pub from: Timestamp,
    /// End of the stretch.
    pub to: Timestamp,
}

const MINUTE: i64 = 60_000;
/// What is read before the first change, and after the last.
const BEFORE: i64 = 10 * MINUTE;
const AFTER: i64 = 2 * MINUTE;
/// So many incidents of the log are looked at.
const MOST_TRIES: usize = 20;
/// Where no log says when something happened, the last hour is read, then more.
const LOOK_BACK: [i64; 4] = [60 * MINUTE, 4 * 60 * MINUTE, 16 * 60 * MINUTE, i64::MAX];

/// Finds the incident, and the machine around it.
pub fn search(recording: &mut Recording, wanted: &Wanted) -> io::Result<Found> {
    let (first, last) = recording.span();
    if let Some(at) = wanted.at {
        return look(recording, wanted, Timestamp(at.0 - BEFORE), Timestamp(at.0 + BEFORE));
    }
    // Entries of the log are few, and say where to look.
    let mut log = Observer::default();
    recording.each_entry(Timestamp(0), Timestamp(i64::MAX), |entry| match entry {
        // These are many, and say nothing of when.
        LogEntry::Operations(_) => {}
        entry => log.enter(entry),
    });
    let everything = Wanted { device: None, ..wanted.clone() };
    let known: Vec<Incident> = incidents(&log).into_iter().filter(|one| everything.fits(one, None)).collect();
    for incident in known.iter().rev().take(MOST_TRIES) {
        let (from, to) = (Timestamp(incident.began().0 - BEFORE), Timestamp(incident.ended().0 + AFTER));
        let found = look(recording, wanted, from, to)?;
        if found.incident.is_some() {
            return Ok(found);
        }
    }
    let (mut devices, mut named) = (BTreeSet::new(), BTreeSet::new());
    for back in LOOK_BACK {
        let from = Timestamp(last.0.saturating_sub(back).max(first.0));
        let found = look(recording, wanted, from, last)?;
        if found.incident.is_some() {
            return Ok(found);
        }
        (devices, named) = (found.devices, found.named);
        if from == first {
            break;
        }
    }
    // Of a device, anything is better than nothing.
    let any = Wanted { is_any: wanted.device.is_some(), ..wanted.clone() };
    let found = look(recording, &any, Timestamp(last.0.saturating_sub(LOOK_BACK[0]).max(first.0)), last)?;
    // All of it was read before.
    Ok(if found.incident.is_none() { Found { from: first, devices, named, ..found } } else { found })
}

/// Finds the incident in what a running service knows: a log, and the machine as it is now.
pub fn search_present(log: Vec<LogEntry>, now: Snapshot, wanted: &Wanted) -> Found {
    let mut observer = Observer::default();
    let (to, mut from) = (now.taken_at, now.taken_at);
    for entry in log {
        from = from.min(entry.time());
        observer.enter(entry);
    }
    observer.see(now.clone());
    let is_meant = |device: &&Device| wanted.device.as_ref().is_some_and(|selector| selector.names(device));
    let mut named: BTreeSet<DeviceId> = now.devices.iter().filter(is_meant).map(|device| device.id.clone()).collect();
    // One that is gone has only its number left.
    let is_number = |id: &&DeviceId| wanted.device.as_ref().is_some_and(|selector| selector.0 == id.to_string());
    named.extend(observer.facts.iter().filter_map(|fact| fact.device.as_ref()).filter(is_number).cloned());
    let incident = wanted.choose(&observer, &named);
    let devices = now.devices.iter().map(|device| device.id.clone()).collect();
    let scene = Scene { before: None, during: None, after: Some(now) };
    Found { observer, incident, scene, devices, named, from, to }
}

/// Finds the incident in snapshots, the earliest first.
pub fn search_snapshots(snapshots: &[Snapshot], wanted: &Wanted) -> Found {
    let mut observer = Observer::default();
    let all = || snapshots.iter().flat_map(|snapshot| &snapshot.devices);
    let devices = all().map(|device| device.id.clone()).collect();
    let is_meant = |device: &&Device| wanted.device.as_ref().is_some_and(|selector| selector.names(device));
    let named: BTreeSet<DeviceId> = all().filter(is_meant).map(|device| device.id.clone()).collect();
    snapshots.iter().for_each(|snapshot| observer.see(snapshot.clone()));
    let incident = wanted.choose(&observer, &named);
    let time = |snapshot: Option<&Snapshot>| snapshot.map(|snapshot| snapshot.taken_at).unwrap_or_default();
    let scene = incident.as_ref().map(|incident| {
        let at = |time: Timestamp| snapshots.partition_point(|snapshot| snapshot.taken_at < time);
        let (during, after) = (at(incident.moment()), at(Timestamp(incident.ended().0 + AFTER)));
        let get = |place: Option<usize>| place.and_then(|place| snapshots.get(place)).cloned();
        let after = Some(after.min(snapshots.len().saturating_sub(1)));
        Scene { before: get(during.checked_sub(1)), during: get(Some(during)), after: get(after) }
    });
    let (scene, from, to) = (scene.unwrap_or_default(), time(snapshots.first()), time(snapshots.last()));
    Found { observer, incident, scene, devices, named, from, to }
}

/// Reads a stretch, and takes the incident that fits best.
fn look(recording: &mut Recording, wanted: &Wanted, from: Timestamp, to: Timestamp) -> io::Result<Found> {
    let mut observer = Observer::default();
    let (mut devices, mut named) = (BTreeSet::new(), BTreeSet::new());
    for index in recording.range(from, to) {
        let snapshot = recording.snapshot(index)?;
        if let Some(selector) = &wanted.device {
            named.extend(snapshot.devices.iter().filter(|device| selector.names(device)).map(|one| one.id.clone()));
        }
        devices.extend(snapshot.devices.iter().map(|one| one.id.clone()));
        observer.see(snapshot);
    }
    recording.each_entry(from, to, |entry| observer.enter(entry));
    let incident = wanted.choose(&observer, &named);
    let scene = incident.as_ref().map(|incident| scene(recording, incident)).transpose()?.unwrap_or_default();
    Ok(Found { observer, incident, scene, devices, named, from, to })
}

fn distance(incident: &Incident, at: Timestamp) -> i64 {
    (incident.began().0 - at.0).max(at.0 - incident.ended().0).max(0)
}

fn scene(recording: &mut Recording, incident: &Incident) -> io::Result<Scene> {
    let moment = incident.moment();
    let (first, last) = recording.span();
    let before = Timestamp(moment.0 - 1);
    let before = (first <= before).then(|| recording.index_at(before));
    let during = before.map_or(0, |before| before + 1);
    let after = recording.index_at(Timestamp(last.0.min(incident.ended().0 + AFTER)));
    Ok(Scene {
        before: before.map(|index| recording.snapshot(index)).transpose()?,
        during: (during < recording.len()).then(|| recording.snapshot(during)).transpose()?,
        after: Some(recording.snapshot(after)?),
    })
}

impl Wanted {
    /// The incident that fits best. `named` are the devices that the selector means.
    fn choose(&self, observer: &Observer, named: &BTreeSet<DeviceId>) -> Option<Incident> {
        let named = self.device.is_some().then_some(named);
        let fitting = incidents(observer).into_iter().filter(|incident| self.fits(incident, named));
        match self.at {
            Some(at) => fitting.min_by_key(|incident| distance(incident, at)),
            None => fitting.last(),
        }
    }

    /// Whether an incident is about what is wanted. What is minor is told only where that is wanted.
    fn fits(&self, incident: &Incident, devices: Option<&BTreeSet<DeviceId>>) -> bool {
        let on_device = devices.is_none_or(|devices| !devices.is_disjoint(&incident.touches.devices));
        let of_pid = self.pid.is_none_or(|pid| incident.touches.pids.contains(&pid));
        on_device && of_pid && (incident.is_serious() || self.is_any)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cause;
    use super::*;
    use model::{Event, State, Weight};

    fn event(minute: i64, text: &str) -> LogEntry {
        let device = Some(DeviceId::Local(1));
        LogEntry::Event(Event::new(Timestamp(minute * MINUTE), Weight::Bad, device, format!("device 1{text}")))
    }

    fn now(state: State) -> Snapshot {
        let mut device = Device::new(DeviceId::Local(1));
        device.state = state;
        Snapshot { taken_at: Timestamp(60 * MINUTE), devices: vec![device], ..Snapshot::empty() }
    }

    /// The minute, the cause and how many facts there are.
    fn found(log: Vec<LogEntry>, state: State, wanted: &Wanted) -> Option<(i64, Cause, usize)> {
        let incident = search_present(log, now(state), wanted).incident?;
        Some((incident.began().0 / MINUTE, incident.facts[0].cause, incident.facts.len()))
    }

    #[test]
    fn an_event_says_since_when_a_device_is_as_it_is_now() {
        let (last, hung) = (Wanted::default(), || event(5, ": ok → hung (firmware heartbeat stopped)"));
        assert_eq!(found(Vec::new(), State::Hung, &last), Some((60, Cause::Hung, 1)), "nothing says since when");
        assert_eq!(found(vec![hung()], State::Hung, &last), Some((5, Cause::Hung, 1)));
        let again = || vec![hung(), event(7, ": hung → ok"), event(40, ": ok → hung")];
        assert_eq!(found(again(), State::Hung, &last), Some((40, Cause::Hung, 1)));
        let back = vec![hung(), event(7, ": hung → ok")];
        assert_eq!(found(back, State::Hung, &last), Some((60, Cause::Hung, 1)), "of the last time there is no event");
        assert_eq!(found(again(), State::Ok, &last), Some((40, Cause::Hung, 1)));
        let first = Wanted { at: Some(Timestamp(10 * MINUTE)), ..Wanted::default() };
        assert_eq!(found(again(), State::Hung, &first), Some((5, Cause::Hung, 1)));
    }

    #[test]
    fn a_device_that_is_gone_is_found_by_its_number() {
        let of = |name: &str| Wanted { device: Some(Selector(name.into())), ..Wanted::default() };
        let gone = |wanted: &Wanted| {
            let empty = Snapshot { devices: Vec::new(), ..now(State::Ok) };
            search_present(vec![event(5, " disappeared")], empty, wanted).incident.is_some()
        };
        assert!(gone(&of("1")) && !gone(&of("0")));
    }
}
