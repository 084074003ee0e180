//! The records of a book as words, and whether they are whole.

use crate::book::layout::{LINE, SLOT_WORDS, WORDS, sum, unpack};
use crate::book::{Book, BookBuffer};
use crate::book::{Chips, MemoryKind};

/// The state of the two places of a pair.
pub(super) enum Pair {
    Whole([u64; WORDS]),
    /// The other place is being written, or broken.
    Half([u64; WORDS]),
    Broken,
}

impl Pair {
    pub fn of(both: &[u64; 2 * WORDS], at: usize, version: impl Fn(&[u64; WORDS]) -> u64) -> Pair {
        let mut places = [[0; WORDS]; 2];
        both.chunks_exact(WORDS).zip(&mut places).for_each(|(from, to)| to.copy_from_slice(from));
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

/// What a slot of the table has.
pub(super) enum SlotContent {
    Free,
    /// With the sum of its slot.
    Taken(BookBuffer, u64),
    Torn,
}

pub(super) fn entry(record: &[u64; SLOT_WORDS], at: usize, book: &Book) -> SlotContent {
    if record[0] == 0 && record[SLOT_WORDS - 1] == 0 {
        return SlotContent::Free;
    }
    let (thread, small) = unpack(record[7]);
    let kind = MemoryKind::from_number((small >> 16) as u8);
    let chips = Chips(record[1]);
    let all_known = chips.iter().all(|chip| usize::from(chip) < book.chips.len());
    match kind {
        Some(kind) if is_whole(record, at) && chips.0 != 0 && all_known => {
            let buffer = BookBuffer {
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
            SlotContent::Taken(buffer, record[SLOT_WORDS - 1])
        }
        _ => SlotContent::Torn,
    }
}

pub(in crate::book) fn is_whole(record: &[u64], at: usize) -> bool {
    record.split_last().is_some_and(|(last, words)| *last == sum(words, at))
}

/// Bytes as words. What is missing is zero.
pub(in crate::book) fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut words = [0; N];
    words.iter_mut().zip(each_word(bytes)).for_each(|(to, word)| *to = word);
    words
}

/// Words of eight bytes, little-endian. A rest of fewer bytes is left out.
pub(in crate::book) fn each_word(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).filter_map(|word| Some(u64::from_le_bytes(*word.first_chunk()?)))
}

pub(super) fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8).map(|bytes| words::<1>(bytes)[0])
}

/// The text before the first zero. Bytes that are not UTF-8 are replaced.
pub(in crate::book) fn text(words: &[u64]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
