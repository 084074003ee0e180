//! What a book contains once it has been copied, and whether its figures are possible.

use super::{AllocatorBanks, Chips, MemoryKind};
use std::io;

/// What a book contains, except for the table of buffers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Book {
    /// PID of the process in its own PID namespace.
    pub pid: u32,
    /// Start time of the process, in clock ticks since boot. Absent when it is unknown.
    pub start_ticks: Option<u64>,
    /// When the book was begun, ns since 1970.
    pub created: u64,
    /// When it was last written, ns since 1970.
    pub changed: u64,
    /// Name and version of the program that writes the book.
    pub producer: String,
    /// What the producer did not recognise.
    pub remark: Option<String>,
    /// Allocations, frees and the like since it was begun.
    pub events: u64,
    /// Live buffers in the table.
    pub tabled: u64,
    /// Live buffers for which the table had no room. The counters include them.
    pub untabled: u64,
    /// Frees of buffers that the book did not know.
    pub unknown_frees: u64,
    /// Whether the process has exited, or is exiting, by itself.
    pub is_closed: bool,
    /// Whether the table was full at least once.
    pub table_was_full: bool,
    /// Whether an event was lost because memory ran out.
    pub is_inexact: bool,
    /// Whether all figures are of one moment. Otherwise each figure is consistent only in itself: the process kept writing, or
    /// was killed during a write.
    pub is_of_one_moment: bool,
    /// The chips that the process has opened.
    pub chips: Vec<BookChip>,
    pub(super) slots: u32,
    /// Slots that there is room for, and after them entries of the journal.
    pub(super) capacity: u32,
    pub(super) journal: u32,
    /// The sums of the slots that are taken, added up.
    pub(super) table: u64,
}

/// What a process has on one chip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BookChip {
    /// Logical id of the chip in the process.
    pub device_id: u32,
    /// Unique id of the chip, if the process knows it.
    pub unique_id: Option<u64>,
    /// Bytes that were still allocated when the device was closed.
    pub left_bytes: u64,
    /// Addresses at which the allocator's DRAM and L1 begin in each bank, where they are known.
    pub bases: [Option<u64>; 2],
    /// Counters by [`MemoryKind`].
    pub counters: [Counter; 6],
    /// Bank figures by [`MemoryKind`], for kinds that have banks; absent until the allocator was asked.
    pub banks: [Option<BankReading>; 4],
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
    /// Allocations since the book was begun.
    pub allocations: u64,
    /// Frees since the book was begun.
    pub frees: u64,
    /// Buffers that were still there when the device was closed.
    pub left: u64,
}

/// What one bank of an allocator has now; all banks of a kind are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BankReading {
    /// How many there are.
    pub banks: u32,
    /// Bytes per bank that can be handed out at all.
    pub allocatable: u64,
    /// Bytes per bank that are handed out.
    pub allocated: u64,
    /// Bytes per bank that are left.
    pub free: u64,
    /// The largest block of them. Absent when something was allocated or freed since the allocator was asked, and it does not
    /// follow from the buffers.
    pub largest_free: Option<u64>,
    /// When the allocator was asked, ns since 1970.
    pub time: u64,
}

/// The live buffers of a process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BufferTable {
    /// The buffers, in no order.
    pub buffers: Vec<BookBuffer>,
    /// Whether buffers were allocated or freed during the copy. Each buffer is consistent in itself even so.
    pub moved: bool,
    /// Slots whose checksum was wrong at every read.
    pub unreadable: u64,
}

/// A live buffer in a book.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BookBuffer {
    /// Id of the buffer, unique in its process.
    pub id: u64,
    /// The chips that have the buffer, by their position in [`Book::chips`].
    pub chips: Chips,
    /// What the buffer is used for.
    pub kind: MemoryKind,
    /// Bytes asked for, per chip.
    pub logical: u64,
    /// Bytes reserved per bank.
    pub per_bank: u64,
    /// Number of banks.
    pub banks: u32,
    /// Address in each bank.
    pub address: u64,
    /// Bytes per page.
    pub page: u64,
    /// Layout, as the runtime numbers them.
    pub layout: u8,
    /// When the buffer was allocated, ns since 1970.
    pub time: u64,
    /// Thread that allocated it.
    pub thread: u32,
    /// Label for people.
    pub label: Option<Box<str>>,
}

