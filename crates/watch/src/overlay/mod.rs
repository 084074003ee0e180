//! tt-metal's own results on the time axis of a recording: the device profiler's log, the operations report, and the database of the
//! ttnn visualizer.
//!
//! Their times are cycles of chips, or nanoseconds since a profiler began. What names moments on both clocks aligns them: [`Anchor`]s of
//! a recording, which [`launches`] finds where both have the same programs, or a time that the user gives. What cannot be aligned is shown beside the recording, from its own beginning on.
//! The formats are those that tt-metal's sources describe; none of this was tried on hardware.

mod clock;
mod csv;
pub mod database;
pub mod device_log;
pub mod launches;
pub mod operations_report;
pub mod sync;

use crate::exit::{Exit, Failure};
use crate::past::when;
use clock::Clocks;
pub use clock::{Anchor, Fixed, Moment};
use database::CapturedOperations;
use jiff::tz::TimeZone;
use model::Timestamp;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

model::named! {
    /// Where slices come from.
    pub enum OverlaySource {
        DeviceLog = "device profiler log",
        OperationsReport = "operations report",
        Database = "database of the ttnn visualizer",
    }
}

/// The results of one file.
#[derive(Debug, Clone, PartialEq)]
pub struct Overlay {
    /// The file.
    pub path: PathBuf,
    /// Kind of the file.
    pub source: OverlaySource,
    /// Relation of its times to the recording.
    pub alignment: Alignment,
    /// How many slices it has.
    pub slices: u64,
    /// From the first beginning to the last end.
    pub span_ns: (i64, i64),
    /// What is to be said: what was left out, and how chips are aligned with each other.
    pub remarks: Vec<String>,
    clocks: Clocks,
    captured: Option<CapturedOperations>,
}

/// Whether its times are those of the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Alignment {
    /// Times are nanoseconds since 1970, and may be off by so much. None where that is not known.
    Aligned {
        /// Largest error of a time.
        error_ns: Option<u64>,
        /// Source of the alignment, for people.
        how: String,
    },
    /// Times are nanoseconds since its first slice.
    Beside {
        /// Reason, for people.
        why: String,
    },
}

/// Something that took time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice<'a> {
    /// Name of the operation or zone.
    pub name: &'a str,
    /// Begin in nanoseconds.
    pub start_ns: i64,
    /// End in nanoseconds.
    pub end_ns: i64,
    /// As tt-metal counts chips.
    pub chip: Option<u32>,
    /// Coordinates of the core.
    pub core: Option<(u32, u32)>,
    /// Slices of one chip, core and track are one inside of the other, or follow each other.
    pub track: &'a str,
    /// tt-metal's number of the launch.
    pub run: Option<u64>,
}

/// What a file says, on the clock that it uses.
#[derive(Debug, Clone, Copy)]
pub struct RawSlice<'a> {
    /// Name of the operation or zone.
    pub name: &'a str,
    /// Clock of its times.
    pub clock: Clock,
    /// Begin.
    pub start: u64,
    /// End.
    pub end: u64,
    /// The chip, as tt-metal counts chips.
    pub chip: Option<u32>,
    /// Coordinates of the core.
    pub core: Option<(u32, u32)>,
    /// Name of the track.
    pub track: &'a str,
    /// tt-metal's number of the launch.
    pub run: Option<u64>,
}

/// What times are counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Clock {
    /// Cycles of a chip since its reset.
    Chip(u32),
    /// Nanoseconds since the profiler on the host began.
    Host,
}

/// What is known of the time of a file, besides what is in it.
#[derive(Debug, Default, Clone)]
pub struct KnownTimes {
    /// Moments that are known on two clocks.
    pub anchors: Vec<Anchor>,
    /// When its first slice began.
    pub begins_at: Option<Timestamp>,
}

