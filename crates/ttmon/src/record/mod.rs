//! `ttmon record`: what a machine did, kept in a file that can be looked at later.
//!
//! # The file
//! Numbers are little-endian. A file is a head, chunks, and, when it was finished, an index and a tail.
//!
//! | at | bytes | head |
//! |---|---|---|
//! | 0 | 8 | `ttmonrec` |
//! | 8 | 4 | version of the form, 1 |
//! | 12 | 4 | length of what follows, at most 64 KiB |
//! | 16 | | one line of JSON: `{"ttmon":"0.1.0","schema":1,"host":{…}}`, for people; nothing depends on it |
//!
//! | at | bytes | chunk |
//! |---|---|---|
//! | 0 | 4 | `chnk` |
//! | 4 | 4 | length of the frame, at most 16 MiB |
//! | 8 | 4 | length of the text in it, at most 64 MiB |
//! | 12 | 4 | how many snapshots these are, 1 to 60 |
//! | 16 | 8 | when the first was taken, in milliseconds since 1970 |
//! | 24 | 8 | when the last was taken; never before the first |
//! | 32 | 4 | FNV-1a of these 32 bytes |
//! | 36 | | a frame of zstd with its checksum: snapshots as of `ttmon smi --json`, a line each, by time |
//!
//! The index is `indx`, and the first 36 bytes of every chunk once more, in order. Between chunks there is nothing, so that
//! their places follow from their lengths.
//!
//! | at | bytes | tail, at the very end |
//! |---|---|---|
//! | 0 | 4 | how many chunks there are, at most 2²⁰ |
//! | 4 | 4 | FNV-1a of the index |
//! | 8 | 8 | `ttmonend` |
//!
//! A chunk ends after 60 snapshots, 1 MiB of text or ten seconds, and where the clock went back. It is written at once, so
//! that a recording that was cut off lacks its last chunk at the most. Without a tail, chunks are found one after the other.
//!
//! Snapshots are written whole. Differences between them, compressed, are only 1.1 times smaller and take more than three
//! times as long to write: on 32 devices a snapshot is 38 KB of text and 1.5 KB in the file.

pub mod duration;
mod format;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use reader::Recording;
pub use writer::Recorder;

use crate::cli::{MachineArgs, RecordArgs};
use crate::exit::Exit;
use crate::machine::Machine;
use crate::smi::verdict;
use crate::wait::{Interrupt, Woken};
use anyhow::Context;
use model::Bytes;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

/// Runs the command.
pub fn run(machine: &MachineArgs, args: &RecordArgs) -> anyhow::Result<Exit> {
    let Some(output) = &args.output else { return dump(args.dump.as_deref().unwrap_or(Path::new("-"))) };
    let interrupt = Interrupt::new()?;
    let mut machine = Machine::open(machine, true)?.through_service(machine);
    let result = record(&mut machine, args, output, &interrupt);
    machine.leave();
    result
}

/// Records until it is enough, and says how much there is.
fn record(machine: &mut Machine, args: &RecordArgs, path: &Path, interrupt: &Interrupt) -> anyhow::Result<Exit> {
    let mut snapshot = machine.sample();
    // Where there is nothing to record, the reason is worth more than a file. Later a device may be lost.
    verdict(&snapshot, machine)?;
    let mut recorder = Recorder::create(path)?;
    let told = || format!("{}: the recording ends here, because it cannot be written", path.display());
    let began = Instant::now();
    let end = args.length.and_then(|length| began.checked_add(length));
    let (mut next, mut samples) = (began, 0);
    loop {
        recorder.push(&snapshot).with_context(told)?;
        samples += 1;
        next = (next + args.every).max(Instant::now());
        let until = end.map_or(next, |end| end.min(next));
        let woken = interrupt.wait(until.saturating_duration_since(Instant::now()));
        if woken == Woken::End || end.is_some_and(|end| end <= next) {
            break;
        }
        snapshot = machine.sample();
    }
    recorder.finish().with_context(told)?;
    let bytes = Bytes(std::fs::metadata(path)?.len());
    let (length, path) = (duration::text(began.elapsed()), path.display());
    let samples = if samples == 1 { "1 sample".into() } else { format!("{samples} samples") };
    // Whoever closed standard error does not want to know.
    let _ = writeln!(io::stderr(), "{samples} in {length}, {bytes}: {path}");
    Ok(Exit::Success)
}

/// Prints the snapshots of a recording, a line each.
fn dump(path: &Path) -> anyhow::Result<Exit> {
    let mut recording = Recording::open(path)?;
    let mut out = BufWriter::new(io::stdout().lock());
    for index in 0..recording.len() {
        let snapshot = recording.snapshot(index).with_context(|| path.display().to_string())?;
        serde_json::to_writer(&mut out, &snapshot).map_err(io::Error::from)?;
        out.write_all(b"\n")?;
    }
    out.flush()?;
    if let Some(remark) = recording.remark() {
        let _ = writeln!(io::stderr(), "{}: {remark}", path.display());
    }
    Ok(Exit::Success)
}
