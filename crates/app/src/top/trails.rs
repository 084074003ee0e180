//! What each process held before: for its growth, and for its history.

use model::Snapshot;

/// The past of all living processes.
#[derive(Debug, Default)]
pub struct Trails;

impl Trails {
    /// Adds a moment.
    pub fn push(&mut self, _snapshot: &Snapshot) {}
}
