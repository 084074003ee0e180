//! Every address of the API: one row each. The OpenAPI document is made of the same table.

use super::answer::{Refusal, Sent};
use super::query::Query;
use super::{Ask, figures, openapi, past};
use crate::board::Board;
use hyper::Response;
use hyper::header::HeaderMap;

/// An address.
pub struct Route {
    pub path: &'static str,
    /// What is told there, in a sentence.
    pub summary: &'static str,
    pub parameters: &'static [Parameter],
    pub what: What,
    /// The name of the answer's form in `schemas.json`, or the type of a text.
    pub form: Form,
}

/// What may stand behind the question mark.
pub struct Parameter {
    pub name: &'static str,
    pub help: &'static str,
    pub takes: Takes,
}

/// What a parameter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    Text,
    /// Several, with commas between them.
    List,
    /// One of these.
    Of(&'static [&'static str]),
    /// Whole numbers from one to the other.
    Number(i64, i64),
}

/// What an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Json(&'static str),
    Text(&'static str),
}

/// What is done with a question.
pub enum What {
    /// Answered from what is published.
    Told(fn(&Board, &Query, &HeaderMap) -> Result<Response<Sent>, Refusal>),
    /// Put to the service.
    Asked(fn(&Query) -> Result<Ask, Refusal>),
    /// Answered again and again.
    Streamed,
}

const fn row(
    path: &'static str,
    summary: &'static str,
    parameters: &'static [Parameter],
    form: Form,
    what: What,
) -> Route {
    Route { path, summary, parameters, what, form }
}

const fn of(name: &'static str, takes: Takes, help: &'static str) -> Parameter {
    Parameter { name, help, takes }
}

const PID: Parameter = of("pid", Takes::Number(0, u32::MAX as i64), "Only of this process.");
const DEVICES: Parameter = of("device", Takes::List, "Only of these devices: ids, PCI addresses, serials.");
const LIMIT: Parameter = of("limit", Takes::Number(1, 10_000), "Not more than so many.");
const OFFSET: Parameter = of("offset", Takes::Number(0, i64::MAX), "Leaving out so many.");
const SINCE: Parameter = of("since", Takes::Number(0, i64::MAX), "Only events behind this number.");
const TIME: Takes = Takes::Number(i64::MIN, i64::MAX);

/// All of them.
pub const ROUTES: &[Route] = &[
    row("/healthz", "Whether samples are taken.", &[], Form::Text("text/plain"), What::Told(figures::health)),
    row("/metrics", "For Prometheus.", &[], Form::Text("text/plain"), What::Told(figures::metrics)),
    row(
        "/api/v1/snapshot",
        "Everything that is known of the machine, as `ttmon smi --json` has it.",
        &[],
        Form::Json("Snapshot"),
        What::Told(figures::snapshot),
    ),
    row(
        "/api/v1/devices",
        "The devices.",
        &[of("id", Takes::List, "Only these: ids, PCI addresses, serials.")],
        Form::Json("Devices"),
        What::Told(figures::devices),
    ),
    row(
        "/api/v1/processes",
        "The processes that use devices.",
        &[
            DEVICES,
            of("user", Takes::Text, "Only of this user."),
            of("name", Takes::Text, "Only those of this name."),
            PID,
            LIMIT,
            OFFSET,
        ],
        Form::Json("Processes"),
        What::Told(figures::processes),
    ),
    row(
        "/api/v1/buffers",
        "Live buffers of processes that keep a book or report.",
        &[
            PID,
            of("device", Takes::Text, "Only on this device, by its id."),
            of("kind", Takes::Of(&figures::KINDS), "Only of this kind."),
            of("sort", Takes::Of(&["bytes", "age", "device"]), "The largest first, the oldest first, or by device."),
            LIMIT,
            OFFSET,
        ],
        Form::Json("Buffers"),
        What::Asked(figures::buffers),
    ),
    row(
        "/api/v1/deaths",
        "Processes that have died, and what they held; the latest first.",
        &[LIMIT, OFFSET],
        Form::Json("Deaths"),
        What::Asked(figures::deaths),
    ),
    row(
        "/api/v1/events",
        "What has happened, the oldest first.",
        &[SINCE, LIMIT],
        Form::Json("Events"),
        What::Told(past::events),
    ),
    row("/api/v1/alerts", "Alerts, as rules have it.", &[], Form::Json("Alerts"), What::Told(past::alerts)),
    row(
        "/api/v1/topology",
        "Where chips are, and the links between them.",
        &[],
        Form::Json("Topology"),
        What::Told(past::topology),
    ),
    row(
        "/api/v1/history",
        "What was measured in the last day.",
        &[
            of("series", Takes::List, "Only these, by the names that devices have for them."),
            DEVICES,
            of("from", TIME, "Milliseconds since 1970, or before now when negative; an hour before `to` by default."),
            of("to", TIME, "Milliseconds since 1970, or before now when negative or zero; now by default."),
            of("step", Takes::Number(1, i64::MAX), "Milliseconds from one point to the next, at the least."),
        ],
        Form::Json("History"),
        What::Told(past::history),
    ),
    row("/api/v1/status", "The service itself.", &[], Form::Json("Status"), What::Told(figures::status)),
    row(
        "/api/v1/stream",
        "Every sample as it comes, events and alerts: server-sent events.",
        &[SINCE],
        Form::Text("text/event-stream"),
        What::Streamed,
    ),
    row("/api/v1/openapi.json", "This document.", &[], Form::Json("OpenApi"), What::Told(openapi::answer)),
];

impl Route {
    /// The names of its parameters.
    pub fn names(&self) -> Vec<&'static str> {
        self.parameters.iter().map(|parameter| parameter.name).collect()
    }
}
