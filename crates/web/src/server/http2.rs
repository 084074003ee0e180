//! Connections of HTTP/2: many requests at once, within the limits of those that come one after another.

use super::peers::ConnectionSlot;
use super::write_timeout::{TIMEOUT, WriteTimeout};
use super::{GUESS_PAUSE, HEADERS_WITHIN, LONGEST_REQUEST, MOST_HEADERS, ServerShared, TOO_MANY, respond};
use crate::api::{AnswerBody, HttpRefusal};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, interval, sleep_until};

/// Requests at once on a connection. A browser sends those of all its tabs on one.
const MOST_REQUESTS: u32 = 32;
/// Bytes of an answer that are handed over at once. The next follow when the client takes them.
const PIECE: usize = 16 << 10;
/// Room for what a client sends beside requests. They have no bodies.
const WINDOW: u32 = 65_535;
/// How often a connection is checked.
const CHECK: Duration = Duration::from_secs(2);

/// The requests of a connection.
#[derive(Default)]
struct Requests {
    open: Mutex<Vec<Weak<OpenRequest>>>,
    /// The end of the pause after a wrong token, also when the request was given up.
    pause: Mutex<Option<Instant>>,
}

/// A request, from its arrival until the client has its answer.
struct OpenRequest {
    /// Since when the client has not taken what is ready.
    untaken: Mutex<Option<Instant>>,
    /// Counts as a connection does.
    _place: ConnectionSlot,
}

/// An answer in pieces, which notes whether the client takes them.
struct TakenBody {
    body: AnswerBody,
    rest: Bytes,
    request: Option<Arc<OpenRequest>>,
}

pub async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    (local, peer): (SocketAddr, SocketAddr),
    shared: &Arc<ServerShared>,
) {
    let requests = Arc::new(Requests::default());
    let service = service_fn(|request| consider(request, (local, peer), shared.clone(), requests.clone()));
    let connection = http2::Builder::new(TokioExecutor::new())
        .max_concurrent_streams(MOST_REQUESTS)
        .max_header_list_size(LONGEST_REQUEST as u32)
        .initial_connection_window_size(WINDOW)
        .initial_stream_window_size(WINDOW)
        .max_send_buf_size(PIECE)
        .serve_connection(TokioIo::new(WriteTimeout::new(stream)), service);
    let mut connection = pin!(connection);
    let mut checks = interval(CHECK);
    let mut last_used = Instant::now();
    loop {
        tokio::select! {
            _ = connection.as_mut() => return,
            now = checks.tick() => {
                let open = requests.open();
                if open.iter().any(|request| request.is_untaken_for(TIMEOUT, now)) {
                    return;
                }
                if !open.is_empty() {
                    last_used = now;
                }
                let idle = now.duration_since(last_used);
                if idle >= HEADERS_WITHIN {
                    connection.as_mut().graceful_shutdown();
                }
                // It had the time to say farewell.
                if idle >= 2 * HEADERS_WITHIN {
                    return;
                }
            }
        }
    }
}

async fn consider(
    request: Request<Incoming>,
    ends: (SocketAddr, SocketAddr),
    shared: Arc<ServerShared>,
    requests: Arc<Requests>,
) -> Result<Response<TakenBody>, Infallible> {
    let whole =
        |response: Response<AnswerBody>| response.map(|body| TakenBody { body, rest: Bytes::new(), request: None });
    let Some(place) = shared.peers.admit(ends.1.ip()) else {
        let refusal = HttpRefusal::new(StatusCode::SERVICE_UNAVAILABLE, TOO_MANY);
        return Ok(whole(refusal.with(header::RETRY_AFTER, "5").response()));
    };
    let open = requests.begin(place);
    if request.headers().len() > MOST_HEADERS {
        let reason = format!("a request has at most {MOST_HEADERS} header fields");
        return Ok(whole(HttpRefusal::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, reason).response()));
    }
    while let Some(until) = requests.paused_until() {
        sleep_until(until).await;
    }
    let is_head = request.method() == Method::HEAD;
    let mut response = respond(request, ends, &shared).await;
    if response.status() == StatusCode::TOO_MANY_REQUESTS {
        sleep_until(requests.pause()).await;
    }
    if is_head {
        if let Some(length) = response.body().size_hint().exact() {
            response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
        }
        *response.body_mut() = AnswerBody::Whole(None);
    }
    open.note_untaken(Some(Instant::now()));
    Ok(response.map(|body| TakenBody { body, rest: Bytes::new(), request: Some(open) }))
}

impl Requests {
    fn begin(&self, place: ConnectionSlot) -> Arc<OpenRequest> {
        let request = Arc::new(OpenRequest { untaken: Mutex::default(), _place: place });
        lock(&self.open).push(Arc::downgrade(&request));
        request
    }

    fn open(&self) -> Vec<Arc<OpenRequest>> {
        let mut known = lock(&self.open);
        known.retain(|request| request.strong_count() > 0);
        known.iter().filter_map(Weak::upgrade).collect()
    }

    fn pause(&self) -> Instant {
        let end = Instant::now() + GUESS_PAUSE;
        *lock(&self.pause) = Some(end);
        end
    }

    fn paused_until(&self) -> Option<Instant> {
        lock(&self.pause).filter(|end| *end > Instant::now())
    }
}

impl OpenRequest {
    fn note_untaken(&self, since: Option<Instant>) {
        *lock(&self.untaken) = since;
    }

    fn is_untaken_for(&self, time: Duration, now: Instant) -> bool {
        lock(&self.untaken).is_some_and(|since| now.duration_since(since) >= time)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Body for TakenBody {
    type Data = Bytes;
    type Error = Infallible;

    /// Called when the client has room: it has taken the piece before.
    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        let since = |since| this.request.iter().for_each(|request| request.note_untaken(since));
        if this.rest.is_empty() {
            since(None);
            match Pin::new(&mut this.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => this.rest = frame.into_data().unwrap_or_default(),
                other => return other,
            }
        }
        since(Some(Instant::now()));
        let piece = this.rest.split_to(this.rest.len().min(PIECE));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
