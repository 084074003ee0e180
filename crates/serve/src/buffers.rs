//! Live buffers of all processes: gathered, chosen, put in order, and a part of them written down.

use super::buffer_row::{self, Banked, BufferEntry, ChipNames, json, listed};
use super::merge::chip_of_number;
use ledger::book::{self, Book, BookError};
use ledger::poc::ClientAccount;
use ledger::wire::{BufferOrder, Wanted, WireError, framed};
use model::{Device, ListedBuffer, Source, chip_with_number};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::rc::Rc;

const USUAL: usize = 1000;
const MOST: usize = 100_000;

/// A part of the buffers that were asked for.
pub struct BufferPage {
    all: Vec<BufferEntry>,
    /// The places of those that are listed.
    part: Vec<usize>,
    offset: usize,
    now: u64,
    /// How many more books had no room for.
    pub unlisted: u64,
    /// Which books could not be read.
    pub faults: Vec<String>,
}

/// Adds the buffers that a book lists. After an error it has added none.
pub fn add_book(
    all: &mut Vec<BufferEntry>,
    pid: u32,
    file: &File,
    book: &Book,
    devices: &[Device],
) -> Result<(), BookError> {
    let name = |chip: u8| {
        let chip = book.chips.get(usize::from(chip))?;
        let id = chip.unique_id.and_then(|number| chip_with_number(devices, number));
        // What the process calls it is better than nothing, but no name of a device of this machine.
        Some(id.map_or_else(|| format!("?{}", chip.device_id), |id| id.to_string()))
    };
    let mut known: HashMap<u64, Rc<ChipNames>> = HashMap::new();
    let before = all.len();
    all.reserve(book.tabled as usize);
    let copied = book::each_buffer(book::of_file(file), book, |buffer| {
        let chips = buffer.chips;
        let devices =
            known.entry(chips.0).or_insert_with(|| Rc::new(ChipNames::of(chips.iter().filter_map(name).collect())));
        all.push(BufferEntry {
            pid,
            devices: devices.clone(),
            kind: buffer.kind,
            id: buffer.id,
            address: buffer.address,
            bytes: buffer.bytes(),
            banked: Some(Banked { per_bank: buffer.per_bank, logical: buffer.logical, banks: buffer.banks }),
            time: buffer.time,
            label: buffer.label,
            source: Source::Exact,
        });
    });
    if copied.is_err() {
        all.truncate(before);
    }
    copied.map(drop)
}

/// Adds the buffers that a process has reported.
pub fn add_account(all: &mut Vec<BufferEntry>, pid: u32, account: &ClientAccount, devices: &[Device]) {
    let name = |number| match chip_of_number(devices, number) {
        Some(device) => device.id.to_string(),
        None => format!("?{number}"),
    };
    let mut known: HashMap<i32, Rc<ChipNames>> = HashMap::new();
    all.extend(account.buffers().map(|(device, id, buffer)| BufferEntry {
        pid,
        devices: known.entry(device).or_insert_with(|| Rc::new(ChipNames::of(vec![name(device)]))).clone(),
        kind: buffer.kind,
        id,
        address: id,
        bytes: buffer.bytes,
        banked: None,
        time: buffer.time,
        label: None,
        source: Source::Reported,
    }));
}

