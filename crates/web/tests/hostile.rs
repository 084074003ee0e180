//! Callers who mean no good, or are no good at it. Everybody else is answered meanwhile, and nothing of them stays.

use crate::support::{TestServer, TextAnswer, event, machine, read_answer, wait_for};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Whether the other side has closed the connection.
fn is_closed(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    !matches!(stream.read_to_end(&mut rest), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
}

/// A connection from another address of this machine.
fn from(address: &str, to: SocketAddr) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(address.parse().unwrap(), 0)).unwrap();
        socket.connect(to).await.unwrap()
    });
    let stream = stream.into_std().unwrap();
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

#[test]
#[ignore = "long"]
fn who_never_ends_a_request_is_shown_out() {
    let served = TestServer::start();
    let mut slow: Vec<TcpStream> = (0..20).map(|_| served.connect()).collect();
    for stream in &mut slow {
        stream.write_all(b"GET /api/v1/snapshot HTTP/1.1\r\nhost: localhost\r\n").unwrap();
    }
    let mut silent = served.connect();
    wait_for(
        || {
            // A header now and then does not prolong it.
            let gone = slow.iter_mut().filter_map(|stream| stream.write_all(b"x: y\r\n").err()).count();
            assert_eq!(served.get("/api/v1/alerts").status, 200, "others are answered");
            std::thread::sleep(Duration::from_millis(200));
            gone == slow.len()
        },
        || "they are still there".into(),
    );
    assert!(is_closed(&mut silent), "and so is one that says nothing");
    wait_for(|| served.get("/api/v1/status").json()["clients"] == 1, || served.get("/api/v1/status").text().into());
}

#[test]
fn what_is_too_long_is_refused() {
    let served = TestServer::start();
    let long = |length: usize| format!("/api/v1/devices?id={}", "0,".repeat(length / 2));
    let refused = served.get(&long(5000));
    assert_eq!(
        (refused.status, refused.reason().as_str()),
        (414, "an address of 5018 bytes is too long: 4096 are allowed")
    );
    assert!(matches!(served.get(&long(60_000)).status, 414 | 431));
    assert_eq!(served.ask("GET", "/", &[&format!("x: {}", "y".repeat(60_000))]).status, 431);
    let many: Vec<String> = (0..200).map(|n| format!("x-{n}: y")).collect();
    assert_eq!(served.ask("GET", "/", &many.iter().map(String::as_str).collect::<Vec<_>>()).status, 431);
    let mut endless = served.connect();
    let mut sent = 0;
    while sent < 10 << 20 && endless.write_all(&[b'x'; 4096]).is_ok() {
        sent += 4096;
    }
    assert!(sent < 10 << 20, "nobody takes {sent} bytes without an end");
    assert_eq!(served.get("/healthz").status, 200);
}

#[test]
fn no_path_leads_out_of_the_api() {
    let served = TestServer::start();
    for path in [
        "/../etc/passwd",
        "/api/v1/../../etc/passwd",
        "/api/v1/%2e%2e/%2e%2e/etc/passwd",
        "/api/v1/snapshot%00",
        "/api/v1/snapshot/",
        "//api/v1/snapshot",
        "/api//v1/snapshot",
        "/api/v1/Snapshot",
        "/api/v1/%73napshot",
        "/assets/..%2f..%2fetc/passwd",
        "/api/v1/snapshot;x=y",
        "/\u{e9}",
    ] {
        let answer = served.get(path);
        assert!(matches!(answer.status, 400 | 404), "{path}: {answer:?}");
    }
    assert_eq!(served.get(&format!("http://{}/api/v1/snapshot", served.address)).status, 200, "as a proxy would ask");
    assert_eq!(served.get("http://evil.example/api/v1/snapshot").status, 421);
    assert!(matches!(served.ask("CONNECT", "evil.example:443", &[]).status, 405 | 421));
}

#[test]
fn what_is_no_http_is_no_request() {
    let served = TestServer::start();
    for garbage in [
        &b"\0\0\0\0\r\n\r\n"[..],
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\r\n\r\n\r\n",
    ] {
        let mut stream = served.connect();
        stream.write_all(garbage).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let answer = read_answer(&mut stream, false);
        assert!(answer.as_ref().is_none_or(|answer| answer.status >= 400), "{garbage:?}: {answer:?}");
    }
    assert_eq!(served.get("/healthz").status, 200);
}

