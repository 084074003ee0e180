//! Rules at work: shown each sample, they tell what fires.

use super::settings::Settings;
use alerts::{Ended, Engine, Notice};
use model::{Alert, Snapshot};
use std::time::Instant;

/// Rules, and what they have found.
pub struct Watch {
    engine: Engine,
    started: Instant,
    firing: Vec<Alert>,
}

impl Watch {
    pub fn new(settings: &Settings) -> Watch {
        Watch { engine: Engine::new(settings.rules.clone()), started: Instant::now(), firing: Vec::new() }
    }

    /// Takes a sample, and the processes that ended in the last minutes. Tells what is new.
    pub fn observe(&mut self, snapshot: &Snapshot, ended: &[Ended]) -> Vec<Notice> {
        let notices = self.engine.observe(self.started.elapsed(), snapshot, ended);
        self.firing = self.engine.firing();
        notices
    }

    /// Other rules from now on. Tells what is over for that.
    pub fn set_rules(&mut self, settings: &Settings) -> Vec<Notice> {
        let notices = self.engine.set_rules(settings.rules.clone(), super::delivery::wall());
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

    pub fn rules(&self) -> impl Iterator<Item = &alerts::Rule> {
        self.engine.rules()
    }
}
