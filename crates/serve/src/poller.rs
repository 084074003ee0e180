//! Waiting for all sockets and processes at once.

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::{Errno, Result};
use std::cell::Cell;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// What tells one thing that is waited for from all others, closed ones included.
pub type Token = u64;

/// Waits. What is closed is no longer waited for.
pub struct Poller {
    epoll: OwnedFd,
    next: Cell<Token>,
}

impl Poller {
    pub fn new() -> Result<Poller> {
        Ok(Poller { epoll: epoll::create(CreateFlags::CLOEXEC)?, next: Cell::new(1) })
    }

    /// Waits for something to read from now on.
    pub fn watch(&self, what: impl AsFd) -> Result<Token> {
        let token = self.next.replace(self.next.get() + 1);
        epoll::add(&self.epoll, what, EventData::new_u64(token), EventFlags::IN)?;
        Ok(token)
    }

    /// Waits for other things from now on.
    pub fn change(&self, what: impl AsFd, token: Token, reading: bool, writing: bool) -> Result<()> {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, reading);
        flags.set(EventFlags::OUT, writing);
        epoll::modify(&self.epoll, what, EventData::new_u64(token), flags)
    }

    pub fn wait(&self, ready: &mut Vec<Token>, time: Option<Duration>) -> Result<()> {
        let time = time.map(|left| Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() });
        let mut events: Vec<Event> = Vec::with_capacity(256);
        ready.clear();
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), time.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error),
        }
        ready.extend(events.iter().map(|event| event.data.u64()));
        Ok(())
    }
}

/// However many signals came in the meantime, they count as one.
pub fn drain(mut pipe: &UnixStream) {
    while matches!(pipe.read(&mut [0; 64]), Ok(1..)) {}
}
