//! Copies a book. It is input from another process, which writes it meanwhile, may be killed during a write, and may be
//! hostile: whatever is inconsistent is an error, never a number.

pub(super) mod records;
mod whole;

use super::AllocatorBanks;
use super::contents::{BankReading, Book, BookBuffer, BookChip, BookError, BufferTable, Counter};
use super::layout::{
    BEGUN, CHIPS, CLOSED, HAS_UNIQUE_ID, IN_USE, INEXACT, LINE, MAGIC, NOW, PAIR, PRODUCER, REMARK, SLOT, SLOTS, TABLE,
    TABLE_WAS_FULL, TEXT_WORDS, VERSION, WHO, WORDS, banks_at, counter_at, identity_at, slot_at, unpack,
};
use records::{Pair, SlotContent, entry, is_whole, text, word, words};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
pub use whole::{read_with_banks, whole};

/// Reads bytes at an offset of a book and returns how many there were.
pub fn of_file(file: &File) -> impl Fn(usize, &mut [u8]) -> io::Result<usize> {
    |offset, into| file.read_at(into, offset as u64)
}

/// Reads bytes like [`of_file`], from a copy in memory.
pub fn of_bytes(bytes: &[u8]) -> impl Fn(usize, &mut [u8]) -> io::Result<usize> {
    |offset, into| {
        let from = bytes.get(offset..).unwrap_or_default();
        let length = from.len().min(into.len());
        into[..length].copy_from_slice(&from[..length]);
        Ok(length)
    }
}

/// Copies everything but the table.
pub fn read(source: impl Fn(usize, &mut [u8]) -> io::Result<usize>) -> Result<Book, BookError> {
    read_trying(&source, MOMENTS, PATIENCE)
}

fn read_trying(
    source: &impl Fn(usize, &mut [u8]) -> io::Result<usize>,
    moments: u32,
    patience: u32,
) -> Result<Book, BookError> {
    let (mut copy, mut before) = (vec![0; FIRST_LOOK], Vec::new());
    let mut looks = LOOKS;
    let mut best = Err(BookError::Broken(WHO));
    for moment in 0..moments {
        let mut length = fill(source, 0, &mut copy)?;
        let wanted = identity_at(chips_at_most(&copy));
        if length == copy.len() && length < wanted {
            copy.resize(wanted, 0);
            length += fill(source, length, &mut copy[length..])?;
        }
        // The copy has not changed, so the process does not write: another copy would be the same.
        if moment > 0 && copy[..length] == before {
            break;
        }
        let mut pages = Pages { source, copy: &copy[..length], looks, torn: None, total: 0 };
        best = pages.book();
        looks = pages.looks;
        match &best {
            // A writer that pauses does so in a moment; one that never does is taken as it is.
            Ok(book) if book.is_of_one_moment || moment >= patience => break,
            Err(BookError::Broken(_)) | Ok(_) => {}
            Err(_) => break,
        }
        before.clear();
        before.extend_from_slice(&copy[..length]);
    }
    best
}

/// Copies the table of a book that was read just now.
pub fn table(source: impl Fn(usize, &mut [u8]) -> io::Result<usize>, book: &Book) -> Result<BufferTable, BookError> {
    let mut buffers = Vec::with_capacity(book.tabled.min(1 << 16) as usize);
    let table = each_buffer(source, book, |buffer| buffers.push(buffer))?;
    Ok(BufferTable { buffers, ..table })
}

/// Passes each buffer of the table to `each`; the returned table has none. After an error, discard the buffers passed so far.
pub fn each_buffer(
    source: impl Fn(usize, &mut [u8]) -> io::Result<usize>,
    book: &Book,
    mut each: impl FnMut(BookBuffer),
) -> Result<BufferTable, BookError> {
    let mut table = BufferTable::default();
    let mut chunk = vec![0; CHUNK];
    let mut pages = Pages { source: &source, copy: &[], looks: LOOKS, torn: None, total: 0 };
    let (mut slot, mut total, mut taken) = (0, 0u64, 0);
    while slot < book.slots as usize {
        let wanted = CHUNK.min((book.slots as usize - slot) * SLOT);
        let length = fill(&source, slot_at(slot), &mut chunk[..wanted])?;
        for bytes in chunk[..length].chunks_exact(SLOT) {
            let at_first = entry(&words(bytes), slot_at(slot), book);
            match if matches!(at_first, SlotContent::Torn) { pages.slot(slot, book)? } else { at_first } {
                SlotContent::Free => {}
                SlotContent::Taken(buffer, sum) => {
                    taken += 1;
                    total = total.wrapping_add(sum);
                    each(buffer);
                }
                SlotContent::Torn => table.unreadable += 1,
            }
            slot += 1;
        }
        if length < wanted {
            return Err(BookError::Impossible(slot_at(slot), "the table ends early"));
        }
    }
    table.moved = pages.begun()? != Some(book.events);
    if !table.moved && taken + table.unreadable != book.tabled {
        return Err(BookError::Impossible(TABLE, "another number of buffers than the book has"));
    }
    if !table.moved && table.unreadable == 0 && total != book.table {
        return Err(BookError::Impossible(TABLE, "other buffers than the book has"));
    }
    Ok(table)
}

