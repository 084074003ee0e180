//! How a change of the book begins and ends: readers see either all of it or nothing.

use super::Writer;
use super::state::{HeadRecord, WriterState};
use super::system::now;
use crate::book::layout::{BEGUN, JOURNAL, NO_SLOT, NOW, entry_at, pack, place, sum};
use std::sync::atomic::{Ordering, fence};
use std::sync::{MutexGuard, PoisonError};

impl Writer {
    /// Begins a change of the book. It ends when the returned value is dropped.
    #[inline(always)]
    pub(super) fn begin(&self) -> Option<BookChange<'_>> {
        if !self.is_mine() {
            return None;
        }
        Some(self.begun(self.state.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    #[inline(always)]
    pub(super) fn begun<'a>(&'a self, mut state: MutexGuard<'a, WriterState>) -> BookChange<'a> {
        state.now.events += 1;
        state.touched = NO_SLOT;
        self.map.store_words(BEGUN, &[state.now.events, sum(&[state.now.events], BEGUN)]);
        // What follows must not be seen before.
        fence(Ordering::Release);
        BookChange { writer: self, state, time: now() }
    }
}

/// A change of the book under way.
pub(super) struct BookChange<'a> {
    writer: &'a Writer,
    pub state: MutexGuard<'a, WriterState>,
    pub time: u64,
}

impl Drop for BookChange<'_> {
    #[inline]
    fn drop(&mut self) {
        let HeadRecord { events, slots, tabled, untabled, flags, unknown_frees, total, table } = self.state.now;
        let (buffers, rest) = (pack(tabled, untabled), pack(flags, unknown_frees));
        let line = [events, pack(self.state.in_use, slots), buffers, rest, total, table, self.time];
        let entry = entry_at(self.writer.room, JOURNAL, events);
        self.writer.map.store_words(entry, &[pack(events as u32, self.state.touched)]);
        fence(Ordering::Release);
        self.writer.put(place(NOW, events), line);
    }
}
