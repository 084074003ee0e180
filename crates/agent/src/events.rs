//! Enters in the book what the hooks report.

use crate::book::{DeviceSlot, ProcessBook};
use crate::buffer::{Allocator, Buffer, BufferFacts, BufferPlace, Look};
use crate::clock::millis;
use crate::device::{self, Object};
use crate::metal::Metal;
use crate::{activity, banks, circular, label};
use ledger::book::{Chips, MemoryKind, NewBuffer};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A buffer was allocated.
///
/// # Safety
/// The library must have reported it.
#[inline]
pub unsafe fn allocated(buffer: Buffer) {
    let Some(metal) = Metal::get() else { return };
    let (Ok(reader), Ok(functions)) = (&metal.buffers, &metal.devices) else {
        // The book says why, even one that another producer has begun.
        if let (Some(book), Some(problem)) = (ProcessBook::open(metal), metal.problem()) {
            book.incomplete(problem);
            book.tend(millis());
        }
        return;
    };
    // SAFETY: as promised.
    let look = unsafe { reader.look(buffer) };
    if matches!(look, Look::Nowhere) {
        return;
    }
    let Some(book) = ProcessBook::open(metal) else { return };
    let facts = match look {
        Look::At(facts) => facts,
        Look::Odd(reason) => return book.incomplete(reason),
        Look::Nowhere => return,
    };
    let place = &facts.place;
    let known = book.devices.get(place.device);
    let (slot, chips) = match known {
        Some(slot) => (Some(slot), slot.chips()),
        // SAFETY: a buffer was just allocated on it, so it is open.
        None => match unsafe { meet(functions, book, place.device, reader.is_decoded()) } {
            Ok(met) => met,
            Err(reason) => return book.incomplete(reason),
        },
    };
    let Some(slot) = slot else { return enter(book, &facts, chips) };
    slot.gains(place.kind);
    enter(book, &facts, chips);
    let now = millis();
    // SAFETY: the buffer is alive, and the allocator's lock was released before the hook was called.
    unsafe {
        if known.is_none() {
            banks::introduce(metal, book, slot, buffer);
        } else {
            banks::refresh(metal, book, slot, buffer, place.kind, now);
        }
        circular::catch_up(metal.total_cb, book);
    }
    book.tend(now);
}

/// Enters a buffer in the book, with the label of this thread.
#[inline]
fn enter(book: &ProcessBook, facts: &BufferFacts, chips: Chips) {
    label::with_current(|label| {
        let new = NewBuffer {
            id: facts.place.id,
            chips,
            kind: facts.place.kind,
            logical: facts.logical,
            per_bank: facts.per_bank,
            banks: facts.banks,
            address: facts.address,
            page: facts.page,
            layout: facts.layout,
            owner: owner(facts.place.device),
            label,
        };
        book.write(|writer| writer.allocate(&new));
    });
}

/// A buffer between [`freeing`] and [`freed`].
pub struct Freeing {
    metal: &'static Metal,
    book: &'static ProcessBook,
    slot: &'static DeviceSlot,
    kind: MemoryKind,
    known: bool,
}

/// The allocator is about to take a buffer back.
///
/// It is out of the book before: the book never has more than there is.
///
/// # Safety
/// The buffer must be alive.
#[inline]
pub unsafe fn freeing(buffer: Buffer) -> Option<Freeing> {
    arrived();
    let book = ProcessBook::current()?;
    let metal = Metal::get()?;
    let reader = metal.buffers.as_ref().ok()?;
    // SAFETY: as promised.
    let Look::At(BufferPlace { id, device, kind }) = (unsafe { reader.place(buffer) }) else { return None };
    let slot = book.devices.get(device);
    if let Some(slot) = slot {
        slot.begins_to_lose(kind);
    }
    let known = book.write(|writer| writer.free(id)).unwrap_or(false);
    Some(Freeing { metal, book, slot: slot?, kind, known })
}

/// The allocator has taken it back.
///
/// # Safety
/// The buffer must be alive still, and the allocator's lock free.
#[inline]
pub unsafe fn freed(freeing: Freeing, buffer: Buffer) {
    let Freeing { metal, book, slot, kind, known } = freeing;
    slot.has_lost(kind, known);
    let now = millis();
    // SAFETY: as promised.
    unsafe { banks::refresh(metal, book, slot, buffer, kind, now) };
    book.tend(now);
}

/// tt-metal reports that a buffer will be freed. That it is comes through the allocator; only if that is never called, this
/// has to do.
///
/// # Safety
/// The buffer must be alive and allocated.
#[inline]
pub unsafe fn announced(buffer: Buffer) {
    if !ARRIVES.load(Relaxed) {
        // SAFETY: as promised.
        unsafe { announced_at_first(buffer) };
    }
}

