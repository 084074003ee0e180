//! The answers that are made of the last sample.

use super::answer::{Answer, JSON, Refusal, Sent};
use super::query::{MOST, Query, refuse};
use super::{Ask, Order, json};
use crate::board::{Board, Sample, now};
use crate::metrics::Format;
use crate::text::Text;
use hyper::header::{self, HeaderMap};
use hyper::{Response, StatusCode};
use model::{Device, DeviceId, Process, Selector, Snapshot, Timestamp};
use serde::Serialize;
use serde_json::json;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

type Answered = Result<Response<Sent>, Refusal>;

/// What tells the answers about one sample from those about another.
fn tag(board: &Board, sample: &Sample) -> Option<String> {
    Some(format!("{:x}-{}", board.run, sample.number))
}

pub fn health(board: &Board, _: &Query, headers: &HeaderMap) -> Answered {
    let (age, interval) = (board.sample().age(), Duration::from_millis(board.interval_ms()));
    // A machine under load may well be a little late when samples follow each other quickly.
    if age > (10 * interval).max(Duration::from_secs(2)) {
        let reason =
            format!("the last sample is {:.1} s old, and there should be one every {interval:?}", age.as_secs_f64());
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, reason));
    }
    Ok(Answer { content_type: "text/plain; charset=utf-8", text: &Text::new("ok\n"), tag: None }.response(headers))
}

pub fn metrics(board: &Board, _: &Query, headers: &HeaderMap) -> Answered {
    let accept: Vec<&str> = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    let format = Format::wanted(Some(&accept.join(",")));
    Ok(board.with_metrics(format, |_, text| {
        Answer { content_type: format.content_type(), text, tag: None }.response(headers)
    }))
}

pub fn snapshot(board: &Board, _: &Query, headers: &HeaderMap) -> Answered {
    let sample = board.sample();
    Ok(Answer { content_type: JSON, text: sample.json(), tag: tag(board, &sample) }.response(headers))
}

pub fn devices(board: &Board, query: &Query, headers: &HeaderMap) -> Answered {
    #[derive(Serialize)]
    struct Devices<'a> {
        taken_at: Timestamp,
        devices: Vec<&'a Device>,
    }
    let sample = board.sample();
    let devices = named(&sample.snapshot, &query.list("id"))?;
    json(&Devices { taken_at: sample.snapshot.taken_at, devices }, tag(board, &sample), headers)
}

/// The devices that are meant; all when none is named.
pub fn named<'a>(snapshot: &'a Snapshot, names: &[&str]) -> Result<Vec<&'a Device>, Refusal> {
    let selectors: Vec<Selector> = names.iter().map(|name| Selector((*name).into())).collect();
    if let Some(unknown) = selectors.iter().find(|one| !snapshot.devices.iter().any(|device| one.names(device))) {
        let known: Vec<String> = snapshot.devices.iter().map(|device| device.id.to_string()).collect();
        let reason = format!("there is no device {:?} here: there are {}", unknown.0, known.join(", "));
        return Err(Refusal::new(StatusCode::NOT_FOUND, reason));
    }
    let is_meant = |device: &&Device| selectors.is_empty() || selectors.iter().any(|one| one.names(device));
    Ok(snapshot.devices.iter().filter(is_meant).collect())
}

pub fn processes(board: &Board, query: &Query, headers: &HeaderMap) -> Answered {
    #[derive(Serialize)]
    struct Processes<'a> {
        taken_at: Timestamp,
        total: usize,
        processes: Vec<&'a Process>,
    }
    let sample = board.sample();
    let snapshot = &sample.snapshot;
    let devices = query.list("device");
    let ids: Vec<&DeviceId> = named(snapshot, &devices)?.into_iter().map(|device| &device.id).collect();
    let pid: Option<u32> = query.number("pid", "process id")?;
    let (limit, offset) = query.page()?;
    let is =
        |wanted: Option<&str>, value: &Option<String>| wanted.is_none_or(|wanted| value.as_deref() == Some(wanted));
    let mut found: Vec<&Process> = snapshot.processes.iter().collect();
    found.retain(|process| {
        pid.is_none_or(|pid| process.pid == pid)
            && is(query.get("user"), &process.user)
            && is(query.get("name"), &process.name)
            && (devices.is_empty() || process.devices.iter().any(|held| ids.contains(&&held.id)))
    });
    let total = found.len();
    let processes = found.into_iter().skip(offset).take(limit.unwrap_or(MOST)).collect();
    json(&Processes { taken_at: snapshot.taken_at, total, processes }, tag(board, &sample), headers)
}

pub fn status(board: &Board, _: &Query, headers: &HeaderMap) -> Answered {
    let sample = board.sample();
    let status = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "started_at": board.started_at(),
        "now": now(),
        "sample_age_seconds": sample.age().as_secs_f64(),
        "interval_ms": board.interval_ms(),
        "history": board.with_history(|history| json!({ "oldest_ms": history.oldest(), "bytes": history.bytes() })),
        "clients": board.clients.load(Relaxed),
        "host": sample.snapshot.host,
    });
    json(&status, None, headers)
}

pub fn buffers(query: &Query) -> Result<Ask, Refusal> {
    let (limit, offset) = query.page()?;
    let order = match query.get("sort") {
        None | Some("bytes") => Order::Bytes,
        Some("age") => Order::Age,
        Some("device") => Order::Device,
        Some(other) => return Err(refuse(format!("sort={other:?} is none of bytes, age and device"))),
    };
    let kind = query.get("kind").map(str::to_owned);
    if let Some(kind) = kind.as_deref().filter(|kind| !KINDS.contains(kind)) {
        return Err(refuse(format!("kind={kind:?} is none of {}", KINDS.join(", "))));
    }
    let (pid, device) = (query.number("pid", "process id")?, query.get("device").map(str::to_owned));
    Ok(Ask::Buffers { pid, device, kind, order, limit, offset })
}

/// What memory is used for.
pub const KINDS: [&str; 6] = ["dram", "l1", "l1_small", "trace", "cb", "kernel"];

pub fn deaths(query: &Query) -> Result<Ask, Refusal> {
    let (limit, offset) = query.page()?;
    Ok(Ask::Deaths { limit, offset })
}
