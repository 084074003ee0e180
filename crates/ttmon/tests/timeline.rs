//! `ttmon run --timeline`: every program that ran is in the file once, with its queue, its length and its launch.
//!
//! A library stands in for tt-metal: the test says what is launched, and which records its profiler delivers.

use crate::support::harness::built;
use crate::support::{Machine, TTMON, run, trace};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// A workload under `ttmon run --timeline`.
struct Live {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    out: PathBuf,
    _machine: Machine,
    folder: TempDir,
}

/// A record: runtime id, chip, start and end in ticks.
type Record = (u32, u32, u64, u64);

/// Ticks per ns.
const CLOCK: f64 = 0.5;

fn compile(folder: &Path) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent/tests/agent");
    let (library, program) = (folder.join("libtt_metal.so"), folder.join("workload"));
    let cc = |arguments: &[&str], source: &str, out: &Path| {
        let mut command = Command::new("cc");
        command.args(["-pthread", "-o"]).arg(out).arg(sources.join(source)).args(arguments);
        assert!(command.status().unwrap().success());
    };
    cc(&["-shared", "-fPIC"], "metal.c", &library);
    let place = folder.display().to_string();
    cc(&["-L", &place, "-ltt_metal", &format!("-Wl,-rpath,{place}")], "workload.c", &program);
    program
}

impl Live {
    fn start(name: &str) -> Live {
        Live::of(Path::new(TTMON), name, tempfile::tempdir().unwrap(), &[])
    }

