//! `ttmon why` on eight scripted incidents of a simulated machine: what changed first is named right, and nothing that is not in the data.
//!
//! The machine is stepped a second at a time, sampled by the real sampler and recorded. What depends on the real clock or on the
//! numbers that the kernel gives out is replaced before it is recorded, so that the stories can be pinned.

use crate::support::service::Service;
use crate::support::{Machine, Run, TTMON, run, ttmon};
use expect_test::expect_file;
use model::{Bytes, Device, DeviceId, ExitRecord, LogEntry, Process, Snapshot, State, Timestamp};
use serde_json::Value;
use sim::tree::Chip;
use sim::{SimMachine, Spec};
use sources::{DeepOptions, DeepReads, KernelLog, Options, Root, Sampler};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use watch::record::Recorder;

/// 2026-11-16 14:00:00 UTC
const BEGAN: i64 = 1_794_837_600_000;

/// How processes end, which the service would have recorded. The simulator does not say.
#[derive(Clone, Copy)]
enum Ending {
    Unknown,
    Signal(i32),
    Code(i32),
}

/// A simulated machine, sampled.
struct Recorded {
    machine: SimMachine,
    sampler: Sampler,
    deep: Option<DeepReads>,
    kernel_log: KernelLog,
    recorder: Recorder,
    began: Instant,
    pids: BTreeMap<u32, u32>,
    messages: BTreeMap<u64, Timestamp>,
    before: Vec<Process>,
}

impl Recorded {
    fn start(spec: &str, path: &Path) -> Recorded {
        let machine = SimMachine::start(&spec.parse::<Spec>().unwrap(), Path::new(TTMON)).unwrap();
        let root = Root::under(machine.root()).with_faults(machine.inject());
        let options = Options { deadline: Duration::from_secs(20), ..Options::default() };
        let sampler = Sampler::new(root.clone(), options);
        let wants_deep = spec.contains("deep");
        let deep = wants_deep.then(|| sampler.deep_reads(DeepOptions { program: TTMON.into(), idle: false }).unwrap());
        Recorded {
            machine,
            sampler,
            deep,
            kernel_log: KernelLog::new(root),
            recorder: Recorder::create(path).unwrap(),
            began: Instant::now(),
            pids: BTreeMap::new(),
            messages: BTreeMap::new(),
            before: Vec::new(),
        }
    }

    fn step(&mut self, second: u64, ending: Ending) {
        self.machine.advance(Duration::from_secs(1)).unwrap();
        let mut snapshot = self.sampler.sample();
        let now = self.began + Duration::from_secs(second);
        if let Some(deep) = &mut self.deep {
            read_deeply(deep, &mut snapshot, now, second % 5 == 1);
        }
        self.kernel_log.read(&mut snapshot);
        snapshot.taken_at = Timestamp(BEGAN + second as i64 * 1000);
        self.settle(&mut snapshot);
        for process in self.before.iter().filter(|one| !snapshot.processes.iter().any(|two| one.pid == two.pid)) {
            let mut exit = ExitRecord::of(process, Timestamp(snapshot.taken_at.0 - 400));
            exit.devices = process.devices.clone();
            match ending {
                Ending::Unknown => continue,
                Ending::Signal(signal) => exit.signal = Some(signal),
                Ending::Code(code) => exit.exit_code = Some(code),
            }
            self.recorder.log(&LogEntry::Exit(Box::new(exit))).unwrap();
        }
        self.before = snapshot.processes.clone();
        self.recorder.push(&snapshot).unwrap();
    }

    /// Replaces what is not the same with every run.
    fn settle(&mut self, snapshot: &mut Snapshot) {
        for process in &mut snapshot.processes {
            let next = 4711 + self.pids.len() as u32;
            let is_tool = process.name.as_deref() == Some("tt-smi");
            let pid = *self.pids.entry(process.pid).or_insert(next);
            (process.pid, process.parent_pid) = (pid, None);
            process.user = Some(if is_tool { "bob" } else { "alice" }.into());
            process.started_at = Some(Timestamp(BEGAN - i64::from(pid)));
            process.host_memory = Some(Bytes(2 << 30));
            let is_busy = process.operations.iter().any(|operation| operation.in_flight);
            for (n, operation) in process.operations.iter_mut().enumerate() {
                operation.age_seconds = Some(0.1 + n as f64);
                operation.in_flight = is_busy && n == 0;
            }
        }
        for device in &mut snapshot.devices {
            device.in_use_by_pid = None;
            let busy = if device.aiclk.is_some_and(|clock| clock.0 > 800) { 87.0 } else { 0.0 };
            let is_held = snapshot.processes.iter().any(|one| one.devices.iter().any(|held| held.id == device.id));
            device.activity.utilization_percent = is_held.then_some(busy);
        }
        let taken_at = snapshot.taken_at;
        for message in snapshot.kernel_log.iter_mut().flatten() {
            // In the middle of the second before the sample.
            message.time = *self.messages.entry(message.seq).or_insert(Timestamp(taken_at.0 - 500));
            for (real, pid) in &self.pids {
                message.text = message.text.replace(&format!("process {real} "), &format!("process {pid} "));
            }
            message.held_by.iter_mut().for_each(|holder| holder.pid = self.pids[&holder.pid]);
        }
    }
}

