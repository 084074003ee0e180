//! The thread that answers: sockets, limits, authorization.

mod auth;
mod http2;
mod peers;
mod tls;
mod write_timeout;

pub use crate::api::Asker;
pub use tls::{TlsError, certificate};

use crate::api::{self, AnswerBody, HttpRefusal};
use crate::published::Published;
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use peers::{ConnectionSlot, Peers};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio_rustls::TlsAcceptor;
use write_timeout::WriteTimeout;

/// Settings of the HTTP server.
pub struct ServerOptions {
    /// The certificate; without one, plain HTTP.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Token that clients have to send; without one, all are answered.
    pub token: Option<String>,
    /// Takes queries that only the service can answer.
    pub ask: Asker,
}

/// A thread that answers requests. Dropping it ends the thread and all connections.
pub struct WebServer {
    shared: Arc<ServerShared>,
    runtime: tokio::runtime::Handle,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct ServerShared {
    published: Arc<Published>,
    ask: Asker,
    peers: Arc<Peers>,
    keys: watch::Sender<Credentials>,
}

#[derive(Clone)]
struct Credentials {
    tls: Option<TlsAcceptor>,
    token: Option<Arc<str>>,
}

/// How long a request may take to arrive, and how long a connection may be idle.
const HEADERS_WITHIN: Duration = Duration::from_secs(10);
/// How long a client that has guessed too often waits for each answer.
const GUESS_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_REQUEST: usize = 16 << 10;
const MOST_HEADERS: usize = 64;
const TOO_MANY: &str = "too many connections are open: close some, or try again later";

impl WebServer {
    /// Starts the thread. Addresses to listen on are added later.
    pub fn start(published: Arc<Published>, options: ServerOptions) -> io::Result<WebServer> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let shared = Arc::new(ServerShared {
            published,
            ask: options.ask,
            peers: Arc::new(Peers::default()),
            keys: watch::Sender::new(Credentials::new(options.tls, options.token)),
        });
        let (end, ended) = oneshot::channel();
        let handle = runtime.handle().clone();
        let run = move || drop(runtime.block_on(ended));
        let thread = std::thread::Builder::new().name("ttmon-web".into()).spawn(run)?;
        Ok(WebServer { shared, runtime: handle, end: Some(end), thread: Some(thread) })
    }

    /// Answers at one more address.
    pub fn listen(&self, listener: std::net::TcpListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let _inside = self.runtime.enter();
        drop(tokio::spawn(accept(TcpListener::from_std(listener)?, self.shared.clone())));
        Ok(())
    }

    /// Replaces certificate and token, for all connections from now on. Streams of another token end.
    pub fn set_keys(&self, tls: Option<Arc<rustls::ServerConfig>>, token: Option<String>) {
        self.shared.keys.send_replace(Credentials::new(tls, token));
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Credentials {
    fn new(tls: Option<Arc<rustls::ServerConfig>>, token: Option<String>) -> Credentials {
        Credentials { tls: tls.map(TlsAcceptor::from), token: token.map(Into::into) }
    }
}

impl ServerShared {
    fn keys(&self) -> Credentials {
        self.keys.borrow().clone()
    }
}

async fn accept(listener: TcpListener, shared: Arc<ServerShared>) {
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            // No descriptors are left, most likely. They come back.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        match shared.peers.admit(peer.ip()) {
            Some(place) => drop(tokio::spawn(serve(stream, peer, place, shared.clone()))),
            None => send_away(&stream, shared.keys().tls.is_some()),
        }
    }
}

/// Answers at once that there are too many connections. A TLS client could not read it.
fn send_away(stream: &TcpStream, is_tls: bool) {
    let why = format!("{{\"error\":{{\"status\":503,\"reason\":\"{TOO_MANY}\"}}}}\n");
    let length = why.len();
    if !is_tls {
        let text = format!(
            "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
             retry-after: 5\r\nconnection: close\r\n\r\n{why}"
        );
        let _ = stream.try_write(text.as_bytes());
    }
}

async fn serve(stream: TcpStream, peer: SocketAddr, place: ConnectionSlot, shared: Arc<ServerShared>) {
    let Ok(local) = stream.local_addr() else { return };
    let _ = stream.set_nodelay(true);
    let keys = shared.keys();
    shared.published.clients.fetch_add(1, Relaxed);
    match keys.tls {
        None => answer(stream, (local, peer), &shared).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = tokio::time::timeout(HEADERS_WITHIN, tls.accept(stream)).await {
                match stream.get_ref().1.alpn_protocol() {
                    Some(tls::HTTP2) => http2::answer(stream, (local, peer), &shared).await,
                    _ => answer(stream, (local, peer), &shared).await,
                }
            }
        }
    }
    shared.published.clients.fetch_sub(1, Relaxed);
    drop(place);
}

async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    ends: (SocketAddr, SocketAddr),
    shared: &Arc<ServerShared>,
) {
    let service = service_fn(|request| async move {
        let response = respond(request, ends, shared).await;
        if response.status() == StatusCode::TOO_MANY_REQUESTS {
            tokio::time::sleep(GUESS_PAUSE).await;
        }
        Ok::<_, Infallible>(response)
    });
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .max_buf_size(LONGEST_REQUEST)
        .max_headers(MOST_HEADERS)
        .serve_connection(TokioIo::new(WriteTimeout::new(stream)), service)
        .await;
}

async fn respond(
    request: Request<Incoming>,
    ends: (SocketAddr, SocketAddr),
    shared: &Arc<ServerShared>,
) -> Response<AnswerBody> {
    shared.published.requests.fetch_add(1, Relaxed);
    let considered = async {
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        if headers.get_all(header::HOST).iter().count() > 1 {
            return Err(HttpRefusal::new(StatusCode::BAD_REQUEST, "a request names one host: send one Host header"));
        }
        let token = shared.keys().token;
        auth::authorize(token.as_deref(), &shared.peers, ends, uri, headers)?;
        if !hyper::body::Body::is_end_stream(request.body()) {
            let refusal = HttpRefusal::new(StatusCode::BAD_REQUEST, "a request here has no body: leave it out");
            return Err(refusal.with(header::CONNECTION, "close"));
        }
        let mut keys = shared.keys.subscribe();
        let revoked = async move { drop(keys.wait_for(|keys| keys.token != token).await) };
        api::answer(&shared.published, &shared.ask, method, uri, headers, revoked).await
    };
    let mut response = considered.await.unwrap_or_else(HttpRefusal::response);
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response.headers_mut().insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
