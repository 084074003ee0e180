//! Reads a recording, also one that was cut off, and one that was made to do harm.
//!
//! Only the places of chunks are kept, and the text of the chunk that was last asked for.

use super::format::{
    ChunkKind, HEAD, HEADER, Header, LONGEST_FACTS, MAGIC, MAGIC_END, MARK_INDEX, MOST_CHUNKS, READABLE, TAIL, VERSION,
    checksum, u32_at,
};
use super::segment_name::SegmentName;
use crate::exit::{Exit, Failure};
use model::{Bytes, LogEntry, Snapshot, Timestamp};
use rustix::fs::OFlags;
use serde::Deserialize;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What the names of files in a folder of recordings end with.
pub const EXTENSION: &str = "ttmon";
/// So often a folder is listed whose files are being replaced.
const MOST_LISTS: usize = 5;

/// A recording that can be looked at. It has at least one snapshot.
#[derive(Debug)]
pub struct Recording {
    files: Vec<File>,
    /// Of snapshots, in their order.
    pub(super) chunks: Vec<Chunk>,
    log: Vec<Chunk>,
    unpacked: Option<Unpacked>,
    remark: Option<String>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Chunk {
    /// In which file it is, and where.
    file: usize,
    pub offset: u64,
    /// Of its first snapshot, in the recording.
    index: usize,
    pub header: Header,
}

#[derive(Debug)]
pub(crate) struct Unpacked {
    chunk: usize,
    pub text: Vec<u8>,
    /// Where each snapshot's line is, and when it was taken.
    pub lines: Vec<(Range<usize>, Timestamp)>,
}

/// All that is asked of a snapshot to find it.
#[derive(Deserialize)]
struct Taken {
    taken_at: Timestamp,
}

impl Recording {
    /// Opens a recording, or a folder of them that follow each other. One that is still being written is as long as it is now.
    pub fn open(path: &Path) -> anyhow::Result<Recording> {
        let failed = |error: io::Error| cannot_be_read(path, &error);
        if !path.is_dir() {
            let part = RecordedFile::open(path)?;
            return match part.count(ChunkKind::Snapshots) {
                0 => Err(wrong(path, "there is no sample in it: it was cut off before the first was written")),
                _ => Ok(Recording::of(vec![part])),
            };
        }
        let parts = parts_of(path).map_err(failed)?;
        match parts.iter().map(|part| part.count(ChunkKind::Snapshots)).sum::<usize>() {
            0 => Err(wrong(path, "there is no recording in this folder")),
            _ => Ok(Recording::of(parts)),
        }
    }

    /// Whether a path looks like a recording: a folder, or a file that begins like one.
    pub fn is_one(path: &Path) -> bool {
        let begins = |file: File| {
            let mut magic = [0; MAGIC.len()];
            file.read_exact_at(&mut magic, 0).is_ok() && magic == MAGIC
        };
        let open = || File::options().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path);
        path.is_dir() || open().is_ok_and(begins)
    }

    fn of(parts: Vec<RecordedFile>) -> Recording {
        let mut recording =
            Recording { files: Vec::new(), chunks: Vec::new(), log: Vec::new(), unpacked: None, remark: None };
        let is_alone = parts.len() == 1;
        for part in parts {
            let file = recording.files.len();
            recording.files.push(part.file);
            for chunk in part.chunks {
                let index = recording.len();
                match chunk.header.kind {
                    ChunkKind::Snapshots => recording.chunks.push(Chunk { file, index, ..chunk }),
                    ChunkKind::Log => recording.log.push(Chunk { file, ..chunk }),
                }
            }
            recording.remark = part.remark.filter(|_| is_alone);
        }
        recording
    }

    /// When the first snapshot was taken, and when the last.
    pub fn span(&self) -> (Timestamp, Timestamp) {
        let times = |time: fn(&Header) -> Timestamp| self.chunks.iter().map(move |chunk| time(&chunk.header));
        (times(|header| header.first).min().unwrap_or_default(), times(|header| header.last).max().unwrap_or_default())
    }

