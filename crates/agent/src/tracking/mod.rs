//! What the agent keeps of launched programs beside the book: `queues` what has been waited for, `traces` what a replay runs, `runtime_ids`
//! which operation a record is of, `launch_times` when and on which queue it was launched.

pub mod launch_times;
mod queues;
pub mod runtime_ids;
mod traces;

use queues::Queues;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use traces::Traces;

/// What is kept beside the book of this process, of the programs that it launches.
pub struct Tracking {
    pub has_begun: AtomicBool,
    /// Number + 1 in the book of each chip, by its id in this process.
    chips: [AtomicU8; CHIP_IDS],
    pub queues: Queues,
    pub traces: Traces,
    pub profiler: Registration,
}

/// The most ids of chips: those of a galaxy, and more.
const CHIP_IDS: usize = 256;

impl Tracking {
    pub fn new() -> Tracking {
        Tracking {
            has_begun: AtomicBool::new(false),
            chips: [const { AtomicU8::new(0) }; CHIP_IDS],
            queues: Queues::new(),
            traces: Traces::new(),
            profiler: Registration::new(),
        }
    }

    /// The number of a chip in the book.
    #[inline]
    pub fn chip(&self, device_id: u32) -> Option<u8> {
        self.chips.get(device_id as usize)?.load(Relaxed).checked_sub(1)
    }

    pub fn set_chip(&self, device_id: u32, chip: u8) {
        if let Some(known) = self.chips.get(device_id as usize) {
            known.store(chip + 1, Relaxed);
        }
    }
}

/// Whether the agent is registered for the records of the profiler.
pub struct Registration {
    pub state: AtomicU8,
    pub handle: AtomicU64,
    /// Chips of the book on which the profiler is active.
    pub active: AtomicU64,
    /// Why there are no records.
    pub reason: AtomicU8,
}

impl Registration {
    /// Nothing was launched since a chip was activated.
    pub const TO_DO: u8 = 0;
    pub const UNDER_WAY: u8 = 1;
    pub const DONE: u8 = 2;

    pub const fn new() -> Registration {
        Registration {
            state: AtomicU8::new(Registration::TO_DO),
            handle: AtomicU64::new(0),
            active: AtomicU64::new(0),
            reason: AtomicU8::new(0),
        }
    }
}
