//! `--timeline`: every program that the command's processes run, and the devices beside it, written while it runs.
//!
//! The agent writes single records into a ring in each process's book. The ring has room for 65,536 and is read every 20 ms. On a
//! busy machine, records of 450,000 programs a second were overwritten before they were read. What is lost is counted.

use super::account::{ChipName, chip_name};
use super::collect::{self, BookReader, Received};
use super::results::WantedResults;
use crate::timeline::{Clocks, Form, Format, Output, ProcessKey, Slice, TableKind, Timeline};
use ledger::book::activity::{self, NoRecords, SingleReader, SingleRecord, monotonic};
use ledger::book::{self, Book};
use model::{Bytes, Device, Event, Snapshot, Timestamp, Weight};
use show::command::display_name;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use watch::events::{Events, Observation};
use watch::exit::{Exit, Failure};

/// The timeline of a run, which the thread of the books and that of the samples both write.
#[derive(Clone)]
pub struct LiveTimeline {
    live: Arc<Mutex<Live>>,
}

struct Live {
    path: PathBuf,
    timeline: Result<Timeline, io::Error>,
    /// When it began, in ns since 1970.
    began: u64,
    /// From the monotonic clock to ns since 1970.
    offset: u64,
    books: HashMap<(u64, u64), BookRead>,
    devices: Vec<Device>,
    before: Snapshot,
    events: Events,
    counts: Counts,
    results: WantedResults,
}

/// What is in the file.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    programs: u64,
    samples: u64,
}

/// How far the book of a process was read.
struct BookRead {
    pid: u32,
    name: String,
    reader: SingleReader,
    operations: HashMap<u16, String>,
    /// What each is called here and by tt-metal, and how late its times are.
    chips: Vec<(String, u32, ClockError)>,
    is_done: bool,
    /// Records that tt-metal dropped, and why it delivers none.
    dropped: u64,
    no_records: Option<&'static str>,
    batch: Vec<SingleRecord>,
}

impl LiveTimeline {
    /// Opens the file, before anything is run.
    pub fn open(path: &Path, overlays: &[PathBuf]) -> anyhow::Result<LiveTimeline> {
        let usage = |what: String| {
            Failure::error(Exit::Usage, format!("--timeline: {}", what.replace(", or use --format", "")))
        };
        let form = Form::of(path, None).map_err(usage)?;
        if !overlays.is_empty() && form.format == Format::Csv {
            let what = "--overlay goes with Perfetto's and Chrome's format, and not with a table";
            return Err(Failure::error(Exit::Usage, what));
        }
        let failed = |error: io::Error| {
            Failure::of_io(&error, format!("--timeline: cannot write to {}: {error}", path.display()))
        };
        let output = Output::open(path, form.is_compressed).map_err(failed)?;
        let (began, monotonic) = (collect::now(), monotonic());
        let clocks = Clocks { began, monotonic: Some(monotonic) };
        let table = if form.format == Format::Csv { TableKind::Slices } else { TableKind::default() };
        let live = Live {
            path: path.to_owned(),
            timeline: Ok(Timeline::begin(output, form.format, table, clocks).map_err(failed)?),
            began,
            offset: began.wrapping_sub(monotonic),
            books: HashMap::new(),
            devices: Vec::new(),
            before: Snapshot::empty(),
            events: Events::default(),
            counts: Counts::default(),
            results: WantedResults::new(overlays.to_vec()),
        };
        Ok(LiveTimeline { live: Arc::new(Mutex::new(live)) })
    }

    pub fn snapshot(&self, snapshot: &Snapshot) {
        self.with(|live| live.snapshot(snapshot));
    }

    /// Reads what the processes have run since the last time.
    pub fn reader(self) -> BookReader {
        Box::new(move |books, is_last| self.with(|live| books.iter().for_each(|book| live.read(book, is_last))))
    }

    /// Ends the file. What there is to say about it, and whether it is whole.
    pub fn finish(&self) -> (Vec<String>, bool) {
        self.with(Live::finish)
    }

