//! Copies a book. It is input from another process, which writes it meanwhile, may die halfway, and may be hostile: whatever
//! does not add up is an error, never a number.

use super::layout::{
    BEGUN, CHIPS, CLOSED, HAS_UNIQUE_ID, IN_USE, INEXACT, LINE, MAGIC, NOW, PAIR, PRODUCER, REMARK, SLOT, SLOT_WORDS,
    SLOTS, TABLE, TABLE_WAS_FULL, TEXT_WORDS, VERSION, WHO, WORDS, banks_at, counter_at, identity_at, slot_at, sum,
    unpack,
};
use super::{Banks, Chips, Kind};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// What a book says, but for the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Book {
    /// How the process calls itself, in its own PID namespace.
    pub pid: u32,
    /// When it began, in clock ticks since boot. Absent when it could not tell.
    pub start_ticks: Option<u64>,
    /// When the book was begun, ns since 1970.
    pub created: u64,
    /// When it was last written, ns since 1970.
    pub changed: u64,
    /// Who keeps it.
    pub producer: String,
    /// What that did not recognise.
    pub remark: Option<String>,
    /// Allocations, frees and the like since it was begun.
    pub events: u64,
    /// Live buffers that the table tells of.
    pub tabled: u64,
    /// Live buffers for which it had no room. The counters know of them.
    pub untabled: u64,
    /// Frees of buffers that the book did not know.
    pub unknown_frees: u64,
    /// Whether the process has ended, or is ending, in its own time.
    pub is_closed: bool,
    /// Whether the table was full at least once.
    pub table_was_full: bool,
    /// Whether an event was lost for want of memory.
    pub is_inexact: bool,
    /// Whether all of it is of one moment. Otherwise each figure is right for itself: the process wrote all the while, or died
    /// in the middle.
    pub is_of_one_moment: bool,
    /// The chips.
    pub chips: Vec<Chip>,
    slots: u32,
    /// The sums of the slots that are taken, added up.
    table: u64,
}

/// What a process has on one chip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chip {
    /// What the process calls it.
    pub device_id: u32,
    /// What tells it from all others, where the process knows.
    pub unique_id: Option<u64>,
    /// Bytes that were still allocated when the device was closed.
    pub left_bytes: u64,
    /// By [`Kind`].
    pub counters: [Counter; 6],
    /// By [`Kind`], for those that have banks; absent until the allocator was asked.
    pub banks: [Option<BankFigures>; 4],
}

/// What a process has of one kind on one chip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counter {
    /// Bytes reserved.
    pub bytes: u64,
    /// Bytes asked for.
    pub logical: u64,
    /// Live buffers.
    pub buffers: u64,
    /// The most bytes reserved at any time.
    pub peak: u64,
    /// Since the book was begun.
    pub allocations: u64,
    /// Since the book was begun.
    pub frees: u64,
    /// Buffers that were still there when the device was closed.
    pub left: u64,
}

/// What an allocator said of its banks, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BankFigures {
    /// What it said.
    pub banks: Banks,
    /// When it was asked, ns since 1970.
    pub time: u64,
    /// Whether nothing was allocated or freed since.
    pub is_current: bool,
}

/// The live buffers of a process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// In no order.
    pub buffers: Vec<Buffer>,
    /// Whether buffers came or went while it was copied. Each one is right for itself even so.
    pub moved: bool,
    /// Slots that were not right at any time while we looked.
    pub unreadable: u64,
}

/// A live buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    /// What tells it from the others of its process.
    pub id: u64,
    /// The chips that have it, by their place in [`Book::chips`].
    pub chips: Chips,
    /// What for.
    pub kind: Kind,
    /// Bytes asked for, per chip.
    pub logical: u64,
    /// Bytes reserved per bank.
    pub per_bank: u64,
    /// Banks.
    pub banks: u32,
    /// Address in each bank.
    pub address: u64,
    /// Bytes per page.
    pub page: u64,
    /// As the runtime numbers its layouts.
    pub layout: u8,
    /// When it was allocated, ns since 1970.
    pub time: u64,
    /// By which thread.
    pub thread: u32,
    /// What people call it.
    pub label: Option<Box<str>>,
}

