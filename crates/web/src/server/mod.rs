//! The thread that answers: sockets, limits, authorization.

mod auth;
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
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use write_timeout::WriteTimeout;

pub struct ServerOptions {
    pub listeners: Vec<std::net::TcpListener>,
    /// The certificate; without one, plain HTTP.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    pub token: Option<String>,
    pub ask: Asker,
}

/// A thread that answers requests. Dropping it ends the thread and all connections.
pub struct WebServer {
    shared: Arc<ServerShared>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct ServerShared {
    published: Arc<Published>,
    ask: Asker,
    peers: Arc<Peers>,
    keys: RwLock<Credentials>,
}

#[derive(Clone)]
struct Credentials {
    tls: Option<TlsAcceptor>,
    token: Option<Arc<str>>,
}

/// How long a request may take to arrive, and how long a connection may be idle.
const HEADERS_WITHIN: Duration = Duration::from_secs(10);
const LONGEST_REQUEST: usize = 16 << 10;
const MOST_HEADERS: usize = 64;

impl WebServer {
    pub fn start(published: Arc<Published>, options: ServerOptions) -> io::Result<WebServer> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let shared = Arc::new(ServerShared {
            published,
            ask: options.ask,
            peers: Arc::new(Peers::default()),
            keys: RwLock::new(Credentials::new(options.tls, options.token)),
        });
        let (end, ended) = oneshot::channel();
        let (of_thread, listeners) = (shared.clone(), options.listeners);
        let run = move || {
            runtime.block_on(async {
                for listener in listeners {
                    // A socket that no longer listens cannot be repaired here.
                    if listener.set_nonblocking(true).is_ok()
                        && let Ok(listener) = TcpListener::from_std(listener)
                    {
                        tokio::spawn(accept(listener, of_thread.clone()));
                    }
                }
                let _ = ended.await;
            });
        };
        let thread = std::thread::Builder::new().name("ttmon-web".into()).spawn(run)?;
        Ok(WebServer { shared, end: Some(end), thread: Some(thread) })
    }

    /// Replaces certificate and token, for all connections from now on.
    pub fn set_keys(&self, tls: Option<Arc<rustls::ServerConfig>>, token: Option<String>) {
        *self.shared.keys.write().unwrap_or_else(PoisonError::into_inner) = Credentials::new(tls, token);
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
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
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
    const WHY: &str =
        "{\"error\":{\"status\":503,\"reason\":\"too many connections are open: close some, or try again later\"}}\n";
    let length = WHY.len();
    if !is_tls {
        let text = format!(
            "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
             retry-after: 5\r\nconnection: close\r\n\r\n{WHY}"
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
                answer(stream, (local, peer), &shared).await;
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
    let service = service_fn(|request| respond(request, ends, shared));
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
) -> Result<Response<AnswerBody>, Infallible> {
    shared.published.requests.fetch_add(1, Relaxed);
    let considered = async {
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        auth::authorize(shared.keys().token.as_deref(), &shared.peers, ends, uri, headers)?;
        if !hyper::body::Body::is_end_stream(request.body()) {
            let refusal = HttpRefusal::new(StatusCode::BAD_REQUEST, "a request here has no body: leave it out");
            return Err(refusal.with(header::CONNECTION, "close"));
        }
        api::answer(&shared.published, &shared.ask, method, uri, headers).await
    };
    let mut response = considered.await.unwrap_or_else(HttpRefusal::response);
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response.headers_mut().insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    Ok(response)
}
