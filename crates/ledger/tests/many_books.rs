//! Whatever happens to the bytes of a book, a reader gets the truth or an error.
//!
//! Some 50 000 damaged books by default, or 200 000 of a release build; `TTMON_BOOKS=10000000 cargo test --release -p ttmon-ledger many_books`
//! tries as many as one likes.

use ledger::book::{
    self, AllocatorBanks, Book, BookBuffer, BookError, BufferTable, Chips, MemoryKind, NewBuffer, Writer,
};
use rustix::time::{ClockId, clock_gettime};
use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

const LINE: usize = 64;
const NOW: usize = 64;
const BEGUN: usize = 192;
const FIRST_CHIP: usize = 4096;
const CHIP: usize = 2048;
const TABLE: usize = 135_168;
const SLOT: usize = 128;

#[test]
#[ignore = "long"]
fn a_damaged_book_says_the_truth_or_nothing() {
    let by_default = if cfg!(debug_assertions) { 50_000 } else { 200_000 };
    let books = std::env::var("TTMON_BOOKS").map_or(by_default, |count| count.parse().unwrap());
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(books);
    let began = Instant::now();
    let outcomes = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..threads).map(|thread| scope.spawn(move || damage(thread as u64, books / threads))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).fold(Outcomes::default(), Outcomes::and)
    });
    println!("{books} books in {:.1} s: {outcomes:?}", began.elapsed().as_secs_f64());
    assert!(outcomes.errors > 0 && outcomes.whole > 0 && outcomes.cut_short > 0, "{outcomes:?}");
}

#[derive(Debug, Default)]
struct Outcomes {
    errors: usize,
    whole: usize,
    /// As if the writer had died in its last event.
    cut_short: usize,
    tables: usize,
    slowest: Duration,
}

impl Outcomes {
    fn and(self, other: Outcomes) -> Outcomes {
        Outcomes {
            errors: self.errors + other.errors,
            whole: self.whole + other.whole,
            cut_short: self.cut_short + other.cut_short,
            tables: self.tables + other.tables,
            slowest: self.slowest.max(other.slowest),
        }
    }
}

/// Damages the books of some histories, again and again, and compares what is still read with the truth.
fn damage(thread: u64, count: usize) -> Outcomes {
    let mut random = Random(thread << 32 | 0x00b0_0c5e);
    let mut outcomes = Outcomes::default();
    let mut left = count;
    // Many chips take long to read, and are no other.
    for (chips, most) in [(1, 5000), (2, 5000), (64, 50), (3, 5000), (8, 500)].into_iter().cycle() {
        if left == 0 {
            break;
        }
        let books = most.min(left);
        left -= books;
        let mut moments = history_of(&mut random, chips);
        let other = history_of(&mut random, 2).pop().unwrap();
        let truth = moments.pop().unwrap();
        let mut patient = Patient::new(&truth);
        for _ in 0..books {
            let hurt = patient.hurt(&mut random, &moments, &other);
            let began = cpu_time();
            let book = book::read(book::of_bytes(patient.bytes()));
            let table = book.as_ref().ok().map(|book| book::table(book::of_bytes(patient.bytes()), book));
            let whole = book::whole(book::of_bytes(patient.bytes()));
            outcomes.slowest = outcomes.slowest.max(cpu_time() - began);
            let told = || {
                format!(
                    "after {hurt:?} in {:?}",
                    patient.undo.iter().map(|(at, was)| (*at, was.len())).collect::<Vec<_>>()
                )
            };
            match &book {
                Err(_) => outcomes.errors += 1,
                Ok(book) if book.is_of_one_moment => outcomes.whole += 1,
                Ok(_) => outcomes.cut_short += 1,
            }
            let Ok(book) = book else {
                patient.heal();
                continue;
            };
            let known = moments.iter().chain([&other]).filter(|_| hurt.is_splice);
            let same = [&truth].into_iter().chain(known).find(|moment| moment.book == book);
            match same {
                Some(_) => {}
                None if !book.is_of_one_moment && hurt.is_splice => {}
                None => check(&book, &truth, told),
            }
            // Read in one go, the buffers that it lists add up to its counters.
            if let Ok((whole, listed)) = &whole {
                if listed.unreadable == 0 && whole.untabled == 0 {
                    for (at, chip) in whole.chips.iter().enumerate() {
                        let here = listed.buffers.iter().filter(|one| one.kind == MemoryKind::Dram);
                        let here = here.filter(|one| one.chips.iter().any(|chip| usize::from(chip) == at));
                        let sum = here.fold(0u64, |sum, one| sum.saturating_add(one.bytes()));
                        assert_eq!(sum, chip.counters[MemoryKind::Dram as usize].bytes, "{}", told());
                    }
                }
            }
            if let Some(Ok(table)) = table {
                outcomes.tables += 1;
                match same {
                    Some(moment) => check_table(&table, &moment.buffers, told),
                    None => {
                        assert!(hurt.is_splice || table.buffers.iter().all(|buffer| truth.buffers.contains(buffer)))
                    }
                }
            }
            patient.heal();
        }
    }
    outcomes
}

