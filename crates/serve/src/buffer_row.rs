//! A live buffer, and how it is listed: as plain data for the record of an exit, and as text for a hundred thousand of them at once.

use ledger::book::MemoryKind;
use model::{Bytes, ListedBuffer, Source, Timestamp};
use serde::Serialize;
use std::rc::Rc;

/// A live buffer, as it is kept while a question is answered.
#[derive(Debug, Clone)]
pub struct BufferEntry {
    pub pid: u32,
    pub devices: Rc<ChipNames>,
    pub kind: MemoryKind,
    pub id: u64,
    pub address: u64,
    /// On each of its devices.
    pub bytes: u64,
    /// Absent when the process did not report it.
    pub banked: Option<Banked>,
    /// ns since 1970; zero when it is not known.
    pub time: u64,
    pub label: Option<Box<str>>,
    pub source: Source,
}

/// What only a book has.
#[derive(Debug, Clone, Copy)]
pub struct Banked {
    pub per_bank: u64,
    /// What was asked for.
    pub logical: u64,
    pub banks: u32,
}

/// The chips that have a buffer, as snapshots name them. Many buffers share them.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChipNames {
    pub names: Vec<String>,
    /// The same, written down.
    pub json: String,
}

impl ChipNames {
    pub fn of(names: Vec<String>) -> ChipNames {
        let json = serde_json::to_string(&names).unwrap_or_default();
        ChipNames { names, json }
    }
}

pub fn listed(entry: &BufferEntry, now: u64) -> ListedBuffer {
    let age = age_ms(entry, now);
    ListedBuffer {
        pid: entry.pid,
        devices: entry.devices.names.clone(),
        kind: entry.kind.name().to_owned(),
        id: entry.id,
        address: entry.address,
        bytes: Bytes(entry.bytes),
        bank_bytes: entry.banked.map(|banked| Bytes(banked.per_bank)),
        banks: entry.banked.map(|banked| banked.banks),
        logical_bytes: entry.banked.map(|banked| Bytes(banked.logical)),
        allocated_at: age.map(|_| Timestamp((entry.time / 1_000_000) as i64)),
        age_seconds: age.map(|age| age as f64 / 1000.0),
        label: entry.label.as_deref().map(str::to_owned),
        source: entry.source,
    }
}

/// Writes the same as [`ListedBuffer`] does, some times faster.
pub fn write(into: &mut Vec<u8>, entry: &BufferEntry, now: u64) {
    text(into, r#"{"pid":"#);
    json(into, &entry.pid);
    text(into, r#","devices":"#);
    text(into, &entry.devices.json);
    text(into, r#","kind":""#);
    text(into, entry.kind.name());
    text(into, r#"","id":"#);
    json(into, &entry.id);
    text(into, r#","address":"#);
    json(into, &entry.address);
    text(into, r#","bytes":"#);
    json(into, &entry.bytes);
    match entry.banked {
        Some(banked) => {
            text(into, r#","bank_bytes":"#);
            json(into, &banked.per_bank);
            text(into, r#","banks":"#);
            json(into, &banked.banks);
            text(into, r#","logical_bytes":"#);
            json(into, &banked.logical);
        }
        None => text(into, r#","bank_bytes":null,"banks":null,"logical_bytes":null"#),
    }
    match age_ms(entry, now) {
        Some(age) => {
            text(into, r#","allocated_at":"#);
            json(into, &Timestamp((entry.time / 1_000_000) as i64));
            text(into, r#","age_seconds":"#);
            json(into, &(age / 1000));
            // As few digits as it takes, but one.
            let [tenths, hundredths, rest] = [age / 100 % 10, age / 10 % 10, age % 10].map(|digit| b'0' + digit as u8);
            match (hundredths, rest) {
                (b'0', b'0') => into.extend_from_slice(&[b'.', tenths]),
                (_, b'0') => into.extend_from_slice(&[b'.', tenths, hundredths]),
                _ => into.extend_from_slice(&[b'.', tenths, hundredths, rest]),
            }
        }
        None => text(into, r#","allocated_at":null,"age_seconds":null"#),
    }
    match &entry.label {
        Some(label) => {
            text(into, r#","label":"#);
            json(into, label);
        }
        None => text(into, r#","label":null"#),
    }
    text(into, r#","source":"#);
    json(into, &entry.source);
    text(into, "}");
}

/// Text that is JSON already.
fn text(into: &mut Vec<u8>, text: &str) {
    into.extend_from_slice(text.as_bytes());
}

/// Anything else. Memory takes everything that is written to it.
pub fn json(into: &mut Vec<u8>, value: &impl Serialize) {
    let _ = serde_json::to_writer(into, value);
}

fn age_ms(entry: &BufferEntry, now: u64) -> Option<u64> {
    (entry.time > 0).then(|| now.saturating_sub(entry.time) / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_what_the_row_says(
            numbers: [u64; 6], pid: u32, banks: u32, devices: Vec<String>, label: Option<String>, has_banks: bool, age in 0..4_000_000_000_000_000u64, kind in 0..6usize,
        ) {
            let [id, address, bytes, per_bank, logical, time] = numbers;
            let time = if id % 5 == 0 { 0 } else { time % 1_900_000_000_000_000_000 };
            let entry = BufferEntry {
                pid,
                devices: Rc::new(ChipNames::of(devices)),
                kind: MemoryKind::ALL[kind],
                id,
                address,
                bytes,
                banked: has_banks.then_some(Banked { per_bank, logical, banks }),
                time,
                label: label.map(Into::into),
                source: if has_banks { Source::Exact } else { Source::Reported },
            };
            let mut text = Vec::new();
            write(&mut text, &entry, time + age);
            let row = serde_json::to_string(&listed(&entry, time + age)).unwrap();
            assert_eq!(String::from_utf8(text).unwrap(), row);
        }
    }
}
