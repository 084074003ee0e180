//! The thread that answers: sockets, limits, who may ask.

mod entry;
mod patient;
mod peers;
mod tls;

pub use crate::api::Asker;
pub use tls::{TlsError, certificate};

use crate::api::{self, Refusal, Sent};
use crate::board::Board;
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use patient::Patient;
use peers::{Peers, Place};
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

/// How it shall be served.
pub struct Options {
    /// Where to listen.
    pub listeners: Vec<std::net::TcpListener>,
    /// With which certificate; without one in the clear.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// What whoever asks has to know.
    pub token: Option<String>,
    /// Who takes questions to the service.
    pub ask: Asker,
}

/// A thread that answers. Dropped, it ends, and all connections with it.
pub struct Server {
    desk: Arc<Desk>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What all connections share.
struct Desk {
    board: Arc<Board>,
    ask: Asker,
    peers: Arc<Peers>,
    keys: RwLock<Keys>,
}

#[derive(Clone)]
struct Keys {
    tls: Option<TlsAcceptor>,
    token: Option<Arc<str>>,
}

/// How long it may take to say what is wanted, and how long a connection may rest.
const HEADERS_WITHIN: Duration = Duration::from_secs(10);
/// What a request may be long.
const LONGEST_REQUEST: usize = 16 << 10;
/// Header fields that it may have.
const MOST_HEADERS: usize = 64;

impl Server {
    /// Begins to answer.
    pub fn start(board: Arc<Board>, options: Options) -> io::Result<Server> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let desk = Arc::new(Desk {
            board,
            ask: options.ask,
            peers: Arc::new(Peers::default()),
            keys: RwLock::new(Keys::new(options.tls, options.token)),
        });
        let (end, ended) = oneshot::channel();
        let (shared, listeners) = (desk.clone(), options.listeners);
        let run = move || {
            runtime.block_on(async {
                for listener in listeners {
                    // A socket that does not listen any more is nothing that can be mended here.
                    if listener.set_nonblocking(true).is_ok()
                        && let Ok(listener) = TcpListener::from_std(listener)
                    {
                        tokio::spawn(accept(listener, shared.clone()));
                    }
                }
                let _ = ended.await;
            });
        };
        let thread = std::thread::Builder::new().name("ttmon-web".into()).spawn(run)?;
        Ok(Server { desk, end: Some(end), thread: Some(thread) })
    }

    /// Another certificate and another token, for all who call from now on.
    pub fn set_keys(&self, tls: Option<Arc<rustls::ServerConfig>>, token: Option<String>) {
        *self.desk.keys.write().unwrap_or_else(PoisonError::into_inner) = Keys::new(tls, token);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Keys {
    fn new(tls: Option<Arc<rustls::ServerConfig>>, token: Option<String>) -> Keys {
        Keys { tls: tls.map(TlsAcceptor::from), token: token.map(Into::into) }
    }
}

impl Desk {
    fn keys(&self) -> Keys {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn accept(listener: TcpListener, desk: Arc<Desk>) {
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            // No descriptors are left, most likely. They come back.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        match desk.peers.admit(peer.ip()) {
            Some(place) => drop(tokio::spawn(serve(stream, peer, place, desk.clone()))),
            None => send_away(&stream, desk.keys().tls.is_some()),
        }
    }
}

/// Tells in one breath that there is no room. Who speaks TLS would not understand.
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

async fn serve(stream: TcpStream, peer: SocketAddr, place: Place, desk: Arc<Desk>) {
    let Ok(local) = stream.local_addr() else { return };
    let _ = stream.set_nodelay(true);
    let keys = desk.keys();
    desk.board.clients.fetch_add(1, Relaxed);
    match keys.tls {
        None => answer(stream, (local, peer), &desk).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = tokio::time::timeout(HEADERS_WITHIN, tls.accept(stream)).await {
                answer(stream, (local, peer), &desk).await;
            }
        }
    }
    desk.board.clients.fetch_sub(1, Relaxed);
    drop(place);
}

async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin, ends: (SocketAddr, SocketAddr), desk: &Arc<Desk>) {
    let service = service_fn(|request| respond(request, ends, desk));
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .max_buf_size(LONGEST_REQUEST)
        .max_headers(MOST_HEADERS)
        .serve_connection(TokioIo::new(Patient::new(stream)), service)
        .await;
}

async fn respond(
    request: Request<Incoming>,
    ends: (SocketAddr, SocketAddr),
    desk: &Arc<Desk>,
) -> Result<Response<Sent>, Infallible> {
    desk.board.requests.fetch_add(1, Relaxed);
    let mut response = match consider(&request, ends, desk).await {
        Ok(response) => response,
        Err(refusal) => refusal.response(),
    };
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response.headers_mut().insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    Ok(response)
}

async fn consider(
    request: &Request<Incoming>,
    ends: (SocketAddr, SocketAddr),
    desk: &Arc<Desk>,
) -> Result<Response<Sent>, Refusal> {
    let (method, uri, headers) = (request.method(), request.uri(), request.headers());
    entry::judge(desk.keys().token.as_deref(), &desk.peers, ends, uri, headers)?;
    if !hyper::body::Body::is_end_stream(request.body()) {
        let refusal = Refusal::new(StatusCode::BAD_REQUEST, "a request here has no body: leave it out");
        return Err(refusal.with(header::CONNECTION, "close"));
    }
    api::answer(&desk.board, &desk.ask, method, uri, headers).await
}