/// A file as people name it: `PATH`, or `PATH@TIME` where its first slice began at that time.
pub fn named(text: &str, now: Timestamp, zone: &TimeZone) -> Result<(PathBuf, Option<Timestamp>), String> {
    let whole = PathBuf::from(text);
    match text.rsplit_once('@') {
        Some((path, time)) if !whole.exists() => Ok((PathBuf::from(path), Some(when::parse(time, now, zone)?))),
        _ => Ok((whole, None)),
    }
}

/// Reads all results in a folder, or of one file.
pub fn read_all(path: &Path, known: &KnownTimes) -> anyhow::Result<Vec<Overlay>> {
    files(path)?.iter().map(|file| read(file, known)).collect()
}

/// The results in a folder, by their names; or the one file.
pub fn files(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let listed = std::fs::read_dir(path).map_err(|error| in_file(path, error.to_string()))?;
    let mut files: Vec<PathBuf> = listed.flatten().map(|entry| entry.path()).filter(|path| is_named_so(path)).collect();
    files.sort();
    if files.is_empty() {
        return Err(in_file(path, format!("there is no {EXPECTED} in it")));
    }
    Ok(files)
}

const EXPECTED: &str = "profile_log_device.csv, ops_perf_results_*.csv or db.sqlite";

fn is_named_so(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let is_report = name.starts_with("ops_perf_results") && name.ends_with(".csv");
    name == "profile_log_device.csv" || is_report || name.ends_with(".sqlite")
}

/// Reads what a file has, and finds its place on the time axis.
pub fn read(path: &Path, known: &KnownTimes) -> anyhow::Result<Overlay> {
    let wrong = |what: String| in_file(path, what);
    match source_of(path).map_err(wrong)? {
        OverlaySource::Database => of_database(path, known).map_err(wrong),
        source => of_csv(path, source, known).map_err(wrong),
    }
}

fn in_file(path: &Path, what: String) -> anyhow::Error {
    Failure::error(Exit::Usage, format!("{}: {what}", path.display()))
}

/// What a file is, by its first bytes.
fn source_of(path: &Path) -> Result<OverlaySource, String> {
    let mut head = Vec::new();
    open(path)?.take(64 << 10).read_to_end(&mut head).map_err(|error| error.to_string())?;
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let has = |word: &[u8]| line.windows(word.len()).any(|part| part == word);
    match () {
        () if head.starts_with(b"SQLite format 3\0") => Ok(OverlaySource::Database),
        () if has(b"CHIP_FREQ[MHz]") => Ok(OverlaySource::DeviceLog),
        () if has(b"OP CODE") => Ok(OverlaySource::OperationsReport),
        () => Err(format!("it is no result of tt-metal: expected {EXPECTED}")),
    }
}

fn open(path: &Path) -> Result<BufReader<File>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    match file.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(BufReader::new(file)),
        _ => Err("it is not a file".into()),
    }
}

/// What there is to align: the first beginning and the last end on each clock.
#[derive(Debug, Default)]
struct Survey {
    slices: u64,
    spans: BTreeMap<Clock, (u64, u64)>,
    gigahertz: Option<f64>,
    remarks: Vec<String>,
}

impl Survey {
    fn of(path: &Path, source: OverlaySource) -> Result<Survey, String> {
        let mut survey = Survey::default();
        let from = open(path)?;
        let each = |slice: RawSlice<'_>| survey.add(&slice);
        let remark = if source == OverlaySource::DeviceLog {
            let head = device_log::decode(from, each)?;
            survey.gigahertz = Some(head.megahertz / 1000.0);
            counted(head.unmatched, "zone has no beginning or no end", "zones have no beginning or no end")
        } else {
            let head = operations_report::decode(from, each)?;
            survey.gigahertz = head.gigahertz;
            counted(head.without_time, "row has no times", "rows have no times")
        };
        survey.remarks.extend(remark);
        Ok(survey)
    }

    fn add(&mut self, slice: &RawSlice<'_>) {
        self.slices += 1;
        let (first, last) = self.spans.entry(slice.clock).or_insert((slice.start, slice.end));
        *first = slice.start.min(*first);
        *last = slice.end.max(*last);
    }

