//! How the machine was just before: readings, who held what, what ran, and who had just come.

use super::{LineKind, MOST_DEVICES, MOST_PROCESSES, SHORTLY, StoryLine, line};
use crate::incident::fact::{Fact, FactSource};
use crate::incident::names::{devices_text, held_text, process_name, process_of_user};
use crate::incident::observer::Arrival;
use crate::incident::{Cause, Incident, Observer};
use model::figure::Figure;
use model::figure::device::{AICLK, ASIC_TEMP, POWER};
use model::throttle::{self, spoken};
use model::{Device, DeviceId, ExitRecord, Held, Operation, Process, Snapshot, Source, State, Timestamp, Usage};
use std::collections::BTreeSet;

/// The devices that facts are about.
fn named(incident: &Incident) -> BTreeSet<&DeviceId> {
    incident.facts.iter().filter_map(|fact| fact.device.as_ref()).collect()
}

/// The same, or else those that are touched.
fn devices<'a>(incident: &'a Incident, snapshot: &'a Snapshot) -> Vec<&'a Device> {
    let named = named(incident);
    let is_meant = |device: &&Device| match named.is_empty() {
        true => incident.touches.devices.contains(&device.id),
        false => named.contains(&device.id),
    };
    snapshot.devices.iter().filter(is_meant).collect()
}

/// Power, temperature, clock and what limits it.
pub(super) fn readings(incident: &Incident, before: &Snapshot) -> Vec<StoryLine> {
    let all = devices(incident, before);
    let known: Vec<(&Device, String)> = all.iter().filter_map(|device| Some((*device, reading(device)?))).collect();
    let more = known.len().saturating_sub(MOST_DEVICES);
    let mut lines: Vec<StoryLine> = known
        .into_iter()
        .take(MOST_DEVICES)
        .map(|(device, text)| {
            let source = FactSource::Telemetry(device.id.clone());
            line(LineKind::Before, before.taken_at, format!("device {}: {text}", device.id), source)
        })
        .collect();
    if let Some(last) = lines.last_mut().filter(|_| more > 0) {
        last.text += &format!("; {more} more devices");
    }
    lines
}

