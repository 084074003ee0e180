//! Live buffers of all processes: gathered, chosen, and the first of them put in order and written down.

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
/// As many rows as are written within a few milliseconds.
const MOST: usize = 20_000;

/// A part of the buffers that were asked for. Of those that were gathered, only the first are kept.
pub struct BufferPage {
    wanted: Wanted,
    /// How many were chosen, kept or not.
    total: usize,
    first: Vec<BufferEntry>,
    /// What is not before this one is not on the page.
    last: Option<BufferEntry>,
    now: u64,
    /// How many more books had no room for.
    pub unlisted: u64,
    /// Which books could not be read.
    pub faults: Vec<String>,
}

/// Adds the buffers that a book lists. After an error it has added none.
pub fn add_book(
    page: &mut BufferPage,
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
    let mut of_book = BufferPage::new(&page.wanted, page.now);
    book::each_buffer(book::of_file(file), book, |buffer| {
        let chips = buffer.chips;
        let devices =
            known.entry(chips.0).or_insert_with(|| Rc::new(ChipNames::of(chips.iter().filter_map(name).collect())));
        of_book.add(BufferEntry {
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
    })?;
    let kept = of_book.first.len();
    of_book.first.into_iter().for_each(|entry| page.add(entry));
    page.total += of_book.total - kept;
    Ok(())
}

/// Adds the buffers that a process has reported of some devices.
pub fn add_account(
    page: &mut BufferPage,
    pid: u32,
    account: &ClientAccount,
    devices: &[Device],
    is_wanted: impl Fn(i32) -> bool,
) {
    let name = |number| match chip_of_number(devices, number) {
        Some(device) => device.id.to_string(),
        None => format!("?{number}"),
    };
    let mut known: HashMap<i32, Rc<ChipNames>> = HashMap::new();
    // Most of the time it is the device of the buffer before.
    let mut last: Option<(i32, Rc<ChipNames>)> = None;
    for (device, id, buffer) in account.buffers().filter(|(device, ..)| is_wanted(*device)) {
        let names = match last.take().filter(|(before, _)| *before == device) {
            Some((_, names)) => names,
            None => known.entry(device).or_insert_with(|| Rc::new(ChipNames::of(vec![name(device)]))).clone(),
        };
        last = Some((device, names.clone()));
        page.add(BufferEntry {
            pid,
            devices: names,
            kind: buffer.kind,
            id,
            address: id,
            bytes: buffer.bytes,
            banked: None,
            time: buffer.time,
            label: None,
            source: Source::Reported,
        });
    }
}

impl BufferPage {
    pub fn new(wanted: &Wanted, now: u64) -> BufferPage {
        let limit = Some(wanted.limit.unwrap_or(USUAL).min(MOST));
        let wanted = Wanted { limit, ..wanted.clone() };
        BufferPage { wanted, total: 0, first: Vec::new(), last: None, now, unlisted: 0, faults: Vec::new() }
    }

    /// How many can be on this page and on those before.
    fn most(&self) -> usize {
        self.wanted.offset.saturating_add(self.wanted.limit.unwrap_or(USUAL))
    }

    pub fn add(&mut self, entry: BufferEntry) {
        let Wanted { pid, device, kind, label, sort, .. } = &self.wanted;
        let is_chosen = pid.is_none_or(|pid| entry.pid == pid)
            && device.as_ref().is_none_or(|device| entry.devices.names.contains(device))
            && kind.as_ref().is_none_or(|kind| entry.kind.name().eq_ignore_ascii_case(kind))
            && label
                .as_ref()
                .is_none_or(|part| entry.label.as_ref().is_some_and(|label| label.contains(part.as_str())));
        self.total += usize::from(is_chosen);
        if !is_chosen || self.last.as_ref().is_some_and(|last| place(&entry, *sort) >= place(last, *sort)) {
            return;
        }
        self.first.push(entry);
        // Sorting all of them would take longer than looking for the first ones now and then.
        let most = self.most();
        if self.first.len() >= most.saturating_mul(2).max(1024) {
            let sort = *sort;
            self.first.select_nth_unstable_by(most, |a, b| place(a, sort).cmp(&place(b, sort)));
            self.first.truncate(most + 1);
            self.last = self.first.pop();
        }
    }

    /// Puts the page in order.
    pub fn entries(&mut self) -> &[BufferEntry] {
        let Wanted { sort, offset, .. } = self.wanted;
        self.first.sort_unstable_by(|a, b| place(a, sort).cmp(&place(b, sort)));
        self.first.truncate(self.most());
        self.first.get(offset..).unwrap_or_default()
    }

    pub fn total(&self) -> usize {
        self.total
    }

    /// As an answer.
    pub fn frame(&mut self) -> Result<Vec<u8>, WireError> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(br#"{"buffers":"#);
        self.write(&mut bytes);
        bytes.push(b'}');
        framed(bytes)
    }

    /// The same as an object of its own.
    pub fn write(&mut self, bytes: &mut Vec<u8>) {
        let (now, total, offset) = (self.now, self.total, self.wanted.offset);
        let entries = self.entries();
        // A little more than most of them take.
        bytes.reserve(256 * (entries.len() + 1));
        // Memory takes everything that is written to it.
        let _ = write!(bytes, r#"{{"total":{total},"offset":{offset},"buffers":["#);
        for (at, entry) in entries.iter().enumerate() {
            if at > 0 {
                bytes.push(b',');
            }
            buffer_row::write(bytes, entry, now);
        }
        let BufferPage { unlisted, faults, .. } = self;
        let _ = write!(bytes, r#"],"unlisted":{unlisted},"faults":"#);
        json(bytes, faults);
        bytes.push(b'}');
    }

    /// As plain data.
    pub fn listed(&mut self) -> Vec<ListedBuffer> {
        let now = self.now;
        self.entries().iter().map(|entry| listed(entry, now)).collect()
    }
}

/// What decides about the order. Last is what has no age.
fn place(entry: &BufferEntry, sort: BufferOrder) -> (Option<&ChipNames>, u64, u32, u64) {
    let (devices, first) = match sort {
        BufferOrder::Bytes => (None, !entry.bytes),
        BufferOrder::Age => (None, entry.time.wrapping_sub(1)),
        BufferOrder::Device => (Some(&*entry.devices), !entry.bytes),
    };
    (devices, first, entry.pid, entry.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::book::MemoryKind;

    fn entry(pid: u32, id: u64, bytes: u64, time: u64, device: &str, label: Option<&str>) -> BufferEntry {
        BufferEntry {
            pid,
            devices: Rc::new(ChipNames::of(vec![device.to_owned()])),
            kind: if id % 2 == 0 { MemoryKind::Dram } else { MemoryKind::L1 },
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

    fn page(all: Vec<BufferEntry>, wanted: &Wanted, now: u64) -> BufferPage {
        let mut page = BufferPage::new(wanted, now);
        all.into_iter().for_each(|entry| page.add(entry));
        page
    }

    fn ids(wanted: Wanted) -> Vec<u64> {
        page(all(), &wanted, 0).entries().iter().map(|entry| entry.id).collect()
    }

    #[test]
    fn the_first_of_very_many_are_found_and_no_others_are_kept() {
        let mut page = BufferPage::new(&Wanted { limit: Some(10), offset: 5, ..Wanted::default() }, 0);
        for id in 0..100_000u64 {
            page.add(entry(7, id, id * 7919 % 100_003, 0, "0", None));
            assert!(page.first.len() < 1024);
        }
        assert_eq!(page.total(), 100_000);
        let mut all: Vec<u64> = (0..100_000u64).map(|id| id * 7919 % 100_003).collect();
        all.sort_unstable_by_key(|bytes| !bytes);
        assert_eq!(page.entries().iter().map(|entry| entry.bytes).collect::<Vec<_>>(), all[5..15]);
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
            let ids = |wanted: Wanted| -> Vec<u64> { page(all(), &wanted, 0).entries().iter().map(|entry| entry.id).collect() };
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
        let mut page = page(all(), &wanted, 1_500_000_300);
        (page.unlisted, page.faults) = (5, vec!["a \"book\"".into()]);
        let frame = page.frame().unwrap();
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
