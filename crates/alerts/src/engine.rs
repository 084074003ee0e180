//! Rules, shown one snapshot after the other: what is pending, what fires, what is over.
//!
//! A rule is followed for each device or process that it is about. It is *pending* while its condition is so, and *firing* once
//! that was so for its `for`. It is *resolved* when `until` is so, or, without one, when the condition is not so any more.
//!
//! A value that is missing, because it was not measured or the device does not answer, makes nothing fire: what was pending is
//! forgotten. It does not resolve anything at once, either: a device's last value counts for five minutes. Then the alert is
//! resolved, and its text says that nothing is known. Processes that are gone resolve at once.

use crate::ended::Ended;
use crate::figure::{Scope, Seen};
use crate::rule::Rule;
use crate::track::{Key, LOOK_BACK, Stand, Track};
use model::{Alert, AlertState, Device, Process, Snapshot, Timestamp};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

/// Rules, and where they stand.
#[derive(Debug, Default)]
pub struct Engine {
    rules: Vec<Rule>,
    /// What each of the rules is about.
    tracks: Vec<BTreeMap<Key, Track>>,
    /// And what it takes to follow it.
    needs: Vec<(Scope, bool)>,
    /// How many devices and processes were not followed for lack of room.
    refused: usize,
}

/// Something that has begun to fire, or is over.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// As it is now.
    pub alert: Alert,
    /// The same for the same rule about the same thing.
    pub fingerprint: String,
    /// What Alertmanager calls the rule.
    pub alertname: String,
    /// What the rule says.
    pub rule: String,
    /// Where the device is.
    pub pci_address: Option<String>,
    /// The short name of the process.
    pub process_name: Option<String>,
    /// When it began to fire.
    pub started_at: Timestamp,
    /// When it was over.
    pub ended_at: Option<Timestamp>,
}

/// So many are followed at the most.
const MOST: usize = 20_000;
/// What is over is shown for so long.
const SHOWN: Duration = Duration::from_secs(900);

impl Engine {
    /// With these rules, and nothing seen yet.
    pub fn new(rules: Vec<Rule>) -> Engine {
        Engine { tracks: vec![BTreeMap::new(); rules.len()], needs: needs(&rules), rules, refused: 0 }
    }

    /// The rules.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Other rules from now on. Those that stay as they were go on where they stand; what fires by another one is over.
    pub fn set_rules(&mut self, rules: Vec<Rule>, at: Timestamp) -> Vec<Notice> {
        let mut notices = Vec::new();
        let mut tracks = vec![BTreeMap::new(); rules.len()];
        for (rule, mut followed) in self.rules.iter().zip(std::mem::take(&mut self.tracks)) {
            if let Some(stays) = rules.iter().position(|new| new == rule) {
                tracks[stays] = followed;
                continue;
            }
            for (key, track) in &mut followed {
                if let Stand::Firing(since) = track.stand {
                    track.text = format!("{}: the rule was changed", subject(key, track));
                    notices.push(notice(rule, key, track, AlertState::Resolved, at, since, Some(at)));
                }
            }
        }
        (self.needs, self.rules, self.tracks) = (needs(&rules), rules, tracks);
        sorted(notices)
    }

    /// Takes a snapshot, and the processes that have ended in the last minutes; says what begins to fire and what is over. `now` is of
    /// a clock that only goes forward.
    pub fn observe(&mut self, now: Duration, snapshot: &Snapshot, ended: &[Ended]) -> Vec<Notice> {
        let mut notices = Vec::new();
        let mut room = MOST.saturating_sub(self.tracks.iter().map(BTreeMap::len).sum());
        self.refused = 0;
        for ((rule, tracks), &(scope, looks_back)) in self.rules.iter().zip(&mut self.tracks).zip(&self.needs) {
            for (key, seen) in subjects(rule, scope, snapshot, ended) {
                // Most of the time nothing is so, and nothing of it need be remembered.
                let is_so = || rule.condition.when.holds(&|compare| compare.sees(&seen));
                if !looks_back && !tracks.contains_key(&key) && !is_so() {
                    continue;
                }
                let track = match tracks.entry(key.clone()) {
                    Entry::Occupied(track) => track.into_mut(),
                    Entry::Vacant(_) if room == 0 => {
                        self.refused += 1;
                        continue;
                    }
                    Entry::Vacant(place) => {
                        room -= 1;
                        place.insert(Track::new(rule))
                    }
                };
                track.seen = now;
                let name = seen.process.and_then(|process| process.name.as_ref());
                keep(&mut track.process_name, name.or(seen.ended.and_then(|ended| ended.name.as_ref())));
                let address = seen.device.and_then(|device| device.pci_address.as_ref());
                if track.pci_address.as_ref() != address {
                    track.pci_address = address.cloned();
                }
                track.look(now, &seen);
                notices.extend(step(rule, scope, &key, track, now, snapshot.taken_at));
            }
            for (key, track) in tracks.iter_mut().filter(|(_, track)| track.seen != now) {
                track.look(now, &Seen::default());
                notices.extend(step(rule, scope, key, track, now, snapshot.taken_at));
            }
            tracks.retain(|_, track| match track.stand {
                Stand::Calm if !looks_back => false,
                Stand::Calm => track.seen == now || now.saturating_sub(track.seen) <= LOOK_BACK.max(track.longest()),
                Stand::Pending(..) | Stand::Firing(_) => true,
                Stand::Resolved(_, at, _) => track.seen == now || now.saturating_sub(at) <= SHOWN,
            });
        }
        sorted(notices)
    }

