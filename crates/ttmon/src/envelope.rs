//! Several machines as one JSON object.

use model::{SCHEMA, Snapshot};
use serde::Serialize;
use watch::fleet::{Fleet, HostView, Reach};

/// All machines as one JSON object, with something of each.
pub fn envelope<'a>(fleet: &'a Fleet, one_line: bool, of_each: impl Fn(&'a HostView) -> Of<'a>) -> String {
    let host = |host: &'a HostView| Told {
        host: host.name.clone(),
        url: host.place.clone(),
        state: match host.state {
            Reach::Waiting => "waiting",
            Reach::Reached => "reached",
            Reach::Unreachable { .. } => "unreachable",
        },
        reason: host.trouble().map(str::to_owned),
        age_seconds: host.age.map(|age| (age.as_secs_f64() * 1000.0).round() / 1000.0),
        of: of_each(host),
    };
    let all = All { schema: SCHEMA, hosts: fleet.hosts.iter().map(host).collect() };
    let written = if one_line { serde_json::to_string(&all) } else { serde_json::to_string_pretty(&all) };
    // Strings, numbers and lists only, all of which JSON can write.
    written.expect("machines are always JSON") + "\n"
}

#[derive(Serialize)]
struct All<'a> {
    schema: u32,
    hosts: Vec<Told<'a>>,
}

#[derive(Serialize)]
struct Told<'a> {
    host: String,
    url: String,
    state: &'static str,
    reason: Option<String>,
    age_seconds: Option<f64>,
    #[serde(flatten)]
    of: Of<'a>,
}

/// What is told of a machine besides its state.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Of<'a> {
    Snapshot(Option<&'a Snapshot>),
    Memory(Option<Box<show::memory::view::View>>),
}
