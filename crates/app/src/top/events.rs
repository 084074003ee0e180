//! What has happened: states that changed, deaths, faults.

use super::feed::Moment;

/// What has happened, the latest last.
#[derive(Debug, Default)]
pub struct Events;

impl Events {
    /// Compares a moment with the one before.
    pub fn notice(&mut self, _before: &Moment, _now: &Moment) {}
}
