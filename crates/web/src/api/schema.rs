//! The JSON schema: what devices, processes and the host consist of from the tables of figures, all else from `schemas.json`.

use model::MemoryKind;
use model::figure::device::{DEVICE_FIGURES, INDEX};
use model::figure::machine::MACHINE_FIGURES;
use model::figure::operation::OPERATION_FIGURES;
use model::figure::process::{HELD_BYTES, HELD_FIGURES, PROCESS_FIGURES};
use model::figure::{DEEP, Dimension, Figure, LABEL, Unit};
use serde_json::{Map, Value, json};

/// The object with what the agent in a process counts.
const AGENT: &str = "exact";

pub fn schemas() -> Map<String, Value> {
    let mut all: Map<String, Value> = serde_json::from_str(include_str!("schemas.json")).unwrap_or_default();
    let mut host = object_of(MACHINE_FIGURES)["properties"]["host"].take();
    host["description"] = json!("The machine.");
    let mut process = object_of(PROCESS_FIGURES);
    let devices = json!({ "type": "array", "items": { "$ref": "#/components/schemas/Held" } });
    insert(&mut process, &["devices"], devices, Presence::Always);
    let operations = json!({
        "type": "array",
        "items": { "$ref": "#/components/schemas/Operation" },
        "description": "Those that took the most time on devices. Absent where none is known.",
    });
    insert(&mut process, &["operations"], operations, Presence::Optional);
    let mut device = object_of(DEVICE_FIGURES);
    let tag = json!({
        "type": "object",
        "properties": { "tag": { "type": "integer", "minimum": 0 }, "value": { "type": "integer", "minimum": 0 } },
        "required": ["tag", "value"],
    });
    let tags =
        json!({ "type": "array", "items": tag, "description": "The table of the firmware as it was read, by tag." });
    insert(&mut device, &[DEEP, "tags"], tags, Presence::Optional);
    let made = [
        ("Host", host),
        ("Device", device),
        ("Process", process),
        ("Held", held()),
        ("Operation", object_of(OPERATION_FIGURES)),
    ];
    all.extend(made.map(|(name, schema)| (name.to_owned(), schema)));
    all
}

/// One form, by its name.
#[cfg(test)]
pub fn schema_of(name: &str) -> Value {
    schemas().remove(name).unwrap_or_default()
}

fn held() -> Value {
    let mut held = object_of(HELD_FIGURES);
    insert(&mut held, &["index"], property(&INDEX), Presence::Always);
    // What the agent counts of a kind is the part of that kind.
    for kind in MemoryKind::ALL {
        insert(&mut held, &[AGENT, kind.name(), HELD_BYTES.key()], property(&HELD_BYTES), Presence::Always);
    }
    held
}

