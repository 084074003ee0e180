//! Processes that exited, and what they held then.

use super::buffer_row::BufferEntry;
use super::buffers;
use super::live_processes::{Key, LiveProcess};
use super::merge::{chip_of_number, reported};
use ledger::book;
use ledger::poc::ClientAccount;
use model::{Bytes, Device, DeviceId, ExitRecord, Held, Process, Source, Timestamp, chip_with_number};
use sources::WaitStatus;
use std::collections::VecDeque;
use std::fs::File;
use watch::handover::book_in;

pub struct Exits {
    /// The latest first.
    pub all: VecDeque<ExitRecord>,
    most: usize,
    /// How many there were, kept or not.
    pub total: u64,
}

const LARGEST: usize = 10;

impl Exits {
    pub fn up_to(most: usize) -> Exits {
        Exits { all: VecDeque::new(), most, total: 0 }
    }

    pub fn set_most(&mut self, most: usize) {
        self.most = most;
        self.all.truncate(most);
    }

    pub fn add(&mut self, exit: ExitRecord) {
        self.total += 1;
        self.all.push_front(exit);
        self.all.truncate(self.most);
    }

    /// Those since then, in milliseconds since 1970.
    pub fn since(&self, time: i64) -> impl Iterator<Item = &ExitRecord> {
        self.all.iter().take_while(move |exit| exit.died_at.0 >= time)
    }
}

/// The record of a process that was known. `None` when it never held anything.
pub fn exit_record(
    key: Key,
    live: &LiveProcess,
    account: Option<&ClientAccount>,
    devices: &[Device],
    now: u64,
) -> Option<ExitRecord> {
    if live.book.is_none() && live.sampled.is_none() && account.is_none() {
        return None;
    }
    let mut exit = ExitRecord::of(&live.identity.process, milliseconds(now));
    exit.devices = live.sampled.clone().unwrap_or_default();
    let mut entries = None;
    if let Some(account) = account {
        let reported = account.totals().map(|(number, kinds)| {
            let id = chip_of_number(devices, number).map(|device| device.id.clone());
            reported(id.unwrap_or(DeviceId::Local(number.unsigned_abs())), kinds)
        });
        replace(&mut exit, reported);
        buffers::add_account(entries.insert(Vec::new()), key.0, account, devices);
    }
    if let Some(from_book) = live.book.as_ref().and_then(|book| read_book(&mut exit, book, devices)) {
        entries = Some(from_book);
    }
    add_buffers(&mut exit, entries, now);
    match live.ended(key) {
        Some(WaitStatus::Exited(code)) => exit.exit_code = Some(code),
        Some(WaitStatus::Killed(signal)) => exit.signal = Some(signal),
        None => {}
    }
    Some(exit)
}

/// The record of a process that exited before it could be identified, but had handed over its book.
pub fn record_of_book(pid: u32, file: &File, devices: &[Device], now: u64) -> ExitRecord {
    let mut exit = ExitRecord::of(&Process::new(pid), milliseconds(now));
    let entries = read_book(&mut exit, file, devices);
    add_buffers(&mut exit, entries, now);
    exit
}

fn milliseconds(nanoseconds: u64) -> Timestamp {
    Timestamp((nanoseconds / 1_000_000) as i64)
}

/// Takes the last state of its book, which outlives the process.
fn read_book(exit: &mut ExitRecord, file: &File, devices: &[Device]) -> Option<Vec<BufferEntry>> {
    let book = book_in(file).ok()?;
    exit.in_its_own_time = Some(book.is_closed);
    if !book.is_inexact {
        replace(exit, held_by_book(&book, devices).into_iter());
        let live = book.chips.iter().flat_map(|chip| chip.counters.iter().map(|counter| counter.bytes));
        let lost = book.chips.iter().map(|chip| chip.left_bytes);
        exit.left = book.is_closed.then(|| Bytes(live.chain(lost).fold(0, u64::saturating_add)));
    }
    let mut entries = Vec::new();
    buffers::add_book(&mut entries, exit.pid, file, &book, devices).ok()?;
    Some(entries)
}

fn replace(exit: &mut ExitRecord, better: impl Iterator<Item = Held>) {
    for held in better {
        exit.devices.retain(|known| known.id != held.id);
        exit.devices.push(held);
    }
    exit.devices.sort_by(|a, b| a.id.cmp(&b.id));
}

fn add_buffers(exit: &mut ExitRecord, entries: Option<Vec<BufferEntry>>, now: u64) {
    exit.buffers = entries.as_ref().map(Vec::len);
    exit.largest_buffers = buffers::largest(entries.unwrap_or_default(), LARGEST, now);
}

/// What a book says of the chips that its numbers name.
pub fn held_by_book(book: &book::Book, devices: &[Device]) -> Vec<Held> {
    let memory = sources::process_memory(book, None);
    let chips = book.chips.iter().zip(memory.chips);
    let held = chips.filter_map(|(chip, memory)| {
        let id = chip_with_number(devices, chip.unique_id?)?;
        let (usage, exact) = (memory.kinds.usage(), Some(Box::new(memory.kinds)));
        Some(Held { usage, source: Some(Source::Exact), exact, ..Held::new(id) })
    });
    held.collect()
}