#[test]
fn a_request_has_no_body() {
    let served = TestServer::start();
    let mut stream = served.connect();
    stream
        .write_all(b"GET /api/v1/snapshot HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000000\r\n\r\nabc")
        .unwrap();
    let answer = read_answer(&mut stream, false).unwrap();
    assert_eq!((answer.status, answer.reason().as_str()), (400, "a request here has no body: leave it out"));
    drop(stream);
    // Two ways to tell where it ends are an attack on whoever stands between.
    let mut stream = served.connect();
    let smuggled = "GET / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n";
    stream.write_all(smuggled.as_bytes()).unwrap();
    assert_eq!(read_answer(&mut stream, false).unwrap().status, 400);
    assert!(read_answer(&mut stream, false).is_none(), "nothing behind it is answered");
}

#[test]
fn requests_in_one_breath_are_answered_in_their_order() {
    let served = TestServer::start();
    let mut stream = served.connect();
    let ask = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let all: String =
        ["/healthz", "/nothing", "/api/v1/alerts", "/api/v1/deaths"].iter().map(|path| ask(path)).collect();
    stream.write_all(all.repeat(50).as_bytes()).unwrap();
    for _ in 0..50 {
        let statuses: Vec<TextAnswer> = (0..4).map(|_| read_answer(&mut stream, false).unwrap()).collect();
        assert_eq!(statuses.iter().map(|answer| answer.status).collect::<Vec<_>>(), [200, 404, 200, 200]);
        assert_eq!((statuses[2].text(), statuses[3].text()), (r#"{"alerts":[]}"#, r#"{"total":0,"deaths":[]}"#));
    }
}

#[test]
fn who_guesses_at_the_token_has_to_wait_and_who_has_it_does_not() {
    let served = TestServer::with(Some("s3cret-token"), None);
    let ask = |stream: &mut TcpStream, token: &str| {
        let request = format!("GET /api/v1/snapshot HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        read_answer(stream, false).unwrap()
    };
    let mut guesser = from("127.0.0.2", served.address);
    for guess in ["a", "s3cret-tokem", "s3cret-token1", "", "s3cret"] {
        let answer = ask(&mut guesser, guess);
        assert_eq!((answer.status, answer.reason().as_str()), (401, "that is not the token"), "{guess}");
        assert_eq!(answer.headers["www-authenticate"], "Bearer realm=\"ttmon\"");
    }
    let (answer, asked) = (ask(&mut guesser, "b"), Instant::now());
    assert_eq!(answer.status, 429);
    assert_eq!(ask(&mut guesser, "c").status, 429);
    assert!(asked.elapsed() >= Duration::from_millis(900), "each further guess takes a second: {:?}", asked.elapsed());
    assert_eq!(ask(&mut guesser, "s3cret-token").status, 200, "another client at the same address");
    assert!((1..=30).contains(&answer.headers["retry-after"].parse::<u32>().unwrap()));
    assert_eq!(ask(&mut from("127.0.0.3", served.address), "s3cret-token").status, 200);
    let none = served.get("/api/v1/snapshot");
    let why = "a token is needed: send it as \"Authorization: Bearer TOKEN\"";
    assert_eq!((none.status, none.reason().as_str()), (401, why));
    assert_eq!((served.get("/healthz").status, served.get("/").status, served.get("/metrics").status), (200, 200, 401));
}

#[test]
fn a_stream_ends_when_its_token_is_no_longer_valid() {
    let served = TestServer::with(Some("old"), None);
    let mut stream = served.connect();
    let request = "GET /api/v1/stream HTTP/1.1\r\nhost: x\r\nauthorization: Bearer old\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    assert_eq!(read_answer(&mut stream, false).unwrap().status, 200);
    served.server.set_keys(None, Some("old".into()));
    let mut buffer = [0; 4096];
    assert!(stream.read(&mut buffer).unwrap() > 0, "the token is still the same");
    served.server.set_keys(None, Some("new".into()));
    let (mut rest, changed) = (Vec::new(), Instant::now());
    while !rest.ends_with(b"0\r\n\r\n") {
        assert!(changed.elapsed() < Duration::from_secs(25), "the stream goes on");
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0);
        rest.extend(&buffer[..count]);
    }
    stream.write_all(request.as_bytes()).unwrap();
    assert_eq!(read_answer(&mut stream, false).unwrap().status, 401);
}

#[test]
fn two_host_headers_are_a_bad_request() {
    let served = TestServer::start();
    let answer = served.ask("GET", "/api/v1/snapshot", &["Host: 127.0.0.1"]);
    assert_eq!((answer.status, answer.reason().as_str()), (400, "a request names one host: send one Host header"));
}

#[test]
fn there_is_room_for_so_many_and_one_address_does_not_get_it_all() {
    let served = TestServer::start();
    let greedy: Vec<TcpStream> = (0..256).map(|_| from("127.0.0.2", served.address)).collect();
    wait_for(|| served.get("/api/v1/status").json()["clients"] == 257, || "they are not in".into());
    let answer = read_answer(&mut from("127.0.0.2", served.address), false).unwrap();
    assert_eq!((answer.status, answer.headers["retry-after"].as_str()), (503, "5"));
    assert_eq!(answer.reason(), "too many connections are open: close some, or try again later");
    assert_eq!(served.get("/healthz").status, 200, "others are answered");
    drop(greedy);
    wait_for(|| served.get("/api/v1/status").json()["clients"] == 1, || "they are still in".into());
    let mut back = from("127.0.0.2", served.address);
    back.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    assert_eq!(read_answer(&mut back, false).unwrap().status, 200);
}

#[test]
fn who_does_not_read_the_stream_misses_samples_and_holds_none_of_them() {
    let served = TestServer::start();
    let mut deaf: Vec<TcpStream> = (0..10).map(|_| served.connect()).collect();
    for stream in &mut deaf {
        stream.write_all(b"GET /api/v1/stream HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    }
    let name = "x".repeat(1000);
    let names = vec![name.as_str(); 1000];
    let mut published: Vec<Weak<model::Snapshot>> = Vec::new();
    for number in 2..=200 {
        let snapshot = machine(number, &names);
        published.push(Arc::downgrade(&snapshot));
        served.published.publish(snapshot, Instant::now(), vec![event("more")]);
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(served.get("/healthz").status, 200);
    let alive = published.iter().filter(|snapshot| snapshot.strong_count() > 0).count();
    assert_eq!(alive, 1, "only the newest is kept");
    // Whoever begins to read again gets the newest after what was on its way.
    let (mut text, mut piece) = (Vec::new(), vec![0; 1 << 16]);
    let is_told = |text: &[u8]| text.windows(8).any(|part| part == b"id: 200\n");
    while !is_told(&text) {
        let bytes = deaf[0].read(&mut piece).unwrap();
        assert!(bytes > 0);
        text.extend_from_slice(&piece[..bytes]);
    }
    let told = String::from_utf8_lossy(&text).matches("event: snapshot").count();
    assert!(told < 100, "{told} of 200");
}

#[test]
fn a_name_is_a_text_whatever_is_in_it() {
    let served = TestServer::start();
    let answer = served.get("/api/v1/processes");
    assert_eq!(answer.json()["processes"][1]["name"], "<script>alert(1)</script>\u{1b}\"\n");
    assert!(answer.text().contains(r#"\u001b\"\n"#), "{}", answer.text());
    assert_eq!(
        (answer.headers["content-type"].as_str(), answer.headers["x-content-type-options"].as_str()),
        ("application/json", "nosniff")
    );
    let page = served.get("/");
    assert!(page.headers["content-security-policy"].starts_with("default-src 'none'"), "{page:?}");
    let echoed = served.get("/api/v1/devices?id=%3Cscript%3E");
    assert_eq!((echoed.status, echoed.headers["content-type"].as_str()), (404, "application/json"));
}

mod tls {
    use super::*;
    use crate::support::certificate;

    /// Asks and believes only this certificate.
    fn ask(served: &TestServer, certificate: &str) -> Result<String, ureq::Error> {
        use ureq::tls::{Certificate, RootCerts, TlsConfig};
        let root = Certificate::from_pem(certificate.as_bytes()).unwrap();
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::from(vec![root]))
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        let agent = ureq::Agent::config_builder().tls_config(tls).build().new_agent();
        let url = format!("https://localhost:{}/api/v1/snapshot", served.address.port());
        agent.get(url).header("authorization", "Bearer t0ken").call()?.body_mut().read_to_string()
    }

    #[test]
    fn callers_see_the_certificate_and_after_a_change_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let ((first, one), (second, other)) = (certificate(folder.path(), "one"), certificate(folder.path(), "other"));
        let served = TestServer::with(Some("t0ken"), Some(first));
        assert!(ask(&served, &one).unwrap().starts_with(r#"{"schema":1"#));
        assert!(ask(&served, &other).is_err());
        served.server.set_keys(Some(second), Some("t0ken".into()));
        assert!(ask(&served, &other).is_ok());
        assert!(ask(&served, &one).is_err());
    }

    #[test]
    #[ignore = "long"]
    fn who_speaks_in_the_clear_or_not_at_all_is_shown_out() {
        let folder = tempfile::tempdir().unwrap();
        let (config, certificate) = certificate(folder.path(), "one");
        let served = TestServer::with(Some("t0ken"), Some(config));
        let mut silent = served.connect();
        let mut clear = served.connect();
        clear.write_all(b"GET /api/v1/snapshot HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        let _ = clear.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
        assert!(ask(&served, &certificate).is_ok());
        assert!(is_closed(&mut silent));
    }
}
