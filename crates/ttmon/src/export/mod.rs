//! `ttmon export`: a recording, or a stretch of the black box, as a timeline that profilers open, or as a table.

use crate::timeline::{Clocks, Form, Format, Output, TableKind, Timeline, overlays};
use anyhow::Context;
use jiff::tz::TimeZone;
use model::{Bytes, LogEntry, Snapshot};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use watch::args::MachineArgs;
use watch::events::{Events, Observation};
use watch::exit::{self, Exit, Failure};
use watch::overlay::{self, KnownTimes, Overlay};
use watch::past::{self, NamedStretch, Stretch, StretchArgs};

pub const AFTER_HELP: &str = "\
The format follows from OUT's name: .pftrace or .perfetto-trace for Perfetto, .json for Chrome's trace events, .csv for a table. \
With .gz behind it, OUT is compressed as it is written. An existing file is never written over.

  ttmon export night.ttmon -o night.pftrace
  ttmon export --from 14:00 --to 14:30 -o incident.json.gz
  ttmon export '@2h ago..1h ago' -o devices.csv
  ttmon export night.ttmon --table events -o events.csv
  ttmon export night.ttmon --overlay generated/profiler/reports/x -o night.pftrace

Perfetto and Chrome files have a group per device with its counters, a group per process, and events as instants. \
Open them on ui.perfetto.dev, or import the latter with tracy-import-chrome. Slices of single programs need a live run: \
see `ttmon run --timeline`. With --overlay, results of tt-metal are on tracks of their own; what cannot be aligned begins where the \
recording does, and is marked.

Exit codes: 1 OUT can no longer be written, or the recording is damaged; 2 invalid arguments; 4 no permission; 6 no black box.";

#[derive(Debug, Clone, clap::Args)]
pub struct ExportArgs {
    /// A recording, a part of one (FILE@FROM..TO), or of the black box (@FROM..TO) [default: the black box]
    #[arg(value_name = "FILE|@FROM..TO")]
    pub source: Option<String>,
    #[command(flatten)]
    pub stretch: StretchArgs,
    /// Write to OUT, which must be new or empty; - is standard output
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Write this format, whatever OUT is called
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Which table a CSV has
    #[arg(long, value_name = "TABLE", default_value = "devices")]
    pub table: TableKind,
    /// Also draw a result of tt-metal: profile_log_device.csv, ops_perf_results_*.csv, db.sqlite, or a folder of them. PATH@TIME says
    /// when it began. Can be given several times
    #[arg(long, value_name = "PATH[@TIME]")]
    pub overlay: Vec<String>,
}

pub fn run(machine: &MachineArgs, args: &ExportArgs) -> anyhow::Result<Exit> {
    let usage = |what: String| Failure::error(Exit::Usage, what);
    let form = Form::of(&args.output, args.format).map_err(usage)?;
    if args.table != TableKind::default() && form.format != Format::Csv {
        return Err(usage("--table goes with CSV: end OUT in .csv, or use --format csv".to_owned()));
    }
    if args.table == TableKind::Slices {
        let why = "--table slices: a recording has no single programs: `ttmon run --timeline FILE.csv CMD` writes them";
        return Err(usage(why.to_owned()));
    }
    if !args.overlay.is_empty() && form.format == Format::Csv {
        return Err(usage("--overlay goes with Perfetto's and Chrome's format, and not with a table".to_owned()));
    }
    let stretch = open(machine, args)?;
    let overlays = overlays_of(&args.overlay)?;
    let path = &args.output;
    let output = Output::open(path, form.is_compressed)
        .map_err(|error| Failure::of_io(&error, format!("cannot write to {}: {error}", path.display())))?;
    let why = || format!("{}: it ends here", path.display());
    let (samples, bytes) = export(stretch, output, &overlays, form.format, args.table).with_context(why)?;
    if path != Path::new("-") {
        let samples = if samples == 1 { "1 sample".into() } else { format!("{samples} samples") };
        exit::say(format_args!("{samples}, {}: {}", Bytes(bytes), path.display()));
    }
    Ok(Exit::Success)
}

