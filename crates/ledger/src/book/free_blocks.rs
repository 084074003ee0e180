//! The largest free block of a bank, from the buffers that are in it.
//!
//! All banks of a kind are alike: a buffer has the same address and length in each. What lies between two buffers is a free block.

use super::contents::Book;
use super::{Chips, MemoryKind};

/// Where a buffer is in each bank.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub address: u64,
    pub length: u64,
    pub chips: Chips,
    pub banks: u32,
}

/// The kinds that have banks.
pub(super) const BANKED: usize = 4;

impl Book {
    /// Whether a bank has changed since its allocator was asked: then the buffers have to say what is free.
    pub(super) fn needs_spans(&self) -> [bool; BANKED] {
        let is_open =
            |kind: usize| self.chips.iter().filter_map(|chip| chip.banks[kind]).any(|bank| bank.largest_free.is_none());
        std::array::from_fn(|kind| self.untabled == 0 && is_open(kind))
    }

    /// Fills in the largest free blocks that are not known, from all buffers of the same moment.
    pub(super) fn fill_in_blocks(&mut self, mut spans: [Vec<Span>; BANKED]) {
        for (kind, needed) in self.needs_spans().into_iter().enumerate().filter(|(_, needed)| *needed) {
            debug_assert!(needed);
            let spans = &mut spans[kind];
            spans.sort_unstable_by_key(|span| span.address);
            for at in 0..self.chips.len() {
                let found = self.largest_block(at, kind, spans);
                if let Some(bank) = self.chips[at].banks[kind].as_mut().filter(|bank| bank.largest_free.is_none()) {
                    bank.largest_free = found;
                }
            }
        }
    }

    /// Absent when the buffers contradict the counters or each other: another allocator has put them there.
    fn largest_block(&self, at: usize, kind: usize, spans: &[Span]) -> Option<u64> {
        let chip = self.chips.get(at)?;
        let bank = chip.banks[kind]?;
        let begin = self.begin(at, kind)?;
        let end = begin.checked_add(bank.allocatable)?;
        let here = Chips::one(at as u8).0;
        let (mut next, mut largest, mut free) = (begin, 0, 0u64);
        for span in spans.iter().filter(|span| span.chips.0 & here != 0 && span.length > 0) {
            let block = span.address.checked_sub(next).filter(|_| span.banks == bank.banks)?;
            (largest, free) = (block.max(largest), free.checked_add(block)?);
            next = span.address.checked_add(span.length)?;
        }
        let block = end.checked_sub(next)?;
        (largest.max(block) <= bank.free && free.checked_add(block)? == bank.free).then_some(largest.max(block))
    }

    /// Where the banks of a kind begin. Traces follow DRAM, and the small region follows L1.
    fn begin(&self, at: usize, kind: usize) -> Option<u64> {
        let chip = self.chips.get(at)?;
        let [dram, l1] = chip.bases;
        let after = |base: Option<u64>, kind: MemoryKind| base?.checked_add(chip.banks[kind as usize]?.allocatable);
        match kind {
            kind if kind == MemoryKind::Dram as usize => dram,
            kind if kind == MemoryKind::L1 as usize => l1,
            kind if kind == MemoryKind::L1Small as usize => after(l1, MemoryKind::L1),
            kind if kind == MemoryKind::Trace as usize => after(dram, MemoryKind::Dram),
            _ => None,
        }
    }
}
