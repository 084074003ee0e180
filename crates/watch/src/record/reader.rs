//! Reads a recording, also one that was cut off, and one that was made to do harm.
//!
//! Only the places of chunks are kept, and the text of the chunk that was last asked for.

use super::format::{
    HEAD, HEADER, Header, LONGEST_FACTS, MAGIC, MAGIC_END, MARK_INDEX, MOST_CHUNKS, TAIL, VERSION, checksum, u32_at,
};
use crate::exit::{Exit, Failure};
use model::{Bytes, Snapshot, Timestamp};
use rustix::fs::OFlags;
use serde::Deserialize;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// A recording that can be looked at. It has at least one snapshot.
#[derive(Debug)]
pub struct Recording {
    file: File,
    pub(super) chunks: Vec<Chunk>,
    unpacked: Option<Unpacked>,
    remark: Option<String>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk {
    offset: u64,
    /// Of its first snapshot.
    index: usize,
    pub(super) header: Header,
}

#[derive(Debug)]
struct Unpacked {
    chunk: usize,
    text: Vec<u8>,
    /// Where each snapshot's line is, and when it was taken.
    lines: Vec<(Range<usize>, Timestamp)>,
}

/// All that is asked of a snapshot to find it.
#[derive(Deserialize)]
struct Taken {
    taken_at: Timestamp,
}

impl Recording {
    /// Opens a recording. One that is still being written is as long as it is now.
    pub fn open(path: &Path) -> anyhow::Result<Recording> {
        let refused = |exit, what: &str| Failure::error(exit, format!("{}: {what}", path.display()));
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::PermissionDenied => refused(Exit::Permission, "it may not be read"),
            io::ErrorKind::NotFound => refused(Exit::Usage, "there is no such file"),
            _ => refused(Exit::Usage, &format!("it cannot be read: {error}")),
        };
        // What is not a file shall not be waited for.
        let mut options = File::options();
        let file = options.read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(refused(Exit::Usage, "it is not a file: name one that `ttmon record -o` has written"));
        }
        let length = metadata.len();
        let begin = begin(&file, length).map_err(|what| refused(Exit::Usage, &what))?;
        let indexed = indexed(&file, begin, length).map_err(failed)?;
        let is_finished = indexed.is_some();
        let chunks = match indexed {
            Some(chunks) => chunks,
            None => walk(&file, begin, length).map_err(failed)?,
        };
        let mut recording = Recording { file, chunks, unpacked: None, remark: None };
        if !is_finished {
            recording.leave_out_the_tail(begin, length);
        }
        if recording.chunks.is_empty() {
            return Err(refused(Exit::Usage, "there is no sample in it: it was cut off before the first was written"));
        }
        Ok(recording)
    }

    pub fn len(&self) -> usize {
        self.chunks.last().map_or(0, |chunk| chunk.index + chunk.header.snapshots as usize)
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
            return index + header.snapshots as usize - 1;
        }
        // Of a chunk that is damaged, only its first snapshot's time is known.
        let lines = self.unpack(at).map_or(&[][..], |unpacked| &unpacked.lines);
        index + lines.iter().rposition(|(_, taken_at)| *taken_at <= time).unwrap_or(0)
    }

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

    /// After a cut, the last chunk may have its length and yet not its bytes.
    fn leave_out_the_tail(&mut self, begin: u64, length: u64) {
        if self.chunks.last().is_some() && self.unpack(self.chunks.len() - 1).is_err() {
            self.chunks.pop();
        }
        let end = self.chunks.last().map_or(begin, |chunk| chunk.offset + chunk.header.length());
        self.remark = Some(match length.saturating_sub(end) {
            0 => "the recording was not finished; what was written is whole".into(),
            rest => format!("the recording was cut off; the last {} are incomplete and left out", Bytes(rest)),
        });
    }

    fn unpack(&mut self, at: usize) -> io::Result<&Unpacked> {
        let is_there = self.unpacked.as_ref().is_some_and(|unpacked| unpacked.chunk == at);
        if !is_there {
            // Before the next one: two would be twice the memory.
            self.unpacked = None;
            self.unpacked = Some(unpack(&self.file, at, &self.chunks[at])?);
        }
        self.unpacked.as_ref().ok_or_else(|| damaged("there is no chunk"))
    }
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
        (VERSION, facts @ 0..=LONGEST_FACTS) => Ok((HEAD + facts) as u64),
        (VERSION, _) => Err("its head is damaged".into()),
        (version, _) => {
            let known = format!("and this ttmon reads version {VERSION}: use the ttmon that wrote it");
            Err(format!("its format is version {version}, {known}"))
        }
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
    let (headers, _) = bytes[MARK_INDEX.len()..].as_chunks::<HEADER>();
    let mut chunks = Vec::with_capacity(count);
    let mut offset = begin;
    for header in headers {
        let Some(header) = Header::from_bytes(header) else { return Ok(None) };
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
    let index = chunks.last().map_or(0, |last: &Chunk| last.index + last.header.snapshots as usize);
    chunks.push(Chunk { offset, index, header });
    offset + header.length()
}

fn unpack(file: &File, at: usize, chunk: &Chunk) -> io::Result<Unpacked> {
    let mut frame = vec![0; chunk.header.frame as usize];
    file.read_exact_at(&mut frame, chunk.offset + HEADER as u64)?;
    // The library is built without the texts of its errors.
    let text = zstd::bulk::decompress(&frame, chunk.header.text as usize)
        .map_err(|_| damaged("a part of the recording is damaged: it cannot be decompressed"))?;
    if text.len() != chunk.header.text as usize {
        return Err(damaged("a part of the recording is shorter than it says"));
    }
    let mut lines = Vec::with_capacity(chunk.header.snapshots as usize);
    let mut start = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if lines.len() == chunk.header.snapshots as usize {
            return Err(damaged("a part of the recording has more samples than it says"));
        }
        let taken: Taken = serde_json::from_slice(line)
            .map_err(|error| damaged(format!("a part of the recording is damaged: {error}")))?;
        lines.push((start..start + line.len(), taken.taken_at));
        start += line.len();
    }
    if lines.len() < chunk.header.snapshots as usize {
        return Err(damaged("a part of the recording has fewer samples than it says"));
    }
    Ok(Unpacked { chunk: at, text, lines })
}

fn damaged(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}
