//! The folder of a black box: its files, how large they are, and the lock that keeps other services away.

use super::share;
use crate::record::chunk_file::ChunkFile;
use crate::record::disk;
use crate::record::format::{HEAD, MAGIC, READABLE, u32_at};
use crate::record::reader::RecordedFile;
use crate::record::segment_name::SegmentName;
use rustix::fs::{FlockOperation, OFlags, flock};
use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The files of a black box. Nothing else writes to them while this exists.
pub struct BoxFolder {
    pub path: PathBuf,
    pub limit: u64,
    /// Those that are complete, the oldest first.
    pub segments: Vec<Segment>,
    /// What other files take.
    others: u64,
    /// The one that grows.
    pub current: Option<OpenSegment>,
    /// What a temporary file will take when it is finished.
    pub temporary: u64,
    /// Whether what wrote before had ended by itself. Absent when nothing did.
    pub ended_well: Option<bool>,
    /// Of new files: whoever may list the folder may read what is in it.
    file_mode: u32,
    _lock: File,
}

#[derive(Debug, Clone, Copy)]
pub struct Segment {
    pub name: SegmentName,
    pub bytes: u64,
    /// False for one of a later version: it is left alone.
    pub is_readable: bool,
}

pub struct OpenSegment {
    pub name: SegmentName,
    pub chunks: ChunkFile,
}

/// Only the owner may open it: another one could hold the lock.
const LOCK: &str = "lock";
const TEMPORARY: &str = "new.tmp";
/// A folder that is made here is the user's alone.
const FOLDER_MODE: u32 = 0o700;

