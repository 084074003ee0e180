//! A client of the service on this machine: short timeouts, and without it ttmon reads everything itself.

use crate::rules::RulesReply;
use ledger::wire::{Frames, Hello, OF_THE_MACHINE, OF_THE_USER, Request, VERSION, Wanted, frame};
use model::{Event, ExitRecord, Fault, ListedBuffer, Snapshot};
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::geteuid;
use serde::Deserialize;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A service that knows buffers and exited processes: that of this machine, or of another one.
pub trait MemoryService {
    /// A part of the live buffers.
    fn buffers(&mut self, wanted: Wanted) -> Option<BuffersReply>;

    /// The latest exits, the last first.
    fn exits(&mut self, limit: usize) -> Option<Vec<ExitRecord>>;
}

/// A connection to the service of this machine, opened when it is needed.
pub struct ServiceClient {
    places: Vec<PathBuf>,
    /// A missing service is a fault only where one was named.
    is_named: bool,
    connection: Option<(UnixStream, Frames)>,
    /// A service that did not answer is not asked again until then.
    not_before: Option<Instant>,
    /// Why the last answer did not come.
    complaint: Option<Fault>,
    /// The greeting of the service that answered last.
    greeting: Option<Hello>,
}

/// A part of the live buffers.
#[derive(Debug, Deserialize)]
pub struct BuffersReply {
    /// The buffers, in the order that was asked for.
    pub buffers: Vec<ListedBuffer>,
    /// All that match, whether they are in this part or not.
    #[serde(default)]
    pub total: u64,
    /// Those that the agents of their processes had no room for.
    #[serde(default)]
    pub unlisted: u64,
    /// Books that could not be read.
    #[serde(default)]
    pub faults: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ServiceReply {
    Hello(Hello),
    Snapshot(Box<Snapshot>),
    Buffers(BuffersReply),
    Deaths(Vec<ExitRecord>),
    Events(Option<Vec<Event>>),
    Alerts(RulesReply),
    Error { reason: String },
}

/// A service takes half a second at the most for a sample in which a device does not answer.
const PATIENCE: Duration = Duration::from_millis(1500);
/// How long a service that did not answer is not asked again.
const REST: Duration = Duration::from_secs(10);
/// A longer answer is refused.
const LONGEST: usize = 256 << 20;

impl ServiceClient {
    /// Of the service at this socket, or of that which is where services are. None for `off`.
    pub fn new(named: Option<&Path>) -> Option<ServiceClient> {
        let places = match named {
            Some(path) if path == Path::new("off") => return None,
            Some(path) => vec![path.to_owned()],
            None => {
                let session = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
                let of_the_user = session.map(|folder| folder.join(OF_THE_USER));
                [PathBuf::from(OF_THE_MACHINE)].into_iter().chain(of_the_user).collect()
            }
        };
        Some(ServiceClient {
            places,
            is_named: named.is_some(),
            connection: None,
            not_before: None,
            complaint: None,
            greeting: None,
        })
    }

    /// Everything that the service knows now. None when there is no service, or none that answers.
    pub fn snapshot(&mut self) -> Option<Snapshot> {
        let reply = self.ask(&Request::Snapshot { fresh: true })?;
        self.expect(if let ServiceReply::Snapshot(snapshot) = reply { Some(*snapshot) } else { None })
    }

    /// The latest events, the oldest first. None where the service looks for none, or is older than this request.
    pub fn events(&mut self) -> Option<Vec<Event>> {
        let reply = self.ask(&Request::Events {})?;
        self.expect(if let ServiceReply::Events(events) = reply { Some(events) } else { None })?
    }

    /// Rules and alerts of the service.
    pub fn alerts(&mut self) -> Option<RulesReply> {
        let reply = self.ask(&Request::Alerts {})?;
        self.expect(if let ServiceReply::Alerts(listed) = reply { Some(listed) } else { None })
    }

    /// What the service that has answered calls itself: `ttmon 0.1.0`.
    pub fn program(&self) -> Option<&str> {
        self.greeting.as_ref().map(|greeting| greeting.program.as_str())
    }

    /// The folder of the service's black box. None without a service, and where it keeps none.
    pub fn black_box(&mut self) -> Option<PathBuf> {
        self.ask(&Request::Hello(Hello::from(&program())))?;
        self.greeting.as_ref()?.black_box.clone()
    }

    fn expect<T>(&mut self, reply: Option<T>) -> Option<T> {
        reply.or_else(|| self.fail("sent an answer to another request"))
    }

    /// Why the last request was not answered, if that is worth a fault.
    pub fn complaint(&self) -> Option<Fault> {
        self.complaint.clone()
    }

    fn ask(&mut self, request: &Request) -> Option<ServiceReply> {
        if self.not_before.is_some_and(|time| Instant::now() < time) {
            return None;
        }
        self.complaint = None;
        // A service that was restarted has closed the connection: connect once more.
        let was_connected = self.connection.is_some();
        for attempt in 0..2 {
            let is_sent = self.connect(request)?;
            match self.exchange(request, is_sent) {
                Ok(ServiceReply::Error { reason }) => return self.fail(&format!("refused: {reason}")),
                Ok(told) => return Some(told),
                Err(error) if is_late(&error) => {
                    self.not_before = Some(Instant::now() + REST);
                    return self.fail(&format!("did not answer within {:.1} s", PATIENCE.as_secs_f64()));
                }
                Err(_) if was_connected && attempt == 0 => self.connection = None,
                Err(error) => return self.fail(&format!("closed the connection: {error}")),
            }
        }
        None
    }

