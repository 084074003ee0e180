//! The story of an incident in lines. Each has its time and its source, and says no more than the data does.

mod after;
mod before;

use super::fact::{Fact, FactSource};
use super::{Cause, Incident, Observer};
use after::{lost, not_recorded, outcome};
use before::{holders, opened, operations, readings};
use model::{Event, Snapshot, Timestamp};
use serde::Serialize;

/// A story.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Story {
    /// Time of the first fact.
    pub began: Timestamp,
    /// Time of the last fact.
    pub ended: Timestamp,
    /// What changed first, in one sentence.
    pub headline: String,
    /// What changed first. Several where the data does not say which was first.
    pub first: Vec<Fact>,
    /// All that changed, in the order of time.
    pub changes: Vec<Fact>,
    /// The lines between the headline and the advice.
    pub lines: Vec<StoryLine>,
    /// Advice, one sentence each.
    pub to_do: Vec<String>,
    /// What was not recorded and would have said more.
    pub not_recorded: Vec<String>,
}

/// One line of a story.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoryLine {
    /// Subject of the line.
    pub kind: LineKind,
    /// Time of what it says.
    pub time: Timestamp,
    /// The sentence.
    pub text: String,
    /// Source of what it says.
    pub source: FactSource,
}

model::named! {
    /// What a line is about. Of the same second they are told in this order.
    #[derive(PartialOrd, Ord)]
    pub enum LineKind {
        /// Power, temperature, clock and what limits it, just before.
        Before = "before",
        /// Who held what, just before.
        HeldBy = "held by",
        /// A process that opened the device shortly before.
        Opened = "opened",
        Operation = "operation",
        Change = "change",
        Kernel = "kernel",
        /// What ended with it.
        Lost = "lost",
        /// How the device is at the end.
        After = "after",
    }
}

/// So many changes, devices, processes and messages are listed.
const MOST_CHANGES: usize = 6;
const MOST_DEVICES: usize = 2;
const MOST_PROCESSES: usize = 3;
const MOST_MESSAGES: usize = 3;
/// A process that opened the device so many milliseconds before is named.
const SHORTLY: i64 = 10_000;

/// The machine around an incident, as far as it was recorded.
#[derive(Debug, Default)]
pub struct Scene {
    /// The last snapshot before it began,
    pub before: Option<Snapshot>,
    /// the first one in which it is seen,
    pub during: Option<Snapshot>,
    /// and the last one after it.
    pub after: Option<Snapshot>,
}

/// Tells an incident.
pub fn tell(incident: &Incident, observer: &Observer, scene: &Scene) -> Story {
    let (before, after) = (scene.before.as_ref(), scene.after.as_ref());
    let mut lines = changes(incident);
    if let Some(before) = before {
        lines.extend(readings(incident, before));
        lines.extend(holders(incident, observer, before));
        lines.extend(operations(incident, observer, before, scene.during.as_ref()));
    }
    lines.extend(opened(incident, observer));
    lines.extend(messages(incident, observer));
    lines.extend(lost(incident, observer));
    lines.extend(after.into_iter().flat_map(|after| outcome(incident, observer, after)));
    lines.sort_by_key(|line| (line.time.0 / 1000, line.kind));
    let first = incident.first();
    Story {
        began: incident.began(),
        ended: incident.ended(),
        headline: headline(&first),
        first: first.into_iter().cloned().collect(),
        changes: incident.facts.clone(),
        lines,
        to_do: to_do(incident),
        not_recorded: not_recorded(incident, observer, before),
    }
}

fn headline(first: &[&Fact]) -> String {
    match first {
        [] => "nothing".into(),
        [one] => one.text.clone(),
        [one, other] => format!("either {}, or {}; the data does not say which was first", one.text, other.text),
        several => {
            let texts: Vec<&str> = several.iter().map(|fact| fact.text.as_str()).collect();
            format!("one of these, the data does not say which: {}", texts.join("; "))
        }
    }
}

fn line(kind: LineKind, time: Timestamp, text: String, source: FactSource) -> StoryLine {
    StoryLine { kind, time, text, source }
}

fn changes(incident: &Incident) -> Vec<StoryLine> {
    let listed = incident.facts.iter().take(MOST_CHANGES);
    let mut lines: Vec<StoryLine> =
        listed.map(|fact| line(LineKind::Change, fact.time, fact.text.clone(), fact.source.clone())).collect();
    let rest = &incident.facts[lines.len()..];
    if let Some(last) = rest.last() {
        let text = format!("{} more changes, the last: {}", rest.len(), last.text);
        lines.push(line(LineKind::Change, last.time, text, last.source.clone()));
    }
    lines
}

/// What the kernel said around it, apart from what is a change by itself.
fn messages(incident: &Incident, observer: &Observer) -> Vec<StoryLine> {
    let (from, to) = (incident.began().0 - SHORTLY, incident.ended().0 + SHORTLY);
    let is_told = |event: &Event| {
        incident.facts.iter().any(|fact| fact.source == FactSource::KernelLog && fact.time == event.time)
    };
    let touched = |event: &Event| match &event.device {
        Some(device) => incident.touches.devices.contains(device),
        None => true,
    };
    let near = observer.kernel.iter().filter(|event| (from..=to).contains(&event.time.0));
    let near = near.filter(|event| touched(event) && !is_told(event));
    near.take(MOST_MESSAGES)
        .map(|event| {
            // Who held the device has a line of its own.
            let text = event.text.split(", held by pid ").next().unwrap_or_default().to_owned();
            line(LineKind::Kernel, event.time, text, FactSource::KernelLog)
        })
        .collect()
}

/// What to do: about what changed first, then about the most serious of what followed.
fn to_do(incident: &Incident) -> Vec<String> {
    let mut causes: Vec<Cause> = incident.first().iter().map(|fact| fact.cause).collect();
    let worst = incident.facts.iter().map(|fact| fact.cause).filter(|cause| !cause.is_minor()).min();
    causes.extend(worst);
    let mut advice: Vec<String> = Vec::new();
    for cause in causes {
        let text = cause.advice();
        if !advice.contains(&text) {
            advice.push(text);
        }
    }
    advice.truncate(2);
    advice
}