/// The number of chips as the beginning of a book has it, unchecked: an upper limit for the first read.
fn chips_at_most(start: &[u8]) -> usize {
    let chips = [NOW, NOW + LINE].map(|now| word(start, now + 8).map_or(0, |word| unpack(word).0 as usize));
    chips[0].max(chips[1]).min(CHIPS)
}

/// What is read at once at the beginning: enough for six chips.
const FIRST_LOOK: usize = 16 << 10;
/// How much of the table is read at once: small enough to stay in the processor's cache.
const CHUNK: usize = 128 << 10;
/// How often a record is looked at again before it is called broken: a busy writer is caught halfway now and then.
const LOOKS_AT_ONE: u32 = 64;
/// The limit for all records of a book together, so that a broken one does not cost much time.
const LOOKS: u32 = 4096;
/// How often a copy of one moment is tried for.
const PATIENCE: u32 = 8;
/// How often a copy is tried for in which no two records were caught halfway.
const MOMENTS: u32 = 64;

/// A book of which the beginning has been copied.
struct Pages<'a, S> {
    source: &'a S,
    copy: &'a [u8],
    looks: u32,
    /// The place of a pair that was caught halfway.
    torn: Option<usize>,
    /// The sums of the records so far, added up.
    total: u64,
}

impl<S: Fn(usize, &mut [u8]) -> io::Result<usize>> Pages<'_, S> {
    fn book(&mut self) -> Result<Book, BookError> {
        match word(self.copy, WHO) {
            Some(MAGIC) => {}
            // The writer puts the magic number last.
            None | Some(0) => return Err(BookError::NotYetWritten),
            Some(_) => return Err(BookError::NotABook),
        }
        // A later version may have another first record, but says so in the same place.
        match word(self.copy, WHO + 8).map(unpack) {
            Some((VERSION, _)) => {}
            Some((version, _)) => return Err(BookError::Version(version)),
            None => return Err(BookError::NotABook),
        }
        let who: [u64; WORDS] = self.record(WHO)?;
        let (capacity, slot) = unpack(who[6]);
        if unpack(who[1]).1 as usize != CHIPS || who[5] != TABLE as u64 || slot as usize != SLOT || capacity > SLOTS {
            return Err(BookError::Impossible(WHO, "another layout under the same version"));
        }
        // The order matters: what has begun by now must have ended before, for all that follows to be of one moment.
        let now = self.pair(NOW, |record| record[0])?;
        let (chips, slots) = unpack(now[1]);
        let ((tabled, untabled), (flags, unknown_frees)) = (unpack(now[2]), unpack(now[3]));
        if chips as usize > CHIPS || slots > capacity || tabled > slots {
            return Err(BookError::Impossible(NOW, "more than there is room for"));
        }
        let begun = self.begun()?;
        let producer = self.text(PRODUCER)?;
        let remark = self.text(REMARK)?;
        let chips = (0..chips as usize).map(|chip| self.chip(chip)).collect::<Result<_, _>>()?;
        let is_of_one_moment = begun == Some(now[0]) && self.begun()? == begun;
        // Only a record that is being written can be incomplete.
        if let Some(at) = self.torn.filter(|_| is_of_one_moment) {
            return Err(BookError::Broken(at));
        }
        if is_of_one_moment && self.total != now[4] {
            return Err(BookError::Broken(NOW));
        }
        Ok(Book {
            pid: unpack(who[2]).0,
            start_ticks: Some(who[3]).filter(|ticks| *ticks > 0),
            created: who[4],
            changed: now[6],
            producer,
            remark: Some(remark).filter(|text| !text.is_empty()),
            events: now[0],
            tabled: u64::from(tabled),
            untabled: u64::from(untabled),
            unknown_frees: u64::from(unknown_frees),
            is_closed: flags & CLOSED != 0,
            table_was_full: flags & TABLE_WAS_FULL != 0,
            is_inexact: flags & INEXACT != 0,
            is_of_one_moment,
            chips,
            slots,
            capacity,
            journal: unpack(who[2]).1,
            table: now[5],
        })
    }

    /// The number of the event that was begun last.
    fn begun(&mut self) -> Result<Option<u64>, BookError> {
        let begun = self.again(BEGUN, |record: &[u64; 2]| is_whole(record, BEGUN).then_some(record[0]))?;
        match (begun, self.torn) {
            (Some(_), _) | (None, Some(BEGUN)) => {}
            (None, None) => self.torn = Some(BEGUN),
            (None, Some(_)) => return Err(BookError::Broken(BEGUN)),
        }
        Ok(begun)
    }

    /// A record whose sum is right: from the copy, or else looked at again.
    fn record<const N: usize>(&mut self, at: usize) -> Result<[u64; N], BookError> {
        if let Some(bytes) = self.copy.get(at..at + N * 8) {
            let record = words(bytes);
            if is_whole(&record, at) {
                self.total = self.total.wrapping_add(record[N - 1]);
                return Ok(record);
            }
        }
        let again = self.again(at, |record: &[u64; N]| is_whole(record, at).then_some(*record))?;
        self.total = self.total.wrapping_add(again.map_or(0, |record| record[N - 1]));
        again.ok_or(BookError::Broken(at))
    }

    fn slot(&mut self, slot: usize, book: &Book) -> Result<SlotContent, BookError> {
        let at = slot_at(slot);
        let whole = self.again(at, |record| match entry(record, at, book) {
            SlotContent::Torn => None,
            whole => Some(whole),
        })?;
        Ok(whole.unwrap_or(SlotContent::Torn))
    }

    /// Looks at a record until it is right.
    fn again<const N: usize, T>(
        &mut self,
        at: usize,
        right: impl Fn(&[u64; N]) -> Option<T>,
    ) -> Result<Option<T>, BookError> {
        let mut buffer = [0; TEXT_WORDS * 8];
        let bytes = &mut buffer[..N * 8];
        for _ in 0..LOOKS_AT_ONE.min(self.looks) {
            self.looks -= 1;
            if fill(self.source, at, bytes)? < bytes.len() {
                return Err(BookError::Impossible(at, "the book ends before it"));
            }
            if let Some(found) = right(&words(bytes)) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn text(&mut self, at: usize) -> Result<String, BookError> {
        let record: [u64; TEXT_WORDS] = self.record(at)?;
        Ok(text(&record[..TEXT_WORDS - 1]))
    }

    /// The later one of a pair's places.
    fn pair(&mut self, at: usize, version: impl Fn(&[u64; WORDS]) -> u64) -> Result<[u64; WORDS], BookError> {
        let look = |both: &[u64; 2 * WORDS]| match Pair::of(both, at, &version) {
            Pair::Broken => None,
            pair => Some(pair),
        };
        let pair = match self.copy.get(at..at + PAIR).map(words).as_ref().and_then(look) {
            Some(pair) => pair,
            None => self.again(at, look)?.unwrap_or(Pair::Broken),
        };
        match pair {
            Pair::Whole(record) => Ok(record),
            // One place can be halfway. Two are a broken book, or a writer that was caught twice: then the book is read again.
            Pair::Half(record) if self.torn.is_none() => {
                self.torn = Some(at);
                Ok(record)
            }
            Pair::Half(_) | Pair::Broken => Err(BookError::Broken(at)),
        }
    }

    /// The later one of a pair's places, added to the total of the chips' records.
    fn of_chip(&mut self, at: usize, version: impl Fn(&[u64; WORDS]) -> u64) -> Result<[u64; WORDS], BookError> {
        let record = self.pair(at, version)?;
        self.total = self.total.wrapping_add(record[WORDS - 1]);
        Ok(record)
    }

    fn chip(&mut self, chip: usize) -> Result<BookChip, BookError> {
        let at = identity_at(chip);
        let identity = self.of_chip(at, |record| record[6])?;
        let (device_id, flags) = unpack(identity[1]);
        if flags & IN_USE == 0 {
            return Err(BookError::Impossible(at, "a chip that is not in use"));
        }
        let mut counters = [Counter::default(); 6];
        for (kind, counter) in counters.iter_mut().enumerate() {
            let at = counter_at(chip, kind);
            let record = self.of_chip(at, |record| record[6])?;
            let [bytes, logical, peak, allocations, frees, left, ..] = record;
            let buffers = allocations.saturating_sub(frees);
            *counter = Counter { bytes, logical, buffers, peak, allocations, frees, left };
            counter.check().map_err(|why| BookError::Impossible(at, why))?;
        }
        let mut banks = [None; 4];
        for (kind, figures) in banks.iter_mut().enumerate() {
            *figures = self.banks(banks_at(chip, kind), &counters[kind])?;
        }
        let unique_id = Some(identity[0]).filter(|_| flags & HAS_UNIQUE_ID != 0);
        let (dram, l1) = unpack(identity[3]);
        let bases = [dram, l1].map(|base| Some(u64::from(base)).filter(|base| *base > 0));
        Ok(BookChip { device_id, unique_id, left_bytes: identity[2], bases, counters, banks })
    }

    fn banks(&mut self, at: usize, counter: &Counter) -> Result<Option<BankReading>, BookError> {
        let version = |record: &[u64; WORDS]| u64::from(unpack(record[0]).1);
        let [count, allocatable, allocated, free, largest_free, time, events, _] = self.of_chip(at, version)?;
        let banks = AllocatorBanks { banks: unpack(count).0, allocatable, allocated, free, largest_free };
        if banks == AllocatorBanks::default() {
            return Ok(None);
        }
        banks.check().map_err(|why| BookError::Impossible(at, why))?;
        let is_current = events == counter.allocations.wrapping_add(counter.frees);
        Ok(Some(BankReading::of(banks, time, is_current, counter)))
    }
}

/// Reads until the buffer is full or the file ends, and returns how much that was.
pub(super) fn fill(
    source: &impl Fn(usize, &mut [u8]) -> io::Result<usize>,
    offset: usize,
    into: &mut [u8],
) -> io::Result<usize> {
    let mut length = 0;
    while length < into.len() {
        match source(offset + length, &mut into[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}
