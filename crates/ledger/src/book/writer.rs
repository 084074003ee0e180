//! The hand that writes the book: many threads of one process, one lock, no waiting for readers.

use super::layout::{
    BEGUN, CHIP, CHIPS, CLOSED, FIRST_CHIP, HAS_UNIQUE_ID, IN_USE, INEXACT, LABEL, MAGIC, NOW, PAIR, PRODUCER, REMARK,
    SLOT, SLOT_WORDS, SLOTS, TABLE, TABLE_WAS_FULL, TEXT_WORDS, VERSION, WHO, WORDS, banks_at, counter_at, identity_at,
    pack, place, slot_at, sum, text_words,
};
use super::{Banks, Chips, Kind, New};
use crate::mapping::Mapping;
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keeps this process's book.
///
/// Every method may be called from any thread and never panics. In a forked child they do nothing: the book is the
/// parent's, and so is the lock, which a thread that the child does not have may have held at the fork.
#[derive(Debug)]
pub struct Writer {
    pid: u32,
    file: File,
    /// What the file is: the program may close it, and open another one under its number.
    identity: (u64, u64),
    map: Mapping,
    /// One here, zero in a forked child.
    mine: Mapping,
    state: Mutex<State>,
}

/// What the writer knows by itself. It never reads its own book, which others might have changed.
#[derive(Debug)]
struct State {
    buffers: HashMap<u64, Entry, Spread>,
    /// Slots that are free again.
    free: Vec<u32>,
    /// Slots that have memory behind them.
    granted: u32,
    /// The most slots there can be.
    capacity: u32,
    chips: Box<[ChipState; CHIPS]>,
    in_use: u32,
    /// The sum of the remark.
    remark: u64,
    now: Now,
}

/// What has to be known of a buffer to free it.
#[derive(Debug, Clone, Copy)]
struct Entry {
    chips: Chips,
    bytes: u64,
    logical: u64,
    owner: u64,
    slot: Option<u32>,
    kind: Kind,
    /// Of its slot.
    sum: u64,
}

#[derive(Debug, Default, Clone, Copy)]
struct Now {
    events: u64,
    slots: u32,
    tabled: u32,
    untabled: u32,
    flags: u32,
    unknown_frees: u32,
    /// The sums of all records that are not in the table, added up.
    total: u64,
    /// The same of the slots that are taken.
    table: u64,
}

#[derive(Debug, Default, Clone, Copy)]
struct ChipState {
    device_id: u32,
    unique_id: Option<u64>,
    left_bytes: u64,
    version: u64,
    /// Of the identity.
    sum: u64,
    counters: [CounterState; 6],
    banks: [BanksState; 4],
}

#[derive(Debug, Default, Clone, Copy)]
struct BanksState {
    version: u32,
    sum: u64,
}

#[derive(Debug, Default, Clone, Copy)]
struct CounterState {
    bytes: u64,
    logical: u64,
    peak: u64,
    allocations: u64,
    frees: u64,
    left: u64,
    version: u64,
    sum: u64,
}

/// Slots that get memory at a time: 256 KiB.
const CHUNK: u32 = 2048;

impl Writer {
    /// Begins a book. `producer` says who keeps it.
    pub fn create(producer: &str) -> io::Result<Writer> {
        Writer::with_room(producer, SLOTS)
    }