/// Reads what is due by a clock of our own. Every fifth second all devices that are held are due, and are waited for.
fn read_deeply(deep: &mut DeepReads, snapshot: &mut Snapshot, now: Instant, is_due: bool) {
    let is_held = |id: &DeviceId| snapshot.processes.iter().any(|one| one.devices.iter().any(|held| held.id == *id));
    let until = Instant::now() + Duration::from_secs(20);
    deep.ask(snapshot, now);
    let mut read = snapshot.clone();
    deep.add_to(&mut read, now);
    let is_new = |device: &Device| device.deep.as_ref().is_some_and(|deep| deep.age_seconds == Some(0.0));
    let mut held = || {
        deep.ask(snapshot, now);
        read = snapshot.clone();
        deep.add_to(&mut read, now);
        read.devices.iter().filter(|device| device.state == State::Ok && is_held(&device.id)).all(is_new)
    };
    while is_due && !held() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    *snapshot = read;
}

fn record(spec: &str, seconds: u64, ending: Ending) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording.ttmon");
    let mut recorded = Recorded::start(spec, &path);
    (1..=seconds).for_each(|second| recorded.step(second, ending));
    recorded.recorder.finish().unwrap();
    (folder, path)
}

fn why(path: &Path, arguments: &[&str]) -> Run {
    run(Command::new(TTMON).args(["why", "--replay"]).arg(path).args(arguments))
}

/// The story as text, without how long ago it was, and the causes that are named first.
fn story(path: &Path, arguments: &[&str]) -> (String, Vec<String>) {
    let told = why(path, arguments);
    assert_eq!((told.code, told.err.as_str()), (Some(0), ""));
    let title = told.out.lines().next().unwrap();
    let text = told.out.replacen(title, title.split(" (").next().unwrap(), 1);
    let json: Value = serde_json::from_str(&why(path, &[arguments, &["--json"]].concat()).out).unwrap();
    let first = json["incident"]["first"].as_array().unwrap().iter();
    let first = first.map(|fact| fact["cause"].as_str().unwrap().to_owned()).collect();
    (text, first)
}

fn check(name: &str, spec: &str, seconds: u64, ending: Ending, cause: &str) -> (TempDir, PathBuf) {
    let (folder, path) = record(spec, seconds, ending);
    let (text, first) = story(&path, &[]);
    expect_file![format!("golden/why/{name}.txt")].assert_eq(&text);
    assert_eq!(first, [cause], "{text}");
    assert!(text.lines().all(|line| show::text::width(line) <= 80), "{text}");
    (folder, path)
}

#[test]
fn a_hang_under_load() {
    let (_folder, path) = check("hang", "p150x4,agent,hang=1@6s", 12, Ending::Unknown, "hung");
    let told = why(&path, &["--json"]).out;
    let pretty = serde_json::to_string_pretty(&serde_json::from_str::<Value>(&told).unwrap()).unwrap();
    let pretty = pretty.replace(path.to_str().unwrap(), "night.ttmon") + "\n";
    expect_file!["golden/why/hang.json"].assert_eq(&pretty);
}

#[test]
fn thermal_throttle_then_trip() {
    check("heat", "p150x2,agent,deep,seed=3,heat=0@5s", 50, Ending::Unknown, "heat");
}

#[test]
fn device_memory_that_is_full() {
    check("fill", "p150x4,agent,fill=0@5s", 15, Ending::Code(1), "device memory full");
}

#[test]
fn a_leak_then_a_kill() {
    check("leak", "p150x4,agent,leak=2@5s,kill=2@40s", 45, Ending::Signal(9), "memory growth");
}

