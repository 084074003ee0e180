//! The answers that are made of what is published, and the questions to the service.

use super::answer::{HandlerResult, HttpRefusal, JSON, TextAnswer};
use super::query::{UrlQuery, refuse};
use super::routes::MOST;
use super::{Ask, json, json_text};
use crate::history::{self, Span};
use crate::metrics::MetricsFormat;
use crate::past::PastWanted;
use crate::published::{Published, Sample, now};
use crate::text::SharedText;
use hyper::StatusCode;
use hyper::header::{self, HeaderMap};
use ledger::wire::{BufferOrder, Wanted};
use model::figure::Field;
use model::figure::device::kept_in_history;
use model::filter::{Filter, FilterContext};
use model::topology::{LiveLink, Topology, live, of_machine};
use model::{Device, DeviceId, Process, Selector, Snapshot, Timestamp};
use serde::Serialize;
use serde_json::json;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const AN_HOUR: i64 = 3_600_000;
const LONGEST: i64 = 2 * 86_400_000;

/// Distinguishes the answers about one sample from those about another.
pub fn tag(published: &Published, sample: &Sample) -> Option<String> {
    Some(format!("{:x}-{}", published.run, sample.number))
}

/// The service answers, whatever the machine does.
pub fn healthy(_: &Published, _: &UrlQuery, headers: &HeaderMap) -> HandlerResult {
    fine(headers)
}

/// Samples are taken.
pub fn ready(published: &Published, _: &UrlQuery, headers: &HeaderMap) -> HandlerResult {
    let (age, interval) = (published.sample().age(), Duration::from_millis(published.interval_ms()));
    // A machine under load may well be a little late when samples follow each other quickly.
    if age > (10 * interval).max(Duration::from_secs(2)) {
        let reason =
            format!("the last sample is {:.1} s old, and there should be one every {interval:?}", age.as_secs_f64());
        return Err(HttpRefusal::new(StatusCode::SERVICE_UNAVAILABLE, reason));
    }
    fine(headers)
}

fn fine(headers: &HeaderMap) -> HandlerResult {
    let answer = TextAnswer { content_type: "text/plain; charset=utf-8", text: &SharedText::new("ok\n"), tag: None };
    Ok(answer.response(headers))
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
        "streams": published.changes.receiver_count(),
        "fleet": published.has_fleet(),
        "black_box": published.has_black_box(),
        "host": sample.snapshot.host,
    });
    json(&status, None, headers)
}

pub fn buffers(query: &UrlQuery) -> Result<Ask, HttpRefusal> {
    let (limit, offset) = query.page();
    let sort = match query.get("sort") {
        Some("age") => BufferOrder::Age,
        Some("device") => BufferOrder::Device,
        _ => BufferOrder::Bytes,
    };
    let [device, kind] = ["device", "kind"].map(|name| query.get(name).map(str::to_owned));
    let pid = query.number("pid").map(|pid| pid as u32);
    Ok(Ask::Buffers(Wanted { pid, device, kind, label: None, sort, offset, limit }))
}

pub fn deaths(query: &UrlQuery) -> Result<Ask, HttpRefusal> {
    let (limit, offset) = query.page();
    Ok(Ask::Deaths { limit, offset })
}

pub fn fleet(query: &UrlQuery) -> Result<Ask, HttpRefusal> {
    Ok(Ask::Fleet { host: query.get("host").map(str::to_owned) })
}

pub fn events(published: &Published, query: &UrlQuery, headers: &HeaderMap) -> HandlerResult {
    let (since, (limit, _)) = (query.number("since").unwrap_or(0) as u64, query.page());
    json_text(&SharedText::new(published.lock().events.since(since, limit.unwrap_or(MOST))), headers)
}

pub fn alerts(published: &Published, _: &UrlQuery, headers: &HeaderMap) -> HandlerResult {
    json_text(&SharedText::new(published.lock().alerts.json.clone()), headers)
}

pub fn topology(published: &Published, _: &UrlQuery, headers: &HeaderMap) -> HandlerResult {
    let sample = published.sample();
    json(&LiveTopology::of(&sample.snapshot.devices), tag(published, &sample), headers)
}

/// A topology, and which of its links are up where deep reads say so.
#[derive(Serialize)]
struct LiveTopology {
    #[serde(flatten)]
    topology: Topology,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    live_links: Vec<LiveLink>,
    /// `3 of 48 links down`
    #[serde(skip_serializing_if = "Option::is_none")]
    degraded: Option<String>,
}

impl LiveTopology {
    fn of(devices: &[Device]) -> LiveTopology {
        let topology = of_machine(devices);
        let live = live(&topology, devices);
        let degraded = live.degraded();
        let live_links = if live.is_known() { live.links } else { Vec::new() };
        LiveTopology { topology, live_links, degraded }
    }
}

