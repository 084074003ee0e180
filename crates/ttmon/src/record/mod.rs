//! `ttmon record`: what a machine did, kept in a file that can be looked at later.

use crate::cli::RecordArgs;
use anyhow::Context;
use model::Bytes;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;
use watch::args::MachineArgs;
use watch::duration;
use watch::exit::Exit;
use watch::machine::Machine;
use watch::record::{Recorder, Recording};
use watch::verdict::verdict;
use watch::wait::{Interrupt, Woken};

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