    /// Number of snapshots.
    pub fn len(&self) -> usize {
        self.chunks.last().map_or(0, |chunk| chunk.index + chunk.header.lines as usize)
    }

    /// Never; an empty recording cannot be opened.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The last snapshot that was taken at this time or before. The first one, when all came later.
    pub fn index_at(&mut self, time: Timestamp) -> usize {
        // Not by halves: a clock that was set back makes a later chunk the earlier one.
        let Some(at) = self.chunks.iter().rposition(|chunk| chunk.header.first <= time) else { return 0 };
        let Chunk { index, header, .. } = self.chunks[at];
        if header.last <= time {
            return index + header.lines as usize - 1;
        }
        // Of a chunk that is damaged, only its first snapshot's time is known.
        let lines = self.unpack(at).map_or(&[][..], |unpacked| &unpacked.lines);
        index + lines.iter().rposition(|(_, taken_at)| *taken_at <= time).unwrap_or(0)
    }

    /// Reads one snapshot.
    pub fn snapshot(&mut self, index: usize) -> io::Result<Snapshot> {
        let at = self.chunks.partition_point(|chunk| chunk.index <= index).saturating_sub(1);
        let missing = || io::Error::new(io::ErrorKind::InvalidInput, format!("there is no sample {index}"));
        let within = index - self.chunks.get(at).ok_or_else(missing)?.index;
        let unpacked = self.unpack(at)?;
        let (line, _) = unpacked.lines.get(within).ok_or_else(missing)?;
        serde_json::from_slice(&unpacked.text[line.clone()])
            .map_err(|error| damaged(format!("sample {index} is none that this ttmon understands: {error}")))
    }

    /// What is to be said about this recording: that it was cut off.
    pub fn remark(&self) -> Option<&str> {
        self.remark.as_deref()
    }

    /// The snapshots that were taken from a time to another one, both included.
    pub fn range(&mut self, from: Timestamp, to: Timestamp) -> Range<usize> {
        let before = from.0.checked_sub(1).map_or(0, |before| match self.span().0.0 <= before {
            true => self.index_at(Timestamp(before)) + 1,
            false => 0,
        });
        let after = if self.span().0 <= to { self.index_at(to) + 1 } else { 0 };
        before..after.max(before)
    }

    /// Whether it has entries of a log. One that was written by an earlier version has none.
    pub fn has_log(&self) -> bool {
        !self.log.is_empty()
    }

    /// Hands over the entries of the log from a time to another one, both included, in the order in which they were written. A part
    /// that is damaged is left out.
    pub fn each_entry(&self, from: Timestamp, to: Timestamp, mut each: impl FnMut(LogEntry)) {
        let wanted = self.log.iter().filter(|chunk| chunk.header.first <= to && chunk.header.last >= from);
        for chunk in wanted {
            let Ok(text) = decompress(&self.files[chunk.file], chunk) else { continue };
            let lines = text.split(|byte| *byte == b'\n').take(chunk.header.lines as usize);
            // An entry of a kind that a later version has added is none of ours.
            let entries = lines.filter_map(|line| serde_json::from_slice::<LogEntry>(line).ok());
            entries.filter(|entry| (from..=to).contains(&entry.time())).for_each(&mut each);
        }
    }

    fn unpack(&mut self, at: usize) -> io::Result<&Unpacked> {
        let is_there = self.unpacked.as_ref().is_some_and(|unpacked| unpacked.chunk == at);
        if !is_there {
            // Before the next one: two would be twice the memory.
            self.unpacked = None;
            let chunk = &self.chunks[at];
            self.unpacked = Some(unpack(&self.files[chunk.file], at, chunk)?);
        }
        self.unpacked.as_ref().ok_or_else(|| damaged("there is no chunk"))
    }
}

/// The files of a folder that can be read, in their order.
fn parts_of(folder: &Path) -> io::Result<Vec<RecordedFile>> {
    for _ in 0..MOST_LISTS {
        let paths = paths_in(folder)?;
        let parts: Vec<RecordedFile> = paths.iter().filter_map(|path| RecordedFile::open(path).ok()).collect();
        // One that is gone was replaced meanwhile by another one, which was not listed.
        if parts.len() == paths.len() || paths.iter().all(|path| path.exists()) {
            return Ok(parts);
        }
    }
    Ok(paths_in(folder)?.iter().filter_map(|path| RecordedFile::open(path).ok()).collect())
}