#[test]
fn a_reset_by_another_user() {
    check("otherreset", "p150x4,agent,otherreset=1@5s", 16, Ending::Unknown, "reset");
}

#[test]
fn a_link_that_goes_down() {
    check("linkdown", "p300x2,agent,deep,linkdown=0@8s", 20, Ending::Unknown, "link down");
}

#[test]
fn a_driver_that_is_unloaded() {
    check("unload", "p150x4,agent,unload@6s", 10, Ending::Unknown, "driver unloaded");
}

#[test]
fn a_host_out_of_memory() {
    check("hostoom", "p150x4,agent,hostoom@6s", 10, Ending::Signal(9), "host out of memory");
}

#[test]
fn one_incident_is_chosen_by_device_process_and_time() {
    let (_folder, path) = record("p150x4,agent,hang=0@5s,hang=3@100s", 110, Ending::Unknown);
    let first = |arguments: &[&str]| story(&path, arguments).0.lines().nth(1).unwrap().to_owned();
    assert!(first(&[]).contains("device 3: ok → hung"));
    assert!(first(&["-i", "0"]).contains("device 0: ok → hung"));
    assert!(first(&["--pid", "4711"]).contains("device 0: ok → hung"));
    assert!(first(&["--at", "2026-11-16T14:00:10Z"]).contains("device 0: ok → hung"));
    assert!(first(&["--at", "2026-11-16T14:01:30Z"]).contains("device 3: ok → hung"));
    // A black box is a folder of recordings.
    let folder = run(Command::new(TTMON).args(["why", "--black-box"]).arg(path.parent().unwrap()));
    assert_eq!(folder.out.lines().nth(1), why(&path, &[]).out.lines().nth(1));
    let none = why(&path, &["--pid", "1"]);
    assert_eq!(
        (none.code, none.out.as_str()),
        (Some(0), "No incident of pid 1 is known from 2026-11-16 14:00:01 to 2026-11-16 14:01:50.\n")
    );
}

#[test]
fn a_device_that_is_not_there_is_an_error_with_those_that_are() {
    let (_folder, path) = record("p150x4,agent,hang=0@5s", 8, Ending::Unknown);
    let said = |arguments: &[&str]| {
        let run = why(&path, arguments);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{arguments:?}");
        run.err
    };
    assert_eq!(said(&["-i", "99"]), "error: the recording has no device \"99\": it has 0-3\n");
    let at = said(&["-i", "99", "--at", "2026-11-16T14:00:05Z", "--json"]);
    assert_eq!(at, "error: the recording has no device \"99\" around that time: it has 0-3\n");
    // One that is there, without an incident, and a time of which nothing was recorded.
    for (device, time) in [("3", "2026-11-16T14:00:05Z"), ("99", "2026-11-15T14:00:00Z")] {
        let run = why(&path, &["-i", device, "--at", time]);
        assert!(run.code == Some(0) && run.out.starts_with("No incident of device "), "{}{}", run.out, run.err);
    }
}

#[test]
fn where_nothing_happened_that_is_said() {
    let (_folder, path) = record("p150x4,agent", 5, Ending::Unknown);
    let said = why(&path, &[]);
    let expected = "No incident is known from 2026-11-16 14:00:01 to 2026-11-16 14:00:05.\n";
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(0), expected, ""));
    let json: Value = serde_json::from_str(&why(&path, &["--json"]).out).unwrap();
    assert_eq!((&json["schema"], &json["incident"]), (&1.into(), &Value::Null));
}

#[test]
fn without_a_recording_and_a_service_one_sentence_says_what_to_do() {
    let empty = tempfile::tempdir().unwrap();
    let mut command = Command::new(TTMON);
    let command = command.args(["why", "--service", "off"]).env("XDG_STATE_HOME", empty.path());
    if Path::new("/var/lib/ttmon/black-box").exists() {
        return crate::support::not_run("without_a_recording", "this machine has a black box");
    }
    let refused = run(command);
    assert_eq!((refused.code, refused.err.lines().count()), (Some(6), 1));
    assert!(refused.err.starts_with("error: nothing was recorded: there is no black box"), "{}", refused.err);
    for words in ["why --replay /nonexistent", "why --at soon --replay x", "why --sim --replay x", "why --pid x"] {
        assert_eq!(ttmon(&words.split(' ').collect::<Vec<_>>()).code, Some(2), "{words}");
    }
}

