//! `ttmon export --overlay`: tt-metal's own results beside a recording, or aligned with it.

use crate::support::{Run, TTMON, run};
use expect_test::expect;
use model::{Snapshot, Timestamp};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use tempfile::TempDir;
use watch::record::Recorder;

/// 2026-01-02 03:04:00 UTC.
const BEGAN: i64 = 1_767_323_040_000;

const LOG: &str = "\
ARCH: wormhole_b0, CHIP_FREQ[MHz]: 1000, Max Compute Cores: 64
PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], data, run host ID, trace id, trace id counter, zone name, type, source line, source file, meta data
0,1,2,BRISC,18952,5000000,0,1025,,,BRISC-FW,ZONE_START,433,brisc.cc,
0,1,2,BRISC,18953,5000000,0,1025,,,BRISC-KERNEL,ZONE_START,20,kernel.cc,
0,1,2,BRISC,18955,5900000,0,1025,,,BRISC-KERNEL,ZONE_END,20,kernel.cc,
0,1,2,BRISC,18956,6000000,0,1025,,,BRISC-FW,ZONE_END,433,brisc.cc,
";

/// A capture that began 5.678 s behind the recording, and an operation that ends behind it.
const DATABASE: &str = "
    create table operations (operation_id int, name text, duration float, rank int not null default 0);
    insert into operations values (1, 'MatmulDeviceOperation', 0.1, 0), (2, 'SoftmaxDeviceOperation', 0.2, 0);
    insert into operations values (3, 'AddDeviceOperation', 60.0, 0), (4, 'LastDeviceOperation', 1.0, 0);
    create table report_metadata (key text unique, value text);
    insert into report_metadata values ('capture_timestamp_ns', '1767323045678000000'), ('total_duration_ns', '61500000000');
";

/// A folder with a recording of ten seconds and the two results.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(&folder.path().join("a.ttmon")).unwrap();
    for second in 0..10 {
        let taken_at = Timestamp(BEGAN + second * 1000);
        recorder.push(&Snapshot { taken_at, ..show::example::machine() }).unwrap();
    }
    recorder.finish().unwrap();
    std::fs::create_dir(folder.path().join("report")).unwrap();
    std::fs::write(folder.path().join("report/profile_log_device.csv"), LOG).unwrap();
    rusqlite::Connection::open(folder.path().join("report/db.sqlite")).unwrap().execute_batch(DATABASE).unwrap();
    folder
}

fn export(folder: &Path, arguments: &[&str]) -> Run {
    run(std::process::Command::new(TTMON).args(["export", "a.ttmon"]).args(arguments).current_dir(folder))
}

/// The slices of a file of Chrome's format: group, track, name, and from when to when, in µs since the recording began.
fn slices(path: &Path) -> Vec<String> {
    let trace: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let mut names: HashMap<(&str, String), &str> = HashMap::new();
    for event in events.iter().filter(|event| event["ph"] == "M") {
        let key = if event["name"] == "process_name" { event["pid"].to_string() } else { event["tid"].to_string() };
        names.insert((event["name"].as_str().unwrap(), key), event["args"]["name"].as_str().unwrap_or_default());
    }
    let name = |kind, key: &Value| names.get(&(kind, key.to_string())).copied().unwrap_or("?");
    let slices = events.iter().filter(|event| event["ph"] == "X");
    let text = |event: &Value| {
        let (group, track) = (name("process_name", &event["pid"]), name("thread_name", &event["tid"]));
        format!("{group} | {track} | {} | {} + {}", event["name"].as_str().unwrap(), event["ts"], event["dur"])
    };
    slices.map(text).collect()
}

#[test]
fn results_are_drawn_aligned_where_that_can_be_and_beside_it_where_not() {
    let folder = folder();
    let done = export(folder.path(), &["--overlay", "report", "-o", "a.json"]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    let (sentences, _) = done.err.rsplit_once("10 samples").unwrap();
    expect![[r#"
        db.sqlite: aligned within 200.0 ms: the database says when the capture began, and how long each operation took
        profile_log_device.csv: beside the recording, from its own beginning on: its times are cycles of chips, and the recording names none of them
        report/db.sqlite: 1 slice is outside of the stretch: left out
    "#]].assert_eq(sentences);
    expect![[r#"
        db.sqlite | operations | MatmulDeviceOperation | 5678000.0 + 100000.0
        db.sqlite | operations | SoftmaxDeviceOperation | 5778000.0 + 200000.0
        db.sqlite | operations | AddDeviceOperation | 5978000.0 + 60000000.0
        profile_log_device.csv chip 0 (not aligned) | core 1,2 BRISC | BRISC-FW | 0.0 + 1000.0
        profile_log_device.csv chip 0 (not aligned) | core 1,2 BRISC | BRISC-KERNEL | 0.0 + 900.0"#]]
    .assert_eq(&slices(&folder.path().join("a.json")).join("\n"));
}

#[test]
fn a_time_that_is_given_aligns_a_result() {
    let folder = folder();
    let name = "report/profile_log_device.csv@2026-01-02T03:04:02Z";
    let done = export(folder.path(), &["--overlay", name, "-o", "a.json"]);
    assert!(
        done.err.starts_with("profile_log_device.csv: aligned: it begins at the time that was given\n"),
        "{}",
        done.err
    );
    expect![[r#"
        profile_log_device.csv chip 0 | core 1,2 BRISC | BRISC-FW | 2000000.0 + 1000.0
        profile_log_device.csv chip 0 | core 1,2 BRISC | BRISC-KERNEL | 2000000.0 + 900.0"#]]
    .assert_eq(&slices(&folder.path().join("a.json")).join("\n"));
    let done = export(folder.path(), &["--overlay", name, "-o", "a.pftrace"]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    let bytes = std::fs::read(folder.path().join("a.pftrace")).unwrap();
    assert!(bytes.windows(12).any(|part| part == b"BRISC-KERNEL"));
}

#[test]
fn what_cannot_be_drawn_is_named_before_a_file_is_written() {
    let folder = folder();
    let said = |overlay: &str, out: &str| {
        let done = export(folder.path(), &["--overlay", overlay, "-o", out]);
        assert!(!folder.path().join(out).exists());
        format!("{} {}", done.code.unwrap(), done.err)
    };
    expect![[r#"
        2 error: --overlay goes with Perfetto's and Chrome's format, and not with a table
        2 error: a.ttmon: it is no result of tt-metal: expected profile_log_device.csv, ops_perf_results_*.csv or db.sqlite
        2 error: --overlay x@soon: "soon" is not a time: expected a time such as 14:05, "yesterday 14:05", "2026-11-15 14:05:30" or "20m ago"
        2 error: x: No such file or directory (os error 2)
    "#]].assert_eq(
        &[said("report", "a.csv"), said("a.ttmon", "b.json"), said("x@soon", "c.json"), said("x", "d.json")].concat(),
    );
}
