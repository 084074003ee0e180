//! The book that a process keeps of its device memory: exact counters, the allocator's figures per bank, and every live buffer.
//!
//! The process writes it through a [`Writer`], under a lock of its own, in tens of nanoseconds. Whoever may inspect the
//! process copies it with [`read`] and [`table`], without a lock and without the writer's help.
//!
//! In reading order: `layout` has every byte, `contents` what a copy has, `reader` copies, `free_blocks` derives the largest free
//! block from the buffers, `writer` writes.

pub mod activity;
mod contents;
mod free_blocks;
mod layout;
mod reader;
mod writer;

pub use contents::{BankReading, Book, BookBuffer, BookChip, BookError, BufferTable, Counter};
pub use layout::{CHIPS, LABEL};
pub use model::MemoryKind;
pub use reader::{each_buffer, of_bytes, of_file, read, read_with_banks, table, whole};
pub use writer::Writer;

/// Some of the chips of one book, bit n for chip n.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Chips(pub u64);

impl Chips {
    /// One chip.
    pub fn one(chip: u8) -> Chips {
        Chips(1u64.checked_shl(u32::from(chip)).unwrap_or(0))
    }

    /// Their numbers, ascending.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let next = (left != 0).then(|| left.trailing_zeros() as u8);
            left &= left.wrapping_sub(1);
            next
        })
    }
}

impl std::ops::BitOr for Chips {
    type Output = Chips;

    fn bitor(self, other: Chips) -> Chips {
        Chips(self.0 | other.0)
    }
}

/// A buffer as its owner reports it. It is the same on all of its chips.
#[derive(Debug, Clone, Copy)]
pub struct NewBuffer<'a> {
    /// Id of the buffer, unique in this process.
    pub id: u64,
    /// Where it is.
    pub chips: Chips,
    /// What the buffer is used for.
    pub kind: MemoryKind,
    /// Bytes asked for, per chip.
    pub logical: u64,
    /// Bytes reserved in each bank.
    pub per_bank: u64,
    /// Banks in which they are reserved.
    pub banks: u32,
    /// Address in each bank.
    pub address: u64,
    /// Bytes per page.
    pub page: u64,
    /// As the runtime numbers its layouts.
    pub layout: u8,
    /// What it goes away with, for [`Writer::clear`]: any number that names the device object in this process.
    pub owner: u64,
    /// Label for people, up to [`LABEL`] bytes of UTF-8.
    pub label: &'a [u8],
}

/// What an allocator reports of one bank; all banks of a kind are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AllocatorBanks {
    /// How many there are.
    pub banks: u32,
    /// Bytes per bank that can be handed out at all.
    pub allocatable: u64,
    /// Bytes per bank that are handed out.
    pub allocated: u64,
    /// Bytes per bank that are left.
    pub free: u64,
    /// The largest piece of them.
    pub largest_free: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chips_are_listed_in_order() {
        assert_eq!((Chips::one(63) | Chips::one(0) | Chips::one(5)).iter().collect::<Vec<_>>(), [0, 5, 63]);
        assert_eq!(Chips::one(64).iter().count(), 0);
    }
}
