//! The book, byte by byte. This is the one place that says where what is.
//!
//! A book is a memfd named `ttmon-book`, little-endian, made of *records*. A record is a row of 64-bit words whose last word
//! is the record's sum ([`sum`]) over the others and over its place in the file. The writer stores the words in no
//! particular order, and the sum with them; a reader takes a record only when its sum is right, and otherwise looks again.
//! So neither side waits for the other, an incomplete record is noticed, and so is a broken one.
//!
//! A *pair* is a record of 64 bytes that has two places, one after the other. The writer counts its versions and writes
//! number n to place n mod 2, from number 0 on, which is all zero; a reader takes the later one. So one is always whole, even
//! when the writer was stopped or killed in the middle of the other, and the earlier one counts only when an event was
//! under way.
//!
//! ```text
//! offset    length  what
//! 0         64      who: a record, written once
//!             0       magic, the eight bytes TTMONBK1
//!             8       u32 version (1), u32 room for chips (64)
//!             16      u32 pid as the process calls itself, u32 room for entries of the journal, zero where there is none
//!             24      start of the process in clock ticks since boot; 0 when it could not be learnt
//!             32      when the book was begun, ns since 1970
//!             40      where the table begins (135168)
//!             48      u32 room for slots, u32 length of a slot (128)
//!             56      sum
//! 64        128     now: a pair, written at the end of every event
//!             0       events since the book was begun: allocations, frees, and whatever else changes it; the pair's version
//!             8       u32 chips in use, u32 slots that were ever in use
//!             16      u32 live buffers with a slot in the table, u32 live buffers without one, because there was no room:
//!                     the counters know of them
//!             24      u32 flags: 1 the process has ended cleanly, 2 the table was full at least once,
//!                     4 an event was lost: the counters are no longer exact; u32 frees of buffers that the book did not know
//!             32      the sums of who, of the texts and of the chips' records, the later places, added up: whoever finds another
//!                     total has records of several moments
//!             40      the same of the slots that are taken
//!             48      time of the last event, ns since 1970
//!             56      sum
//! 192       16      begun: written at the start of every event
//!             0       the number that events will have at its end. Who finds it equal to events, before and after, has a
//!                     copy of one moment
//!             8       sum
//! 256       256     producer: 248 bytes of UTF-8, padded with zeros, and the sum
//! 512       256     remark, in the same form: what the producer did not recognise
//! 768       640     activity: see its own layout (`activity/layout.rs`); zero in books without it
//! 4096      2048    chip 0; then chip 1 and so on
//!             0       128    identity: a pair
//!                       0      unique id of the chip, as in the names of tt-metal's regions
//!                       8      u32 logical device id, u32 flags: 1 in use, 2 the number above is known
//!                       16     bytes that were still allocated when the device was closed, since the book was begun
//!                       24     u32 address at which the allocator's DRAM begins in each bank, u32 the same of L1; zero
//!                              when they are not known
//!                       32…40  zero
//!                       48     version
//!                       56     sum
//!             128     6×128  counters of DRAM, L1, L1_SMALL, TRACE, CB, KERNEL: pairs
//!                       0      bytes reserved: length per bank × banks
//!                       8      bytes asked for
//!                       16     the most bytes reserved at any time
//!                       24     allocations
//!                       32     frees; allocations − frees are the live buffers
//!                       40     buffers still there when the device was closed; they count as freed
//!                       48     version
//!                       56     sum
//!             896     4×128  what the allocator says of one bank of DRAM, L1, L1_SMALL, TRACE: pairs
//!                       0      u32 banks, zero until it was asked; u32 version
//!                       8      allocatable bytes per bank
//!                       16     allocated
//!                       24     free
//!                       32     largest free block
//!                       40     when it was asked, ns since 1970
//!                       48     allocations + frees of the kind at that time
//!                       56     sum
//!             1408    384    activity of the chip; zero in books without it
//!             1792    256    zero
//! 135168    128     slot 0 of the table of live buffers: a record; then slot 1 and so on. Free when id and sum are zero
//!             0       id
//!             8       the chips that have it, bit n for chip n
//!             16      bytes asked for, per chip
//!             24      bytes reserved per bank
//!             32      address in each bank
//!             40      bytes per page
//!             48      when it was allocated, ns since 1970
//!             56      u32 thread, u16 banks, u8 kind, u8 layout as the runtime numbers it
//!             64      56 bytes of UTF-8, padded with zeros: label
//!             120     sum
//! after the room for slots     the journal: an entry of 8 bytes for each of the latest events, number n at place n mod room
//!             0       u32 the lower half of n
//!             4       u32 the slot that the event changed, 0xfffffffe for none, 0xffffffff for several
//! after the journal            activity: operations and single records
//! ```
//!
//! The journal gives a reader the table of one moment, however long it takes to copy: of the events that came meanwhile it
//! copies the slots again, until none has come.

