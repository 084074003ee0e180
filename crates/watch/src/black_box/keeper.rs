//! Writes a black box. It knows no thread and no clock: who calls it says what time it is.
//!
//! A disk that fails costs snapshots, never more: they are counted, the reason is kept, and the disk is tried again after a pause.

use super::folder::BoxFolder;
use super::tidy::tidy;
use super::{ENOUGH_TEXT, FIRST_PAUSE, LONGEST_PAUSE, LONGEST_WAIT, SHORTEST_STEP};
use crate::record::chunk_file::{PackedChunk, Packer, PendingChunk, facts, line};
use crate::record::disk;
use crate::record::format::{ChunkKind, HEADER};
use crate::record::writer::survive_limits;
use model::{Event, Host, LogEntry, RecordingStart, Snapshot, Timestamp, Weight};
use rustix::io::Errno;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Writes a black box.
pub struct Keeper {
    path: PathBuf,
    limit: u64,
    boot_id: Option<String>,
    /// Absent until the first chunk is written, and after a failure.
    folder: Option<BoxFolder>,
    packer: Packer,
    snapshots: PendingChunk,
    log: PendingChunk,
    /// What begins each segment.
    facts: String,
    /// When the oldest of what is pending came.
    began: Option<Instant>,
    /// When the last snapshot was kept, and how long after the one before.
    kept: Option<(Instant, Duration)>,
    trouble: Option<Trouble>,
    /// A segment was removed on a full disk, and that has not helped.
    freed_in_vain: bool,
    /// Snapshots that were not written.
    pub dropped: u64,
}

/// Why nothing is written.
#[derive(Debug)]
struct Trouble {
    reason: String,
    next: Instant,
    pause: Duration,
}

impl Keeper {
    /// One that has touched nothing yet. The limit is in bytes.
    pub fn new(path: PathBuf, limit: u64, boot_id: Option<String>) -> io::Result<Keeper> {
        survive_limits();
        Ok(Keeper {
            path,
            limit,
            boot_id,
            folder: None,
            packer: Packer::new()?,
            snapshots: PendingChunk::new(ChunkKind::Snapshots, ENOUGH_TEXT),
            log: PendingChunk::new(ChunkKind::Log, ENOUGH_TEXT),
            facts: facts(&Host::default())?,
            began: None,
            kept: None,
            trouble: None,
            freed_in_vain: false,
            dropped: 0,
        })
    }

    /// Opens the folder before there is anything to write, so that a problem is known from the start.
    pub fn begin(&mut self, time: Timestamp, now: Instant) {
        let opened = self.open(time);
        self.note(opened, now);
    }

