//! Puts records into the book, each with its checksum.

use super::Writer;
use super::state::{BanksState, ChipState, CounterState, WriterState};
use super::system::this_thread;
use crate::book::layout::{
    HAS_UNIQUE_ID, IN_USE, LABEL, REMARK, SLOT_WORDS, TEXT_WORDS, WORDS, banks_at, counter_at, identity_at, pack,
    place, slot_at, sum, text_words,
};
use crate::book::{Chips, MemoryKind, NewBuffer};

impl Writer {
    /// Writes a slot and returns its sum.
    pub(super) fn put_slot(&self, slot: u32, new: &NewBuffer, chips: Chips, time: u64) -> u64 {
        let at = slot_at(slot as usize);
        let mut words = [0; SLOT_WORDS];
        let small = new.banks | u32::from(new.kind as u8) << 16 | u32::from(new.layout) << 24;
        let facts = [
            new.id,
            chips.0,
            new.logical,
            new.per_bank,
            new.address,
            new.page,
            time,
            pack(this_thread(self.pid), small),
        ];
        words[..8].copy_from_slice(&facts);
        // Words that are zero add nothing to the sum.
        words[15] = if new.label.is_empty() {
            sum(&facts, at)
        } else {
            words[8..15].copy_from_slice(&text_words::<{ LABEL / 8 }>(new.label));
            sum(&words[..15], at)
        };
        self.map.store_words(at, &words);
        words[15]
    }

    /// Writes the next version of a chip's record and returns by how much its sum has changed; `put_counter` and `put_banks` do the same.
    pub(super) fn put_identity(&self, chip: usize, state: &mut ChipState) -> u64 {
        state.version += 1;
        let flags = IN_USE | if state.unique_id.is_some() { HAS_UNIQUE_ID } else { 0 };
        let number = state.unique_id.unwrap_or(0);
        let [dram, l1] = state.bases;
        let line = [number, pack(state.device_id, flags), state.left_bytes, pack(dram, l1), 0, 0, state.version];
        let before = state.sum;
        state.sum = self.put(place(identity_at(chip), state.version), line);
        state.sum.wrapping_sub(before)
    }

    #[inline]
    pub(super) fn put_counter(&self, chip: usize, kind: MemoryKind, counter: &mut CounterState) -> u64 {
        counter.version += 1;
        let CounterState { bytes, logical, peak, allocations, frees, left, version, sum } = *counter;
        let line = [bytes, logical, peak, allocations, frees, left, version];
        counter.sum = self.put(place(counter_at(chip, kind as usize), version), line);
        counter.sum.wrapping_sub(sum)
    }

    pub(super) fn put_banks(
        &self,
        chip: usize,
        kind: MemoryKind,
        state: &mut BanksState,
        mut line: [u64; WORDS - 1],
    ) -> u64 {
        let BanksState { version, sum } = *state;
        let version = version.wrapping_add(1);
        line[0] |= pack(0, version);
        let at = place(banks_at(chip, kind as usize), u64::from(version));
        *state = BanksState { version, sum: self.put(at, line) };
        state.sum.wrapping_sub(sum)
    }

    pub(super) fn put_remark(&self, state: &mut WriterState, text: &str) {
        let before = state.remark;
        state.remark = self.put_text(REMARK, text);
        state.now.changed_by(state.remark.wrapping_sub(before));
    }

    /// Writes a text and returns its sum.
    pub(super) fn put_text(&self, offset: usize, text: &str) -> u64 {
        let mut words = [0; TEXT_WORDS];
        words[..TEXT_WORDS - 1].copy_from_slice(&text_words::<{ TEXT_WORDS - 1 }>(text.as_bytes()));
        words[TEXT_WORDS - 1] = sum(&words[..TEXT_WORDS - 1], offset);
        self.map.store_words(offset, &words);
        words[TEXT_WORDS - 1]
    }

    /// Writes a line and returns its sum.
    #[inline]
    pub(in crate::book) fn put(&self, offset: usize, words: [u64; WORDS - 1]) -> u64 {
        let [a, b, c, d, e, f, g] = words;
        let sum = sum(&words, offset);
        self.map.store_words(offset, &[a, b, c, d, e, f, g, sum]);
        sum
    }
}
