//! `ttmon export`: what a recording has is in the file, value by value.

use crate::support::{TTMON, run, trace, ttmon};
use expect_test::{expect, expect_file};
use model::figure::device::{
    AICLK, ASIC_TEMP, DEVICE_TO_HOST, DRAM_USED, HOST_TO_DEVICE, L1_USED, POWER, TRACE, UTILIZATION, kept_in_history,
};
use model::figure::{Field, Figure};
use model::{
    Celsius, Device, Event, ExitRecord, LogEntry, Operation, OperationTotals, Process, Snapshot, State, Timestamp,
    Watts, Weight,
};
use serde_json::Value;
use show::example;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use watch::record::Recorder;

/// 2026-11-16 12:00 UTC.
const BEGIN: i64 = 1_794_830_400_000;

/// A recording of 20 s in which values change, are missing for a while, and a device and a process go.
struct Recorded {
    folder: TempDir,
    path: PathBuf,
    snapshots: Vec<Snapshot>,
}

fn snapshots(of: &Snapshot, count: i64) -> Vec<Snapshot> {
    let vary = |second: i64| {
        let mut snapshot = Snapshot { taken_at: Timestamp(BEGIN + second * 1000), ..of.clone() };
        for (n, device) in (0..).zip(&mut snapshot.devices) {
            device.power = Some(Watts(80.0 + f64::from(second as i32 % 7) + f64::from(n) / 8.0));
            device.asic_temp = Some(Celsius(50.0 + f64::from(second as i32 / 3)));
            device.activity.utilization_percent = Some(f64::from((second as i32 * 13 + n) % 101));
        }
        snapshot
    };
    (0..count).map(vary).collect()
}

fn log(processes: &[Process]) -> Vec<LogEntry> {
    let device = example::machine().devices[0].id.clone();
    let hung =
        Event::new(Timestamp(BEGIN + 5_500), Weight::Bad, Some(device), "device 0: ok → hung, \"stopped\"".into());
    let note = Event::new(Timestamp(BEGIN + 6_500), Weight::Note, None, "a note".into());
    let exit = ExitRecord { signal: Some(9), ..ExitRecord::of(&processes[0], Timestamp(BEGIN + 14_500)) };
    let totals = OperationTotals {
        time: Timestamp(BEGIN + 10_000),
        seconds: 10.0,
        pid: processes[0].pid,
        name: processes[0].name.clone(),
        operations: vec![Operation { name: "Matmul".into(), launches: 12, ..Operation::default() }],
        ..OperationTotals::default()
    };
    vec![LogEntry::Event(hung), LogEntry::Event(note), LogEntry::Operations(totals), LogEntry::Exit(Box::new(exit))]
}

fn recorded(with_log: bool) -> Recorded {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ttmon");
    let mut snapshots = snapshots(&example::machine(), 20);
    let processes = snapshots[0].processes.clone();
    for (second, snapshot) in snapshots.iter_mut().enumerate() {
        if (8..12).contains(&second) {
            snapshot.devices[0].power = None;
            snapshot.devices[0].state = State::Hung;
        }
        if (15..17).contains(&second) {
            snapshot.devices.remove(1);
        }
        if second >= 15 {
            snapshot.processes.remove(0);
        }
    }
    let mut recorder = Recorder::create(&path).unwrap();
    if with_log {
        log(&processes).iter().for_each(|entry| recorder.log(entry).unwrap());
    }
    snapshots.iter().for_each(|snapshot| recorder.push(snapshot).unwrap());
    recorder.finish().unwrap();
    Recorded { folder, path, snapshots }
}

impl Recorded {
    fn export(&self, name: &str, options: &[&str]) -> PathBuf {
        let out = self.folder.path().join(name);
        let done = ttmon(&[&["export", self.path.to_str().unwrap(), "-o", out.to_str().unwrap()], options].concat());
        assert_eq!((done.code, done.out.as_str()), (Some(0), ""), "{}", done.err);
        assert!(done.err.contains(out.to_str().unwrap()), "{}", done.err);
        out
    }

