//! Every address of the API: one row each. The OpenAPI document is made of the same table.

use super::Ask;
use super::answer::{Refusal, Sent};
use super::figures;
use super::query::Query;
use crate::board::Board;
use hyper::Response;
use hyper::header::HeaderMap;

/// An address.
pub struct Route {
    pub path: &'static str,
    pub parameters: &'static [Parameter],
    pub what: What,
}

/// What may stand behind the question mark.
pub struct Parameter {
    pub name: &'static str,
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

const fn named(name: &'static str) -> Parameter {
    Parameter { name }
}

/// All of them.
pub const ROUTES: &[Route] = &[
    Route { path: "/healthz", parameters: &[], what: What::Told(figures::health) },
    Route { path: "/metrics", parameters: &[], what: What::Told(figures::metrics) },
    Route { path: "/api/v1/snapshot", parameters: &[], what: What::Told(figures::snapshot) },
    Route { path: "/api/v1/devices", parameters: &[named("id")], what: What::Told(figures::devices) },
    Route {
        path: "/api/v1/processes",
        parameters: &[named("device"), named("user"), named("name"), named("pid"), named("limit"), named("offset")],
        what: What::Told(figures::processes),
    },
    Route { path: "/api/v1/status", parameters: &[], what: What::Told(figures::status) },
    Route { path: "/api/v1/stream", parameters: &[], what: What::Streamed },
    Route {
        path: "/api/v1/buffers",
        parameters: &[named("pid"), named("device"), named("kind"), named("sort"), named("limit"), named("offset")],
        what: What::Asked(figures::buffers),
    },
    Route {
        path: "/api/v1/deaths",
        parameters: &[named("limit"), named("offset")],
        what: What::Asked(figures::deaths),
    },
];

impl Route {
    /// The names of its parameters.
    pub fn names(&self) -> Vec<&'static str> {
        self.parameters.iter().map(|parameter| parameter.name).collect()
    }
}
