//! Any bytes as a book, and as changes of a whole one: `cargo +nightly fuzz run book`.

#![no_main]

use ledger::book::{self, AllocatorBanks, Book, BookBuffer, Chips, MemoryKind, NewBuffer, Writer};
use libfuzzer_sys::fuzz_target;
use std::os::unix::fs::FileExt;
use std::sync::LazyLock;

struct Whole {
    bytes: Vec<u8>,
    book: Book,
    buffers: Vec<BookBuffer>,
}

/// Two chips and some buffers, some of which are gone.
static WHOLE: LazyLock<Whole> = LazyLock::new(|| {
    let writer = Writer::with_room("fuzz", 16).unwrap();
    let chips = (0..2).map(|id| Chips::one(writer.chip(id, Some(500)).unwrap())).fold(Chips(0), |all, one| all | one);
    for id in 1..=12 {
        let kind = MemoryKind::ALL[id as usize % 4];
        let (logical, per_bank) = (id << 30, id << 26);
        writer.allocate(&NewBuffer {
            id,
            chips,
            kind,
            logical,
            per_bank,
            banks: 12,
            address: id << 20,
            page: 2048,
            layout: 0,
            owner: id % 3,
            label: b"kv-cache",
        });
    }
    writer.clear(2, chips);
    writer.banks(
        0,
        MemoryKind::Dram,
        AllocatorBanks { banks: 12, allocatable: 3 << 30, allocated: 1 << 30, free: 2 << 30, largest_free: 1 << 30 },
    );
    writer.free(3);
    let book = book::read(book::of_file(writer.file())).unwrap();
    let buffers = book::table(book::of_file(writer.file()), &book).unwrap().buffers;
    let mut bytes = vec![0; 135_168 + 16 * 128];
    writer.file().read_exact_at(&mut bytes, 0).unwrap();
    Whole { bytes, book, buffers }
});

fuzz_target!(|input: &[u8]| {
    if let Ok(book) = book::read(book::of_bytes(input)) {
        let _ = book::table(book::of_bytes(input), &book);
    }
    // Changes: two bytes of place, one of length and how, then what to put there.
    let whole = &*WHOLE;
    let mut bytes = whole.bytes.clone();
    let mut rest = input;
    while let [low, high, how, more @ ..] = rest {
        // What matters is at the beginning and in the table.
        let place = usize::from(u16::from_le_bytes([*low, *high])) * 8;
        let place = (if place < 9000 { place } else { 135_168 + place % 2048 }) + usize::from(how >> 5);
        let length = usize::from(how & 31).min(more.len());
        let (new, more) = more.split_at(length);
        rest = more;
        match how {
            // A line or a slot from elsewhere in the book.
            0x20..0x28 => bytes.copy_within(place / 64 * 64..place / 64 * 64 + 64, usize::from(*how & 7) * 64 + 4096),
            0x28..0x30 => {
                bytes.copy_within(4096 + usize::from(*how & 7) * 64..4160 + usize::from(*how & 7) * 64, place / 64 * 64)
            }
            0x40..0x48 => bytes[place & !63..].iter_mut().take(usize::from(*how & 7) * 64).for_each(|byte| *byte = 0),
            _ => bytes[place..].iter_mut().zip(new).for_each(|(byte, new)| *byte ^= new),
        }
    }
    let Ok(book) = book::read(book::of_bytes(&bytes)) else { return };
    if !book.is_of_one_moment {
        assert_eq!(book.chips[..], whole.book.chips[..book.chips.len()]);
        assert!(whole.book.events - book.events <= 1);
        return;
    }
    assert_eq!(book, whole.book);
    if let Ok(table) = book::table(book::of_bytes(&bytes), &book) {
        assert!(table.buffers.iter().all(|buffer| whole.buffers.contains(buffer)));
        assert_eq!(table.buffers.len() + table.unreadable as usize, whole.buffers.len());
    }
});
