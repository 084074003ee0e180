//! The rules of the service: evaluated on each sample, with the latest exits.

use super::service::Service;
use ::alerts::settings::AlertSettings;
use ::alerts::{Delivery, Notice, host, wall};
use alerts::log::{LogLevel, log};
use model::{AlertState, ExitRecord, Severity, Snapshot};

/// How long the rules know what a process left allocated, in milliseconds.
const REMEMBERED_MS: i64 = 600_000;

impl Service {
    /// Evaluates the rules on a sample, notifies the receivers, and puts what fires into the sample.
    pub fn follow_rules(&mut self, snapshot: &mut Snapshot) {
        let since = wall().0 - REMEMBERED_MS;
        let exited: Vec<&ExitRecord> = self.state.exits.since(since).collect();
        notify(&self.state.watch.observe(snapshot, &exited), &mut self.delivery);
        snapshot.alerts = self.state.watch.firing().to_vec();
    }

    pub fn set_alerts(&mut self, settings: &AlertSettings) {
        notify(&self.state.watch.set_rules(settings), &mut self.delivery);
        self.delivery.set_receivers(&settings.receivers, &host());
    }
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