    fn lines(&self, options: &[&str]) -> Vec<String> {
        let name = format!("{}.csv", options.join("-"));
        let text = std::fs::read_to_string(self.export(&name, options)).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

/// What is checked of each device; there may be more in the file.
static CHECKED: [&Figure<Device>; 9] =
    [&ASIC_TEMP, &POWER, &AICLK, &UTILIZATION, &DRAM_USED, &L1_USED, &TRACE, &HOST_TO_DEVICE, &DEVICE_TO_HOST];

fn fields() -> Vec<Field<Device>> {
    kept_in_history().chain(CHECKED.iter().map(|figure| figure.field())).collect()
}

/// A counter as it was read back: group, track, ns, value.
type Counter = (String, String, u64, f64);

/// Every value of the file is one of the recording, and every value of the recording is drawn in the file at its time.
fn check_counters(counters: &[Counter], snapshots: &[Snapshot]) {
    let ns = |snapshot: &Snapshot| snapshot.taken_at.0 as u64 * 1_000_000;
    let group = |device: &Device| format!("device {} ({})", device.id, device.board.as_deref().unwrap());
    let mut checked = 0;
    for (place, title, time, value) in counters.iter().filter(|counter| counter.0.starts_with("device ")) {
        let snapshot = snapshots.iter().find(|snapshot| ns(snapshot) == *time).unwrap();
        let device = snapshot.devices.iter().find(|device| group(device) == *place).unwrap();
        if let Some(field) = fields().into_iter().find(|field| field.title() == *title) {
            assert_eq!(field.number(device), Some(*value), "{place} {title} {time}");
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked}");
    for snapshot in snapshots {
        for device in &snapshot.devices {
            for field in fields() {
                let same = |counter: &&Counter| counter.0 == group(device) && counter.1 == field.title();
                let before = counters.iter().filter(same).rfind(|counter| counter.2 <= ns(snapshot));
                match field.number(device) {
                    Some(number) => assert_eq!(before.unwrap().3, number, "{} {}", device.id, field.title()),
                    None => assert!(before.is_none_or(|counter| counter.2 < ns(snapshot)), "{before:?}"),
                }
            }
        }
    }
}

#[test]
fn perfetto_reads_every_value_of_a_recording() {
    let test = "perfetto_reads_every_value_of_a_recording";
    let recorded = recorded(true);
    let Some(trace) = trace::perfetto(test, &recorded.export("a.pftrace.gz", &[])) else { return };
    assert_eq!(trace["clocks"], serde_json::json!({ "1": BEGIN as u64 * 1_000_000 }));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let counter = |one: &Value| {
        (text(&one["parent"]), text(&one["track"]), one["time"].as_u64().unwrap(), one["value"].as_f64().unwrap())
    };
    let counters: Vec<Counter> = trace["counters"].as_array().unwrap().iter().map(counter).collect();
    check_counters(&counters, &recorded.snapshots);

    // Units are those of the table.
    let unit = |name: &str| {
        let tracks = trace["tracks"].as_array().unwrap();
        text(&tracks.iter().find(|track| track["name"] == name).unwrap()["unit"])
    };
    assert_eq!([unit("Power"), unit("AICLK"), unit("Temperature")], ["W", "MHz", "°C"]);
    assert_eq!([unit("DRAM used"), unit("PCIe to device")], ["UNIT_SIZE_BYTES", "B/s"]);

    // What happened, with when and where.
    let instants: Vec<String> = trace["instants"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let second = (one["time"].as_u64().unwrap() as f64 / 1e6 - BEGIN as f64) / 1000.0;
            let at = format!("{second:.1} {}: {}: {}", text(&one["parent"]), text(&one["track"]), text(&one["name"]));
            format!("{at} {}", one["details"])
        })
        .collect();
    expect![[r#"
        5.5 device 0 (p150a): events: device 0: ok → hung, "stopped" {"device":"0","weight":"bad"}
        6.5 machine: events: a note {"weight":"note"}
        8.0 device 0 (p150a): events: no value: Power {}
        14.5 日本語の名前: exit: exited by signal 9 {}
        15.0 device 1 (p150b): events: no value: the device is not in the sample {}"#]]
    .assert_eq(&instants.join("\n"));
    let slices = trace["slices"].as_array().unwrap();
    assert_eq!(slices.len(), 1);
    let length = slices[0]["end"].as_u64().unwrap() - slices[0]["time"].as_u64().unwrap();
    assert_eq!((&slices[0]["name"], length), (&Value::from("Matmul"), 10_000_000_000));
    // The process that went holds nothing from then on.
    let gone = recorded.snapshots[0].processes[0].name.clone().unwrap();
    let last = counters.iter().rfind(|counter| counter.0 == gone && counter.1.starts_with("DRAM used")).unwrap();
    assert_eq!((last.2 / 1_000_000, last.3), (BEGIN as u64 + 15_000, 0.0));
}

#[test]
fn chrome_s_json_has_the_same_values() {
    let recorded = recorded(false);
    let text = std::fs::read_to_string(recorded.export("a.json", &[])).unwrap();
    let events = trace::chrome(&text);
    let name = |pid: &Value| {
        let is_it = |event: &&Value| event["name"] == "process_name" && event["pid"] == *pid;
        events.iter().find(is_it).unwrap()["args"]["name"].as_str().unwrap().to_owned()
    };
    let began = serde_json::from_str::<Value>(&text).unwrap()["otherData"]["began_nanoseconds"].clone();
    assert_eq!(began, (BEGIN * 1_000_000).to_string());
    let counters: Vec<Counter> = events
        .iter()
        .filter(|event| event["ph"] == "C")
        .map(|event| {
            // The unit stands behind the title.
            let title = event["name"].as_str().unwrap().to_owned();
            let title = title
                .rsplit_once(" (")
                .filter(|(_, unit)| !unit.contains("in "))
                .map_or(title.clone(), |it| it.0.into());
            let time = (event["ts"].as_f64().unwrap() * 1000.0).round() as u64 + BEGIN as u64 * 1_000_000;
            (name(&event["pid"]), title, time, event["args"]["value"].as_f64().unwrap())
        })
        .collect();
    check_counters(&counters, &recorded.snapshots);
    // Without a log, events are found by comparing samples.
    let instants = events.iter().filter(|event| event["ph"] == "i");
    let texts: Vec<&str> = instants.map(|event| event["name"].as_str().unwrap()).collect();
    assert!(texts.iter().any(|text| text.contains("ok → hung")), "{texts:?}");
    // A process has the name of its script, not that of the interpreter.
    let groups: BTreeSet<&str> = counters.iter().map(|counter| counter.0.as_str()).collect();
    assert!(groups.contains("serve.py") && !groups.contains("python3"), "{groups:?}");
}

#[test]
fn a_table_has_a_row_per_sample_and_device_and_says_its_types() {
    let recorded = recorded(true);
    let lines = recorded.lines(&[]);
    let header: Vec<&str> = lines[0].split(',').collect();
    let column = |name: &str| header.iter().position(|column| column.starts_with(name)).unwrap();
    let (time, power, dram) =
        (column("taken_at:timestamp"), column("power_watts:real"), column("dram_used_bytes:integer"));
    // The queries of the page take each type from this line: none is left to be guessed.
    let page = include_str!("../../../docs/export.md");
    let kinds = ["timestamp", "text", "integer", "real", "boolean"];
    for kind in kinds {
        assert!(header.iter().any(|column| column.ends_with(&format!(":{kind}"))), "{kind}");
        assert!(page.contains(&format!("COLUMNS('(.*):{kind}')")), "{kind}");
    }
    assert!(header.iter().all(|column| column.split_once(':').is_some_and(|(_, kind)| kinds.contains(&kind))));
    assert!(header.contains(&"pci_address:text") && header.contains(&"serial:text"));
    let rows =
        recorded.snapshots.iter().flat_map(|snapshot| snapshot.devices.iter().map(move |device| (snapshot, device)));
    assert_eq!(lines.len() - 1, rows.clone().count());
    for (line, (snapshot, device)) in lines[1..].iter().zip(rows) {
        // No text of these devices has a comma.
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells.len(), header.len());
        let number = |place: usize| cells[place].parse::<f64>().ok();
        assert_eq!(cells[time], snapshot.taken_at.to_string());
        assert_eq!((number(power), number(dram)), (POWER.number(device), DRAM_USED.number(device)));
    }
    expect![[r#"
        time:timestamp,weight:text,device:text,text:text,kernel:text
        2026-11-16T12:00:05.500Z,bad,0,"device 0: ok → hung, ""stopped""",
        2026-11-16T12:00:06.500Z,note,,a note,"#]]
    .assert_eq(&recorded.lines(&["--table", "events"]).join("\n"));
    expect![[r#"
        time:timestamp,seconds:real,pid:integer,process:text,name:text,device_seconds:real,launches:integer,launches_per_second:real,runs:integer,longest_seconds:real,age_seconds:real,in_flight:boolean
        2026-11-16T12:00:10.000Z,10,81,日本語の名前,Matmul,,12,,,,,false"#]].assert_eq(&recorded.lines(&["--table", "operations"]).join("\n"));
    let held: usize =
        recorded.snapshots.iter().flat_map(|snapshot| &snapshot.processes).map(|process| process.devices.len()).sum();
    assert_eq!(recorded.lines(&["--table", "processes"]).len() - 1, held);
}

#[test]
fn a_stretch_is_named_by_options_or_in_one_word() {
    let recorded = recorded(true);
    let times = |lines: Vec<String>| {
        let mut times: Vec<String> = lines[1..].iter().map(|line| line[17..19].to_owned()).collect();
        times.dedup();
        times
    };
    let (from, to) = ("2026-11-16T12:00:03Z", "2026-11-16T12:00:05Z");
    assert_eq!(times(recorded.lines(&["--from", from, "--to", to])), ["03", "04", "05"]);
    let out = recorded.folder.path().join("b.csv");
    let named = format!("{}@{from}..{to}", recorded.path.display());
    let done = ttmon(&["export", &named, "-o", out.to_str().unwrap()]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    let lines = std::fs::read_to_string(&out).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(times(lines), ["03", "04", "05"]);
    // A folder of recordings is read as a black box is.
    let folder = recorded.folder.path().to_str().unwrap();
    let done = ttmon(&["export", "--black-box", folder, "-o", "-", "--format", "csv", "--table", "events"]);
    assert_eq!((done.code, done.err.as_str(), done.out.lines().count()), (Some(0), "", 3));
}

#[test]
fn what_cannot_be_done_is_one_sentence() {
    let recorded = recorded(false);
    let source = recorded.path.to_str().unwrap();
    let folder = recorded.folder.path();
    let taken = folder.join("taken.json");
    std::fs::write(&taken, "mine").unwrap();
    let [taken, text, new] =
        [taken, folder.join("a.txt"), folder.join("new.json")].map(|path| path.display().to_string());
    let cases: [&[&str]; 7] = [
        &[source, "-o", &taken],
        &[source, "-o", &text],
        &[source, "-o", &new, "--table", "events"],
        &[source, "-o", "-", "--format", "csv", "--table", "slices"],
        &["nothing.ttmon", "-o", &new],
        &[&format!("{source}@12:00..13:00"), "--from", "12:00", "-o", &new],
        &[source, "--from", "2020-01-01", "--to", "2020-01-02", "-o", &new],
    ];
    let said = cases.map(|words| {
        let done = ttmon(&[&["export"], words].concat());
        assert_eq!((done.code, done.out.as_str()), (Some(2), ""), "{words:?}");
        // What follows has times of this place and day.
        let said = done.err.replace(&folder.display().to_string(), "FOLDER");
        said.split(" from 20").next().unwrap().trim_end().to_owned() + "\n"
    });
    expect![[r#"
        error: cannot write to FOLDER/taken.json: it is not empty, and no file is written over: name a new one
        error: FOLDER/a.txt: the name says no format: end it in .pftrace, .json or .csv, or use --format
        error: --table goes with CSV: end OUT in .csv, or use --format csv
        error: --table slices: a recording has no single programs: `ttmon run --timeline FILE.csv CMD` writes them
        error: nothing.ttmon: there is no such file
        error: FOLDER/a.ttmon@12:00..13:00 names times: leave out --from and --to
        error: nothing was recorded
    "#]]
    .assert_eq(&said.concat());
    assert!(!Path::new(&new).exists());
    assert_eq!(std::fs::read_to_string(&taken).unwrap(), "mine");
}

#[test]
fn help_is_as_pinned() {
    let help = run(Command::new(TTMON).args(["export", "--help"]).env("COLUMNS", "100")).out;
    expect_file!["golden/export-help.txt"].assert_eq(&help);
}

/// `TTMON_HOUR=FILE cargo test -p ttmon --test all measure_an_hour -- --ignored` writes an hour of 32 devices, for measurements.
#[test]
#[ignore = "a measurement"]
fn measure_an_hour_of_32_devices() {
    let path = PathBuf::from(std::env::var_os("TTMON_HOUR").unwrap());
    let mut recorder = Recorder::create(&path).unwrap();
    snapshots(&example::galaxy(), 3600).iter().for_each(|snapshot| recorder.push(snapshot).unwrap());
    recorder.finish().unwrap();
}
