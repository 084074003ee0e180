//! A book says what its writer did, to the byte, whoever reads it and whenever.

use ledger::book::{self, AllocatorBanks, Book, BookError, BufferTable, Chips, Counter, MemoryKind, NewBuffer, Writer};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;

fn new(id: u64, chips: Chips, kind: MemoryKind, logical: u64, per_bank: u64, banks: u32) -> NewBuffer<'static> {
    NewBuffer { id, chips, kind, logical, per_bank, banks, address: 4096, page: 2048, layout: 0, owner: 1, label: b"" }
}

fn read(writer: &Writer) -> Book {
    book::read(book::of_file(writer.file())).unwrap()
}

fn table(writer: &Writer) -> BufferTable {
    let mut table = book::table(book::of_file(writer.file()), &read(writer)).unwrap();
    table.buffers.sort_by_key(|buffer| buffer.id);
    table
}

/// The bytes of a book, as far as they are in use.
fn bytes(writer: &Writer) -> Vec<u8> {
    let used = read(writer).tabled as usize + 8;
    let mut bytes = vec![0; 135_168 + used * 128];
    let length = writer.file().read_at(&mut bytes, 0).unwrap();
    bytes.truncate(length);
    bytes
}

#[test]
fn a_new_book_is_empty_and_says_whose_it_is() {
    let writer = Writer::create("a test").unwrap();
    let book = read(&writer);
    assert_eq!((book.pid, book.producer.as_str(), book.remark), (std::process::id(), "a test", None));
    assert!(book.start_ticks.is_some() && book.created > 1_700_000_000_000_000_000);
    assert_eq!((book.chips.len(), book.is_closed, book.is_of_one_moment), (0, false, true));
    assert_eq!(table(&writer), BufferTable::default());
}

#[test]
fn bytes_are_what_was_reserved_and_the_wish_is_beside_them() {
    let writer = Writer::create("").unwrap();
    let chip = writer.chip(0, Some(77)).unwrap();
    // One tile in L1: a page in each of 64 banks.
    writer.allocate(&new(9, Chips::one(chip), MemoryKind::L1, 2048, 2048, 64));
    let book = read(&writer);
    assert_eq!((book.chips[0].device_id, book.chips[0].unique_id), (0, Some(77)));
    let counter = book.chips[0].counters[MemoryKind::L1 as usize];
    let expected =
        Counter { bytes: 131_072, logical: 2048, buffers: 1, peak: 131_072, allocations: 1, ..Counter::default() };
    assert_eq!(counter, expected);
    assert_eq!(book.chips[0].counters[MemoryKind::Dram as usize], Counter::default());

    assert!(writer.free(9));
    let counter = read(&writer).chips[0].counters[MemoryKind::L1 as usize];
    assert_eq!(counter, Counter { peak: 131_072, allocations: 1, frees: 1, ..Counter::default() });
    assert_eq!(table(&writer), BufferTable::default());
}

#[test]
fn the_table_has_everything_of_a_buffer() {
    let writer = Writer::create("").unwrap();
    let chips = Chips::one(writer.chip(4, None).unwrap()) | Chips::one(writer.chip(5, None).unwrap());
    let label = "kv-cache".as_bytes();
    writer.allocate(&NewBuffer { label, layout: 3, ..new(7, chips, MemoryKind::Trace, 100, 64, 12) });
    let table = table(&writer);
    let [buffer] = &table.buffers[..] else { panic!("{table:?}") };
    assert_eq!((buffer.id, buffer.chips, buffer.kind, buffer.logical), (7, chips, MemoryKind::Trace, 100));
    assert_eq!((buffer.per_bank, buffer.banks, buffer.address, buffer.page, buffer.layout), (64, 12, 4096, 2048, 3));
    assert_eq!((buffer.bytes(), buffer.label.as_deref()), (768, Some("kv-cache")));
    assert_eq!(buffer.thread, rustix::thread::gettid().as_raw_nonzero().get() as u32);
    assert!(buffer.time >= read(&writer).created);
    let book = read(&writer);
    assert_eq!(book.chips.iter().map(|chip| chip.counters[3].bytes).collect::<Vec<_>>(), [768, 768]);
}

