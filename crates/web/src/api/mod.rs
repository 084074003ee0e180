//! The HTTP API: what is served at which address.

mod answer;
mod figures;
mod handlers;
mod openapi;
mod query;
mod routes;
mod schema;
mod stream;

pub use answer::{AnswerBody, HttpRefusal};
#[cfg(test)]
pub use schema::schema_of;

use crate::page;
use crate::past::PastWanted;
use crate::published::Published;
use crate::text::SharedText;
use answer::{HandlerResult, JSON, TextAnswer};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Response, StatusCode, Uri};
use ledger::wire::Wanted;
use model::Timestamp;
use query::UrlQuery;
use routes::Handler;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// A query that only the service itself can answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// Live buffers.
    Buffers(Wanted),
    /// Exited processes, the latest first.
    Deaths {
        /// The most that are wanted.
        limit: Option<usize>,
        /// The number that is skipped.
        offset: usize,
    },
    /// Other machines; with a name only that one, with its snapshot.
    Fleet {
        /// Name of one machine.
        host: Option<String>,
    },
    /// Values and events, from the black box.
    Past(PastWanted),
    /// The machine as it was.
    PastSnapshot {
        /// The moment.
        at: Timestamp,
    },
}

/// A query to the service, and where its answer goes: JSON.
#[derive(Debug)]
pub struct Question {
    /// The query.
    pub ask: Ask,
    /// Takes the answer.
    pub answer: oneshot::Sender<Vec<u8>>,
}

/// Takes queries to the service. False when it has too many already.
pub type Asker = Arc<dyn Fn(Question) -> bool + Send + Sync>;

/// How long the service may take to answer.
const SERVICE_TIMEOUT: Duration = Duration::from_secs(5);
const LONGEST_ADDRESS: usize = 4096;

/// Whether this is served without a token: it contains nothing about the machine.
pub fn is_open(path: &str) -> bool {
    routes::PROBES.contains(&path) || page::ASSETS.iter().any(|asset| asset.path == path)
}

/// A stream ends when `revoked` does.
pub async fn answer(
    published: &Arc<Published>,
    ask: &Asker,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    revoked: impl Future<Output = ()> + Send + 'static,
) -> HandlerResult {
    check(method, uri)?;
    if let Some(asset) = page::ASSETS.iter().find(|asset| asset.path == uri.path()) {
        return Ok(of_the_page(asset, headers));
    }
    let Some(route) = routes::ROUTES.iter().find(|route| route.path == uri.path()) else {
        let reason = "nothing is served at this address: see /api/v1/openapi.json for what is";
        return Err(HttpRefusal::new(StatusCode::NOT_FOUND, reason));
    };
    let query = UrlQuery::parse(uri.query().unwrap_or_default(), route.parameters)?;
    match route.handler {
        Handler::Published(answer) => answer(published, &query, headers),
        Handler::Asked(question) => json_text(&SharedText::new(put(ask, question(&query)?).await?), headers),
        Handler::Streamed => {
            let since = query.number("since").map(|since| since as u64);
            let mut response = Response::new(AnswerBody::Stream(stream::begin(published.clone(), since, revoked)));
            let fields = response.headers_mut();
            fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
            fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
            Ok(response)
        }
    }
}

fn check(method: &Method, uri: &Uri) -> Result<(), HttpRefusal> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        let reason = format!("{method} is not answered here: GET and HEAD are");
        return Err(HttpRefusal::new(StatusCode::METHOD_NOT_ALLOWED, reason).with(header::ALLOW, "GET, HEAD"));
    }
    let length = uri.path().len() + uri.query().map_or(0, str::len);
    if length > LONGEST_ADDRESS {
        let reason = format!("an address of {length} bytes is too long: {LONGEST_ADDRESS} are allowed");
        return Err(HttpRefusal::new(StatusCode::URI_TOO_LONG, reason));
    }
    Ok(())
}

/// Sends a query to the service.
async fn put(asker: &Asker, ask: Ask) -> Result<Vec<u8>, HttpRefusal> {
    let late = |reason: &str| HttpRefusal::new(StatusCode::SERVICE_UNAVAILABLE, reason).with(header::RETRY_AFTER, "1");
    let (answer, answered) = oneshot::channel();
    if !asker(Question { ask, answer }) {
        return Err(late("too many requests are waiting for the service: try again in a second"));
    }
    match tokio::time::timeout(SERVICE_TIMEOUT, answered).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(_)) => Err(late("the service did not answer: try again in a second")),
        Err(_) => Err(late("the service did not answer within five seconds: try again later")),
    }
}

fn of_the_page(asset: &page::Asset, headers: &HeaderMap) -> Response<AnswerBody> {
    let text = SharedText::of_packed(asset.packed);
    let answer = TextAnswer { content_type: asset.content_type, tag: Some(tag_of(&text)), text: &text };
    let mut response = answer.response(headers);
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(page::POLICY));
    response
}

/// JSON that is written for this request alone.
fn json(value: &impl Serialize, tag: Option<String>, headers: &HeaderMap) -> HandlerResult {
    let bytes = serde_json::to_vec(value).map_err(|error| {
        HttpRefusal::new(StatusCode::INTERNAL_SERVER_ERROR, format!("the answer could not be written: {error}"))
    })?;
    Ok(TextAnswer { content_type: JSON, text: &SharedText::new(bytes), tag }.response(headers))
}

/// JSON that is written already.
fn json_text(text: &SharedText, headers: &HeaderMap) -> HandlerResult {
    Ok(TextAnswer { content_type: JSON, tag: Some(tag_of(text)), text }.response(headers))
}

fn tag_of(text: &SharedText) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    text.plain().hash(&mut hasher);
    format!("{:x}", hasher.finish())
}
