//! What the service knew at one moment, for answers that take long: another thread makes them.

use super::buffers::{self, BufferPage};
use super::exits::{activity_in, held_by_book};
use super::live_processes::{Key, KnownProcess};
use super::merge;
use ledger::book::BookError;
use ledger::poc::ClientAccount;
use ledger::wire::Wanted;
use model::{Alert, Device, Fault, Held, Process, Snapshot};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use watch::handover::book_in;

pub struct ServiceView {
    pub sample: Arc<Snapshot>,
    pub sampled_at: Instant,
    /// In the order of their keys.
    pub processes: Vec<(Key, Arc<KnownProcess>)>,
    pub accounts: Vec<(Key, Arc<ClientAccount>)>,
    pub alerts: Vec<Alert>,
    /// Why nothing is written to the black box.
    pub black_box_fault: Option<Fault>,
}

/// What books that the sampler does not see say of their processes.
pub struct BookMemory {
    pub read: Instant,
    pub all: Vec<(Key, Process, Vec<Held>)>,
    faults: ProcessFaults,
}

/// What processes say of themselves and cannot be, with a limit for each user.
#[derive(Default, Clone)]
struct ProcessFaults {
    all: Vec<Fault>,
    of_user: BTreeMap<Option<u32>, usize>,
}

impl ProcessFaults {
    fn add(&mut self, pid: u32, user: Option<u32>, why: String) {
        let count = self.of_user.entry(user).or_default();
        *count += 1;
        if *count <= MOST_FAULTS {
            self.all.push(Fault::new(format!("/proc/{pid}"), why));
        }
    }

    /// With a line for each user who has more of them.
    fn listed(self) -> Vec<Fault> {
        let over = self.of_user.into_iter().filter(|(_, count)| *count > MOST_FAULTS);
        let line = |(user, count): (Option<u32>, usize)| {
            let user = user.map_or("an unknown user".to_owned(), |user| format!("user {user}"));
            let left_out = count - MOST_FAULTS;
            Fault::new(
                "/proc",
                format!("processes of {user} have {count} such faults: {left_out} of them are not listed"),
            )
        };
        let lines: Vec<Fault> = over.map(line).collect();
        self.all.into_iter().chain(lines).collect()
    }
}

impl BookMemory {
    pub fn none() -> BookMemory {
        BookMemory { read: Instant::now(), all: Vec::new(), faults: ProcessFaults::default() }
    }
}

/// Of so many processes, an answer takes the loop a millisecond or two.
const FEW: usize = 300;
/// As many faults of the processes of one user as are listed.
const MOST_FAULTS: usize = 100;

impl ServiceView {
    /// Whether an answer takes so long that another thread has to make it.
    pub fn is_large(&self) -> bool {
        self.sample.processes.len() + self.processes.len() + self.accounts.len() > FEW
            || self.processes.iter().any(|(_, known)| known.has_loose_book())
    }

    pub fn snapshot(&self) -> Snapshot {
        self.snapshot_with(&self.read_books())
    }

    /// The sample, with the books that were handed over and that the sampler does not see, and with what was reported.
    pub fn snapshot_with(&self, books: &BookMemory) -> Snapshot {
        let mut snapshot = Snapshot::clone(&self.sample);
        let mut faults = books.faults.clone();
        for (_, process, held) in books.all.iter().filter(|(key, ..)| self.get(*key).is_some()) {
            merge::overlay(&mut snapshot, process, held.clone());
        }
        for (key, account) in &self.accounts {
            let Some(known) = self.get(*key) else { continue };
            let (accepted, mut why) = merge::accepted(account, &snapshot.devices, |device| self.holds(known, device));
            let at = snapshot.processes.binary_search_by_key(&key.0, |process| process.pid).ok();
            let sampled = at.map(|at| &snapshot.processes[at]);
            let mut all = Vec::new();
            for (_, held) in accepted {
                let before = sampled.and_then(|process| process.devices.iter().find(|known| known.id == held.id));
                match merge::exceeds(&held, before, &snapshot.devices) {
                    None => all.push(held),
                    Some(reason) => why.push(reason),
                }
            }
            why.into_iter().for_each(|why| faults.add(key.0, known.identity.uid, why));
            if !all.is_empty() {
                merge::overlay(&mut snapshot, &known.identity.process, all);
            }
        }
        snapshot.faults.extend(faults.listed());
        snapshot.faults.extend(self.black_box_fault.clone());
        snapshot.alerts = self.alerts.clone();
        snapshot
    }

