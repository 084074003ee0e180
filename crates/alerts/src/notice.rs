//! What is said of a rule about a subject: to views as an [`Alert`], to receivers as a [`Notice`] of a change.

use crate::rule::Rule;
use crate::subject::SubjectId;
use crate::track::{RuleState, Track};
use model::{Alert, AlertState, Timestamp};
use serde::Serialize;

/// An alert that has begun to fire, or is resolved: as webhooks and commands receive it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Notice {
    /// The alert.
    #[serde(flatten)]
    pub alert: Alert,
    /// Identifies the rule and the subject; the same in every notice about both.
    pub fingerprint: String,
    /// What Alertmanager calls the rule.
    #[serde(skip)]
    pub alertname: String,
    /// Name of the rule.
    pub rule: String,
    /// What it means, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// PCI address of the device.
    pub pci_address: Option<String>,
    /// Name of the process.
    pub process_name: Option<String>,
    /// Time at which it began to fire.
    pub started_at: Timestamp,
    /// Time at which it was resolved; absent while it fires.
    pub ended_at: Option<Timestamp>,
}

/// The alert of a track, in a state since a time.
pub(crate) fn alert(rule: &Rule, id: &SubjectId, track: &Track, state: AlertState, since: Timestamp) -> Alert {
    Alert {
        name: rule.name.clone(),
        severity: rule.severity,
        state,
        device: track.device.as_ref().map(ToString::to_string),
        process: id.process.map(|(pid, _)| pid),
        since,
        value: track.value,
        text: track.text.clone(),
    }
}

/// The notice of a track that fires since `started_at`, or did until `ended_at`.
pub(crate) fn notice(
    rule: &Rule,
    id: &SubjectId,
    track: &Track,
    started_at: Timestamp,
    ended_at: Option<Timestamp>,
) -> Notice {
    let (state, since) = match ended_at {
        Some(ended_at) => (AlertState::Resolved, ended_at),
        None => (AlertState::Firing, started_at),
    };
    Notice {
        alert: alert(rule, id, track, state, since),
        fingerprint: track.fingerprint.clone(),
        alertname: rule.alertname(),
        rule: rule.condition.to_string(),
        advice: rule.advice.clone(),
        pci_address: track.pci_address.as_ref().map(ToString::to_string),
        process_name: track.process_name.clone(),
        started_at,
        ended_at,
    }
}

/// Writes the sentence of a track that came from another state.
pub(crate) fn describe(rule: &Rule, id: &SubjectId, track: &mut Track, before: RuleState) {
    let (after, holds) = (track.state, track.holds(&rule.condition.when));
    let is_new = holds || before != after || matches!(after, RuleState::Firing(_));
    if after == RuleState::Inactive || !is_new {
        return;
    }
    let (subject, words) = (track.title(id), rule.words());
    if track.has_value() {
        let over = if matches!(after, RuleState::Resolved(..)) { "resolved: " } else { "" };
        let why = track.explained.as_ref().filter(|_| over.is_empty()).map(|why| format!("; {why}"));
        track.value = track.first();
        let shown = track.shown(&rule.condition.when);
        track.text = format!("{subject}: {over}{words} ({shown}){}", why.unwrap_or_default());
    } else if matches!((before, after), (RuleState::Firing(_), RuleState::Resolved(..))) {
        let why = if id.process.is_some() { "the process exited" } else { "no values for 5m" };
        track.value = None;
        track.text = format!("{subject}: resolved, {why}: {words}");
    }
}