/// What this thread has had of the processor: the machine may have had other things to do.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// A book that was changed must say the same, or that it is not of one moment. Then it may be as a writer leaves it that
/// dies before it has closed its last event.
fn check(book: &Book, truth: &Moment, told: impl Fn() -> String) {
    if book.is_of_one_moment {
        assert_eq!(*book, truth.book, "{}", told());
        return;
    }
    assert!(truth.book.events - book.events <= 1, "{}", told());
    assert_eq!(book.chips[..], truth.book.chips[..book.chips.len()], "{}", told());
    assert!(truth.book.chips.len() - book.chips.len() <= 1, "{}", told());
    assert_eq!((book.pid, book.created, &book.producer), (truth.book.pid, truth.book.created, &truth.book.producer));
}

/// What is broken is never taken for free.
fn check_table(table: &BufferTable, truth: &[BookBuffer], told: impl Fn() -> String) {
    assert!(table.buffers.iter().all(|buffer| truth.contains(buffer)) || table.unreadable > 0, "{}", told());
    assert_eq!(table.buffers.len() + table.unreadable as usize, truth.len(), "{}", told());
    assert!(!table.moved, "{}", told());
}

/// A book as it was at some time, and what it said then.
struct Moment {
    bytes: Vec<u8>,
    book: Book,
    buffers: Vec<BookBuffer>,
}

impl Moment {
    fn of(writer: &Writer) -> Moment {
        let book = book::read(book::of_file(writer.file())).unwrap();
        let table = book::table(book::of_file(writer.file()), &book).unwrap();
        assert!(book.is_of_one_moment && !table.moved && table.unreadable == 0);
        let mut bytes = vec![0; TABLE + ROOM * SLOT];
        let length = writer.file().read_at(&mut bytes, 0).unwrap();
        bytes.truncate(length);
        Moment { bytes, book, buffers: table.buffers }
    }
}

/// More buffers than there is room for are live now and then.
const ROOM: usize = 24;
const IDS: u64 = 30;

/// The last moments of a random life, after every event; the last one is the present.
fn history_of(random: &mut Random, chips: u64) -> Vec<Moment> {
    // The clock of a book is coarse, and two of them should not differ by luck.
    std::thread::sleep(Duration::from_millis(5));
    let writer = Writer::with_room("many books", ROOM as u32).unwrap();
    for id in 0..chips {
        writer.chip(id as u32, (id % 2 == 0).then_some(id + 500)).unwrap();
    }
    let events = 20 + random.below(200);
    let mut moments = Vec::new();
    for event in 0..events {
        event_of(random, &writer, chips);
        if event + 6 >= events || random.below(40) == 0 {
            moments.push(Moment::of(&writer));
        }
    }
    moments
}