    /// With results of tt-metal that are in the folder, or will be.
    fn of(ttmon: &Path, name: &str, folder: TempDir, results: &[&str]) -> Live {
        let program = compile(folder.path());
        let out = folder.path().join(name);
        let machine = Machine::with(&[sim::tree::Chip::p150a(0)]);
        let mut child = Command::new(ttmon)
            .args(["run", "--root", machine.root(), "--interval-ms", "20", "--timeline"])
            .arg(&out)
            .args(results.iter().flat_map(|result| ["--overlay".into(), folder.path().join(result)]))
            .arg("--")
            .arg(program)
            .env_remove("TTMON_AGENT")
            .env("TTMON_AGENT_LIB", built("libttmon_agent.so"))
            .env("TT_METAL_MOCK_CLUSTER_DESC_PATH", "/a/mock")
            .env_remove("TT_METAL_INSPECTOR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Live { child, stdin, stdout, out, _machine: machine, folder }
    }

    fn say(&mut self, text: &str) -> i64 {
        writeln!(self.stdin.as_mut().unwrap(), "{text}").unwrap();
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim().strip_prefix("OK ").unwrap_or_else(|| panic!("{line:?}")).parse().unwrap()
    }

    fn records(&mut self, records: &[Record]) {
        let lines: Vec<String> =
            records.iter().map(|(id, chip, start, end)| format!("\n{id} {chip} {start} {end} {CLOCK} -1")).collect();
        assert_eq!(self.say(&format!("records {} 0{}", records.len(), lines.concat())), 1);
    }

    /// Ends it. What was said at the end, and the file.
    fn end(&mut self) -> (String, PathBuf) {
        drop(self.stdin.take());
        let mut error = String::new();
        std::io::Read::read_to_string(&mut self.child.stderr.take().unwrap(), &mut error).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{error}");
        (error, self.out.clone())
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

const NAMES: [&str; 3] = ["Matmul", "Softmax", "Add"];

/// Launches programs on two queues, in turns, and delivers a record of each. Returns the records in the order of their starts.
fn work(live: &mut Live, count: u32) -> Vec<Record> {
    let began = Instant::now();
    live.say("activate 0");
    let mut all = Vec::new();
    for first in (0..count).step_by(50) {
        let ids = first..count.min(first + 50);
        for id in ids.clone() {
            live.say(&format!("launch {} {} {}", id % 2, id + 1, NAMES[id as usize % 3]));
        }
        // They ran in the last 100 µs, one after another, with and without a gap, and some on both queues at a time.
        std::thread::sleep(Duration::from_millis(2));
        let begin = (began.elapsed().as_nanos() as f64 * CLOCK) as u64 - 51_700;
        let records: Vec<Record> = ids
            .map(|id| {
                let start = begin + u64::from(id - first) * 1000;
                (id + 1, 0, start, start + [500, 1000, 1700][id as usize % 3])
            })
            .collect();
        live.records(&records);
        all.extend(records);
    }
    all
}

/// A slice as it was read back.
#[derive(Debug)]
struct Found {
    track: String,
    name: String,
    id: u64,
    /// ns since the first.
    start: u64,
    length: u64,
    launched: u64,
}

/// Each record is there once: its name, its queue, its length to the tick, its place among the others, and its launch before it.
fn check(mut found: Vec<Found>, records: &[Record], began: u64) {
    found.sort_by_key(|one| one.id);
    assert_eq!(found.len(), records.len());
    let mut moved = 0;
    for (one, (id, _, start, end)) in found.iter().zip(records) {
        assert_eq!(one.id, u64::from(*id));
        assert_eq!(one.name, NAMES[(*id as usize - 1) % 3]);
        let queue = (id - 1) % 2;
        assert!(one.track.ends_with(&format!(", queue {queue}")), "{one:?}");
        assert_eq!(one.length, (end - start) * 2);
        // The chip's time is moved when a batch shows that it was late; within a batch it stays.
        let before = found.get((*id as usize).wrapping_sub(2)).map_or(0, |before| one.start.wrapping_sub(before.start));
        moved += u32::from(*id > 1 && before != 2000);
        assert!(one.launched <= one.start && one.launched >= began, "{one:?}");
    }
    assert!(moved <= records.len() as u32 / 50, "{moved} gaps are not as long as they were");
}

#[test]
fn perfetto_reads_every_program_of_a_live_run() {
    let test = "perfetto_reads_every_program_of_a_live_run";
    let (began, mut live) = (now(), Live::start("run.pftrace"));
    let records = work(&mut live, 400);
    let (said, path) = live.end();
    assert!(said.contains("timeline: 400 programs, "), "{said}");
    assert!(said.contains("are late by at most "), "{said}");
    let Some(trace) = trace::perfetto(test, &path) else { return };
    let list = |name: &str| trace[name].as_array().unwrap().clone();
    let time = |one: &Value| one["time"].as_u64().unwrap();
    let launches = list("instants").into_iter().filter(|one| one["category"] == "launch").collect::<Vec<_>>();
    let found = list("slices").into_iter().filter(|one| one["category"] == "operation").map(|one| {
        let flow = &one["ending_flows"][0];
        let mut from = launches.iter().filter(|launch| launch["flows"][0] == *flow);
        let launch = from.next().unwrap();
        assert!(from.next().is_none(), "an arrow begins once");
        assert_eq!((&launch["name"], &launch["details"]), (&one["name"], &one["details"]));
        assert_eq!(launch["track"].as_str().unwrap().strip_prefix("launches, "), one["track"].as_str());
        Found {
            track: one["track"].as_str().unwrap().into(),
            name: one["name"].as_str().unwrap().into(),
            id: one["details"]["runtime_id"].as_u64().unwrap(),
            start: time(&one),
            length: one["end"].as_u64().unwrap() - time(&one),
            launched: time(launch),
        }
    });
    check(found.collect(), &records, began);
    assert!(list("slices").iter().all(|one| one["pid"] == list("slices")[0]["pid"] && one["parent"] == "workload"));
    // The devices are beside it, and the file says how exact its times are.
    assert!(list("counters").iter().any(|one| one["parent"] == "device 0 (p150a)" && one["track"] == "Power"));
    assert!(list("instants").iter().any(|one| one["name"].as_str().unwrap().contains("are late by at most ")));
    let clocks = trace["clocks"].as_object().unwrap();
    assert!(clocks.contains_key("1") && clocks.contains_key("3"), "realtime and monotonic: {clocks:?}");
}

#[test]
fn chrome_s_json_and_the_table_have_every_program_of_a_live_run() {
    let mut live = Live::start("run.json.gz");
    let records = work(&mut live, 150);
    let (_, path) = live.end();
    let mut text = String::new();
    let unpacked = run(Command::new("gzip").arg("-dc").arg(&path));
    text.push_str(&unpacked.out);
    let events = trace::chrome(&text);
    let name = |tid: &Value| {
        let thread = events.iter().find(|event| event["name"] == "thread_name" && event["tid"] == *tid).unwrap();
        thread["args"]["name"].as_str().unwrap().to_owned()
    };
    let ns = |event: &Value, key: &str| (event[key].as_f64().unwrap() * 1000.0).round() as u64;
    let is = |event: &&Value, kind: &str, category: &str| event["ph"] == kind && event["cat"] == category;
    let ends: Vec<&Value> = events.iter().filter(|event| is(event, "f", "launch")).collect();
    let found = events.iter().filter(|event| is(event, "X", "operation")).map(|one| {
        let end = ends.iter().find(|end| end["tid"] == one["tid"] && end["ts"] == one["ts"]).unwrap();
        let begin = events.iter().find(|event| is(event, "s", "launch") && event["id"] == end["id"]).unwrap();
        Found {
            track: name(&one["tid"]),
            name: one["name"].as_str().unwrap().into(),
            id: one["args"]["runtime_id"].as_u64().unwrap(),
            start: ns(one, "ts"),
            length: ns(one, "dur"),
            launched: ns(begin, "ts"),
        }
    });
    check(found.collect(), &records, 0);

    let mut live = Live::start("run.csv");
    let (began, records) = (now(), work(&mut live, 60));
    let (_, path) = live.end();
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some(
            "start_nanoseconds:integer,end_nanoseconds:integer,pid:integer,process:text,device:text,queue:integer,\
             operation:text,runtime_id:integer,launched_nanoseconds:integer"
        )
    );
    let found = lines.map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |place: usize| cells[place].parse::<u64>().unwrap();
        Found {
            track: format!("{}, queue {}", cells[4], cells[5]),
            name: cells[6].into(),
            id: number(7),
            start: number(0),
            length: number(1) - number(0),
            launched: number(8),
        }
    });
    check(found.collect(), &records, began);
}