/// The recordings in a folder, without those that another one has replaced.
fn paths_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == EXTENSION));
    let names: Vec<SegmentName> = paths.iter().filter_map(|path| SegmentName::of(path)).collect();
    let is_replaced = |name: SegmentName| names.iter().any(|other| other.replaces(&name));
    paths.retain(|path| !SegmentName::of(path).is_some_and(is_replaced));
    paths.sort();
    Ok(paths)
}

/// One file, and what is in it.
pub(crate) struct RecordedFile {
    pub file: File,
    pub chunks: Vec<Chunk>,
    pub is_finished: bool,
    /// What its head says, for people.
    facts: u32,
    remark: Option<String>,
}

impl RecordedFile {
    pub fn open(path: &Path) -> anyhow::Result<RecordedFile> {
        let failed = |error: io::Error| cannot_be_read(path, &error);
        // What is not a file shall not be waited for.
        let mut options = File::options();
        let file = options.read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(wrong(path, "it is not a file: name one that `ttmon record -o` has written"));
        }
        let length = metadata.len();
        let begin = begin(&file, length).map_err(|what| wrong(path, &what))?;
        let indexed = indexed(&file, begin, length).map_err(failed)?;
        let is_finished = indexed.is_some();
        let chunks = match indexed {
            Some(chunks) => chunks,
            None => walk(&file, begin, length).map_err(failed)?,
        };
        let mut part = RecordedFile { file, chunks, is_finished, facts: begin as u32 - HEAD as u32, remark: None };
        if !is_finished {
            part.leave_out_the_tail(begin, length);
        }
        Ok(part)
    }

    pub fn facts(&self) -> io::Result<String> {
        let mut text = vec![0; self.facts as usize];
        self.file.read_exact_at(&mut text, HEAD as u64)?;
        String::from_utf8(text).map_err(|_| damaged("its head is no text"))
    }

    fn count(&self, kind: ChunkKind) -> usize {
        self.chunks.iter().filter(|chunk| chunk.header.kind == kind).count()
    }

    /// After a cut, the last chunk may have its length and yet not its bytes.
    fn leave_out_the_tail(&mut self, begin: u64, length: u64) {
        // A log and snapshots are written at once.
        for _ in 0..2 {
            if self.chunks.last().is_some_and(|last| decompress(&self.file, last).is_err()) {
                self.chunks.pop();
            }
        }
        let end = self.chunks.last().map_or(begin, |chunk| chunk.offset + chunk.header.length());
        self.remark = Some(match length.saturating_sub(end) {
            0 => "the recording was not finished; what was written is whole".into(),
            rest => format!("the recording was cut off; the last {} are incomplete and left out", Bytes(rest)),
        });
    }
}

fn wrong(path: &Path, what: &str) -> anyhow::Error {
    Failure::error(Exit::Usage, format!("{}: {what}", path.display()))
}

/// Why a file that somebody named cannot be read, in a sentence.
pub fn cannot_be_read(path: &Path, error: &io::Error) -> anyhow::Error {
    let (exit, what) = match error.kind() {
        io::ErrorKind::PermissionDenied => (Exit::Permission, "it may not be read".to_owned()),
        io::ErrorKind::NotFound => (Exit::Usage, "there is no such file".to_owned()),
        _ => (Exit::Usage, format!("it cannot be read: {error}")),
    };
    Failure::error(exit, format!("{}: {what}", path.display()))
}