fn event_of(random: &mut Random, writer: &Writer, chips: u64) {
    let all = u64::MAX >> (64 - chips);
    let chip = random.below(chips) as u8;
    let kind = MemoryKind::ALL[random.below(4) as usize];
    let id = random.below(IDS);
    match random.below(40) {
        0..20 => {
            let some = if random.below(2) == 0 { all } else { 1 << chip | random.next() & all };
            // Round sizes: what differs between two moments then differs in few bits only, and those are high ones.
            let size = 1 << random.below(36);
            let label: &[u8] = if random.below(3) == 0 { "kv-cache é".as_bytes() } else { b"" };
            let (logical, banks) = (size * random.below(8), random.below(65) as u32);
            let place = (random.next() >> 20, 1 << random.below(12), random.below(4) as u8);
            let (address, page, layout) = place;
            let new = NewBuffer {
                id,
                chips: Chips(some),
                kind,
                logical,
                per_bank: size,
                banks,
                address,
                page,
                layout,
                owner: id % 3,
                label,
            };
            writer.allocate(&new);
        }
        20..34 => _ = writer.free(id),
        34 => writer.clear(id % 3, Chips(id % 8)),
        35 => writer.set(chip, MemoryKind::Cb, random.next() >> 40, random.below(9)),
        36 | 37 => {
            let (allocated, free) = (random.next() >> 30, 1 << random.below(33));
            let banks =
                AllocatorBanks { banks: 12, allocatable: allocated + free, allocated, free, largest_free: free / 2 };
            writer.banks(chip, kind, banks);
        }
        38 => writer.remark(&format!("remark {id}")),
        _ => _ = writer.chip(u32::from(chip), Some(u64::from(chip) + 500)),
    }
}

#[test]
#[ignore = "long"]
fn a_reader_that_is_overtaken_says_the_truth_of_one_moment() {
    let mut random = Random(7);
    let (mut whole, mut moving, mut errors) = (0, 0, 0);
    for chips in [1, 2, 3, 9] {
        let writer = Writer::with_room("many books", ROOM as u32).unwrap();
        let chips =
            (0..chips).map(|id| Chips::one(writer.chip(id, None).unwrap())).fold(Chips(0), |all, one| all | one);
        let mut moments = vec![Moment::of(&writer)];
        for event in 0..300 {
            let (id, size) = (random.below(IDS), 1000);
            let new = NewBuffer {
                id,
                chips,
                kind: MemoryKind::L1,
                logical: size,
                per_bank: 100,
                banks: 64,
                address: event,
                page: 32,
                layout: 0,
                owner: 1,
                label: b"",
            };
            if random.below(2) == 0 {
                writer.allocate(&new)
            } else {
                _ = writer.free(id)
            }
            moments.push(Moment::of(&writer));
        }
        let first = moments[0].book.events;
        let writes = writes(&moments, &mut random);
        for _ in 0..400 {
            let live = Live::new(&moments, &writes, &mut random);
            // Now and then it is caught in two records, as often as one looks.
            let Ok(book) = book::read(|at, into| live.read(at, into)) else {
                errors += 1;
                continue;
            };
            let truth = &moments[(book.events - first) as usize];
            let table = book::table(|at, into| live.read(at, into), &book).unwrap();
            if book.is_of_one_moment {
                assert_eq!(book, truth.book);
                whole += 1;
            }
            for counter in book.chips.iter().map(|chip| chip.counters[MemoryKind::L1 as usize]) {
                assert_eq!((counter.bytes, counter.logical), (counter.buffers * 6400, counter.buffers * 1000));
            }
            if table.moved {
                moving += 1;
                let known = |buffer| moments.iter().any(|moment| moment.buffers.contains(buffer));
                assert!(table.buffers.iter().all(known));
            } else {
                assert_eq!((&table.buffers, table.unreadable), (&truth.buffers, 0));
            }
        }
    }
    println!("{whole} of one moment, {moving} tables under way, {errors} unreadable");
    assert!(
        whole > 100 && moving > 100 && errors < 50,
        "{whole} of one moment, {moving} tables under way, {errors} unreadable"
    );
}

