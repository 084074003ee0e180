//! The rules of the service: evaluated on each sample, with the latest exits.

use super::service_state::ServiceState;
use ::alerts::settings::AlertSettings;
use ::alerts::{Delivery, Notice, host, wall};
use alerts::log::{LogLevel, log};
use model::{AlertState, ExitRecord, Severity, Snapshot};

/// How long the rules know what a process left allocated, in milliseconds.
const REMEMBERED_MS: i64 = 600_000;

/// Evaluates the rules on a sample, notifies the receivers, and puts what fires into the sample.
pub fn follow(state: &mut ServiceState, delivery: &mut Delivery, snapshot: &mut Snapshot) {
    let since = wall().0 - REMEMBERED_MS;
    let exited: Vec<&ExitRecord> = state.exits.since(since).collect();
    let notices = state.watch.observe(snapshot, &exited);
    notify(&notices, delivery);
    snapshot.alerts = state.watch.firing().to_vec();
}

pub fn change(state: &mut ServiceState, delivery: &mut Delivery, settings: &AlertSettings) {
    let notices = state.watch.set_rules(settings);
    notify(&notices, delivery);
    delivery.set_receivers(&settings.receivers, &host());
}

fn notify(notices: &[Notice], delivery: &mut Delivery) {
    for notice in notices {
        let alert = &notice.alert;
        let level = match (alert.state, alert.severity) {
            (AlertState::Firing, Severity::Critical) => LogLevel::Error,
            (AlertState::Firing, Severity::Warning) => LogLevel::Warning,
            _ => LogLevel::Info,
        };
        log(level, "alert", &[("name", &alert.name), ("state", &alert.state.name()), ("text", &alert.text)]);
        delivery.push(notice);
    }
}
