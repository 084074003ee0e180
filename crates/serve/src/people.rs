//! The living processes that the service knows: each with a descriptor that tells of its end, and cannot mean another process.

use super::poller::{Poller, Token};
use model::Held;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use sources::Identity;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Pid and start: what tells a process from all others, dead ones included.
pub type Key = (u32, u64);

/// A living process.
pub struct Person {
    pub identity: Identity,
    /// Ready when it ends.
    end: OwnedFd,
    token: Token,
    /// The book that it keeps.
    pub book: Option<Arc<File>>,
    /// What the last sample says that it holds; absent when the sample does not have it.
    pub sampled: Option<Vec<Held>>,
    /// How many of its connections are open.
    pub connections: u32,
}

/// All of them.
#[derive(Default)]
pub struct People {
    all: BTreeMap<Key, Person>,
    by_pid: HashMap<u32, Key>,
    by_token: HashMap<Token, Key>,
}

impl People {
    /// The process that has this pid now. `None` when there is none.
    pub fn know(&mut self, pid: u32, poller: &Poller) -> Option<Key> {
        if let Some(key) = self.by_pid.get(&pid)
            && self.all.get(key).is_some_and(Person::lives)
        {
            return Some(*key);
        }
        let end = pidfd_open(Pid::from_raw(pid.cast_signed())?, PidfdFlags::NONBLOCK);
        let end = end.or_else(|error| match error {
            // Linux before 5.10.
            Errno::INVAL => pidfd_open(Pid::from_raw(pid.cast_signed()).ok_or(error)?, PidfdFlags::empty()),
            _ => Err(error),
        });
        let end = end.ok()?;
        let identity = sources::identify(pid)?;
        // It lives after it was read: so what was read is of this process, and of no other that had its number before.
        if !lives(&end) {
            return None;
        }
        let key = (pid, identity.start_ticks);
        let token = poller.watch(&end).ok()?;
        self.all.insert(key, Person { identity, end, token, book: None, sampled: None, connections: 0 });
        self.by_pid.insert(pid, key);
        self.by_token.insert(token, key);
        Some(key)
    }

    pub fn get(&self, key: Key) -> Option<&Person> {
        self.all.get(&key)
    }

    pub fn get_mut(&mut self, key: Key) -> Option<&mut Person> {
        self.all.get_mut(&key)
    }

    /// Who had this pid last.
    pub fn of_pid(&self, pid: u32) -> Option<Key> {
        self.by_pid.get(&pid).copied()
    }

    /// Whose end this tells of.
    pub fn whose(&self, token: Token) -> Option<Key> {
        self.by_token.get(&token).copied()
    }

    pub fn iter(&self) -> impl Iterator<Item = (Key, &Person)> {
        self.all.iter().map(|(key, person)| (*key, person))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Key, &mut Person)> {
        self.all.iter_mut().map(|(key, person)| (*key, person))
    }

    /// Forgets one.
    pub fn remove(&mut self, key: Key) -> Option<Person> {
        let person = self.all.remove(&key)?;
        self.by_token.remove(&person.token);
        if self.by_pid.get(&key.0) == Some(&key) {
            self.by_pid.remove(&key.0);
        }
        Some(person)
    }
}

impl Person {
    /// Whether it does.
    pub fn lives(&self) -> bool {
        lives(&self.end)
    }
}

fn lives(end: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(end, PollFlags::IN)], Some(&now)) == Ok(0)
}