pub fn page(mut all: Vec<BufferEntry>, wanted: &Wanted, now: u64) -> BufferPage {
    let Wanted { pid, device, kind, label, sort, offset, limit } = wanted;
    all.retain(|entry| {
        pid.is_none_or(|pid| entry.pid == pid)
            && device.as_ref().is_none_or(|device| entry.devices.names.contains(device))
            && kind.as_ref().is_none_or(|kind| entry.kind.name().eq_ignore_ascii_case(kind))
            && label.as_ref().is_none_or(|part| entry.label.as_ref().is_some_and(|label| label.contains(part.as_str())))
    });
    let ranks = if *sort == BufferOrder::Device { ranks(&all) } else { HashMap::new() };
    // Buffers are too long to be moved about. What decides about their order, and at the end their place, fits into one number.
    let key = |(at, entry): (usize, &BufferEntry)| {
        let (rank, first) = match sort {
            BufferOrder::Bytes => (0, !entry.bytes),
            // Last what has no age.
            BufferOrder::Age => (0, entry.time.wrapping_sub(1)),
            BufferOrder::Device => (ranks.get(&*entry.devices).copied().unwrap_or_default(), !entry.bytes),
        };
        u128::from(rank) << 96 | u128::from(first) << 32 | at as u128
    };
    let mut keys: Vec<u128> = all.iter().enumerate().map(key).collect();
    let limit = limit.unwrap_or(USUAL).min(MOST);
    let end = offset.saturating_add(limit);
    if end < keys.len() {
        // Those after the end need no order, unless it is not decided yet which of them are after it.
        let last = *keys.select_nth_unstable(end).1 >> 32;
        keys.retain(|key| key >> 32 <= last);
    }
    keys.sort_unstable();
    let place = |key: &u128| *key as u32 as usize;
    for equals in keys.chunk_by_mut(|a, b| a >> 32 == b >> 32).filter(|equals| equals.len() > 1) {
        equals.sort_unstable_by_key(|key| all.get(place(key)).map(|entry| (entry.pid, entry.id)));
    }
    let part = keys.iter().skip(*offset).take(limit).map(place).collect();
    BufferPage { all, part, offset: *offset, now, unlisted: 0, faults: Vec::new() }
}

/// The order of the devices that buffers are on.
fn ranks(all: &[BufferEntry]) -> HashMap<&ChipNames, u32> {
    let mut ranks: HashMap<&ChipNames, u32> = all.iter().map(|entry| (&*entry.devices, 0)).collect();
    let mut places: Vec<&ChipNames> = ranks.keys().copied().collect();
    places.sort_unstable();
    ranks.extend(places.into_iter().zip(0..));
    ranks
}

impl BufferPage {
    fn entries(&self) -> impl Iterator<Item = &BufferEntry> {
        self.part.iter().filter_map(|at| self.all.get(*at))
    }

