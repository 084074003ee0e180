//! Every address of the API: one row each. The OpenAPI document is made of the same table.

use super::answer::{HandlerResult, HttpRefusal, JSON};
use super::query::UrlQuery;
use super::{Ask, figures, handlers, openapi};
use crate::published::Published;
use hyper::header::HeaderMap;
use model::MemoryKind;

pub struct Route {
    pub path: &'static str,
    /// What is served there, in a sentence.
    pub summary: &'static str,
    pub parameters: &'static [Parameter],
    pub handler: Handler,
    pub content_type: &'static str,
    /// The name of the form of a JSON answer in `schemas.json`.
    pub schema: Option<&'static str>,
}

/// What may follow the question mark.
pub struct Parameter {
    pub name: &'static str,
    pub help: &'static str,
    pub param_type: ParamType,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamType {
    Text,
    /// Several, with commas between them.
    List,
    OneOf(&'static [&'static str]),
    /// Whole numbers from one to the other.
    Number(i64, i64),
}

pub enum Handler {
    /// Answered from what is published.
    Published(fn(&Published, &UrlQuery, &HeaderMap) -> HandlerResult),
    /// Answered by the service.
    Asked(fn(&UrlQuery) -> Result<Ask, HttpRefusal>),
    /// Answered with a stream.
    Streamed,
}

const fn text(path: &'static str, summary: &'static str, content_type: &'static str, handler: Handler) -> Route {
    Route { path, summary, parameters: &[], handler, content_type, schema: None }
}

const fn json(path: &'static str, summary: &'static str, schema: &'static str, handler: Handler) -> Route {
    Route { schema: Some(schema), ..text(path, summary, JSON, handler) }
}

pub const fn parameter(name: &'static str, param_type: ParamType, help: &'static str) -> Parameter {
    Parameter { name, help, param_type }
}

/// The most entries of one answer.
pub const MOST: usize = 10_000;

const PID: Parameter = parameter("pid", ParamType::Number(0, u32::MAX as i64), "Only of this process.");
const DEVICES: Parameter = parameter("device", ParamType::List, "Only of these devices: ids, PCI addresses, serials.");
pub const LIMIT: Parameter = parameter("limit", ParamType::Number(1, MOST as i64), "At most so many.");
const OFFSET: Parameter = parameter("offset", ParamType::Number(0, i64::MAX), "Skip so many.");
const SINCE: Parameter = parameter("since", ParamType::Number(0, i64::MAX), "Only events after this number.");
const TIME: ParamType = ParamType::Number(i64::MIN, i64::MAX);
const STEP: ParamType = ParamType::Number(1, i64::MAX);
const ORDERS: ParamType = ParamType::OneOf(&["bytes", "age", "device"]);
const FILTER: &str = "Only those that match: the filter of `ttmon top`, at most 500 characters. `growth` is not known here and matches nothing.";
const FROM: &str = "Milliseconds since 1970, or before now when negative; an hour before `to` by default.";
const TO: &str = "Milliseconds since 1970, or before now when negative or zero; now by default.";

/// What orchestrators ask. It says nothing about the machine.
pub const PROBES: [&str; 3] = ["/healthz", "/-/ready", "/-/healthy"];

