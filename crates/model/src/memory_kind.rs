//! The kinds of device memory.

use serde::{Deserialize, Serialize};

/// A kind of device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// Buffers in DRAM.
    Dram,
    /// Buffers in L1.
    L1,
    /// Buffers in the small L1 region.
    L1Small,
    /// Recorded command traces, in DRAM.
    Trace,
    /// Circular buffers, in L1.
    Cb,
    /// Kernel code. Beside the L1 in use, not part of it.
    Kernel,
}

impl MemoryKind {
    /// All kinds, in the order of reports.
    pub const ALL: [MemoryKind; 6] =
        [MemoryKind::Dram, MemoryKind::L1, MemoryKind::L1Small, MemoryKind::Trace, MemoryKind::Cb, MemoryKind::Kernel];

    /// The kinds that DRAM in use consists of.
    pub const DRAM_USED: [MemoryKind; 2] = [MemoryKind::Dram, MemoryKind::Trace];
    /// The kinds that L1 in use consists of.
    pub const L1_USED: [MemoryKind; 3] = [MemoryKind::L1, MemoryKind::L1Small, MemoryKind::Cb];

    /// As JSON, queries and metrics spell it: `l1_small`.
    pub fn name(self) -> &'static str {
        match self {
            MemoryKind::Dram => "dram",
            MemoryKind::L1 => "l1",
            MemoryKind::L1Small => "l1_small",
            MemoryKind::Trace => "trace",
            MemoryKind::Cb => "cb",
            MemoryKind::Kernel => "kernel",
        }
    }

    /// As tt-metal and reports spell it: `L1_SMALL`.
    pub fn title(self) -> &'static str {
        match self {
            MemoryKind::Dram => "DRAM",
            MemoryKind::L1 => "L1",
            MemoryKind::L1Small => "L1_SMALL",
            MemoryKind::Trace => "TRACE",
            MemoryKind::Cb => "CB",
            MemoryKind::Kernel => "KERNEL",
        }
    }
}
