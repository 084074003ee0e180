//! A connection of a client of the proof of concept: an instrumented tt-metal, its Python client, its monitor.

use super::live_processes::Key;
use super::outbox::Outbox;
use super::service_state::ServiceState;
use alerts::log::{LogLevel, log};
use ledger::poc::{AccountRefusal, FrameError, Length, Operation, PocAnswer, PocRequest, Splitter};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

pub struct PocConnection {
    pub socket: OwnedFd,
    splitter: Splitter,
    pub peer: PocPeer,
    /// Whether it is waited for to read its answers.
    pub was_behind: bool,
    /// Its user has too many connections. It is not closed, since the signal of a broken pipe would end the program that
    /// reports: what it sends is read, and not counted.
    is_over_limit: bool,
}

/// Who speaks, and what there is to say to it.
pub struct PocPeer {
    /// As the kernel says.
    pid: u32,
    pub uid: u32,
    /// As it calls itself, in its own PID namespace.
    inner_pid: u32,
    /// Absent when it was gone before it could be known.
    pub key: Option<Key>,
    /// Who sent the last bytes, where the kernel says so: a child may use the connection of its parent.
    sender: (Option<u32>, Option<Key>),
    may_speak_for_others: bool,
    /// The last process that it spoke for.
    other: Option<(i32, Key)>,
    outbox: Outbox,
    /// What was logged about it, once each.
    remarked: BTreeSet<&'static str>,
    /// Messages that changed nothing because they were not understood or beyond a limit, and answers that it left unread.
    ignored: u64,
    unanswered: u64,
}

/// What becomes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterMessage {
    Stay,
    /// Half of what may be a whole message is there: a pause decides.
    Pause,
    Close,
}

/// As many bytes of answers as a client may leave unread. It is not sent more.
const UNREAD: usize = 256 << 10;
/// How often one connection is read from before the others have their turn.
const TURNS: usize = 2;

impl PocConnection {
    /// A new connection, with the pid and user that the kernel reports.
    pub fn new(socket: OwnedFd, pid: u32, uid: u32, is_over_limit: bool, state: &mut ServiceState) -> PocConnection {
        let key = if is_over_limit { None } else { state.know(pid) };
        let live = key.and_then(|key| state.processes.all.get_mut(&key));
        let inner_pid = live.as_ref().map_or(pid, |live| live.identity.inner_pid);
        if let Some(live) = live {
            live.connections += 1;
        }
        let peer = PocPeer {
            pid,
            uid,
            inner_pid,
            key,
            sender: (None, key),
            // The pids that root says in a container are the container's.
            may_speak_for_others: uid == 0 && inner_pid == pid,
            other: None,
            outbox: Outbox::default(),
            remarked: BTreeSet::new(),
            ignored: 0,
            unanswered: 0,
        };
        PocConnection { socket, splitter: Splitter::default(), peer, was_behind: false, is_over_limit }
    }

    /// Whether answers wait to be sent.
    pub fn is_behind(&self) -> bool {
        !self.peer.outbox.is_empty()
    }

    /// Reads what there is, up to a limit, and answers.
    pub fn read(&mut self, buffer: &mut [u8], state: &mut ServiceState) -> AfterMessage {
        for _ in 0..TURNS {
            match receive(&self.socket, &mut *buffer) {
                Ok((0, _)) => {
                    // Nothing follows: its last message is whole.
                    self.pause(state);
                    return AfterMessage::Close;
                }
                Ok((bytes, sender)) => {
                    let peer = &mut self.peer;
                    if self.is_over_limit {
                        peer.ignored += (bytes as u64).div_ceil(Length::Long.bytes() as u64);
                        break;
                    }
                    if peer.sender.0 != sender {
                        // Where another process goes on, the last message of the one before has ended.
                        self.splitter.pause(|request, length| peer.says(request, length, state));
                    }
                    peer.meet(sender, state);
                    self.splitter.feed(&buffer[..bytes], |request, length| peer.says(request, length, state));
                    // What another process has sent comes by itself.
                    let is_own = sender.is_none_or(|sender| sender == self.peer.pid);
                    if bytes < buffer.len() && is_own && !self.splitter.is_waiting() {
                        break;
                    }
                }
                Err(Errno::AGAIN | Errno::INTR) => break,
                Err(_) => return AfterMessage::Close,
            }
        }
        self.next()
    }

    /// Nothing has come for a while.
    pub fn pause(&mut self, state: &mut ServiceState) -> AfterMessage {
        let peer = &mut self.peer;
        peer.meet(peer.sender.0, state);
        self.splitter.pause(|request, length| peer.says(request, length, state));
        self.next()
    }

