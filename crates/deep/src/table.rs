//! The telemetry table as it was read from a chip.

use model::{Arch, TelemetryTag};

/// The most entries that a table may have. Firmware has about 80.
pub const MAX_ENTRIES: u32 = 256;

/// A table, checked for its form, and its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawTable {
    /// Whose it is: the same tag can mean another thing.
    pub arch: Arch,
    /// Version of the table's form, as read: 0x100 is 0.1.0.
    pub version: u32,
    /// The entries in the order of the table, without unused ones.
    pub entries: Vec<TelemetryTag>,
}

impl RawTable {
    /// The value of a tag. Of two with the same number, the first counts.
    pub fn get(&self, tag: u16) -> Option<u32> {
        self.entries.iter().find(|entry| entry.tag == tag).map(|entry| entry.value)
    }
}