/// The words that are written from each moment to the next, in the order of the writer; within a line in any order.
fn writes(moments: &[Moment], random: &mut Random) -> Vec<Vec<(usize, u64)>> {
    let between = |before: &[u8], after: &[u8], at: Range<usize>| {
        let words = at.step_by(8).filter(|&at| before[at..at + 8] != after[at..at + 8]);
        words.map(|at| (at, u64::from_le_bytes(after[at..at + 8].try_into().unwrap()))).collect::<Vec<_>>()
    };
    let mut of_event = |two: &[Moment]| {
        let (before, after) = (&two[0].bytes, &two[1].bytes);
        let mut writes = between(before, after, BEGUN..FIRST_CHIP);
        writes.extend(between(before, after, FIRST_CHIP..before.len()));
        writes.extend(between(before, after, NOW..BEGUN));
        for line in writes.chunk_by_mut(|(a, _), (b, _)| a / LINE == b / LINE) {
            for i in (1..line.len()).rev() {
                line.swap(i, random.below(i as u64 + 1) as usize);
            }
        }
        writes
    };
    moments.windows(2).map(&mut of_event).collect()
}

/// A book whose writer goes on, word by word, while it is read.
struct Live<'a> {
    bytes: RefCell<Vec<u8>>,
    writes: RefCell<Box<dyn Iterator<Item = &'a (usize, u64)> + 'a>>,
    random: RefCell<Random>,
    /// The most words that are written between two pages of a read, and how often that is none.
    pace: u64,
    rest: u64,
}

impl<'a> Live<'a> {
    /// From some moment on.
    fn new(moments: &[Moment], writes: &'a [Vec<(usize, u64)>], random: &mut Random) -> Live<'a> {
        let begin = random.below(writes.len() as u64) as usize;
        Live {
            bytes: RefCell::new(moments[begin].bytes.clone()),
            writes: RefCell::new(Box::new(writes[begin..].iter().flatten())),
            random: RefCell::new(Random(random.next())),
            pace: 1 + random.below(60),
            rest: 1 + random.below(12),
        }
    }

    fn read(&self, at: usize, into: &mut [u8]) -> io::Result<usize> {
        let (mut bytes, mut random) = (self.bytes.borrow_mut(), self.random.borrow_mut());
        let length = into.len().min(bytes.len().saturating_sub(at));
        let mut from = at;
        while from < at + length {
            if random.below(self.rest) == 0 {
                for _ in 0..random.below(self.pace) {
                    let Some((to, word)) = self.writes.borrow_mut().next() else { break };
                    bytes[*to..to + 8].copy_from_slice(&word.to_le_bytes());
                }
            }
            let end = (at + length).min((from / 4096 + 1) * 4096);
            into[from - at..end - at].copy_from_slice(&bytes[from..end]);
            from = end;
        }
        Ok(length)
    }
}

#[test]
fn a_book_of_64_chips_is_read_though_its_writer_died_in_an_event() {
    let moment = history_of(&mut Random(1), 64).pop().unwrap();
    let mut bytes = moment.bytes.clone();
    bytes[NOW + LINE * (moment.book.events % 2) as usize] ^= 1;
    let book = book::read(book::of_bytes(&bytes)).unwrap();
    assert_eq!((book.is_of_one_moment, book.chips), (false, moment.book.chips));
}

#[test]
fn a_book_that_changes_all_the_time_and_is_broken_throughout_is_given_up_soon() {
    let moment = history_of(&mut Random(3), 64).pop().unwrap();
    let mut bytes = moment.bytes;
    // The newer place of each chip's last pair: a reader has to go through everything before it.
    bytes[FIRST_CHIP + 63 * CHIP + 1280..][..2 * LINE].fill(7);
    let reads = std::cell::Cell::new(0u8);
    let changing = |at: usize, into: &mut [u8]| {
        let length = book::of_bytes(&bytes)(at, into)?;
        reads.set(reads.get().wrapping_add(1));
        // In no record.
        if let Some(byte) = 1000usize.checked_sub(at).and_then(|at| into.get_mut(at)) {
            *byte = reads.get();
        }
        Ok(length)
    };
    let began = cpu_time();
    assert!(matches!(book::read(changing), Err(BookError::Broken(_))));
    let time = cpu_time() - began;
    println!("given up after {time:?}");
    assert!(time < Duration::from_secs(2), "{time:?}");
}

/// The sums are no secret, so a hostile book can claim anything, but not hold up its reader.
#[test]
fn a_table_larger_than_any_writer_makes_is_refused() {
    let moment = history_of(&mut Random(2), 1).pop().unwrap();
    let mut bytes = moment.bytes.clone();
    bytes[48..52].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(book::read(book::of_bytes(&bytes)), Err(BookError::Broken(0))));
}

