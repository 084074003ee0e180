//! The loop: new connections, messages, exited processes, timers.

use super::background::Outcome;
use super::busy::{Busy, Work};
use super::native::{NativeConnection, PATIENCE, ServiceAnswer};
use super::poc::{AfterMessage, PocConnection};
use super::poller::Token;
use super::service_state::{ServiceState, most_buffers};
use super::socket::UnixListenSocket;
use ::alerts::Delivery;
use ::alerts::log::{LogLevel, log};
use ledger::wire::frame;
use model::Snapshot;
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with, sockopt};
use serde_json::json;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use watch::sampling::Sampling;
use watch::service_limits::ServiceLimits;

/// The sockets: our own protocol, and that of the proof of concept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    Native,
    Poc,
}

impl Endpoint {
    /// In log lines.
    pub fn name(self) -> &'static str {
        match self {
            Endpoint::Native => "native",
            Endpoint::Poc => "poc",
        }
    }
}

pub struct Service {
    pub state: ServiceState,
    pub limits: ServiceLimits,
    pub delivery: Delivery,
    endpoints: Vec<(Token, Endpoint, UnixListenSocket)>,
    poc_connections: HashMap<Token, PocConnection>,
    native_connections: HashMap<Token, NativeConnection>,
    /// When to look at a connection, though nothing came.
    alarms: BTreeSet<(Instant, Token)>,
    /// Given up for a moment when there are no descriptors left, so that clients can at least be sent away.
    spare: Option<File>,
    buffer: Vec<u8>,
    /// When a sample was begun that waits for books.
    unpublished: Option<Instant>,
    pub busy: Busy,
}

/// What looks like half a long message is a short one when nothing follows for so long.
const PAUSE: Duration = Duration::from_millis(20);
/// With so many busy connections, those are read before many others are accepted.
const BUSY: usize = 16;
/// As much as is read from one client at once: two hundred messages.
const BUFFER: usize = 32 << 10;
/// So many times the limit of a user's connections are kept and not counted.
const OVER_LIMIT: usize = 4;
/// With so many bytes of answers unread, a user's clients are asked to read them first.
const UNREAD_BY_USER: usize = 16 << 20;

impl Service {
    pub fn new(state: ServiceState, limits: ServiceLimits) -> Service {
        Service {
            state,
            limits,
            delivery: Delivery::default(),
            endpoints: Vec::new(),
            poc_connections: HashMap::new(),
            native_connections: HashMap::new(),
            alarms: BTreeSet::new(),
            spare: File::open("/dev/null").ok(),
            buffer: vec![0; BUFFER],
            unpublished: None,
            busy: Busy::default(),
        }
    }

    pub fn open(&mut self, endpoint: Endpoint, listener: UnixListenSocket) -> rustix::io::Result<()> {
        if endpoint == Endpoint::Poc {
            // Each message of a connection comes with who sent it. Where that is refused, all are the connection's.
            let _ = sockopt::set_socket_passcred(&listener.socket, true);
        }
        let token = self.state.poller.watch(&listener.socket)?;
        log(LogLevel::Info, "listening", &[("protocol", &endpoint.name()), ("path", &listener.path.display())]);
        self.endpoints.push((token, endpoint, listener));
        Ok(())
    }

    /// Waits for something to happen, until that moment at the most.
    pub fn wait(&mut self, ready: &mut Vec<Token>, until: Option<Instant>) -> rustix::io::Result<()> {
        let next = self.alarms.first().map(|(when, _)| *when).into_iter().chain(until).min();
        self.state.poller.wait(ready, next.map(|when| when.saturating_duration_since(Instant::now())))
    }

    /// Sees to what is ready. What it does not know is left to the caller.
    pub fn turn(&mut self, ready: &[Token]) {
        for token in ready.iter().copied() {
            let began = Instant::now();
            let work = if self.poc_connections.contains_key(&token) {
                self.handle_poc(token, PocConnection::read);
                Work::Poc
            } else if self.native_connections.contains_key(&token) {
                self.handle_native(token, NativeConnection::read);
                Work::Native
            } else if let Some(key) = self.state.processes.by_token.get(&token).copied() {
                self.on_exit(key);
                Work::Exit
            } else if let Some(at) = self.endpoints.iter().position(|(endpoint, ..)| *endpoint == token) {
                self.accept(at, if ready.len() > BUSY { 4 } else { 64 });
                Work::Accept
            } else {
                continue;
            };
            self.busy.note(work, began);
        }
        self.check_alarms();
    }

