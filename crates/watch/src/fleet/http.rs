//! A machine whose service (`ttmon serve`) is asked over HTTP.

use super::watcher::{FleetState, NextStep};
use super::{DetailRequest, HostDetail, remote_history};
use crate::client::{BuffersReply, MemoryService};
use crate::memory;
use alerts::http::Http;
use alerts::proxy::NamedProxy;
use ledger::wire::Wanted;
use model::{Event, ExitRecord, SCHEMA, Snapshot};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The service of another machine.
#[derive(Clone)]
pub struct RemoteService {
    http: Http,
    /// What paths are appended to.
    base: String,
}

/// What a service recorded before its machine was shown.
struct Before {
    past: Arc<Vec<Snapshot>>,
    events: Arc<Vec<Event>>,
}

/// For the whole of an answer.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// How often alerts are asked for, which change seldom.
const ALERTS: Duration = Duration::from_secs(5);
/// As many as `ttmon top` shows of a machine.
const BUFFERS: usize = 1000;
const EXITS: usize = 20;

/// Asks one machine again and again, and publishes its answers.
pub fn follow(fleet: &FleetState, at: usize, service: &RemoteService) {
    let (mut tag, mut failures, mut request) = (None, 0, None);
    let mut alerts_at: Option<Instant> = None;
    // The past is asked for once, when the machine is first shown.
    let mut past: Option<Before> = None;
    loop {
        match service.snapshot(tag.as_deref()) {
            Ok(news) => {
                let is_due = alerts_at.is_none_or(|last| last.elapsed() >= ALERTS);
                let alerts = if is_due { service.list("alerts", "alerts") } else { None };
                alerts_at = if is_due { Some(Instant::now()) } else { alerts_at };
                let snapshot = news.map(|(snapshot, new)| {
                    tag = new;
                    snapshot
                });
                fleet.answered(at, snapshot, alerts);
                failures = 0;
            }
            Err(error) => {
                // Another service may answer there next, with tags of its own.
                tag = None;
                fleet.failed(at, reason(&error));
                failures += 1;
            }
        }
        match &request {
            Some(request) if failures == 0 => {
                let past = past.get_or_insert_with(|| service.before(request));
                fleet.detail(at, Some(service.detail(request, fleet.snapshot(at).as_deref(), past)));
            }
            // One that comes back is asked again.
            Some(_) => past = None,
            None if past.take().is_some() => fleet.detail(at, None),
            None => {}
        }
        match fleet.rest(Some(at), failures) {
            NextStep::Ask(next) => request = next,
            NextStep::End => return,
        }
    }
}

impl RemoteService {
    /// The service at a URL; nothing is sent yet.
    pub fn at(http: &Http, base: &str) -> RemoteService {
        RemoteService { http: http.clone(), base: base.to_owned() }
    }

    /// What the service knows, and its tag; nothing when the tag is still current.
    fn snapshot(&self, tag: Option<&str>) -> anyhow::Result<Option<(Snapshot, Option<String>)>> {
        let Some((body, tag)) = self.http.get_new(&self.url("snapshot"), tag)? else { return Ok(None) };
        Ok(Some((read(&body)?, tag)))
    }

    fn url(&self, path: &str) -> String {
        format!("{}/api/v1/{path}", self.base)
    }

    /// Something optional: absent when there is no answer.
    fn ask<T: DeserializeOwned>(&self, path: &str) -> Option<T> {
        serde_json::from_slice(&self.http.get(&self.url(path)).ok()?).ok()
    }

    /// The list that an answer has under a name.
    fn list<T: DeserializeOwned>(&self, path: &str, name: &str) -> Option<Vec<T>> {
        let mut answer: serde_json::Value = self.ask(path)?;
        serde_json::from_value(answer.get_mut(name)?.take()).ok()
    }

    /// What was measured and what has happened before.
    fn before(&self, request: &DetailRequest) -> Before {
        let history = remote_history::query(request.past).and_then(|query| self.ask(&query));
        Before {
            past: Arc::new(history.map(remote_history::snapshots).unwrap_or_default()),
            events: Arc::new(self.list("events?limit=1000", "events").unwrap_or_default()),
        }
    }