/// The stretch that is named, in one way or the other.
fn open(machine: &MachineArgs, args: &ExportArgs) -> anyhow::Result<Stretch> {
    let Some(source) = &args.source else { return args.stretch.open(machine, None) };
    let usage = |what: String| Failure::error(Exit::Usage, what);
    let named = NamedStretch::parse(source, past::now(), &TimeZone::system()).map_err(usage)?;
    match (&named.range, &args.stretch.from, &args.stretch.to) {
        (None, ..) => args.stretch.open(machine, named.path.as_deref()),
        (Some(_), None, None) => named.open(&args.stretch.black_box, machine),
        (Some(_), ..) => Err(usage(format!("{source} names times: leave out --from and --to"))),
    }
}

/// Reads all results that are named, and says on standard error how each is aligned.
fn overlays_of(names: &[String]) -> anyhow::Result<Vec<Overlay>> {
    let mut overlays = Vec::new();
    for name in names {
        let (path, begins_at) = overlay::named(name, past::now(), &TimeZone::system())
            .map_err(|what| Failure::error(Exit::Usage, format!("--overlay {name}: {what}")))?;
        overlays.extend(overlay::read_all(&path, &KnownTimes { anchors: Vec::new(), begins_at })?);
    }
    for overlay in &overlays {
        exit::say(format_args!("{}", overlay.sentence()));
        overlay.remarks.iter().for_each(|remark| exit::say(format_args!("  {remark}")));
    }
    Ok(overlays)
}

/// What is read while the one before is written.
enum Read {
    Sample(Arc<Snapshot>),
    Entry(Box<LogEntry>),
}

/// Samples that may wait to be written.
const WAITING: usize = 8;

/// Writes a stretch. Returns how many samples it has, and how many bytes were written.
fn export(
    mut stretch: Stretch,
    output: Output,
    overlays: &[Overlay],
    format: Format,
    table: TableKind,
) -> anyhow::Result<(usize, u64)> {
    let indices = stretch.indices();
    let first = stretch.recording.snapshot(indices.start)?.taken_at.min(stretch.recording.span().0.max(stretch.from));
    let began = u64::try_from(first.0).unwrap_or(0).saturating_mul(1_000_000);
    let ended = u64::try_from(stretch.to.0).unwrap_or(0).saturating_mul(1_000_000);
    let mut timeline = Timeline::begin(output, format, table, Clocks { began, monotonic: None })?;
    let (sender, receiver) = sync_channel(WAITING);
    // Half of the time is for reading, and half for writing.
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || read(&mut stretch, &sender));
        for next in &receiver {
            match next {
                Read::Sample(snapshot) => timeline.snapshot(&snapshot)?,
                Read::Entry(entry) => timeline.entry(&entry)?,
            }
        }
        reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    for overlay in overlays {
        let left_out = overlays::draw(overlay, &mut timeline, (began, ended))?;
        left_out.into_iter().for_each(|what| exit::say(format_args!("{what}")));
    }
    Ok((indices.len(), timeline.finish()?))
}

/// Reads samples and, in their places between these, entries of the log. Where there is no log, events are found by comparing samples.
fn read(stretch: &mut Stretch, sender: &SyncSender<Read>) -> io::Result<()> {
    let mut entries = Vec::new();
    stretch.recording.each_entry(stretch.from, stretch.to, |entry| entries.push(entry));
    entries.sort_by_key(LogEntry::time);
    let mut entries = entries.into_iter().peekable();
    let mut events = (!stretch.recording.has_log()).then(Events::default);
    let mut before = Arc::new(Snapshot::empty());
    // Whoever no longer listens has failed to write.
    let send = |read| sender.send(read).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe));
    for index in stretch.indices() {
        let snapshot = Arc::new(stretch.recording.snapshot(index)?);
        while let Some(entry) = entries.next_if(|entry| entry.time() <= snapshot.taken_at) {
            send(Read::Entry(Box::new(entry)))?;
        }
        let found = events.as_mut().map(|events| {
            let seen = |snapshot| Observation { snapshot, exits: &[] };
            events.notice(seen(&before), seen(&snapshot));
            events.take()
        });
        before = Arc::clone(&snapshot);
        send(Read::Sample(snapshot))?;
        for event in found.into_iter().flatten() {
            send(Read::Entry(Box::new(LogEntry::Event(event))))?;
        }
    }
    entries.try_for_each(|entry| send(Read::Entry(Box::new(entry))))
}
