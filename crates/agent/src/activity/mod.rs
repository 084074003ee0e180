//! What the process does on its chips, entered in the book: launches, waits and operations from the hooks, records from the profiler.
//!
//! In reading order: `hooks` intercepts, `launches` enters what is launched, `queues` knows what has been waited for, `traces` what a replay
//! runs, `runtime_ids` which operation a record is of, `profiler` receives the records, `kernel_path` names programs without a name.
//!
//! Launching threads and the threads that deliver records meet in no lock, and nothing is allocated per program.

mod hooks;
mod kernel_path;
mod launches;
pub mod profiler;
mod queues;
mod runtime_ids;
mod traces;

use crate::book::ProcessBook;
use crate::metal::Metal;
use ledger::book::Chips;
use ledger::book::activity::monotonic;
use queues::Queues;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use traces::Traces;

/// What is kept beside the book of this process.
pub struct ProcessActivity {
    has_begun: AtomicBool,
    /// Number + 1 in the book of each chip, by its id in this process.
    chips: [AtomicU8; CHIP_IDS],
    queues: Queues,
    traces: Traces,
    profiler: profiler::Registration,
}

/// The most ids of chips: those of a galaxy, and more.
const CHIP_IDS: usize = 256;

impl ProcessActivity {
    pub fn new() -> ProcessActivity {
        ProcessActivity {
            has_begun: AtomicBool::new(false),
            chips: [const { AtomicU8::new(0) }; CHIP_IDS],
            queues: Queues::new(),
            traces: Traces::new(),
            profiler: profiler::Registration::new(),
        }
    }

    /// The number of a chip in the book.
    #[inline]
    fn chip(&self, device_id: u32) -> Option<u8> {
        self.chips.get(device_id as usize)?.load(Relaxed).checked_sub(1)
    }

    fn set_chip(&self, device_id: u32, chip: u8) {
        if let Some(known) = self.chips.get(device_id as usize) {
            known.store(chip + 1, Relaxed);
        }
    }
}

/// The book of this process, in which activity is recorded from now on.
#[inline]
fn begun() -> Option<&'static ProcessBook> {
    let book = ProcessBook::current();
    if book.is_some_and(|book| book.activity.has_begun.load(Relaxed)) { book } else { begin() }
}

#[cold]
fn begin() -> Option<&'static ProcessBook> {
    let book = ProcessBook::current().or_else(|| Metal::get().and_then(ProcessBook::open))?;
    if !book.write(|writer| writer.record_activity(monotonic())).unwrap_or(false) {
        return None;
    }
    if !book.activity.has_begun.swap(true, Relaxed) {
        runtime_ids::begin();
    }
    Some(book)
}

/// A chip is in the book: records of it are entered there.
#[cold]
pub fn chip_met(book: &ProcessBook, device_id: u32, chip: u8) {
    if book.activity.chip(device_id).is_none() {
        book.activity.set_chip(device_id, chip);
        profiler::chip_met(book, chip);
    }
}

/// Devices of these chips were closed, and no other device has them.
#[cold]
pub fn closed(book: &ProcessBook, chips: Chips) {
    let now = monotonic();
    book.write(|writer| chips.iter().for_each(|chip| writer.chip_closed(chip, now)));
}