/// A copy of a book that is changed and put right again, since copying it each time would take longer than reading it.
struct Patient {
    bytes: Vec<u8>,
    length: usize,
    /// Lines that mean something: a change elsewhere is too easy.
    lines: Vec<usize>,
    slots: Vec<usize>,
    undo: Vec<(usize, Vec<u8>)>,
}

#[derive(Debug)]
struct Hurt {
    what: [Option<&'static str>; 3],
    is_splice: bool,
}

impl Patient {
    fn new(truth: &Moment) -> Patient {
        let chips = truth.book.chips.len();
        let lines = (0..12).chain(FIRST_CHIP / LINE..(FIRST_CHIP + chips * CHIP) / LINE).map(|line| line * LINE);
        let slots: Vec<usize> = (TABLE..truth.bytes.len()).step_by(SLOT).collect();
        let in_slots = slots.iter().flat_map(|slot| [*slot, slot + LINE]);
        let lines = lines.chain(in_slots).filter(|at| at % CHIP < 1408 || !(FIRST_CHIP..TABLE).contains(at)).collect();
        Patient { bytes: truth.bytes.clone(), length: truth.bytes.len(), lines, slots, undo: Vec::new() }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn heal(&mut self) {
        while let Some((at, was)) = self.undo.pop() {
            self.bytes[at..at + was.len()].copy_from_slice(&was);
        }
        self.length = self.bytes.len();
    }

    fn write(&mut self, at: usize, new: &[u8]) {
        let new = &new[..new.len().min(self.bytes.len() - at)];
        let place = &mut self.bytes[at..at + new.len()];
        self.undo.push((at, place.to_vec()));
        place.copy_from_slice(new);
    }

    fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().unwrap())
    }

    fn put(&mut self, at: usize, word: u64) {
        self.write(at, &word.to_le_bytes());
    }

    fn copy(&mut self, from: usize, to: usize, length: usize) {
        let copied = self.bytes[from..from + length].to_vec();
        self.write(to, &copied);
    }

    fn swap(&mut self, a: usize, b: usize, length: usize) {
        let was = self.bytes[b..b + length].to_vec();
        self.copy(a, b, length);
        self.write(a, &was);
    }

    /// One to three changes.
    fn hurt(&mut self, random: &mut Random, moments: &[Moment], other: &Moment) -> Hurt {
        let mut hurt = Hurt { what: [None; 3], is_splice: false };
        let count = 1 + [0, 0, 0, 1, 2][random.below(5) as usize];
        for what in hurt.what.iter_mut().take(count) {
            let (name, is_splice) = self.change(random, moments, other);
            *what = Some(name);
            hurt.is_splice |= is_splice;
        }
        hurt
    }

