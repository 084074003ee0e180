//! The loop: who has called, who has spoken, who has died, what time it is.

use super::alerts;
use super::native::{self, Client, PATIENCE, Told};
use super::poc::{self, Caller};
use super::poller::Token;
use super::settings::Limits;
use super::socket::Listener;
use super::state::State;
use ::alerts::Delivery;
use ::alerts::log::{LogLevel, log};
use ::alerts::settings::AlertSettings;
use ledger::wire::frame;
use model::Snapshot;
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with, sockopt};
use serde_json::json;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use watch::sampling::Sampling;

/// Which socket somebody calls at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    Native,
    Poc,
}

/// The service.
pub struct Service {
    pub state: State,
    pub limits: Limits,
    /// Who is told of alerts.
    delivery: Delivery,
    doors: Vec<(Token, Door, Listener)>,
    callers: HashMap<Token, Caller>,
    clients: HashMap<Token, Client>,
    /// When to look at a connection, though it says nothing.
    alarms: BTreeSet<(Instant, Token)>,
    /// Given up for a moment when there are no descriptors left, so that callers can at least be sent away.
    spare: Option<File>,
    buffer: Vec<u8>,
}

/// What looks like half a long message is a short one when nothing follows for so long.
const PAUSE: Duration = Duration::from_millis(20);
/// With so many who speak at the same time, those who are here are heard before many others are let in.
const BUSY: usize = 16;
/// What is read at once.
const BUFFER: usize = 128 << 10;

impl Service {
    pub fn new(state: State, limits: Limits) -> Service {
        Service {
            state,
            limits,
            delivery: Delivery::default(),
            doors: Vec::new(),
            callers: HashMap::new(),
            clients: HashMap::new(),
            alarms: BTreeSet::new(),
            spare: File::open("/dev/null").ok(),
            buffer: vec![0; BUFFER],
        }
    }

    /// Listens at one more socket.
    pub fn open(&mut self, door: Door, listener: Listener) -> rustix::io::Result<()> {
        let token = self.state.poller.watch(&listener.socket)?;
        self.doors.push((token, door, listener));
        Ok(())
    }

    /// Waits for something to happen, and sees to it. What it does not know is left to the caller.
    pub fn turn(&mut self, ready: &mut Vec<Token>) -> rustix::io::Result<()> {
        let next = self.alarms.first().map(|(when, _)| when.saturating_duration_since(Instant::now()));
        self.state.poller.wait(ready, next)?;
        for token in ready.iter().copied() {
            if self.callers.contains_key(&token) {
                self.hear_caller(token);
            } else if self.clients.contains_key(&token) {
                self.hear_client(token);
            } else if let Some(key) = self.state.people.whose(token) {
                self.bury(key);
            } else if let Some(at) = self.doors.iter().position(|(door, ..)| *door == token) {
                self.accept(at, if ready.len() > BUSY { 4 } else { 64 });
            }
        }
        self.ring();
        Ok(())
    }

    /// A new sample goes to all who have subscribed. What is known with it is for whoever else wants it, and when it was begun with.
    pub fn take_sample(&mut self, sampling: &Sampling<Snapshot>) -> Option<(Instant, Arc<Snapshot>)> {
        let (began, sample) = sampling.take()?;
        self.state.take_sample(began, sample);
        let mut snapshot = self.state.snapshot();
        alerts::follow(&mut self.state, &mut self.delivery, &mut snapshot);
        let (now, snapshot) = (Instant::now(), Arc::new(snapshot));
        let mut written: Option<Arc<Vec<u8>>> = None;
        let mut write = || {
            written = written.take().or_else(|| frame(&Told::Snapshot(Cow::Borrowed(&*snapshot))).ok().map(Arc::new));
            written.clone()
        };
        self.clients.values_mut().for_each(|client| client.publish(now, began, &mut write));
        let tokens: Vec<Token> = self.clients.keys().copied().collect();
        for token in tokens {
            if self.clients.get(&token).is_some_and(Client::is_behind) {
                self.send_client(token);
            }
        }
        Some((began, snapshot))
    }

    /// Other limits from now on. Whoever is beyond them already may stay.
    pub fn set_limits(&mut self, limits: Limits) {
        self.state.accounts.set_most_buffers(limits.buffers_per_process);
        self.state.deaths.set_most(limits.deaths);
        self.limits = limits;
    }

    /// Other rules and receivers from now on.
    pub fn set_alerts(&mut self, settings: &AlertSettings) {
        alerts::change(&mut self.state, &mut self.delivery, settings);
    }

