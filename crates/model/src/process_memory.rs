//! The book of one process, in plain data.

use crate::{Bytes, Exact, Timestamp};
use serde::{Deserialize, Serialize};

/// Everything that a process's book says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessMemory {
    /// As the process calls itself.
    pub pid: u32,
    /// Who keeps the book.
    pub agent: String,
    /// Whether every allocation is in it.
    pub exact: bool,
    /// What the agent did not recognise.
    pub remark: Option<String>,
    /// Whether the process has ended in its own time.
    pub closed: bool,
    /// When the book was begun.
    pub began_at: Timestamp,
    /// When it was last written.
    pub changed_at: Timestamp,
    /// Allocations, frees and the like since it was begun.
    pub events: u64,
    /// What it holds on each chip.
    pub chips: Vec<ChipMemory>,
    /// Its live buffers, the largest first. Absent when they were not asked for.
    pub buffers: Option<Vec<LiveBuffer>>,
    /// Live buffers that are counted but not listed, because the list was full.
    pub unlisted_buffers: u64,
}

/// What a process holds on one chip.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChipMemory {
    /// What the process calls the chip.
    pub device_id: u32,
    /// What distinguishes the chip from all others, where the process knows: 16 hexadecimal digits, as in an ASIC id.
    pub unique_id: Option<String>,
    /// Bytes that were still allocated when the device was closed.
    pub left_bytes: Bytes,
    /// By kind.
    #[serde(flatten)]
    pub kinds: Exact,
}

/// A live buffer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveBuffer {
    /// What distinguishes it from the others of its process.
    pub id: u64,
    /// The chips that have it, as the process calls them.
    pub device_ids: Vec<u32>,
    /// `dram`, `l1`, `l1_small`, `trace`, `cb` or `kernel`.
    pub kind: String,
    /// What the allocator has reserved for it on each chip.
    pub bytes: Bytes,
    /// What the program has asked for, on each chip.
    pub logical_bytes: Bytes,
    /// What is reserved in each bank.
    pub bank_bytes: Bytes,
    /// In how many banks.
    pub banks: u32,
    /// Address in each bank.
    pub address: u64,
    /// Bytes of a page.
    pub page_bytes: Bytes,
    /// As tt-metal numbers its layouts.
    pub layout: u8,
    /// When it was allocated.
    pub allocated_at: Timestamp,
    /// By which thread.
    pub thread: u32,
    /// What the program calls it.
    pub label: Option<String>,
}
