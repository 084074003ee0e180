//! Answers about history, events, alerts and topology.

use super::answer::{HandlerResult, HttpRefusal, JSON, TextAnswer};
use super::handlers::{named, tag};
use super::query::{MOST, UrlQuery, refuse};
use super::{json, json_text};
use crate::history::{self, Span};
use crate::published::{Published, now};
use crate::text::SharedText;
use hyper::header::HeaderMap;
use model::Device;
use model::figure::Field;
use model::figure::device::kept_in_history;
use std::fmt::Write;

/// The default time span.
const AN_HOUR: i64 = 3_600_000;
/// The longest span.
const LONGEST: i64 = 2 * 86_400_000;

pub fn events(published: &Published, query: &UrlQuery, headers: &HeaderMap) -> HandlerResult {
    let since = query.count("since")?.unwrap_or(0);
    let (limit, _) = query.page()?;
    json_text(&SharedText::new(published.events(since, limit.unwrap_or(MOST))), headers)
}

pub fn alerts(published: &Published, _: &UrlQuery, headers: &HeaderMap) -> HandlerResult {
    json_text(&SharedText::new(published.alerts().json), headers)
}

pub fn topology(published: &Published, _: &UrlQuery, headers: &HeaderMap) -> HandlerResult {
    let sample = published.sample();
    json(&model::topology::of_machine(&sample.snapshot.devices), tag(published, &sample), headers)
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
        let (name, unit) = (field.name(), field.figure.unit.symbol());
        let comma = if at > 0 { "," } else { "" };
        let id = serde_json::Value::String(id.to_string());
        let _ = write!(text, r#"{comma}{{"device":{id},"name":"{name}","unit":"{unit}","points":"#);
        history::write(*field, points, &mut text);
        text.push('}');
    }
    text.push_str("]}");
    Ok(TextAnswer { content_type: JSON, text: &SharedText::new(text), tag: None }.response(headers))
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

/// From when until when. A time that is not after 1970 is so long before now.
fn span(query: &UrlQuery, now: i64) -> Result<Span, HttpRefusal> {
    let time = |name: &str, otherwise: i64| -> Result<i64, HttpRefusal> {
        let time = query.number::<i64>(name, "time in milliseconds")?.unwrap_or(otherwise);
        Ok(if time <= 0 { now.saturating_add(time) } else { time })
    };
    let to = time("to", 0)?.min(now.saturating_add(1000));
    let from = time("from", to.saturating_sub(AN_HOUR))?;
    let step = query.number::<i64>("step", "time in milliseconds")?.unwrap_or(1);
    if step < 1 {
        return Err(refuse(format!("step={step} is no time: it has a millisecond at least")));
    }
    if from >= to {
        return Err(refuse(format!("there is no time between from={from} and to={to}")));
    }
    Ok(Span { from: from.max(to.saturating_sub(LONGEST)), to, step: step.min(LONGEST) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_since_1970_or_before_now() {
        let of = |text: &str| {
            let query = UrlQuery::parse(text, &["from", "to", "step"]).unwrap();
            span(&query, 10_000_000).map(|span| (span.from, span.to, span.step)).map_err(|refusal| refusal.reason)
        };
        assert_eq!(of(""), Ok((6_400_000, 10_000_000, 1)));
        assert_eq!(of("from=-60000"), Ok((9_940_000, 10_000_000, 1)));
        assert_eq!(of("from=5&to=7000&step=10"), Ok((5, 7000, 10)));
        assert_eq!(of("from=-9000&to=-3000"), Ok((9_991_000, 9_997_000, 1)));
        assert_eq!(of("from=9&to=9").unwrap_err(), "there is no time between from=9 and to=9");
        assert_eq!(of("step=0").unwrap_err(), "step=0 is no time: it has a millisecond at least");
        assert_eq!(of("to=x").unwrap_err(), "to=\"x\" is no time in milliseconds");
        assert!(of("from=-9223372036854775808&to=9223372036854775807&step=9223372036854775807").is_ok());
    }
}
