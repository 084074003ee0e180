//! Processes that exited, and what they held then.

use super::buffers::{self, BufferPage};
use super::live_processes::{Key, KnownProcess};
use super::merge;
use ledger::book;
use ledger::poc::ClientAccount;
use ledger::wire::Wanted;
use model::{Bytes, Device, ExitRecord, Held, Process, Source, Timestamp, chip_with_number};
use sources::ProcessActivity;
use sources::WaitStatus;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fs::File;
use std::sync::Arc;
use watch::handover::book_in;

pub struct Exits {
    /// The latest first.
    pub all: VecDeque<Arc<ExitRecord>>,
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
        self.all.push_front(Arc::new(exit));
        if self.all.len() <= self.most {
            return;
        }
        // The oldest of the user who has the most of them: no user drives out the records of others.
        let mut users: HashMap<Option<&str>, (usize, usize)> = HashMap::new();
        for (at, exit) in self.all.iter().enumerate() {
            let (count, oldest) = users.entry(exit.user.as_deref()).or_default();
            (*count, *oldest) = (*count + 1, at);
        }
        if let Some((_, oldest)) = users.into_values().max() {
            self.all.remove(oldest);
        }
    }

    /// Those since then, in milliseconds since 1970.
    pub fn since(&self, time: i64) -> impl Iterator<Item = &ExitRecord> {
        self.all.iter().map(|exit| &**exit).take_while(move |exit| exit.died_at.0 >= time)
    }
}

/// The record of a process that was known.
pub fn exit_record(
    key: Key,
    live: &KnownProcess,
    account: Option<&ClientAccount>,
    ended: Option<WaitStatus>,
    devices: &[Device],
    holds: impl Fn(&Device) -> Option<bool>,
    now: u64,
) -> ExitRecord {
    let mut exit = ExitRecord::of(&live.identity.process, milliseconds(now));
    exit.devices = live.sampled.clone().unwrap_or_default();
    let mut largest = None;
    if let Some(account) = account {
        // What was refused while it ran is no figure of its end either.
        let (accepted, _) = merge::accepted(account, devices, holds);
        let numbers: BTreeSet<i32> = accepted.iter().map(|(number, _)| *number).collect();
        replace(&mut exit, accepted.into_iter().map(|(_, held)| held));
        let page = largest.insert(largest_of(now));
        buffers::add_account(page, key.0, account, devices, |device| numbers.contains(&device));
    }
    let sampled = live.sampled.as_deref();
    if let Some(from_book) = live.book.as_ref().and_then(|book| read_book(&mut exit, book, sampled, devices, now)) {
        largest = Some(from_book);
    }
    add_buffers(&mut exit, largest);
    match ended {
        Some(WaitStatus::Exited(code)) => exit.exit_code = Some(code),
        Some(WaitStatus::Killed(signal)) => exit.signal = Some(signal),
        None => {}
    }
    exit
}

/// The record of a process that exited before it could be identified, but had handed over its book.
pub fn record_of_book(pid: u32, file: &File, devices: &[Device], now: u64) -> ExitRecord {
    let mut exit = ExitRecord::of(&Process::new(pid), milliseconds(now));
    let largest = read_book(&mut exit, file, None, devices, now);
    add_buffers(&mut exit, largest);
    exit
}

fn milliseconds(nanoseconds: u64) -> Timestamp {
    Timestamp((nanoseconds / 1_000_000) as i64)
}

/// Takes the last state of its book, which outlives the process, where the process can have had that.
fn read_book(
    exit: &mut ExitRecord,
    file: &File,
    sampled: Option<&[Held]>,
    devices: &[Device],
    now: u64,
) -> Option<BufferPage> {
    let book = book_in(file).ok()?;
    exit.in_its_own_time = Some(book.is_closed);
    if !book.is_inexact {
        let is_possible = |held: &Held| match sampled {
            Some(sampled) => merge::impossible(held, sampled, devices).is_none(),
            None => merge::too_much(held, devices).is_none(),
        };
        let activity = activity_in(file, &book);
        replace(exit, held_by_book(&book, activity.as_ref(), devices).into_iter().filter(is_possible));
        if let Some(activity) = activity {
            exit.launches_total = Some(activity.programs);
            exit.operations = activity.operations.into_iter().take(Process::OPERATIONS).collect();
        }
        let live = book.chips.iter().flat_map(|chip| chip.counters.iter().map(|counter| counter.bytes));
        let lost = book.chips.iter().map(|chip| chip.left_bytes);
        exit.left = book.is_closed.then(|| Bytes(live.chain(lost).fold(0, u64::saturating_add)));
    }
    let mut page = largest_of(now);
    buffers::add_book(&mut page, exit.pid, file, &book, devices).ok()?;
    Some(page)
}

fn replace(exit: &mut ExitRecord, better: impl Iterator<Item = Held>) {
    for held in better {
        exit.devices.retain(|known| known.id != held.id);
        exit.devices.push(held);
    }
    exit.devices.sort_by(|a, b| a.id.cmp(&b.id));
}

fn largest_of(now: u64) -> BufferPage {
    BufferPage::new(&Wanted { limit: Some(LARGEST), ..Wanted::default() }, now)
}

fn add_buffers(exit: &mut ExitRecord, largest: Option<BufferPage>) {
    exit.buffers = largest.as_ref().map(BufferPage::total);
    exit.largest_buffers = largest.map(|mut page| page.listed()).unwrap_or_default();
}

/// What the process of a book did on its chips. What contradicts itself is left out.
pub fn activity_in(file: &File, book: &book::Book) -> Option<ProcessActivity> {
    ProcessActivity::of(book::of_file(file), book).ok().flatten()
}

/// What a book says of the chips that its numbers name.
pub fn held_by_book(book: &book::Book, activity: Option<&ProcessActivity>, devices: &[Device]) -> Vec<Held> {
    let memory = sources::process_memory(book, None);
    let chips = book.chips.iter().zip(memory.chips).enumerate();
    let held = chips.filter_map(|(place, (chip, memory))| {
        let id = chip_with_number(devices, chip.unique_id?)?;
        let (usage, exact) = (memory.kinds.usage(), Some(Box::new(memory.kinds)));
        let activity = activity.and_then(|activity| activity.chips.get(place).cloned()).unwrap_or_default();
        Some(Held { usage, source: Some(Source::Exact), exact, activity, ..Held::new(id) })
    });
    held.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exits_of_one_user_do_not_drive_out_those_of_another() {
        let mut exits = Exits::up_to(4);
        let exit = |user: &str, pid| {
            let process = Process { user: Some(user.to_owned()), ..Process::new(pid) };
            ExitRecord::of(&process, Timestamp(pid.into()))
        };
        exits.add(exit("one", 1));
        (2..100).for_each(|pid| exits.add(exit("many", pid)));
        assert_eq!(exits.all.iter().map(|exit| exit.pid).collect::<Vec<_>>(), [99, 98, 97, 1]);
        assert_eq!(exits.total, 99);
    }
}