    /// As an answer.
    pub fn frame(&self) -> Result<Vec<u8>, WireError> {
        // A little more than most of them take.
        let mut bytes = Vec::with_capacity(256 * (self.part.len() + 1));
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(br#"{"buffers":"#);
        self.write(&mut bytes);
        bytes.push(b'}');
        framed(bytes)
    }

    /// The same as an object of its own.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        let BufferPage { all, offset, unlisted, faults, .. } = self;
        // Memory takes everything that is written to it.
        let _ = write!(bytes, r#"{{"total":{},"offset":{offset},"buffers":["#, all.len());
        for (at, entry) in self.entries().enumerate() {
            if at > 0 {
                bytes.push(b',');
            }
            buffer_row::write(bytes, entry, self.now);
        }
        let _ = write!(bytes, r#"],"unlisted":{unlisted},"faults":"#);
        json(bytes, faults);
        bytes.push(b'}');
    }
}

/// The largest, for the record of an exit.
pub fn largest(all: Vec<BufferEntry>, number: usize, now: u64) -> Vec<ListedBuffer> {
    let page = page(all, &Wanted { limit: Some(number), ..Wanted::default() }, now);
    page.entries().map(|entry| listed(entry, now)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::book::MemoryKind;

    fn entry(pid: u32, id: u64, bytes: u64, time: u64, device: &str, label: Option<&str>) -> BufferEntry {
        BufferEntry {
            pid,
            devices: Rc::new(ChipNames::of(vec![device.to_owned()])),
            kind: if id.is_multiple_of(2) { MemoryKind::Dram } else { MemoryKind::L1 },
            id,
            address: id,
            bytes,
            banked: None,
            time,
            label: label.map(Into::into),
            source: Source::Exact,
        }
    }

    fn all() -> Vec<BufferEntry> {
        vec![
            entry(7, 1, 10, 300, "0", Some("kv-cache")),
            entry(7, 2, 30, 100, "1", None),
            entry(8, 3, 20, 0, "0", Some("weights")),
            entry(8, 4, 20, 200, "0", None),
        ]
    }

    fn ids(wanted: Wanted) -> Vec<u64> {
        page(all(), &wanted, 0).entries().map(|entry| entry.id).collect()
    }

    proptest::proptest! {
        #[test]
        fn pages_follow_each_other_without_a_gap(
            sizes in proptest::collection::vec((0u64..4, 0u64..4, 0u32..3), 0..60), limit in 1usize..9, sort in 0usize..3,
        ) {
            let all = || -> Vec<BufferEntry> {
                let one = |(id, (bytes, time, device)): (u64, &(u64, u64, u32))| {
                    entry(7 - device, id * 7919 % 61, *bytes, *time, &device.to_string(), None)
                };
                (0..).zip(&sizes).map(one).collect()
            };
            let sort = [BufferOrder::Bytes, BufferOrder::Age, BufferOrder::Device][sort];
            let ids = |wanted: Wanted| -> Vec<u64> { page(all(), &wanted, 0).entries().map(|entry| entry.id).collect() };
            let mut expected = all();
            expected.sort_by_key(|entry| {
                let device = if sort == BufferOrder::Device { entry.devices.names.clone() } else { Vec::new() };
                let first = if sort == BufferOrder::Age { entry.time.wrapping_sub(1) } else { u64::MAX - entry.bytes };
                (device, first, entry.pid, entry.id)
            });
            let expected: Vec<u64> = expected.iter().map(|entry| entry.id).collect();
            assert_eq!(ids(Wanted { sort, ..Wanted::default() }), expected);
            let pages = (0..).map(|n| ids(Wanted { sort, offset: n * limit, limit: Some(limit), ..Wanted::default() }));
            assert_eq!(pages.take_while(|page| !page.is_empty()).collect::<Vec<_>>().concat(), expected);
        }
    }

    #[test]
    fn an_answer_says_what_there_is_and_what_it_leaves_out() {
        let wanted = Wanted { limit: Some(1), offset: 3, ..Wanted::default() };
        let page = page(all(), &wanted, 1_500_000_300);
        let frame = BufferPage { unlisted: 5, faults: vec!["a \"book\"".into()], ..page }.frame().unwrap();
        let (length, text) = frame.split_first_chunk::<4>().unwrap();
        assert_eq!(u32::from_le_bytes(*length) as usize, text.len());
        let text = std::str::from_utf8(text).unwrap().replace(",\"", ",\n\"");
        expect_test::expect![[r#"
            {"buffers":{"total":4,
            "offset":3,
            "buffers":[{"pid":7,
            "devices":["0"],
            "kind":"l1",
            "id":1,
            "address":1,
            "bytes":10,
            "bank_bytes":null,
            "banks":null,
            "logical_bytes":null,
            "allocated_at":"1970-01-01T00:00:00.000Z",
            "age_seconds":1.5,
            "label":"kv-cache",
            "source":"exact"}],
            "unlisted":5,
            "faults":["a \"book\""]}}"#]]
        .assert_eq(&text);
    }

    #[test]
    fn buffers_can_be_chosen_and_put_in_order() {
        let all = Wanted::default;
        assert_eq!(ids(all()), [2, 3, 4, 1], "the largest first");
        assert_eq!(
            ids(Wanted { sort: BufferOrder::Age, ..all() }),
            [2, 4, 1, 3],
            "the oldest first, and last what has no age"
        );
        assert_eq!(ids(Wanted { sort: BufferOrder::Device, ..all() }), [3, 4, 1, 2]);
        assert_eq!(ids(Wanted { pid: Some(7), ..all() }), [2, 1]);
        assert_eq!(ids(Wanted { device: Some("1".into()), ..all() }), [2]);
        assert_eq!(ids(Wanted { kind: Some("L1".into()), ..all() }), [3, 1]);
        assert_eq!(ids(Wanted { label: Some("cache".into()), ..all() }), [1]);
        assert_eq!(ids(Wanted { offset: 1, limit: Some(2), ..all() }), [3, 4]);
        assert_eq!(ids(Wanted { offset: 9, ..all() }), [0; 0]);
        assert_eq!(ids(Wanted { offset: usize::MAX, ..all() }), [0; 0]);
    }
}