#[cold]
unsafe fn announced_at_first(buffer: Buffer) {
    let Some(book) = ProcessBook::current() else { return };
    let Some(Ok(reader)) = Metal::get().map(|metal| &metal.buffers) else { return };
    // SAFETY: as promised.
    let id = unsafe {
        // Nothing was reserved for others, and nothing will be given back.
        if !matches!(reader.look(buffer), Look::At(_)) {
            return;
        }
        reader.id(buffer)
    };
    let Ok(before) = ANNOUNCED.try_with(|announced| announced.replace(Some(id))) else { return };
    if before.is_some() {
        NEVER_ARRIVES.store(true, Relaxed);
    }
    if NEVER_ARRIVES.load(Relaxed) {
        let _ = ANNOUNCED.try_with(|announced| announced.set(None));
        before.into_iter().chain([id]).for_each(|id| _ = book.write(|writer| writer.free(id)));
    }
}

/// A graph capture keeps the memory of a buffer from being given back.
pub fn kept() {
    if !ARRIVES.load(Relaxed) {
        let _ = ANNOUNCED.try_with(|announced| announced.set(None));
    }
}

#[inline]
fn arrived() {
    if !ARRIVES.load(Relaxed) {
        ARRIVES.store(true, Relaxed);
        NEVER_ARRIVES.store(false, Relaxed);
    }
}

/// Whether the allocator was called.
static ARRIVES: AtomicBool = AtomicBool::new(false);
/// Whether it was not when it should have been.
static NEVER_ARRIVES: AtomicBool = AtomicBool::new(false);
thread_local!(static ANNOUNCED: Cell<Option<u64>> = const { Cell::new(None) });

/// A chip was opened.
#[cold]
pub fn opened(unique_id: u64, device_id: i32) {
    let Some(book) = Metal::get().and_then(ProcessBook::open) else { return };
    let chip = book.write(|writer| writer.chip(device_id as u32, Some(unique_id))).flatten();
    chip.into_iter().for_each(|chip| activity::chip_met(book, device_id as u32, chip));
    book.tend(millis());
}

/// A device is closed or gone: what it still had went with it, and the next may have its address.
#[cold]
pub fn closed(device: *const c_void) {
    let (Some(book), Some(device)) = (ProcessBook::current(), Object::new(device.cast_mut())) else { return };
    let mut chips = Chips::default();
    book.devices.remove(device, |slot| {
        chips = slot.chips();
        circular::closed(book, slot);
    });
    if chips != Chips::default() {
        book.write(|writer| writer.clear(owner(device), chips));
        let open = book.devices.iter().fold(Chips::default(), |all, slot| all | slot.chips());
        activity::closed(book, Chips(chips.0 & !open.0));
        book.tend(millis());
    }
}

/// An allocator took everything back at once.
///
/// # Safety
/// It must be an `AllocatorImpl`.
#[cold]
pub unsafe fn emptied(allocator: *const c_void) {
    let (Some(book), Some(Metal { view: Some(view), .. })) = (ProcessBook::current(), Metal::get()) else { return };
    // SAFETY: as promised; it keeps its `Allocator` as long as it lives.
    let Some(allocator) = Allocator::new(unsafe { view(allocator).as_ref() }.map_or(ptr::null_mut(), |view| *view))
    else {
        return;
    };
    for (slot, device) in book.devices.iter().filter_map(|slot| Some((slot, slot.object()?))) {
        if slot.has_allocator(allocator) {
            // The allocator lives on.
            book.write(|writer| writer.clear(owner(device), Chips::default()));
            slot.emptied();
        }
    }
}

/// A program came to a device, or went.
///
/// # Safety
/// It must be a `Device`, and open if the program came: one goes even after its device was closed.
#[cold]
pub unsafe fn program(device: *const c_void, came: bool) {
    let (Some(metal), Some(device)) = (Metal::get(), Object::new(device.cast_mut())) else { return };
    let (Some(book), Ok(functions)) = (ProcessBook::current(), &metal.devices) else { return };
    // SAFETY: as promised; one that is in the book is open.
    unsafe {
        let met = || if came { meet(functions, book, device, false).ok()?.0 } else { None };
        if let Some(slot) = book.devices.get(device).or_else(met) {
            circular::changed(metal.total_cb, book, slot, came);
        }
    }
    book.tend(millis());
}

/// Finds out which chips a device consists of.
#[cold]
unsafe fn meet<'a>(
    functions: &device::DeviceFunctions,
    book: &'a ProcessBook,
    device: Object,
    care: bool,
) -> Result<(Option<&'a DeviceSlot>, Chips), &'static str> {
    // SAFETY: the caller vouches for the device.
    let members = unsafe { functions.members(device, care) }?;
    let mut chips = Chips::default();
    for member in members.iter() {
        let chip = book.write(|writer| writer.chip(member.device_id, member.unique_id)).flatten();
        let chip = chip.ok_or("there are more chips than the book has room for")?;
        activity::chip_met(book, member.device_id, chip);
        chips = chips | Chips::one(chip);
    }
    Ok((book.devices.insert(device, chips), chips))
}

fn owner(device: Object) -> u64 {
    device.addr().get() as u64
}