/// Why a book cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BookError {
    /// The file cannot be read.
    #[error("cannot read it: {0}")]
    Io(#[from] io::Error),
    /// It does not begin as a book does.
    #[error("is no book of ttmon")]
    NotABook,
    /// A later version.
    #[error("has layout {0}, of which this version of ttmon does not know: use the ttmon that came with its agent")]
    Version(u32),
    /// A record whose sum is wrong, however often one looks.
    #[error("the record at byte {0} is broken")]
    Broken(usize),
    /// A record that contradicts itself.
    #[error("the record at byte {0} cannot be: {1}")]
    Impossible(usize, &'static str),
}

impl Counter {
    /// Whether the figures can be one process's.
    fn check(&self) -> Result<(), &'static str> {
        match self {
            c if c.frees > c.allocations => Err("more frees than allocations"),
            c if c.peak < c.bytes => Err("more than the most there ever was"),
            c if c.buffers == 0 && (c.bytes, c.logical) != (0, 0) => Err("bytes without a buffer"),
            c if c.left > c.frees => Err("more buffers lost than freed"),
            _ => Ok(()),
        }
    }
}

impl Buffer {
    /// Bytes reserved per chip.
    pub fn bytes(&self) -> u64 {
        self.per_bank.saturating_mul(u64::from(self.banks))
    }
}

impl Banks {
    /// How much of the free space a single buffer cannot have: 0 when it is in one piece. Absent when nothing is free.
    pub fn fragmentation(&self) -> Option<f64> {
        (self.free > 0).then(|| 1.0 - self.largest_free as f64 / self.free as f64)
    }

    fn check(&self) -> Result<(), &'static str> {
        match self {
            b if b.banks == 0 => Err("no banks"),
            b if b.largest_free > b.free => Err("a free block larger than all that is free"),
            b if b.allocated.checked_add(b.free).is_none_or(|sum| sum > b.allocatable) => Err("more than there is"),
            _ => Ok(()),
        }
    }
}

/// Reads bytes at an offset of a book, and says how many there were.
pub fn of_file(file: &File) -> impl Fn(usize, &mut [u8]) -> io::Result<usize> {
    |offset, into| file.read_at(into, offset as u64)
}

/// The same for a copy in memory.
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
    let (mut copy, mut before) = (vec![0; FIRST_LOOK], Vec::new());
    let mut looks = LOOKS;
    let mut best = Err(BookError::Broken(WHO));
    for moment in 0..MOMENTS {
        let mut length = fill(&source, 0, &mut copy)?;
        let wanted = identity_at(chips_at_most(&copy));
        if length == copy.len() && length < wanted {
            copy.resize(wanted, 0);
            length += fill(&source, length, &mut copy[length..])?;
        }
        // Nobody writes: looking again would show the same.
        if moment > 0 && copy[..length] == before {
            break;
        }
        let mut pages = Pages { source: &source, copy: &copy[..length], looks, torn: None, total: 0 };
        best = pages.book();
        looks = pages.looks;
        match &best {
            // A writer that pauses does so in a moment; one that never does is taken as it is.
            Ok(book) if book.is_of_one_moment || moment >= PATIENCE => break,
            Err(BookError::Broken(_)) | Ok(_) => {}
            Err(_) => break,
        }
        before.clear();
        before.extend_from_slice(&copy[..length]);
    }
    best
}

/// Copies the table of a book that was read just now.
pub fn table(source: impl Fn(usize, &mut [u8]) -> io::Result<usize>, book: &Book) -> Result<Table, BookError> {
    let mut buffers = Vec::with_capacity(book.tabled.min(1 << 16) as usize);
    let table = each_buffer(source, book, |buffer| buffers.push(buffer))?;
    Ok(Table { buffers, ..table })
}