#[test]
fn a_label_is_cut_between_characters() {
    let writer = Writer::create("").unwrap();
    let chips = Chips::one(writer.chip(0, None).unwrap());
    let long = "é".repeat(40);
    writer.allocate(&NewBuffer { label: long.as_bytes(), ..new(1, chips, MemoryKind::Dram, 1, 1, 1) });
    assert_eq!(table(&writer).buffers[0].label.as_deref(), Some("é".repeat(28).as_str()));
}

#[test]
fn a_buffer_that_comes_twice_counts_once() {
    let writer = Writer::create("").unwrap();
    let chips = Chips::one(writer.chip(0, None).unwrap());
    writer.allocate(&new(1, chips, MemoryKind::Dram, 10, 10, 1));
    writer.allocate(&new(1, chips, MemoryKind::Dram, 30, 30, 1));
    let counter = read(&writer).chips[0].counters[0];
    assert_eq!((counter.bytes, counter.buffers, counter.allocations, counter.frees), (30, 1, 2, 1));
    assert_eq!(table(&writer).buffers.len(), 1);
}

#[test]
fn a_free_without_an_allocation_is_counted_and_changes_nothing() {
    let writer = Writer::create("").unwrap();
    writer.chip(0, None).unwrap();
    assert!(!writer.free(5));
    let book = read(&writer);
    assert_eq!((book.unknown_frees, book.chips[0].counters[0]), (1, Counter::default()));
}

#[test]
fn what_a_closed_device_had_is_gone_and_remembered_as_left() {
    let writer = Writer::create("").unwrap();
    let (a, b) = (Chips::one(writer.chip(0, None).unwrap()), Chips::one(writer.chip(1, None).unwrap()));
    writer.allocate(&NewBuffer { owner: 100, ..new(1, a | b, MemoryKind::Dram, 10, 10, 2) });
    writer.allocate(&NewBuffer { owner: 200, ..new(2, a, MemoryKind::Dram, 7, 7, 1) });
    let banks = AllocatorBanks { banks: 12, allocatable: 1000, allocated: 10, free: 990, largest_free: 495 };
    (0..2).for_each(|chip| writer.banks(chip, MemoryKind::Dram, banks));
    writer.clear(100, a);
    let book = read(&writer);
    let counter = |chip: usize| book.chips[chip].counters[0];
    assert_eq!((counter(0).bytes, counter(0).buffers, counter(0).left), (7, 1, 1), "the other device's stays");
    assert_eq!((counter(1).bytes, counter(1).buffers, counter(1).left), (0, 0, 1));
    assert_eq!((book.chips[0].left_bytes, book.chips[1].left_bytes), (20, 20));
    assert!(!writer.free(1), "a late free of it is nothing new");
    assert_eq!(book.chips[0].banks[0], None, "the allocator is gone");
    assert!(book.chips[1].banks[0].is_some());
}

#[test]
fn totals_that_come_as_a_whole_are_set() {
    let writer = Writer::create("").unwrap();
    let chip = writer.chip(0, None).unwrap();
    writer.set(chip, MemoryKind::Cb, 786_432, 3);
    writer.set(chip, MemoryKind::Cb, 4096, 1);
    let counter = read(&writer).chips[0].counters[MemoryKind::Cb as usize];
    let expected = Counter { bytes: 4096, logical: 4096, buffers: 1, peak: 786_432, allocations: 3, frees: 2, left: 0 };
    assert_eq!(counter, expected);
    writer.set(chip, MemoryKind::Cb, 0, 0);
    assert_eq!(read(&writer).chips[0].counters[MemoryKind::Cb as usize].bytes, 0);
}

#[test]
fn figures_of_the_banks_are_current_until_something_changes() {
    let writer = Writer::create("").unwrap();
    let chip = writer.chip(0, None).unwrap();
    writer.allocate(&new(1, Chips::one(chip), MemoryKind::Dram, 10, 10, 12));
    let banks = AllocatorBanks { banks: 12, allocatable: 1000, allocated: 10, free: 990, largest_free: 495 };
    writer.banks(chip, MemoryKind::Dram, banks);
    let figures = read(&writer).chips[0].banks[0].unwrap();
    assert_eq!((figures.banks, figures.free, figures.largest_free), (12, 990, Some(495)));
    assert_eq!(figures.fragmentation(), Some(0.5));
    assert_eq!(read(&writer).chips[0].banks[1], None, "L1 was not asked");
    writer.allocate(&new(2, Chips::one(chip), MemoryKind::Dram, 10, 10, 12));
    let figures = read(&writer).chips[0].banks[0].unwrap();
    assert_eq!((figures.allocated, figures.free, figures.largest_free), (20, 980, None), "not known any more");
    (1..=2).for_each(|id| _ = writer.free(id));
    assert_eq!(read(&writer).chips[0].banks[0].unwrap().largest_free, Some(1000), "all of it is one block");
}