    /// Takes a new sample. What books say that the sampler does not see is read first; then it is published.
    pub fn take_sample(&mut self, sampling: &Sampling<Snapshot>) -> Option<(Instant, Arc<Snapshot>)> {
        let (began, sample) = sampling.take()?;
        self.state.take_sample(began, sample);
        if self.state.has_loose_books() {
            self.unpublished = Some(began);
            self.state.read_books();
            return None;
        }
        Some(self.publish(began))
    }

    /// A sample goes to all who have subscribed. Returns what is known with it, and when it was started.
    fn publish(&mut self, began: Instant) -> (Instant, Arc<Snapshot>) {
        let mut snapshot = self.state.snapshot();
        self.follow_rules(&mut snapshot);
        let (now, snapshot) = (Instant::now(), Arc::new(snapshot));
        let written = OnceCell::new();
        let answer = ServiceAnswer::Snapshot(Cow::Borrowed(&*snapshot));
        let mut write = || written.get_or_init(|| frame(&answer).ok().map(Arc::new)).clone();
        self.native_connections.values_mut().for_each(|client| client.publish(now, began, &mut write));
        let behind = self.native_connections.iter().filter(|(_, client)| client.is_behind());
        let behind: Vec<Token> = behind.map(|(token, _)| *token).collect();
        behind.into_iter().for_each(|token| self.handle_native(token, |client, _, _| client.send()));
        (began, snapshot)
    }

    /// Takes what other threads have made. Returns a sample that is published with it.
    pub fn take_outcomes(&mut self) -> Option<(Instant, Arc<Snapshot>)> {
        let mut published = None;
        for outcome in self.state.background.take() {
            match outcome {
                Outcome::Answer(token, answer) => self.handle_native(token, |client, buffer, state| {
                    client.take_answer(answer, state.is_crowded);
                    client.read(buffer, state)
                }),
                Outcome::Exit(exit) => self.state.take_exit(*exit),
                Outcome::Book(key, book) => self.state.take_opened(key, book),
                Outcome::Command(key, command) => self.state.take_command(key, command),
                Outcome::Books(books) => {
                    self.state.take_books(books);
                    published = self.unpublished.take().map(|began| self.publish(began)).or(published);
                }
            }
        }
        published
    }

    /// Changes the limits. What exceeds them already may stay.
    pub fn set_limits(&mut self, limits: ServiceLimits) {
        self.state.accounts.set_most(most_buffers(&limits));
        self.state.exits.set_most(limits.deaths);
        self.limits = limits;
    }

    fn accept(&mut self, at: usize, most: usize) {
        for _ in 0..most {
            let (_, endpoint, listener) = &self.endpoints[at];
            let endpoint = *endpoint;
            match accept_with(&listener.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(socket) => self.add_connection(endpoint, socket),
                Err(Errno::MFILE | Errno::NFILE) => {
                    log(LogLevel::Error, "too-many-files", &[("reason", &"a connection was sent away: see ulimit -n")]);
                    self.spare = None;
                    drop(accept_with(&listener.socket, SocketFlags::CLOEXEC));
                    self.spare = File::open("/dev/null").ok();
                    return;
                }
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(_) => return,
            }
        }
    }

    fn add_connection(&mut self, endpoint: Endpoint, socket: OwnedFd) {
        let Ok(peer) = sockopt::socket_peercred(&socket) else { return };
        let (pid, uid) = (peer.pid.as_raw_nonzero().get() as u32, peer.uid.as_raw());
        let open = match endpoint {
            Endpoint::Poc => self.poc_connections.values().filter(|other| other.peer.uid == uid).count(),
            Endpoint::Native => self.native_connections.values().filter(|other| other.uid == uid).count(),
        };
        let limit = self.limits.connections;
        // A client that reports is never closed while its user may have reason to go on.
        let most = if endpoint == Endpoint::Poc { limit.saturating_mul(OVER_LIMIT) } else { limit };
        if open >= limit {
            let reason = format!("too many connections: {open} of user {uid} are open, and the limit is {limit}");
            let event = if open < most { "not-counted" } else { "sent-away" };
            log(LogLevel::Warning, event, &[("pid", &pid), ("reason", &reason)]);
            if endpoint == Endpoint::Native {
                if let Ok(frame) = frame(&json!({ "error": { "reason": reason } })) {
                    let _ = rustix::net::send(&socket, &frame, rustix::net::SendFlags::NOSIGNAL);
                }
            }
        }
        if open >= most {
            return;
        }
        let Ok(token) = self.state.poller.watch(&socket) else { return };
        match endpoint {
            Endpoint::Poc => {
                let connection = PocConnection::new(socket, pid, uid, open >= limit, &mut self.state);
                self.poc_connections.insert(token, connection);
            }
            Endpoint::Native => {
                drop(self.native_connections.insert(token, NativeConnection::new(socket, token, pid, uid)))
            }
        }
    }