    fn next(&mut self) -> AfterMessage {
        // Who takes no answers may have more to report.
        if self.peer.outbox.send(&self.socket).is_err() {
            self.peer.outbox = Outbox::default();
        }
        if self.splitter.is_waiting() { AfterMessage::Pause } else { AfterMessage::Stay }
    }

    /// Says what was left out of it.
    pub fn close(self) -> Option<Key> {
        let PocPeer { pid, key, ignored, unanswered, .. } = self.peer;
        if ignored + unanswered > 0 {
            log(LogLevel::Warning, "ignored", &[("pid", &pid), ("messages", &ignored), ("questions", &unanswered)]);
        }
        key
    }
}

impl PocPeer {
    /// Makes sure that whoever sent a message still lives before anything is entered for it.
    fn meet(&mut self, sender: Option<u32>, state: &mut ServiceState) {
        let lives = |key: &Key| state.processes.all.contains_key(key);
        self.key = self.key.filter(lives);
        let known = self.sender.1.filter(lives).filter(|_| self.sender.0 == sender);
        let key = match sender {
            Some(pid) if pid != self.pid => known.or_else(|| state.know(pid)),
            _ => self.key,
        };
        self.sender = (sender, key);
    }

    fn says(&mut self, request: Result<PocRequest, FrameError>, length: Length, state: &mut ServiceState) {
        let request = match request {
            Ok(request) => request,
            Err(error) => {
                self.ignored += 1;
                return self.remark("mistake", &[("pid", &{ self.pid }), ("reason", &error)]);
            }
        };
        let device = request.device;
        match request.operation {
            Operation::Allocate(_) | Operation::Free(_) => self.enter(&request, state),
            Operation::Query | Operation::DeviceInfo if self.outbox.waiting > UNREAD => {
                self.unanswered += 1;
                self.remark("slow-reader", &[("pid", &{ self.pid }), ("unread_bytes", &{ self.outbox.waiting })]);
            }
            Operation::Query => {
                self.outbox.push(PocAnswer::Allocated { device, bytes: state.allocated(device) }.encode(length));
            }
            Operation::DeviceInfo => {
                self.outbox.push(PocAnswer::Device { device, info: state.device_info(device) }.encode(length));
            }
            Operation::DumpRemaining => state.print_remaining(false),
            Operation::DumpKernels => state.print_remaining(true),
            Operation::HostMemory => {}
        }
    }

    fn enter(&mut self, request: &PocRequest, state: &mut ServiceState) {
        let Some(key) = self.whose(request.pid, state) else { return };
        let result = if request.device < 0 {
            Err(format!("there is no device {}", request.device))
        } else {
            let user = state.processes.all.get(&key).and_then(|live| live.identity.uid);
            match state.accounts.apply(key, user.unwrap_or(self.uid), request) {
                // It may have been allocated before the service was there.
                Ok(()) | Err(AccountRefusal::Unknown(_)) => Ok(()),
                Err(refusal) => Err(refusal.to_string()),
            }
        };
        if let Err(reason) = result {
            self.ignored += 1;
            self.remark("refused", &[("pid", &key.0), ("reason", &reason)]);
        }
    }

    /// Logs a warning, the first time.
    fn remark(&mut self, event: &'static str, fields: &[(&str, &dyn Display)]) {
        if self.remarked.insert(event) {
            log(LogLevel::Warning, event, fields);
        }
    }

    /// Whose message it is. What it claims counts for root only; a process that calls itself by its own number does not lie.
    fn whose(&mut self, claimed: i32, state: &mut ServiceState) -> Option<Key> {
        let number = claimed as u32;
        let is_sender = self.sender.0 == Some(number);
        if claimed <= 0 || is_sender || number == self.pid || number == self.inner_pid {
            return self.sender.1;
        }
        if let Some((_, key)) =
            self.other.filter(|(other, key)| *other == claimed && state.processes.all.contains_key(key))
        {
            return Some(key);
        }
        if let Some(key) = self.may_speak_for_others.then(|| state.know(number)).flatten() {
            self.other = Some((claimed, key));
            return Some(key);
        }
        // A late message for a process that has exited is ignored.
        if self.other.is_some_and(|(other, _)| other == claimed) {
            return None;
        }
        let reason = "counted for the process that sent it";
        self.remark("wrong-pid", &[("pid", &{ self.pid }), ("claimed", &claimed), ("reason", &reason)]);
        self.sender.1
    }
}

/// Reads bytes of one process, and returns its pid as the kernel says: a forked child sends through the connection of its parent.
fn receive(socket: &OwnedFd, into: &mut [u8]) -> Result<(usize, Option<u32>), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let message = recvmsg(socket, &mut [IoSliceMut::new(into)], &mut beside, flags)?;
    let sender = beside.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmCredentials(sender) => Some(sender.pid.as_raw_nonzero().get() as u32),
        _ => None,
    });
    Ok((message.bytes, sender))
}
