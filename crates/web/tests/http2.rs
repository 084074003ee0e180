//! HTTP/2, which a client of TLS may choose: the same answers, within the same limits.

use crate::support::{TestServer, certificate, event, machine, wait_for};
use h2::RecvStream;
use h2::client::{Builder, SendRequest};
use hyper::body::Bytes;
use hyper::{Request, Response};
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::net::TcpStream;

/// A server with TLS, and a certificate that clients trust.
struct TlsServer {
    served: TestServer,
    folder: TempDir,
    certificate: String,
    clients: tokio::runtime::Handle,
}

/// A connection on which any number of requests can be sent.
struct Connection {
    requests: SendRequest<Bytes>,
    is_closed: Arc<AtomicBool>,
}

impl TlsServer {
    fn start(token: Option<&str>) -> TlsServer {
        let folder = tempfile::tempdir().unwrap();
        let (config, certificate) = certificate(folder.path(), "one");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let clients = runtime.handle().clone();
        // Connections go on while a test does something else.
        std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
        TlsServer { served: TestServer::with(token, Some(config)), folder, certificate, clients }
    }

    fn connect(&self, settings: &Builder) -> Connection {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let mut config = builder.unwrap().with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let is_closed = Arc::new(AtomicBool::new(false));
        let requests = self.clients.block_on(async {
            let stream = TcpStream::connect(self.served.address).await.unwrap();
            let stream = connector.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap();
            let (requests, connection) = settings.handshake(stream).await.unwrap();
            let is_closed = is_closed.clone();
            tokio::spawn(async move {
                let _ = connection.await;
                is_closed.store(true, Relaxed);
            });
            requests
        });
        Connection { requests, is_closed }
    }

