//! A real server in this process, and plain sockets that call it.

#![allow(dead_code, clippy::unwrap_used)]

use model::{Device, DeviceId, Host, Process, SCHEMA, Snapshot, Timestamp, Watts};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use web::{Ask, Asker, Published, Question, ServerOptions, WebServer};

/// A server that ends with this.
pub struct TestServer {
    pub published: Arc<Published>,
    pub server: WebServer,
    pub address: SocketAddr,
}

/// An answer.
#[derive(Debug)]
pub struct TextAnswer {
    pub status: u16,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl TextAnswer {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn reason(&self) -> String {
        let error = self.json();
        assert_eq!(error["error"]["status"], self.status);
        error["error"]["reason"].as_str().unwrap().to_owned()
    }
}

/// A machine with two devices and a process of each of these names.
pub fn machine(seconds: i64, names: &[&str]) -> Arc<Snapshot> {
    let device = |n| {
        let mut device = Device::new(DeviceId::Local(n));
        device.sample_age_seconds = Some(0.0);
        device.power = Some(Watts(40.0 + f64::from(n)));
        device
    };
    let process = |(pid, name): (u32, &&str)| Process { name: Some((*name).into()), ..Process::new(pid) };
    Arc::new(Snapshot {
        schema: SCHEMA,
        taken_at: Timestamp(seconds * 1000),
        host: Host { name: Some("somewhere".into()), ..Host::default() },
        devices: (0..2).map(device).collect(),
        processes: (100..).zip(names).map(process).collect(),
        faults: Vec::new(),
        alerts: Vec::new(),
        kernel_log: None,
    })
}

pub fn event(text: &str) -> model::Event {
    model::Event::new(Timestamp(1000), model::Weight::Note, None, text.into())
}

/// Answers as a service would.
pub fn asker() -> Asker {
    Arc::new(|Question { ask, answer }| {
        let text = match ask {
            Ask::Deaths { .. } => r#"{"total":0,"deaths":[]}"#.to_owned(),
            other => serde_json::json!({ "asked": format!("{other:?}") }).to_string(),
        };
        answer.send(text.into()).is_ok()
    })
}

impl TestServer {
    pub fn start() -> TestServer {
        TestServer::with(None, None)
    }

    pub fn with(token: Option<&str>, tls: Option<Arc<rustls::ServerConfig>>) -> TestServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let first = machine(1, &["python3", "<script>alert(1)</script>\u{1b}\"\n"]);
        let published =
            Arc::new(Published::new(first, Duration::from_secs(1), Default::default(), vec![event("it began")]));
        let token = token.map(str::to_owned);
        let options = ServerOptions { tls, token, ask: asker() };
        let server = WebServer::start(published.clone(), options).unwrap();
        server.listen(listener).unwrap();
        TestServer { published, server, address }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    pub fn get(&self, path: &str) -> TextAnswer {
        self.ask("GET", path, &[])
    }

    pub fn ask(&self, method: &str, path: &str, headers: &[&str]) -> TextAnswer {
        let mut stream = self.connect();
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let request = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        read_answer(&mut stream, method == "HEAD").unwrap()
    }
}

/// A certificate for localhost, and its text for those who trust it.
pub fn certificate(folder: &Path, name: &str) -> (Arc<rustls::ServerConfig>, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".into()]).unwrap();
    let (cert, key) = (folder.join(format!("{name}.pem")), folder.join(format!("{name}.key")));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    (web::certificate(&cert, &key, None).unwrap(), made.cert.pem())
}

/// The next answer on a connection. None when it was closed.
pub fn read_answer(stream: &mut impl Read, is_head: bool) -> Option<TextAnswer> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return None,
        }
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; if is_head || status == 304 { 0 } else { length }];
    stream.read_exact(&mut body).ok()?;
    Some(TextAnswer { status, headers, body })
}

/// Waits for what must come true within a generous time.
pub fn wait_for(mut what: impl FnMut() -> bool, otherwise: impl Fn() -> String) {
    let until = Instant::now() + Duration::from_secs(30);
    while !what() {
        assert!(Instant::now() < until, "{}", otherwise());
        std::thread::sleep(Duration::from_millis(5));
    }
}
