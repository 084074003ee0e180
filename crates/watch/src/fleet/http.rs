//! A machine whose service (`ttmon serve`) is asked over HTTP.

use super::place::HttpPlace;
use super::watch::{Board, Next};
use super::{Alert, Closer, Wish, past};
use crate::client::{Buffers, Death, MemoryService};
use crate::events::Event;
use crate::memory;
use alerts::http::Http;
use ledger::wire::Wanted;
use model::{SCHEMA, Snapshot};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A service on another machine.
pub struct Service<'a> {
    /// With which it is asked.
    pub http: &'a Http,
    /// What paths are put behind.
    pub base: &'a str,
}

/// What a service knows of the time before somebody looked.
#[derive(Default, Clone)]
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
const DEATHS: usize = 20;

/// Asks one machine again and again, and puts what it tells on the board.
pub fn follow(board: &Board, at: usize, http: &Http, place: &HttpPlace) {
    let service = Service { http, base: &place.base };
    let (mut tag, mut failures, mut wish) = (None, 0, None);
    let mut alerts_at: Option<Instant> = None;
    let mut looked_at = false;
    // The past is asked for once, when somebody begins to look.
    let mut past = Before::default();
    loop {
        match service.snapshot(tag.as_deref()) {
            Ok(told) => {
                let is_due = alerts_at.is_none_or(|last| last.elapsed() >= ALERTS);
                let alerts = if is_due { service.alerts() } else { None };
                alerts_at = if is_due { Some(Instant::now()) } else { alerts_at };
                let snapshot = told.map(|(snapshot, new)| {
                    tag = new;
                    snapshot
                });
                board.answered(at, snapshot, alerts);
                failures = 0;
            }
            Err(error) => {
                // Whoever answers there next may count its tags anew.
                tag = None;
                board.failed(at, reason(&error));
                failures += 1;
            }
        }
        if let Some(wish) = wish.as_ref().filter(|_| failures == 0) {
            if !looked_at {
                past = service.before(wish);
            }
            board.closer(at, Some(service.closer(wish, board.snapshot(at).as_deref(), &past)));
        } else if looked_at && wish.is_none() {
            past = Before::default();
            board.closer(at, None);
        }
        // One that comes back is asked anew.
        looked_at = wish.is_some() && failures == 0;
        match board.rest(at, failures) {
            Next::Ask(next) => wish = next,
            Next::Over => return,
        }
    }
}

impl Service<'_> {
    /// What the service knows, and its tag; nothing when it is what the tag stands for.
    fn snapshot(&self, tag: Option<&str>) -> anyhow::Result<Option<(Snapshot, Option<String>)>> {
        let Some((body, tag)) = self.http.get_new(&self.url("snapshot"), tag)? else { return Ok(None) };
        Ok(Some((read(&body)?, tag)))
    }

    fn url(&self, path: &str) -> String {
        format!("{}/api/v1/{path}", self.base)
    }

    /// Something that is done without when it does not come.
    fn ask<T: DeserializeOwned>(&self, path: &str) -> Option<T> {
        serde_json::from_slice(&self.http.get(&self.url(path)).ok()?).ok()
    }

    fn alerts(&self) -> Option<Vec<Alert>> {
        #[derive(Deserialize)]
        struct Told {
            alerts: Vec<Alert>,
        }
        self.ask::<Told>("alerts").map(|told| told.alerts)
    }

    /// What was measured and what has happened before.
    fn before(&self, wish: &Wish) -> Before {
        let told = past::query(wish.past).and_then(|query| self.ask::<past::Told>(&query));
        let events = self.ask::<past::Events>("events?limit=1000");
        Before {
            past: Arc::new(told.map(past::snapshots).unwrap_or_default()),
            events: Arc::new(events.map(past::events).unwrap_or_default()),
        }
    }

    fn closer(&self, wish: &Wish, snapshot: Option<&Snapshot>, before: &Before) -> Closer {
        let service = || Service { http: self.http, base: self.base };
        let memory = snapshot.filter(|_| wish.memory).map(|snapshot| {
            let mut snapshot = snapshot.clone();
            memory::told(&mut service(), &mut snapshot, true, BUFFERS)
        });
        let process = wish.process.zip(snapshot).map(|(pid, snapshot)| {
            let buffers = memory::told_of_process(&mut service(), snapshot, pid, BUFFERS);
            (pid, buffers.unwrap_or_default())
        });
        let deaths = service().deaths(DEATHS).unwrap_or_default();
        let Before { past, events } = before.clone();
        Closer { memory, process, deaths, past, events }
    }
}

