//! What a timeline has, read back.

use super::protobuf::tests::{Found, decode};
use super::*;
use expect_test::expect;
use model::{DeviceId, OperationTotals, Process, Timestamp, Watts, Weight};
use std::collections::HashSet;
use std::path::PathBuf;
use tempfile::TempDir;

const BEGAN: u64 = 1_794_830_400_000_000_000;

fn began(table: TableKind, name: &str) -> (Timeline, PathBuf, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let form = Form::of(&path, None).unwrap();
    let clocks = Clocks { began: BEGAN, monotonic: Some(77) };
    let output = Output::open(&path, form.is_compressed).unwrap();
    (Timeline::begin(output, form.format, table, clocks).unwrap(), path, folder)
}

fn slice<'a>(operation: &'a str, start: u64, end: u64) -> Slice<'a> {
    let process = ProcessKey { pid: 7, name: "python3", label: "train.py" };
    let (start, end, launched) = (BEGAN + start, BEGAN + end, Some(BEGAN + start - 1000));
    Slice { process, device: "device 0", queue: Some(0), operation, runtime_id: 3, start, end, launched }
}

fn snapshot(second: i64, power: Option<f64>) -> Snapshot {
    let mut device = model::Device::new(DeviceId::Local(0));
    (device.board, device.power) = (Some("p150a".into()), power.map(Watts));
    let taken_at = Timestamp(BEGAN as i64 / 1_000_000 + second * 1000);
    Snapshot { taken_at, devices: vec![device], processes: vec![Process::new(9)], ..Snapshot::empty() }
}

fn fill(timeline: &mut Timeline) {
    for (second, power) in [(1, Some(80.0)), (2, Some(80.0)), (3, None), (4, Some(81.5)), (5, Some(81.5))] {
        timeline.snapshot(&snapshot(second, power)).unwrap();
    }
    let time = Timestamp(BEGAN as i64 / 1_000_000 + 2500);
    let event = Event::new(time, Weight::Bad, Some(DeviceId::Local(0)), "device 0: \"hung\"".into());
    timeline.event(&event).unwrap();
    let totals = OperationTotals { time, seconds: 10.0, pid: 7, name: Some("python3".into()), ..Default::default() };
    timeline.entry(&LogEntry::Operations(totals)).unwrap();
    timeline.slice(&slice("Matmul", 2_000, 5_000)).unwrap();
    // It overlaps the one before.
    timeline.slice(&slice("Matmul", 4_000, 6_500)).unwrap();
    timeline.slice(&Slice { queue: None, launched: None, ..slice("Add", 5_000, 5_000) }).unwrap();
}