    fn accept(&mut self, at: usize, most: usize) {
        for _ in 0..most {
            let (_, door, listener) = &self.doors[at];
            let door = *door;
            match accept_with(&listener.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(socket) => self.admit(door, socket),
                Err(Errno::MFILE | Errno::NFILE) => {
                    log(LogLevel::Error, "too-many-files", &[("reason", &"a caller was sent away: see ulimit -n")]);
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

    fn admit(&mut self, door: Door, socket: OwnedFd) {
        let Ok(peer) = sockopt::socket_peercred(&socket) else { return };
        let pid = peer.pid.as_raw_nonzero().get().cast_unsigned();
        let (open, most) =
            (if door == Door::Poc { self.callers.len() } else { self.clients.len() }, self.limits.connections);
        if open >= most {
            let reason = format!("{open} connections are open, which is as many as this service allows");
            log(LogLevel::Warning, "sent-away", &[("pid", &pid), ("reason", &reason)]);
            if door == Door::Native
                && let Ok(frame) = frame(&json!({ "error": { "reason": reason } }))
            {
                let _ = rustix::net::send(&socket, &frame, rustix::net::SendFlags::NOSIGNAL);
            }
            return;
        }
        let Ok(token) = self.state.poller.watch(&socket) else { return };
        match door {
            Door::Poc => {
                let caller = Caller::new(socket, pid, peer.uid.as_raw(), &mut self.state);
                self.callers.insert(token, caller);
            }
            Door::Native => drop(self.clients.insert(token, Client::new(socket, pid))),
        }
    }

    fn hear_caller(&mut self, token: Token) {
        let Some(caller) = self.callers.get_mut(&token) else { return };
        let next = caller.hear(&mut self.buffer, &mut self.state);
        self.after_caller(token, next);
    }

    fn after_caller(&mut self, token: Token, next: poc::Next) {
        let Some(caller) = self.callers.get_mut(&token) else { return };
        match next {
            poc::Next::Close => return self.close_caller(token),
            poc::Next::Pause => drop(self.alarms.insert((Instant::now() + PAUSE, token))),
            poc::Next::Stay => {}
        }
        if caller.was_behind != caller.is_behind() {
            caller.was_behind = caller.is_behind();
            let _ = self.state.poller.change(&caller.socket, token, true, caller.was_behind);
        }
    }

    fn close_caller(&mut self, token: Token) {
        let key = self.callers.remove(&token).and_then(|caller| caller.key());
        if let Some(key) = key {
            if let Some(person) = self.state.people.get_mut(key) {
                person.connections = person.connections.saturating_sub(1);
            }
            self.state.forget_if_idle(key);
        }
    }

    fn hear_client(&mut self, token: Token) {
        let Some(client) = self.clients.get_mut(&token) else { return };
        let next = client.hear(&mut self.buffer, &mut self.state);
        self.after_client(token, next);
    }

    fn send_client(&mut self, token: Token) {
        let Some(client) = self.clients.get_mut(&token) else { return };
        let next = client.send();
        self.after_client(token, next);
    }

    fn after_client(&mut self, token: Token, next: native::Next) {
        let Some(client) = self.clients.get_mut(&token) else { return };
        if next == native::Next::Close {
            self.clients.remove(&token);
            return;
        }
        let (reading, writing) = client.wants();
        let _ = self.state.poller.change(&client.socket, token, reading, writing);
        if client.is_behind() && !self.alarms.iter().any(|(_, waiting)| *waiting == token) {
            let _ = client.is_stuck();
            self.alarms.insert((Instant::now() + PATIENCE, token));
        }
    }

    /// Sees to a process that has died: first to what it said at the last.
    fn bury(&mut self, key: super::people::Key) {
        let last: Vec<Token> =
            self.callers.iter().filter(|(_, caller)| caller.key() == Some(key)).map(|(token, _)| *token).collect();
        for token in last {
            // A fork may hold the connection and go on speaking, but not for the dead.
            if let Some(caller) = self.callers.get_mut(&token) {
                let next = caller.hear(&mut self.buffer, &mut self.state);
                self.after_caller(token, next);
            }
        }
        self.state.end(key);
        self.clients.retain(|_, client| client.owner != Some(key));
    }

    /// Looks at the connections whose time has come.
    fn ring(&mut self) {
        let now = Instant::now();
        while let Some((when, token)) = self.alarms.first().copied()
            && when <= now
        {
            self.alarms.pop_first();
            if let Some(caller) = self.callers.get_mut(&token) {
                let next = caller.pause(&mut self.state);
                self.after_caller(token, next);
            } else if let Some(client) = self.clients.get_mut(&token) {
                if client.is_stuck() {
                    let reason = "took nothing for ten seconds";
                    log(LogLevel::Warning, "slow-reader", &[("pid", &client.pid()), ("reason", &reason)]);
                    self.clients.remove(&token);
                } else if client.is_behind() {
                    self.alarms.insert((now + PATIENCE, token));
                }
            }
        }
    }
}
