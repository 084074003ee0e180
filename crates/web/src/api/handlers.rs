//! The answers that are made of the last sample.

use super::answer::{HandlerResult, HttpRefusal, JSON, TextAnswer};
use super::query::{UrlQuery, refuse};
use super::routes::MOST;
use super::{Ask, json};
use crate::metrics::MetricsFormat;
use crate::published::{Published, Sample, now};
use crate::text::SharedText;
use hyper::StatusCode;
use hyper::header::{self, HeaderMap};
use ledger::wire::{BufferOrder, Wanted};
use model::filter::{Filter, FilterContext};
use model::{Device, DeviceId, Process, Selector, Snapshot, Timestamp};
use serde::Serialize;
use serde_json::json;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Distinguishes the answers about one sample from those about another.
pub fn tag(published: &Published, sample: &Sample) -> Option<String> {
    Some(format!("{:x}-{}", published.run, sample.number))
}

pub fn health(published: &Published, _: &UrlQuery, headers: &HeaderMap) -> HandlerResult {
    let (age, interval) = (published.sample().age(), Duration::from_millis(published.interval_ms()));
    // A machine under load may well be a little late when samples follow each other quickly.
    if age > (10 * interval).max(Duration::from_secs(2)) {
        let reason =
            format!("the last sample is {:.1} s old, and there should be one every {interval:?}", age.as_secs_f64());
        return Err(HttpRefusal::new(StatusCode::SERVICE_UNAVAILABLE, reason));
    }
    Ok(TextAnswer { content_type: "text/plain; charset=utf-8", text: &SharedText::new("ok\n"), tag: None }
        .response(headers))
}

pub fn metrics(published: &Published, _: &UrlQuery, headers: &HeaderMap) -> HandlerResult {
    let accept: Vec<&str> = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    let format = MetricsFormat::wanted(&accept.join(","));
    Ok(published.with_metrics(format, |_, text| {
        TextAnswer { content_type: format.content_type(), text, tag: None }.response(headers)
    }))
}

pub fn snapshot(published: &Published, _: &UrlQuery, headers: &HeaderMap) -> HandlerResult {
    let sample = published.sample();
    Ok(TextAnswer { content_type: JSON, text: sample.json(), tag: tag(published, &sample) }.response(headers))
}

pub fn devices(published: &Published, query: &UrlQuery, headers: &HeaderMap) -> HandlerResult {
    #[derive(Serialize)]
    struct DevicesReply<'a> {
        taken_at: Timestamp,
        devices: Vec<&'a Device>,
    }
    let sample = published.sample();
    let devices = named(&sample.snapshot, &query.list("id"))?;
    json(&DevicesReply { taken_at: sample.snapshot.taken_at, devices }, tag(published, &sample), headers)
}

/// The devices that are meant; all when none is named.
pub fn named<'a>(snapshot: &'a Snapshot, names: &[&str]) -> Result<Vec<&'a Device>, HttpRefusal> {
    let selectors: Vec<Selector> = names.iter().map(|name| Selector((*name).into())).collect();
    if let Some(unknown) = selectors.iter().find(|one| !snapshot.devices.iter().any(|device| one.names(device))) {
        let known: Vec<String> = snapshot.devices.iter().map(|device| device.id.to_string()).collect();
        let reason = format!("there is no device {:?} here: there are {}", unknown.0, known.join(", "));
        return Err(HttpRefusal::new(StatusCode::NOT_FOUND, reason));
    }
    let is_meant = |device: &&Device| selectors.is_empty() || selectors.iter().any(|one| one.names(device));
    Ok(snapshot.devices.iter().filter(is_meant).collect())
}

pub fn processes(published: &Published, query: &UrlQuery, headers: &HeaderMap) -> HandlerResult {
    #[derive(Serialize)]
    struct ProcessesReply<'a> {
        taken_at: Timestamp,
        total: usize,
        processes: Vec<&'a Process>,
    }
    let sample = published.sample();
    let snapshot = &sample.snapshot;
    let devices = query.list("device");
    let ids: Vec<&DeviceId> = named(snapshot, &devices)?.into_iter().map(|device| &device.id).collect();
    let (pid, (limit, offset)) = (query.number("pid"), query.page());
    let filter = filter(query.get("filter").unwrap_or_default())?;
    let context = FilterContext { snapshot, growth: None };
    let is =
        |wanted: Option<&str>, value: &Option<String>| wanted.is_none_or(|wanted| value.as_deref() == Some(wanted));
    let mut found: Vec<&Process> = snapshot.processes.iter().collect();
    found.retain(|process| {
        pid.is_none_or(|pid| pid == i64::from(process.pid))
            && is(query.get("user"), &process.user)
            && is(query.get("name"), &process.name)
            && (devices.is_empty() || process.devices.iter().any(|held| ids.contains(&&held.id)))
            && filter.matches(process, &context)
    });
    let total = found.len();
    let processes = found.into_iter().skip(offset).take(limit.unwrap_or(MOST)).collect();
    json(&ProcessesReply { taken_at: snapshot.taken_at, total, processes }, tag(published, &sample), headers)
}

/// The filter of a request. Each of its terms is compared with each process, so its length is limited.
fn filter(text: &str) -> Result<Filter, HttpRefusal> {
    let length = text.chars().count();
    if length > LONGEST_FILTER {
        return Err(refuse(format!("a filter of {length} characters is too long: {LONGEST_FILTER} are allowed")));
    }
    Filter::parse(text).map_err(|error| refuse(error.to_string()))
}

const LONGEST_FILTER: usize = 500;

pub fn status(published: &Published, _: &UrlQuery, headers: &HeaderMap) -> HandlerResult {
    let sample = published.sample();
    let status = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "started_at": published.started_at,
        "now": now(),
        "sample_age_seconds": sample.age().as_secs_f64(),
        "interval_ms": published.interval_ms(),
        "history": published.with_history(|history| json!({ "oldest_ms": history.oldest(), "bytes": history.bytes() })),
        "clients": published.clients.load(Relaxed),
        "host": sample.snapshot.host,
    });
    json(&status, None, headers)
}

pub fn buffers(query: &UrlQuery) -> Ask {
    let (limit, offset) = query.page();
    let sort = match query.get("sort") {
        Some("age") => BufferOrder::Age,
        Some("device") => BufferOrder::Device,
        _ => BufferOrder::Bytes,
    };
    let [device, kind] = ["device", "kind"].map(|name| query.get(name).map(str::to_owned));
    let pid = query.number("pid").map(|pid| pid as u32);
    Ask::Buffers(Wanted { pid, device, kind, label: None, sort, offset, limit })
}

pub fn deaths(query: &UrlQuery) -> Ask {
    let (limit, offset) = query.page();
    Ask::Deaths { limit, offset }
}
