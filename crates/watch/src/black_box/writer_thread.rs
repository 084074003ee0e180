//! The thread that writes a black box, so that who takes samples never waits for a disk.

use super::keeper::Keeper;
use alerts::log::{LogLevel, log};
use model::{Fault, LogEntry, Snapshot, Timestamp};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Where a black box is, and how large it may become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlackBoxPlace {
    /// Folder of its files.
    pub folder: PathBuf,
    /// Size limit in MiB.
    pub mib: u64,
}

/// How a black box is.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct BlackBoxStatus {
    /// Size of its files.
    pub bytes: Option<u64>,
    /// The first snapshot that is kept.
    pub since: Option<Timestamp>,
    /// Why nothing is written.
    pub trouble: Option<String>,
    /// Snapshots that were not written.
    pub dropped: u64,
}

/// A black box that is being written.
pub struct BlackBox {
    place: BlackBoxPlace,
    queue: SyncSender<Item>,
    shared: Arc<Shared>,
    /// Entries for which there was no room.
    waiting: Vec<LogEntry>,
    /// Snapshots for which there was no room, since when there is none.
    unsent: u64,
    is_stuck: bool,
    ended: Receiver<()>,
}

struct Shared {
    status: Mutex<BlackBoxStatus>,
    limit: AtomicU64,
}

type Item = (Option<Arc<Snapshot>>, Vec<LogEntry>);

/// So many snapshots wait for the disk at the most.
const QUEUE: usize = 16;
/// The same of entries.
const MOST_WAITING: usize = 1000;

impl BlackBox {
    /// Begins to write. Problems of the disk are for `status` and the log.
    pub fn start(place: BlackBoxPlace, boot_id: Option<String>) -> io::Result<BlackBox> {
        let limit = place.mib << 20;
        let mut keeper = Keeper::new(place.folder.clone(), limit, boot_id)?;
        let shared = Arc::new(Shared { status: Mutex::default(), limit: AtomicU64::new(limit) });
        let ((queue, items), (end, ended)) = (sync_channel(QUEUE), sync_channel(1));
        let (written, folder) = (shared.clone(), place.folder.clone());
        let run = move || {
            keeper.begin(alerts::wall(), Instant::now());
            let mut reporter = Reporter { folder, shared: written, trouble: None };
            reporter.report(&keeper);
            write(keeper, &items, &mut reporter);
            let _ = end.send(());
        };
        std::thread::Builder::new().name("ttmon-black-box".into()).spawn(run)?;
        Ok(BlackBox { place, queue, shared, waiting: Vec::new(), unsent: 0, is_stuck: false, ended })
    }

    /// Folder and size limit.
    pub fn place(&self) -> &BlackBoxPlace {
        &self.place
    }

    /// Adds a snapshot, and what happened. Never waits: what a disk that is stuck has no room for is dropped and counted.
    pub fn add(&mut self, snapshot: Option<Arc<Snapshot>>, entries: Vec<LogEntry>) {
        self.waiting.extend(entries);
        let has_snapshot = snapshot.is_some();
        match self.queue.try_send((snapshot, std::mem::take(&mut self.waiting))) {
            Ok(()) if self.is_stuck => {
                log(LogLevel::Info, "black-box-goes-on", &[("dropped", &self.unsent)]);
                self.is_stuck = false;
            }
            Ok(()) => {}
            Err(error) => {
                let (std::sync::mpsc::TrySendError::Full(item) | std::sync::mpsc::TrySendError::Disconnected(item)) =
                    error;
                self.waiting = item.1;
                self.waiting.truncate(MOST_WAITING);
                self.unsent += u64::from(has_snapshot);
                if !std::mem::replace(&mut self.is_stuck, true) {
                    let folder = self.place.folder.display();
                    log(LogLevel::Error, "black-box-stuck", &[("path", &folder), ("reason", &STUCK)]);
                }
            }
        }
    }

    /// Changes how large it may become.
    pub fn set_limit(&mut self, mib: u64) {
        self.place.mib = mib;
        self.shared.limit.store(mib << 20, Relaxed);
    }

    /// Size, age and problems of the black box.
    pub fn status(&self) -> BlackBoxStatus {
        let mut status = self.shared.status.lock().unwrap_or_else(PoisonError::into_inner).clone();
        status.dropped += self.unsent;
        if self.is_stuck {
            status.trouble = Some(STUCK.into());
        }
        status
    }