fn reading(device: &Device) -> Option<String> {
    let is_current = device.state == State::Ok && device.sample_age_seconds.is_none_or(|age| age <= 0.0);
    if !is_current {
        return None;
    }
    let of_limit = |figure: &Figure<Device>| {
        let value = figure.text(device)?;
        Some(figure.limit_of(device).map_or(value.clone(), |limit| format!("{value} of {}", figure.unit.number(limit))))
    };
    let busy = device.activity.utilization_percent.map(|percent| format!("{percent:.0} % busy"));
    let limit = match throttle::by(device) {
        Some(throttle::NOTHING) => Some("clock not limited".to_owned()),
        Some(name) => Some(format!("clock limited by {name}")),
        None => None,
    };
    let parts = [of_limit(&POWER), of_limit(&ASIC_TEMP), AICLK.text(device), limit, busy];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Who held what. A process that came shortly before has a line of its own.
pub(super) fn holders(incident: &Incident, observer: &Observer, before: &Snapshot) -> Vec<StoryLine> {
    let came: Vec<&str> = arrivals(incident, observer).map(|arrival| arrival.name.as_str()).collect();
    let is_meant = |process: &&Process| {
        incident.touches.pids.contains(&process.pid) && !came.contains(&process_of_user(process).as_str())
    };
    let mut all: Vec<&Process> = before.processes.iter().filter(is_meant).collect();
    all.sort_by_key(|process| std::cmp::Reverse(process.usage().total()));
    let listed = all.iter().take(MOST_PROCESSES);
    let mut lines: Vec<StoryLine> = listed.map(|process| holder(incident, process, before.taken_at)).collect();
    if let Some(last) = lines.last_mut().filter(|_| all.len() > MOST_PROCESSES) {
        last.text += &format!("; {} more processes", all.len() - MOST_PROCESSES);
    }
    lines
}

fn holder(incident: &Incident, process: &Process, time: Timestamp) -> StoryLine {
    let named = named(incident);
    let mut held: Vec<&Held> = process.devices.iter().filter(|held| named.contains(&held.id)).collect();
    if held.is_empty() {
        held = process.devices.iter().collect();
    }
    let usage = held.iter().fold(Usage::default(), |sum, held| sum.plus(held.usage));
    let mut devices = devices_text(held.iter().map(|held| &held.id));
    if held.len() < process.devices.len() {
        devices += &format!(" (it has {} devices)", process.devices.len());
    }
    let memory = match held_text(usage) {
        Some(held) => format!("{held} on {devices}"),
        None => format!("{devices}, memory not known"),
    };
    let is_host = |fact: &Fact| matches!(fact.cause, Cause::HostOutOfMemory | Cause::MemoryLimit);
    let host = process.host_memory.filter(|_| incident.facts.iter().any(is_host));
    let host = host.map(|bytes| format!("; host memory {bytes}")).unwrap_or_default();
    let is_exact = held.iter().any(|held| held.source == Some(Source::Exact));
    let source = if is_exact { FactSource::Book(process.pid) } else { FactSource::Processes };
    line(LineKind::HeldBy, time, format!("{} held {memory}{host}", process_of_user(process)), source)
}

/// The operation in flight, or the last one that is known.
pub(super) fn operations(
    incident: &Incident,
    observer: &Observer,
    before: &Snapshot,
    during: Option<&Snapshot>,
) -> Vec<StoryLine> {
    let touched = before.processes.iter().filter(|process| incident.touches.pids.contains(&process.pid));
    let mut lines: Vec<StoryLine> = Vec::new();
    for process in touched.take(MOST_PROCESSES) {
        // What was in flight when it began may only be seen later, while the device no longer answers.
        let ended = observer.exits.iter().find(|exit| is_same(exit, process) && exit.died_at >= incident.began());
        let source = FactSource::Book(process.pid);
        let name = process_name(process);
        let later = during.and_then(|during| during.processes.iter().find(|other| other.pid == process.pid));
        let later = during.zip(later.and_then(|later| in_flight(&later.operations)));
        if let Some(in_flight) = in_flight(ended.map_or(&[][..], |exit| &exit.operations)) {
            let text = format!("{name} ended with {} in flight", in_flight.name);
            lines.push(line(LineKind::Operation, incident.began(), text, FactSource::ExitRecord));
        } else if let Some((during, in_flight)) = later {
            let text =
                format!("{name} had {} in flight, launched{}", in_flight.name, age(in_flight).trim_start_matches(','));
            lines.push(line(LineKind::Operation, during.taken_at, text, source));
        } else if let Some(in_flight) = in_flight(&process.operations) {
            let text =
                format!("{name} had {} in flight, launched{}", in_flight.name, age(in_flight).trim_start_matches(','));
            lines.push(line(LineKind::Operation, before.taken_at, text, source));
        } else if let Some(last) = last(&process.operations) {
            let text = format!("{name} had last launched {}{}", last.name, age(last));
            lines.push(line(LineKind::Operation, before.taken_at, text, source));
        } else if let Some(totals) = observer.operations.iter().rfind(|totals| {
            totals.pid == process.pid && totals.time <= incident.ended() && !totals.operations.is_empty()
        }) {
            let text = format!("{name} had run mostly {} until then", totals.operations[0].name);
            lines.push(line(LineKind::Operation, totals.time, text, source));
        }
    }
    lines
}

fn in_flight(operations: &[Operation]) -> Option<&Operation> {
    operations.iter().find(|operation| operation.in_flight)
}

fn last(operations: &[Operation]) -> Option<&Operation> {
    let known = operations.iter().filter_map(|operation| Some((operation, operation.age_seconds?)));
    known.min_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(operation, _)| operation)
}

fn age(operation: &Operation) -> String {
    match operation.age_seconds {
        Some(seconds) if seconds >= 1.0 => format!(", {} before", spoken(seconds)),
        Some(_) => ", less than 1 s before".into(),
        None => String::new(),
    }
}

fn is_same(exit: &ExitRecord, process: &Process) -> bool {
    exit.pid == process.pid && (exit.started_at.is_none() || exit.started_at == process.started_at)
}

/// Processes that opened a device of the incident shortly before.
fn arrivals<'a>(incident: &'a Incident, observer: &'a Observer) -> impl Iterator<Item = &'a Arrival> {
    let began = incident.began();
    let named = named(incident);
    let near = observer.arrived.iter().filter(move |arrival| (0..=SHORTLY).contains(&(began.0 - arrival.time.0)));
    near.filter(move |arrival| arrival.devices.iter().any(|id| named.contains(id)))
}

pub(super) fn opened(incident: &Incident, observer: &Observer) -> Vec<StoryLine> {
    let opened = |arrival: &Arrival| {
        let ago = match incident.began().0 - arrival.time.0 {
            0 => "in the same sample".to_owned(),
            apart => format!("{} before", spoken(apart as f64 / 1000.0)),
        };
        let text = format!("{} opened {}, {ago}", arrival.name, devices_text(&arrival.devices));
        line(LineKind::Opened, arrival.time, text, FactSource::Processes)
    };
    arrivals(incident, observer).take(MOST_PROCESSES).map(opened).collect()
}