    pub fn read_books(&self) -> BookMemory {
        let (mut memory, devices) = (BookMemory::none(), &self.sample.devices);
        for (key, known) in self.processes.iter().filter(|(_, known)| known.has_loose_book()) {
            let book = known.book.as_ref().and_then(|file| book_in(file).ok());
            let Some(book) = book.filter(|book| !book.is_inexact) else { continue };
            let sampled = known.sampled.as_deref().unwrap_or_default();
            let mut all = Vec::new();
            let activity = known.book.as_ref().and_then(|file| activity_in(file, &book));
            for held in held_by_book(&book, activity.as_ref(), devices) {
                match merge::impossible(&held, sampled, devices) {
                    None => all.push(held),
                    Some(why) => memory.faults.add(key.0, known.identity.uid, why),
                }
            }
            if !all.is_empty() {
                let mut process = Process { agent: Some(book.producer.clone()), ..known.identity.process.clone() };
                if let Some(activity) = &activity {
                    activity.add_to(&mut process, None);
                }
                memory.all.push((*key, process, all));
            }
        }
        memory
    }

    /// Live buffers of all processes.
    pub fn buffers(&self, wanted: &Wanted) -> BufferPage {
        let mut page = BufferPage::new(wanted, now());
        let devices = &self.sample.devices;
        for (key, known) in self.processes.iter().filter(|(key, _)| wanted.pid.is_none_or(|pid| key.0 == pid)) {
            let from_book = known.book.as_ref().map(|file| {
                let book = book_in(file)?;
                buffers::add_book(&mut page, key.0, file, &book, devices)?;
                page.unlisted = book.untabled.saturating_add(page.unlisted);
                Ok::<(), BookError>(())
            });
            // A book is better than reports.
            match from_book {
                Some(Ok(())) => continue,
                Some(Err(error)) => page.faults.push(format!("the book of pid {}: {error}", key.0)),
                None => {}
            }
            if let Ok(at) = self.accounts.binary_search_by_key(key, |(key, _)| *key) {
                let account = &self.accounts[at].1;
                buffers::add_account(&mut page, key.0, account, devices, |_| true);
                page.unlisted = account.refused.saturating_add(page.unlisted);
            }
        }
        page
    }

    fn get(&self, key: Key) -> Option<&KnownProcess> {
        let at = self.processes.binary_search_by_key(&key, |(key, _)| *key).ok()?;
        Some(&self.processes[at].1)
    }

    fn holds(&self, known: &KnownProcess, device: &Device) -> Option<bool> {
        let parent = known.identity.process.parent_pid.and_then(|pid| {
            let after = self.processes.partition_point(|(key, _)| key.0 <= pid);
            let (key, parent) = self.processes.get(after.checked_sub(1)?)?;
            (key.0 == pid).then_some(&**parent)
        });
        holds(&self.sample.devices, self.sampled_at, known, parent, device)
    }
}

/// Whether a process holds a chip. `None` where that cannot be known: the driver does not list it, the process came after the
/// sample, or has inherited an open file.
pub fn holds(
    devices: &[Device],
    sampled_at: Instant,
    known: &KnownProcess,
    parent: Option<&KnownProcess>,
    device: &Device,
) -> Option<bool> {
    let gateway = device.id.gateway();
    let is_held = |known: &KnownProcess| known.sampled.iter().flatten().any(|held| held.id.gateway() == gateway);
    let names_all = |other: &Device| other.id.index() == gateway && other.names_all_holders;
    if is_held(known) {
        return Some(true);
    }
    let is_known = known.since < sampled_at && devices.iter().any(names_all);
    (is_known && !parent.is_some_and(is_held)).then_some(false)
}

/// Nanoseconds since 1970, as books count.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faults_of_one_user_are_a_hundred_and_a_line() {
        let mut faults = ProcessFaults::default();
        (1..=5000).for_each(|pid| faults.add(pid, Some(7), "reports memory of unknown device 9".into()));
        faults.add(1, Some(8), "reports more DRAM than device 0 has".into());
        let listed = faults.listed();
        assert_eq!(listed.len(), 102);
        assert_eq!(listed[101].reason, "processes of user 7 have 5000 such faults: 4900 of them are not listed");
        assert_eq!(listed[100].path, "/proc/1");
    }
}