/// A book of a chip whose DRAM of 12 banks has 1000 bytes in each from address 4096 on, and L1 of 64 banks from 100 on.
fn with_banks() -> (Writer, Chips) {
    let writer = Writer::create("").unwrap();
    let chip = writer.chip(0, None).unwrap();
    writer.bases(chip, 4096, 100);
    let all_free =
        |banks, bytes| AllocatorBanks { banks, allocatable: bytes, allocated: 0, free: bytes, largest_free: bytes };
    for (kind, banks, bytes) in [
        (MemoryKind::Dram, 12, 1000),
        (MemoryKind::L1, 64, 500),
        (MemoryKind::L1Small, 64, 50),
        (MemoryKind::Trace, 12, 80),
    ] {
        writer.banks(chip, kind, all_free(banks, bytes));
    }
    (writer, Chips::one(chip))
}

#[test]
fn the_largest_free_block_follows_from_the_buffers_at_any_moment() {
    let (writer, chips) = with_banks();
    let at = |address: u64, buffer: NewBuffer<'static>| NewBuffer { address, ..buffer };
    let bank = |kind: MemoryKind| {
        let bank = book::read_with_banks(book::of_file(writer.file())).unwrap().chips[0].banks[kind as usize].unwrap();
        (bank.free, bank.largest_free)
    };
    writer.allocate(&at(4096, new(1, chips, MemoryKind::Dram, 1, 100, 12)));
    assert_eq!(bank(MemoryKind::Dram), (900, Some(900)));
    writer.allocate(&at(4396, new(2, chips, MemoryKind::Dram, 1, 300, 12)));
    assert_eq!(bank(MemoryKind::Dram), (600, Some(400)), "200 between the two, 400 after them");
    writer.free(1);
    assert_eq!(bank(MemoryKind::Dram), (700, Some(400)), "300 before it");
    // Each kind has its own place: L1 from the top down, the small region above it, traces above DRAM.
    writer.allocate(&at(500, new(3, chips, MemoryKind::L1, 1, 100, 64)));
    writer.allocate(&at(610, new(4, chips, MemoryKind::L1Small, 1, 20, 64)));
    writer.allocate(&at(5096, new(5, chips, MemoryKind::Trace, 1, 80, 12)));
    assert_eq!(bank(MemoryKind::L1), (400, Some(400)));
    assert_eq!(bank(MemoryKind::L1Small), (30, Some(20)));
    assert_eq!(bank(MemoryKind::Trace), (0, Some(0)));
    let (book, table) = book::whole(book::of_file(writer.file())).unwrap();
    assert_eq!((book.chips[0].banks[0].unwrap().largest_free, table.buffers.len(), table.moved), (Some(400), 4, false));
    assert_eq!(book.chips[0].banks[0].unwrap().fragmentation(), Some(1.0 - 400.0 / 700.0));
}

#[test]
fn a_largest_free_block_that_contradicts_the_buffers_is_not_known() {
    let largest = |place: &dyn Fn(&Writer, Chips)| {
        let (writer, chips) = with_banks();
        writer.allocate(&NewBuffer { address: 4196, ..new(1, chips, MemoryKind::Dram, 1, 100, 12) });
        place(&writer, chips);
        let book = book::read_with_banks(book::of_file(writer.file())).unwrap();
        book.chips[0].banks[0].unwrap().largest_free
    };
    let dram = |id, address, banks| {
        move |writer: &Writer, chips: Chips| {
            writer.allocate(&NewBuffer { address, ..new(id, chips, MemoryKind::Dram, 1, 100, banks) });
        }
    };
    assert_eq!(largest(&|_, _| ()), Some(800));
    assert_eq!(largest(&dram(2, 4200, 12)), None, "two buffers in one place are of two allocators");
    assert_eq!(largest(&dram(2, 5000, 12)), None, "beyond the end");
    assert_eq!(largest(&dram(2, 1000, 12)), None, "before the beginning");
    assert_eq!(largest(&dram(2, 4400, 6)), None, "in some of the banks only");
    assert_eq!(largest(&|writer, _| writer.bases(0, 0, 0)), None, "where the banks begin is not known");
    assert_eq!(largest(&|writer, _| _ = writer.free(1)), Some(1000), "nothing is there");
}