    fn change(&mut self, random: &mut Random, moments: &[Moment], other: &Moment) -> (&'static str, bool) {
        let line = random.of(&self.lines);
        let word = line + 8 * random.below(8) as usize;
        let slot = random.of(&self.slots);
        let bit = random.below(64);
        let name = match random.below(20) {
            0 | 1 => {
                self.put(word, self.word(word) ^ 1 << bit);
                "a bit"
            }
            2 => {
                let at = random.below(self.bytes.len() as u64) as usize;
                self.write(at, &[random.next() as u8]);
                "a byte anywhere"
            }
            3 => {
                self.write(word + bit as usize % 8, &[random.next() as u8]);
                "a byte"
            }
            4 => {
                let was = self.word(word);
                let values = [
                    0,
                    u64::MAX,
                    random.next(),
                    was.wrapping_add(1),
                    was.wrapping_sub(1),
                    was.rotate_left(32),
                    was << 1,
                ];
                self.put(word, values[random.below(7) as usize]);
                "a word"
            }
            5 => {
                let to = random.of(&self.lines) + 8 * random.below(8) as usize;
                self.swap(word, to, 8);
                "two words swapped"
            }
            // What one word gains another loses, the sum perhaps.
            6 => {
                let size = if line >= TABLE { SLOT } else { LINE };
                let record = line - line % size;
                let partner = record + 8 * random.below(size as u64 / 8) as usize;
                self.put(word, self.word(word) ^ 1 << bit);
                self.put(partner, self.word(partner) ^ 1 << bit);
                "the same bit of two words"
            }
            7 => {
                let partner = line + 8 * random.below(8) as usize;
                let change = random.next() << (bit & 60);
                self.put(word, self.word(word).wrapping_add(change));
                self.put(partner, self.word(partner).wrapping_sub(change));
                "from one word to another"
            }
            8 => {
                self.swap(line, random.of(&self.lines), LINE);
                "two lines swapped"
            }
            9 => {
                self.copy(line, random.of(&self.lines), LINE);
                "a line copied"
            }
            10 => {
                self.swap(slot, random.of(&self.slots), SLOT);
                "two slots swapped"
            }
            11 => {
                self.copy(slot, random.of(&self.slots), SLOT);
                "a slot copied"
            }
            12 => {
                let at = if random.below(2) == 0 { line } else { random.below(self.bytes.len() as u64) as usize };
                let most = 1 << random.below(13);
                self.write(at, &vec![0; 1 + random.below(most) as usize]);
                "a zeroed range"
            }
            13 => {
                let noise: Vec<u8> = (0..random.below(300)).map(|_| random.next() as u8).collect();
                self.write(line, &noise);
                "noise"
            }
            14 => {
                self.length = if random.below(2) == 0 {
                    line + bit as usize
                } else {
                    random.below(self.bytes.len() as u64) as usize
                };
                "truncation"
            }
            15 => {
                // Of the lines of a chip and of `now`, the even ones are the first places of pairs.
                let pair =
                    if random.below(2) == 0 { NOW } else { (line.max(FIRST_CHIP) / SLOT * SLOT).min(TABLE - SLOT) };
                self.copy(pair, pair + LINE, LINE);
                "both places of a pair the same"
            }
            16 => {
                let (pair, version) = if random.below(2) == 0 {
                    (NOW, 0)
                } else {
                    ((line.max(FIRST_CHIP) / SLOT * SLOT).min(TABLE - SLOT), 48)
                };
                let at = pair + version + LINE * random.below(2) as usize;
                self.put(at, self.word(at).wrapping_add(2));
                "an older place that looks newer"
            }
            17 => {
                let at = if random.below(2) == 0 { NOW } else { line };
                self.write(at, &[0; LINE]);
                "a line zeroed"
            }
            18 => {
                let from = &moments[random.below(moments.len() as u64) as usize].bytes;
                self.splice(random, from);
                return ("a splice with another moment", true);
            }
            _ => {
                self.splice(random, &other.bytes);
                return ("a splice with another book", true);
            }
        };
        (name, false)
    }

    fn splice(&mut self, random: &mut Random, from: &[u8]) {
        let at = random.of(&self.lines) + [0, 0, 8, 24, 3][random.below(5) as usize];
        let length = [LINE, SLOT, CHIP, TABLE, 8, 1 + random.below(5000) as usize][random.below(6) as usize];
        let end = (at + length).min(from.len());
        if at < end {
            self.write(at, &from[at..end]);
        }
    }
}

/// Splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn of(&mut self, places: &[usize]) -> usize {
        places[self.below(places.len() as u64) as usize]
    }
}
