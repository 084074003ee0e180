//! Chunks: what the next one will hold, how it is packed, and the file that it is added to.

use super::disk;
use super::format::{ChunkKind, Header, LONGEST_FRAME, LONGEST_TEXT, MOST_CHUNKS, MOST_LINES, head, index};
use model::{Host, SCHEMA, Timestamp};
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};
use zstd::bulk::Compressor;
use zstd::zstd_safe::CParameter;

/// The fastest. On text that hardly changes from line to line the others gain little.
const LEVEL: i32 = 1;

/// What the next chunk of a kind will hold.
pub struct PendingChunk {
    kind: ChunkKind,
    /// The text ends there, unless a single line is longer.
    enough: usize,
    text: Vec<u8>,
    /// How long the last line was.
    pub last_length: usize,
    pub lines: u32,
    /// Of the first line and the last.
    pub times: (Timestamp, Timestamp),
}

impl PendingChunk {
    pub fn new(kind: ChunkKind, enough: usize) -> PendingChunk {
        PendingChunk { kind, enough, text: Vec::new(), last_length: 0, lines: 0, times: Default::default() }
    }

    /// Whether there is room for so many bytes more.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.lines < MOST_LINES && (self.lines == 0 || self.text.len() + bytes <= self.enough)
    }

    pub fn is_full(&self) -> bool {
        self.lines == MOST_LINES || self.text.len() >= self.enough
    }

    pub fn add(&mut self, line: &[u8], time: Timestamp) {
        self.text.extend_from_slice(line);
        self.count(line.len(), time);
    }

    /// Adds a line of JSON, which is in memory nowhere else. How long it is shows only afterwards.
    pub fn add_json(&mut self, of: &impl Serialize, time: Timestamp, what: &str) -> io::Result<()> {
        let begin = self.text.len();
        match append_line(&mut self.text, of, time, what) {
            Ok(()) => self.count(self.text.len() - begin, time),
            Err(error) => {
                self.text.truncate(begin);
                return Err(error);
            }
        }
        Ok(())
    }

    fn count(&mut self, length: usize, time: Timestamp) {
        self.times = match self.lines {
            0 => (time, time),
            _ => (self.times.0.min(time), self.times.1.max(time)),
        };
        self.last_length = length;
        self.lines += 1;
    }

    pub fn clear(&mut self) {
        self.text.clear();
        // A single line that was very long shall not keep its memory.
        self.text.shrink_to(self.enough);
        self.lines = 0;
    }
}

/// A chunk as it is in a file.
#[derive(Debug)]
pub struct PackedChunk {
    pub header: Header,
    pub bytes: Vec<u8>,
}

/// Packs chunks.
pub struct Packer(Compressor<'static>);

impl Packer {
    pub fn new() -> io::Result<Packer> {
        let mut compressor = Compressor::new(LEVEL)?;
        compressor.set_parameter(CParameter::ChecksumFlag(true))?;
        Ok(Packer(compressor))
    }

    /// None when there is nothing to pack.
    pub fn pack(&mut self, pending: &PendingChunk) -> io::Result<Option<PackedChunk>> {
        if pending.lines == 0 {
            return Ok(None);
        }
        let frame = self.0.compress(&pending.text).map_err(|_| io::Error::other("samples cannot be compressed"))?;
        if frame.len() > LONGEST_FRAME {
            let what = format!("a sample of {} compressed bytes has no place in it", frame.len());
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let header = Header {
            kind: pending.kind,
            frame: frame.len() as u32,
            text: pending.text.len() as u32,
            lines: pending.lines,
            first: pending.times.0,
            last: pending.times.1,
        };
        Ok(Some(PackedChunk { header, bytes: [&header.to_bytes(), &frame[..]].concat() }))
    }
}

/// A file that chunks are added to.
pub struct ChunkFile {
    pub file: File,
    /// Whether it can only be appended to: a pipe, or what else standard output is.
    is_stream: bool,
    /// So far the file is whole.
    end: u64,
    chunks: Vec<Header>,
}

impl ChunkFile {
    pub fn new(file: File) -> ChunkFile {
        ChunkFile { file, is_stream: false, end: 0, chunks: Vec::new() }
    }

    pub fn stream(file: File) -> ChunkFile {
        ChunkFile { is_stream: true, ..ChunkFile::new(file) }
    }

    /// Waits until all of it is on the disk, where it has one.
    pub fn sync(&self) -> io::Result<()> {
        if self.is_stream { Ok(()) } else { self.file.sync_all() }
    }

    pub fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// How long it would be if it was finished now.
    pub fn finished_length(&self) -> u64 {
        self.end + finished_by(self.chunks.len())
    }

    /// Writes what begins a file. The facts are a line of JSON.
    pub fn write_head(&mut self, facts: &str) -> io::Result<()> {
        let head = head(facts).ok_or_else(|| io::Error::other("the host's names are too long"))?;
        self.append(&head)
    }

    /// Adds chunks: all of them, or none.
    pub fn add(&mut self, chunks: &[PackedChunk]) -> io::Result<()> {
        if self.chunks.len() + chunks.len() > MOST_CHUNKS {
            return Err(io::Error::other("it is as long as a recording can be: begin another"));
        }
        match chunks {
            [] => return Ok(()),
            [one] => self.append(&one.bytes)?,
            several => {
                let bytes: Vec<&[u8]> = several.iter().map(|chunk| &chunk.bytes[..]).collect();
                self.append(&bytes.concat())?;
            }
        }
        self.chunks.extend(chunks.iter().map(|chunk| chunk.header));
        Ok(())
    }

    /// Writes the index, behind which nothing can be added.
    pub fn write_index(&mut self) -> io::Result<()> {
        self.append(&index(&self.chunks))
    }

    /// Writes behind all that is there: everything, or nothing.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_stream {
            self.file.write_all(bytes)?;
        } else if let Err(error) = disk::write_at(&self.file, bytes, self.end) {
            // If this fails, too, readers leave out what is incomplete.
            let _ = self.file.set_len(self.end);
            return Err(error);
        }
        self.end += bytes.len() as u64;
        Ok(())
    }
}

/// How many bytes end a file of so many chunks.
fn finished_by(chunks: usize) -> u64 {
    (super::format::MARK_INDEX.len() + chunks * super::format::HEADER + super::format::TAIL) as u64
}

/// What the head of a file says, for people.
pub fn facts(host: &Host) -> io::Result<String> {
    #[derive(Serialize)]
    struct Facts<'a> {
        ttmon: &'static str,
        schema: u32,
        host: &'a Host,
    }
    Ok(serde_json::to_string(&Facts { ttmon: env!("CARGO_PKG_VERSION"), schema: SCHEMA, host })? + "\n")
}

/// A line of JSON. An error where a chunk cannot have it.
pub fn line(of: &impl Serialize, time: Timestamp, what: &str) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    append_line(&mut line, of, time, what)?;
    Ok(line)
}

/// The same, behind what the text has. After an error there may be a part of it.
fn append_line(text: &mut Vec<u8>, of: &impl Serialize, time: Timestamp, what: &str) -> io::Result<()> {
    let begin = text.len();
    serde_json::to_writer(&mut *text, of)?;
    text.push(b'\n');
    let (kind, length) = (ChunkKind::Snapshots, text.len() - begin);
    let alone = Header { kind, frame: 1, text: length as u32, lines: 1, first: time, last: time };
    if text.len() > LONGEST_TEXT || !alone.is_sound() {
        let what = format!("{what} of {length} bytes of {time} has no place in a recording");
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    Ok(())
}