#[test]
fn a_large_table_and_the_counters_are_copied_as_of_one_moment_while_the_process_writes() {
    const LIVE: u64 = 20_000;
    let writer = Writer::create("").unwrap();
    let chips = Chips::one(writer.chip(0, None).unwrap());
    (0..LIVE).for_each(|id| writer.allocate(&new(id, chips, MemoryKind::Dram, 1, 1 + id % 7, 12)));
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 0u64.. {
                writer.free(i * 7919 % LIVE);
                writer.allocate(&new(i * 7919 % LIVE, chips, MemoryKind::Dram, 1, 1 + i % 5, 12));
                // As fast as ttnn allocates.
                let until = std::time::Instant::now() + std::time::Duration::from_micros(10);
                while std::time::Instant::now() < until {}
                if done.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
            }
        });
        let _end = OnDrop(|| done.store(true, std::sync::atomic::Ordering::Relaxed));
        let (copies, mut of_one_moment) = (30, 0);
        for _ in 0..copies {
            let (book, table) = book::whole(book::of_file(writer.file())).unwrap();
            let bytes: u64 = table.buffers.iter().map(|buffer| buffer.bytes()).sum();
            if !table.moved {
                assert_eq!((table.buffers.len() as u64, bytes), (book.tabled, book.chips[0].counters[0].bytes));
                of_one_moment += 1;
            }
        }
        // Other work on the machine may keep the reader from being fast enough now and then.
        assert!(of_one_moment >= copies / 3, "{of_one_moment} of {copies}");
    });
}

#[test]
fn a_full_table_leaves_exact_counters() {
    let writer = Writer::with_room("", 4).unwrap();
    let chips = Chips::one(writer.chip(0, None).unwrap());
    for id in 1..=10 {
        writer.allocate(&new(id, chips, MemoryKind::Dram, 100, 100, 1));
    }
    let book = read(&writer);
    assert_eq!((book.tabled, book.untabled, book.table_was_full), (4, 6, true));
    assert_eq!((book.chips[0].counters[0].bytes, table(&writer).buffers.len()), (1000, 4));
    // Buffers without a slot are freed as exactly as the others, and free slots are used again.
    for id in [1, 2, 9, 10] {
        assert!(writer.free(id));
    }
    writer.allocate(&new(11, chips, MemoryKind::Dram, 5, 5, 1));
    let book = read(&writer);
    assert_eq!((book.tabled, book.untabled, book.chips[0].counters[0].bytes), (3, 4, 605));
}

#[test]
fn a_table_grows_beyond_a_hundred_thousand_buffers() {
    let writer = Writer::create("").unwrap();
    let chips = Chips::one(writer.chip(0, None).unwrap());
    for id in 1..=100_001 {
        writer.allocate(&new(id, chips, MemoryKind::Dram, 1, 1, 1));
    }
    let table = table(&writer);
    assert_eq!((table.buffers.len(), table.moved, table.unreadable), (100_001, false, 0));
    assert!(table.buffers.iter().map(|buffer| buffer.id).eq(1..=100_001));
}

#[test]
fn a_chip_is_known_by_its_id_and_learns_its_number_later() {
    let writer = Writer::create("").unwrap();
    let first = writer.chip(3, None).unwrap();
    assert_eq!(writer.chip(3, Some(33)), Some(first));
    assert_eq!(writer.chip(3, None), Some(first));
    assert_ne!(writer.chip(3, Some(44)), Some(first), "another chip under the same id");
    for id in 100..162 {
        assert!(writer.chip(id, None).is_some());
    }
    assert_eq!(writer.chip(200, None), None, "there is room for 64");
    assert_eq!(read(&writer).chips.len(), 64);
    writer.allocate(&new(1, Chips(u64::MAX), MemoryKind::Dram, 1, 1, 1));
    assert!(read(&writer).chips.iter().all(|chip| chip.counters[0].bytes == 1));
}

#[test]
fn a_buffer_on_a_chip_without_a_name_makes_the_book_inexact() {
    let writer = Writer::create("").unwrap();
    writer.allocate(&new(1, Chips::one(5), MemoryKind::Dram, 1, 1, 1));
    let book = read(&writer);
    assert!(book.is_inexact && book.chips.is_empty());
}

