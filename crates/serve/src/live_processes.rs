//! The running processes that the service knows: each with a pidfd, which reports its exit and cannot mean another process.

use super::poller::{Poller, Token};
use model::{Held, Source};
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
    known: Arc<KnownProcess>,
    pub end: OwnedFd,
    token: Token,
    pub connections: u32,
    /// Its command line was asked for, or its book: both are read by another thread.
    pub asked_command: bool,
    pub asked_book: bool,
}

/// What is known of a process. Whoever makes a long answer shares it.
#[derive(Clone)]
pub struct KnownProcess {
    pub identity: Identity,
    pub book: Option<Arc<File>>,
    /// What the last sample says that it holds; absent when the sample does not have it.
    pub sampled: Option<Vec<Held>>,
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
        if let Some(key) = self.by_pid.get(&pid) {
            if self.all.get(key).is_some_and(|live| lives(&live.end)) {
                return Some(*key);
            }
        }
        let raw = Pid::from_raw(pid as i32)?;
        // Linux before 5.10 knows no flags.
        let end = pidfd_open(raw, PidfdFlags::NONBLOCK).or_else(|_| pidfd_open(raw, PidfdFlags::empty())).ok()?;
        let identity = sources::identify(pid)?;
        // It lives after it was read: so what was read is of this process, and of no other that had its number before.
        if !lives(&end) {
            return None;
        }
        let key = (pid, identity.start_ticks);
        let token = poller.watch(&end).ok()?;
        let known = Arc::new(KnownProcess { identity, book: None, sampled: None, since: Instant::now() });
        let live = LiveProcess { known, end, token, connections: 0, asked_command: false, asked_book: false };
        self.all.insert(key, live);
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

impl KnownProcess {
    /// Whether it has a book that the sampler does not see.
    pub fn has_loose_book(&self) -> bool {
        let mut sampled = self.sampled.iter().flatten();
        self.book.is_some() && !sampled.any(|held| held.source == Some(Source::Exact))
    }
}

impl std::ops::Deref for LiveProcess {
    type Target = KnownProcess;

    fn deref(&self) -> &KnownProcess {
        &self.known
    }
}

impl LiveProcess {
    /// To be changed. Whoever shares it keeps what was.
    pub fn change(&mut self) -> &mut KnownProcess {
        Arc::make_mut(&mut self.known)
    }

    pub fn share(&self) -> Arc<KnownProcess> {
        self.known.clone()
    }

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
