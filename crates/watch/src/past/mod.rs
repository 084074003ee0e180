//! A stretch of the past: of a recording, or of the black box that the service keeps.

mod values;
pub mod when;

use crate::args::MachineArgs;
use crate::client::ServiceClient;
use crate::config::{self, Config};
use crate::events::{Events, Observation};
use crate::exit::{Exit, Failure};
use crate::record::Recording;
use crate::service_limits::BlackBoxSetting;
use jiff::tz::TimeZone;
use model::{LogEntry, Snapshot, Timestamp};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

pub use values::{SampledValues, ValueSeries};

/// Where the packaged service keeps its black box.
pub const OF_MACHINE: &str = "/var/lib/ttmon/black-box";

/// Which stretch, on the command line.
#[derive(Debug, Default, Clone, clap::Args)]
pub struct StretchArgs {
    /// Begin at this time, such as 14:05, "yesterday 14:05", "2026-11-15 14:05" or "20m ago"
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// End at this time
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
    #[allow(missing_docs)]
    #[command(flatten)]
    pub black_box: BlackBoxArgs,
}

/// Which black box, on the command line.
#[derive(Debug, Default, Clone, clap::Args)]
pub struct BlackBoxArgs {
    /// Read the black box in this folder [default: the service's, else the configured one, else /var/lib/ttmon/black-box, else
    /// $XDG_STATE_HOME/ttmon/black-box]
    #[arg(long, value_name = "DIR")]
    pub black_box: Option<PathBuf>,
}

impl BlackBoxArgs {
    /// Opens the folder that is named, or else the one that is found. None where there is none.
    pub fn find(&self, machine: &MachineArgs) -> anyhow::Result<Option<(PathBuf, Recording)>> {
        let ask = || ServiceClient::new(machine.service.as_deref())?.black_box();
        let is_named = self.black_box.is_some();
        let folder = self.black_box.clone().or_else(ask).or_else(found);
        folder.map(|folder| open_folder(&folder, is_named).map(|recording| (folder, recording))).transpose()
    }

    /// Opens it. An error where there is none.
    pub fn open(&self, machine: &MachineArgs) -> anyhow::Result<Recording> {
        let why = "there is no black box: the service keeps one with `ttmon serve --black-box DIR`; \
                   or name a recording";
        self.find(machine)?.map(|(_, recording)| recording).ok_or_else(|| Failure::error(Exit::NoDevice, why))
    }
}

/// Opens a black box, in a folder that is named on the command line or that is known otherwise.
fn open_folder(folder: &Path, is_named: bool) -> anyhow::Result<Recording> {
    let path = folder.display();
    let (exit, why) = match std::fs::read_dir(folder).map_err(|error| error.kind()) {
        Err(io::ErrorKind::PermissionDenied) => (
            Exit::Permission,
            format!("you may not read the black box in {path}: use sudo, or let all users: sudo chmod -R a+rX {path}"),
        ),
        Err(io::ErrorKind::NotFound) if !is_named => (
            Exit::Usage,
            format!("the black box should be in {path}, which is not there: name its folder with --black-box DIR"),
        ),
        _ => return Recording::open(folder),
    };
    Err(Failure::error(exit, why))
}

/// The folder that the configuration names, or a default one: of the machine, or else of the user. Without a service that says where its
/// folder is.
fn found() -> Option<PathBuf> {
    let configured = [Some(config::OF_THE_MACHINE.into()), config::path(None).ok()].into_iter().flatten().filter_map(
        |file: PathBuf| match Config::load(&file).service.black_box {
            Some(BlackBoxSetting::Folder(folder)) => Some(folder),
            _ => None,
        },
    );
    configured.chain([OF_MACHINE.into()]).chain(of_user()).find(|folder| folder.is_dir())
}

/// A black box, and what there is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlackBoxFound {
    /// Its folder.
    pub folder: PathBuf,
    /// Size of its files.
    pub bytes: u64,
    /// How long ago its first snapshot was taken, and its last; or why it cannot be read.
    pub ages: Result<(Duration, Duration), String>,
}

impl BlackBoxFound {
    /// The black box in the folder that the service names, or else the one that is found.
    pub fn here(of_service: Option<PathBuf>) -> Option<BlackBoxFound> {
        let folder = of_service.or_else(found)?;
        let sizes = std::fs::read_dir(&folder).into_iter().flatten().filter_map(|entry| entry.ok()?.metadata().ok());
        let bytes = sizes.filter(std::fs::Metadata::is_file).map(|file| file.len()).sum();
        let age = |then: Timestamp| Duration::from_millis((now().0 - then.0).max(0) as u64);
        let ages =
            open_folder(&folder, false).map(|recording| recording.span()).map(|(first, last)| (age(first), age(last)));
        Some(BlackBoxFound { folder, bytes, ages: ages.map_err(|why| format!("{why:#}")) })
    }
}

