//! Reads a telemetry table through a chip's memory, word by word.
//!
//! The table is foreign: its pointers, counts and offsets are checked before they are used. What cannot change while the firmware
//! runs (versions, serial numbers, limits) is read once and kept, as is the list of entries, until the firmware starts again.

use crate::problem::Problem;
use crate::table::MAX_ENTRIES;
use model::{Arch, DeepUnavailable, TelemetryTag};
use std::ops::Range;
use std::time::Duration;

/// The most words that one deep read takes from a chip.
pub const MOST_READS: u32 = 150;

/// Memory of the ARC processor that a table can be in, by its own addresses.
pub const CSM: Range<u64> = 0x1000_0000..0x1008_0000;

/// What a chip answers with when it does not answer.
const ALL_ONES: u32 = u32::MAX;
/// Words that are read once more at the end.
const LAST_READS: u32 = 2;
/// The tag that counts up while the firmware runs.
const HEARTBEAT: u16 = 32;

/// A chip's memory, by addresses of its ARC processor.
pub trait Memory {
    /// Reads an aligned word of [`CSM`], or of the registers with the table's address.
    fn read32(&mut self, address: u64) -> Result<u32, Problem>;
}

/// The registers with the addresses of the table and of its values.
pub const fn registers(arch: Arch) -> (u64, u64) {
    match arch {
        Arch::Wormhole => (0x8003_01d0, 0x8003_01d4),
        Arch::Blackhole => (0x8003_0434, 0x8003_0430),
    }
}

/// What a walk found besides the entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walked {
    /// Version of the table's form.
    pub version: u32,
    /// Words read.
    pub reads: u32,
    /// Entries that are left for the next walk, since this one has read enough.
    pub pending: u32,
}

/// What is known of a table while its firmware runs.
pub struct Known {
    head: Head,
    entries: [Entry; MAX_ENTRIES as usize],
    /// How many of them are read.
    count: usize,
    heartbeat: Option<Heartbeat>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Head {
    table: u32,
    data: u32,
    version: u32,
    count: u32,
}

#[derive(Clone, Copy, Default)]
struct Entry {
    /// 0: the slot is not used, or repeats an earlier tag.
    tag: u16,
    offset: u16,
    value: Option<u32>,
}

#[derive(Clone, Copy)]
struct Heartbeat {
    index: usize,
    value: u32,
    at: Duration,
}

impl Default for Known {
    fn default() -> Known {
        Known { head: Head::default(), entries: [Entry::default(); MAX_ENTRIES as usize], count: 0, heartbeat: None }
    }
}

impl Known {
    /// Nothing is known any more.
    pub fn forget(&mut self) {
        (self.count, self.heartbeat) = (0, None);
    }
}

/// Reads the table into `entries`, in its order. `now` is any clock that does not go back.
pub fn walk(
    memory: &mut impl Memory,
    arch: Arch,
    known: &mut Known,
    now: Duration,
    entries: &mut Vec<TelemetryTag>,
) -> Result<Walked, Problem> {
    entries.clear();
    let walked = Walk { memory, left: MOST_READS }.table(arch, known, now);
    if walked.is_ok() {
        collect(known, entries);
    }
    // Without a heartbeat, a restart of the firmware would not be seen.
    if walked.is_err() || known.heartbeat.is_none() {
        known.forget();
    }
    walked
}

/// Hands the values over, and keeps those that stay as they are.
fn collect(known: &mut Known, entries: &mut Vec<TelemetryTag>) {
    for entry in &mut known.entries[..known.count] {
        let Some(value) = entry.value else { continue };
        entries.push(TelemetryTag { tag: entry.tag, value });
        // Zero may mean that the firmware does not know it yet.
        if !is_static(entry.tag) || value == 0 || value == ALL_ONES {
            entry.value = None;
        }
    }
}

struct Walk<'a, M> {
    memory: &'a mut M,
    left: u32,
}