    /// Why nothing is written at the moment.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_ref().map(|trouble| &*trouble.reason)
    }

    /// How many bytes the folder has, and since when there are snapshots. Absent while it cannot be written.
    pub fn extent(&self) -> Option<(u64, Timestamp)> {
        let folder = self.folder.as_ref()?;
        let current = folder.current.as_ref().map(|current| current.name);
        let first = folder.segments.first().map(|segment| segment.name).or(current)?.first;
        Some((folder.used(), Timestamp(i64::try_from(first).unwrap_or(0))))
    }

    /// Changes how large the folder may become. Obeyed with the next chunk.
    pub fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Adds what happened, and the snapshot that shows it. What matters much is written at once, together with it.
    pub fn add(&mut self, snapshot: Option<&Snapshot>, entries: &[LogEntry], now: Instant) {
        entries.iter().for_each(|entry| self.log(entry, now));
        if let Some(snapshot) = snapshot {
            self.push(snapshot, now);
        }
        let is_bad = |entry: &LogEntry| matches!(entry, LogEntry::Event(Event { weight: Weight::Bad, .. }));
        if entries.iter().any(is_bad) {
            self.flush(now);
        }
    }

    /// Adds a snapshot, unless the last one was added a moment ago.
    fn push(&mut self, snapshot: &Snapshot, now: Instant) {
        if self.kept.is_some_and(|(last, _)| now.saturating_duration_since(last) < SHORTEST_STEP) {
            return;
        }
        let time = snapshot.taken_at;
        if self.kept.is_none() {
            self.facts = facts(&snapshot.host).unwrap_or_else(|_| self.facts.clone());
        }
        let pause = self.kept.map_or(LONGEST_WAIT, |(last, _)| now.saturating_duration_since(last));
        // The next one is about as long as the last.
        let has_room = self.snapshots.has_room(self.snapshots.last_length);
        if self.snapshots.lines > 0 && (!has_room || time < self.snapshots.times.1) {
            self.flush(now);
            // The disk cannot be written, and memory has its limit, too.
            if self.snapshots.lines > 0 {
                self.drop_snapshots();
            }
        }
        if self.snapshots.add_json(snapshot, time, "a sample").is_err() {
            self.dropped += 1;
            return;
        }
        self.kept = Some((now, pause));
        let began = *self.began.get_or_insert(now);
        if self.snapshots.is_full() || (now + pause).saturating_duration_since(began) >= LONGEST_WAIT {
            self.flush(now);
        }
    }

    fn log(&mut self, entry: &LogEntry, now: Instant) {
        let Ok(line) = line(entry, entry.time(), "an entry") else { return };
        if !self.log.has_room(line.len()) {
            self.flush(now);
            if !self.log.has_room(line.len()) {
                self.log.clear();
            }
        }
        self.log.add(&line, entry.time());
        self.began.get_or_insert(now);
    }

    /// When there will be something to do, though nothing is added.
    pub fn due(&self) -> Option<Instant> {
        let written = self.began.map(|began| began + LONGEST_WAIT);
        match &self.trouble {
            Some(trouble) => written.map(|written| written.max(trouble.next)),
            None => written,
        }
    }

    /// Writes what has waited long enough.
    pub fn turn(&mut self, now: Instant) {
        if self.due().is_some_and(|due| due <= now) {
            self.flush(now);
        }
    }

    /// Writes what is pending, and ends the last segment. Without more ado where the disk has failed.
    pub fn finish(mut self, now: Instant) {
        self.flush(now);
        if let Some(folder) = &mut self.folder {
            let _ = folder.finish_segment();
        }
    }

    fn flush(&mut self, now: Instant) {
        let is_too_early = self.trouble.as_ref().is_some_and(|trouble| now < trouble.next);
        if is_too_early || self.snapshots.lines + self.log.lines == 0 {
            return;
        }
        let mut written = self.write();
        if written.as_ref().is_err_and(is_full) && !self.freed_in_vain {
            self.freed_in_vain = true;
            written = self.free().and_then(|()| self.write());
        }
        self.freed_in_vain &= written.is_err();
        self.note(written, now);
    }

    /// Removes the oldest segment of a full disk.
    fn free(&mut self) -> io::Result<()> {
        let folder = self.folder.as_mut().ok_or_else(|| io::Error::from(io::ErrorKind::StorageFull))?;
        folder.remove_oldest().map(drop)
    }

    /// Remembers how it went. After a failure nothing that was known of the folder is relied on.
    fn note(&mut self, result: io::Result<()>, now: Instant) {
        let Err(error) = result else {
            self.trouble = None;
            return;
        };
        self.folder = None;
        let pause = self.trouble.as_ref().map_or(FIRST_PAUSE, |trouble| (trouble.pause * 2).min(LONGEST_PAUSE));
        self.trouble = Some(Trouble { reason: error.to_string(), next: now + pause, pause });
    }

    fn drop_snapshots(&mut self) {
        self.dropped += u64::from(self.snapshots.lines);
        self.snapshots.clear();
    }

    /// Opens the folder. What is written next begins with when that was.
    fn open(&mut self, time: Timestamp) -> io::Result<()> {
        if self.folder.is_some() {
            return Ok(());
        }
        let mut folder = BoxFolder::open(&self.path, self.limit)?;
        tidy(&mut folder, &mut self.packer)?;
        let start = LogEntry::Start(RecordingStart {
            time,
            ttmon: env!("CARGO_PKG_VERSION").into(),
            boot_id: self.boot_id.clone(),
            ended_well: folder.ended_well,
        });
        let line = line(&start, time, "an entry")?;
        if self.log.has_room(line.len()) {
            self.log.add(&line, time);
        }
        self.folder = Some(folder);
        Ok(())
    }

    /// Writes what is pending as one piece, and waits until it is on the disk.
    fn write(&mut self) -> io::Result<()> {
        let pending = if self.snapshots.lines > 0 { &self.snapshots } else { &self.log };
        let time = pending.times.0;
        self.open(time)?;
        let Some(folder) = &mut self.folder else { return Ok(()) };
        folder.limit = self.limit;
        let packed = [&self.log, &self.snapshots].map(|pending| self.packer.pack(pending));
        let chunks: Vec<PackedChunk> = packed.into_iter().filter_map(|chunk| chunk.ok().flatten()).collect();
        if folder.is_removed() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "its files were removed"));
        }
        if folder.is_segment_full() {
            folder.begin_segment(time.0, &self.facts)?;
            tidy(folder, &mut self.packer)?;
        }
        let more: usize = chunks.iter().map(|chunk| chunk.bytes.len() + HEADER).sum();
        if more as u64 > self.limit / 4 {
            // A machine that is too large for the limit.
            self.dropped += u64::from(self.snapshots.lines);
            self.forget_pending();
            return Err(io::Error::other(format!("samples are too large for {} MiB", self.limit >> 20)));
        }
        folder.make_room(more as u64)?;
        let Some(current) = &mut folder.current else { return Ok(()) };
        current.chunks.add(&chunks)?;
        let synced = disk::sync(&current.chunks.file);
        // Also when that has failed: it is in the file, and shall not be there twice.
        self.forget_pending();
        synced
    }

    fn forget_pending(&mut self) {
        self.snapshots.clear();
        self.log.clear();
        self.began = None;
    }
}

/// Whether removing something may help.
fn is_full(error: &io::Error) -> bool {
    [Errno::NOSPC, Errno::DQUOT].map(|errno| Some(errno.raw_os_error())).contains(&error.raw_os_error())
}
