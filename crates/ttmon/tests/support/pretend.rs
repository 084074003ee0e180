//! Somebody who answers over HTTP as a service would, or does not: for what a real one never does.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A server that is gone when it is dropped.
pub struct Pretend {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    /// What is answered, by path without its question.
    answers: Mutex<HashMap<String, String>>,
    /// Whoever asks gets no answer.
    hangs: AtomicBool,
    is_over: AtomicBool,
    /// How many questions were answered with "as before".
    unchanged: AtomicUsize,
    asked: Mutex<Vec<String>>,
}

impl Pretend {
    pub fn start() -> Pretend {
        Pretend::at("127.0.0.1:0".parse().unwrap())
    }

    /// At an address that another one had.
    pub fn at(address: SocketAddr) -> Pretend {
        let listener = TcpListener::bind(address).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            answers: Mutex::default(),
            hangs: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            unchanged: AtomicUsize::new(0),
            asked: Mutex::default(),
        });
        let serving = shared.clone();
        std::thread::spawn(move || {
            while !serving.is_over.load(SeqCst) {
                match listener.accept() {
                    Ok((stream, _)) => {
                        let serving = serving.clone();
                        std::thread::spawn(move || serve(&stream, &serving));
                    }
                    Err(_) => std::thread::sleep(Duration::from_millis(2)),
                }
            }
        });
        Pretend { address, shared }
    }

    /// Says what is answered from now on.
    pub fn answer(&self, path: &str, body: impl Into<String>) {
        self.answer_below("", path, body);
    }

    /// The same for one of several machines that are told apart by their path.
    pub fn answer_below(&self, prefix: &str, path: &str, body: impl Into<String>) {
        self.shared.answers.lock().unwrap().insert(format!("{prefix}/api/v1/{path}"), body.into());
    }

    pub fn hang(&self, is_hanging: bool) {
        self.shared.hangs.store(is_hanging, SeqCst);
    }

    pub fn unchanged(&self) -> usize {
        self.shared.unchanged.load(SeqCst)
    }

    /// All that was asked for.
    pub fn asked(&self) -> Vec<String> {
        self.shared.asked.lock().unwrap().clone()
    }

    pub fn name(&self) -> String {
        self.address.to_string()
    }
}

impl Drop for Pretend {
    fn drop(&mut self) {
        self.shared.is_over.store(true, SeqCst);
    }
}

fn serve(stream: &TcpStream, shared: &Shared) {
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut reader = BufReader::new(stream);
    while let Some(head) = head(&mut reader, shared) {
        let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
        shared.asked.lock().unwrap().push(target.clone());
        while shared.hangs.load(SeqCst) && !shared.is_over.load(SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
        if shared.is_over.load(SeqCst) {
            return;
        }
        let path = target.split('?').next().unwrap_or_default();
        let body = shared.answers.lock().unwrap().get(path).cloned();
        let tag = format!("\"{}\"", body.as_deref().unwrap_or_default().len());
        let (status, body) = match body {
            Some(_) if head.to_lowercase().contains(&format!("if-none-match: {tag}")) => {
                shared.unchanged.fetch_add(1, SeqCst);
                ("304 Not Modified", String::new())
            }
            Some(body) => ("200 OK", body),
            None => ("404 Not Found", "{}".to_owned()),
        };
        let answer = format!("HTTP/1.1 {status}\r\netag: {tag}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        if (&*stream).write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// The lines of a question, or nothing at the end.
fn head(reader: &mut BufReader<&TcpStream>, shared: &Shared) -> Option<String> {
    let mut head = String::new();
    loop {
        match reader.read_line(&mut head) {
            Ok(0) => return None,
            Ok(_) if head.ends_with("\r\n\r\n") => return Some(head),
            Ok(_) => {}
            Err(_) if shared.is_over.load(SeqCst) => return None,
            Err(_) => {}
        }
    }
}
