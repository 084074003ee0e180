//! Writes a recording: chunk after chunk, each at once, so that a cut costs the last one at the most.

use super::format::{Header, LONGEST_FRAME, LONGEST_TEXT, MOST_CHUNKS, MOST_SNAPSHOTS, head, index};
use crate::exit::Failure;
use model::{Host, SCHEMA, Snapshot, Timestamp};
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::Serialize;
use signal_hook::consts::SIGXFSZ;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};
use zstd::bulk::Compressor;
use zstd::zstd_safe::CParameter;

/// Somebody who writes a recording. One that is dropped is finished as well as can be.
pub struct Recorder {
    file: File,
    /// So far the file is whole.
    end: u64,
    chunks: Vec<Header>,
    compressor: Compressor<'static>,
    /// What the next chunk will hold.
    text: Vec<u8>,
    snapshots: u32,
    times: (Timestamp, Timestamp),
    /// When the first of these snapshots came.
    began: Instant,
    /// When the last one came, of this chunk or of those before.
    pushed: Option<Instant>,
    is_finished: bool,
}

/// A chunk's text ends there, unless a single snapshot is longer.
const ENOUGH_TEXT: usize = 1 << 20;
/// No snapshot waits longer to be written.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// The fastest. On text that hardly changes from line to line the others gain little.
const LEVEL: i32 = 1;

#[derive(Serialize)]
struct Facts<'a> {
    ttmon: &'static str,
    schema: u32,
    host: &'a Host,
}

impl Recorder {
    /// Begins a recording. A file that holds anything is left alone.
    pub fn create(path: &Path) -> anyhow::Result<Recorder> {
        let file = open(path)
            .map_err(|error| Failure::of_io(&error, format!("cannot write to {}: {error}", path.display())))?;
        let mut compressor = Compressor::new(LEVEL)?;
        compressor.set_parameter(CParameter::ChecksumFlag(true))?;
        Ok(Recorder {
            file,
            end: 0,
            chunks: Vec::new(),
            compressor,
            text: Vec::new(),
            snapshots: 0,
            times: Default::default(),
            began: Instant::now(),
            pushed: None,
            is_finished: false,
        })
    }

    /// Adds a snapshot. After an error the recording goes on when it can, and is whole in any case.
    pub fn push(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        let mut line = serde_json::to_vec(snapshot)?;
        line.push(b'\n');
        let time = snapshot.taken_at;
        let alone = Header { frame: 1, text: line.len() as u32, snapshots: 1, first: time, last: time };
        if line.len() > LONGEST_TEXT || !alone.is_sound() {
            let what = format!("a sample of {} bytes of {time} has no place in a recording", line.len());
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        if self.end == 0 {
            self.write_head(&snapshot.host)?;
        }
        let is_full = self.snapshots == MOST_SNAPSHOTS || self.text.len() + line.len() > ENOUGH_TEXT;
        if self.snapshots > 0 && (is_full || time < self.times.1) {
            self.write_chunk()?;
        }
        let now = Instant::now();
        if self.snapshots == 0 {
            (self.began, self.times.0) = (now, time);
        }
        self.text.extend(line);
        self.snapshots += 1;
        self.times.1 = time;
        // Who comes once in a while cannot be waited for. How long the next one takes shows the last.
        let pause = self.pushed.replace(now).map_or(LONGEST_WAIT, |last| now - last);
        let next = now + pause;
        if self.snapshots == MOST_SNAPSHOTS || self.text.len() >= ENOUGH_TEXT || next - self.began >= LONGEST_WAIT {
            self.write_chunk()?;
        }
        Ok(())
    }

    /// Writes what is left, and the index.
    pub fn finish(mut self) -> io::Result<()> {
        self.close()
    }

    fn close(&mut self) -> io::Result<()> {
        self.is_finished = true;
        if self.end == 0 {
            return Ok(());
        }
        let chunk = if self.snapshots > 0 { self.write_chunk() } else { Ok(()) };
        // Where there was no room for the last chunk, there may be some for the index.
        let index = self.append(&index(&self.chunks));
        chunk.and(index).and_then(|()| self.file.sync_all())
    }

    fn write_head(&mut self, host: &Host) -> io::Result<()> {
        let facts = serde_json::to_string(&Facts { ttmon: env!("CARGO_PKG_VERSION"), schema: SCHEMA, host })? + "\n";
        let head = head(&facts).ok_or_else(|| io::Error::other("the host's names are too long"))?;
        self.append(&head)
    }

    fn write_chunk(&mut self) -> io::Result<()> {
        if self.chunks.len() == MOST_CHUNKS {
            return Err(io::Error::other("it is as long as a recording can be: begin another"));
        }
        let frame =
            self.compressor.compress(&self.text).map_err(|_| io::Error::other("samples cannot be compressed"))?;
        let header = Header {
            frame: frame.len() as u32,
            text: self.text.len() as u32,
            snapshots: self.snapshots,
            first: self.times.0,
            last: self.times.1,
        };
        if frame.len() > LONGEST_FRAME {
            self.text.clear();
            self.snapshots = 0;
            return Err(io::Error::other(format!("a sample of {} compressed bytes has no place in it", frame.len())));
        }
        self.append(&[&header.to_bytes(), &frame[..]].concat())?;
        self.chunks.push(header);
        self.text.clear();
        self.snapshots = 0;
        Ok(())
    }

    /// Writes behind all that is there: everything, or nothing.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all_at(bytes, self.end) {
            // If this fails, too, readers leave out what is incomplete.
            let _ = self.file.set_len(self.end);
            return Err(error);
        }
        self.end += bytes.len() as u64;
        Ok(())
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = self.close();
        }
    }
}

/// A file of our own that is empty and that no other process records to.
fn open(path: &Path) -> io::Result<File> {
    // A limit on the size of files shall be an error like a full disk, not the end of the program.
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    });
    let mut options = File::options();
    options.write(true).mode(0o600).custom_flags(OFlags::NONBLOCK.bits() as i32);
    let created = options.clone().create_new(true).open(path);
    let refused = |what: &str| Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
    let file = match created {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => options.open(path)?,
        other => other?,
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return refused("it is not a file: name one that a recording can be put in");
    }
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err_and(|error| error == rustix::io::Errno::WOULDBLOCK)
    {
        return refused("another process is recording to it");
    }
    // Checked now, since the former holder of the lock may have written meanwhile.
    if file.metadata()?.len() > 0 {
        return refused("there is something in it already; remove it, or choose another name");
    }
    Ok(file)
}
