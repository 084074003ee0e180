//! The service, where there is one: asked for what it knows, within a moment, and done without when it does not answer.

use crate::rules::Listed;
use ledger::wire::{Frames, Hello, OF_THE_MACHINE, OF_THE_USER, Request, VERSION, Wanted, frame};
use model::{Bytes, Fault, Held, Snapshot, Timestamp};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use serde::Deserialize;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A service that tells of buffers and deaths: that of this machine, or that of another one.
pub trait MemoryService {
    /// Live buffers.
    fn buffers(&mut self, wanted: Wanted) -> Option<Buffers>;

    /// The latest deaths, the last first.
    fn deaths(&mut self, limit: usize) -> Option<Vec<Death>>;
}

/// Somebody who asks the service.
pub struct Client {
    places: Vec<PathBuf>,
    /// That there is none is worth a word only where one was named.
    is_named: bool,
    connection: Option<(UnixStream, Frames)>,
    /// One that did not answer is left alone until then.
    not_before: Option<Instant>,
    /// Why the last answer did not come.
    complaint: Option<Fault>,
}

/// A part of the live buffers.
#[derive(Debug, Deserialize)]
pub struct Buffers {
    /// In the order that was asked for.
    pub buffers: Vec<Row>,
    /// All that match, whether they are in this part or not.
    #[serde(default)]
    pub total: u64,
    /// Those that the books of their processes had no room for.
    #[serde(default)]
    pub unlisted: u64,
    /// What could not be read.
    #[serde(default)]
    pub faults: Vec<String>,
}

/// A live buffer.
#[derive(Debug, Deserialize)]
pub struct Row {
    /// Its number.
    pub pid: u32,
    /// The chips that it holds.
    pub devices: Vec<String>,
    /// Which kind of memory.
    pub kind: String,
    /// Its number in the process.
    pub id: u64,
    /// Where it begins.
    pub address: u64,
    /// On each chip.
    pub bytes: Bytes,
    /// What was asked for.
    #[serde(default)]
    pub logical_bytes: Option<Bytes>,
    /// In each bank.
    #[serde(default)]
    pub bank_bytes: Option<Bytes>,
    /// How many banks it lies in.
    #[serde(default)]
    pub banks: Option<u32>,
    /// How old it is.
    #[serde(default)]
    pub age_seconds: Option<f64>,
    /// What the program calls it.
    #[serde(default)]
    pub label: Option<String>,
}

/// A process that has died.
#[derive(Debug, Clone, Deserialize)]
pub struct Death {
    /// Its number.
    pub pid: u32,
    /// Who runs it.
    pub user: Option<String>,
    /// What it is called.
    pub name: Option<String>,
    /// Its command line.
    pub command: Option<String>,
    /// When it ended.
    pub died_at: Timestamp,
    /// With which it ended.
    pub exit_code: Option<i32>,
    /// That ended it.
    pub signal: Option<i32>,
    /// The chips that it holds.
    pub devices: Vec<Held>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Told {
    Hello(Hello),
    Snapshot(Box<Snapshot>),
    Buffers(Buffers),
    Deaths(Vec<Death>),
    Alerts(Listed),
    Error { reason: String },
}

/// A service takes half a second at the most for a sample in which a device does not answer.
const PATIENCE: Duration = Duration::from_millis(1500);
/// How long one that was silent is left alone.
const REST: Duration = Duration::from_secs(10);
/// A longer answer is none.
const LONGEST: usize = 256 << 20;

impl Client {
    /// Of the service at this socket, or of that which is where services are. None for `off`.
    pub fn new(named: Option<&Path>) -> Option<Client> {
        let places = match named {
            Some(path) if path == Path::new("off") => return None,
            Some(path) => vec![path.to_owned()],
            None => {
                let session = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
                let of_the_user = session.map(|folder| folder.join(OF_THE_USER));
                [PathBuf::from(OF_THE_MACHINE)].into_iter().chain(of_the_user).collect()
            }
        };
        Some(Client { places, is_named: named.is_some(), connection: None, not_before: None, complaint: None })
    }

    /// Everything that the service knows now. None when there is no service, or none that answers.
    pub fn snapshot(&mut self) -> Option<Snapshot> {
        match self.ask(&Request::Snapshot { fresh: true })? {
            Told::Snapshot(snapshot) => Some(*snapshot),
            _ => self.fail("gave an answer to another question"),
        }
    }