/// Where the service keeps a black box by default when it does not run as root.
pub fn of_user() -> Option<PathBuf> {
    let home =
        || std::env::var_os("HOME").filter(|home| !home.is_empty()).map(|home| Path::new(&home).join(".local/state"));
    let state =
        std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute()).or_else(home)?;
    Some(state.join("ttmon/black-box"))
}

/// A recording and a part of it, as people name it: `FILE`, `FILE@FROM..TO`, or `@FROM..TO` of the black box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedStretch {
    /// None for the black box.
    pub path: Option<PathBuf>,
    /// Begin and end; None for all of it.
    pub range: Option<(Timestamp, Timestamp)>,
}

impl NamedStretch {
    /// What a text names. A file whose name has an @ in it can be named, as long as no `..` follows.
    pub fn parse(text: &str, now: Timestamp, zone: &TimeZone) -> Result<NamedStretch, String> {
        let split = text.rsplit_once('@').and_then(|(path, range)| Some((path, range.split_once("..")?)));
        let Some((path, (from, to))) = split else {
            return Ok(NamedStretch { path: Some(PathBuf::from(text)), range: None });
        };
        let to = if to.trim().is_empty() { "now" } else { to };
        let range = when::parse_range(from, to, now, zone)?;
        Ok(NamedStretch {
            path: Some(PathBuf::from(path)).filter(|path| !path.as_os_str().is_empty()),
            range: Some(range),
        })
    }

    /// Opens the recording; an error if it has no sample there.
    pub fn open(&self, black_box: &BlackBoxArgs, machine: &MachineArgs) -> anyhow::Result<Stretch> {
        let mut recording = self.path.as_deref().map_or_else(|| black_box.open(machine), Recording::open)?;
        let (from, to) = self.range.unwrap_or_else(|| recording.span());
        Stretch::of(&mut recording, from, to).map(|_| Stretch { recording, from, to })
    }
}

impl StretchArgs {
    /// The stretch around a moment, for people who want to see what happened then.
    pub fn around(&self, machine: &MachineArgs, path: Option<&Path>, at: &str) -> anyhow::Result<(Stretch, Timestamp)> {
        let moment = when::parse(at, now(), &TimeZone::system())
            .map_err(|what| Failure::error(Exit::Usage, format!("--at: {what}")))?;
        let recording = path.map_or_else(|| self.black_box.open(machine), Recording::open)?;
        Ok((Stretch::around(recording, moment)?, moment))
    }

    /// The times that were given.
    fn ends(&self) -> Result<(Option<Timestamp>, Option<Timestamp>), String> {
        let (now, zone) = (now(), TimeZone::system());
        let one = |option: &str, text: &Option<String>| {
            let moment = text.as_deref().map(|text| when::parse(text, now, &zone)).transpose();
            moment.map_err(|what| format!("{option}: {what}"))
        };
        match (&self.from, &self.to) {
            (Some(from), Some(to)) => when::parse_range(from, to, now, &zone)
                .map(|(from, to)| (Some(from), Some(to)))
                .map_err(|what| format!("--from and --to: {what}")),
            _ => Ok((one("--from", &self.from)?, one("--to", &self.to)?)),
        }
    }

    /// Opens what is named, or the black box. Without times, all of it.
    pub fn open(&self, machine: &MachineArgs, path: Option<&Path>) -> anyhow::Result<Stretch> {
        // A mistake in a time is said first, whatever there is to open.
        let (begin, end) = self.ends().map_err(|what| Failure::error(Exit::Usage, what))?;
        let mut recording = path.map_or_else(|| self.black_box.open(machine), Recording::open)?;
        let (first, last) = recording.span();
        let (from, to) = (begin.unwrap_or(first), end.unwrap_or(last));
        Stretch::of(&mut recording, from, to)?;
        Ok(Stretch { recording, from, to })
    }
}

/// So much before and after a moment is shown with it.
const AROUND_MS: i64 = 1_800_000;

/// A part of a recording that has at least one snapshot.
#[derive(Debug)]
pub struct Stretch {
    /// The recording.
    pub recording: Recording,
    /// Begin.
    pub from: Timestamp,
    /// End.
    pub to: Timestamp,
}