pub fn history(published: &Published, query: &UrlQuery, headers: &HeaderMap) -> HandlerResult {
    let fields = fields(&query.list("series"))?;
    let sample = published.sample();
    let devices = named(&sample.snapshot, &query.list("device"))?;
    let wanted = span(query, now().0)?;
    // The values are copied under the lock, and written as JSON after it.
    let (span, all) = published.with_history(|history| {
        let span = history.fit(wanted, fields.len() * devices.len());
        let mut all = Vec::with_capacity(fields.len() * devices.len());
        for device in &devices {
            all.extend(fields.iter().map(|field| (&device.id, *field, history.series(device, *field, span))));
        }
        (span, all)
    });
    let mut text = format!(r#"{{"from_ms":{},"to_ms":{},"step_ms":{},"series":["#, span.from, span.to, span.step);
    for (at, (id, field, points)) in all.iter().enumerate() {
        history::write_series(if at > 0 { "," } else { "" }, id, *field, points, &mut text);
    }
    text.push_str("]}");
    Ok(TextAnswer { content_type: JSON, text: &SharedText::new(text), tag: None }.response(headers))
}

/// Values and events of any time that the black box has.
pub fn past(query: &UrlQuery) -> Result<Ask, HttpRefusal> {
    let fields = fields(&query.list("series"))?;
    let Span { from, to, step } = unlimited_span(query, now().0)?;
    let devices = query.list("device").into_iter().map(str::to_owned).collect();
    Ok(Ask::Past(PastWanted { fields, devices, from, to, step }))
}

/// The machine as it was.
pub fn past_snapshot(query: &UrlQuery) -> Result<Ask, HttpRefusal> {
    let at = query.number("at").ok_or_else(|| refuse("at=TIME is needed: milliseconds since 1970".into()))?;
    Ok(Ask::PastSnapshot { at: Timestamp(if at <= 0 { now().0.saturating_add(at) } else { at }) })
}

/// The fields that are meant, each once; all that are kept when none is named.
fn fields(names: &[&str]) -> Result<Vec<Field<Device>>, HttpRefusal> {
    let mut fields: Vec<Field<Device>> = Vec::new();
    for name in names {
        let field = kept_in_history().find(|field| field.name() == *name).ok_or_else(|| {
            let known: Vec<_> = kept_in_history().map(|field| field.name()).collect();
            refuse(format!("there is no series {name:?}: known are {}", known.join(", ")))
        })?;
        if !fields.contains(&field) {
            fields.push(field);
        }
    }
    Ok(if fields.is_empty() { kept_in_history().collect() } else { fields })
}

/// From when until when, at most two days: the history is of one.
fn span(query: &UrlQuery, now: i64) -> Result<Span, HttpRefusal> {
    let Span { from, to, step } = unlimited_span(query, now)?;
    Ok(Span { from: from.max(to.saturating_sub(LONGEST)), to, step: step.min(LONGEST) })
}

/// From when until when. A time that is not after 1970 is so long before now.
fn unlimited_span(query: &UrlQuery, now: i64) -> Result<Span, HttpRefusal> {
    let time = |name: &str, otherwise: i64| match query.number(name).unwrap_or(otherwise) {
        time if time <= 0 => now.saturating_add(time),
        time => time,
    };
    let to = time("to", 0).min(now.saturating_add(1000));
    let from = time("from", to.saturating_sub(AN_HOUR));
    if from >= to {
        return Err(refuse(format!("there is no time between from={from} and to={to}")));
    }
    Ok(Span { from, to, step: query.number("step").unwrap_or(1) })
}

#[cfg(test)]
mod tests {
    use super::super::routes::ROUTES;
    use super::*;

    #[test]
    fn times_are_since_1970_or_before_now() {
        let of = |text: &str| {
            let route = ROUTES.iter().find(|route| route.path == "/api/v1/history").unwrap();
            let query = UrlQuery::parse(text, route.parameters);
            query
                .and_then(|query| span(&query, 10_000_000))
                .map(|span| (span.from, span.to, span.step))
                .map_err(|refusal| refusal.reason)
        };
        assert_eq!(of(""), Ok((6_400_000, 10_000_000, 1)));
        assert_eq!(of("from=-60000"), Ok((9_940_000, 10_000_000, 1)));
        assert_eq!(of("from=5&to=7000&step=10"), Ok((5, 7000, 10)));
        assert_eq!(of("from=-9000&to=-3000"), Ok((9_991_000, 9_997_000, 1)));
        assert_eq!(of("from=9&to=9").unwrap_err(), "there is no time between from=9 and to=9");
        assert_eq!(of("step=0").unwrap_err(), "step=\"0\" is no whole number from 1 on");
        assert_eq!(of("to=x").unwrap_err(), "to=\"x\" is no whole number");
        assert!(of("from=-9223372036854775808&to=9223372036854775807&step=9223372036854775807").is_ok());
    }

    #[test]
    fn a_topology_says_which_links_are_up_where_deep_reads_know_it() {
        let n300 = |id| Device { board: Some("n300".into()), ..Device::new(id) };
        let mut devices = vec![n300(DeviceId::Local(0)), n300(DeviceId::Remote(0))];
        let text = |devices: &[Device]| serde_json::to_value(LiveTopology::of(devices)).unwrap();
        let without = text(&devices);
        assert!(without["live_links"].is_null() && without["degraded"].is_null() && without["links"].is_array());
        let eth_link_up = (0..16).map(|port| Some(port != 9)).collect();
        devices[0].deep = Some(Box::new(model::Deep { eth_link_up, ..model::Deep::default() }));
        let with = text(&devices);
        assert_eq!(with["degraded"], "1 of 2 links down");
        assert_eq!((&with["live_links"][0]["state"], &with["live_links"][1]["state"]), (&json!("up"), &json!("down")));
        let end = json!({ "id": "0", "index": 0, "port": 9, "up": false, "firmware_runs": null });
        assert_eq!(with["live_links"][1]["ends"][0], end);
    }
}
