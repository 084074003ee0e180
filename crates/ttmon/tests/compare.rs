//! `ttmon compare`: receipts, recordings, and parts of them.

use crate::support::{TTMON, run, ttmon};
use expect_test::expect;
use model::figure::device::POWER;
use model::{Device, DeviceId, Megahertz, Operation, Process, Snapshot, Timestamp, Watts};
use serde_json::{Value, json};
use std::path::Path;
use watch::record::Recorder;

/// 2026-01-02 03:00:00 UTC.
const BEGAN: i64 = 1_767_322_800_000;

/// A recording of so many minutes: a sample each second. From the sixth minute on, device 1 needs more power and has a lower clock.
fn record(path: &Path, minutes: i64) {
    let mut recorder = Recorder::create(path).unwrap();
    let mut matmul = Operation {
        name: "MatmulDeviceOperation".into(),
        runs: Some(0),
        device_seconds: Some(0.0),
        ..Operation::default()
    };
    for second in 0..minutes * 60 {
        let is_later = second >= 300;
        let noise = f64::from((second * 7919 % 101) as u32) / 50.0 - 1.0;
        let device = |index: u32| {
            let changed = is_later && index == 1;
            let mut device = Device::new(DeviceId::Local(index));
            device.power = Some(Watts((70.0 + noise) * if changed { 1.1 } else { 1.0 }));
            device.aiclk = Some(Megahertz(if changed { 1200 } else { 1350 }));
            device
        };
        matmul.launches += 100;
        matmul.runs = Some(matmul.launches);
        let each = 20e-6 * (1.0 + 0.02 * noise) * if is_later { 1.2 } else { 1.0 };
        matmul.device_seconds = matmul.device_seconds.map(|seconds| seconds + 100.0 * each);
        let process = Process { operations: vec![matmul.clone()], ..Process::new(4711) };
        let snapshot = Snapshot {
            taken_at: Timestamp(BEGAN + second * 1000),
            devices: vec![device(0), device(1)],
            processes: vec![process],
            ..Snapshot::empty()
        };
        recorder.push(&snapshot).unwrap();
    }
    recorder.finish().unwrap();
}

fn compare(folder: &Path, arguments: &[&str]) -> crate::support::Run {
    run(std::process::Command::new(TTMON).arg("compare").args(arguments).current_dir(folder))
}

