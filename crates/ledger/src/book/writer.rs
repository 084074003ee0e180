//! Writes the book: many threads of one process, one lock, no waiting for readers.
//!
//! In reading order: `state` is what the writer keeps, `change` begins and ends each change, `records` puts it into the book, `system` is what it asks of the kernel.

mod change;
mod records;
mod state;
pub(super) mod system;

use super::activity::state::ActivityState;
use super::layout::{
    CHIP, CHIPS, CLOSED, INEXACT, JOURNAL, MAGIC, NO_SLOT, NOW, PAIR, PRODUCER, SLOT, SLOTS, TABLE, TABLE_WAS_FULL,
    VERSION, WHO, identity_at, pack, slot_at, sum,
};
use super::{AllocatorBanks, Chips, MemoryKind, NewBuffer};
use crate::mapping::Mapping;
use rustix::fs::{FlockOperation, MemfdFlags, SealFlags};
use state::{ChipState, HeadRecord, Spread, TrackedBuffer, WriterState};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, OnceLock, PoisonError};
use system::{allocate_pages, identity, length_with_activity, map_table, now, start_ticks};

/// Writes this process's book.
///
/// Every method may be called from any thread and never panics. In a forked child they do nothing: the book is the
/// parent's, and so is the lock, which a thread that the child does not have may have held at the fork.
#[derive(Debug)]
pub struct Writer {
    pid: u32,
    file: File,
    /// What the file is: the program may close it, and open another one under its number.
    identity: (u64, u64),
    pub(super) map: Mapping,
    /// Slots that there is room for in the file: the journal comes after them, and then, if there is room, activity.
    pub(super) room: u32,
    /// One here, zero in a forked child.
    mine: Mapping,
    state: Mutex<WriterState>,
    pub(super) activity: OnceLock<ActivityState>,
    /// Whether activity has single records, once it begins.
    pub(super) keeps_singles: AtomicBool,
}

/// Slots that get memory at a time: 256 KiB.
const CHUNK: u32 = 2048;

impl Writer {
    /// Begins a book. `producer` names the program that writes it.
    pub fn create(producer: &str) -> io::Result<Writer> {
        Writer::with_room(producer, SLOTS)
    }

