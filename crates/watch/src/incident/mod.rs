//! Incidents: what went wrong, what changed first, and the story of it. From facts alone.
//!
//! [`Observer`] finds facts in snapshots and in a log. A [`Cause`] says what kind of fact it is, and that list is what counts as an
//! incident. Facts are one incident when they follow each other within [`GAP`] on the same device, on devices of the same process,
//! or when both happened at the same time. The first of them is what changed first; what cannot be told apart by its time is
//! named together. [`story`] says it in lines, each with its source.

mod cause;
mod fact;
mod from_events;
mod growth;
mod names;
mod observer;
mod search;
pub mod story;
#[cfg(test)]
mod tests;

pub use cause::Cause;
pub use fact::{Fact, FactSource, Touched};
pub use observer::Observer;
pub use search::{Found, Wanted, search, search_present, search_snapshots};

use model::{DeviceId, Timestamp};

/// Facts that follow each other within so many milliseconds can be one incident.
pub const GAP: i64 = 60_000;
/// Facts that are so close, in milliseconds, are one incident, whatever they are about.
const SAME_TIME: i64 = 1_000;
/// The same fact of two sources is one, when it is at most so many milliseconds apart.
const SAME_FACT: i64 = 15_000;
/// A reset takes so long at the most.
const RESET: i64 = 60_000;

/// Facts that belong together, in the order of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Incident {
    /// The facts.
    pub facts: Vec<Fact>,
    /// All devices and processes of the facts.
    pub touches: Touched,
}

impl Incident {
    /// When the first of it was seen.
    pub fn began(&self) -> Timestamp {
        self.facts.iter().map(|fact| fact.time).min().unwrap_or_default()
    }

    /// When the last of it was seen.
    pub fn ended(&self) -> Timestamp {
        self.facts.iter().map(|fact| fact.until).max().unwrap_or_default()
    }

    /// What changed first. More than one where their times do not say which was first.
    pub fn first(&self) -> Vec<&Fact> {
        let began = self.began();
        let mut first: Vec<&Fact> =
            self.facts.iter().filter(|fact| fact.time == began || fact.not_before < began).collect();
        // A clock that a temperature holds down is no other matter than that temperature.
        let hot: Vec<&DeviceId> =
            first.iter().filter(|fact| fact.cause == Cause::Heat).filter_map(|fact| fact.device.as_ref()).collect();
        let is_by_heat = |fact: &Fact| fact.cause == Cause::Throttled && fact.text.contains("temperature");
        first.retain(|fact| !(is_by_heat(fact) && fact.device.as_ref().is_some_and(|device| hot.contains(&device))));
        first
    }

    /// Whether there is something in it that needs attention.
    pub fn is_serious(&self) -> bool {
        self.facts.iter().any(|fact| !fact.cause.is_minor())
    }

    /// When it became sudden: growth of memory goes on for long before something happens.
    pub fn moment(&self) -> Timestamp {
        let sudden = self.facts.iter().find(|fact| fact.cause != Cause::MemoryGrowth);
        sudden.map_or(self.ended(), |fact| fact.time)
    }

    fn takes(&self, fact: &Fact) -> bool {
        let apart = fact.not_before.max(Timestamp(fact.time.0 - GAP)).0 - self.ended().0;
        let is_same_time = fact.time.0 - self.ended().0 <= SAME_TIME || fact.not_before < self.ended();
        let is_of_machine = fact.cause.is_of_machine() || self.facts.iter().any(|fact| fact.cause.is_of_machine());
        apart <= GAP && (is_same_time || is_of_machine || self.touches.meets(&fact.touches))
    }

    /// Whether a fact is about the same, before or after.
    fn is_near(&self, fact: &Fact) -> bool {
        let is_of_machine = self.facts.iter().any(|fact| fact.cause.is_of_machine());
        let is_during = (self.began().0 - GAP..=self.ended().0 + GAP).contains(&fact.time.0);
        is_during && (is_of_machine || self.touches.meets(&fact.touches))
    }

    fn add(&mut self, fact: Fact) {
        self.touches.add(&fact.touches);
        self.facts.push(fact);
    }
}

/// All incidents that an observer has found facts of, the earliest first.
pub fn incidents(observer: &Observer) -> Vec<Incident> {
    let mut found = grouped(settled(observer.all_facts()));
    // That a process is gone is a part of what happened to its device, and has a line of its own there.
    let alone = observer.gone().filter(|fact| !found.iter().any(|incident| incident.is_near(fact)));
    found.extend(grouped(alone.collect()));
    found.sort_by_key(|incident| (incident.ended(), incident.began()));
    found
}

fn grouped(facts: Vec<Fact>) -> Vec<Incident> {
    let mut found: Vec<Incident> = Vec::new();
    for fact in facts {
        let (mut same, others): (Vec<Incident>, Vec<Incident>) =
            found.into_iter().partition(|incident| incident.takes(&fact));
        found = others;
        let mut incident = same.pop().unwrap_or(Incident { facts: Vec::new(), touches: Touched::default() });
        same.into_iter().flat_map(|other| other.facts).for_each(|fact| incident.add(fact));
        incident.add(fact);
        incident.facts.sort_by_key(|fact| fact.time);
        found.push(incident);
    }
    found
}

/// Facts without those that say the same again, or are part of another one.
fn settled(facts: Vec<Fact>) -> Vec<Fact> {
    let mut kept: Vec<Fact> = Vec::new();
    for fact in facts {
        let apart = if fact.cause == Cause::Reset { RESET } else { SAME_FACT };
        let same = kept.iter_mut().rfind(|known| known.is_like(&fact) && fact.time.0 - known.until.0 <= apart);
        match same {
            Some(known) => known.touches.add(&fact.touches),
            None => kept.push(fact),
        }
    }
    let is_part = |fact: &Fact| kept.iter().any(|whole| is_part_of(fact, whole));
    let parts: Vec<bool> = kept.iter().map(is_part).collect();
    let mut wholes: Vec<Fact> =
        kept.iter().zip(&parts).filter(|(_, part)| !**part).map(|(fact, _)| fact.clone()).collect();
    for part in kept.iter().zip(&parts).filter(|(_, part)| **part).map(|(fact, _)| fact) {
        let Some(whole) = wholes.iter_mut().find(|whole| is_part_of(part, whole)) else { continue };
        whole.touches.add(&part.touches);
        // A state that comes before the whole is its beginning.
        if part.cause.is_state() && part.time < whole.time {
            (whole.time, whole.not_before) = (part.time, whole.not_before.min(part.not_before));
        }
    }
    wholes
}

/// Whether a fact only says in other words, or as a consequence, what another one says.
fn is_part_of(fact: &Fact, whole: &Fact) -> bool {
    let same_device = fact.device.is_some() && fact.device == whole.device;
    let same_pid = fact.pid.is_some() && fact.pid == whole.pid;
    let on_touched = fact.device.as_ref().is_some_and(|device| whole.touches.devices.contains(device));
    let (from, to) = (whole.not_before.0, whole.time.0);
    let during = |before: i64, after: i64| (from - before..=to + after).contains(&fact.time.0);
    if fact.cause.is_kernel_word() && whole.cause.is_state() {
        return same_device && during(0, GAP);
    }
    if !whole.cause.includes(fact.cause) {
        return false;
    }
    match whole.cause {
        Cause::DriverUnloaded => on_touched && during(0, SAME_FACT),
        Cause::HostOutOfMemory | Cause::MemoryLimit => same_pid && during(SAME_FACT, SAME_FACT),
        Cause::Reset => same_device && during(SAME_FACT, RESET),
        _ => same_device && during(0, RESET),
    }
}
