//! Several machines as one JSON object.

use model::{SCHEMA, Snapshot};
use serde::Serialize;
use watch::fleet::{Fleet, HostView, Reach};

/// FleetAnswer machines as one JSON object, with content of each.
pub fn fleet_json<'a>(fleet: &'a Fleet, one_line: bool, of_each: impl Fn(&'a HostView) -> HostContent<'a>) -> String {
    let host = |host: &'a HostView| HostAnswer {
        host: host.name.clone(),
        url: host.place.clone(),
        state: match host.state {
            Reach::Waiting => "waiting",
            Reach::Reached => "reached",
            Reach::Unreachable { .. } => "unreachable",
        },
        reason: host.trouble().map(str::to_owned),
        age_seconds: host.age.map(|age| (age.as_secs_f64() * 1000.0).round() / 1000.0),
        content: of_each(host),
    };
    let all = FleetAnswer { schema: SCHEMA, hosts: fleet.hosts.iter().map(host).collect() };
    let written = if one_line { serde_json::to_string(&all) } else { serde_json::to_string_pretty(&all) };
    // Strings, numbers and lists only, all of which JSON can write.
    written.expect("machines are always JSON") + "\n"
}

#[derive(Serialize)]
struct FleetAnswer<'a> {
    schema: u32,
    hosts: Vec<HostAnswer<'a>>,
}

#[derive(Serialize)]
struct HostAnswer<'a> {
    host: String,
    url: String,
    state: &'static str,
    reason: Option<String>,
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
