//! Any bytes as a book, and as changes of a whole one: `cargo +nightly fuzz run book`.

#![no_main]

use ledger::book::activity::{
    self, monotonic, ActivitySource, DeviceRecord, Launch, RecordedActivity, RecordedOperation,
};
use ledger::book::{self, AllocatorBanks, Book, BookBuffer, Chips, MemoryKind, NewBuffer, Writer};
use libfuzzer_sys::fuzz_target;
use std::os::unix::fs::FileExt;
use std::sync::LazyLock;

struct Whole {
    bytes: Vec<u8>,
    book: Book,
    buffers: Vec<BookBuffer>,
    activity: RecordedActivity,
    operations: Vec<RecordedOperation>,
    now: u64,
}

/// Where the table of operations begins, after the journal.
const OPERATIONS: usize = 135_168 + 16 * 128 + 8192 * 8;

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
    let since = monotonic();
    writer.record_activity(since);
    writer.chip_opened(0, ActivitySource::Profiler, since);
    for n in 0..6u64 {
        let operation = writer.operation(format!("Operation{}", n % 3).as_bytes());
        writer.launched(Launch { operation, runtime_id: Some(n as u16) }, since + n);
        let (start, end) = (n * 100, n * 100 + 50);
        let record = DeviceRecord { chip: 0, runtime_id: n as u16, operation, start, end, cycles_per_ns: 1.0 };
        writer.records([record].into_iter(), n % 2, since + 1000 * n);
    }
    let now = since + 1_000_000;
    let activity = activity::activity(book::of_file(writer.file()), &book, now).unwrap().unwrap();
    let operations = activity::operations(book::of_file(writer.file()), &activity, now).unwrap();
    let mut bytes = vec![0; OPERATIONS + 4 * 512];
    writer.file().read_exact_at(&mut bytes, 0).unwrap();
    Whole { bytes, book, buffers, activity, operations, now }
});

fuzz_target!(|input: &[u8]| {
    if let Ok(book) = book::read(book::of_bytes(input)) {
        let _ = book::table(book::of_bytes(input), &book);
        if let Ok(Some(found)) = activity::activity(book::of_bytes(input), &book, 1 << 40) {
            let _ = activity::operations(book::of_bytes(input), &found, 1 << 40);
            found.chips.iter().for_each(|chip| _ = (chip.at(1 << 40), chip.utilization(1 << 40)));
        }
    }
    // Changes: two bytes of place, one of length and how, then what to put there.
    let whole = &*WHOLE;
    let mut bytes = whole.bytes.clone();
    let mut rest = input;
    while let [low, high, how, more @ ..] = rest {
        // What matters is at the beginning, in the table and among the operations.
        let place = usize::from(u16::from_le_bytes([*low, *high])) * 8;
        let place = match place {
            0..9000 => place,
            9000..100_000 => 135_168 + place % 2048,
            _ => OPERATIONS + place % 1984,
        } + usize::from(how >> 5);
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
    // Whatever became of the memory: activity is whole, or of a version before, or an error.
    if let Ok(Some(found)) = activity::activity(book::of_bytes(&bytes), &whole.book, whole.now) {
        assert!(found.launches.launches <= whole.activity.launches.launches);
        assert!(found.chips[0].records <= whole.activity.chips[0].records);
        if let Ok(operations) = activity::operations(book::of_bytes(&bytes), &found, whole.now) {
            let known = |name: &str| whole.operations.iter().any(|operation| operation.name == name);
            assert!(operations.iter().all(|operation| known(&operation.name)));
        }
        for chip in &found.chips {
            let ratio = chip.utilization(whole.now).map_or(0.0, |utilization| utilization.ratio);
            assert!((0.0..=1.0).contains(&ratio));
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