pub const ROUTES: &[Route] = &[
    text(PROBES[0], "Whether samples are taken.", "text/plain", Handler::Published(handlers::ready)),
    text(
        PROBES[1],
        "Whether samples are taken, under the name that Prometheus has.",
        "text/plain",
        Handler::Published(handlers::ready),
    ),
    text(PROBES[2], "Whether the service answers.", "text/plain", Handler::Published(handlers::healthy)),
    text("/metrics", "For Prometheus.", "text/plain", Handler::Published(handlers::metrics)),
    json(
        "/api/v1/snapshot",
        "Everything that is known of the machine, as `ttmon smi --json` has it.",
        "Snapshot",
        Handler::Published(handlers::snapshot),
    ),
    Route {
        parameters: &[parameter("id", ParamType::List, "Only these: ids, PCI addresses, serials.")],
        ..json("/api/v1/devices", "The devices.", "Devices", Handler::Published(handlers::devices))
    },
    Route {
        parameters: &[
            parameter("filter", ParamType::Text, FILTER),
            DEVICES,
            parameter("user", ParamType::Text, "Only of this user."),
            parameter("name", ParamType::Text, "Only those of this name."),
            PID,
            LIMIT,
            OFFSET,
        ],
        ..json(
            "/api/v1/processes",
            "The processes that use devices.",
            "Processes",
            Handler::Published(handlers::processes),
        )
    },
    Route {
        parameters: &[
            PID,
            parameter("device", ParamType::Text, "Only on this device, by its id."),
            parameter("kind", ParamType::OneOf(&MemoryKind::NAMES), "Only of this kind."),
            parameter("sort", ORDERS, "The largest first, the oldest first, or by device."),
            LIMIT,
            OFFSET,
        ],
        ..json(
            "/api/v1/buffers",
            "Live buffers of processes that run with the agent or report.",
            "Buffers",
            Handler::Asked(handlers::buffers),
        )
    },
    Route {
        parameters: &[LIMIT, OFFSET],
        ..json(
            "/api/v1/deaths",
            "Exited processes and what they held, the latest first.",
            "Deaths",
            Handler::Asked(handlers::deaths),
        )
    },
    Route {
        parameters: &[SINCE, LIMIT],
        ..json("/api/v1/events", "Events, the oldest first.", "Events", Handler::Published(handlers::events))
    },
    Route {
        parameters: &[parameter("host", ParamType::Text, "Only this machine, with its last snapshot and alerts.")],
        ..json(
            "/api/v1/fleet",
            "The other machines that the service watches, the worst first.",
            "Fleet",
            Handler::Asked(handlers::fleet),
        )
    },
    json("/api/v1/alerts", "Alerts: pending, firing and resolved.", "Alerts", Handler::Published(handlers::alerts)),
    json(
        "/api/v1/topology",
        "Where chips are, and the links between them.",
        "Topology",
        Handler::Published(handlers::topology),
    ),
    Route {
        parameters: &[
            parameter("series", ParamType::List, "Only these, by the names that devices have for them."),
            DEVICES,
            parameter("from", TIME, FROM),
            parameter("to", TIME, TO),
            parameter("step", STEP, "Milliseconds from one point to the next, at the least."),
        ],
        ..json("/api/v1/history", "Values of the last day.", "History", Handler::Published(handlers::history))
    },
    Route {
        parameters: &[
            parameter("series", ParamType::List, "Only these, by the names that devices have for them."),
            parameter("device", ParamType::List, "Only of these devices, by their ids."),
            parameter("from", TIME, FROM),
            parameter("to", TIME, TO),
            parameter("step", STEP, "Milliseconds from one point to the next, at the least."),
        ],
        ..json(
            "/api/v1/past",
            "Values and events of any time that the black box of the service has, one sample for each step.",
            "Past",
            Handler::Asked(handlers::past),
        )
    },
    Route {
        parameters: &[parameter("at", TIME, "Milliseconds since 1970, or before now when negative.")],
        ..json(
            "/api/v1/past/snapshot",
            "The machine as it was, from the black box of the service.",
            "PastSnapshot",
            Handler::Asked(handlers::past_snapshot),
        )
    },
    json(
        "/api/v1/figures",
        "The tables of figures: names, paths, titles, units, limits, and how values are judged.",
        "Figures",
        Handler::Published(figures::answer),
    ),
    json("/api/v1/status", "The service itself.", "Status", Handler::Published(handlers::status)),
    Route {
        parameters: &[SINCE],
        ..text(
            "/api/v1/stream",
            "Every sample as it comes, events and alerts: server-sent events.",
            "text/event-stream",
            Handler::Streamed,
        )
    },
    json("/api/v1/openapi.json", "This document.", "OpenApi", Handler::Published(openapi::answer)),
];