#[test]
fn a_simulated_machine_has_something_to_tell() {
    let run = ttmon(&["why", "--sim"]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    assert!(run.out.starts_with("Incident of ") && run.out.contains(" ago)\n"), "{}", run.out);
    for words in ["device 3: ok → hung", "chat_demo.py", "MatmulDeviceOperation in", "device 3: ok again, after 33 s"]
    {
        assert!(run.out.contains(words), "{words}: {}", run.out);
    }
    let other = ttmon(&["why", "--sim", "-i", "0"]);
    assert!(other.out.starts_with("No incident of device 0 is known from "), "{}", other.out);
    assert_eq!(ttmon(&["why", "--sim", "-i", "9"]).code, Some(2));
    let quiet = ttmon(&["why", "--sim=p150x4"]);
    assert!(quiet.out.starts_with("No incident is known from "), "nothing happened before its start: {}", quiet.out);
}

#[test]
fn without_a_recording_the_service_says_what_it_knows() {
    let service = Service::start(Machine::with(&[Chip::p150a(0), Chip::p150a(1).hung()]));
    let empty = tempfile::tempdir().unwrap();
    let mut command = Command::new(TTMON);
    if Path::new("/var/lib/ttmon/black-box").exists() {
        return crate::support::not_run("without_a_recording_the_service", "this machine has a black box");
    }
    let told = run(command.args(["why", "--service"]).arg(service.socket()).env("XDG_STATE_HOME", empty.path()));
    let lines: Vec<&str> = told.out.lines().collect();
    assert!(lines[1].contains("device 1: hung since before the first sample"), "{}{}", told.out, told.err);
    assert!(told.out.contains("\nUnknown   not recorded: what happened before"), "{}", told.out);
    let mut command = Command::new(TTMON);
    let command = command.args(["why", "-i", "7", "--service"]).arg(service.socket());
    let refused = run(command.env("XDG_STATE_HOME", empty.path()));
    assert_eq!((refused.code, refused.err.as_str()), (Some(2), "error: the machine has no device \"7\": it has 0,1\n"));
}

/// Without the first line, and without times, which are others in each run.
fn without_times(text: &str) -> String {
    let is_time = |word: &str| word.len() == 8 && word.split(':').count() == 3;
    let line = |line: &str| {
        let words = line.split(' ').map(|word| {
            let bare = word.trim_end_matches(':');
            if is_time(bare) { word.replace(bare, "HH:MM:SS") } else { word.to_owned() }
        });
        words.collect::<Vec<_>>().join(" ")
    };
    text.lines().skip(1).map(|one| line(one) + "\n").collect()
}

#[test]
fn without_a_recording_the_service_says_when_it_began() {
    if Path::new("/var/lib/ttmon/black-box").exists() {
        return crate::support::not_run("without_a_recording_the_service_says_when", "this machine has a black box");
    }
    // Nothing moves its heartbeat.
    let service = Service::start_with(Machine::with(&[Chip::p150a(0)]), &["--listen", "127.0.0.1:0"]);
    let events = || service.native().ask(serde_json::json!({"events": {}}))["events"].to_string();
    crate::support::service::wait_for(|| events().contains("ok → hung"), events);
    let empty = tempfile::tempdir().unwrap();
    let why = |options: &[&str]| {
        let mut command = Command::new(TTMON);
        command.args(["why", "--service"]).arg(service.socket()).args(options).env("XDG_STATE_HOME", empty.path());
        run(&mut command)
    };
    expect_file!["golden/why/service.txt"].assert_eq(&without_times(&why(&[]).out));
    assert_eq!(without_times(&why(&["-i", "0"]).out), without_times(&why(&[]).out));
    let json: Value = serde_json::from_str(&why(&["--json"]).out).unwrap();
    assert_eq!(json["incident"]["first"][0]["source"], "events");
}

#[test]
fn a_process_that_is_gone_is_told_when_somebody_asks_for_it() {
    let (_folder, path) = record("p150x4,agent,kill=2@5s", 8, Ending::Unknown);
    assert!(why(&path, &[]).out.starts_with("No incident is known from "));
    for arguments in [["--pid", "4712"], ["-i", "2"]] {
        let (text, first) = story(&path, &arguments);
        assert_eq!(first, ["process gone"], "{text}");
        expect_file!["golden/why/gone.txt"].assert_eq(&text);
    }
}

#[test]
fn help_is_as_pinned() {
    let run = run(Command::new(TTMON).args(["why", "--help"]).env("COLUMNS", "100"));
    expect_file!["golden/why-help.txt"].assert_eq(&run.out);
}
