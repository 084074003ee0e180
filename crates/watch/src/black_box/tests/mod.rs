//! What a black box keeps: over weeks, on disks that are full or fail, after cuts anywhere.

mod cuts;
mod failing;
mod week;

use super::keeper::Keeper;
use crate::record::segment_name::SegmentName;
use crate::record::{Recorder, Recording};
use model::{Event, LogEntry, Snapshot, Timestamp, Weight};
use show::example;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
/// When the black boxes of these tests begin.
const BEGIN: i64 = 1_794_825_000_000;

/// A black box in a folder of its own, and a clock that is moved by hand.
struct Bench {
    folder: TempDir,
    keeper: Option<Keeper>,
    limit: u64,
    began: Instant,
    /// Milliseconds since the beginning, by the monotonic clock and by the other one.
    passed: u64,
    time: i64,
    snapshot: Snapshot,
}

impl Bench {
    fn new(limit: u64, snapshot: Snapshot) -> Bench {
        let folder = quick_folder();
        let mut bench = Bench { folder, keeper: None, limit, began: Instant::now(), passed: 0, time: BEGIN, snapshot };
        bench.start();
        bench
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("black-box")
    }

    fn now(&self) -> Instant {
        self.began + Duration::from_millis(self.passed)
    }

    /// Starts the writer again, as after SIGKILL.
    fn start(&mut self) {
        self.keeper = None;
        let mut keeper = Keeper::new(self.path(), self.limit, Some("boot".into())).unwrap();
        keeper.begin(Timestamp(self.time), self.now());
        self.keeper = Some(keeper);
    }

    fn keeper(&mut self) -> &mut Keeper {
        self.keeper.as_mut().unwrap()
    }

    /// Takes samples, one a second.
    fn run(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.passed += 1000;
            self.time += 1000;
            let now = self.now();
            self.snapshot.taken_at = Timestamp(self.time);
            stir(&mut self.snapshot, self.time);
            let snapshot = std::mem::replace(&mut self.snapshot, Snapshot::empty());
            self.keeper().add(Some(&snapshot), &[], now);
            self.snapshot = snapshot;
            self.keeper().turn(now);
        }
    }

    fn log(&mut self, text: &str, weight: Weight) {
        let entry = LogEntry::Event(Event::new(Timestamp(self.time), weight, None, text.into()));
        let now = self.now();
        self.keeper().add(None, &[entry], now);
    }

    fn size(&self) -> u64 {
        size_of(&self.path())
    }

    fn recording(&self) -> Recording {
        Recording::open(&self.path()).unwrap()
    }

    fn times(&self) -> Vec<i64> {
        times_of(&mut self.recording())
    }
}

/// In memory where that is possible: these tests sync much.
fn quick_folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn size_of(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries.filter_map(|entry| entry.unwrap().metadata().ok()).map(|metadata| metadata.len()).sum()
}

fn times_of(recording: &mut Recording) -> Vec<i64> {
    (0..recording.len()).filter_map(|at| recording.snapshot(at).ok()).map(|snapshot| snapshot.taken_at.0).collect()
}

/// Changes the figures as a machine under load does.
fn stir(snapshot: &mut Snapshot, time: i64) {
    let mut random = time as u64;
    let mut next = move || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as f64 / f64::from(u32::MAX >> 1)
    };
    for device in &mut snapshot.devices {
        device.asic_temp = device.asic_temp.map(|_| model::Celsius((50_000.0 + 4000.0 * next()).round() / 1e3));
        device.power = device.power.map(|_| model::Watts((60.0 + 20.0 * next()).round()));
        device.current = device.current.map(|_| model::Amperes((80.0 + 20.0 * next()).round()));
        device.vcore = device.vcore.map(|_| model::Volts((740.0 + 9.0 * next()).round() / 1e3));
        device.heartbeat = device.heartbeat.map(|_| (time / 100) as u32);
    }
}

fn logged(recording: &Recording) -> Vec<String> {
    let mut texts = Vec::new();
    recording.each_entry(Timestamp(0), Timestamp(i64::MAX), |entry| {
        if let LogEntry::Event(event) = entry {
            texts.push(event.text);
        }
    });
    texts
}

fn starts(recording: &Recording) -> Vec<Option<bool>> {
    let mut found = Vec::new();
    recording.each_entry(Timestamp(0), Timestamp(i64::MAX), |entry| {
        if let LogEntry::Start(start) = entry {
            found.push(start.ended_well);
        }
    });
    found
}

#[test]
fn an_event_that_matters_is_written_at_once() {
    let mut bench = Bench::new(MIB, small());
    bench.run(20);
    let before = bench.times().len();
    bench.log("a process began", Weight::Note);
    assert_eq!((bench.times().len(), logged(&bench.recording()).len()), (before, 0));
    bench.log("device 1: ok → hung", Weight::Bad);
    assert_eq!(logged(&bench.recording()), ["a process began", "device 1: ok → hung"]);
    assert_eq!(bench.times().len(), 20, "and the snapshots before it");
}