#[test]
fn parts_of_a_recording_are_compared_with_their_noise() {
    let folder = tempfile::tempdir().unwrap();
    record(&folder.path().join("a.ttmon"), 10);
    let first = "a.ttmon@2026-01-02T03:00:00Z..2026-01-02T03:04:59Z";
    let second = "a.ttmon@2026-01-02T03:05:00Z..2026-01-02T03:09:59Z";
    let answer = compare(folder.path(), &[first, second]);
    assert_eq!((answer.code, answer.err.as_str()), (Some(0), ""));
    expect![[r#"
        A  a.ttmon@2026-01-02T03:00:00Z..2026-01-02T03:04:59Z: 4m59s from 2026-01-02 03:00:00, 300 samples
        B  a.ttmon@2026-01-02T03:05:00Z..2026-01-02T03:09:59Z: 4m59s from 2026-01-02 03:05:00, 300 samples
                                                             A               B    change
        * all devices power                            140.0 W  →      147.0 W    +5.0 %
        * all devices AICLK                           1350 MHz  →     1275 MHz    -5.6 %
          device 0 power                                70.0 W  →       70.0 W         =
          device 0 AICLK                              1350 MHz  →     1350 MHz         =
        * device 1 power                                70.0 W  →       77.0 W     +10 %
        * device 1 AICLK                              1350 MHz  →     1200 MHz     -11 %
          MatmulDeviceOperation launches              100.0 /s  →     100.0 /s         =
        * MatmulDeviceOperation time per run           20.0 µs  →      24.0 µs     +20 %
        * 5 of 8 figures changed by more than their noise
    "#]]
    .assert_eq(&answer.out);

    let answer = compare(folder.path(), &["--json", first, second]);
    let answer: Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!((&answer["schema"], &answer["method"]), (&json!(1), &json!("blocks")));
    assert_eq!((&answer["a"]["samples"], &answer["b"]["from"]), (&json!(300), &json!("2026-01-02T03:05:00.000Z")));
    let power = |device: &str| {
        let figures = answer["figures"].as_array().unwrap();
        figures.iter().find(|row| row["device"] == device && row["figure"] == POWER.name).unwrap().clone()
    };
    assert_eq!((&power("0")["significant"], &power("1")["significant"]), (&json!(false), &json!(true)));
    assert!(power("1")["p"].as_f64().unwrap() < 0.001 && power("1")["unit"] == "watts");

    // One half with itself, and two parts of it.
    let same = compare(folder.path(), &[first, first]).out;
    assert!(same.ends_with("nothing changed significantly: 8 figures compared\n"), "{same}");
    let few = compare(folder.path(), &["a.ttmon@2026-01-02T03:00:00Z..2026-01-02T03:00:04Z", second]).out;
    assert!(few.ends_with("too few samples to know what is noise: nothing is called significant\n"), "{few}");
}

fn receipt(folder: &Path, name: &str, seconds: f64) {
    let receipt = json!({
        "schema": 1, "duration_seconds": seconds, "devices": [{"id": "0", "peak_power_watts": 72.0}],
        "operations": [{"name": "MatmulDeviceOperation", "launches": 59_900, "runs": 59_900, "device_seconds": 1.8}],
    });
    std::fs::write(folder.join(name), receipt.to_string()).unwrap();
}

#[test]
fn receipts_are_compared_with_each_other_and_with_recordings() {
    let folder = tempfile::tempdir().unwrap();
    receipt(folder.path(), "a.json", 600.0);
    receipt(folder.path(), "b.json", 660.0);
    record(&folder.path().join("b.ttmon"), 10);
    expect![[r#"
        slower, larger or hotter than before
          duration                                     600.0 s  →      660.0 s     +10 %
    "#]]
    .assert_eq(&compare(folder.path(), &["a.json", "b.json"]).out);
    expect![[r#"
        nothing got slower, larger or hotter by 5 % or more
        faster, smaller or cooler than before
          MatmulDeviceOperation time per run           30.1 µs  →      22.0 µs     -27 %
        not in both, and not compared: 1 figure
    "#]]
    .assert_eq(&compare(folder.path(), &["a.json", "b.ttmon"]).out);
    let answer: Value = serde_json::from_str(&compare(folder.path(), &["a.json", "b.json", "--json"]).out).unwrap();
    assert_eq!((&answer["method"], &answer["a"]["samples"]), (&json!("totals"), &json!(null)));
    assert_eq!(answer["figures"][3]["title"], "duration");
    assert_eq!((&answer["figures"][3]["significant"], &answer["figures"][3]["p"]), (&json!(true), &json!(null)));
}

#[test]
fn what_cannot_be_compared_is_named() {
    let folder = tempfile::tempdir().unwrap();
    receipt(folder.path(), "a.json", 600.0);
    std::fs::write(folder.path().join("x"), "hello").unwrap();
    let fails = |names: &[&str]| {
        let answer = compare(folder.path(), names);
        format!("{} {}", answer.code.unwrap(), answer.err)
    };
    let none = folder.path().join("none");
    let said = [
        fails(&["a.json", "x"]),
        fails(&["a.json", "b.json"]),
        fails(&["a.json", "a.json@3:00..4:00"]),
        fails(&["a.json@soon..now", "a.json"]),
        fails(&["a.json", "@3:00..4:00", "--black-box", none.to_str().unwrap()])
            .replace(none.to_str().unwrap(), "NONE"),
        fails(&["a.json"]),
    ];
    expect![[r#"
        2 error: x: neither a recording nor a receipt: `ttmon record -o FILE` or `ttmon run --json FILE` makes one
        2 error: b.json: there is no such file
        2 error: a.json: it is no recording: name a file that `ttmon record -o` has written
        2 error: a.json@soon..now: "soon" is not a time: expected a time such as 14:05, "yesterday 14:05", "2026-11-15 14:05:30" or "20m ago"
        2 error: NONE: there is no such file
        2 error: <B> is missing: `ttmon compare --help` shows how it is used
    "#]].assert_eq(&said.concat());
    assert_eq!(ttmon(&["--host", "x", "compare", "a", "b"]).code, Some(2));
}
