//! A connection to a server that speaks Cap'n Proto, with one deadline for all.

use super::capnp::{self, LONGEST, Message};
use super::rpc::{self, RpcError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The deadline is over.
    #[error("did not answer in time")]
    Late,
    /// The connection cannot be made, or broke.
    #[error("cannot be reached: {0}")]
    Broken(#[from] Errno),
    /// The other end closed the connection.
    #[error("closed the connection")]
    Closed,
    /// The answer is none.
    #[error(transparent)]
    Rpc(#[from] RpcError),
}

/// A connection, and the bytes that have arrived.
pub struct InspectorClient {
    socket: OwnedFd,
    deadline: Instant,
    buffer: Vec<u8>,
    questions: u32,
}

/// The question that asks for the server's object.
const BOOTSTRAP: u32 = 0;

impl InspectorClient {
    /// Connects to a TCP port.
    pub fn over_tcp(address: SocketAddr, deadline: Instant) -> Result<InspectorClient, AskError> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        InspectorClient::connected(family, deadline, |socket| net::connect(socket, &address))
    }

    /// Connects to a socket in the file system.
    pub fn over_unix(path: &Path, deadline: Instant) -> Result<InspectorClient, AskError> {
        let address = SocketAddrUnix::new(path)?;
        InspectorClient::connected(AddressFamily::UNIX, deadline, |socket| net::connect(socket, &address))
    }

    fn connected(
        family: AddressFamily,
        deadline: Instant,
        connect: impl Fn(&OwnedFd) -> Result<(), Errno>,
    ) -> Result<InspectorClient, AskError> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
        let client = InspectorClient { socket, deadline, buffer: Vec::new(), questions: BOOTSTRAP };
        loop {
            match connect(&client.socket) {
                Ok(()) => return Ok(client),
                Err(Errno::INPROGRESS) => break,
                // The queue of a unix socket is full.
                Err(Errno::AGAIN) => {
                    client.left()?;
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        client.wait(PollFlags::OUT)?;
        net::sockopt::socket_error(&client.socket)??;
        Ok(client)
    }

    /// The address at our end of a TCP connection.
    pub fn address(&self) -> Option<SocketAddr> {
        net::getsockname(&self.socket).ok()?.try_into().ok()
    }

    /// The process that listens at the other end of a unix socket, and whose it is.
    pub fn peer(&self) -> Option<u32> {
        net::sockopt::socket_peercred(&self.socket).ok()?.pid.as_raw_nonzero().get().try_into().ok()
    }

    /// Asks for the object whose methods can be called.
    pub fn bootstrap(&mut self) -> Result<(), AskError> {
        self.send(&rpc::bootstrap(BOOTSTRAP))?;
        self.answer(BOOTSTRAP).map(drop)
    }

    /// Calls a method without parameters. The message has the answer to the question.
    pub fn call(&mut self, interface: u64, method: u16) -> Result<(Vec<u8>, u32), AskError> {
        self.questions += 1;
        let question = self.questions;
        self.send(&rpc::call(question, BOOTSTRAP, interface, method))?;
        let message = self.answer(question)?;
        self.send(&rpc::finish(question))?;
        Ok((message, question))
    }

    /// Reads up to the answer to a question. Other messages are passed over.
    fn answer(&mut self, question: u32) -> Result<Vec<u8>, AskError> {
        loop {
            let bytes = self.receive()?;
            let message = Message::new(&bytes).map_err(RpcError::from)?;
            if rpc::results(&message, question)?.is_some() {
                return Ok(bytes);
            }
        }
    }

    /// The next message, whole.
    fn receive(&mut self) -> Result<Vec<u8>, AskError> {
        loop {
            let length = capnp::length(&self.buffer).map_err(RpcError::from)?;
            if let Some(length) = length.filter(|length| *length <= self.buffer.len()) {
                let rest = self.buffer.split_off(length);
                return Ok(std::mem::replace(&mut self.buffer, rest));
            }
            self.wait(PollFlags::IN)?;
            // A message is known to be short enough as soon as its header is there.
            self.buffer.reserve((64 << 10).min(LONGEST));
            match rustix::io::read(&self.socket, rustix::buffer::spare_capacity(&mut self.buffer)) {
                Ok(0) => return Err(AskError::Closed),
                Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn send(&self, mut bytes: &[u8]) -> Result<(), AskError> {
        while !bytes.is_empty() {
            match net::send(&self.socket, bytes, net::SendFlags::NOSIGNAL) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT)?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The time that is left.
    fn left(&self) -> Result<Duration, AskError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(AskError::Late) } else { Ok(left) }
    }

    fn wait(&self, flags: PollFlags) -> Result<(), AskError> {
        loop {
            let left = Timespec::try_from(self.left()?).ok();
            match poll(&mut [PollFd::new(&self.socket, flags)], left.as_ref()) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}