/// The JSON object of a subject with these figures.
fn object_of<S>(table: &[&'static Figure<S>]) -> Value {
    let mut object = new_object(false);
    for figure in table.iter().filter(|figure| figure.in_json) {
        // What is not so is left out.
        let presence = if figure.unit == Unit::YesNo && !figure.always { Presence::Optional } else { Presence::Always };
        let has_labels_inside = matches!(figure.dimension, Some(dimension) if dimension != Dimension::MemoryKind);
        if has_labels_inside {
            let path = figure.path().replace(&format!(".{LABEL}"), "");
            let items = json!({ "type": "array", "items": property(figure), "description": figure.help });
            insert(&mut object, &path.split('.').collect::<Vec<_>>(), items, presence);
            continue;
        }
        for field in figure.fields() {
            let path = field.path();
            insert(&mut object, &path.split('.').collect::<Vec<_>>(), property(figure), presence);
        }
    }
    object
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Always,
    Optional,
}

fn new_object(may_be_null: bool) -> Value {
    let kind = if may_be_null { json!(["object", "null"]) } else { json!("object") };
    json!({ "type": kind, "properties": {}, "required": [] })
}

/// Puts a property at a path. Objects on the way to it are made. Those of an agent, which a process may not have, can be null.
fn insert(object: &mut Value, path: &[&str], property: Value, presence: Presence) {
    let Some((key, rest)) = path.split_first() else { return };
    let is_of_agent = *key == AGENT || object["type"].is_array();
    // There are deep reads only where they were asked for.
    let is_there = (presence == Presence::Always || !rest.is_empty()) && *key != DEEP;
    if is_there {
        let required = object["required"].as_array_mut();
        if let Some(required) = required.filter(|required| !required.iter().any(|name| name == key)) {
            required.push(json!(key));
        }
    }
    let place = &mut object["properties"][key];
    match rest {
        [] => *place = property,
        rest => {
            if place.is_null() {
                *place = new_object(is_of_agent);
            }
            insert(place, rest, property, presence);
        }
    }
}

fn property<S>(figure: &Figure<S>) -> Value {
    let kind = match figure.unit {
        Unit::Text => "string",
        Unit::YesNo => "boolean",
        unit if unit.is_whole() => "integer",
        _ => "number",
    };
    let mut property = json!({ "description": figure.help });
    let may_be_null = !figure.always;
    if !figure.words.is_empty() {
        let null = may_be_null.then_some(Value::Null);
        property["enum"] = figure.words.iter().map(|word| json!(word)).chain(null).collect();
    } else if may_be_null {
        property["type"] = json!([kind, "null"]);
    } else {
        property["type"] = json!(kind);
    }
    if kind == "integer" {
        property["minimum"] = json!(0);
    }
    property
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Alert, AlertState, Deep, Severity, Snapshot, TelemetryTag, Timestamp};

    /// Compares a value with a schema, strictly: every field is described, every required field is there.
    fn check(value: &Value, schema: &Value, all: &Map<String, Value>, path: &str) {
        if let Some(name) = schema["$ref"].as_str() {
            let name = name.rsplit('/').next().unwrap();
            return check(value, &all[name], all, path);
        }
        if let Some(words) = schema["enum"].as_array() {
            return assert!(words.contains(value), "{path} is {value}, none of {words:?}");
        }
        if let Some(only) = schema.get("const") {
            return assert_eq!(value, only, "{path}");
        }
        let kinds = match &schema["type"] {
            Value::Array(kinds) => kinds.clone(),
            kind => vec![kind.clone()],
        };
        let is = |kind: &Value| match kind.as_str().unwrap() {
            "null" => value.is_null(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_u64() || value.is_i64(),
            "number" => value.is_number(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            kind => panic!("{path}: no such type {kind}"),
        };
        assert!(kinds.iter().any(is), "{path} is {value}, and should be {kinds:?}");
        for (at, item) in value.as_array().into_iter().flatten().enumerate() {
            check(item, &schema["items"], all, &format!("{path}[{at}]"));
        }
        if let Some(fields) = value.as_object() {
            for (key, field) in fields {
                let described = &schema["properties"][key];
                assert!(!described.is_null(), "{path}.{key} is not described");
                check(field, described, all, &format!("{path}.{key}"));
            }
            for key in schema["required"].as_array().unwrap() {
                assert!(fields.contains_key(key.as_str().unwrap()), "{path}.{key} is required and missing");
            }
        }
    }

    #[test]
    fn every_field_of_a_snapshot_is_described_and_every_required_field_is_there() {
        let mut snapshot: Snapshot = serde_json::from_str(include_str!("../golden/machine.json")).unwrap();
        let all = schemas();
        check(&serde_json::to_value(&snapshot).unwrap(), &all["Snapshot"], &all, "snapshot");
        snapshot.host.simulated = true;
        snapshot.alerts.push(Alert {
            name: "overheating".into(),
            severity: Severity::Critical,
            state: AlertState::Firing,
            device: Some("0".into()),
            process: None,
            since: Timestamp(0),
            value: Some(97.0),
            text: "Device 0 is at 97 % of its temperature limit.".into(),
        });
        let held_by = vec![model::HolderAtEvent { pid: 7, name: None, bytes: Some(model::Bytes(1)) }];
        let message = model::KernelMessage {
            time: Timestamp(0),
            seq: 423,
            kind: model::KernelMessageKind::Timeout,
            weight: model::Weight::Bad,
            device: Some(model::DeviceId::Local(0)),
            pci_address: None,
            meaning: "the firmware did not answer the driver in time".into(),
            text: "tenstorrent 0000:01:00.0: Timeout waiting for ARC response".into(),
            count: 1203,
            seconds: Some(10.0),
            held_by: held_by.clone(),
        };
        let kernel = model::KernelEvent { kind: message.kind, text: message.text.clone(), count: 1203, held_by };
        let event = model::Event::new(Timestamp(0), model::Weight::Bad, None, "x".into());
        let event = model::Event { kernel: Some(Box::new(kernel)), ..event };
        let mut event = serde_json::to_value(event).unwrap();
        event["seq"] = json!(1);
        check(&event, &all["Events"]["properties"]["events"]["items"], &all, "event");
        snapshot.kernel_log = Some(vec![message]);
        let deep = Deep {
            gddr_temp: Some(model::Celsius(61.0)),
            gddr_trained: vec![Some(true), None],
            gddr_self_test: vec![Some(model::SelfTest::Passed), None],
            aiclk_ceiling_by: Some(model::ClockLimiter::Power),
            tags: vec![TelemetryTag { tag: 6, value: 720 }],
            ..Deep::default()
        };
        snapshot.devices[0].deep = Some(Box::new(deep));
        check(&serde_json::to_value(&snapshot).unwrap(), &all["Snapshot"], &all, "snapshot");
    }

    #[test]
    fn a_figure_with_labels_is_an_array() {
        static GDDR_TEMP: Figure<()> = Figure {
            dimension: Some(Dimension::GddrChannel),
            ..Figure::new("gddr_temp_celsius", Unit::Celsius, "Temperature.", (|(), _| None, |(), _, _| {}))
        };
        let schema = object_of(&[&GDDR_TEMP]);
        assert_eq!(schema["required"], json!(["gddr_temp_celsius"]));
        let temperatures = &schema["properties"]["gddr_temp_celsius"];
        assert_eq!(
            (&temperatures["type"], &temperatures["items"]["type"]),
            (&json!("array"), &json!(["number", "null"]))
        );
    }

    #[test]
    fn what_is_always_there_is_never_null_and_a_word_is_one_of_a_few() {
        let device = &schemas()["Device"]["properties"];
        assert_eq!(device["foreign_holders"]["type"], "integer");
        let required = schemas()["Device"]["required"].as_array().unwrap().clone();
        assert!(!required.contains(&json!(DEEP)) && required.contains(&json!("memory")));
        assert_eq!(device["power_watts"]["type"], json!(["number", "null"]));
        assert_eq!(device["state"]["enum"][0], "ok");
        assert_eq!(device["arch"]["enum"], json!(["wormhole", "blackhole", null]));
        assert_eq!(device["memory"]["properties"]["dram_used_bytes"]["type"], json!(["integer", "null"]));
        let exact = &schemas()["Held"]["properties"]["exact"];
        assert_eq!(exact["type"], json!(["object", "null"]));
        let banks = &exact["properties"]["dram"]["properties"]["banks"];
        assert_eq!(
            (&banks["type"], &banks["properties"]["count"]["type"]),
            (&json!(["object", "null"]), &json!(["integer", "null"]))
        );
    }
}