    /// What is pending, firing, or over for less than a quarter of an hour; what matters most first.
    pub fn alerts(&self, now: Duration) -> Vec<Alert> {
        let mut all: Vec<(&Key, Alert)> = Vec::new();
        let tracks = self.rules.iter().zip(&self.tracks);
        for (rule, (key, track)) in tracks.flat_map(|(rule, tracks)| tracks.iter().map(move |track| (rule, track))) {
            let (state, since) = match track.stand {
                Stand::Pending(_, since) => (AlertState::Pending, since),
                Stand::Firing(since) => (AlertState::Firing, since),
                Stand::Resolved(_, at, since) if now.saturating_sub(at) <= SHOWN => (AlertState::Resolved, since),
                Stand::Calm | Stand::Resolved(..) => continue,
            };
            all.push((key, alert(rule, key, track, state, since)));
        }
        let rank = |state: AlertState| match state {
            AlertState::Firing => 0,
            AlertState::Pending => 1,
            AlertState::Resolved => 2,
        };
        all.sort_by(|(a, one), (b, other)| {
            let by_weight = rank(one.state).cmp(&rank(other.state)).then(other.severity.cmp(&one.severity));
            by_weight.then_with(|| one.name.cmp(&other.name)).then_with(|| a.cmp(b))
        });
        all.into_iter().map(|(_, alert)| alert).collect()
    }

    /// What fires.
    pub fn firing(&self) -> Vec<Alert> {
        let mut all = self.alerts(Duration::MAX);
        all.retain(|alert| alert.state == AlertState::Firing);
        all
    }

    /// How many devices and processes were not followed at the last snapshot, because there were too many.
    pub fn refused(&self) -> usize {
        self.refused
    }
}

/// What each rule is about, and whether the past must be known.
fn needs(rules: &[Rule]) -> Vec<(Scope, bool)> {
    rules.iter().map(|rule| (rule.scope(), rule.condition.looks_back())).collect()
}

/// Keeps a text, without a copy when it is the same.
fn keep(text: &mut Option<String>, now: Option<&String>) {
    if text.as_ref() != now {
        *text = now.cloned();
    }
}

/// Everything that a rule is about.
fn subjects<'a>(rule: &Rule, scope: Scope, snapshot: &'a Snapshot, ended: &'a [Ended]) -> Vec<(Key, Seen<'a>)> {
    let key = |device: Option<&Device>, process: Option<&Process>| Key {
        device: device.map(|device| device.id.clone()),
        process: process.map(|process| (process.pid, process.started_at)),
    };
    let device_of = |held: &model::Held| snapshot.devices.iter().find(|device| device.id == held.id);
    let processes = || snapshot.processes.iter().filter(|process| rule.is_about_process(process));
    match scope {
        Scope::Device => {
            let devices = snapshot.devices.iter().filter(|device| rule.is_about_device(device));
            devices.map(|device| (key(Some(device), None), Seen { device: Some(device), ..Seen::default() })).collect()
        }
        Scope::Process => processes()
            .filter(|process| process.devices.iter().filter_map(device_of).any(|device| rule.is_about_device(device)))
            .map(|process| (key(None, Some(process)), Seen { process: Some(process), ..Seen::default() }))
            .collect(),
        Scope::Held => {
            let pairs = processes().flat_map(|process| process.devices.iter().map(move |held| (process, held)));
            let pairs = pairs.filter_map(|(process, held)| Some((process, held, device_of(held)?)));
            let pairs = pairs.filter(|(_, _, device)| rule.is_about_device(device));
            pairs
                .map(|(process, held, device)| {
                    let (device, process, held) = (Some(device), Some(process), Some(held));
                    (key(device, process), Seen { device, process, held, ended: None })
                })
                .collect()
        }
        Scope::Ended => {
            let all = ended.iter().filter(|ended| rule.is_about(ended.pid, ended.name.as_deref()));
            all.filter_map(|ended| {
                let device = ended.device.as_ref();
                let device = device.and_then(|id| snapshot.devices.iter().find(|device| device.id == *id));
                if !rule.devices.is_empty() && !device.is_some_and(|device| rule.is_about_device(device)) {
                    return None;
                }
                let process = Some((ended.pid, ended.started_at));
                let key = Key { device: ended.device.clone(), process };
                Some((key, Seen { device, ended: Some(ended), ..Seen::default() }))
            })
            .collect()
        }
    }
}

