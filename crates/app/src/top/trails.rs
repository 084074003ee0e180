//! What each process held before: for its growth, and for its history.

use model::{Snapshot, Timestamp};

/// The past of all living processes.
#[derive(Debug, Default)]
pub struct Trails;

impl Trails {
    /// Adds a moment.
    pub fn push(&mut self, _snapshot: &Snapshot) {}

    /// All device memory of a process over time, oldest first.
    pub fn series(&self, _pid: u32) -> impl Iterator<Item = (Timestamp, u64)> + '_ {
        std::iter::empty()
    }
}
