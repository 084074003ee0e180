//! Every address of the API: one row each. The OpenAPI document is made of the same table.

use super::answer::{HandlerResult, HttpRefusal};
use super::query::UrlQuery;
use super::{Ask, figures, handlers, openapi, past};
use crate::published::Published;
use hyper::header::HeaderMap;

/// An address.
pub struct Route {
    pub path: &'static str,
    /// What is served there, in a sentence.
    pub summary: &'static str,
    pub parameters: &'static [Parameter],
    pub handler: Handler,
    /// The name of the answer's form in `schemas.json`, or the type of a text.
    pub form: AnswerForm,
}

/// What may follow the question mark.
pub struct Parameter {
    pub name: &'static str,
    pub help: &'static str,
    pub param_type: ParamType,
}

/// What a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamType {
    Text,
    /// Several, with commas between them.
    List,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// Whole numbers from one to the other.
    Number(i64, i64),
}

/// What an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerForm {
    Json(&'static str),
    Text(&'static str),
}

/// What answers a request.
pub enum Handler {
    /// Answered from what is published.
    Published(PublishedHandler),
    /// Answered by the service.
    Asked(fn(&UrlQuery) -> Result<Ask, HttpRefusal>),
    /// Answered with a stream.
    Streamed,
}

type PublishedHandler = fn(&Published, &UrlQuery, &HeaderMap) -> HandlerResult;

/// JSON of what is published.
const fn json(
    path: &'static str,
    summary: &'static str,
    parameters: &'static [Parameter],
    schema: &'static str,
    handler: PublishedHandler,
) -> Route {
    row(path, summary, parameters, AnswerForm::Json(schema), Handler::Published(handler))
}

const fn row(
    path: &'static str,
    summary: &'static str,
    parameters: &'static [Parameter],
    form: AnswerForm,
    handler: Handler,
) -> Route {
    Route { path, summary, parameters, handler, form }
}

const fn parameter(name: &'static str, param_type: ParamType, help: &'static str) -> Parameter {
    Parameter { name, help, param_type }
}

const PID: Parameter = parameter("pid", ParamType::Number(0, u32::MAX as i64), "Only of this process.");
const DEVICES: Parameter = parameter("device", ParamType::List, "Only of these devices: ids, PCI addresses, serials.");
const LIMIT: Parameter = parameter("limit", ParamType::Number(1, 10_000), "At most so many.");
const OFFSET: Parameter = parameter("offset", ParamType::Number(0, i64::MAX), "Skip so many.");
const SINCE: Parameter = parameter("since", ParamType::Number(0, i64::MAX), "Only events after this number.");
const TIME: ParamType = ParamType::Number(i64::MIN, i64::MAX);

/// All of them.
pub const ROUTES: &[Route] = &[
    row(
        "/healthz",
        "Whether samples are taken.",
        &[],
        AnswerForm::Text("text/plain"),
        Handler::Published(handlers::health),
    ),
    row("/metrics", "For Prometheus.", &[], AnswerForm::Text("text/plain"), Handler::Published(handlers::metrics)),
    json(
        "/api/v1/snapshot",
        "Everything that is known of the machine, as `ttmon smi --json` has it.",
        &[],
        "Snapshot",
        handlers::snapshot,
    ),
    json(
        "/api/v1/devices",
        "The devices.",
        &[parameter("id", ParamType::List, "Only these: ids, PCI addresses, serials.")],
        "Devices",
        handlers::devices,
    ),
    json(
        "/api/v1/processes",
        "The processes that use devices.",
        &[
            parameter(
                "filter",
                ParamType::Text,
                "Only those that match: the filter of `ttmon top`, at most 500 characters. `growth` is not known here and matches nothing.",
            ),
            DEVICES,
            parameter("user", ParamType::Text, "Only of this user."),
            parameter("name", ParamType::Text, "Only those of this name."),
            PID,
            LIMIT,
            OFFSET,
        ],
        "Processes",
        handlers::processes,
    ),
    row(
        "/api/v1/buffers",
        "Live buffers of processes that run with the agent or report.",
        &[
            PID,
            parameter("device", ParamType::Text, "Only on this device, by its id."),
            parameter("kind", ParamType::OneOf(&handlers::KINDS), "Only of this kind."),
            parameter(
                "sort",
                ParamType::OneOf(&["bytes", "age", "device"]),
                "The largest first, the oldest first, or by device.",
            ),
            LIMIT,
            OFFSET,
        ],
        AnswerForm::Json("Buffers"),
        Handler::Asked(handlers::buffers),
    ),
    row(
        "/api/v1/deaths",
        "Exited processes and what they held, the latest first.",
        &[LIMIT, OFFSET],
        AnswerForm::Json("Deaths"),
        Handler::Asked(handlers::deaths),
    ),
    json("/api/v1/events", "Events, the oldest first.", &[SINCE, LIMIT], "Events", past::events),
    json("/api/v1/alerts", "Alerts: pending, firing and resolved.", &[], "Alerts", past::alerts),
    json("/api/v1/topology", "Where chips are, and the links between them.", &[], "Topology", past::topology),
    json(
        "/api/v1/history",
        "Values of the last day.",
        &[
            parameter("series", ParamType::List, "Only these, by the names that devices have for them."),
            DEVICES,
            parameter(
                "from",
                TIME,
                "Milliseconds since 1970, or before now when negative; an hour before `to` by default.",
            ),
            parameter("to", TIME, "Milliseconds since 1970, or before now when negative or zero; now by default."),
            parameter("step", ParamType::Number(1, i64::MAX), "Milliseconds from one point to the next, at the least."),
        ],
        "History",
        past::history,
    ),
    json(
        "/api/v1/figures",
        "The tables of figures: names, paths, titles, units, limits, and how values are judged.",
        &[],
        "Figures",
        figures::answer,
    ),
    json("/api/v1/status", "The service itself.", &[], "Status", handlers::status),
    row(
        "/api/v1/stream",
        "Every sample as it comes, events and alerts: server-sent events.",
        &[SINCE],
        AnswerForm::Text("text/event-stream"),
        Handler::Streamed,
    ),
    json("/api/v1/openapi.json", "This document.", &[], "OpenApi", openapi::answer),
];

impl Route {
    /// The names of its parameters.
    pub fn names(&self) -> Vec<&'static str> {
        self.parameters.iter().map(|parameter| parameter.name).collect()
    }
}
