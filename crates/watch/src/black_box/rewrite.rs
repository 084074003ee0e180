//! Writes another segment in the place of some: thinner, or as they are but in one file.

use super::ENOUGH_TEXT;
use super::folder::{BoxFolder, Segment};
use crate::record::chunk_file::{ChunkFile, PackedChunk, Packer, PendingChunk};
use crate::record::disk;
use crate::record::format::{ChunkKind, HEAD, HEADER};
use crate::record::reader::{Chunk, RecordedFile, decompress, unpack};
use crate::record::segment_name::SegmentName;
use model::Timestamp;
use std::io;
use std::os::unix::fs::FileExt;

/// Replaces segments that follow each other by one with a snapshot every `step` seconds. Returns whether that could be written; if
/// not, all is as before. An error when the old ones are still beside it.
pub fn rewrite(folder: &mut BoxFolder, packer: &mut Packer, inputs: &[Segment], step: u32) -> io::Result<bool> {
    let (Some(first), Some(last)) = (inputs.first(), inputs.last()) else { return Ok(false) };
    let name = SegmentName { first: first.name.first, last: last.name.last, step };
    let Ok((path, file)) = folder.create_temporary() else { return Ok(false) };
    let thins = inputs.iter().any(|input| input.name.step != step);
    let mut rewriting = Rewriting {
        out: ChunkFile::new(file),
        packer,
        pending: PendingChunk::new(ChunkKind::Snapshots, ENOUGH_TEXT),
        step: thins.then_some(step),
        kept: None,
        room: folder.limit.saturating_sub(folder.used()),
    };
    let written = rewriting.add_all(folder, inputs);
    let bytes = rewriting.out.finished_length();
    if written.is_err() {
        disk::remove(&path)?;
        return Ok(false);
    }
    // From here on it counts, whether it gets its name or not.
    folder.temporary = bytes;
    folder.replace(&path, bytes, name).map(|()| true)
}

struct Rewriting<'a> {
    out: ChunkFile,
    packer: &'a mut Packer,
    /// Snapshots that were kept.
    pending: PendingChunk,
    /// Absent when all are kept.
    step: Option<u32>,
    /// Which stretch the last snapshot that was kept stands for.
    kept: Option<i64>,
    /// How many bytes there may be.
    room: u64,
}

impl Rewriting<'_> {
    fn add_all(&mut self, folder: &BoxFolder, inputs: &[Segment]) -> io::Result<()> {
        for input in inputs {
            // One that has nothing to read, or was removed, has nothing to keep.
            let Ok(part) = RecordedFile::open(&folder.place(input.name)) else { continue };
            if self.out.is_empty() {
                self.write_head(&part.facts()?)?;
            }
            for chunk in &part.chunks {
                self.add_chunk(&part, chunk)?;
            }
        }
        if self.out.is_empty() {
            self.write_head("{}\n")?;
        }
        self.write_pending()?;
        self.out.write_index()?;
        disk::sync(&self.out.file)
    }

    fn add_chunk(&mut self, part: &RecordedFile, chunk: &Chunk) -> io::Result<()> {
        match self.step {
            Some(step) if chunk.header.kind == ChunkKind::Snapshots => self.thin(part, chunk, step),
            // One that is damaged is left out.
            _ if decompress(&part.file, chunk).is_err() => Ok(()),
            _ => {
                let mut bytes = vec![0; HEADER + chunk.header.frame as usize];
                part.file.read_exact_at(&mut bytes, chunk.offset)?;
                self.write(PackedChunk { header: chunk.header, bytes })
            }
        }
    }

    /// Keeps the first snapshot of each stretch.
    fn thin(&mut self, part: &RecordedFile, chunk: &Chunk, step: u32) -> io::Result<()> {
        let Ok(unpacked) = unpack(&part.file, 0, chunk) else { return Ok(()) };
        for (line, time) in &unpacked.lines {
            let stretch = time.0.div_euclid(i64::from(step) * 1000);
            if self.kept.replace(stretch) != Some(stretch) {
                self.keep(&unpacked.text[line.clone()], *time)?;
            }
        }
        Ok(())
    }

    fn keep(&mut self, line: &[u8], time: Timestamp) -> io::Result<()> {
        let goes_back = self.pending.lines > 0 && time < self.pending.times.1;
        if goes_back || !self.pending.has_room(line.len()) {
            self.write_pending()?;
        }
        self.pending.add(line, time);
        Ok(())
    }

    fn write_pending(&mut self) -> io::Result<()> {
        if let Some(packed) = self.packer.pack(&self.pending)? {
            self.write(packed)?;
        }
        self.pending.clear();
        Ok(())
    }

    fn write_head(&mut self, facts: &str) -> io::Result<()> {
        self.check_room(HEAD + facts.len())?;
        self.out.write_head(facts)
    }

    fn write(&mut self, chunk: PackedChunk) -> io::Result<()> {
        self.check_room(chunk.bytes.len() + HEADER)?;
        self.out.add(&[chunk])
    }

    fn check_room(&self, more: usize) -> io::Result<()> {
        let has_room = self.out.finished_length() + more as u64 <= self.room;
        has_room.then_some(()).ok_or_else(|| io::Error::other("there is no room for a temporary file"))
    }
}