#[test]
fn older_snapshots_are_thinner_and_the_log_is_whole() {
    let mut bench = Bench::new(MIB, small());
    let mut expected = Vec::new();
    for minute in 0..60 * 12 {
        expected.push(format!("minute {minute}"));
        bench.log(&format!("minute {minute}"), Weight::Note);
        bench.run(60);
        assert!(bench.size() <= bench.limit, "{} after {minute} minutes", bench.size());
    }
    let mut recording = bench.recording();
    let times = times_of(&mut recording);
    let steps: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(steps.iter().all(|step| *step > 0 && *step <= 60_000), "in order, without gaps: {steps:?}");
    assert!(steps[1] >= 10_000 && steps.last() == Some(&1000), "{:?}…", &steps[..9]);
    let of = |step: i64| steps.iter().filter(|other| **other == step).count();
    assert!(of(1000) > 1000 && of(10_000) > 300, "{} {}", of(1000), of(10_000));
    let texts = logged(&recording);
    let kept: Vec<&String> = expected.iter().skip(expected.len() - texts.len()).collect();
    assert_eq!(texts.iter().collect::<Vec<_>>(), kept[..], "each exactly once");
    let begin = (bench.time - times[0]) / 60_000;
    assert!(texts.len() as i64 >= begin - 1, "{} entries of {begin} minutes", texts.len());
    let files = std::fs::read_dir(bench.path()).unwrap().count();
    assert!(files < 150, "{files} files");
}

#[test]
fn a_second_service_says_so_and_does_not_write() {
    let mut bench = Bench::new(MIB, small());
    bench.run(10);
    let mut second = Keeper::new(bench.path(), bench.limit, None).unwrap();
    second.begin(Timestamp(bench.time), bench.now());
    assert_eq!(second.trouble(), Some("another process keeps its black box there"));
    let before = bench.size();
    second.add(Some(&bench.snapshot), &[], bench.now());
    second.finish(bench.now());
    assert_eq!(bench.size(), before);
}

#[test]
fn whoever_may_list_the_folder_may_read_its_files() {
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let mut bench = Bench::new(MIB, small());
    bench.run(2);
    assert_eq!((mode(&bench.path()), mode(&last_segment(&bench.path()))), (0o700, 0o600));
    std::fs::set_permissions(bench.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    bench.start();
    bench.run(2);
    assert_eq!(mode(&last_segment(&bench.path())), 0o644);
    assert_eq!(mode(&bench.path().join("lock")), 0o600, "else any user could hold it");
}

#[test]
fn a_clock_that_jumps_costs_nothing() {
    let mut bench = Bench::new(MIB, small());
    bench.run(600);
    bench.time = 0;
    bench.run(600);
    bench.start();
    bench.time = BEGIN - 3_600_000;
    bench.run(600);
    bench.time = BEGIN + 86_400_000;
    bench.run(604);
    let times = bench.times();
    assert!(times.len() >= 2400 - 14, "{}", times.len());
    assert!(times.windows(2).filter(|pair| pair[1] - pair[0] != 1000).count() <= 4);
}

#[test]
fn segments_of_other_versions_are_kept_or_left_alone_and_count() {
    let mut bench = Bench::new(MIB, small());
    bench.keeper = None;
    let (older, newer) = (bench.path().join("000000000000001.ttmon"), bench.path().join("000000000000002.ttmon"));
    let mut recorder = Recorder::create(&older).unwrap();
    recorder.push(&Snapshot { taken_at: Timestamp(1000), ..example::machine() }).unwrap();
    recorder.finish().unwrap();
    let mut bytes = std::fs::read(&older).unwrap();
    bytes[8] = 2;
    std::fs::write(&older, &bytes).unwrap();
    bytes[8] = 9;
    bytes.resize(700 << 10, 0);
    std::fs::write(&newer, &bytes).unwrap();
    bench.start();
    bench.run(3600);
    assert!(newer.exists() && bench.size() <= bench.limit, "{}", bench.size());
    assert_eq!(bench.keeper().trouble(), None);
    assert!(bench.times().len() > 100);
    bytes.resize(2 << 20, 0);
    std::fs::write(&newer, &bytes).unwrap();
    bench.start();
    bench.run(10);
    assert_eq!(bench.keeper().trouble(), Some("files that are not its own leave no room in 1 MiB"));
}

fn last_segment(folder: &Path) -> PathBuf {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| SegmentName::of(path).is_some()).max().unwrap()
}

/// One that takes little time to write.
fn small() -> Snapshot {
    let mut snapshot = Snapshot { processes: Vec::new(), ..example::machine() };
    snapshot.devices.truncate(1);
    snapshot
}
