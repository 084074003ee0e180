//! What was lost, how devices are after it, and what was not recorded.

use super::{LineKind, MOST_DEVICES, MOST_PROCESSES, SHORTLY, StoryLine, line};
use crate::incident::fact::FactSource;
use crate::incident::names::{devices_text, exit_name, held_text, process_name};
use crate::incident::observer::victim;
use crate::incident::{Cause, GAP, Incident, Observer};
use model::throttle::spoken;
use model::{DeviceId, ExitRecord, Snapshot, State, Timestamp};
use show::text::signal;
use std::collections::BTreeSet;

/// Which processes ended, and what they held.
pub(super) fn lost(incident: &Incident, observer: &Observer) -> Vec<StoryLine> {
    // A process can have ended before the sample that shows the first change.
    let from = incident.first().iter().map(|fact| fact.not_before.0).min().unwrap_or_default();
    let (from, to) = (from.max(incident.began().0 - SHORTLY), incident.ended().0 + GAP);
    let during = |time: Timestamp| (from + 1..=to).contains(&time.0);
    let touched = |pid: u32| incident.touches.pids.contains(&pid);
    let mut lines = Vec::new();
    let ended: Vec<&ExitRecord> =
        observer.exits.iter().filter(|exit| during(exit.died_at) && touched(exit.pid)).collect();
    // That it was killed is a change of its own.
    let is_told = |exit: &ExitRecord| {
        incident.facts.iter().any(|fact| fact.source == FactSource::ExitRecord && fact.pid == Some(exit.pid))
    };
    for exit in ended.iter().filter(|exit| !is_told(exit)) {
        let how = match (exit.signal, exit.exit_code) {
            (Some(number), _) => format!("was ended by {}", signal(number)),
            (None, Some(code)) => format!("exited with code {code}"),
            (None, None) => "exited".into(),
        };
        let held = held_text(exit.usage()).map(|held| format!(", with {held}")).unwrap_or_default();
        let buffers = exit.buffers.map(|buffers| format!(" in {buffers} buffers")).unwrap_or_default();
        let launches = exit.launches_total.map(|launches| format!(", after {launches} launches")).unwrap_or_default();
        let text = format!("{} {how}{held}{buffers}{launches}", exit_name(exit));
        lines.push(line(LineKind::Lost, exit.died_at, text, FactSource::ExitRecord));
    }
    for departure in &observer.left {
        let process = &departure.process;
        let is_known = ended.iter().any(|exit| exit.pid == process.pid);
        let is_change = incident.facts.iter().any(|fact| fact.cause == Cause::Gone && fact.pid == Some(process.pid));
        if is_known || is_change || !during(departure.time) || !touched(process.pid) {
            continue;
        }
        let held = held_text(process.usage()).map(|held| format!(" with {held}")).unwrap_or_default();
        let devices = devices_text(process.devices.iter().map(|held| &held.id));
        let text = format!("{} released {devices}{held}", process_name(process));
        lines.push(line(LineKind::Lost, departure.time, text, FactSource::Processes));
    }
    lines.truncate(MOST_PROCESSES);
    lines
}

/// How the devices are at the end.
pub(super) fn outcome(incident: &Incident, observer: &Observer, after: &Snapshot) -> Vec<StoryLine> {
    let changed: BTreeSet<&DeviceId> =
        incident.facts.iter().filter(|fact| fact.cause.is_state()).filter_map(|fact| fact.device.as_ref()).collect();
    let mut lines = Vec::new();
    for id in changed.iter().take(MOST_DEVICES) {
        let source = FactSource::Telemetry((*id).clone());
        let back = observer.recovered.iter().find(|(device, time)| device == *id && *time >= incident.began());
        if let Some((_, time)) = back {
            let took = spoken((time.0 - incident.began().0) as f64 / 1000.0);
            lines.push(line(LineKind::After, *time, format!("device {id}: ok again, after {took}"), source));
        } else if let Some(device) = after.devices.iter().find(|device| device.id == **id && device.state != State::Ok)
        {
            let text = format!("device {id}: still {}", device.state.name());
            lines.push(line(LineKind::After, after.taken_at, text, source));
        } else if !after.devices.iter().any(|device| device.id == **id) {
            let text = format!("device {id}: still not there");
            lines.push(line(LineKind::After, after.taken_at, text, source));
        }
    }
    lines
}

/// What would have said more.
pub(super) fn not_recorded(incident: &Incident, observer: &Observer, before: Option<&Snapshot>) -> Vec<String> {
    let mut missing = Vec::new();
    if !observer.reads_kernel_log {
        missing.push("the kernel's log (--kernel-log)".to_owned());
    }
    let is_heat =
        incident.facts.iter().any(|fact| matches!(fact.cause, Cause::Heat | Cause::ThermalTrip | Cause::Throttled));
    let has_deep = before.is_some_and(|before| before.devices.iter().any(|device| device.deep.is_some()));
    if is_heat && !has_deep {
        missing.push("what limited the clock (--deep)".to_owned());
    }
    let left = observer.left.iter().filter(|departure| incident.touches.pids.contains(&departure.process.pid));
    let is_explained = |pid: u32| {
        let by_kernel = observer.kernel.iter().filter_map(|event| victim(&event.kernel.as_ref()?.text));
        by_kernel.into_iter().any(|(victim, _)| victim == pid) || observer.exits.iter().any(|exit| exit.pid == pid)
    };
    let near = |time: Timestamp| time >= incident.began() && time.0 <= incident.ended().0 + GAP;
    let unknown: Vec<String> = left
        .filter(|departure| near(departure.time) && !is_explained(departure.process.pid))
        .filter(|departure| held_text(departure.process.usage()).is_some())
        .map(|departure| departure.process.pid.to_string())
        .collect();
    if !unknown.is_empty() && !incident.facts.iter().any(|fact| fact.cause == Cause::Gone) {
        missing.push(format!("how pid {} ended (`ttmon serve` keeps that)", unknown.join(", ")));
    }
    if incident.facts.iter().any(|fact| matches!(fact.cause, Cause::Killed | Cause::Ended)) {
        missing.push("who sent the signal".to_owned());
    }
    if incident.facts.iter().any(|fact| fact.cause == Cause::Reset) {
        missing.push("who asked for the reset".to_owned());
    }
    missing
}