impl Stretch {
    /// The snapshots of a stretch. An error, with what there is, when there are none.
    fn of(recording: &mut Recording, from: Timestamp, to: Timestamp) -> anyhow::Result<Range<usize>> {
        let range = recording.range(from, to);
        if range.is_empty() {
            let (now, zone, (first, last)) = (now(), TimeZone::system(), recording.span());
            let text = |moment| when::text(moment, now, &zone);
            let what = format!(
                "nothing was recorded from {} to {}: the recording is from {} to {}",
                text(from),
                text(to),
                text(first),
                text(last)
            );
            return Err(Failure::error(Exit::Usage, what));
        }
        Ok(range)
    }

    /// What is shown with a moment: half an hour before and after, as far as it was recorded.
    pub fn around(mut recording: Recording, moment: Timestamp) -> anyhow::Result<Stretch> {
        let (from, to) = (Timestamp(moment.0 - AROUND_MS), Timestamp(moment.0 + AROUND_MS));
        Stretch::of(&mut recording, from, to)?;
        let (first, last) = recording.span();
        Ok(Stretch { recording, from: from.max(first), to: to.min(last) })
    }

    /// The indices of its snapshots.
    pub fn indices(&mut self) -> Range<usize> {
        self.recording.range(self.from, self.to)
    }

    /// What happened, the earliest first. Where the recording has no log, events are found by comparing its snapshots.
    pub fn happened(&mut self) -> io::Result<Vec<LogEntry>> {
        let mut entries = Vec::new();
        self.recording.each_entry(self.from, self.to, |entry| entries.push(entry));
        if !self.recording.has_log() {
            entries.extend(self.found_events()?);
        }
        entries.sort_by_key(LogEntry::time);
        Ok(entries)
    }

    fn found_events(&mut self) -> io::Result<Vec<LogEntry>> {
        let (mut events, mut before, mut found) = (Events::default(), Snapshot::empty(), Vec::new());
        for index in self.indices() {
            let now = self.recording.snapshot(index)?;
            let seen = |snapshot| Observation { snapshot, exits: &[] };
            events.notice(seen(&before), seen(&now));
            found.extend(events.take().into_iter().map(LogEntry::Event));
            before = now;
        }
        Ok(found)
    }
}

/// What the clock says.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Recorder;
    use model::State;
    use show::example;

    #[test]
    fn a_stretch_is_a_file_a_part_of_it_or_of_the_black_box() {
        let now = Timestamp(1_794_825_000_000);
        let parse = |text| NamedStretch::parse(text, now, &TimeZone::UTC);
        let hour = Some((Timestamp(now.0 - 7_200_000), Timestamp(now.0 - 3_600_000)));
        assert_eq!(parse("a.ttmon"), Ok(NamedStretch { path: Some("a.ttmon".into()), range: None }));
        assert_eq!(parse("me@home"), Ok(NamedStretch { path: Some("me@home".into()), range: None }));
        assert_eq!(parse("a@b.ttmon@8:30..9:30"), Ok(NamedStretch { path: Some("a@b.ttmon".into()), range: hour }));
        assert_eq!(parse("@2h ago..1h ago"), Ok(NamedStretch { path: None, range: hour }));
        assert_eq!(parse("@2h ago..").unwrap().range, Some((Timestamp(now.0 - 7_200_000), now)));
        assert!(parse("@soon..now").unwrap_err().starts_with("\"soon\" is not a time"));
    }

    #[test]
    fn events_are_found_where_there_is_no_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ttmon");
        let mut recorder = Recorder::create(&path).unwrap();
        for time in 1..=3 {
            let mut snapshot = Snapshot { taken_at: Timestamp(time * 1000), ..example::machine() };
            if time == 3 {
                snapshot.devices[0].state = State::Hung;
            }
            recorder.push(&snapshot).unwrap();
        }
        recorder.finish().unwrap();
        let machine = MachineArgs::default();
        let mut stretch = StretchArgs::default().open(&machine, Some(&path)).unwrap();
        assert_eq!((stretch.from, stretch.to, stretch.indices()), (Timestamp(1000), Timestamp(3000), 0..3));
        let happened = stretch.happened().unwrap();
        let is_hung = |entry: &LogEntry| matches!(entry, LogEntry::Event(event) if event.text.contains("ok → hung"));
        assert!(happened.iter().any(|entry| is_hung(entry) && entry.time() == Timestamp(3000)), "{happened:?}");
        let wrong = StretchArgs { from: Some("soon".into()), ..StretchArgs::default() }
            .open(&machine, Some(Path::new("/nowhere")));
        assert!(wrong.unwrap_err().to_string().starts_with("--from: \"soon\" is not a time"));
        let nothing =
            StretchArgs { from: Some("2020-01-01".into()), ..StretchArgs::default() }.open(&machine, Some(&path));
        assert!(nothing.unwrap_err().to_string().starts_with("nothing was recorded from 2020-01-01 "));
    }
}