    /// Begins a book with room for so many buffers in its table, a multiple of 2048 at best and a million at most.
    pub fn with_room(producer: &str, slots: u32) -> io::Result<Writer> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = rustix::fs::memfd_create("ttmon-book", flags)?;
        // A program without standard output would otherwise have the book there, and print to it.
        let file = File::from(rustix::io::fcntl_dupfd_cloexec(&memory, 3)?);
        // Closing it would give up the lock below.
        drop(memory);
        let (map, capacity) = map_table(&file, slots.min(SLOTS))?;
        map.keep_from_children()?;
        // No process can shorten the file under the mapping, and no other one can write to it. Old kernels lack the latter.
        let _ = rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW);
        let _ = rustix::fs::fcntl_add_seals(&file, SealFlags::FUTURE_WRITE);
        let _ = rustix::fs::fcntl_add_seals(&file, SealFlags::SEAL);
        // The kernel lists who has a lock: so the book is found though nothing else points at its process. A child does not have it.
        let _ = rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive);
        let mine = Mapping::zeroed_in_children(8)?;
        mine.store_u64(0, 1);
        let state = WriterState {
            buffers: HashMap::with_capacity_and_hasher(1024, Spread),
            free: Vec::new(),
            granted: 0,
            capacity,
            chips: Box::new([ChipState::default(); CHIPS]),
            in_use: 0,
            remark: 0,
            now: HeadRecord::default(),
            touched: NO_SLOT,
        };
        let pid = std::process::id();
        let identity = identity(&file)?;
        let writer = Writer {
            pid,
            file,
            identity,
            map,
            room: capacity,
            mine,
            state: Mutex::new(state),
            activity: OnceLock::new(),
            keeps_singles: AtomicBool::new(false),
        };
        let who = [
            MAGIC,
            pack(VERSION, CHIPS as u32),
            pack(pid, JOURNAL),
            start_ticks().unwrap_or(0),
            now(),
            TABLE as u64,
            pack(capacity, SLOT as u32),
        ];
        writer.put(NOW, [0; 7]);
        if let Some(mut event) = writer.begin() {
            event.state.now.total = sum(&who, WHO).wrapping_add(writer.put_text(PRODUCER, producer));
            writer.put_remark(&mut event.state, "");
        }
        // Last: a reader that finds the first record finds the others.
        writer.put(WHO, who);
        Ok(writer)
    }

    /// Whether this process writes the book. A forked child does not.
    #[inline]
    pub fn is_mine(&self) -> bool {
        self.mine.load_u64(0) == 1
    }

    /// The file of the book, for programs that close no files but their own.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The file of the book, to be passed to other processes. `None` when the program has closed it, and perhaps has another file under its
    /// number: then only this process can read it.
    pub fn open_file(&self) -> Option<&File> {
        identity(&self.file).is_ok_and(|found| found == self.identity).then_some(&self.file)
    }

    /// Reads bytes of the book at an offset, through the mapping, and returns how many there were.
    pub fn read_at(&self, offset: usize, into: &mut [u8]) -> usize {
        let length = if self.is_mine() { self.map.len().saturating_sub(offset).min(into.len()) } else { 0 };
        self.map.read_bytes(offset, &mut into[..length]);
        length
    }

    /// Whether the file is long enough for activity.
    pub(super) fn has_room_for_activity(&self) -> bool {
        self.map.len() >= length_with_activity(self.room)
    }

    /// Chips in the book.
    pub(super) fn chips_in_use(&self) -> u32 {
        if self.is_mine() { self.state.lock().unwrap_or_else(PoisonError::into_inner).in_use } else { 0 }
    }

    /// The number of a chip in this book, by its logical id in this process. `None` when there are more than [`CHIPS`].
    pub fn chip(&self, device_id: u32, unique_id: Option<u64>) -> Option<u8> {
        let mut event = self.begin()?;
        let state = &mut *event.state;
        let in_use = state.in_use as usize;
        let same = |chip: &ChipState| {
            let agree = unique_id.is_none() || chip.unique_id.is_none() || chip.unique_id == unique_id;
            chip.device_id == device_id && agree
        };
        let at = match state.chips.iter().take(in_use).position(same) {
            Some(at) => at,
            None => {
                let chip = state.chips.get_mut(in_use)?;
                allocate_pages(self.open_file()?, identity_at(in_use), CHIP).ok()?;
                chip.device_id = device_id;
                for pair in 0..1 + chip.counters.len() + chip.banks.len() {
                    self.put(identity_at(in_use) + pair * PAIR, [0; 7]);
                }
                for (counter, kind) in chip.counters.iter_mut().zip(MemoryKind::ALL) {
                    state.now.changed_by(self.put_counter(in_use, kind, counter));
                }
                for (banks, kind) in chip.banks.iter_mut().zip(MemoryKind::ALL) {
                    state.now.changed_by(self.put_banks(in_use, kind, banks, [0; 7]));
                }
                state.in_use += 1;
                in_use
            }
        };
        let chip = state.chips.get_mut(at)?;
        chip.unique_id = chip.unique_id.or(unique_id);
        state.now.changed_by(self.put_identity(at, chip));
        Some(at as u8)
    }

    /// Notes at which address the allocator's DRAM and L1 begin in each bank. Zero when that is not known.
    pub fn bases(&self, chip: u8, dram: u32, l1: u32) {
        let Some(mut event) = self.begin() else { return };
        let registered = u32::from(chip) < event.state.in_use;
        let Some(chip_state) = event.state.chips.get_mut(usize::from(chip)).filter(|_| registered) else { return };
        chip_state.bases = [dram, l1];
        let change = self.put_identity(usize::from(chip), chip_state);
        event.state.now.changed_by(change);
    }

    /// Enters a buffer. One with the same id is replaced.
    pub fn allocate(&self, new: &NewBuffer) {
        let Some(mut event) = self.begin() else { return };
        let time = event.time;
        let state = &mut *event.state;
        let chips = state.registered(new.chips);
        // The table has sixteen bits for the banks.
        if chips.0 == 0 || new.banks > 0xffff || state.buffers.try_reserve(1).is_err() {
            self.take_out(state, new.id);
            state.now.flags |= INEXACT;
            return;
        }
        let slot = self.free_slot(state);
        slot.into_iter().for_each(|slot| state.touch(slot));
        let bytes = new.per_bank.saturating_mul(u64::from(new.banks));
        let NewBuffer { id, kind, logical, owner, .. } = *new;
        let sum = slot.map_or(0, |slot| self.put_slot(slot, new, chips, time));
        if let Some(replaced) =
            state.buffers.insert(id, TrackedBuffer { chips, bytes, logical, owner, slot, kind, sum })
        {
            self.release(state, &replaced);
        }
        for chip in chips.iter() {
            let Some(counter) = state.counter(chip, kind) else { continue };
            counter.bytes = counter.bytes.saturating_add(bytes);
            counter.logical = counter.logical.saturating_add(logical);
            counter.allocations += 1;
            counter.peak = counter.peak.max(counter.bytes);
            let change = self.put_counter(usize::from(chip), kind, counter);
            state.now.changed_by(change);
        }
        match slot {
            Some(slot) => {
                state.now.tabled += 1;
                state.now.slots = state.now.slots.max(slot + 1);
                state.now.table = state.now.table.wrapping_add(sum);
            }
            None => {
                state.now.untabled += 1;
                state.now.flags |= TABLE_WAS_FULL;
            }
        }
    }

    /// Takes a buffer out. `false` when the book does not know it, which it counts.
    pub fn free(&self, id: u64) -> bool {
        let Some(mut event) = self.begin() else { return false };
        let known = self.take_out(&mut event.state, id).is_some();
        let unknown = &mut event.state.now.unknown_frees;
        *unknown = unknown.saturating_add(u32::from(!known));
        known
    }

    /// Takes out all buffers of an owner, a device that was closed, and the figures of the allocators of its `chips`.
    pub fn clear(&self, owner: u64, chips: Chips) {
        let Some(mut event) = self.begin() else { return };
        let state = &mut *event.state;
        for chip in state.registered(chips).iter() {
            let Some(chip_state) = state.chips.get_mut(usize::from(chip)) else { continue };
            for (banks, kind) in chip_state.banks.iter_mut().zip(MemoryKind::ALL) {
                state.now.changed_by(self.put_banks(usize::from(chip), kind, banks, [0; 7]));
            }
        }
        let ids: Vec<u64> = state.buffers.iter().filter(|(_, entry)| entry.owner == owner).map(|(id, _)| *id).collect();
        for id in ids {
            let Some(entry) = self.take_out(state, id) else { continue };
            for chip in entry.chips.iter() {
                let Some(counter) = state.counter(chip, entry.kind) else { continue };
                counter.left += 1;
                let change = self.put_counter(usize::from(chip), entry.kind, counter);
                state.now.changed_by(change);
                let Some(chip_state) = state.chips.get_mut(usize::from(chip)) else { continue };
                chip_state.left_bytes = chip_state.left_bytes.saturating_add(entry.bytes);
                let change = self.put_identity(usize::from(chip), chip_state);
                state.now.changed_by(change);
            }
        }
    }

    /// Sets a total that is only known as a whole, of a kind that has no buffers in the table.
    pub fn set(&self, chip: u8, kind: MemoryKind, bytes: u64, buffers: u64) {
        let Some(mut event) = self.begin() else { return };
        let registered = u32::from(chip) < event.state.in_use;
        let Some(counter) = event.state.counter(chip, kind).filter(|_| registered) else { return };
        let live = counter.allocations.saturating_sub(counter.frees);
        counter.allocations += buffers.saturating_sub(live);
        counter.frees += live.saturating_sub(buffers);
        counter.bytes = if buffers == 0 { 0 } else { bytes };
        counter.logical = counter.bytes;
        counter.peak = counter.peak.max(counter.bytes);
        let change = self.put_counter(usize::from(chip), kind, counter);
        event.state.now.changed_by(change);
    }

    /// Enters what the allocator says of the banks of a kind. CB and KERNEL have none.
    pub fn banks(&self, chip: u8, kind: MemoryKind, banks: AllocatorBanks) {
        let Some(mut event) = self.begin() else { return };
        let time = event.time;
        let registered = u32::from(chip) < event.state.in_use;
        let Some(chip_state) = event.state.chips.get_mut(usize::from(chip)).filter(|_| registered) else { return };
        let (Some(state), Some(counter)) =
            (chip_state.banks.get_mut(kind as usize), chip_state.counters.get(kind as usize))
        else {
            return;
        };
        let at = counter.allocations.wrapping_add(counter.frees);
        let AllocatorBanks { banks, allocatable, allocated, free, largest_free } = banks;
        let line = [u64::from(banks), allocatable, allocated, free, largest_free, time, at];
        let change = self.put_banks(usize::from(chip), kind, state, line);
        event.state.now.changed_by(change);
    }

    /// Notes in one sentence what the producer did not recognise.
    pub fn remark(&self, text: &str) {
        if let Some(mut event) = self.begin() {
            self.put_remark(&mut event.state, text);
        }
    }

    /// Marks the counters as not exact from here on, with the reason.
    pub fn give_up(&self, text: &str) {
        if let Some(mut event) = self.begin() {
            event.state.now.flags |= INEXACT;
            self.put_remark(&mut event.state, text);
        }
    }

    /// Marks the book as closed: the process exits cleanly.
    pub fn close(&self) {
        if let Some(mut event) = self.begin() {
            event.state.now.flags |= CLOSED;
        }
    }

    /// As [`Writer::close`], for a process that ends at once: a thread that is in the book, perhaps this one under a signal, is not waited
    /// for.
    pub fn close_at_once(&self) {
        const TRIES: u32 = 10_000;
        // A child of `vfork` has the memory of its parent, which lives on.
        if !self.is_mine() || std::process::id() != self.pid {
            return;
        }
        for _ in 0..TRIES {
            match self.state.try_lock() {
                Ok(state) => return self.begun(state).state.now.flags |= CLOSED,
                Err(_) => std::hint::spin_loop(),
            }
        }
    }

    fn take_out(&self, state: &mut WriterState, id: u64) -> Option<TrackedBuffer> {
        let entry = state.buffers.remove(&id)?;
        self.release(state, &entry);
        Some(entry)
    }

    /// Takes what is no longer in the list out of the counters and the table.
    fn release(&self, state: &mut WriterState, entry: &TrackedBuffer) {
        for chip in entry.chips.iter() {
            let Some(counter) = state.counter(chip, entry.kind) else { continue };
            counter.bytes = counter.bytes.saturating_sub(entry.bytes);
            counter.logical = counter.logical.saturating_sub(entry.logical);
            counter.frees += 1;
            let change = self.put_counter(usize::from(chip), entry.kind, counter);
            state.now.changed_by(change);
        }
        match entry.slot {
            Some(slot) => {
                state.now.tabled = state.now.tabled.saturating_sub(1);
                state.now.table = state.now.table.wrapping_sub(entry.sum);
                let at = slot_at(slot as usize);
                self.map.store_words(at + SLOT - 8, &[0]);
                self.map.store_words(at, &[0]);
                state.touch(slot);
                state.free.push(slot);
            }
            None => state.now.untabled = state.now.untabled.saturating_sub(1),
        }
    }

    /// A slot for one more buffer, if there is room.
    fn free_slot(&self, state: &mut WriterState) -> Option<u32> {
        if let Some(slot) = state.free.pop() {
            return Some(slot);
        }
        let more = CHUNK.min(state.capacity - state.granted);
        // Missing memory is an error here; touching it later would end the process.
        let room = (more > 0 && state.free.try_reserve((state.granted + more) as usize).is_ok())
            .then(|| allocate_pages(self.open_file()?, slot_at(state.granted as usize), more as usize * SLOT).ok());
        match room {
            Some(Some(())) => {
                state.free.extend((state.granted..state.granted + more).rev());
                state.granted += more;
                state.free.pop()
            }
            _ => {
                state.capacity = state.granted;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book;

    #[test]
    fn a_program_that_closes_what_it_does_not_know_keeps_its_own_files() {
        let mut writer = Writer::create("").unwrap();
        let chips = Chips::one(writer.chip(0, None).unwrap());
        let new = |id| NewBuffer {
            id,
            chips,
            kind: MemoryKind::Dram,
            logical: 1,
            per_bank: 1,
            banks: 1,
            address: 1,
            page: 1,
            layout: 0,
            owner: 0,
            label: b"",
        };
        writer.allocate(&new(1));
        // It closed the book, and opened a file that now has the book's number.
        let own = tempfile::tempfile().unwrap();
        writer.file = own.try_clone().unwrap();
        (2..=10_000).for_each(|id| writer.allocate(&new(id)));
        assert_eq!(own.metadata().unwrap().len(), 0, "the file is left alone");
        assert!(writer.open_file().is_none());
        assert_eq!(writer.chip(1, None), None, "there is no room for another chip");

        let from_within = |offset, into: &mut [u8]| Ok(writer.read_at(offset, into));
        let book = book::read(from_within).unwrap();
        assert_eq!(book.chips[0].counters[0].bytes, 10_000, "the counters go on");
        assert_eq!(book::table(from_within, &book).unwrap().buffers.len() as u64, book.tabled);
        assert_eq!(book.tabled + book.untabled, 10_000);
    }
}
