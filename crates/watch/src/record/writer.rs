//! Writes a recording: chunk after chunk, each at once, so that a cut costs the last one at the most.

use super::chunk_file::{ChunkFile, Packer, PendingChunk, facts, line};
use super::format::ChunkKind;
use crate::exit::Failure;
use model::{Host, LogEntry, Snapshot};
use rustix::fs::{FlockOperation, OFlags, flock};
use signal_hook::consts::SIGXFSZ;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

/// Somebody who writes a recording. One that is dropped is finished as well as can be.
pub struct Recorder {
    file: ChunkFile,
    packer: Packer,
    snapshots: PendingChunk,
    log: PendingChunk,
    /// When the first of these snapshots came.
    began: Instant,
    /// When the last one came, of this chunk or of those before.
    pushed: Option<Instant>,
    is_finished: bool,
}

/// The path that means standard output.
pub const STANDARD_OUTPUT: &str = "-";
/// A chunk's text ends there, unless a single line is longer.
const ENOUGH_TEXT: usize = 1 << 20;
/// No snapshot waits longer to be written.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

impl Recorder {
    /// Begins a recording. A file that holds anything is left alone; `-` is standard output.
    pub fn create(path: &Path) -> anyhow::Result<Recorder> {
        let file = match path == Path::new(STANDARD_OUTPUT) {
            true => standard_output().map(ChunkFile::stream),
            false => open(path).map(ChunkFile::new),
        };
        let file =
            file.map_err(|error| Failure::of_io(&error, format!("cannot write to {}: {error}", path.display())))?;
        Ok(Recorder {
            file,
            packer: Packer::new()?,
            snapshots: PendingChunk::new(ChunkKind::Snapshots, ENOUGH_TEXT),
            log: PendingChunk::new(ChunkKind::Log, ENOUGH_TEXT),
            began: Instant::now(),
            pushed: None,
            is_finished: false,
        })
    }

    /// Adds a snapshot. After an error the recording goes on when it can, and is whole in any case.
    pub fn push(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        let time = snapshot.taken_at;
        let line = line(snapshot, time, "a sample")?;
        if self.file.is_empty() {
            self.file.write_head(&facts(&snapshot.host)?)?;
        }
        if self.snapshots.lines > 0 && (!self.snapshots.has_room(line.len()) || time < self.snapshots.times.1) {
            self.write_chunks()?;
        }
        let now = Instant::now();
        if self.snapshots.lines == 0 {
            self.began = now;
        }
        self.snapshots.add(&line, time);
        // Who comes once in a while cannot be waited for. How long the next one takes shows the last.
        let pause = self.pushed.replace(now).map_or(LONGEST_WAIT, |last| now - last);
        let next = now + pause;
        if self.snapshots.is_full() || next - self.began >= LONGEST_WAIT {
            self.write_chunks()?;
        }
        Ok(())
    }

    /// Adds an entry of the log. It is written with the snapshots that are pending, or at the end.
    pub fn log(&mut self, entry: &LogEntry) -> io::Result<()> {
        let line = line(entry, entry.time(), "an entry")?;
        if self.file.is_empty() {
            self.file.write_head(&facts(&Host::default())?)?;
        }
        if !self.log.has_room(line.len()) {
            self.write_log()?;
        }
        self.log.add(&line, entry.time());
        if self.log.is_full() { self.write_log() } else { Ok(()) }
    }

    /// Writes what is pending, at once.
    pub fn flush(&mut self) -> io::Result<()> {
        self.write_chunks()
    }

    /// Writes what is left, and the index.
    pub fn finish(mut self) -> io::Result<()> {
        self.close()
    }

    fn close(&mut self) -> io::Result<()> {
        self.is_finished = true;
        if self.file.is_empty() {
            return Ok(());
        }
        let chunk = self.write_chunks();
        // Where there was no room for the last chunk, there may be some for the index.
        let index = self.file.write_index();
        chunk.and(index).and_then(|()| self.file.sync())
    }

    /// Both are tried.
    fn write_chunks(&mut self) -> io::Result<()> {
        let log = self.write_log();
        write_chunk(&mut self.file, &mut self.packer, &mut self.snapshots).and(log)
    }

    fn write_log(&mut self) -> io::Result<()> {
        write_chunk(&mut self.file, &mut self.packer, &mut self.log)
    }
}

/// Writes a chunk, and empties it. One that cannot be written stays pending as long as it has room.
fn write_chunk(file: &mut ChunkFile, packer: &mut Packer, pending: &mut PendingChunk) -> io::Result<()> {
    match packer.pack(pending) {
        Ok(packed) => file.add(packed.as_slice())?,
        // It will not get shorter.
        Err(error) => {
            pending.clear();
            return Err(error);
        }
    }
    pending.clear();
    Ok(())
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = self.close();
        }
    }
}

/// Standard output, unless somebody reads it on a screen.
fn standard_output() -> io::Result<File> {
    let stdout = io::stdout();
    if stdout.is_terminal() {
        return Err(io::Error::other("a recording is not text for a terminal: name a file, or pipe it on"));
    }
    Ok(File::from(stdout.as_fd().try_clone_to_owned()?))
}

/// A file of our own that is empty and that no other process records to.
fn open(path: &Path) -> io::Result<File> {
    survive_limits();
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

/// A limit on the size of files shall be an error like a full disk, not the end of the program.
pub fn survive_limits() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    });
}