/// Where the first chunk is, or what is wrong with the file.
fn begin(file: &File, length: u64) -> Result<u64, String> {
    let mut head = [0; HEAD];
    if length == 0 {
        return Err("it is empty: nothing was recorded".into());
    }
    if file.read_exact_at(&mut head, 0).is_err() || head[..8] != MAGIC {
        return Err("it is no recording: name a file that `ttmon record -o` has written".into());
    }
    match (u32_at(&head, 8), u32_at(&head, 12) as usize) {
        (version, _) if !READABLE.contains(&version) => {
            let known = format!("and this ttmon reads versions {} to {VERSION}", READABLE.start());
            Err(format!("its format is version {version}, {known}: use the ttmon that wrote it"))
        }
        (_, facts @ 0..=LONGEST_FACTS) => Ok((HEAD + facts) as u64),
        _ => Err("its head is damaged".into()),
    }
}

/// The chunks, as the index has them. None when there is none, or none that fits.
fn indexed(file: &File, begin: u64, length: u64) -> io::Result<Option<Vec<Chunk>>> {
    let mut tail = [0; TAIL];
    let Some(end) = length.checked_sub(TAIL as u64).filter(|end| *end >= begin) else { return Ok(None) };
    file.read_exact_at(&mut tail, end)?;
    let (count, sum) = (u32_at(&tail, 0) as usize, u32_at(&tail, 4));
    if tail[8..] != MAGIC_END || count > MOST_CHUNKS {
        return Ok(None);
    }
    let size = MARK_INDEX.len() + count * HEADER;
    let Some(start) = end.checked_sub(size as u64).filter(|start| *start >= begin) else { return Ok(None) };
    let mut bytes = vec![0; size];
    file.read_exact_at(&mut bytes, start)?;
    if checksum(&bytes) != sum {
        return Ok(None);
    }
    let headers = bytes[MARK_INDEX.len()..].chunks_exact(HEADER);
    let mut chunks = Vec::with_capacity(count);
    let mut offset = begin;
    for header in headers {
        let Some(header) = header.first_chunk().and_then(Header::from_bytes) else { return Ok(None) };
        offset = add(&mut chunks, offset, header);
    }
    Ok((offset == start).then_some(chunks))
}

/// The chunks, one after the other, as far as they are whole.
fn walk(file: &File, begin: u64, length: u64) -> io::Result<Vec<Chunk>> {
    let (mut chunks, mut offset) = (Vec::new(), begin);
    while chunks.len() < MOST_CHUNKS && offset + HEADER as u64 <= length {
        let mut bytes = [0; HEADER];
        file.read_exact_at(&mut bytes, offset)?;
        let header = Header::from_bytes(&bytes).filter(|header| offset + header.length() <= length);
        let Some(header) = header else { break };
        offset = add(&mut chunks, offset, header);
    }
    Ok(chunks)
}

/// Adds a chunk, and returns where the next one is.
fn add(chunks: &mut Vec<Chunk>, offset: u64, header: Header) -> u64 {
    chunks.push(Chunk { file: 0, offset, index: 0, header });
    offset + header.length()
}

pub(crate) fn decompress(file: &File, chunk: &Chunk) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; chunk.header.frame as usize];
    file.read_exact_at(&mut frame, chunk.offset + HEADER as u64)?;
    // The library is built without the texts of its errors.
    let text = zstd::bulk::decompress(&frame, chunk.header.text as usize)
        .map_err(|_| damaged("a part of the recording is damaged: it cannot be decompressed"))?;
    if text.len() != chunk.header.text as usize {
        return Err(damaged("a part of the recording is shorter than it says"));
    }
    Ok(text)
}

pub(crate) fn unpack(file: &File, at: usize, chunk: &Chunk) -> io::Result<Unpacked> {
    let text = decompress(file, chunk)?;
    let mut lines = Vec::with_capacity(chunk.header.lines as usize);
    let mut start = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if lines.len() == chunk.header.lines as usize {
            return Err(damaged("a part of the recording has more samples than it says"));
        }
        let taken: Taken = serde_json::from_slice(line)
            .map_err(|error| damaged(format!("a part of the recording is damaged: {error}")))?;
        lines.push((start..start + line.len(), taken.taken_at));
        start += line.len();
    }
    if lines.len() < chunk.header.lines as usize {
        return Err(damaged("a part of the recording has fewer samples than it says"));
    }
    Ok(Unpacked { chunk: at, text, lines })
}

fn damaged(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}