    /// Lets a connection read, or see that a pause is over.
    fn handle_poc(
        &mut self,
        token: Token,
        act: impl FnOnce(&mut PocConnection, &mut [u8], &mut ServiceState) -> AfterMessage,
    ) {
        let Some(connection) = self.poc_connections.get_mut(&token) else { return };
        match act(connection, &mut self.buffer, &mut self.state) {
            AfterMessage::Close => return self.close_poc(token),
            AfterMessage::Pause => drop(self.alarms.insert((Instant::now() + PAUSE, token))),
            AfterMessage::Stay => {}
        }
        if connection.was_behind != connection.is_behind() {
            connection.was_behind = connection.is_behind();
            let _ = self.state.poller.change(&connection.socket, token, true, connection.was_behind);
        }
    }

    fn close_poc(&mut self, token: Token) {
        let key = self.poc_connections.remove(&token).and_then(PocConnection::close);
        if let Some(key) = key {
            if let Some(live) = self.state.processes.all.get_mut(&key) {
                live.connections = live.connections.saturating_sub(1);
            }
            self.state.forget_if_idle(key);
        }
    }

    /// Lets a client read or send.
    fn handle_native(
        &mut self,
        token: Token,
        act: impl FnOnce(&mut NativeConnection, &mut [u8], &mut ServiceState) -> AfterMessage,
    ) {
        let Some(uid) = self.native_connections.get(&token).map(|client| client.uid) else { return };
        let of_user = self.native_connections.values().filter(|client| client.uid == uid);
        self.state.is_crowded = of_user.map(NativeConnection::unread).sum::<usize>() > UNREAD_BY_USER;
        let Some(client) = self.native_connections.get_mut(&token) else { return };
        if act(client, &mut self.buffer, &mut self.state) == AfterMessage::Close {
            self.native_connections.remove(&token);
            return;
        }
        let (reading, writing) = client.wants();
        let _ = self.state.poller.change(&client.socket, token, reading, writing);
        if client.is_behind() && !self.alarms.iter().any(|(_, waiting)| *waiting == token) {
            let _ = client.is_stuck();
            self.alarms.insert((Instant::now() + PATIENCE, token));
        }
    }

    /// Handles a process that has exited: first its last messages.
    fn on_exit(&mut self, key: super::live_processes::Key) {
        let connections = self.poc_connections.iter().filter(|(_, connection)| connection.peer.key == Some(key));
        let last: Vec<Token> = connections.map(|(token, _)| *token).collect();
        // A fork may keep the connection open, but cannot speak for the process that exited.
        last.into_iter().for_each(|token| self.handle_poc(token, PocConnection::read));
        self.state.on_exit(key);
        self.native_connections.retain(|_, client| client.owner != Some(key));
    }

    /// Looks at the connections whose timers have expired.
    fn check_alarms(&mut self) {
        let now = Instant::now();
        while let Some((_, token)) = self.alarms.first().copied().filter(|(when, _)| *when <= now) {
            self.alarms.pop_first();
            if self.poc_connections.contains_key(&token) {
                self.handle_poc(token, |connection, _, state| connection.pause(state));
            } else if let Some(client) = self.native_connections.get_mut(&token) {
                if client.is_stuck() {
                    let reason = "read nothing for ten seconds";
                    log(LogLevel::Warning, "slow-reader", &[("pid", &client.pid), ("reason", &reason)]);
                    self.native_connections.remove(&token);
                } else if client.is_behind() {
                    self.alarms.insert((now + PATIENCE, token));
                }
            }
        }
    }
}
