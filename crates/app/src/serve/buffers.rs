//! Live buffers of all processes: gathered, chosen, put in order, and a part of them written down.

use ledger::book::{Book, Kind, Table};
use ledger::poc::Account;
use ledger::wire::{Sort, Wanted};
use model::{Bytes, Device, Source, Timestamp, chip_with_number};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::rc::Rc;

use super::merge::chip_of_number;

/// As many as are told at once, unless more are asked for.
const USUAL: usize = 1000;
/// And at the most.
const MOST: usize = 100_000;

/// A live buffer.
#[derive(Debug, Clone)]
pub struct Entry {
    pid: u32,
    /// The chips that have it, as snapshots name them.
    devices: Rc<[String]>,
    kind: Kind,
    id: u64,
    address: u64,
    bytes: u64,
    logical: Option<u64>,
    /// ns since 1970; zero when it is not known.
    time: u64,
    label: Option<Box<str>>,
    source: Source,
}

/// The same as it is told.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Row {
    pid: u32,
    /// The chips that have it.
    devices: Vec<String>,
    kind: &'static str,
    id: u64,
    address: u64,
    /// Reserved on each of them.
    bytes: Bytes,
    /// Asked for, on each of them.
    logical_bytes: Option<Bytes>,
    allocated_at: Option<Timestamp>,
    age_seconds: Option<f64>,
    label: Option<String>,
    source: Source,
}

/// A part of the buffers that were asked for.
#[derive(Debug, Serialize)]
pub struct Page {
    /// How many there are.
    pub total: usize,
    pub offset: usize,
    pub buffers: Vec<Row>,
    /// Buffers that are counted, but for which a book had no room.
    pub unlisted: u64,
    /// Books that could not be read.
    pub faults: Vec<String>,
}

/// The buffers that a book tells of.
pub fn of_book(pid: u32, book: &Book, table: Table, devices: &[Device]) -> Vec<Entry> {
    let name = |chip: u8| {
        let chip = book.chips.get(usize::from(chip))?;
        let id = chip.unique_id.and_then(|number| chip_with_number(devices, number));
        // What the process calls it is better than nothing, but no name of a device of this machine.
        Some(id.map_or_else(|| format!("?{}", chip.device_id), |id| id.to_string()))
    };
    let mut known: HashMap<u64, Rc<[String]>> = HashMap::new();
    let entries = table.buffers.into_iter().map(|buffer| Entry {
        pid,
        devices: known.entry(buffer.chips.0).or_insert_with(|| buffer.chips.iter().filter_map(name).collect()).clone(),
        kind: buffer.kind,
        id: buffer.id,
        address: buffer.address,
        bytes: buffer.bytes(),
        logical: Some(buffer.logical),
        time: buffer.time,
        label: buffer.label,
        source: Source::Exact,
    });
    entries.collect()
}

/// The buffers that a process has reported.
pub fn of_account(pid: u32, account: &Account, devices: &[Device]) -> Vec<Entry> {
    let name = |number| match chip_of_number(devices, number) {
        Some(device) => device.id.to_string(),
        None => format!("?{number}"),
    };
    let mut known: HashMap<i32, Rc<[String]>> = HashMap::new();
    let entries = account.buffers().map(|(device, id, buffer)| Entry {
        pid,
        devices: known.entry(device).or_insert_with(|| [name(device)].into()).clone(),
        kind: buffer.kind,
        id,
        address: id,
        bytes: buffer.bytes,
        logical: None,
        time: buffer.time,
        label: None,
        source: Source::Reported,
    });
    entries.collect()
}

