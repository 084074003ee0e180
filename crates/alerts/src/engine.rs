//! Applies rules to one snapshot after the other: what is pending, what fires, what is resolved.
//!
//! A rule is followed for each device or process that it is about. It is *pending* while its condition holds, and *firing* once
//! the condition has held for its `for`. It is *resolved* when `until` holds, or, without one, when the condition no longer holds.
//!
//! A value that is missing, because it was not measured or the device does not answer, makes nothing fire: what was pending
//! becomes inactive. It does not resolve anything at once, either: a device's last known value counts for five minutes. Then the
//! alert is resolved, and its text says why. Processes that have exited resolve at once.

use crate::notice::{Notice, alert, describe, notice};
use crate::rule::Rule;
use crate::rule_figure::RuleFigure;
use crate::subject::{Scope, Subject, SubjectId};
use crate::track::{LOOK_BACK, RuleState, Track};
use model::{Alert, AlertState, DeviceId, ExitRecord, KnownDevices, Snapshot, Timestamp};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

/// Rules, and the state of each for each of its subjects.
#[derive(Debug, Default)]
pub struct Engine {
    rules: Vec<FollowedRule>,
    /// A rule follows a card, whatever number it has.
    known: KnownDevices,
}

#[derive(Debug)]
struct FollowedRule {
    rule: Rule,
    scope: Scope,
    looks_back: bool,
    /// What it looks at.
    figures: Vec<RuleFigure>,
    /// Whether only a deep read knows any of that.
    is_deep: bool,
    tracks: BTreeMap<SubjectId, Track>,
}

/// When a snapshot was taken, by the clock of the engine and by the wall clock.
#[derive(Clone, Copy)]
struct SnapshotTime {
    now: Duration,
    at: Timestamp,
}

/// How many subjects are followed at most, of all rules together.
const MOST: usize = 20_000;
const SHOWN: Duration = Duration::from_secs(900);

impl Engine {
    /// An engine that has seen nothing yet.
    pub fn new(rules: Vec<Rule>) -> Engine {
        Engine { rules: rules.into_iter().map(FollowedRule::new).collect(), ..Engine::default() }
    }

    /// All rules.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().map(|followed| &followed.rule)
    }

    /// There will be one snapshot, so rules that take longer to fire are left out, and nothing is remembered for the next one.
    pub fn set_once(&mut self) {
        self.rules.retain(|followed| followed.rule.fires_at_once());
        self.rules.iter_mut().for_each(|followed| followed.looks_back = false);
    }

    /// Replaces the rules. Unchanged ones keep their state; alerts of the others are resolved.
    pub fn set_rules(&mut self, rules: Vec<Rule>, at: Timestamp) -> Vec<Notice> {
        let mut notices = Vec::new();
        let mut next: Vec<FollowedRule> = rules.into_iter().map(FollowedRule::new).collect();
        for former in std::mem::take(&mut self.rules) {
            match next.iter_mut().find(|new| new.rule == former.rule) {
                Some(same) => *same = former,
                None => notices.extend(former.resolve_all(at)),
            }
        }
        self.rules = next;
        sorted(notices)
    }

    /// Takes a snapshot, and the processes that exited in the last minutes. Returns what begins to fire and what is resolved. `now`
    /// is of a clock that only goes forward.
    pub fn observe(&mut self, now: Duration, snapshot: &Snapshot, exited: &[&ExitRecord]) -> Vec<Notice> {
        let (mut notices, time) = (Vec::new(), SnapshotTime { now, at: snapshot.taken_at });
        let mut room = MOST.saturating_sub(self.rules.iter().map(|followed| followed.tracks.len()).sum());
        let keys = self.known.meet(&snapshot.devices);
        let has_deep = snapshot.devices.iter().any(|device| device.deep.is_some());
        for followed in &mut self.rules {
            // The usual case: there is no deep read that such a rule could look at.
            if followed.is_deep && !has_deep && followed.tracks.is_empty() {
                continue;
            }
            for subject in followed.rule.subjects(followed.scope, snapshot, &keys, exited) {
                notices.extend(followed.see(subject.id(), &subject, time, &mut room));
            }
            notices.extend(followed.miss_others(time));
            let looks_back = followed.looks_back;
            followed.tracks.retain(|_, track| track.is_needed(now, looks_back, SHOWN));
        }
        sorted(notices)
    }

    /// What is pending, firing, or resolved for less than a quarter of an hour; what matters most first.
    pub fn alerts(&self, now: Duration) -> Vec<Alert> {
        let all = self.rules.iter().flat_map(|followed| followed.alerts(now));
        let mut all: Vec<_> = all.collect();
        let order = [AlertState::Firing, AlertState::Pending, AlertState::Resolved];
        let rank = |state: AlertState| order.iter().position(|other| *other == state);
        all.sort_by(|(a, one), (b, other)| {
            let by_weight = rank(one.state).cmp(&rank(other.state)).then(other.severity.cmp(&one.severity));
            by_weight.then_with(|| one.name.cmp(&other.name)).then_with(|| a.cmp(b))
        });
        all.into_iter().map(|(_, alert)| alert).collect()
    }

    /// All alerts that fire.
    pub fn firing(&self) -> Vec<Alert> {
        let mut all = self.alerts(Duration::MAX);
        all.retain(|alert| alert.state == AlertState::Firing);
        all
    }
}

