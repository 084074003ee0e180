//! What the writer keeps in its own memory. It never reads its own book, which others might have changed.

use crate::book::layout::{CHIPS, NO_SLOT, SEVERAL_SLOTS};
use crate::book::{Chips, MemoryKind};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

/// What the writer keeps of its book.
#[derive(Debug)]
pub(super) struct WriterState {
    pub buffers: HashMap<u64, TrackedBuffer, Spread>,
    /// Slots that are free again.
    pub free: Vec<u32>,
    /// Slots that have memory behind them.
    pub granted: u32,
    /// The most slots there can be.
    pub capacity: u32,
    pub chips: Box<[ChipState; CHIPS]>,
    pub in_use: u32,
    /// The sum of the remark.
    pub remark: u64,
    pub now: HeadRecord,
    /// The slot that this event has changed.
    pub touched: u32,
}

/// What has to be known of a buffer to free it.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrackedBuffer {
    pub chips: Chips,
    pub bytes: u64,
    pub logical: u64,
    pub owner: u64,
    pub slot: Option<u32>,
    pub kind: MemoryKind,
    /// Checksum of its slot.
    pub sum: u64,
}

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct HeadRecord {
    pub events: u64,
    pub slots: u32,
    pub tabled: u32,
    pub untabled: u32,
    pub flags: u32,
    pub unknown_frees: u32,
    /// The sums of all records that are not in the table, added up.
    pub total: u64,
    /// The sums of the slots that are taken, added up.
    pub table: u64,
}

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct ChipState {
    pub device_id: u32,
    pub unique_id: Option<u64>,
    pub left_bytes: u64,
    /// Where DRAM and L1 begin, zero when that is not known.
    pub bases: [u32; 2],
    pub version: u64,
    /// Checksum of the identity.
    pub sum: u64,
    pub counters: [CounterState; 6],
    pub banks: [BanksState; 4],
}

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct BanksState {
    pub version: u32,
    pub sum: u64,
}

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct CounterState {
    pub bytes: u64,
    pub logical: u64,
    pub peak: u64,
    pub allocations: u64,
    pub frees: u64,
    pub left: u64,
    pub version: u64,
    pub sum: u64,
}

impl HeadRecord {
    #[inline]
    pub fn changed_by(&mut self, change: u64) {
        self.total = self.total.wrapping_add(change);
    }
}

impl WriterState {
    /// The given chips that the book has.
    pub fn registered(&self, chips: Chips) -> Chips {
        Chips(chips.0 & 1u64.checked_shl(self.in_use).map_or(u64::MAX, |beyond| beyond - 1))
    }

    /// Notes for the journal that a slot has changed.
    #[inline]
    pub fn touch(&mut self, slot: u32) {
        self.touched = if matches!(self.touched, NO_SLOT) { slot } else { SEVERAL_SLOTS };
    }

    #[inline]
    pub fn counter(&mut self, chip: u8, kind: MemoryKind) -> Option<&mut CounterState> {
        self.chips.get_mut(usize::from(chip))?.counters.get_mut(kind as usize)
    }
}

/// Spreads ids, which are counted up or are addresses. They are not chosen from outside.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spread;

impl BuildHasher for Spread {
    type Hasher = Spreading;

    fn build_hasher(&self) -> Spreading {
        Spreading(0)
    }
}

pub(super) struct Spreading(u64);

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
