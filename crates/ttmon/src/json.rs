//! JSON on one line or on several; and several machines as one object.

use model::{SCHEMA, Snapshot};
use serde::{Serialize, Serializer};
use serde_json::Value;
use watch::fleet::{Fleet, HostView, Reach};

/// A person gets it indented; a program reads it faster in one line.
pub fn json(value: &impl Serialize, one_line: bool) -> String {
    let written = if one_line { serde_json::to_string(value) } else { serde_json::to_string_pretty(value) };
    // All that is shown holds strings, numbers and lists only, which JSON can write.
    written.expect("is always JSON") + "\n"
}

/// Several machines, with content of each.
pub fn fleet_json<'a>(fleet: &'a Fleet, one_line: bool, of_each: impl Fn(&'a HostView) -> HostContent<'a>) -> String {
    let host = |host: &'a HostView| HostAnswer {
        host: &host.name,
        url: &host.place,
        state: match host.state {
            Reach::Waiting => "waiting",
            Reach::Reached => "reached",
            Reach::Unreachable { .. } => "unreachable",
        },
        reason: host.trouble(),
        age_seconds: host.age.map(|age| (age.as_secs_f64() * 1000.0).round() / 1000.0),
        content: of_each(host),
    };
    json(&FleetAnswer { schema: SCHEMA, hosts: fleet.hosts.iter().map(host).collect() }, one_line)
}

#[derive(Serialize)]
struct FleetAnswer<'a> {
    schema: u32,
    hosts: Vec<HostAnswer<'a>>,
}

#[derive(Serialize)]
struct HostAnswer<'a> {
    host: &'a str,
    url: &'a str,
    state: &'static str,
    reason: Option<&'a str>,
    age_seconds: Option<f64>,
    #[serde(flatten)]
    content: HostContent<'a>,
}

/// What there is of a machine besides its state.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HostContent<'a> {
    Snapshot(Option<&'a Snapshot>),
    Memory(Option<Box<show::memory::view::View>>),
}

/// A JSON object that keeps the order of its keys.
pub struct Object(pub Vec<(&'static str, JsonNode)>);

#[derive(Serialize)]
#[serde(untagged)]
pub enum JsonNode {
    Value(Value),
    Object(Object),
    List(Vec<Object>),
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, node)| (key, node)))
    }
}

impl<T: Into<Value>> From<T> for JsonNode {
    fn from(value: T) -> JsonNode {
        JsonNode::Value(value.into())
    }
}
