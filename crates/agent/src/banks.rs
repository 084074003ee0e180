//! What the allocator says of its banks, asked inside of our hooks at a bounded rate.
//!
//! Asking takes the allocator's lock and time that grows with the number of blocks. tt-metal holds that lock neither when
//! it reports an allocation nor after it gave memory back, which is when we ask: the answer has the buffer in, or out.

use crate::book::{DeviceSlot, ProcessBook};
use crate::buffer::{Buffer, number};
use crate::clock::timed;
use crate::metal::Metal;
use ledger::book::{AllocatorBanks, Chips, MemoryKind};
use std::sync::atomic::Ordering::Relaxed;

/// Asks about the banks that a buffer is in, if it is time.
///
/// # Safety
/// The buffer must be alive, and the caller must not hold the allocator's lock.
#[inline]
pub unsafe fn refresh(
    metal: &Metal,
    book: &ProcessBook,
    slot: &DeviceSlot,
    buffer: Buffer,
    kind: MemoryKind,
    now: u64,
) {
    if slot.refresh(kind).is_some_and(|refresh| refresh.pace.take(now)) {
        // SAFETY: as promised.
        unsafe { ask(metal, book, slot, buffer, kind) };
    }
}

/// Asks about all kinds of banks of the device that a buffer is on.
///
/// # Safety
/// As for [`refresh`].
#[cold]
pub unsafe fn introduce(metal: &Metal, book: &ProcessBook, slot: &DeviceSlot, buffer: Buffer) {
    // SAFETY: as promised.
    if let (Some(base), Some(allocator)) =
        (metal.base, unsafe { metal.buffers.as_ref().ok().and_then(|it| it.allocator(buffer)) })
    {
        // SAFETY: the buffer is alive, and so is its allocator. The reference is to one byte, of which these are the lowest.
        let [l1, dram] = [0, 1].map(|memory| unsafe { base(allocator, &memory) }.try_into().unwrap_or(0));
        book.write(|writer| slot.chips().iter().for_each(|chip| writer.bases(chip, dram, l1)));
    }
    for kind in MemoryKind::ALL.into_iter().filter(|kind| kind.has_banks()) {
        // SAFETY: as promised.
        unsafe { ask(metal, book, slot, buffer, kind) };
    }
}

#[cold]
unsafe fn ask(metal: &Metal, book: &ProcessBook, slot: &DeviceSlot, buffer: Buffer, kind: MemoryKind) {
    let (Some(statistics), Ok(reader), Some(refresh)) = (metal.statistics, &metal.buffers, slot.refresh(kind)) else {
        return;
    };
    // SAFETY: the buffer is alive, and so is its allocator, which has banks of all these kinds.
    let Some((allocator, banks)) = (unsafe { reader.allocator(buffer).map(|it| (it, reader.banks(it, kind))) }) else {
        return;
    };
    let others = refresh.most.fetch_max(banks, Relaxed);
    if banks < others {
        return;
    }
    slot.set_allocator(allocator);
    // Figures that do not include all buffers on the chip would be misread.
    if !book.devices.is_alone(slot, kind) {
        return;
    }
    let Some(rest) = slot.at_rest(kind) else { return };
    let mut figures = [0; 4];
    // SAFETY: as above, and the figures are there to be written to.
    let (_, micros) = timed(|| unsafe { statistics(&mut figures, allocator, &number(kind)) });
    refresh.pace.took(micros);
    // The book says with which event the figures agree. If one came in between, the next time will do.
    if slot.at_rest(kind) != Some(rest) {
        return;
    }
    let [allocatable, allocated, free, largest_free] = figures;
    let whole = allocated.checked_add(free).is_some_and(|sum| sum <= allocatable) && largest_free <= free;
    if banks == 0 || !whole {
        return;
    }
    let figures = AllocatorBanks { banks, allocatable, allocated, free, largest_free };
    let chips: Chips = slot.chips();
    book.write(|writer| chips.iter().for_each(|chip| writer.banks(chip, kind, figures)));
}