    /// Connects, unless that is done. Only services of root and of the user are trusted. Returns whether the request is sent: it goes
    /// with the greeting, so that the service is waited for once.
    fn connect(&mut self, request: &Request) -> Option<bool> {
        if self.connection.is_some() {
            return Some(false);
        }
        for place in self.places.clone() {
            let stream = match stream_to(&place) {
                Ok(stream) => stream,
                Err(error) if is_late(&error) => {
                    self.not_before = Some(Instant::now() + REST);
                    let reason = "the service does not answer: too many clients wait for it; reading directly instead";
                    self.complaint = Some(Fault::new(place.to_string_lossy(), reason));
                    return None;
                }
                Err(error) if self.is_named => {
                    self.complaint =
                        Some(Fault::new(place.to_string_lossy(), format!("cannot connect to the service: {error}")));
                    continue;
                }
                Err(_) => continue,
            };
            let is_ours = |uid: rustix::process::Uid| uid.is_root() || uid == geteuid();
            if !socket_peercred(&stream).is_ok_and(|peer| is_ours(peer.uid)) {
                let reason = "the service belongs to another user and is not trusted";
                self.complaint = Some(Fault::new(place.to_string_lossy(), reason));
                continue;
            }
            self.connection = Some((stream, Frames::up_to(LONGEST)));
            let greeting = Request::Hello(Hello::from(&program()));
            return match self.send(&[&greeting, request]).and_then(|()| self.receive()) {
                Ok(ServiceReply::Hello(greeting)) if greeting.version == VERSION => {
                    self.greeting = Some(greeting);
                    Some(true)
                }
                Ok(ServiceReply::Error { reason }) => self.fail(&format!("refused: {reason}")),
                Ok(_) => self.fail("is not a ttmon service"),
                Err(error) => {
                    self.not_before = is_late(&error).then(|| Instant::now() + REST);
                    self.fail(&format!("did not complete the handshake: {error}"))
                }
            };
        }
        None
    }

    /// Asks, unless that is done, and waits for the answer.
    fn exchange(&mut self, request: &Request, is_sent: bool) -> io::Result<ServiceReply> {
        if !is_sent {
            self.send(&[request])?;
        }
        self.receive()
    }

    fn send(&mut self, requests: &[&Request]) -> io::Result<()> {
        let Some((stream, _)) = &mut self.connection else { return Err(io::ErrorKind::NotConnected.into()) };
        let frames = requests.iter().map(frame).collect::<Result<Vec<_>, _>>();
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(&frames.map_err(io::Error::other)?.concat())
    }

    fn receive(&mut self) -> io::Result<ServiceReply> {
        let Some((stream, frames)) = &mut self.connection else { return Err(io::ErrorKind::NotConnected.into()) };
        let until = Instant::now() + PATIENCE;
        let mut buffer = vec![0; if frames.has_frame() { 0 } else { 64 << 10 }];
        while !frames.has_frame() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            stream.set_read_timeout(Some(left))?;
            match stream.read(&mut buffer)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                bytes => frames.feed(&buffer[..bytes]),
            }
        }
        let frame = frames.next_frame().ok_or(io::ErrorKind::UnexpectedEof)?.map_err(io::Error::other)?;
        Ok(serde_json::from_slice(&frame)?)
    }

    /// Remembers why, and connects again next time.
    fn fail<T>(&mut self, why: &str) -> Option<T> {
        let place = self.connection.take().and_then(|(stream, _)| stream.peer_addr().ok());
        let place = place.as_ref().and_then(|address| address.as_pathname()).map(|path| path.to_string_lossy());
        let reason = format!("the service {why}; reading directly instead");
        self.complaint = Some(Fault::new(place.unwrap_or("ttmon serve".into()), reason));
        None
    }
}

impl MemoryService for ServiceClient {
    fn buffers(&mut self, wanted: Wanted) -> Option<BuffersReply> {
        let reply = self.ask(&Request::Buffers(wanted))?;
        self.expect(if let ServiceReply::Buffers(buffers) = reply { Some(buffers) } else { None })
    }

    fn exits(&mut self, limit: usize) -> Option<Vec<ExitRecord>> {
        let reply = self.ask(&Request::Deaths { limit: Some(limit) })?;
        self.expect(if let ServiceReply::Deaths(exits) = reply { Some(exits) } else { None })
    }
}

/// What this program calls itself in the handshake.
pub fn program() -> String {
    format!("ttmon {}", env!("CARGO_PKG_VERSION"))
}

/// Connects within a deadline. A service that is stopped accepts none, and connecting waits as soon as its backlog is full.
fn stream_to(place: &Path) -> io::Result<UnixStream> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(PATIENCE))?;
    connect(&socket, &SocketAddrUnix::new(place)?)?;
    Ok(socket.into())
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_service_with_a_full_backlog_does_not_answer_and_holds_nobody_up() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("sock");
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let new = || socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        let (listener, address) = (new(), SocketAddrUnix::new(&place).unwrap());
        rustix::net::bind(&listener, &address).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let waiting: Vec<_> = std::iter::repeat_with(new).take_while(|one| connect(one, &address).is_ok()).collect();
        assert!(!waiting.is_empty());
        let mut client = ServiceClient::new(Some(&place)).unwrap();
        let (done, finished) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let answers = [client.snapshot().is_some(), client.snapshot().is_some()];
            done.send((answers, client.complaint())).unwrap();
        });
        let (answers, complaint) = finished.recv_timeout(Duration::from_secs(60)).expect("it hangs");
        assert_eq!(answers, [false, false]);
        assert!(complaint.unwrap().reason.contains("the service does not answer"));
    }
}