#[test]
fn a_clean_end_and_a_remark_are_in_the_book() {
    let writer = Writer::create("").unwrap();
    writer.remark("libtt_metal.so has no Buffer::address");
    writer.close();
    let book = read(&writer);
    assert_eq!(book.remark.as_deref(), Some("libtt_metal.so has no Buffer::address"));
    assert!(book.is_closed && !book.is_inexact);
    writer.give_up("it is of no use");
    let book = read(&writer);
    assert_eq!((book.remark.as_deref(), book.is_inexact), (Some("it is of no use"), true));
}

#[test]
fn no_other_process_can_write_to_a_book_or_cut_it() {
    let writer = Writer::create("").unwrap();
    assert!(writer.file().write_at(b"x", 0).is_err());
    assert!(writer.file().set_len(0).is_err());
    assert!(writer.file().set_len(1 << 40).is_err());
}

#[test]
fn a_book_is_never_standard_input_or_output() {
    use std::os::fd::AsRawFd;
    assert!(Writer::create("").unwrap().file().as_raw_fd() > 2);
}

#[test]
fn copies_are_right_while_threads_write() {
    let writer = Writer::create("").unwrap();
    let chips = Chips::one(writer.chip(0, None).unwrap()) | Chips::one(writer.chip(1, None).unwrap());
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..3u64 {
            let (writer, done) = (&writer, &done);
            scope.spawn(move || {
                for i in 0.. {
                    let id = thread << 32 | (i % 700);
                    writer.allocate(&new(id, chips, MemoryKind::L1, 1000, 100, 64));
                    if i % 3 > 0 {
                        writer.free(thread << 32 | (i * 7 % 700));
                    }
                    if done.load(std::sync::atomic::Ordering::Relaxed) {
                        return;
                    }
                }
            });
        }
        // Also when an assertion fails: otherwise the scope would wait for them for ever.
        let _end = OnDrop(|| done.store(true, std::sync::atomic::Ordering::Relaxed));
        let (mut copies, mut moved) = (0, 0);
        let until = std::time::Instant::now() + std::time::Duration::from_millis(700);
        while std::time::Instant::now() < until {
            let book = read(&writer);
            for chip in &book.chips {
                let counter = chip.counters[MemoryKind::L1 as usize];
                assert_eq!(counter.bytes, counter.buffers * 6400, "{counter:?}");
                assert_eq!(counter.logical, counter.buffers * 1000, "{counter:?}");
            }
            let table = book::table(book::of_file(writer.file()), &book).unwrap();
            assert!(table.buffers.iter().all(|buffer| buffer.bytes() == 6400 && buffer.chips == chips));
            assert!(table.moved || table.buffers.len() as u64 == book.tabled);
            copies += 1;
            moved += usize::from(table.moved);
        }
        assert!(copies > 10 && moved > 0, "{copies} copies, {moved} of them under way");
    });
    let book = read(&writer);
    assert_eq!(table(&writer).buffers.len() as u64, book.tabled);
}

struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        self.0();
    }
}

