//! Rules that are evaluated on each sample, and the alerts that fire.

use alerts::settings::AlertSettings;
use alerts::{Engine, Notice};
use model::{Alert, ExitRecord, Severity, Snapshot};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Rules, and the alerts of the last sample.
pub struct RuleWatch {
    engine: Engine,
    started: Instant,
    firing: Vec<Alert>,
}

impl RuleWatch {
    /// Rules that have seen nothing yet.
    pub fn new(settings: &AlertSettings) -> RuleWatch {
        RuleWatch { engine: Engine::new(settings.rules.clone()), started: Instant::now(), firing: Vec::new() }
    }

    /// There will be one sample: what cannot fire in the first one is left out.
    pub fn set_once(&mut self) {
        self.engine.set_once();
    }

    /// Takes a sample, and the processes that exited in the last minutes. Returns what is new.
    pub fn observe(&mut self, snapshot: &Snapshot, exited: &[&ExitRecord]) -> Vec<Notice> {
        let notices = self.engine.observe(self.started.elapsed(), snapshot, exited);
        self.firing = self.engine.firing();
        notices
    }

    /// Other rules from now on. Returns what is resolved by that.
    pub fn set_rules(&mut self, settings: &AlertSettings) -> Vec<Notice> {
        let notices = self.engine.set_rules(settings.rules.clone(), alerts::wall());
        self.firing = self.engine.firing();
        notices
    }

    /// Alerts that fire.
    pub fn firing(&self) -> &[Alert] {
        &self.firing
    }

    /// What is pending, firing or resolved since a short while.
    pub fn alerts(&self) -> Vec<Alert> {
        self.engine.alerts(self.started.elapsed())
    }

    /// All rules.
    pub fn rules(&self) -> impl Iterator<Item = &alerts::Rule> {
        self.engine.rules()
    }
}

/// Rules, and what is pending, firing or resolved.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RulesReply {
    /// All rules.
    pub rules: Vec<RuleReply>,
    /// Alerts that are pending, firing or resolved.
    pub alerts: Vec<Alert>,
}

/// One rule, as the API has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RuleReply {
    /// Name of the rule.
    pub name: String,
    /// Severity of its alerts.
    pub severity: Severity,
    /// Its condition.
    pub when: String,
    /// Words for people.
    pub text: Option<String>,
}

impl RulesReply {
    /// The rules that are evaluated here; none without a configuration.
    pub fn of(watch: Option<&RuleWatch>) -> RulesReply {
        let Some(watch) = watch else { return RulesReply::default() };
        let rule = |rule: &alerts::Rule| RuleReply {
            name: rule.name.clone(),
            severity: rule.severity,
            when: rule.condition.to_string(),
            text: rule.text.clone(),
        };
        RulesReply { rules: watch.rules().map(rule).collect(), alerts: watch.alerts() }
    }
}
