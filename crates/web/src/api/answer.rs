//! Answers: what is sent, how it may be kept, and in which form.

use crate::text::SharedText;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// What is sent: a whole text, or one piece after the other.
pub enum AnswerBody {
    Whole(Option<Bytes>),
    Stream(mpsc::Receiver<Bytes>),
}

/// A refused request, and why.
#[derive(Debug)]
pub struct HttpRefusal {
    pub status: StatusCode,
    pub reason: String,
    pub header: Option<(HeaderName, HeaderValue)>,
}

pub type HandlerResult = Result<Response<AnswerBody>, HttpRefusal>;

pub struct TextAnswer<'a> {
    pub content_type: &'static str,
    pub text: &'a SharedText,
    /// Distinguishes it from an earlier one. Absent where it must not be cached.
    pub tag: Option<String>,
}

impl HttpRefusal {
    pub fn new(status: StatusCode, reason: impl Into<String>) -> HttpRefusal {
        HttpRefusal { status, reason: reason.into(), header: None }
    }

    pub fn with(mut self, name: HeaderName, value: &str) -> HttpRefusal {
        self.header = HeaderValue::from_str(value).ok().map(|value| (name, value));
        self
    }

    pub fn response(self) -> Response<AnswerBody> {
        let reason = serde_json::Value::String(self.reason);
        let body = format!("{{\"error\":{{\"status\":{},\"reason\":{reason}}}}}\n", self.status.as_u16());
        let mut response = Response::new(AnswerBody::Whole(Some(body.into())));
        *response.status_mut() = self.status;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response.headers_mut().extend(self.header.map(|(name, value)| (Some(name), value)));
        response
    }
}

pub const JSON: &str = "application/json";

impl TextAnswer<'_> {
    /// In the encoding that the client takes, or only that it has not changed.
    pub fn response(self, asked: &HeaderMap) -> Response<AnswerBody> {
        let mut response = Response::new(AnswerBody::Whole(None));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.insert(header::VARY, HeaderValue::from_static("accept, accept-encoding"));
        let tag = self.tag.and_then(|tag| HeaderValue::from_str(&format!("W/\"{tag}\"")).ok());
        // A cached answer is validated each time.
        let keep = if tag.is_some() { "no-cache" } else { "no-store" };
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(keep));
        if let Some(tag) = tag {
            let is_known = is_among(&tag, asked);
            headers.insert(header::ETAG, tag);
            if is_known {
                headers.remove(header::CONTENT_TYPE);
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                return response;
            }
        }
        let packed = if takes_gzip(asked) { self.text.packed() } else { None };
        if packed.is_some() {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        *response.body_mut() = AnswerBody::Whole(Some(packed.unwrap_or_else(|| self.text.plain())));
        response
    }
}

/// Whether the client has it already.
fn is_among(tag: &HeaderValue, asked: &HeaderMap) -> bool {
    let strong = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let ours = tag.to_str().map(strong).unwrap_or_default();
    let theirs = asked.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    theirs.flat_map(|value| value.split(',')).any(|one| one.trim() == "*" || strong(one) == ours)
}

/// Whether the client takes gzip. `gzip;q=0` means that it does not.
fn takes_gzip(asked: &HeaderMap) -> bool {
    let all = asked.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(',')).any(|one| {
        let mut parts = one.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let weight = parts.find_map(|part| part.strip_prefix("q=")).and_then(|weight| weight.parse::<f32>().ok());
        (name.eq_ignore_ascii_case("gzip") || name == "*") && weight != Some(0.0)
    })
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            AnswerBody::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            AnswerBody::Stream(pieces) => {
                pieces.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, AnswerBody::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            AnswerBody::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            AnswerBody::Stream(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn gzip_is_sent_to_whoever_takes_it() {
        let takes = |value| takes_gzip(&asked(header::ACCEPT_ENCODING, value));
        assert!(takes("gzip") && takes("br;q=1.0, gzip;q=0.8") && takes("*") && takes("GZIP"));
        assert!(!takes("gzip;q=0") && !takes("br") && !takes("") && !takes("gzip;q=0.0, br"));
    }

    #[test]
    fn what_the_asker_has_is_not_sent_again() {
        let has = |value| is_among(&HeaderValue::from_static("W/\"7-1\""), &asked(header::IF_NONE_MATCH, value));
        assert!(has("W/\"7-1\"") && has("\"7-1\"") && has("\"x\", W/\"7-1\"") && has("*"));
        assert!(!has("\"7-2\"") && !has("7-1") && !has(""));
    }
}