#[test]
fn chrome_s_events_are_lines() {
    let (mut timeline, path, _folder) = began(TableKind::default(), "a.json");
    fill(&mut timeline);
    let length = timeline.finish().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.len() as u64, length);
    expect![[r#"
        {"displayTimeUnit":"ns","otherData":{"producer":"ttmon 0.1.0","began_at":"2026-11-16T12:00:00.000Z","began_nanoseconds":"1794830400000000000"},"traceEvents":[
        {"ph":"M","pid":1000000000,"tid":1,"name":"process_name","args":{"name":"device 0 (p150a)"}},
        {"ph":"M","pid":1000000000,"tid":2,"name":"thread_name","args":{"name":"events"}},
        {"ph":"C","pid":1000000000,"tid":3,"name":"Power (W)","ts":1000000.000,"args":{"value":80.0}},
        {"ph":"M","pid":9,"tid":4,"name":"process_name","args":{"name":"pid 9"}},
        {"ph":"i","pid":1000000000,"tid":2,"name":"no value: Power","cat":"event","ts":3000000.000,"s":"t"},
        {"ph":"C","pid":1000000000,"tid":3,"name":"Power (W)","ts":4000000.000,"args":{"value":81.5}},
        {"ph":"i","pid":1000000000,"tid":2,"name":"device 0: \"hung\"","cat":"event","ts":2500000.000,"args":{"weight":"bad","device":"0"},"s":"t"},
        {"ph":"M","pid":7,"tid":5,"name":"process_name","args":{"name":"python3"}},
        {"ph":"M","pid":7,"tid":6,"name":"thread_name","args":{"name":"operations, sums"}},
        {"ph":"X","pid":7,"tid":6,"name":"no operation","cat":"totals","ts":0.000,"args":{"operations":"","launches":0},"dur":2500000.000},
        {"ph":"M","pid":7,"tid":7,"name":"thread_name","args":{"name":"device 0, queue 0"}},
        {"ph":"M","pid":7,"tid":8,"name":"thread_name","args":{"name":"launches, device 0, queue 0"}},
        {"ph":"X","pid":7,"tid":8,"name":"Matmul","cat":"launch","ts":1.000,"args":{"runtime_id":3},"dur":0.001},
        {"ph":"s","pid":7,"tid":8,"name":"launch","cat":"launch","id":1,"ts":1.000},
        {"ph":"X","pid":7,"tid":7,"name":"Matmul","cat":"operation","ts":2.000,"args":{"runtime_id":3},"dur":3.000},
        {"ph":"f","pid":7,"tid":7,"name":"launch","cat":"launch","id":1,"bp":"e","ts":2.000},
        {"ph":"M","pid":7,"tid":9,"name":"thread_name","args":{"name":"device 0, queue 0"}},
        {"ph":"X","pid":7,"tid":8,"name":"Matmul","cat":"launch","ts":3.000,"args":{"runtime_id":3},"dur":0.001},
        {"ph":"s","pid":7,"tid":8,"name":"launch","cat":"launch","id":2,"ts":3.000},
        {"ph":"X","pid":7,"tid":9,"name":"Matmul","cat":"operation","ts":4.000,"args":{"runtime_id":3},"dur":2.500},
        {"ph":"f","pid":7,"tid":9,"name":"launch","cat":"launch","id":2,"bp":"e","ts":4.000},
        {"ph":"M","pid":7,"tid":10,"name":"thread_name","args":{"name":"device 0, queue unknown"}},
        {"ph":"X","pid":7,"tid":10,"name":"Add","cat":"operation","ts":5.000,"args":{"runtime_id":3},"dur":0.000},
        {"ph":"C","pid":1000000000,"tid":3,"name":"Power (W)","ts":5000000.000,"args":{"value":81.5}}
        ]}
    "#]].assert_eq(&text);
}

/// The fields of a message with this number.
fn parts<'a>(bytes: &'a [u8], field: u32) -> Vec<&'a [u8]> {
    let of_field = decode(bytes).into_iter().filter(|(found, _)| *found == field);
    let bytes = |found: Found<'a>| match found {
        Found::Bytes(bytes) => bytes,
        other => panic!("{other:?}"),
    };
    of_field.map(|(_, found)| bytes(found)).collect()
}

fn number(bytes: &[u8], field: u32) -> Option<u64> {
    decode(bytes).into_iter().find_map(|(found, value)| match value {
        Found::Number(number) if found == field => Some(number),
        _ => None,
    })
}

#[test]
fn perfetto_s_tracks_are_declared_before_they_are_used_and_slices_end() {
    let (mut timeline, path, _folder) = began(TableKind::default(), "a.pftrace");
    fill(&mut timeline);
    timeline.finish().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let (mut declared, mut open, mut types) = (HashSet::new(), HashSet::new(), Vec::new());
    for packet in parts(&bytes, 1) {
        for track in parts(packet, 60) {
            assert!(number(track, 5).is_none_or(|parent| declared.contains(&parent)));
            assert!(declared.insert(number(track, 1).unwrap()));
        }
        for event in parts(packet, 11) {
            let (kind, track) = (number(event, 9).unwrap(), number(event, 11).unwrap());
            assert!(declared.contains(&track));
            assert!(number(packet, 8).is_some_and(|time| time >= BEGAN));
            match kind {
                1 => assert!(open.insert(track)),
                2 => assert!(open.remove(&track)),
                _ => {}
            }
            types.push(kind);
        }
    }
    assert!(open.is_empty());
    let count = |kind| types.iter().filter(|found| **found == kind).count();
    // Four slices, one of them of sums; two launches, an event, a gap; the power twice, and once more at the end.
    assert_eq!([count(1), count(2), count(3), count(4)], [4, 4, 4, 3]);
}

#[test]
fn what_is_kept_does_not_grow_with_what_is_written() {
    let (mut timeline, path, _folder) = began(TableKind::default(), "a.pftrace.gz");
    let names: Vec<String> = (0..10_000).map(|n| format!("operation {n}")).collect();
    for n in 0..100_000u64 {
        let name = &names[n as usize % names.len()];
        timeline.slice(&slice(name, 10_000 + n * 100, 10_090 + n * 100)).unwrap();
    }
    let Timeline::Perfetto(drawing) = &timeline else { panic!() };
    // One queue, its launches, the process. Names beyond a limit are not remembered.
    assert_eq!(drawing.kept(), (3, 4096));
    let bytes = timeline.finish().unwrap();
    assert_eq!(std::fs::metadata(path).unwrap().len(), bytes);
    assert!(bytes < 100_000 * 40, "{bytes}");
}