/// The same, one buffer after the other: the table that is handed out has none. After an error those were no buffers at all.
pub fn each_buffer(
    source: impl Fn(usize, &mut [u8]) -> io::Result<usize>,
    book: &Book,
    mut each: impl FnMut(Buffer),
) -> Result<Table, BookError> {
    let mut table = Table::default();
    let mut chunk = vec![0; CHUNK];
    let mut pages = Pages { source: &source, copy: &[], looks: LOOKS, torn: None, total: 0 };
    let (mut slot, mut total, mut taken) = (0, 0u64, 0);
    while slot < book.slots as usize {
        let wanted = CHUNK.min((book.slots as usize - slot) * SLOT);
        let length = fill(&source, slot_at(slot), &mut chunk[..wanted])?;
        for bytes in chunk[..length].chunks_exact(SLOT) {
            let at_first = entry(&words(bytes), slot_at(slot), book);
            match if matches!(at_first, Entry::Torn) { pages.slot(slot, book)? } else { at_first } {
                Entry::Free => {}
                Entry::Taken(buffer, sum) => {
                    taken += 1;
                    total = total.wrapping_add(sum);
                    each(buffer);
                }
                Entry::Torn => table.unreadable += 1,
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

/// The number of chips as the beginning of a book has it, unchecked: worth a look at so many.
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
/// The same for all records of a book together, so that a broken one does not cost much time.
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
        if word(self.copy, WHO) != Some(MAGIC) {
            return Err(BookError::NotABook);
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
        // Halfway is only what is being written.
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

    fn slot(&mut self, slot: usize, book: &Book) -> Result<Entry, BookError> {
        let at = slot_at(slot);
        let whole = self.again(at, |record| match entry(record, at, book) {
            Entry::Torn => None,
            whole => Some(whole),
        })?;
        Ok(whole.unwrap_or(Entry::Torn))
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
            // One place can be halfway. Two are a broken book, or a writer that was caught twice: then it is read anew.
            Pair::Half(record) if self.torn.is_none() => {
                self.torn = Some(at);
                Ok(record)
            }
            Pair::Half(_) | Pair::Broken => Err(BookError::Broken(at)),
        }
    }

    /// The same of a record of a chip.
    fn of_chip(&mut self, at: usize, version: impl Fn(&[u64; WORDS]) -> u64) -> Result<[u64; WORDS], BookError> {
        let record = self.pair(at, version)?;
        self.total = self.total.wrapping_add(record[WORDS - 1]);
        Ok(record)
    }

    fn chip(&mut self, chip: usize) -> Result<Chip, BookError> {
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
        Ok(Chip { device_id, unique_id, left_bytes: identity[2], counters, banks })
    }

    fn banks(&mut self, at: usize, counter: &Counter) -> Result<Option<BankFigures>, BookError> {
        let version = |record: &[u64; WORDS]| u64::from(unpack(record[0]).1);
        let [count, allocatable, allocated, free, largest_free, time, events, _] = self.of_chip(at, version)?;
        let banks = Banks { banks: unpack(count).0, allocatable, allocated, free, largest_free };
        if banks == Banks::default() {
            return Ok(None);
        }
        banks.check().map_err(|why| BookError::Impossible(at, why))?;
        let is_current = events == counter.allocations.wrapping_add(counter.frees);
        Ok(Some(BankFigures { banks, time, is_current }))
    }
}

/// What is found in the two places of a pair.
enum Pair {
    Whole([u64; WORDS]),
    /// The other place is being written, or broken.
    Half([u64; WORDS]),
    Broken,
}

impl Pair {
    fn of(both: &[u64; 2 * WORDS], at: usize, version: impl Fn(&[u64; WORDS]) -> u64) -> Pair {
        let mut places = [[0; WORDS]; 2];
        both.as_chunks().0.iter().zip(&mut places).for_each(|(from, to)| *to = *from);
        let [even, odd] = places;
        match (is_whole(&even, at), is_whole(&odd, at + LINE)) {
            (true, true) if version(&odd).wrapping_add(1) == version(&even) => Pair::Whole(even),
            (true, true) if version(&even).wrapping_add(1) == version(&odd) => Pair::Whole(odd),
            (true, true) => Pair::Broken,
            (true, false) => Pair::Half(even),
            (false, true) => Pair::Half(odd),
            (false, false) => Pair::Broken,
        }
    }
}

enum Entry {
    Free,
    /// With the sum of its slot.
    Taken(Buffer, u64),
    Torn,
}

fn entry(record: &[u64; SLOT_WORDS], at: usize, book: &Book) -> Entry {
    if record[0] == 0 && record[SLOT_WORDS - 1] == 0 {
        return Entry::Free;
    }
    let (thread, small) = unpack(record[7]);
    let kind = Kind::from_number((small >> 16) as u8);
    let chips = Chips(record[1]);
    let all_known = chips.iter().all(|chip| usize::from(chip) < book.chips.len());
    match kind {
        Some(kind) if is_whole(record, at) && chips.0 != 0 && all_known => {
            let buffer = Buffer {
                id: record[0],
                chips,
                kind,
                logical: record[2],
                per_bank: record[3],
                banks: small & 0xffff,
                address: record[4],
                page: record[5],
                layout: (small >> 24) as u8,
                time: record[6],
                thread,
                label: (record[8] != 0).then(|| text(&record[8..15]).into()),
            };
            Entry::Taken(buffer, record[SLOT_WORDS - 1])
        }
        _ => Entry::Torn,
    }
}

fn is_whole(record: &[u64], at: usize) -> bool {
    record.split_last().is_some_and(|(last, words)| *last == sum(words, at))
}

/// Bytes as words. What is missing is zero.
fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8).map(|bytes| words::<1>(bytes)[0])
}

/// The text before the first zero. Bytes that are not UTF-8 are replaced.
fn text(words: &[u64]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads until the buffer is full or the file ends, and says how much that was.
fn fill(source: &impl Fn(usize, &mut [u8]) -> io::Result<usize>, offset: usize, into: &mut [u8]) -> io::Result<usize> {
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