#[derive(Debug, Clone)]
enum Step {
    Allocate { id: u64, chips: u64, kind: u8, logical: u64, per_bank: u64, banks: u32 },
    Free { id: u64 },
    Clear { owner: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let id = 0u64..40;
    let allocate = (id.clone(), 1u64..8, 0u8..6, 0u64..1 << 40, 0u64..1 << 30, 0u32..200).prop_map(
        |(id, chips, kind, logical, per_bank, banks)| Step::Allocate { id, chips, kind, logical, per_bank, banks },
    );
    let step = prop_oneof![5 => allocate, 4 => id.prop_map(|id| Step::Free { id }), 1 => (0u64..3).prop_map(|owner| Step::Clear { owner })];
    prop::collection::vec(step, 0..120)
}

/// A book after some steps, in a table of a few slots.
fn after(steps: &[Step]) -> Writer {
    let writer = Writer::with_room("a test", 16).unwrap();
    for id in 0..3 {
        writer.chip(id, Some(u64::from(id) + 500)).unwrap();
    }
    for step in steps {
        match *step {
            Step::Allocate { id, chips, kind, logical, per_bank, banks } => {
                let kind = MemoryKind::from_number(kind).unwrap();
                writer.allocate(&NewBuffer { owner: id % 3, ..new(id, Chips(chips), kind, logical, per_bank, banks) });
            }
            Step::Free { id } => _ = writer.free(id),
            Step::Clear { owner } => writer.clear(owner, Chips(0)),
        }
    }
    writer
}

proptest! {
    #[test]
    fn a_book_agrees_with_a_plain_list(steps in steps()) {
        let writer = after(&steps);
        let mut live: BTreeMap<u64, (u64, u8, u64, u64)> = BTreeMap::new();
        for step in &steps {
            match *step {
                Step::Allocate { id, chips, kind, logical, per_bank, banks } => {
                    live.insert(id, (chips, kind, logical, per_bank * u64::from(banks)));
                }
                Step::Free { id } => _ = live.remove(&id),
                Step::Clear { owner } => live.retain(|id, _| id % 3 != owner),
            }
        }
        let book = read(&writer);
        for (n, chip) in book.chips.iter().enumerate() {
            for kind in 0..6u8 {
                let here = || live.values().filter(move |(chips, of, ..)| chips >> n & 1 == 1 && *of == kind);
                let counter = chip.counters[usize::from(kind)];
                assert_eq!(counter.bytes, here().map(|(.., bytes)| bytes).sum::<u64>());
                assert_eq!(counter.logical, here().map(|(_, _, logical, _)| logical).sum::<u64>());
                assert_eq!(counter.buffers, here().count() as u64);
            }
        }
        assert_eq!(book.tabled + book.untabled, live.len() as u64);
        let table = table(&writer);
        assert_eq!((table.buffers.len() as u64, table.unreadable), (book.tabled, 0));
        for buffer in &table.buffers {
            assert_eq!(live[&buffer.id], (buffer.chips.0, buffer.kind as u8, buffer.logical, buffer.bytes()));
        }
    }

    #[test]
    fn any_bytes_are_a_book_or_an_error(bytes: Vec<u8>) {
        assert!(book::read(book::of_bytes(&bytes)).is_err());
        assert!(book::whole(book::of_bytes(&bytes)).is_err());
    }

    #[test]
    fn a_changed_book_says_the_same_or_nothing(
        steps in steps(), changes in prop::collection::vec((0usize..140_000, any::<u8>()), 1..20),
    ) {
        let writer = after(&steps);
        let mut bytes = bytes(&writer);
        let (before, slots) = (read(&writer), table(&writer).buffers);
        for (at, value) in changes {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        let Ok(book) = book::read(book::of_bytes(&bytes)) else { return Ok(()) };
        if !book.is_of_one_moment {
            // It looks as if the writer had died before it closed its last event. The figures are right.
            assert_eq!(book.chips[..], before.chips[..book.chips.len()]);
            return Ok(());
        }
        assert_eq!(book, before);
        if let Ok(table) = book::table(book::of_bytes(&bytes), &book) {
            assert!(table.buffers.iter().all(|buffer| slots.contains(buffer)));
            assert!(table.buffers.len() as u64 + table.unreadable >= book.tabled, "what is broken is not taken for free");
        }
    }

    #[test]
    fn a_book_that_is_cut_off_is_an_error_or_whole(steps in steps(), length in 0usize..138_000) {
        let writer = after(&steps);
        let bytes = bytes(&writer);
        let cut = &bytes[..length.min(bytes.len())];
        match book::read(book::of_bytes(cut)) {
            Ok(book) => {
                assert_eq!(book, read(&writer));
                if let Ok(copied) = book::table(book::of_bytes(cut), &book) {
                    assert_eq!(copied.buffers.len() as u64 + copied.unreadable, book.tabled);
                }
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

#[test]
fn a_later_version_is_named() {
    let mut bytes = bytes(&Writer::create("").unwrap());
    bytes[8] = 9;
    assert!(matches!(book::read(book::of_bytes(&bytes)), Err(BookError::Version(9))));
    bytes[0] = b'X';
    assert!(matches!(book::read(book::of_bytes(&bytes)), Err(BookError::NotABook)));
}

#[test]
fn a_book_that_is_being_made_is_not_taken_for_something_else() {
    let bytes = bytes(&Writer::create("").unwrap());
    for unwritten in [vec![], vec![0; bytes.len()]] {
        assert!(matches!(book::read(book::of_bytes(&unwritten)), Err(BookError::NotYetWritten)));
    }
}