impl<M: Memory> Walk<'_, M> {
    fn table(&mut self, arch: Arch, known: &mut Known, now: Duration) -> Result<Walked, Problem> {
        let (table, data) = registers(arch);
        let (table, data) = (self.pointer(table)?, self.pointer(data)?);
        let (version, count) = self.version_and_count(table)?;
        let head = Head { table, data, version, count };
        check(head)?;
        if known.head != head {
            known.forget();
            known.head = head;
        }
        self.heartbeat(known, now)?;
        let is_heard = known.heartbeat.is_some();
        for index in 0..count as usize {
            if index >= known.count {
                if self.left <= LAST_READS {
                    break;
                }
                let word = self.structural(u64::from(table) + 8 + 4 * index as u64)?;
                let entry = entry(word, head, &known.entries[..index])?;
                (known.entries[index], known.count) = (entry, index + 1);
            }
            if !is_static(known.entries[index].tag) {
                self.value(known, index)?;
            }
            if !is_heard && known.entries[index].tag == HEARTBEAT {
                known.heartbeat = known.entries[index].value.map(|value| Heartbeat { index, value, at: now });
            }
        }
        for index in 0..known.count {
            self.value(known, index)?;
        }
        if self.version_and_count(table)? != (version, count) {
            return Err(Problem::found(DeepUnavailable::BadTable, "the table changed while it was read", version));
        }
        let unread = known.entries[..known.count].iter().filter(|entry| entry.tag != 0 && entry.value.is_none());
        let pending = count - known.count as u32 + unread.count() as u32;
        Ok(Walked { version, reads: MOST_READS - self.left, pending })
    }

    /// A heartbeat that went back, or on faster than firmware counts, is that of firmware that has started again.
    fn heartbeat(&mut self, known: &mut Known, now: Duration) -> Result<(), Problem> {
        let Some(before) = known.heartbeat else { return Ok(()) };
        self.value(known, before.index)?;
        let value = known.entries[before.index].value.unwrap_or_default();
        let most = 100 + now.saturating_sub(before.at).as_millis() / 5;
        if u128::from(value.wrapping_sub(before.value)) > most {
            known.forget();
        } else {
            known.heartbeat = Some(Heartbeat { value, at: now, ..before });
        }
        Ok(())
    }

    /// Reads a value, unless it is known, or enough was read.
    fn value(&mut self, known: &mut Known, index: usize) -> Result<(), Problem> {
        let entry = known.entries[index];
        if entry.tag == 0 || entry.value.is_some() || self.left <= LAST_READS {
            return Ok(());
        }
        known.entries[index].value = Some(self.word(u64::from(known.head.data) + 4 * u64::from(entry.offset))?);
        Ok(())
    }

    fn word(&mut self, address: u64) -> Result<u32, Problem> {
        debug_assert!(self.left > 0);
        self.left = self.left.saturating_sub(1);
        self.memory.read32(address)
    }

    /// A word without which the rest makes no sense.
    fn structural(&mut self, address: u64) -> Result<u32, Problem> {
        match self.word(address)? {
            ALL_ONES => Err(Problem::found(DeepUnavailable::NotReady, "the chip does not answer", ALL_ONES)),
            word => Ok(word),
        }
    }

    fn pointer(&mut self, register: u64) -> Result<u32, Problem> {
        match self.structural(register)? {
            0 => Err(Problem::found(DeepUnavailable::NoTable, "the firmware has published no table", 0)),
            pointer if is_word(pointer.into()) => Ok(pointer),
            pointer => Err(Problem::found(DeepUnavailable::BadTable, "the table is outside of its memory", pointer)),
        }
    }

    fn version_and_count(&mut self, table: u32) -> Result<(u32, u32), Problem> {
        Ok((self.structural(table.into())?, self.structural(u64::from(table) + 4)?))
    }
}

fn is_word(address: u64) -> bool {
    // The word behind is read, too: the number of entries.
    address % 4 == 0 && CSM.contains(&address) && CSM.contains(&(address + 7))
}