#[test]
fn an_id_on_two_queues_at_a_time_is_on_a_track_of_its_own() {
    let mut live = Live::start("run.json");
    live.say("activate 0");
    live.say("launch 0 1 Matmul");
    live.say("launch 1 1 Matmul");
    live.records(&[(1, 0, 1000, 2000)]);
    let (_, path) = live.end();
    let text = std::fs::read_to_string(path).unwrap();
    let names: Vec<Value> = trace::chrome(&text).into_iter().filter(|event| event["name"] == "thread_name").collect();
    assert!(names.iter().any(|name| name["args"]["name"].as_str().unwrap().ends_with("queue unknown")), "{names:?}");
}

#[test]
fn nothing_is_run_when_the_timeline_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let taken = folder.path().join("taken.json");
    std::fs::write(&taken, "mine").unwrap();
    let [taken, text] = [taken, folder.path().join("a.txt")].map(|path| path.display().to_string());
    for (path, what) in
        [(&taken, "it is not empty"), (&text, "the name says no format: end it in .pftrace, .json or .csv\n")]
    {
        let done = run(Command::new(TTMON).args(["run", "--sim", "--timeline", path, "--", "echo", "ran"]));
        assert_eq!((done.code, done.out.as_str()), (Some(2), ""), "{}", done.err);
        assert!(done.err.starts_with("error: --timeline: ") && done.err.contains(what), "{}", done.err);
    }
}

#[test]
fn without_the_agent_there_are_the_devices_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    let mut command = Command::new(TTMON);
    command.args(["run", "--sim", "--timeline"]).arg(&path).args(["--", "true"]).env("TTMON_AGENT", "off");
    let done = run(&mut command);
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.err.contains("only devices are in it"), "{}", done.err);
    let events = trace::chrome(&std::fs::read_to_string(path).unwrap());
    assert!(events.iter().any(|event| event["ph"] == "C") && events.iter().all(|event| event["ph"] != "X"));
}

/// tt-metal's log of the same launches on one core, by a counter that began earlier. `longer` are ticks around each.
fn device_log(records: &[Record], longer: u64) -> String {
    let mut text = String::from(
        "ARCH: blackhole, CHIP_FREQ[MHz]: 500, Max Compute Cores: 140\n\
         PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], data, run host ID, trace id, \
         trace id counter, zone name, type, source line, source file, meta data\n",
    );
    for (id, chip, start, end) in records {
        let (start, end) = (EARLIER + start, EARLIER + end + longer);
        for (time, what) in [(start, "ZONE_START"), (end, "ZONE_END")] {
            text += &format!("{chip},1,2,BRISC,1,{time},0,{},,,BRISC-FW,{what},433,brisc.cc,\n", id << 10 | chip);
        }
    }
    text
}

/// Ticks.
const EARLIER: u64 = 7_000_000_000;