    /// Begins a book with room for so many buffers in its table, a multiple of 2048 at best and a million at most.
    pub fn with_room(producer: &str, slots: u32) -> io::Result<Writer> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = rustix::fs::memfd_create("ttmon-book", flags)?;
        // A program without standard output would otherwise have the book there, and print to it.
        let file = File::from(rustix::io::fcntl_dupfd_cloexec(&memory, 3)?);
        let (map, capacity) = map_table(&file, slots.min(SLOTS))?;
        map.keep_from_children()?;
        // Nobody can shorten the file under the mapping, and nobody else can write to it. Old kernels lack the latter.
        let _ = rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW);
        let _ = rustix::fs::fcntl_add_seals(&file, SealFlags::FUTURE_WRITE);
        let _ = rustix::fs::fcntl_add_seals(&file, SealFlags::SEAL);
        let mine = Mapping::zeroed_in_children(8)?;
        mine.store_u64(0, 1);
        let state = State {
            buffers: HashMap::with_capacity_and_hasher(1024, Spread),
            free: Vec::new(),
            granted: 0,
            capacity,
            chips: Box::new([ChipState::default(); CHIPS]),
            in_use: 0,
            remark: 0,
            now: Now::default(),
        };
        let pid = std::process::id();
        let identity = identity(&file)?;
        let writer = Writer { pid, file, identity, map, mine, state: Mutex::new(state) };
        let who = [
            MAGIC,
            pack(VERSION, CHIPS as u32),
            pack(pid, 0),
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

    /// Whether this process keeps the book. A forked child does not.
    #[inline]
    pub fn is_mine(&self) -> bool {
        self.mine.load_u64(0) == 1
    }

    /// The book itself, where nobody closes files that he does not know.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The book itself, to be handed to others. `None` when the program has closed it, and perhaps has another file under its
    /// number: then only this process can read it.
    pub fn open_file(&self) -> Option<&File> {
        identity(&self.file).is_ok_and(|found| found == self.identity).then_some(&self.file)
    }

    /// Reads bytes of the book at an offset, from within, and says how many there were.
    pub fn read_at(&self, offset: usize, into: &mut [u8]) -> usize {
        let length = if self.is_mine() { self.map.len().saturating_sub(offset).min(into.len()) } else { 0 };
        self.map.read_bytes(offset, &mut into[..length]);
        length
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
                for (counter, kind) in chip.counters.iter_mut().zip(Kind::ALL) {
                    state.now.changed_by(self.put_counter(in_use, kind, counter));
                }
                for (banks, kind) in chip.banks.iter_mut().zip(Kind::ALL) {
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

    /// Enters a buffer. One with the same id is replaced.
    pub fn allocate(&self, new: &New) {
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
        let bytes = new.per_bank.saturating_mul(u64::from(new.banks));
        let New { id, kind, logical, owner, .. } = *new;
        let sum = slot.map_or(0, |slot| self.put_slot(slot, new, chips, time));
        if let Some(replaced) = state.buffers.insert(id, Entry { chips, bytes, logical, owner, slot, kind, sum }) {
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

    /// The owner of buffers is gone, and they with it: a device that was closed. So are the allocators of its `chips`.
    pub fn clear(&self, owner: u64, chips: Chips) {
        let Some(mut event) = self.begin() else { return };
        let state = &mut *event.state;
        for chip in state.registered(chips).iter() {
            let Some(chip_state) = state.chips.get_mut(usize::from(chip)) else { continue };
            for (banks, kind) in chip_state.banks.iter_mut().zip(Kind::ALL) {
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
    pub fn set(&self, chip: u8, kind: Kind, bytes: u64, buffers: u64) {
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
    pub fn banks(&self, chip: u8, kind: Kind, banks: Banks) {
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
        let Banks { banks, allocatable, allocated, free, largest_free } = banks;
        let line = [u64::from(banks), allocatable, allocated, free, largest_free, time, at];
        let change = self.put_banks(usize::from(chip), kind, state, line);
        event.state.now.changed_by(change);
    }

    /// One sentence about what the producer did not recognise.
    pub fn remark(&self, text: &str) {
        if let Some(mut event) = self.begin() {
            self.put_remark(&mut event.state, text);
        }
    }

    /// From here on the counters are not exact, and why.
    pub fn give_up(&self, text: &str) {
        if let Some(mut event) = self.begin() {
            event.state.now.flags |= INEXACT;
            self.put_remark(&mut event.state, text);
        }
    }

    /// The process ends, cleanly.
    pub fn close(&self) {
        if let Some(mut event) = self.begin() {
            event.state.now.flags |= CLOSED;
        }
    }

    /// Begins a change of the book. It ends when the answer is dropped.
    #[inline(always)]
    fn begin(&self) -> Option<Event<'_>> {
        if !self.is_mine() {
            return None;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.now.events += 1;
        self.map.store_words(BEGUN, &[state.now.events, sum(&[state.now.events], BEGUN)]);
        // What follows must not be seen before.
        fence(Ordering::Release);
        Some(Event { writer: self, state, time: now() })
    }

    fn take_out(&self, state: &mut State, id: u64) -> Option<Entry> {
        let entry = state.buffers.remove(&id)?;
        self.release(state, &entry);
        Some(entry)
    }

    /// Takes what is no longer in the list out of the counters and the table.
    fn release(&self, state: &mut State, entry: &Entry) {
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
                state.free.push(slot);
            }
            None => state.now.untabled = state.now.untabled.saturating_sub(1),
        }
    }

    /// A slot for one more buffer, if there is room.
    fn free_slot(&self, state: &mut State) -> Option<u32> {
        if let Some(slot) = state.free.pop() {
            return Some(slot);
        }
        let more = CHUNK.min(state.capacity - state.granted);
        // Memory that is not there is told here; touching it later would end the process.
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

    /// Writes a slot and answers its sum.
    fn put_slot(&self, slot: u32, new: &New, chips: Chips, time: u64) -> u64 {
        let at = slot_at(slot as usize);
        let mut words = [0; SLOT_WORDS];
        let small = new.banks | u32::from(new.kind as u8) << 16 | u32::from(new.layout) << 24;
        let facts = [
            new.id,
            chips.0,
            new.logical,
            new.per_bank,
            new.address,
            new.page,
            time,
            pack(this_thread(self.pid), small),
        ];
        words[..8].copy_from_slice(&facts);
        // Words that are zero add nothing to the sum.
        words[15] = if new.label.is_empty() {
            sum(&facts, at)
        } else {
            words[8..15].copy_from_slice(&text_words::<{ LABEL / 8 }>(new.label));
            sum(&words[..15], at)
        };
        self.map.store_words(at, &words);
        words[15]
    }

    /// Writes the next version of a chip's record and answers by how much its sum has changed; so do those below.
    fn put_identity(&self, chip: usize, state: &mut ChipState) -> u64 {
        state.version += 1;
        let flags = IN_USE | if state.unique_id.is_some() { HAS_UNIQUE_ID } else { 0 };
        let number = state.unique_id.unwrap_or(0);
        let line = [number, pack(state.device_id, flags), state.left_bytes, 0, 0, 0, state.version];
        let before = state.sum;
        state.sum = self.put(place(identity_at(chip), state.version), line);
        state.sum.wrapping_sub(before)
    }

    #[inline]
    fn put_counter(&self, chip: usize, kind: Kind, counter: &mut CounterState) -> u64 {
        counter.version += 1;
        let CounterState { bytes, logical, peak, allocations, frees, left, version, sum } = *counter;
        let line = [bytes, logical, peak, allocations, frees, left, version];
        counter.sum = self.put(place(counter_at(chip, kind as usize), version), line);
        counter.sum.wrapping_sub(sum)
    }

    fn put_banks(&self, chip: usize, kind: Kind, state: &mut BanksState, mut line: [u64; WORDS - 1]) -> u64 {
        let BanksState { version, sum } = *state;
        let version = version.wrapping_add(1);
        line[0] |= pack(0, version);
        let at = place(banks_at(chip, kind as usize), u64::from(version));
        *state = BanksState { version, sum: self.put(at, line) };
        state.sum.wrapping_sub(sum)
    }

    fn put_remark(&self, state: &mut State, text: &str) {
        let before = state.remark;
        state.remark = self.put_text(REMARK, text);
        state.now.changed_by(state.remark.wrapping_sub(before));
    }

    /// Writes a text and answers its sum.
    fn put_text(&self, offset: usize, text: &str) -> u64 {
        let mut words = [0; TEXT_WORDS];
        words[..TEXT_WORDS - 1].copy_from_slice(&text_words::<{ TEXT_WORDS - 1 }>(text.as_bytes()));
        words[TEXT_WORDS - 1] = sum(&words[..TEXT_WORDS - 1], offset);
        self.map.store_words(offset, &words);
        words[TEXT_WORDS - 1]
    }

    /// Writes a line and answers its sum.
    #[inline]
    fn put(&self, offset: usize, words: [u64; WORDS - 1]) -> u64 {
        let [a, b, c, d, e, f, g] = words;
        let sum = sum(&words, offset);
        self.map.store_words(offset, &[a, b, c, d, e, f, g, sum]);
        sum
    }
}

/// A change of the book under way.
struct Event<'a> {
    writer: &'a Writer,
    state: MutexGuard<'a, State>,
    time: u64,
}

impl Drop for Event<'_> {
    #[inline]
    fn drop(&mut self) {
        let Now { events, slots, tabled, untabled, flags, unknown_frees, total, table } = self.state.now;
        let (buffers, rest) = (pack(tabled, untabled), pack(flags, unknown_frees));
        let line = [events, pack(self.state.in_use, slots), buffers, rest, total, table, self.time];
        fence(Ordering::Release);
        self.writer.put(place(NOW, events), line);
    }
}

impl Now {
    #[inline]
    fn changed_by(&mut self, change: u64) {
        self.total = self.total.wrapping_add(change);
    }
}

impl State {
    /// Those of the chips that the book has.
    fn registered(&self, chips: Chips) -> Chips {
        Chips(chips.0 & 1u64.checked_shl(self.in_use).map_or(u64::MAX, |beyond| beyond - 1))
    }

    #[inline]
    fn counter(&mut self, chip: u8, kind: Kind) -> Option<&mut CounterState> {
        self.chips.get_mut(usize::from(chip))?.counters.get_mut(kind as usize)
    }
}

/// Maps a new book with as much room as the process may have, and says how many slots that is.
fn map_table(file: &File, slots: u32) -> io::Result<(Mapping, u32)> {
    // Beyond this limit the kernel sends a signal that would end the process.
    let allowed = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
    let mut error =
        io::Error::new(io::ErrorKind::StorageFull, "the limit on the size of files leaves no room for a book");
    for capacity in [slots, slots / 16, slots / 256, 0] {
        let length = slot_at(capacity as usize);
        if length as u64 > allowed {
            continue;
        }
        let mapped = file
            .set_len(length as u64)
            .and_then(|()| allocate_pages(file, 0, FIRST_CHIP))
            .and_then(|()| Mapping::of(file, length));
        match mapped {
            Ok(map) => return Ok((map, capacity)),
            Err(why) => error = why,
        }
    }
    Err(error)
}

/// File system and number of a file.
fn identity(file: &File) -> io::Result<(u64, u64)> {
    let stat = rustix::fs::fstat(file)?;
    Ok((stat.st_dev, stat.st_ino))
}

fn allocate_pages(file: &File, offset: usize, length: usize) -> io::Result<()> {
    let flags = FallocateFlags::empty();
    Ok(rustix::io::retry_on_intr(|| rustix::fs::fallocate(file, flags, offset as u64, length as u64))?)
}

/// Nanoseconds since 1970, as of the last tick of the kernel: a few milliseconds old, and a fifth of the price.
#[inline]
fn now() -> u64 {
    let time = clock_gettime(ClockId::RealtimeCoarse);
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// When this process began, in clock ticks since boot.
fn start_ticks() -> Option<u64> {
    let stat = std::fs::read("/proc/self/stat").ok()?;
    let name_ends = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(stat.get(name_ends + 1..)?).ok()?;
    // Field 22 of the manual page; the first one after the name is 3.
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// The number of this thread, remembered with the process that it is of.
#[inline]
fn this_thread(pid: u32) -> u32 {
    thread_local!(static KNOWN: Cell<(u32, u32)> = const { Cell::new((0, 0)) });
    KNOWN
        .try_with(|known| match known.get() {
            (of, thread) if of == pid => thread,
            _ => {
                let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
                known.set((pid, thread));
                thread
            }
        })
        .unwrap_or(0)
}

/// Spreads ids, which are counted up or are addresses. Nobody from outside chooses them.
#[derive(Debug, Clone, Copy)]
struct Spread;

impl BuildHasher for Spread {
    type Hasher = Spreading;

    fn build_hasher(&self) -> Spreading {
        Spreading(0)
    }
}

struct Spreading(u64);

impl Hasher for Spreading {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    fn finish(&self) -> u64 {
        self.0
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
        let new = |id| New {
            id,
            chips,
            kind: Kind::Dram,
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