/// Goes from one stand to the next.
fn step(rule: &Rule, scope: Scope, key: &Key, track: &mut Track, now: Duration, at: Timestamp) -> Option<Notice> {
    let condition = &rule.condition;
    let look_back = if scope == Scope::Device { LOOK_BACK } else { Duration::ZERO };
    let is_so = track.is_so(&condition.when);
    let stays = || is_so || track.was_so(&condition.stays(), now, look_back);
    let before = track.stand;
    let next = match before {
        Stand::Firing(since) if stays() => Stand::Firing(since),
        Stand::Firing(since) => Stand::Resolved(since, now, at),
        _ if !is_so => match before {
            Stand::Resolved(..) => before,
            _ => Stand::Calm,
        },
        Stand::Pending(began, since) if now.saturating_sub(began) < condition.hold => Stand::Pending(began, since),
        Stand::Pending(..) => Stand::Firing(at),
        _ if condition.hold.is_zero() => Stand::Firing(at),
        _ => Stand::Pending(now, at),
    };
    track.stand = next;
    if matches!((before, next), (Stand::Calm, Stand::Calm)) {
        return None;
    }
    let subject = subject(key, track);
    let words = rule.text.as_deref().unwrap_or(&rule.name);
    if track.knows_something()
        && !matches!(next, Stand::Calm)
        && (is_so || before != next || matches!(next, Stand::Firing(_)))
    {
        let shown = track.shown(&condition.when);
        track.value = track.first();
        let over = if matches!(next, Stand::Resolved(..)) { "it is over: " } else { "" };
        track.text = format!("{subject}: {over}{words} ({shown})");
    }
    match (before, next) {
        (Stand::Firing(_), Stand::Firing(_)) => None,
        (_, Stand::Firing(since)) => Some(notice(rule, key, track, AlertState::Firing, since, since, None)),
        (Stand::Firing(since), Stand::Resolved(..)) => {
            if !track.knows_something() {
                track.value = None;
                track.text = match key.process {
                    Some(_) => format!("{subject}: it has ended, and was told of: {words}"),
                    None => format!("{subject}: nothing has been known of it for 5m, and at last: {words}"),
                };
            }
            Some(notice(rule, key, track, AlertState::Resolved, at, since, Some(at)))
        }
        _ => None,
    }
}

fn subject(key: &Key, track: &Track) -> String {
    let device = key.device.as_ref().map(|id| format!("device {id}"));
    let process = key.process.map(|(pid, _)| match &track.process_name {
        Some(name) => format!("pid {pid} ({name})"),
        None => format!("pid {pid}"),
    });
    match (process, device) {
        (Some(process), Some(device)) => format!("{process} on {device}"),
        (process, device) => process.or(device).unwrap_or_default(),
    }
}

fn alert(rule: &Rule, key: &Key, track: &Track, state: AlertState, since: Timestamp) -> Alert {
    Alert {
        name: rule.name.clone(),
        severity: rule.severity,
        state,
        device: key.device.as_ref().map(ToString::to_string),
        process: key.process.map(|(pid, _)| pid),
        since,
        value: track.value,
        text: track.text.clone(),
    }
}

fn notice(
    rule: &Rule,
    key: &Key,
    track: &Track,
    state: AlertState,
    since: Timestamp,
    started_at: Timestamp,
    ended_at: Option<Timestamp>,
) -> Notice {
    let device = key.device.as_ref().map_or_else(String::new, |id| format!(" device={id}"));
    let process = key.process.map_or_else(String::new, |(pid, started)| {
        format!(" pid={pid}{}", started.map_or_else(String::new, |time| format!(" began={time}")))
    });
    Notice {
        alert: alert(rule, key, track, state, since),
        fingerprint: format!("{}{device}{process}", rule.name),
        alertname: rule.alertname(),
        rule: rule.condition.to_string(),
        pci_address: track.pci_address.as_ref().map(ToString::to_string),
        process_name: track.process_name.clone(),
        started_at,
        ended_at,
    }
}

fn sorted(mut notices: Vec<Notice>) -> Vec<Notice> {
    notices.sort_by(|a, b| a.fingerprint.cmp(&b.fingerprint));
    notices
}

#[cfg(test)]
mod tests;
