//! The service follows the rules: at each sample, and with who has ended lately.

use super::state::State;
use ::alerts::settings::AlertSettings;
use ::alerts::{Delivery, host, wall};
use ::alerts::{Ended, Notice};
use alerts::log::{LogLevel, log};
use model::{AlertState, Severity, Snapshot};

/// What a process left behind is told for so long, in milliseconds.
const REMEMBERED_MS: i64 = 600_000;

/// Shows a sample to the rules, tells the receivers what is new, and puts what fires into the sample.
pub fn follow(state: &mut State, delivery: &mut Delivery, snapshot: &mut Snapshot) {
    let since = wall().0 - REMEMBERED_MS;
    let ended: Vec<Ended> = state.deaths.since(since).filter_map(super::deaths::Death::ended).collect();
    let notices = state.watch.observe(snapshot, &ended);
    tell(&notices, delivery);
    snapshot.alerts = state.watch.firing().to_vec();
}

/// Other rules and receivers from now on.
pub fn change(state: &mut State, delivery: &mut Delivery, settings: &AlertSettings) {
    let notices = state.watch.set_rules(settings);
    tell(&notices, delivery);
    delivery.set_receivers(&settings.receivers, &host());
}

fn tell(notices: &[Notice], delivery: &mut Delivery) {
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
