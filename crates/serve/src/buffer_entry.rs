//! A live buffer, as it is kept while a question is answered.

use ledger::book::MemoryKind;
use model::Source;
use std::rc::Rc;

#[derive(Debug, Clone)]
pub struct BufferEntry {
    pub pid: u32,
    pub devices: Rc<ChipNames>,
    pub kind: MemoryKind,
    pub id: u64,
    pub address: u64,
    /// On each of its devices.
    pub bytes: u64,
    /// Absent when the process did not report it.
    pub banked: Option<Banked>,
    /// ns since 1970; zero when it is not known.
    pub time: u64,
    pub label: Option<Box<str>>,
    pub source: Source,
}

/// What only a book has.
#[derive(Debug, Clone, Copy)]
pub struct Banked {
    pub per_bank: u64,
    /// What was asked for.
    pub logical: u64,
    pub banks: u32,
}

/// The chips that have a buffer, as snapshots name them. Many buffers share them.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChipNames {
    pub names: Vec<String>,
    /// The same, written down.
    pub json: String,
}

impl ChipNames {
    pub fn of(names: Vec<String>) -> ChipNames {
        let json = serde_json::to_string(&names).unwrap_or_default();
        ChipNames { names, json }
    }
}