    fn chips(&self) -> impl Iterator<Item = u32> {
        self.spans.keys().filter_map(|clock| if let Clock::Chip(chip) = clock { Some(*chip) } else { None })
    }
}

fn counted(count: u64, one: &str, many: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 {one}: left out")),
        count => Some(format!("{count} {many}: left out")),
    }
}

fn of_csv(path: &Path, source: OverlaySource, known: &KnownTimes) -> Result<Overlay, String> {
    let survey = Survey::of(path, source)?;
    if survey.slices == 0 {
        return Err("it has no times".into());
    }
    let sync = synchronized(path)?;
    let gigahertz = survey.gigahertz.unwrap_or(1.0);
    let mut remarks = survey.remarks.clone();
    let missing: Vec<String> = survey
        .chips()
        .filter(|chip| !known.anchors.iter().any(|anchor| anchor.chip == *chip))
        .map(|n| n.to_string())
        .collect();
    let has_chips = survey.chips().next().is_some();
    let (clocks, alignment) = if has_chips && missing.is_empty() {
        let clocks = Clocks::of_anchors(&known.anchors, &sync, gigahertz);
        let error_ns = clocks.error_ns(&survey.spans);
        let how = match error_ns {
            Some(_) => "the recording names cycles of the same chips",
            None => "the recording names cycles of the same chips, though not before and behind all slices",
        };
        (clocks, Alignment::Aligned { error_ns, how: how.into() })
    } else {
        let why = match (has_chips, missing.len() == survey.chips().count()) {
            (false, _) => "its times are those of the profiler, which does not say when it began".to_owned(),
            (true, true) => "its times are cycles of chips, and the recording names none of them".to_owned(),
            (true, false) => format!("the recording names no cycles of chip {}", missing.join(", ")),
        };
        (Clocks::of_its_own(&survey.spans, &sync, gigahertz), Alignment::Beside { why })
    };
    if let Alignment::Beside { .. } = alignment {
        remarks.extend(clocks.remark(&survey.spans));
    } else if survey.spans.contains_key(&Clock::Host) && !clocks.has_host() {
        remarks.push("times of the host are left out: there is no sync_device_info.csv that aligns them".into());
    }
    let mut overlay = Overlay {
        path: path.to_owned(),
        source,
        alignment,
        slices: survey.slices,
        span_ns: (0, 0),
        remarks,
        clocks,
        captured: None,
    };
    overlay.put(&survey.spans, known.begins_at);
    Ok(overlay)
}

/// The file that says how the clocks of chips and host belong together, where tt-metal puts it.
fn synchronized(path: &Path) -> Result<BTreeMap<u32, Fixed>, String> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let places = ["", ".logs", "../.logs", "../../.logs"].map(|place| folder.join(place).join("sync_device_info.csv"));
    let Some(place) = places.iter().find(|place| place.is_file()) else { return Ok(BTreeMap::new()) };
    open(place).and_then(sync::decode).map_err(|what| format!("{}: {what}", place.display()))
}

fn of_database(path: &Path, known: &KnownTimes) -> Result<Overlay, String> {
    let connection = database::open(path).map_err(database::words)?;
    let captured = database::operations(&connection)?;
    let last = captured.operations.iter().map(|operation| operation.end_ns).max();
    let Some(last) = last else { return Err("it has no operations".into()) };
    let alignment = match (captured.began_ns, captured.error_ns) {
        (Some(_), Some(error)) => Alignment::Aligned {
            error_ns: Some(error),
            how: "the database says when the capture began, and how long each operation took".into(),
        },
        _ if captured.has_ranks => Alignment::Beside { why: "several processes are in it, and it has one time".into() },
        _ => Alignment::Beside { why: "it says how long operations took, and not when they began".into() },
    };
    let began = captured.began_ns.filter(|_| matches!(alignment, Alignment::Aligned { .. }));
    let mut overlay = Overlay {
        path: path.to_owned(),
        source: OverlaySource::Database,
        alignment,
        slices: captured.operations.len() as u64,
        span_ns: (0, 0),
        remarks: Vec::new(),
        clocks: Clocks::of_host(began.and_then(|began| began.try_into().ok()).unwrap_or(0)),
        captured: Some(captured),
    };
    overlay.put(&BTreeMap::from([(Clock::Host, (0, last))]), known.begins_at);
    Ok(overlay)
}