    fn with<T>(&self, change: impl FnOnce(&mut Live) -> T) -> T {
        change(&mut self.live.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Live {
    /// Writes, unless writing has failed before.
    fn write(&mut self, write: impl FnOnce(&mut Timeline) -> io::Result<()>) -> bool {
        let Ok(timeline) = &mut self.timeline else { return false };
        let written = write(timeline);
        let is_written = written.is_ok();
        if let Err(error) = written {
            self.timeline = Err(error);
        }
        is_written
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        let seen = |snapshot| Observation { snapshot, exits: &[] };
        self.events.notice(seen(&self.before), seen(snapshot));
        let events = self.events.take();
        self.counts.samples += 1;
        self.write(|timeline| {
            timeline.snapshot(snapshot)?;
            events.iter().try_for_each(|event| timeline.event(event))
        });
        self.devices.clone_from(&snapshot.devices);
        self.before.clone_from(snapshot);
    }

    fn read(&mut self, received: &Received, is_last: bool) {
        let mut read = self.books.remove(&received.inode).unwrap_or_else(|| BookRead::new(received));
        let is_last = is_last || received.died.is_some();
        while !read.is_done {
            read.batch.clear();
            let batch = &mut read.batch;
            let source = book::of_file(&received.file);
            let result = read.reader.read(source, is_last, |record| batch.push(record));
            // A book that cannot be read is in the receipt's remarks.
            if result.is_err() || read.batch.is_empty() {
                read.is_done = is_last;
                if is_last {
                    read.close(received);
                }
                break;
            }
            self.write_batch(received, &mut read);
            if !is_last {
                break;
            }
        }
        self.books.insert(received.inode, read);
    }

    fn write_batch(&mut self, received: &Received, read: &mut BookRead) {
        read.learn(received, &self.devices);
        let BookRead { pid, name, operations, chips, batch, .. } = read;
        let sampled = self.before.processes.iter().find(|process| process.pid == *pid);
        let label = sampled.and_then(display_name).unwrap_or_default().into_owned();
        let (offset, process) = (self.offset, ProcessKey { pid: *pid, name, label: &label });
        for record in batch.iter() {
            let chip = chips.get(usize::from(record.chip));
            chip.into_iter().for_each(|(_, chip, _)| self.results.add(*chip, record, offset));
        }
        let written = self.write(|timeline| {
            for record in batch.iter() {
                let Some((device, _, error)) = chips.get_mut(usize::from(record.chip)) else { continue };
                error.add(record);
                let operation = record.operation.and_then(|number| operations.get(&number));
                timeline.slice(&Slice {
                    process,
                    device,
                    queue: record.launch.queue,
                    operation: operation.map_or("unnamed program", String::as_str),
                    runtime_id: record.runtime_id,
                    start: record.start.wrapping_add(offset),
                    end: record.end.wrapping_add(offset),
                    launched: record.launch.time.map(|time| time.wrapping_add(offset)),
                })?;
            }
            Ok(())
        });
        self.counts.programs += if written { batch.len() as u64 } else { 0 };
    }

    fn finish(&mut self) -> (Vec<String>, bool) {
        let mut books: Vec<&BookRead> = self.books.values().collect();
        books.sort_by_key(|read| read.pid);
        let mut notes: Vec<String> = books.into_iter().flat_map(BookRead::notes).collect();
        let now = Timestamp((collect::now() / 1_000_000) as i64);
        let overlays = match &mut self.timeline {
            Ok(timeline) => self.results.draw(timeline, (self.began, collect::now())),
            Err(_) => Vec::new(),
        };
        for note in &notes {
            let event = Event::new(now, Weight::Note, None, note.clone());
            self.write(|timeline| timeline.event(&event));
        }
        // What was drawn has said so in the file.
        notes.extend(overlays);
        let ended = std::mem::replace(&mut self.timeline, Err(io::ErrorKind::NotConnected.into()));
        let path = self.path.display();
        match ended.and_then(Timeline::finish) {
            Ok(bytes) => {
                let Counts { programs, samples } = self.counts;
                let plural = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
                let what = format!("{}, {}", plural(programs, "program"), plural(samples, "sample"));
                notes.insert(0, format!("timeline: {what}, {}: {path}", Bytes(bytes)));
                (notes, true)
            }
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => (notes, true),
            Err(error) => (vec![format!("error: --timeline: cannot write to {path}: {error}")], false),
        }
    }
}

impl BookRead {
    fn new(received: &Received) -> BookRead {
        BookRead {
            pid: received.pid,
            name: received.name.clone().unwrap_or_default(),
            reader: SingleReader::default(),
            operations: HashMap::new(),
            chips: Vec::new(),
            is_done: false,
            dropped: 0,
            no_records: None,
            batch: Vec::new(),
        }
    }

    /// Reads the names of operations and chips that are new.
    fn learn(&mut self, received: &Received, devices: &[Device]) {
        let has_name =
            |record: &SingleRecord| record.operation.is_none_or(|number| self.operations.contains_key(&number));
        let is_known = |record: &SingleRecord| usize::from(record.chip) < self.chips.len() && has_name(record);
        if self.batch.iter().all(is_known) {
            return;
        }
        let source = || book::of_file(&received.file);
        let Ok(book) = book::read(source()) else { return };
        for chip in book.chips.iter().skip(self.chips.len()) {
            let name = device_text(&chip_name(chip, self.pid, devices));
            self.chips.push((name, chip.device_id, ClockError::default()));
        }
        if let Some(known) = operations(&received.file, &book) {
            self.operations.extend(known);
        }
    }

    /// Looks at what tt-metal delivered, when all is read.
    fn close(&mut self, received: &Received) {
        let source = || book::of_file(&received.file);
        let activity = book::read(source()).and_then(|book| activity::activity(source(), &book, monotonic()));
        let Ok(Some(activity)) = activity else { return };
        self.dropped = activity.delivery.dropped;
        let of_chips = activity.chips.iter().filter(|chip| chip.records == 0).find_map(|chip| chip.reason);
        self.no_records = activity.delivery.reason.or(of_chips).map(NoRecords::text);
    }

    /// What is to be said of its records.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let who =
            if self.name.is_empty() { format!("pid {}", self.pid) } else { format!("{} ({})", self.name, self.pid) };
        let lost = self.reader.lost();
        if lost > 0 {
            notes.push(format!("{who}: {lost} programs are missing: they were overwritten before they were read"));
        }
        if self.dropped > 0 {
            let dropped = self.dropped;
            notes.push(format!("{who}: {dropped} programs are missing: tt-metal dropped their records"));
        }
        let has_none = self.chips.iter().all(|(_, _, error)| error.records == 0);
        match self.no_records {
            Some(why) if has_none => notes.push(format!("{who}: no programs: {why}")),
            None if !self.reader.is_kept() => notes.push(format!("{who}: no programs: its agent recorded none")),
            _ => {}
        }
        for (device, _, error) in self.chips.iter().filter(|(_, _, error)| error.records > 0) {
            notes.push(match error.most() {
                Some(late) => format!(
                    "{who}: times of {device} are late by at most {:.1} µs: no program starts before its launch",
                    late as f64 / 1000.0
                ),
                None => format!("{who}: times of {device} are late by an unknown delay: no launch is known"),
            });
        }
        notes
    }
}

fn operations(file: &std::fs::File, book: &Book) -> Option<HashMap<u16, String>> {
    let (source, now) = (|| book::of_file(file), monotonic());
    let activity = activity::activity(source(), book, now).ok()??;
    let operations = activity::operations(source(), &activity, now).ok()?;
    Some(operations.into_iter().map(|operation| (operation.number, operation.name)).collect())
}

fn device_text(chip: &ChipName) -> String {
    match chip {
        ChipName::Device(id) => format!("device {id}"),
        ChipName::Chip(number) => format!("chip {number:016x}"),
        ChipName::Nth(_, number) => format!("chip {number} of the process"),
    }
}

/// How much too late the times of a chip are, at most. A record is placed by when it arrived, so its time is late by the delay of the
/// delivery and never early; and a program cannot start before its launch. So the shortest time from a launch to a start, in each ten
/// seconds, is a bound for these.
#[derive(Debug, Default)]
struct ClockError {
    records: u64,
    window: u64,
    least: Option<u64>,
    most: Option<u64>,
}

/// ns for which the clocks of host and chip are taken to run alike, as the agent does.
const WINDOW: u64 = 10_000_000_000;

impl ClockError {
    fn add(&mut self, record: &SingleRecord) {
        self.records += 1;
        let window = record.start / WINDOW;
        if window != self.window {
            self.most = self.most();
            (self.window, self.least) = (window, None);
        }
        if let Some(launched) = record.launch.time {
            let late = record.start.saturating_sub(launched);
            self.least = Some(self.least.map_or(late, |least| least.min(late)));
        }
    }

    fn most(&self) -> Option<u64> {
        self.most.max(self.least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::book::activity::LaunchOf;

    fn record(start: u64, launched: Option<u64>) -> SingleRecord {
        let launch = LaunchOf { queue: None, time: launched };
        SingleRecord { number: 0, start, end: start, chip: 0, operation: None, runtime_id: 0, launch }
    }

    #[test]
    fn times_are_late_by_no_more_than_the_shortest_way_from_a_launch() {
        let mut error = ClockError::default();
        error.add(&record(5_000, None));
        assert_eq!(error.most(), None);
        error.add(&record(9_000, Some(2_000)));
        error.add(&record(9_500, Some(9_200)));
        error.add(&record(12_000, Some(3_000)));
        assert_eq!(error.most(), Some(300));
        // In the next ten seconds the clocks may have drifted apart.
        error.add(&record(WINDOW + 5_000, Some(WINDOW + 4_000)));
        assert_eq!(error.most(), Some(1_000));
        error.add(&record(2 * WINDOW, Some(2 * WINDOW)));
        assert_eq!((error.most(), error.records), (Some(1_000), 6));
    }
}
