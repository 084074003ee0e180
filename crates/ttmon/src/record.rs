//! `ttmon record`: what a machine did, kept in a file that can be looked at later.

use anyhow::Context;
use model::Bytes;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use watch::args::{DeepArgs, DeviceArgs, MachineArgs};
use watch::duration;
use watch::exit::{Exit, Failure};
use watch::exit_status;
use watch::machine::Machine;
use watch::news::EXITS;
use watch::past::StretchArgs;
use watch::record::{LoggedRecorder, Recorder, Recording, STANDARD_OUTPUT};
use watch::selection::{keep_selected, selected};
use watch::wait::{Interrupt, Woken};

pub const AFTER_HELP: &str = "\
Needs no terminal. Ctrl-C and SIGTERM end the recording as --for does; one line on standard error then gives the number of samples \
and the size of the file. A recording that was cut off, by SIGKILL or a full disk, lacks its last ten seconds at the \
most. An existing file is never written over.

  ttmon record -o night.ttmon --for 8h
  ttmon record --dump night.ttmon | jq '.devices[0].state'
  ttmon record --from \"yesterday 14:00\" --to 14:30 -o incident.ttmon

With --from or --to, nothing is measured: a piece of the black box that the service keeps is copied, with its log.

Exit codes: as for `ttmon smi`; 1 the file can no longer be written; 2 invalid arguments, or a file that is not a \
recording.";

/// With these nothing is measured.
const COPIES: [&str; 4] = ["dump", "from", "to", "black_box"];

#[derive(Debug, Clone, clap::Args)]
pub struct RecordArgs {
    /// Write the recording to FILE, which must be new or empty; - is standard output
    #[arg(short, long, value_name = "FILE", required_unless_present = "dump", conflicts_with = "dump")]
    pub output: Option<PathBuf>,
    /// Stop after this time, such as 90s, 10m or 1h30m (default: on Ctrl-C)
    #[arg(long = "for", value_name = "TIME", value_parser = duration::parse, conflicts_with_all = COPIES)]
    pub length: Option<Duration>,
    /// Take a sample this often
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration::period, conflicts_with_all = COPIES)]
    pub every: Duration,
    /// Read /dev/kmsg, and record what the kernel's log says of devices
    #[arg(long, conflicts_with_all = COPIES)]
    pub kernel_log: bool,
    #[command(flatten)]
    pub devices: DeviceArgs,
    #[command(flatten)]
    pub deep: DeepArgs,
    #[command(flatten)]
    pub stretch: StretchArgs,
    /// Print the samples of a recording as JSON, one object per line
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sim", "root", "from", "to", "black_box"])]
    pub dump: Option<PathBuf>,
}

pub fn run(machine: &MachineArgs, args: &RecordArgs) -> anyhow::Result<Exit> {
    let Some(output) = &args.output else { return dump(args.dump.as_deref().unwrap_or(Path::new("-"))) };
    let StretchArgs { from, to, black_box } = &args.stretch;
    if from.is_some() || to.is_some() || black_box.black_box.is_some() {
        if machine.sim.is_some() || machine.root.is_some() || machine.is_remote() {
            let what =
                "--from, --to and --black-box copy a piece of the black box of this machine: name no other machine";
            return Err(Failure::error(Exit::Usage, what));
        }
        return cut(machine, args, output);
    }
    let interrupt = Interrupt::new()?;
    let mut machine = Machine::open(machine, true)?.through_service(machine).with_deep(args.deep.deep)?;
    machine.set_kernel_log(args.kernel_log);
    let result = record(&mut machine, args, output, &interrupt);
    machine.leave();
    result
}

/// Records until it is enough, and says how much there is.
fn record(machine: &mut Machine, args: &RecordArgs, path: &Path, interrupt: &Interrupt) -> anyhow::Result<Exit> {
    let names = &args.devices.id;
    let mut snapshot = selected(machine.sample(), names)?;
    // Where there is nothing to record, the reason is worth more than a file. Later a device may be lost.
    exit_status::of_machine(&snapshot, machine)?;
    let (mut recorder, mut exits) = (LoggedRecorder::create(path)?, Vec::new());
    let why = || format!("{}: the recording ends here, because it cannot be written", path.display());
    let began = Instant::now();
    let end = args.length.and_then(|length| began.checked_add(length));
    let (mut next, mut samples) = (began, 0);
    loop {
        recorder.push(&snapshot, std::mem::take(&mut exits)).with_context(why)?;
        samples += 1;
        next = (next + args.every).max(Instant::now());
        let until = end.map_or(next, |end| end.min(next));
        let woken = interrupt.wait(until.saturating_duration_since(Instant::now()));
        if woken == Woken::End || end.is_some_and(|end| end <= next) {
            break;
        }
        snapshot = machine.sample();
        keep_selected(&mut snapshot, names);
        exits = machine.service().and_then(|service| service.exits(EXITS)).unwrap_or_default();
    }
    recorder.finish().with_context(why)?;
    report(path, samples, began.elapsed())
}

/// Copies a piece of the black box.
fn cut(machine: &MachineArgs, args: &RecordArgs, path: &Path) -> anyhow::Result<Exit> {
    let mut stretch = args.stretch.open(machine, None)?;
    let (from, to, indices) = (stretch.from, stretch.to, stretch.indices());
    let mut recorder = Recorder::create(path)?;
    let why = || format!("{}: the recording ends here, because it cannot be written", path.display());
    let (mut samples, mut length) = (0, (to, from));
    for index in indices {
        // One that is damaged is left out, as everywhere.
        let Ok(mut snapshot) = stretch.recording.snapshot(index) else { continue };
        keep_selected(&mut snapshot, &args.devices.id);
        recorder.push(&snapshot).with_context(why)?;
        length = (length.0.min(snapshot.taken_at), length.1.max(snapshot.taken_at));
        samples += 1;
    }
    let mut result = Ok(());
    stretch.recording.each_entry(from, to, |entry| {
        if result.is_ok() {
            result = recorder.log(&entry);
        }
    });
    result.and_then(|()| recorder.finish()).with_context(why)?;
    report(path, samples, Duration::from_millis((length.1.0 - length.0.0).max(0) as u64))
}

/// Says how much there is.
fn report(path: &Path, samples: u64, length: Duration) -> anyhow::Result<Exit> {
    let (length, is_file) = (duration::text(length), path != Path::new(STANDARD_OUTPUT));
    let written = match is_file {
        true => format!(", {}: {}", Bytes(std::fs::metadata(path)?.len()), path.display()),
        false => String::new(),
    };
    let samples = if samples == 1 { "1 sample".into() } else { format!("{samples} samples") };
    // Whoever closed standard error does not want to know.
    let _ = writeln!(io::stderr(), "{samples} in {length}{written}");
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
