//! Reads a trace back: Perfetto's by its own published definitions, Chrome's by the rules of its format.

use super::needs;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// What a trace in Perfetto's format has, as `scripts/read-trace` prints it.
pub fn perfetto(test: &str, path: &Path) -> Option<Value> {
    let python = needs::perfetto(test)?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/read-trace");
    let output = Command::new(python).arg(script).arg(path).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// The events of a trace in Chrome's format, each of which is as the format has it.
pub fn chrome(text: &str) -> Vec<Value> {
    let trace: Value = serde_json::from_str(text).unwrap();
    let members: Vec<&String> = trace.as_object().unwrap().keys().collect();
    assert_eq!(members, ["displayTimeUnit", "otherData", "traceEvents"]);
    let events = trace["traceEvents"].as_array().unwrap().clone();
    events.iter().for_each(check);
    events
}

fn check(event: &Value) {
    let kind = event["ph"].as_str().unwrap();
    let mut expected = match kind {
        "M" => vec!["args", "name", "ph", "pid", "tid"],
        "X" => vec!["args", "cat", "dur", "name", "ph", "pid", "tid", "ts"],
        "C" => vec!["args", "name", "ph", "pid", "tid", "ts"],
        "i" => vec!["args", "cat", "name", "ph", "pid", "s", "tid", "ts"],
        "s" => vec!["cat", "id", "name", "ph", "pid", "tid", "ts"],
        "f" => vec!["bp", "cat", "id", "name", "ph", "pid", "tid", "ts"],
        other => panic!("{other}: {event}"),
    };
    if event.get("args").is_none() {
        expected.retain(|name| *name != "args");
    }
    let found: Vec<&String> = event.as_object().unwrap().keys().collect();
    assert_eq!(found, expected, "{event}");
    assert!(event["pid"].is_u64() && event["tid"].is_u64() && event["name"].is_string(), "{event}");
    let is_time = |name: &str| event.get(name).is_none_or(|time| time.as_f64().is_some_and(|time| time >= 0.0));
    assert!(is_time("ts") && is_time("dur"), "{event}");
    match kind {
        "M" => assert!(["process_name", "thread_name"].contains(&event["name"].as_str().unwrap()), "{event}"),
        "C" => assert!(event["args"]["value"].is_number(), "{event}"),
        "i" => assert_eq!(event["s"], "t"),
        "f" => assert_eq!(event["bp"], "e"),
        _ => {}
    }
}