    fn ask(
        &self,
        connection: &Connection,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> (u16, Response<()>, String) {
        self.clients.block_on(async {
            let answer = connection.send(method, path, headers).await.unwrap();
            let (head, body) = answer.into_parts();
            let text = whole(body).await;
            (head.status.as_u16(), Response::from_parts(head, ()), text)
        })
    }
}

impl Connection {
    async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<Response<RecvStream>, h2::Error> {
        let mut request = Request::builder().method(method).uri(format!("https://localhost{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut requests = self.requests.clone().ready().await?;
        requests.send_request(request.body(()).unwrap(), true)?.0.await
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Relaxed)
    }
}

async fn whole(mut body: RecvStream) -> String {
    let mut bytes = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece.unwrap();
        body.flow_control().release_capacity(piece.len()).unwrap();
        bytes.extend_from_slice(&piece);
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn answers_are_those_of_http_1() {
    let server = TlsServer::start(Some("t0ken"));
    let name = "x".repeat(1000);
    server.served.published.publish(machine(2, &[name.as_str(); 300]), Instant::now(), vec![]);
    let connection = server.connect(&Builder::new());
    let token = ("authorization", "Bearer t0ken");
    let (status, head, text) = server.ask(&connection, "GET", "/api/v1/snapshot", &[token]);
    assert_eq!((status, head.headers()["content-type"].to_str().unwrap()), (200, "application/json"));
    assert_eq!(head.headers()["content-length"].to_str().unwrap(), text.len().to_string());
    assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap()["processes"].as_array().unwrap().len(), 300);
    let (status, head, rest) = server.ask(&connection, "HEAD", "/api/v1/snapshot", &[token]);
    assert_eq!((status, rest.as_str()), (200, ""));
    assert_eq!(head.headers()["content-length"].to_str().unwrap(), text.len().to_string());
    let tag = head.headers()["etag"].to_str().unwrap();
    assert_eq!(server.ask(&connection, "GET", "/api/v1/snapshot", &[token, ("if-none-match", tag)]).0, 304);
    assert_eq!(server.ask(&connection, "GET", "/api/v1/snapshot", &[]).0, 401);
    assert_eq!(server.ask(&connection, "DELETE", "/api/v1/snapshot", &[token]).0, 405);
    assert!(server.ask(&connection, "GET", "/", &[]).1.headers().contains_key("content-security-policy"));
    let many: Vec<(String, &str)> = (0..65).map(|n| (format!("x-{n}"), "y")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    assert_eq!(server.ask(&connection, "GET", "/healthz", &many).0, 431);
    let long = "y".repeat(20_000);
    assert_eq!(server.ask(&connection, "GET", "/healthz", &[("x", &long)]).0, 431);
}

#[test]
fn a_stream_brings_each_sample_beside_other_requests() {
    let server = TlsServer::start(None);
    let connection = server.connect(&Builder::new());
    let mut stream = server.clients.block_on(connection.send("GET", "/api/v1/stream", &[])).unwrap().into_body();
    let mut text = String::new();
    let mut until = |wanted: &str| {
        while !text.contains(wanted) {
            let piece = server.clients.block_on(stream.data()).unwrap().unwrap();
            stream.flow_control().release_capacity(piece.len()).unwrap();
            text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    };
    for number in 1..=20 {
        until(&format!("id: {number}\n"));
        assert_eq!(server.ask(&connection, "GET", "/healthz", &[]).0, 200);
        server.served.published.publish(machine(number, &[]), Instant::now(), vec![event("news")]);
    }
    drop(stream);
    let status = || server.ask(&connection, "GET", "/api/v1/status", &[]).2;
    wait_for(|| status().contains(r#""streams":0"#), status);
}

#[test]
fn requests_at_once_have_as_many_places_as_connections() {
    let server = TlsServer::start(None);
    let connections: Vec<Connection> = (0..9).map(|_| server.connect(&Builder::new())).collect();
    server.ask(&connections[0], "GET", "/healthz", &[]);
    assert_eq!(connections[0].requests.current_max_send_streams(), 32);
    let mut streams = Vec::new();
    for connection in &connections[..8] {
        for _ in 0..31 {
            let answer = server.clients.block_on(connection.send("GET", "/api/v1/stream", &[])).unwrap();
            streams.push(answer);
        }
    }
    let refused = streams.iter().filter(|answer| answer.status() == 503).count();
    // An address has 256 places; nine connections have one each.
    assert_eq!(refused, 8 * 31 + 9 - 256);
    assert!(streams.iter().rev().take(refused).all(|answer| answer.headers()["retry-after"] == "5"));
    drop(streams);
    wait_for(|| server.ask(&connections[8], "GET", "/healthz", &[]).0 == 200, || "the places are still taken".into());
}

#[test]
fn who_guesses_waits_also_when_a_guess_is_given_up() {
    let server = TlsServer::start(Some("s3cret-token"));
    let connection = server.connect(&Builder::new());
    let guess = ("authorization", "Bearer x");
    for _ in 0..5 {
        assert_eq!(server.ask(&connection, "GET", "/metrics", &[guess]).0, 401);
    }
    let begun = Instant::now();
    for _ in 0..2 {
        server.clients.block_on(async {
            let guesses = [guess];
            let given_up = connection.send("GET", "/metrics", &guesses);
            assert!(tokio::time::timeout(Duration::from_millis(100), given_up).await.is_err());
        });
    }
    assert_eq!(server.ask(&connection, "GET", "/metrics", &[guess]).0, 429);
    assert!(begun.elapsed() >= Duration::from_millis(1900), "{:?}", begun.elapsed());
    let other = server.connect(&Builder::new());
    assert_eq!(server.ask(&other, "GET", "/metrics", &[("authorization", "Bearer s3cret-token")]).0, 200);
}

#[test]
#[ignore = "long"]
fn who_asks_nothing_or_takes_nothing_is_shown_out() {
    let server = TlsServer::start(None);
    let [idle, reader] = [0, 1].map(|_| server.connect(&Builder::new()));
    let deaf = server.connect(Builder::new().initial_window_size(0));
    let answer = server.clients.block_on(deaf.send("GET", "/api/v1/snapshot", &[])).unwrap();
    let mut stream = server.clients.block_on(reader.send("GET", "/api/v1/stream", &[])).unwrap().into_body();
    let mut read_on = || {
        server.served.published.publish(machine(2, &[]), Instant::now(), vec![]);
        let piece = server.clients.block_on(stream.data()).unwrap().unwrap();
        stream.flow_control().release_capacity(piece.len()).unwrap();
    };
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(40) && !(idle.is_closed() && deaf.is_closed()) {
        read_on();
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(idle.is_closed() && deaf.is_closed(), "idle: {}, deaf: {}", idle.is_closed(), deaf.is_closed());
    assert!(begun.elapsed() > Duration::from_secs(25), "a client has half a minute to take what is ready");
    drop(answer);
    read_on();
    assert!(!reader.is_closed());
}

#[test]
fn curl_chooses_http_2() {
    let server = TlsServer::start(None);
    let certificate = server.folder.path().join("one.pem");
    for (choice, version) in [("--http2", "2"), ("--http1.1", "1.1")] {
        let address = format!("https://localhost:{}/api/v1/snapshot", server.served.address.port());
        let mut curl = Command::new("curl");
        curl.args([choice, "-sS", "--noproxy", "*", "-w", "\n%{http_version}", "--cacert"])
            .arg(&certificate)
            .arg(&address);
        let Ok(output) = curl.output() else {
            assert!(std::env::var_os("CI").is_none(), "NOT RUN: curl_chooses_http_2, because curl is missing");
            eprintln!("NOT RUN: curl_chooses_http_2, because curl is missing");
            return;
        };
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.starts_with(r#"{"schema":1"#), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(text.lines().last(), Some(version));
    }
}