/// The first eight bytes.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"TTMONBK1");
pub(super) const VERSION: u32 = 1;

/// The most chips that a book has room for.
pub const CHIPS: usize = 64;

pub(super) const LINE: usize = 64;
pub(super) const PAIR: usize = 2 * LINE;
/// Words of a line, the sum included.
pub(super) const WORDS: usize = LINE / 8;

pub(super) const WHO: usize = 0;
pub(super) const NOW: usize = 64;
pub(super) const BEGUN: usize = 192;
pub(super) const PRODUCER: usize = 256;
pub(super) const REMARK: usize = 512;
pub(super) const TEXT_WORDS: usize = 32;
pub(super) const FIRST_CHIP: usize = 4096;
pub(super) const CHIP: usize = 2048;
pub(super) const TABLE: usize = FIRST_CHIP + CHIPS * CHIP;
pub(super) const SLOT: usize = 128;
pub(super) const SLOT_WORDS: usize = SLOT / 8;
/// The most slots: a million buffers, 128 MiB. Only the part in use has memory behind it.
pub(super) const SLOTS: u32 = 1 << 20;
/// Entries of the journal.
pub(super) const JOURNAL: u32 = 8192;
pub(super) const NO_SLOT: u32 = u32::MAX - 1;
pub(super) const SEVERAL_SLOTS: u32 = u32::MAX;
/// The longest label.
pub const LABEL: usize = 56;

/// Flags of `now`.
pub(super) const CLOSED: u32 = 1;
pub(super) const TABLE_WAS_FULL: u32 = 2;
pub(super) const INEXACT: u32 = 4;
/// Flags of a chip's identity.
pub(super) const IN_USE: u32 = 1;
pub(super) const HAS_UNIQUE_ID: u32 = 2;

pub(super) fn identity_at(chip: usize) -> usize {
    FIRST_CHIP + chip * CHIP
}

pub(super) fn counter_at(chip: usize, kind: usize) -> usize {
    identity_at(chip) + PAIR + kind * PAIR
}

pub(super) fn banks_at(chip: usize, kind: usize) -> usize {
    identity_at(chip) + 7 * PAIR + kind * PAIR
}

pub(super) fn slot_at(slot: usize) -> usize {
    TABLE + slot * SLOT
}

/// The place of an event in the journal of a book with so much room for slots, and for entries.
pub(super) fn entry_at(capacity: u32, entries: u32, event: u64) -> usize {
    slot_at(capacity as usize) + (event % u64::from(entries.max(1))) as usize * 8
}

/// The sum of a record of up to 31 words at an offset: each word mixed with a large odd number of its own, and so is the offset.
/// Never zero, which is the sum of a free slot. A single changed word always changes it. One product would not do: it keeps
/// of the highest bit the highest bit alone, so that those of two words, both changed, would cancel out.
#[inline]
pub(super) fn sum(words: &[u64], offset: usize) -> u64 {
    let start = (offset as u64).wrapping_mul(FACTORS[31]).wrapping_add(FACTORS[30]);
    let mixed = |(word, factor): (&u64, &u64)| word.wrapping_mul(*factor).swap_bytes().wrapping_mul(*factor);
    words.iter().zip(&FACTORS).map(mixed).fold(start, u64::wrapping_add).max(1)
}