    /// For the snapshot, when nothing is written. Without a number that grows: that would be another fault with each sample.
    pub fn fault(&self) -> Option<Fault> {
        let reason = format!("the black box is not written: {}", self.status().trouble?);
        Some(Fault::new(self.place.folder.display().to_string(), reason))
    }

    /// Ends. What is pending is written, if the disk is not slower than this.
    pub fn finish(mut self, patience: Duration) {
        if !self.waiting.is_empty() {
            self.add(None, Vec::new());
        }
        drop(self.queue);
        if self.ended.recv_timeout(patience).is_err() {
            log(LogLevel::Error, "black-box-stuck", &[("path", &self.place.folder.display()), ("reason", &STUCK)]);
        }
    }
}

const STUCK: &str = "the disk does not answer";

/// What the thread does.
fn write(mut keeper: Keeper, items: &Receiver<Item>, reporter: &mut Reporter) {
    loop {
        let wait = keeper.due().map(|due| due.saturating_duration_since(Instant::now()));
        let item = match wait {
            Some(wait) => items.recv_timeout(wait),
            None => items.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let now = Instant::now();
        keeper.set_limit(reporter.shared.limit.load(Relaxed));
        match item {
            Ok((snapshot, entries)) => keeper.add(snapshot.as_deref(), &entries, now),
            Err(RecvTimeoutError::Timeout) => keeper.turn(now),
            Err(RecvTimeoutError::Disconnected) => break,
        }
        reporter.report(&keeper);
    }
    keeper.finish(Instant::now());
}

/// Says how it goes: in the status, and in the log when that has changed.
struct Reporter {
    folder: PathBuf,
    shared: Arc<Shared>,
    trouble: Option<String>,
}

impl Reporter {
    fn report(&mut self, keeper: &Keeper) {
        let trouble = keeper.trouble().map(str::to_owned);
        let folder = self.folder.display();
        match (&self.trouble, &trouble) {
            (None, Some(reason)) => {
                let reason = format!("{reason}; it is tried again");
                log(LogLevel::Error, "black-box-not-written", &[("path", &folder), ("reason", &reason)]);
            }
            (Some(_), None) => {
                log(LogLevel::Info, "black-box-goes-on", &[("path", &folder), ("dropped", &keeper.dropped)]);
            }
            _ => {}
        }
        self.trouble.clone_from(&trouble);
        let (bytes, since) = keeper.extent().unzip();
        let status = BlackBoxStatus { bytes, since, trouble, dropped: keeper.dropped };
        *self.shared.status.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Event, Weight};

    #[test]
    fn a_disk_that_is_stuck_costs_samples_and_no_events() {
        let ((queue, items), (_end, ended)) = (sync_channel(QUEUE), sync_channel(1));
        let shared = Arc::new(Shared { status: Mutex::default(), limit: AtomicU64::new(0) });
        let place = BlackBoxPlace { folder: "/srv/box".into(), mib: 8 };
        let mut stuck = BlackBox { place, queue, shared, waiting: Vec::new(), unsent: 0, is_stuck: false, ended };
        let snapshot = || Some(Arc::new(Snapshot::empty()));
        let entry = |text: &str| LogEntry::Event(Event::new(Timestamp(0), Weight::Note, None, text.into()));
        (0..QUEUE).for_each(|_| stuck.add(snapshot(), Vec::new()));
        assert_eq!(stuck.fault(), None);
        stuck.add(snapshot(), vec![entry("one")]);
        stuck.add(snapshot(), vec![entry("two")]);
        let expected = Fault::new("/srv/box", "the black box is not written: the disk does not answer");
        assert_eq!((stuck.fault(), stuck.status().dropped), (Some(expected), 2));
        // It answers again: samples were lost, events were not.
        items.try_iter().for_each(drop);
        stuck.add(snapshot(), vec![entry("three")]);
        assert_eq!(stuck.fault(), None);
        assert_eq!(items.recv().unwrap().1, ["one", "two", "three"].map(entry));
        let began = Instant::now();
        stuck.finish(Duration::from_millis(50));
        assert!(began.elapsed() < Duration::from_secs(5), "nothing waits for it at the end");
    }
}