impl FollowedRule {
    fn new(rule: Rule) -> FollowedRule {
        let (scope, looks_back) = (rule.scope(), rule.condition.looks_back());
        let figures = rule.condition.figures();
        let is_deep = figures.iter().all(|figure| figure.is_deep());
        FollowedRule { rule, scope, looks_back, figures, is_deep, tracks: BTreeMap::new() }
    }

    /// A subject is in the snapshot. It is not followed where there is no room for more.
    fn see(&mut self, id: SubjectId, subject: &Subject, time: SnapshotTime, room: &mut usize) -> Option<Notice> {
        let holds = || self.rule.condition.when.holds(&|compare| compare.value_of(subject));
        let nothing_to_keep = || !self.looks_back || self.figures.iter().all(|figure| figure.number(subject).is_none());
        // Most of the time nothing holds, and nothing needs to be remembered.
        if !self.tracks.contains_key(&id) && nothing_to_keep() && !holds() {
            return None;
        }
        let track = match self.tracks.entry(id.clone()) {
            Entry::Occupied(track) => track.into_mut(),
            Entry::Vacant(_) if *room == 0 => return None,
            Entry::Vacant(place) => {
                *room -= 1;
                place.insert(Track::new(&self.rule, subject))
            }
        };
        track.see(time.now, subject);
        step(&self.rule, self.scope, &id, track, time)
    }

    fn miss_others(&mut self, time: SnapshotTime) -> Vec<Notice> {
        let missed = self.tracks.iter_mut().filter(|(_, track)| track.seen != time.now);
        let notices = missed.filter_map(|(id, track)| {
            track.miss(time.now);
            step(&self.rule, self.scope, id, track, time)
        });
        notices.collect()
    }

    /// The rule is gone, and so are its alerts.
    fn resolve_all(mut self, at: Timestamp) -> Vec<Notice> {
        let firing = self.tracks.iter_mut().filter_map(|(id, track)| {
            let RuleState::Firing(since) = track.state else { return None };
            track.text = format!("{}: the rule was changed", track.title(id));
            Some(notice(&self.rule, id, track, since, Some(at)))
        });
        firing.collect()
    }

    /// With what they are sorted by: the number of the device, then the process.
    fn alerts(&self, now: Duration) -> impl Iterator<Item = ((Option<&DeviceId>, &SubjectId), Alert)> {
        self.tracks.iter().filter_map(move |(id, track)| {
            let (state, since) = match track.state {
                RuleState::Pending(_, since) => (AlertState::Pending, since),
                RuleState::Firing(since) => (AlertState::Firing, since),
                RuleState::Resolved(_, at, since) if now.saturating_sub(at) <= SHOWN => (AlertState::Resolved, since),
                RuleState::Inactive | RuleState::Resolved(..) => return None,
            };
            Some(((track.device.as_ref(), id), alert(&self.rule, id, track, state, since)))
        })
    }
}

/// Moves a track to its next state, and returns a notice where it begins or ceases to fire.
fn step(rule: &Rule, scope: Scope, id: &SubjectId, track: &mut Track, time: SnapshotTime) -> Option<Notice> {
    // A process that has exited is over, so its last known values do not count.
    let look_back = if scope == Scope::Device { LOOK_BACK } else { Duration::ZERO };
    let before = track.step(&rule.condition, look_back, time.now, time.at);
    describe(rule, id, track, before);
    match (before, track.state) {
        (RuleState::Firing(_), RuleState::Firing(_)) if !track.is_renumbered => None,
        (_, RuleState::Firing(since)) => Some(notice(rule, id, track, since, None)),
        (RuleState::Firing(since), RuleState::Resolved(..)) => Some(notice(rule, id, track, since, Some(time.at))),
        _ => None,
    }
}

fn sorted(mut notices: Vec<Notice>) -> Vec<Notice> {
    notices.sort_by(|a, b| a.fingerprint.cmp(&b.fingerprint));
    notices
}

#[cfg(test)]
mod tests;