impl MemoryService for Service<'_> {
    fn buffers(&mut self, wanted: Wanted) -> Option<Buffers> {
        let mut query = format!("buffers?limit={}", wanted.limit.unwrap_or(BUFFERS));
        if let Some(pid) = wanted.pid {
            query += &format!("&pid={pid}");
        }
        if let Some(device) = &wanted.device {
            query += &format!("&device={}", escaped(device));
        }
        self.ask(&query)
    }

    fn deaths(&mut self, limit: usize) -> Option<Vec<Death>> {
        #[derive(Deserialize)]
        struct Told {
            deaths: Vec<Death>,
        }
        self.ask::<Told>(&format!("deaths?limit={limit}")).map(|told| told.deaths)
    }
}

/// A snapshot of another machine. One of a later form may mean something else.
pub fn read(bytes: &[u8]) -> anyhow::Result<Snapshot> {
    #[derive(Deserialize)]
    struct Form {
        schema: u32,
    }
    let no_service = "answers, but not as `ttmon serve` does";
    let form: Form = serde_json::from_slice(bytes).map_err(|_| anyhow::anyhow!(no_service))?;
    if form.schema != SCHEMA {
        anyhow::bail!("speaks schema {} where this ttmon knows {SCHEMA}: update the older one", form.schema);
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

/// Why there is no answer, in words.
pub fn reason(error: &anyhow::Error) -> String {
    let said = format!("{error:#}");
    match error.downcast_ref::<ureq::Error>() {
        Some(ureq::Error::Timeout(_)) => format!("no answer within {} s", PATIENCE.as_secs()),
        Some(ureq::Error::HostNotFound) => "there is no machine of this name".into(),
        Some(ureq::Error::Io(error)) => match error.kind() {
            std::io::ErrorKind::ConnectionRefused => "connection refused: `ttmon serve` does not run there".into(),
            // Certificates that are not believed come as such, too.
            _ if said.contains("certificate") => format!("{error}; --ca FILE names the certificates to believe"),
            _ => error.to_string(),
        },
        Some(ureq::Error::Rustls(error)) => format!("{error}; --ca FILE names the certificates to believe"),
        _ if said.starts_with("answered 401") => {
            "wants a token, and was sent none or another one: --token-file FILE".into()
        }
        _ => told_reason(&said).unwrap_or(said),
    }
}

/// What a service says of its own refusal.
fn told_reason(said: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Told {
        error: Refusal,
    }
    #[derive(Deserialize)]
    struct Refusal {
        reason: String,
    }
    let told: Told = serde_json::from_str(&said[said.find('{')?..]).ok()?;
    Some(format!("refuses: {}", told.error.reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_snapshot_is_said_to_be_none() {
        let said = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(said("<html>"), "answers, but not as `ttmon serve` does");
        assert_eq!(said(r#"{"schema":2}"#), "speaks schema 2 where this ttmon knows 1: update the older one");
        assert!(said(r#"{"schema":1}"#).starts_with("answers, but not as `ttmon serve` does: missing field"));
        let snapshot = show::example::machine();
        assert_eq!(read(&serde_json::to_vec(&snapshot).unwrap()).unwrap(), snapshot);
    }

    #[test]
    fn a_service_s_own_reason_is_passed_on() {
        let said = r#"answered 503 Service Unavailable: {"error":{"status":503,"reason":"there is no sample yet"}}"#;
        assert_eq!(told_reason(said).as_deref(), Some("refuses: there is no sample yet"));
        assert_eq!(told_reason("answered 404 Not Found: {}"), None);
        assert_eq!(told_reason("answered 404 Not Found"), None);
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
