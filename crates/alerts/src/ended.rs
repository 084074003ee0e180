//! A process that has ended, as rules see it.

use model::{Bytes, DeviceId, Timestamp};

/// A process that has come to its own end.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// As it was called.
    pub pid: u32,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// Its short name.
    pub name: Option<String>,
    /// The chip, where it is one.
    pub device: Option<DeviceId>,
    /// What it had not freed.
    pub left: Bytes,
}
