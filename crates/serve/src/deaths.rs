//! Who has died, and what was held at that moment.

use super::buffers;
use super::entry::Entry;
use super::merge::{chip_of_number, reported};
use super::people::{Key, Person};
use super::row::Row;
use alerts::Ended;
use ledger::book;
use ledger::poc::ClientAccount;
use model::{Bytes, Device, DeviceId, Held, Process, Source, Timestamp, chip_with_number};
use serde::Serialize;
use sources::WaitStatus;
use std::collections::VecDeque;
use std::fs::File;
use watch::client;
use watch::handover::book_in;

/// A process that has died.
#[derive(Debug, Clone, Serialize)]
pub struct Death {
    pid: u32,
    user: Option<String>,
    name: Option<String>,
    command: Option<String>,
    container: Option<String>,
    started_at: Option<Timestamp>,
    died_at: Timestamp,
    /// The code with which it ended. Absent when that is not known, or a signal ended it.
    exit_code: Option<i32>,
    /// The signal that ended it.
    signal: Option<i32>,
    /// Whether it came to its own end, as its book has it.
    in_its_own_time: Option<bool>,
    /// What it held on each chip.
    devices: Vec<Held>,
    /// What it had not freed when it came to its own end, or closed a device. Absent when it was ended, or nobody told.
    #[serde(skip)]
    left: Option<Bytes>,
    /// How many buffers it had. Absent when nobody told.
    buffers: Option<usize>,
    /// The largest of them.
    largest_buffers: Vec<Row>,
}

/// The last of them.
pub struct Deaths {
    all: VecDeque<Death>,
    most: usize,
    /// How many there were, remembered or not.
    pub total: u64,
}

/// Buffers that are remembered of each.
const LARGEST: usize = 10;

impl Deaths {
    pub fn up_to(most: usize) -> Deaths {
        Deaths { all: VecDeque::new(), most, total: 0 }
    }

    pub fn set_most(&mut self, most: usize) {
        self.most = most;
        self.all.truncate(most);
    }

    pub fn add(&mut self, death: Death) {
        self.total += 1;
        self.all.push_front(death);
        self.all.truncate(self.most);
    }

    /// Those that died since then, in milliseconds since 1970.
    pub fn since(&self, time: i64) -> impl Iterator<Item = &Death> {
        self.all.iter().take_while(move |death| death.died_at.0 >= time)
    }

    /// The latest first.
    pub fn latest(&self, limit: Option<usize>) -> Vec<&Death> {
        self.all.iter().take(limit.unwrap_or(usize::MAX)).collect()
    }

    /// How many are remembered.
    pub fn number(&self) -> usize {
        self.all.len()
    }
}

impl Death {
    /// Of a process that was known. `None` when it never held anything.
    pub fn of(
        key: Key,
        person: &Person,
        account: Option<&ClientAccount>,
        devices: &[Device],
        now: u64,
    ) -> Option<Death> {
        if person.book.is_none() && person.sampled.is_none() && account.is_none() {
            return None;
        }
        let mut death = Death::plain(&person.identity.process, now);
        death.devices = person.sampled.clone().unwrap_or_default();
        let mut entries = None;
        if let Some(account) = account {
            death.replace(account.totals().map(|(number, kinds)| {
                let id = chip_of_number(devices, number).map(|device| device.id.clone());
                reported(id.unwrap_or(DeviceId::Local(number.unsigned_abs())), kinds)
            }));
            buffers::add_account(entries.insert(Vec::new()), key.0, account, devices);
        }
        if let Some(from_book) = person.book.as_ref().and_then(|book| death.read_book(book, devices)) {
            entries = Some(from_book);
        }
        death.count(entries, now);
        match sources::wait_status(key.0, key.1) {
            Some(WaitStatus::Exited(code)) => death.exit_code = Some(code),
            Some(WaitStatus::Killed(signal)) => death.signal = Some(signal),
            None => {}
        }
        Some(death)
    }

    /// Of a process that was gone before it could be known, but had handed over its book.
    pub fn of_stranger(pid: u32, file: &File, devices: &[Device], now: u64) -> Death {
        let mut death = Death::plain(&Process::new(pid), now);
        let entries = death.read_book(file, devices);
        death.count(entries, now);
        death
    }

    fn plain(process: &Process, now: u64) -> Death {
        Death {
            pid: process.pid,
            user: process.user.clone(),
            name: process.name.clone(),
            command: process.command.clone(),
            container: process.container.clone(),
            started_at: process.started_at,
            died_at: Timestamp((now / 1_000_000) as i64),
            exit_code: None,
            signal: None,
            in_its_own_time: None,
            devices: Vec::new(),
            left: None,
            buffers: None,
            largest_buffers: Vec::new(),
        }
    }

    /// What its book says at the last, which outlives it.
    fn read_book(&mut self, file: &File, devices: &[Device]) -> Option<Vec<Entry>> {
        let book = book_in(file).ok()?;
        self.in_its_own_time = Some(book.is_closed);
        if !book.is_inexact {
            self.replace(held_by_book(&book, devices).into_iter());
            let live = book.chips.iter().flat_map(|chip| chip.counters.iter().map(|counter| counter.bytes));
            let lost = book.chips.iter().map(|chip| chip.left_bytes);
            self.left = book.is_closed.then(|| Bytes(live.chain(lost).fold(0, u64::saturating_add)));
        }
        let mut entries = Vec::new();
        buffers::add_book(&mut entries, self.pid, file, &book, devices).ok()?;
        Some(entries)
    }

    fn replace(&mut self, better: impl Iterator<Item = Held>) {
        for held in better {
            self.devices.retain(|known| known.id != held.id);
            self.devices.push(held);
        }
        self.devices.sort_by(|a, b| a.id.cmp(&b.id));
    }

    fn count(&mut self, entries: Option<Vec<Entry>>, now: u64) {
        self.buffers = entries.as_ref().map(Vec::len);
        self.largest_buffers = buffers::largest(entries.unwrap_or_default(), LARGEST, now);
    }

    /// It left something behind, for the rules of alerts.
    pub fn ended(&self) -> Option<Ended> {
        let left = self.left.filter(|left| left.0 > 0)?;
        let device = self.devices.first().filter(|_| self.devices.len() == 1).map(|held| held.id.clone());
        Some(Ended { pid: self.pid, started_at: self.started_at, name: self.name.clone(), device, left })
    }

    /// As clients hear of it.
    pub fn in_short(&self) -> client::Death {
        client::Death {
            pid: self.pid,
            user: self.user.clone(),
            name: self.name.clone(),
            command: self.command.clone(),
            died_at: self.died_at,
            exit_code: self.exit_code,
            signal: self.signal,
            devices: self.devices.clone(),
        }
    }

    /// Its bytes of all kinds on all chips.
    pub fn bytes(&self) -> u64 {
        self.devices.iter().filter_map(|held| held.usage.total()).sum::<Bytes>().0
    }
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