impl Overlay {
    /// Finds where it is on the axis, and moves it to where it was said to be.
    fn put(&mut self, spans: &BTreeMap<Clock, (u64, u64)>, begins_at: Option<Timestamp>) {
        let times = |clocks: &Clocks| {
            let each = spans.iter().filter_map(|(clock, (first, last))| {
                Some((clocks.nanoseconds(*clock, *first)?, clocks.nanoseconds(*clock, *last)?))
            });
            each.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or_default()
        };
        let (first, _) = times(&self.clocks);
        if let (Some(begins_at), Alignment::Beside { .. }) = (begins_at, &self.alignment) {
            self.clocks.shift(begins_at.0.saturating_mul(1_000_000).saturating_sub(first));
            let how = "it begins at the time that was given".into();
            self.alignment = Alignment::Aligned { error_ns: None, how };
        } else if let Alignment::Beside { .. } = self.alignment {
            self.clocks.shift(first.saturating_neg());
        }
        self.span_ns = times(&self.clocks);
    }

    /// Hands over its slices. The file is read again: they need not be in memory.
    pub fn each(&self, mut each: impl FnMut(Slice<'_>)) -> anyhow::Result<()> {
        let mut hand_over = |raw: RawSlice<'_>| {
            let times = (self.clocks.nanoseconds(raw.clock, raw.start), self.clocks.nanoseconds(raw.clock, raw.end));
            let (Some(start_ns), Some(end_ns)) = times else { return };
            let RawSlice { name, chip, core, track, run, .. } = raw;
            each(Slice { name, start_ns, end_ns: end_ns.max(start_ns), chip, core, track, run });
        };
        let wrong = |what: String| in_file(&self.path, what);
        match (self.source, &self.captured) {
            (_, Some(captured)) => {
                for operation in &captured.operations {
                    let track =
                        if captured.has_ranks { format!("rank {}", operation.rank) } else { "operations".into() };
                    hand_over(RawSlice {
                        name: &operation.name,
                        clock: Clock::Host,
                        start: operation.start_ns,
                        end: operation.end_ns,
                        chip: None,
                        core: None,
                        track: &track,
                        run: None,
                    });
                }
            }
            (OverlaySource::DeviceLog, _) => {
                open(&self.path).and_then(|from| device_log::decode(from, hand_over)).map(drop).map_err(wrong)?;
            }
            _ => {
                open(&self.path).and_then(|from| operations_report::decode(from, hand_over)).map(drop).map_err(wrong)?
            }
        }
        Ok(())
    }

    /// How it is aligned, in one sentence.
    pub fn sentence(&self) -> String {
        let name =
            self.path.file_name().map_or_else(|| self.path.display().to_string(), |n| n.to_string_lossy().into_owned());
        match &self.alignment {
            Alignment::Aligned { error_ns: Some(error), how } => {
                format!("{name}: aligned within {}: {how}", show::activity::seconds(*error as f64 / 1e9, true))
            }
            Alignment::Aligned { error_ns: None, how } => format!("{name}: aligned: {how}"),
            Alignment::Beside { why } => format!("{name}: beside the recording, from its own beginning on: {why}"),
        }
    }
}

/// A longer name is cut.
const LONGEST_NAME: usize = 256;

/// A name of a file, within the limit.
fn shortened(name: &str) -> &str {
    let end = (0..=LONGEST_NAME.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
    &name[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests;
