//! Rules at work: shown each sample, they tell what fires.

use alerts::settings::AlertSettings;
use alerts::{Ended, Engine, Notice};
use model::{Alert, Severity, Snapshot};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Rules, and what they have found.
pub struct Watch {
    engine: Engine,
    started: Instant,
    firing: Vec<Alert>,
}

impl Watch {
    /// With the rules of a configuration.
    pub fn new(settings: &AlertSettings) -> Watch {
        Watch { engine: Engine::new(settings.rules.clone()), started: Instant::now(), firing: Vec::new() }
    }

    /// Takes a sample, and the processes that ended in the last minutes. Tells what is new.
    pub fn observe(&mut self, snapshot: &Snapshot, ended: &[Ended]) -> Vec<Notice> {
        let notices = self.engine.observe(self.started.elapsed(), snapshot, ended);
        self.firing = self.engine.firing();
        notices
    }

    /// Other rules from now on. Tells what is over for that.
    pub fn set_rules(&mut self, settings: &AlertSettings) -> Vec<Notice> {
        let notices = self.engine.set_rules(settings.rules.clone(), alerts::wall());
        self.firing = self.engine.firing();
        notices
    }

    /// What fires.
    pub fn firing(&self) -> &[Alert] {
        &self.firing
    }

    /// What is pending, firing or over for a short while.
    pub fn alerts(&self) -> Vec<Alert> {
        self.engine.alerts(self.started.elapsed())
    }

    /// The rules.
    pub fn rules(&self) -> impl Iterator<Item = &alerts::Rule> {
        self.engine.rules()
    }
}

/// Rules, and what is pending, firing or over.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Listed {
    /// The rules.
    pub rules: Vec<ListedRule>,
    /// What they say.
    pub alerts: Vec<Alert>,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListedRule {
    /// What it is called.
    pub name: String,
    /// How much it matters.
    pub severity: Severity,
    /// Its condition.
    pub when: String,
    /// For people.
    pub text: Option<String>,
}

impl Listed {
    /// Those at work here; none where there are no rules.
    pub fn of(watch: Option<&Watch>) -> Listed {
        let Some(watch) = watch else { return Listed::default() };
        let rule = |rule: &alerts::Rule| ListedRule {
            name: rule.name.clone(),
            severity: rule.severity,
            when: rule.condition.to_string(),
            text: rule.text.clone(),
        };
        Listed { rules: watch.rules().map(rule).collect(), alerts: watch.alerts() }
    }
}