/// Large odd numbers, by splitmix64.
const FACTORS: [u64; 32] = {
    let mut factors = [0; 32];
    let mut state: u64 = MAGIC;
    let mut i = 0;
    while i < 32 {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        factors[i] = (z ^ (z >> 31)) | 1;
        i += 1;
    }
    factors
};

/// The place of a pair's version.
pub(super) fn place(pair: usize, version: u64) -> usize {
    pair + (version & 1) as usize * LINE
}

/// Two halves of a word, the lower first.
pub(super) fn pack(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

pub(super) fn unpack(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

/// As much of a text as fits, cut between characters, as words padded with zeros.
pub(super) fn text_words<const N: usize>(text: &[u8]) -> [u64; N] {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(cut(text, N * 8).chunks(8)) {
        let mut padded = [0; 8];
        for (to, from) in padded.iter_mut().zip(bytes) {
            *to = *from;
        }
        *word = u64::from_le_bytes(padded);
    }
    words
}

/// The longest start of a text that fits and does not end within a character.
fn cut(text: &[u8], length: usize) -> &[u8] {
    let continues = |at: usize| text.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    let end =
        if text.len() <= length { text.len() } else { (0..=length).rev().find(|&at| !continues(at)).unwrap_or(0) };
    text.get(..end).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_lie_one_after_another() {
        assert_eq!((NOW, BEGUN), (WHO + LINE, NOW + PAIR));
        assert_eq!((REMARK, FIRST_CHIP), (PRODUCER + TEXT_WORDS * 8, 4096));
        assert_eq!((identity_at(1), TABLE), (6144, 135_168));
        assert_eq!((counter_at(0, 0), banks_at(0, 0)), (4096 + 128, 4096 + 896));
        assert_eq!(banks_at(0, 0), counter_at(0, 5) + PAIR);
        assert!(banks_at(0, 3) + PAIR <= identity_at(1));
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut(b"kv-cache", 56), b"kv-cache");
        assert_eq!(cut("aé".as_bytes(), 2), b"a");
        assert_eq!(cut("é".as_bytes(), 1), b"");
        assert_eq!(text_words::<1>(b"abc"), [u64::from_le_bytes(*b"abc\0\0\0\0\0")]);
    }

    proptest::proptest! {
        #[test]
        fn one_changed_word_changes_the_sum(mut words: [u64; 7], at in 0usize..7, other: u64) {
            let before = sum(&words, 64);
            proptest::prop_assume!(words[at] != other);
            words[at] = other;
            assert_ne!(sum(&words, 64), before);
        }

        #[test]
        fn the_same_bit_of_two_words_changes_the_sum(mut words: [u64; 7], a in 0usize..7, b in 0usize..7, bit in 0u32..64) {
            proptest::prop_assume!(a != b);
            let before = sum(&words, 64);
            words[a] ^= 1 << bit;
            assert_ne!(sum(&words, 64), before ^ 1 << bit);
            words[b] ^= 1 << bit;
            assert_ne!(sum(&words, 64), before);
        }

        #[test]
        fn words_of_zero_add_nothing_to_the_sum(words: [u64; 8], zeros in 0usize..8) {
            let mut longer = words.to_vec();
            longer.resize(8 + zeros, 0);
            assert_eq!(sum(&longer, 64), sum(&words, 64));
        }

        #[test]
        fn a_record_in_another_place_has_another_sum(words: [u64; 7], a in 0usize..1 << 30, b in 0usize..1 << 30) {
            proptest::prop_assume!(a != b);
            assert_ne!(sum(&words, a), sum(&words, b));
        }
    }
}