    fn detail(&self, request: &DetailRequest, snapshot: Option<&Snapshot>, before: &Before) -> HostDetail {
        let mut service = self.clone();
        let memory = snapshot.filter(|_| request.memory).map(|snapshot| {
            let mut snapshot = snapshot.clone();
            memory::served_view(&mut service, &mut snapshot, true, BUFFERS)
        });
        let process = request.process.zip(snapshot).map(|(pid, snapshot)| {
            let buffers = memory::of_process(&mut service, snapshot, pid, BUFFERS);
            (pid, buffers.unwrap_or_default())
        });
        let exits = service.exits(EXITS).unwrap_or_default();
        HostDetail { memory, process, exits, past: before.past.clone(), events: before.events.clone() }
    }
}

impl MemoryService for RemoteService {
    fn buffers(&mut self, wanted: Wanted) -> Option<BuffersReply> {
        let mut query = format!("buffers?limit={}", wanted.limit.unwrap_or(BUFFERS));
        if let Some(pid) = wanted.pid {
            query += &format!("&pid={pid}");
        }
        if let Some(device) = &wanted.device {
            query += &format!("&device={}", escaped(device));
        }
        self.ask(&query)
    }

    fn exits(&mut self, limit: usize) -> Option<Vec<ExitRecord>> {
        self.list(&format!("deaths?limit={limit}"), "deaths")
    }
}

/// A snapshot of another machine. One of a later form may mean something else.
pub fn read(bytes: &[u8]) -> anyhow::Result<Snapshot> {
    #[derive(Deserialize)]
    struct Form {
        schema: u32,
    }
    let no_service = "not `ttmon serve`: unexpected response";
    let form: Form = serde_json::from_slice(bytes).map_err(|_| anyhow::anyhow!(no_service))?;
    if form.schema != SCHEMA {
        anyhow::bail!("uses schema {}, this ttmon {SCHEMA}: update the older one", form.schema);
    }
    serde_json::from_slice(bytes).map_err(|error| anyhow::anyhow!("{no_service}: {error}"))
}

/// Letters that have no meaning of their own in a URL.
pub fn escaped(text: &str) -> String {
    let letter = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(letter).collect()
}

/// An error in one line for people.
pub fn reason(error: &anyhow::Error) -> String {
    let said = format!("{error:#}");
    let proxy = error.downcast_ref::<NamedProxy>();
    match error.downcast_ref::<ureq::Error>() {
        Some(ureq::Error::Timeout(_)) if proxy.is_none() => format!("no answer within {} s", PATIENCE.as_secs()),
        Some(ureq::Error::HostNotFound) if proxy.is_none() => "host name not found".into(),
        Some(ureq::Error::Io(error)) if proxy.is_none() => match error.kind() {
            std::io::ErrorKind::ConnectionRefused => "connection refused: `ttmon serve` is not running there".into(),
            _ => error.to_string(),
        },
        _ if said.starts_with("answered 401") => {
            "requires a token, and got none or a wrong one: --token-file FILE".into()
        }
        _ => refusal_of(&said).unwrap_or(said),
    }
}

/// What a service says of its own refusal.
fn refusal_of(said: &str) -> Option<String> {
    let reply: serde_json::Value = serde_json::from_str(&said[said.find('{')?..]).ok()?;
    Some(format!("refused: {}", reply.pointer("/error/reason")?.as_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_snapshot_is_refused() {
        let said = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(said("<html>"), "not `ttmon serve`: unexpected response");
        assert_eq!(said(r#"{"schema":2}"#), "uses schema 2, this ttmon 1: update the older one");
        assert!(said(r#"{"schema":1}"#).starts_with("not `ttmon serve`: unexpected response: missing field"));
        let snapshot = show::example::machine();
        assert_eq!(read(&serde_json::to_vec(&snapshot).unwrap()).unwrap(), snapshot);
    }

    #[test]
    fn a_service_s_own_reason_is_passed_on() {
        let said = r#"answered 503 Service Unavailable: {"error":{"status":503,"reason":"there is no sample yet"}}"#;
        assert_eq!(refusal_of(said).as_deref(), Some("refused: there is no sample yet"));
        assert_eq!(refusal_of("answered 404 Not Found: {}"), None);
        assert_eq!(refusal_of("answered 404 Not Found"), None);
    }

    #[test]
    fn a_device_s_name_means_itself_in_a_url() {
        assert_eq!(escaped("0000:01:00.0"), "0000%3A01%3A00.0");
        assert_eq!(escaped("2R"), "2R");
        assert_eq!(escaped("a&b=ü"), "a%26b%3D%C3%BC");
    }

    proptest::proptest! {
        #[test]
        fn no_answer_makes_it_fail(bytes: Vec<u8>) {
            let _ = read(&bytes);
        }
    }
}