/// Why a book cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BookError {
    /// The file cannot be read.
    #[error("cannot read it: {0}")]
    Io(#[from] io::Error),
    /// It does not begin with the magic number of a book.
    #[error("is not a book of ttmon")]
    NotABook,
    /// Its process has made the file, and not yet written to it.
    #[error("is not written yet")]
    NotYetWritten,
    /// A later version.
    #[error("has layout {0}, which this version of ttmon does not know: use the ttmon that came with its agent")]
    Version(u32),
    /// A record whose checksum is wrong at every read.
    #[error("the record at byte {0} is broken")]
    Broken(usize),
    /// A record that contradicts itself.
    #[error("the record at byte {0} is impossible: {1}")]
    Impossible(usize, &'static str),
}

impl Book {
    /// Takes the figures of the kinds that have banks from these buffers, unless there are others.
    pub(super) fn recount(&mut self, buffers: &[BookBuffer]) {
        if self.untabled > 0 {
            return;
        }
        for chip in &mut self.chips {
            for counter in chip.counters.iter_mut().zip(MemoryKind::ALL).filter(|(_, kind)| kind.has_banks()) {
                (counter.0.bytes, counter.0.logical, counter.0.buffers) = (0, 0, 0);
            }
        }
        for buffer in buffers.iter().filter(|buffer| buffer.kind.has_banks()) {
            for chip in buffer.chips.iter() {
                let Some(chip) = self.chips.get_mut(usize::from(chip)) else { continue };
                let counter = &mut chip.counters[buffer.kind as usize];
                counter.bytes = counter.bytes.saturating_add(buffer.bytes());
                counter.logical = counter.logical.saturating_add(buffer.logical);
                counter.buffers += 1;
                counter.peak = counter.peak.max(counter.bytes);
            }
        }
        for chip in &mut self.chips {
            for (bank, counter) in chip.banks.iter_mut().zip(&chip.counters) {
                let again = |bank: BankReading| {
                    let BankReading { banks, allocatable, allocated, free, time, .. } = bank;
                    let asked = AllocatorBanks { banks, allocatable, allocated, free, largest_free: 0 };
                    BankReading::of(asked, time, false, counter)
                };
                *bank = bank.map(again);
            }
        }
    }
}

impl Counter {
    /// Whether the figures can be of one process.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.frees > self.allocations {
            Err("more frees than allocations")
        } else if self.peak < self.bytes {
            Err("more bytes than the peak")
        } else if self.buffers == 0 && (self.bytes, self.logical) != (0, 0) {
            Err("bytes without a buffer")
        } else if self.left > self.frees {
            Err("more buffers lost than freed")
        } else {
            Ok(())
        }
    }
}

impl BookBuffer {
    /// Bytes reserved per chip.
    pub fn bytes(&self) -> u64 {
        self.per_bank.saturating_mul(u64::from(self.banks))
    }
}

impl BankReading {
    /// How much of the free space a single buffer cannot have: 0 when it is in one block. Absent when nothing is free, and when
    /// the largest block is not known.
    pub fn fragmentation(&self) -> Option<f64> {
        self.largest_free.filter(|_| self.free > 0).map(|largest| 1.0 - largest as f64 / self.free as f64)
    }

    /// What the allocator said, with what the counters say now.
    pub(super) fn of(asked: AllocatorBanks, time: u64, is_current: bool, counter: &Counter) -> BankReading {
        let AllocatorBanks { banks, allocatable, mut allocated, mut free, largest_free } = asked;
        let per_bank = counter.bytes.checked_div(u64::from(banks)).unwrap_or(0);
        if !is_current && counter.bytes % u64::from(banks) == 0 && per_bank <= allocatable {
            (allocated, free) = (per_bank, allocatable - per_bank);
        }
        // Where there is nothing, all is one block.
        let alone = || (allocated == 0 && counter.bytes == 0).then_some(free);
        let largest_free = if is_current { Some(largest_free) } else { alone() };
        BankReading { banks, allocatable, allocated, free, largest_free, time }
    }
}

impl AllocatorBanks {
    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.banks == 0 {
            Err("no banks")
        } else if self.largest_free > self.free {
            Err("a free block larger than all that is free")
        } else if self.allocated.checked_add(self.free).is_none_or(|sum| sum > self.allocatable) {
            Err("more than there is")
        } else {
            Ok(())
        }
    }
}
