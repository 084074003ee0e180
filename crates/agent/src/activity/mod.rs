//! What the process does on its chips, entered in the book: launches, waits and operations from the hooks, records from the profiler.
//!
//! In reading order: `hooks` intercepts, `launches` enters what is launched, `profiler` receives the records, `kernel_path` names programs
//! without a name. What is kept from one call to the next is in `tracking`.
//!
//! Launching threads and the threads that deliver records meet in no lock, and nothing is allocated per program.

mod hooks;
mod kernel_path;
mod launches;
pub mod profiler;

use crate::book::ProcessBook;
use crate::metal::Metal;
use crate::tracking::runtime_ids;
use ledger::book::Chips;
use ledger::book::activity::monotonic;
use std::sync::atomic::Ordering::Relaxed;

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
        hooks::calibrate();
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
