//! Circular buffers: what the programs on a chip claim at the low end of L1.
//!
//! **What the figure means.** tt-metal does not allocate circular buffers, it lays each program's out from the same address
//! upwards, so the programs that it keeps cached lie over each other, and only the one that runs is really there. Adding
//! up what `track_allocate_cb` reports would count the same bytes once per program, and `track_deallocate_cb` does not
//! say whose they were. So the book has, per chip, the bytes that are claimed by at least one living program, summed over
//! the cores (`Device::get_total_cb_allocated`, the definition of tt-metal's own shared memory), and as the number of
//! buffers the number of such programs. Circular buffers placed in a buffer count with that buffer in L1, not here. Dataflow
//! buffers are not reported by any release. tt-metal before 0.70 does not report them, and the kind stays empty.
//!
//! Asking goes through every program and core: seconds on large meshes. It is done when a program comes or goes, and after
//! that at the next buffer if it had to be put off, in one percent of the time at most. It reads programs without a lock, so it is
//! done only by the thread that makes programs on the device, and not while several do.

use crate::book::{DeviceSlot, ProcessBook};
use crate::clock::{millis, timed};
use crate::metal::TotalCb;
use ledger::book::MemoryKind;
use std::sync::atomic::Ordering::Relaxed;

/// Milliseconds between two looks at devices that were put off.
const LOOK: u64 = 10;
/// Milliseconds after a change of threads during which no thread asks.
const SETTLED: u64 = 1_000;

/// A program came to a device, or went.
///
/// # Safety
/// The device must be open, and it must be a `Device`.
#[cold]
pub unsafe fn changed(total: Option<TotalCb>, book: &ProcessBook, slot: &DeviceSlot, came: bool) {
    let (programs, me, now) = (&slot.programs, thread(), millis());
    let alive = programs.alive.fetch_add(if came { 1 } else { -1 }, Relaxed) + if came { 1 } else { -1 };
    let before = programs.thread.swap(me, Relaxed);
    if before != me && before != 0 {
        programs.thread_changed.store(now, Relaxed);
    }
    if alive <= 0 {
        programs.alive.store(0, Relaxed);
        programs.stale.store(false, Relaxed);
        return tell(book, slot, 0, 0);
    }
    programs.stale.store(true, Relaxed);
    book.circular.stale.store(true, Relaxed);
    // SAFETY: as promised.
    unsafe { ask(total, book, slot) };
}

/// Makes up for what was put off.
///
/// # Safety
/// The devices in the book must be open.
#[inline]
pub unsafe fn catch_up(total: Option<TotalCb>, book: &ProcessBook) {
    if book.circular.stale.load(Relaxed) {
        // SAFETY: as promised.
        unsafe { look(total, book) };
    }
}

#[cold]
unsafe fn look(total: Option<TotalCb>, book: &ProcessBook) {
    let (limit, now) = (&book.circular, millis());
    if now < limit.look.load(Relaxed) || !limit.pace.has_time(now) {
        return;
    }
    limit.look.store(now + LOOK, Relaxed);
    limit.stale.store(false, Relaxed);
    for slot in book.devices.iter().filter(|slot| slot.programs.stale.load(Relaxed)) {
        // SAFETY: as the caller promises.
        unsafe { ask(total, book, slot) };
        if slot.programs.stale.load(Relaxed) {
            limit.stale.store(true, Relaxed);
        }
    }
}

/// The device is closed: its programs are gone.
pub fn closed(book: &ProcessBook, slot: &DeviceSlot) {
    if slot.programs.alive.swap(0, Relaxed) != 0 {
        tell(book, slot, 0, 0);
    }
}

unsafe fn ask(total: Option<TotalCb>, book: &ProcessBook, slot: &DeviceSlot) {
    let (Some(total), Some(device)) = (total, slot.object()) else { return };
    let (programs, now) = (&slot.programs, millis());
    let changed = programs.thread_changed.load(Relaxed);
    let settled = changed == 0 || now >= changed.saturating_add(SETTLED);
    if !settled || programs.thread.load(Relaxed) != thread() {
        return;
    }
    if !book.circular.pace.has_time(now) || !programs.pace.take(now) || !book.circular.pace.take(now) {
        return;
    }
    programs.stale.store(false, Relaxed);
    // SAFETY: as promised; the lock that it takes is held by no caller of ours.
    let (bytes, micros) = timed(|| unsafe { total(device) });
    programs.pace.took(micros);
    book.circular.pace.took(micros);
    tell(book, slot, bytes, programs.alive.load(Relaxed).max(0) as u64);
}

fn tell(book: &ProcessBook, slot: &DeviceSlot, bytes: u64, programs: u64) {
    let chips = slot.chips();
    book.write(|writer| chips.iter().for_each(|chip| writer.set(chip, MemoryKind::Cb, bytes, programs)));
}

/// A number that no other living thread has.
fn thread() -> u64 {
    thread_local!(static ME: u8 = const { 0 });
    ME.try_with(|me| (&raw const *me).addr() as u64).unwrap_or(1)
}