    /// The rules, and what they say.
    pub fn alerts(&mut self) -> Option<Listed> {
        match self.ask(&Request::Alerts {})? {
            Told::Alerts(listed) => Some(listed),
            _ => self.fail("gave an answer to another question"),
        }
    }

    /// Why the last question was not answered, if somebody should know.
    pub fn complaint(&self) -> Option<Fault> {
        self.complaint.clone()
    }

    fn ask(&mut self, request: &Request) -> Option<Told> {
        if self.not_before.is_some_and(|time| Instant::now() < time) {
            return None;
        }
        self.complaint = None;
        // A service that was started again has closed the connection; then it is worth a second call.
        let was_connected = self.connection.is_some();
        for attempt in 0..2 {
            self.connect()?;
            match self.exchange(request) {
                Ok(Told::Error { reason }) => return self.fail(&format!("refused: {reason}")),
                Ok(told) => return Some(told),
                Err(error) if is_late(&error) => {
                    self.not_before = Some(Instant::now() + REST);
                    return self.fail(&format!("did not answer within {:.1} s", PATIENCE.as_secs_f64()));
                }
                Err(_) if was_connected && attempt == 0 => self.connection = None,
                Err(error) => return self.fail(&format!("broke off: {error}")),
            }
        }
        None
    }

    /// Calls whoever serves, unless that is done. Only root and the user's own service are believed.
    fn connect(&mut self) -> Option<()> {
        if self.connection.is_some() {
            return Some(());
        }
        for place in self.places.clone() {
            let stream = match UnixStream::connect(&place) {
                Ok(stream) => stream,
                Err(error) if self.is_named => {
                    self.complaint = Some(Fault::new(place.to_string_lossy(), format!("no service answers: {error}")));
                    continue;
                }
                Err(_) => continue,
            };
            let is_ours = |uid: rustix::process::Uid| uid.is_root() || uid == geteuid();
            if !socket_peercred(&stream).is_ok_and(|peer| is_ours(peer.uid)) {
                let reason = "a service of another user is not asked";
                self.complaint = Some(Fault::new(place.to_string_lossy(), reason));
                continue;
            }
            self.connection = Some((stream, Frames::up_to(LONGEST)));
            return match self.exchange(&Request::Hello(Hello::from(&program()))) {
                Ok(Told::Hello(Hello { version: VERSION, .. })) => Some(()),
                Ok(Told::Error { reason }) => self.fail(&format!("refused: {reason}")),
                Ok(_) => self.fail("is no service of ttmon's"),
                Err(error) => {
                    self.not_before = is_late(&error).then(|| Instant::now() + REST);
                    self.fail(&format!("did not greet: {error}"))
                }
            };
        }
        None
    }

    fn exchange(&mut self, request: &Request) -> io::Result<Told> {
        let Some((stream, frames)) = &mut self.connection else { return Err(io::ErrorKind::NotConnected.into()) };
        let until = Instant::now() + PATIENCE;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(&frame(request).map_err(io::Error::other)?)?;
        let mut buffer = vec![0; 128 << 10];
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

    /// Remembers why, and calls anew next time.
    fn fail<T>(&mut self, why: &str) -> Option<T> {
        let place = self.connection.take().and_then(|(stream, _)| stream.peer_addr().ok());
        let place = place.as_ref().and_then(|address| address.as_pathname()).map(|path| path.to_string_lossy());
        let reason = format!("the service {why}; read directly");
        self.complaint = Some(Fault::new(place.unwrap_or("ttmon serve".into()), reason));
        None
    }
}

impl MemoryService for Client {
    fn buffers(&mut self, wanted: Wanted) -> Option<Buffers> {
        match self.ask(&Request::Buffers(wanted))? {
            Told::Buffers(buffers) => Some(buffers),
            _ => self.fail("gave an answer to another question"),
        }
    }

    fn deaths(&mut self, limit: usize) -> Option<Vec<Death>> {
        match self.ask(&Request::Deaths { limit: Some(limit) })? {
            Told::Deaths(deaths) => Some(deaths),
            _ => self.fail("gave an answer to another question"),
        }
    }
}

/// As this program greets.
pub fn program() -> String {
    format!("ttmon {}", env!("CARGO_PKG_VERSION"))
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
