//! Enters launches, replays and waits in the book.

use super::{begun, profiler};
use crate::book::ProcessBook;
use crate::tracking::{launch_times, runtime_ids};
use ledger::book::activity::{Launch, monotonic};
use std::cell::Cell;
use std::ffi::c_void;

thread_local! {
    /// What this thread said of the program that it launches next.
    static NEXT: Cell<Launch> = const { Cell::new(Launch { operation: None, runtime_id: None }) };
    /// Waits under way in this thread, one inside the other.
    static WAITS: Cell<u32> = const { Cell::new(0) };
}

/// The program that is launched next has this runtime id.
#[inline]
pub fn runtime_id(id: u64) {
    let _ = NEXT.try_with(|next| next.set(Launch { runtime_id: Some(id as u16), ..next.get() }));
}

/// The program that is launched next is of this operation.
#[inline]
pub fn operation(id: u64, name: &[u8]) {
    let Some(book) = begun() else { return };
    runtime_ids::launches_soon(id as u16);
    book.activity.queues.launches_soon();
    let operation = book.write(|writer| {
        let operation = writer.operation(name)?;
        writer.launches_soon(operation);
        Some(operation)
    });
    let operation = operation.flatten();
    let _ = NEXT.try_with(|next| next.set(Launch { operation, runtime_id: Some(id as u16) }));
}

/// A program is launched.
#[inline]
pub fn launched(queue: *const c_void) {
    let Some(book) = begun() else { return };
    profiler::prepare(book);
    let launch = NEXT.try_with(Cell::take).unwrap_or_default();
    let queue = book.activity.queues.get(queue.addr());
    if let Some(trace) = queue.and_then(|queue| queue.trace()) {
        return recorded(book, trace, launch);
    }
    // Before anything is written: an atomic addition waits for all writes before it.
    if let Some(queue) = queue {
        queue.launched(1);
    }
    let now = monotonic();
    if let Some(id) = launch.runtime_id {
        runtime_ids::launched(id, launch.operation);
        if launch_times::are_kept() {
            launch_times::launched(id, queue.and_then(|queue| book.activity.queues.number(queue)), now);
        }
    }
    book.write(|writer| writer.launched(launch, now));
    book.tend(now / 1_000_000);
}

#[cold]
fn recorded(book: &ProcessBook, trace: u32, launch: Launch) {
    book.activity.traces.add(trace, launch);
    book.write(|writer| writer.recorded_into_trace());
}

/// A queue begins to record a trace.
#[cold]
pub fn recording_begins(queue: *const c_void, trace: u32) {
    let Some(book) = begun() else { return };
    book.activity.traces.begin(trace);
    if let Some(queue) = book.activity.queues.get(queue.addr()) {
        queue.records(Some(trace));
    }
}

#[cold]
pub fn recording_ends(queue: *const c_void) {
    if let Some(queue) = begun().and_then(|book| book.activity.queues.get(queue.addr())) {
        queue.records(None);
    }
}

/// A trace is replayed.
pub fn replayed(queue: *const c_void, trace: u32) {
    let Some(book) = begun() else { return };
    profiler::prepare(book);
    let now = monotonic();
    let programs = book.activity.traces.with(trace, |operations, last| {
        book.write(|writer| writer.replayed(operations.iter().copied(), last, now));
        operations.iter().map(|(_, count)| count).sum()
    });
    let queue = book.activity.queues.get(queue.addr());
    if launch_times::are_kept() {
        let number = queue.and_then(|queue| book.activity.queues.number(queue));
        book.activity.traces.each_id(trace, |id| launch_times::launched(id, number, now));
    }
    if let Some(queue) = queue {
        queue.launched(programs);
    }
    book.tend(now / 1_000_000);
}

#[cold]
pub fn released(trace: u32) {
    if let Some(book) = begun() {
        book.activity.traces.release(trace);
    }
}

/// A thread that waits for the device. When it is dropped without [`Wait::end`], an exception ended it.
#[derive(Default)]
pub struct Wait {
    book: Option<&'static ProcessBook>,
    /// The queue that is waited for as a whole, and what was launched on it before.
    queue: Option<(usize, u64)>,
}

impl Wait {
    /// Begins. `queue` is the one whose programs have all ended afterwards, if there is one.
    pub fn begin(queue: Option<*const c_void>) -> Wait {
        let Some(book) = begun() else { return Wait::default() };
        let found = queue.and_then(|queue| book.activity.queues.get(queue.addr()));
        let queue = queue.zip(found).map(|(at, queue)| (at.addr(), queue.to_wait_for()));
        if WAITS.try_with(|waits| waits.replace(waits.get() + 1)) == Ok(0) {
            book.write(|writer| writer.wait_begins(monotonic()));
        }
        Wait { book: Some(book), queue }
    }

    /// The wait has ended as it should.
    pub fn end(mut self) {
        if let (Some(book), Some((queue, programs))) = (self.book, self.queue.take()) {
            if let Some(queue) = book.activity.queues.get(queue) {
                queue.has_finished(programs);
            }
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let Some(book) = self.book else { return };
        if WAITS.try_with(|waits| waits.replace(waits.get().saturating_sub(1))) == Ok(1) {
            let finished = book.activity.queues.finished();
            let now = monotonic();
            book.write(|writer| writer.wait_ends(Some(finished), now));
            book.tend(now / 1_000_000);
        }
    }
}

/// A launch waited for room in a queue.
#[cold]
pub fn held_back(ns: u64) {
    if let Some(book) = begun() {
        book.write(|writer| writer.held_back(ns));
    }
}