impl BoxFolder {
    /// Opens a folder, or makes it. What an earlier end has left over is removed.
    pub fn open(path: &Path, limit: u64) -> io::Result<BoxFolder> {
        if !path.is_dir() {
            DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)?;
        }
        let lock = lock(&path.join(LOCK))?;
        let file_mode = path.metadata()?.mode() & 0o044 | 0o600;
        let mut folder = BoxFolder {
            path: path.to_owned(),
            limit,
            segments: Vec::new(),
            others: 0,
            current: None,
            temporary: 0,
            ended_well: None,
            file_mode,
            _lock: lock,
        };
        folder.scan()?;
        folder.clean()?;
        let last = folder.segments.last().map(|last| RecordedFile::open(&folder.place(last.name)));
        folder.ended_well = last.map(|last| last.is_ok_and(|last| last.is_finished));
        Ok(folder)
    }

    pub fn place(&self, name: SegmentName) -> PathBuf {
        self.path.join(name.to_string())
    }

    /// What all files take, once they are finished.
    pub fn used(&self) -> u64 {
        let current = self.current.as_ref().map_or(0, |current| current.chunks.finished_length());
        self.segments.iter().map(|segment| segment.bytes).sum::<u64>() + current + self.temporary + self.others
    }

    /// Looks at which files there are, and how large they are.
    pub fn scan(&mut self) -> io::Result<()> {
        let (mut segments, mut others) = (Vec::new(), 0);
        let current = self.current.as_ref().map(|current| current.name);
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            // One that was removed meanwhile is none.
            let Ok(metadata) = entry.metadata() else { continue };
            match SegmentName::of(&entry.path()).filter(|_| metadata.is_file()) {
                Some(name) if Some(name) == current => {}
                Some(name) => {
                    let known = self.segments.iter().find(|known| known.name == name);
                    let is_readable = match known {
                        Some(known) => known.is_readable,
                        None => !is_of_later_version(&entry.path()),
                    };
                    segments.push(Segment { name, bytes: metadata.len(), is_readable });
                }
                None if metadata.is_file() && entry.file_name() != LOCK => others += metadata.len(),
                None => {}
            }
        }
        segments.sort_by_key(|segment| segment.name);
        (self.segments, self.others) = (segments, others);
        Ok(())
    }

    /// Removes what has been replaced, temporary files, and files without a beginning, which a power cut may leave.
    fn clean(&mut self) -> io::Result<()> {
        disk::remove(&self.path.join(TEMPORARY))?;
        let names: Vec<SegmentName> =
            self.segments.iter().filter(|segment| segment.is_readable).map(|segment| segment.name).collect();
        for segment in self.segments.clone() {
            let is_replaced = names.iter().any(|other| other.replaces(&segment.name));
            let path = self.place(segment.name);
            if segment.is_readable && (is_replaced || !has_beginning(&path)) {
                disk::remove(&path)?;
            }
        }
        self.scan()
    }

    /// Removes the oldest segments until there is room for so many bytes more. The current one stays.
    pub fn make_room(&mut self, bytes: u64) -> io::Result<()> {
        while self.used() + bytes > self.limit {
            if !self.remove_oldest()? {
                let what = format!("files that are not its own leave no room in {} MiB", self.limit >> 20);
                return Err(io::Error::other(what));
            }
        }
        Ok(())
    }

    /// Whether there was one that could be removed.
    pub fn remove_oldest(&mut self) -> io::Result<bool> {
        let Some(at) = self.segments.iter().position(|segment| segment.is_readable) else { return Ok(false) };
        disk::remove(&self.place(self.segments[at].name))?;
        self.segments.remove(at);
        Ok(true)
    }

    /// Begins the segment of a time, and finishes the one before it. In this order, so that the last one of a black box is finished
    /// only when the service ended by itself.
    pub fn begin_segment(&mut self, time: i64, facts: &str) -> io::Result<()> {
        let last = self.segments.last().map(|segment| segment.name.last);
        let last = last.max(self.current.as_ref().map(|current| current.name.last));
        let order = u64::try_from(time).unwrap_or(0).max(last.map_or(0, |last| last + 1));
        let name = SegmentName::new(order);
        self.make_room(SMALL + facts.len() as u64)?;
        let mut chunks = ChunkFile::new(self.create(&self.place(name))?);
        let begun = chunks.write_head(facts).and_then(|()| disk::sync(&chunks.file)).and_then(|()| self.sync());
        if let Err(error) = begun {
            let _ = disk::remove(&self.place(name));
            return Err(error);
        }
        let finished = self.finish_segment();
        self.current = Some(OpenSegment { name, chunks });
        finished
    }

    /// Finishes the segment that grows.
    pub fn finish_segment(&mut self) -> io::Result<()> {
        let Some(mut current) = self.current.take() else { return Ok(()) };
        let finished = current.chunks.write_index().and_then(|()| disk::sync(&current.chunks.file));
        let bytes = current.chunks.finished_length();
        self.segments.push(Segment { name: current.name, bytes, is_readable: true });
        finished
    }

    /// Whether the segment that grows is as long as it shall be.
    pub fn is_segment_full(&self) -> bool {
        let full = share(self.limit, super::SEGMENT_SHARE);
        self.current.as_ref().is_none_or(|current| current.chunks.finished_length() >= full)
    }

    /// Whether somebody has removed the segment that grows.
    pub fn is_removed(&self) -> bool {
        let links = |current: &OpenSegment| current.chunks.file.metadata().map_or(1, |metadata| metadata.nlink());
        self.current.as_ref().is_some_and(|current| links(current) == 0)
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        let file = disk::create(path)?;
        // Whatever the umask is.
        file.set_permissions(Permissions::from_mode(self.file_mode))?;
        Ok(file)
    }

    /// A new temporary file.
    pub fn create_temporary(&self) -> io::Result<(PathBuf, File)> {
        let path = self.path.join(TEMPORARY);
        disk::remove(&path)?;
        let file = self.create(&path)?;
        Ok((path, file))
    }

    /// Gives the temporary file its name, and removes what it replaces.
    pub fn replace(&mut self, temporary: &Path, bytes: u64, name: SegmentName) -> io::Result<()> {
        disk::rename(temporary, &self.place(name))?;
        self.temporary = 0;
        let at = self.segments.partition_point(|segment| segment.name < name);
        self.segments.insert(at, Segment { name, bytes, is_readable: true });
        self.sync()?;
        while let Some(at) = self.segments.iter().position(|old| name.replaces(&old.name)) {
            disk::remove(&self.place(self.segments[at].name))?;
            self.segments.remove(at);
        }
        Ok(())
    }

    /// Waits until the names of the files are on the disk.
    fn sync(&self) -> io::Result<()> {
        disk::sync(&File::open(&self.path)?)
    }
}

/// What begins and ends a segment, apart from the facts.
const SMALL: u64 = 64;

/// Held until the file is dropped.
fn lock(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = File::options().write(true).create(true).truncate(false).mode(0o600).custom_flags(flags).open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => Err(io::Error::other("another process keeps its black box there")),
        // Some file systems have no locks.
        _ => Ok(file),
    }
}

fn is_of_later_version(path: &Path) -> bool {
    head_of(path).is_some_and(|head| head[..8] == MAGIC && u32_at(&head, 8) > *READABLE.end())
}

fn has_beginning(path: &Path) -> bool {
    head_of(path).is_some_and(|head| head[..8] == MAGIC)
}

fn head_of(path: &Path) -> Option<[u8; HEAD]> {
    let mut head = [0; HEAD];
    File::open(path).ok()?.read_exact_at(&mut head, 0).ok()?;
    Some(head)
}