#[test]
fn results_of_the_run_are_aligned_by_launches_that_are_in_both() {
    let folder = tempfile::tempdir().unwrap();
    let (log, old) = ("profile_log_device.csv", "ops_perf_results_old.csv");
    std::fs::write(folder.path().join(old), device_log(&[(1, 0, 5, 505)], 0)).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let mut live = Live::of(Path::new(TTMON), "run.json", folder, &[log, old, "missing.csv"]);
    let records = work(&mut live, 50);
    std::fs::write(live.folder.path().join(log), device_log(&records, 10)).unwrap();
    let (said, path) = live.end();
    let sentences: Vec<&str> = said.lines().filter(|line| line.contains(".csv")).collect();
    // A launch is 10 ticks longer in the log.
    assert_eq!(sentences[0], "profile_log_device.csv: aligned within 20 ns: launches of this run are in it", "{said}");
    let old =
        "ops_perf_results_old.csv: beside the recording, from its own beginning on: it was written before this run";
    assert_eq!(sentences[1], old);
    assert!(sentences[2].starts_with("--overlay: ") && sentences[2].contains("missing.csv: No such file"), "{said}");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(sentences[0]) && text.contains(sentences[1]), "the file says it, too");
    let trace: Value = serde_json::from_str(&text).unwrap();
    let slices = || trace["traceEvents"].as_array().unwrap().iter().filter(|one| one["ph"] == "X");
    let time = |one: &Value| one["ts"].as_f64().unwrap();
    let (zones, programs): (Vec<&Value>, Vec<&Value>) =
        slices().filter(|one| one["cat"] == "operation").partition(|one| one["name"] == "BRISC-FW");
    let mut programs: Vec<f64> = programs.into_iter().map(time).collect();
    let mut zones: Vec<f64> = zones.into_iter().map(time).collect();
    programs.sort_by(f64::total_cmp);
    zones.sort_by(f64::total_cmp);
    // The first one is that of the old file, which begins where the timeline does.
    assert_eq!((programs.len(), zones.len()), (50, 51));
    let apart = zones[1..].iter().zip(&programs).map(|(zone, program)| (zone - program).abs()).fold(0.0, f64::max);
    assert!(apart < 0.05, "µs: {apart}");
}

#[test]
fn results_go_with_a_timeline_that_has_a_place_for_them() {
    let said = |arguments: &str| {
        let done = run(Command::new(TTMON).args(arguments.split(' ')));
        (done.code, done.err)
    };
    let (code, why) = said("run --sim --overlay x -- true");
    assert!(code == Some(2) && why.contains("--timeline"), "{why}");
    let (code, why) = said("run --sim --timeline /nonexistent/a.csv --overlay x -- true");
    assert!(code == Some(2) && why.contains("not with a table"), "{why}");
}

/// `TTMON_PROGRAMS=10000000 TTMON_PROGRAM=target/release/ttmon cargo test -p ttmon --test all measure_memory -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn measure_memory_with_many_programs() {
    let number = |name: &str, otherwise: u64| std::env::var(name).map_or(otherwise, |text| text.parse().unwrap());
    let ttmon = std::env::var_os("TTMON_PROGRAM").map_or(PathBuf::from(TTMON), PathBuf::from);
    let ttmon = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(ttmon);
    let programs = number("TTMON_PROGRAMS", 1_000_000);
    let mut live = Live::of(&ttmon, "run.pftrace.gz", tempfile::tempdir().unwrap(), &[]);
    live.say("activate 0");
    live.say("launch 0 0 Matmul");
    let began = Instant::now();
    let wanted = live.say(&format!("flood {programs} {}", number("TTMON_PER_MS", 500)));
    let took = began.elapsed().as_secs_f64();
    assert_eq!(wanted as u64, programs);
    // The program runs in a child of its own.
    let pid = crate::support::harness::only_child(live.child.id()).unwrap_or(live.child.id());
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let memory = status.lines().filter(|line| line.starts_with("VmHWM") || line.starts_with("RssAnon"));
    let memory: Vec<&str> = memory.collect();
    let (said, path) = live.end();
    let bytes = std::fs::metadata(path).unwrap().len();
    println!("{programs} programs in {took:.1} s, {bytes} bytes, {memory:?}\n{said}");
}

#[test]
fn what_is_missing_is_said_with_its_reason() {
    let mut live = Live::start("run.csv");
    live.say("launch 0 1 Matmul");
    let (said, _) = live.end();
    assert!(said.contains(": no programs: tt-metal's real-time profiler is not active\n"), "{said}");

    let mut live = Live::start("run.json");
    live.say("activate 0");
    live.say("launch 0 1 Matmul");
    assert_eq!(live.say("records 1 25\n1 0 1000 2000 1 -1"), 1);
    // More than the ring has room for, at once.
    live.say("flood 200000 200000");
    let (said, path) = live.end();
    assert!(said.contains(": 25 programs are missing: tt-metal dropped their records\n"), "{said}");
    let number = |before: &str, after: &str| -> u64 {
        let (start, _) = said.split_once(after).unwrap();
        start.rsplit_once(before).unwrap().1.parse().unwrap()
    };
    let written = number("timeline: ", " programs, ");
    let lost = number(": ", " programs are missing: they were overwritten");
    assert_eq!(written + lost, 200_001, "{said}");
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains("they were overwritten before they were read\",\"cat\":\"event\""), "the file says it, too");
    let slices = text.lines().filter(|line| line.contains("\"cat\":\"operation\"")).count();
    assert_eq!(slices as u64, written);
}
