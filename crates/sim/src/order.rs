//! What the machine orders its processes to do: one line of JSON each. Paths are from the machine's root, where the processes run.

use crate::banks::ChipBanks;
use crate::region::Amounts;
use crate::work::Work;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum WorkerOrder {
    /// Map a library.
    Lib { path: String },
    /// Open a device, twice as tt-umd does.
    Open { path: String },
    /// Mark a device as in use.
    Lock { path: String },
    /// Keep a book of memory and operations, as ttmon's agent does.
    Keep { work: Work },
    /// Attach to a chip's region.
    Attach {
        path: String,
        asic: u64,
        device: u32,
        #[serde(default)]
        is_remote: bool,
        /// For the book. Absent where the size of the chip is not known.
        #[serde(default)]
        banks: Option<ChipBanks>,
    },
    /// Have these amounts on the chip that was attached as number `region`.
    Set { region: usize, amounts: Amounts },
    /// Run operations up to now: how busy each chip is, in thousandths, in the order in which they were attached.
    Run {
        busy: Vec<u16>,
        /// A chip does not answer any more: one more operation is launched, and never ends.
        #[serde(default)]
        hangs: bool,
    },
    /// Close everything properly.
    Detach,
}

/// The answer when it was done. Any other line says what went wrong.
pub(crate) const DONE: &str = "ok";