/// The part that is wanted.
pub fn page(mut all: Vec<Entry>, wanted: &Wanted, now: u64) -> Page {
    let Wanted { pid, device, kind, label, sort, offset, limit } = wanted;
    all.retain(|entry| {
        pid.is_none_or(|pid| entry.pid == pid)
            && device.as_ref().is_none_or(|device| entry.devices.contains(device))
            && kind.as_ref().is_none_or(|kind| entry.kind.name().eq_ignore_ascii_case(kind))
            && label.as_ref().is_none_or(|part| entry.label.as_ref().is_some_and(|label| label.contains(part.as_str())))
    });
    let who = |entry: &Entry| (entry.pid, entry.id);
    match sort {
        Sort::Bytes => all.sort_unstable_by_key(|entry| (Reverse(entry.bytes), who(entry))),
        Sort::Age => all.sort_unstable_by_key(|entry| (entry.time == 0, entry.time, who(entry))),
        Sort::Device => {
            all.sort_by(|a, b| a.devices.cmp(&b.devices).then(b.bytes.cmp(&a.bytes)).then_with(|| who(a).cmp(&who(b))))
        }
    }
    let part = all.iter().skip(*offset).take(limit.unwrap_or(USUAL).min(MOST));
    let buffers = part.map(|entry| row(entry, now)).collect();
    Page { total: all.len(), offset: *offset, buffers, unlisted: 0, faults: Vec::new() }
}

fn row(entry: &Entry, now: u64) -> Row {
    let time = Some(entry.time).filter(|time| *time > 0);
    Row {
        pid: entry.pid,
        devices: entry.devices.to_vec(),
        kind: entry.kind.name(),
        id: entry.id,
        address: entry.address,
        bytes: Bytes(entry.bytes),
        logical_bytes: entry.logical.map(Bytes),
        allocated_at: time.map(|time| Timestamp((time / 1_000_000) as i64)),
        age_seconds: time.map(|time| (now.saturating_sub(time) / 1_000_000) as f64 / 1000.0),
        label: entry.label.as_deref().map(str::to_owned),
        source: entry.source,
    }
}

/// The largest, for an obituary.
pub fn largest(all: Vec<Entry>, number: usize, now: u64) -> Vec<Row> {
    page(all, &Wanted { limit: Some(number), ..Wanted::default() }, now).buffers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(pid: u32, id: u64, bytes: u64, time: u64, device: &str, label: Option<&str>) -> Entry {
        Entry {
            pid,
            devices: [device.to_owned()].into(),
            kind: if id.is_multiple_of(2) { Kind::Dram } else { Kind::L1 },
            id,
            address: id,
            bytes,
            logical: None,
            time,
            label: label.map(Into::into),
            source: Source::Exact,
        }
    }

    fn ids(wanted: Wanted) -> Vec<u64> {
        let all = vec![
            entry(7, 1, 10, 300, "0", Some("kv-cache")),
            entry(7, 2, 30, 100, "1", None),
            entry(8, 3, 20, 0, "0", Some("weights")),
            entry(8, 4, 20, 200, "0", None),
        ];
        page(all, &wanted, 0).buffers.iter().map(|row| row.id).collect()
    }

    #[test]
    fn buffers_can_be_chosen_and_put_in_order() {
        let all = Wanted::default;
        assert_eq!(ids(all()), [2, 3, 4, 1], "the largest first");
        assert_eq!(
            ids(Wanted { sort: Sort::Age, ..all() }),
            [2, 4, 1, 3],
            "the oldest first, and last what has no age"
        );
        assert_eq!(ids(Wanted { sort: Sort::Device, ..all() }), [3, 4, 1, 2]);
        assert_eq!(ids(Wanted { pid: Some(7), ..all() }), [2, 1]);
        assert_eq!(ids(Wanted { device: Some("1".into()), ..all() }), [2]);
        assert_eq!(ids(Wanted { kind: Some("L1".into()), ..all() }), [3, 1]);
        assert_eq!(ids(Wanted { label: Some("cache".into()), ..all() }), [1]);
        assert_eq!(ids(Wanted { offset: 1, limit: Some(2), ..all() }), [3, 4]);
        assert_eq!(ids(Wanted { offset: 9, ..all() }), [0; 0]);
    }
}