fn check(head: Head) -> Result<(), Problem> {
    use DeepUnavailable::{BadTable, NoTable};
    if head.version >> 16 > 1 {
        return Err(Problem::found(BadTable, "unknown version of the table", head.version));
    }
    if head.count == 0 {
        return Err(Problem::found(NoTable, "the table is empty", 0));
    }
    let end = u64::from(head.table) + 8 + 4 * u64::from(head.count);
    if head.count > MAX_ENTRIES || end > CSM.end {
        return Err(Problem::found(BadTable, "the table has too many entries", head.count));
    }
    Ok(())
}

/// An entry from its word: the tag, and where its value is.
fn entry(word: u32, head: Head, earlier: &[Entry]) -> Result<Entry, Problem> {
    let (tag, offset) = (word as u16, (word >> 16) as u16);
    if tag == 0 || earlier.iter().any(|entry| entry.tag == tag) {
        return Ok(Entry::default());
    }
    let address = u64::from(head.data) + 4 * u64::from(offset);
    if address + 4 > CSM.end {
        return Err(Problem::found(DeepUnavailable::BadTable, "a value is outside of the memory", word));
    }
    Ok(Entry { tag, offset, value: None })
}

/// Whether a value stays as it is while the firmware runs: serial numbers, versions, limits, harvesting. The numbers from 78 on mean
/// different things on the two generations and are not among them.
pub fn is_static(tag: u16) -> bool {
    matches!(tag, 1..=4 | 9 | 10 | 23..=30 | 33..=38 | 40 | 52 | 53 | 55..=59 | 61..=63 | 72)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Image;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// Words by address, and how often each was read.
    #[derive(Default, Clone)]
    struct Words {
        words: HashMap<u64, u32>,
        reads: HashMap<u64, u32>,
        /// After so many reads, all words are this one.
        then: Option<(u32, u32)>,
    }

    impl Memory for Words {
        fn read32(&mut self, address: u64) -> Result<u32, Problem> {
            assert!(address % 4 == 0);
            assert!(CSM.contains(&address) || (0x8003_0000..0x8003_1000).contains(&address), "{address:#x}");
            *self.reads.entry(address).or_default() += 1;
            let reads: u32 = self.reads.values().sum();
            match self.then {
                Some((after, word)) if reads > after => Ok(word),
                _ => Ok(self.words.get(&address).copied().unwrap_or(0)),
            }
        }
    }

    const TABLE: u32 = 0x1000_1000;

    fn table(arch: Arch, tags: &[u16]) -> Words {
        let mut words = HashMap::new();
        let data = TABLE + 8 + 4 * tags.len() as u32;
        let (table_register, data_register) = registers(arch);
        words.extend([(table_register, TABLE), (data_register, data)]);
        words.extend([(TABLE.into(), 0x100), (u64::from(TABLE) + 4, tags.len() as u32)]);
        for (index, &tag) in tags.iter().enumerate() {
            words.insert(u64::from(TABLE) + 8 + 4 * index as u64, u32::from(tag) | (index as u32) << 16);
            words.insert(u64::from(data) + 4 * index as u64, 1000 + u32::from(tag));
        }
        Words { words, ..Words::default() }
    }

    fn read(words: &mut Words, known: &mut Known, at: u64) -> Result<(Walked, Vec<TelemetryTag>), Problem> {
        words.reads.clear();
        let mut entries = Vec::new();
        let walked = walk(words, Arch::Blackhole, known, Duration::from_secs(at), &mut entries)?;
        let reads: u32 = words.reads.values().sum();
        assert_eq!(walked.reads, reads);
        assert!(reads <= MOST_READS);
        Ok((walked, entries))
    }

    #[test]
    fn static_tags_are_read_once_while_the_firmware_runs() {
        let mut words = table(Arch::Blackhole, &[1, 0, 14, 32, 14]);
        let mut known = Known::default();
        let (walked, first) = read(&mut words, &mut known, 0).unwrap();
        assert_eq!(
            first.iter().map(|one| (one.tag, one.value)).collect::<Vec<_>>(),
            [(1, 1001), (14, 1014), (32, 1032)]
        );
        assert_eq!((walked.reads, walked.pending), (2 + 2 + 5 + 3 + 2, 0));
        let (walked, second) = read(&mut words, &mut known, 5).unwrap();
        assert_eq!((walked.reads, second), (2 + 2 + 2 + 2, first));
        // The firmware starts again: its heartbeat goes back, and everything is read again.
        let data = u64::from(TABLE) + 8 + 4 * 5;
        words.words.insert(data + 12, 3);
        words.words.insert(data, 2000);
        let (walked, third) = read(&mut words, &mut known, 10).unwrap();
        assert_eq!((walked.reads, third[0].value), (2 + 2 + 1 + 5 + 3 + 2, 2000));
    }

    #[test]
    fn a_jump_of_the_heartbeat_another_table_and_none_are_noticed() {
        let mut words = table(Arch::Blackhole, &[1, 32]);
        let mut known = Known::default();
        read(&mut words, &mut known, 0).unwrap();
        let data = u64::from(TABLE) + 8 + 4 * 2;
        words.words.insert(data + 4, 0xa5a5_a5a5);
        assert_eq!(read(&mut words, &mut known, 1).unwrap().0.reads, 2 + 2 + 1 + 2 + 2 + 2);
        words.words.insert(registers(Arch::Blackhole).1, data as u32 - 4);
        assert_eq!(read(&mut words, &mut known, 2).unwrap().0.reads, 2 + 2 + 2 + 2 + 2);
        let mut words = table(Arch::Blackhole, &[1, 14]);
        let mut known = Known::default();
        for at in 0..2 {
            assert_eq!(
                read(&mut words, &mut known, at).unwrap().0.reads,
                2 + 2 + 2 + 2 + 2,
                "no heartbeat, nothing kept"
            );
        }
    }

    #[test]
    fn a_large_table_comes_in_two_reads_with_what_changes_first() {
        let tags: Vec<u16> = (1..=80).collect();
        let mut words = table(Arch::Blackhole, &tags);
        let mut known = Known::default();
        let (walked, entries) = read(&mut words, &mut known, 0).unwrap();
        assert_eq!((walked.reads, walked.pending, entries.len()), (150, 16, 64));
        assert!((1..=80).filter(|tag| !is_static(*tag)).all(|tag| entries.iter().any(|entry| entry.tag == tag)));
        let (walked, entries) = read(&mut words, &mut known, 5).unwrap();
        assert_eq!((walked.pending, entries.len()), (0, 80));
        let (walked, _) = read(&mut words, &mut known, 10).unwrap();
        assert_eq!(walked.reads, 54);
        // More than any firmware has: as much as fits.
        let tags: Vec<u16> = (100..356).collect();
        let mut words = table(Arch::Blackhole, &tags);
        for at in 0..9 {
            assert!(read(&mut words, &mut known, at).unwrap().0.pending > 0);
        }
    }

    #[test]
    fn hostile_tables_are_refused_with_a_reason() {
        use DeepUnavailable::{BadTable, NoTable, NotReady};
        let good = table(Arch::Blackhole, &[1, 14, 32]);
        let (table_register, data_register) = registers(Arch::Blackhole);
        let (head, first) = (u64::from(TABLE), u64::from(TABLE) + 8);
        for (address, word, why) in [
            (table_register, 0, NoTable),
            (data_register, 0, NoTable),
            (table_register, u32::MAX, NotReady),
            (data_register, u32::MAX, NotReady),
            (table_register, 4, BadTable),
            (table_register, 0x0fff_fffc, BadTable),
            (table_register, 0x1008_0000, BadTable),
            (table_register, 0x1007_fffc, BadTable),
            (table_register, 0x1000_1002, BadTable),
            (table_register, 0x8000_0000, BadTable),
            (data_register, 0x1007_fffe, BadTable),
            (head, 0x0002_0000, BadTable),
            (head, u32::MAX, NotReady),
            (head + 4, 0, NoTable),
            (head + 4, 257, BadTable),
            (head + 4, u32::MAX, NotReady),
            (first, u32::MAX, NotReady),
        ] {
            let mut words = good.clone();
            words.words.insert(address, word);
            let mut known = Known::default();
            assert_eq!(read(&mut words, &mut known, 0).unwrap_err().why, why, "{address:#x} = {word:#x}");
            // It is read well as soon as it is well.
            assert_eq!(read(&mut good.clone(), &mut known, 1).unwrap().1.len(), 3);
        }
        let mut words = good.clone();
        words.words.extend([(data_register, 0x1007_0000), (first, 0x4000_0001)]);
        assert_eq!(read(&mut words, &mut Known::default(), 0).unwrap_err().why, BadTable);
        // 0.1.0, and what a simulator of the maker has.
        for version in [0x100, 1] {
            let mut words = good.clone();
            words.words.insert(head, version);
            assert_eq!(read(&mut words, &mut Known::default(), 0).unwrap().0.version, version);
        }
    }

    #[test]
    fn a_chip_that_stops_answering_or_changes_its_table_while_it_is_read_is_noticed() {
        let good = table(Arch::Blackhole, &[1, 14, 32]);
        for after in 0..12 {
            for (word, whys) in [
                (u32::MAX, &[DeepUnavailable::NotReady][..]),
                (0x1000, &[DeepUnavailable::BadTable, DeepUnavailable::NoTable]),
            ] {
                let mut words = Words { then: Some((after, word)), ..good.clone() };
                let why = read(&mut words, &mut Known::default(), 0).unwrap_err().why;
                assert!(whys.contains(&why), "{after} {word:#x} {why:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_memory_is_read_within_bounds(
            pointers in (0x0fff_fff0_u32..0x1008_0010, 0x0fff_fff0_u32..0x1008_0010),
            head in (prop_oneof![Just(0x100), any::<u32>()], 0_u32..300),
            words in vec(prop_oneof![0_u32..0x0100_0000, any::<u32>()], 0..300),
            then in prop::option::of((0_u32..160, any::<u32>())),
            align in any::<bool>(),
        ) {
            let mask = if align { !3 } else { !0 };
            let (table, data) = (pointers.0 & mask, pointers.1 & mask);
            for arch in Arch::ALL {
                let mut memory = Words { then, ..Words::default() };
                let (table_register, data_register) = registers(arch);
                memory.words.extend([(table_register, table), (data_register, data)]);
                let all = [head.0, head.1].into_iter().chain(words.iter().copied());
                memory.words.extend(all.enumerate().map(|(index, word)| (u64::from(table) + 4 * index as u64, word)));
                let (mut known, mut entries) = (Known::default(), Vec::new());
                for at in 0..4 {
                    memory.reads.clear();
                    let walked = walk(&mut memory, arch, &mut known, Duration::from_secs(at), &mut entries);
                    prop_assert!(memory.reads.values().sum::<u32>() <= MOST_READS);
                    prop_assert!(entries.len() <= MAX_ENTRIES as usize);
                    prop_assert!(entries.iter().all(|entry| entry.tag != 0));
                    if walked.is_err() {
                        prop_assert!(entries.is_empty());
                    }
                }
            }
        }

        #[test]
        fn any_text_is_an_image_or_is_refused(text in "(0x[0-9a-fA-F]{1,10} = 0x[0-9a-f]{1,9}\n|[ -~]{0,20}\n|#.{0,9}\n){0,40}") {
            if let Ok(mut image) = Image::new(text.as_bytes()) {
                let _ = walk(&mut image, Arch::Wormhole, &mut Known::default(), Duration::ZERO, &mut Vec::new());
            }
        }
    }
}
