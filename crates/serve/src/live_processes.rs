//! The running processes that the service knows: each with a pidfd, which reports its exit and cannot mean another process.

use super::poller::{Poller, Token};
use model::Held;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use sources::{Identity, WaitStatus};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

/// Pid and start: what tells a process from all others, exited ones included.
pub type Key = (u32, u64);

pub struct LiveProcess {
    pub identity: Identity,
    pub end: OwnedFd,
    token: Token,
    pub book: Option<Arc<File>>,
    /// What the last sample says that it holds; absent when the sample does not have it.
    pub sampled: Option<Vec<Held>>,
    pub connections: u32,
    /// Since when it is known.
    pub since: Instant,
}

#[derive(Default)]
pub struct Processes {
    pub all: BTreeMap<Key, LiveProcess>,
    /// The process that had a pid last.
    pub by_pid: HashMap<u32, Key>,
    /// Whose exit a token reports.
    pub by_token: HashMap<Token, Key>,
}

impl Processes {
    /// The process that has this pid now. `None` when there is none.
    pub fn know(&mut self, pid: u32, poller: &Poller) -> Option<Key> {
        if let Some(key) = self.by_pid.get(&pid)
            && self.all.get(key).is_some_and(|live| lives(&live.end))
        {
            return Some(*key);
        }
        let raw = Pid::from_raw(pid.cast_signed())?;
        // Linux before 5.10 knows no flags.
        let end = pidfd_open(raw, PidfdFlags::NONBLOCK).or_else(|_| pidfd_open(raw, PidfdFlags::empty())).ok()?;
        let identity = sources::identify(pid)?;
        // It lives after it was read: so what was read is of this process, and of no other that had its number before.
        if !lives(&end) {
            return None;
        }
        let key = (pid, identity.start_ticks);
        let token = poller.watch(&end).ok()?;
        let since = Instant::now();
        self.all.insert(key, LiveProcess { identity, end, token, book: None, sampled: None, connections: 0, since });
        self.by_pid.insert(pid, key);
        self.by_token.insert(token, key);
        Some(key)
    }

    pub fn remove(&mut self, key: Key) -> Option<LiveProcess> {
        let live = self.all.remove(&key)?;
        self.by_token.remove(&live.token);
        if self.by_pid.get(&key.0) == Some(&key) {
            self.by_pid.remove(&key.0);
        }
        Some(live)
    }
}

impl LiveProcess {
    /// How it ended, also when its parent has waited for it before we could look.
    pub fn ended(&self, key: Key) -> Option<WaitStatus> {
        sources::wait_status(key.0, key.1).or_else(|| sources::reaped_status(&self.end))
    }
}

/// Whether a process has not ended, by its pidfd.
pub fn lives(end: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(end, PollFlags::IN)], Some(&now)) == Ok(0)
}
