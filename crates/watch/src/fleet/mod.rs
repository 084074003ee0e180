//! Other machines: several seen at once, each with its own state, whether it answers or not.
//!
//! What is known is plain data, a [`Fleet`] of [`HostView`]s. `watch.rs` keeps it up to date in threads of its own; `http.rs` asks
//! services (`ttmon serve`), `ssh.rs` starts `ttmon` on the far side, `prometheus/` asks one Prometheus for all of them.

#[cfg(any(test, feature = "examples"))]
pub mod example;
pub mod far;
pub mod http;
mod past;
pub mod place;
pub mod prometheus;
mod push;
mod ssh;
pub mod summary;
pub mod watch;

use crate::client::Death;
use crate::events::Event;
use model::{Fault, Snapshot, State};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// Several machines at one moment.
#[derive(Debug, Default, Clone)]
pub struct Fleet {
    /// In the order in which they were named.
    pub hosts: Vec<HostView>,
}

/// One of them.
#[derive(Debug, Clone)]
pub struct HostView {
    /// What people call it; no two have the same.
    pub name: String,
    /// Where it is: a URL, or a name that ssh knows.
    pub place: String,
    /// Whether it answers.
    pub state: Reach,
    /// What it told last. It stays when the machine does not answer any more.
    pub snapshot: Option<Arc<Snapshot>>,
    /// How long ago that came.
    pub age: Option<Duration>,
    /// What its own rules say.
    pub alerts: Vec<Alert>,
    /// More, when it is the one that somebody looks at.
    pub closer: Option<Arc<Closer>>,
}

/// Whether a machine answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// It was asked for the first time, and there is no answer yet.
    Waiting,
    /// It answers.
    Reached,
    /// It does not answer.
    Unreachable {
        /// For people.
        why: String,
        /// For how long.
        since: Duration,
    },
}

/// Something that one of its rules has found.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Alert {
    /// What it is called.
    pub name: String,
    /// `info`, `warning` or `critical`.
    pub severity: String,
    /// `pending`, `firing` or `resolved`.
    pub state: String,
    /// Which one, where it is one.
    #[serde(default)]
    pub device: Option<String>,
    /// For people.
    #[serde(default)]
    pub text: String,
}

/// What is only asked of the machine that somebody looks at.
#[derive(Debug, Default)]
pub struct Closer {
    /// Where memory went, when that was wished for.
    pub memory: Option<show::memory::view::View>,
    /// The largest buffers of one process, when that was wished for.
    pub process: Option<(u32, Vec<show::memory::view::Buffer>)>,
    /// Processes that have ended.
    pub deaths: Vec<Death>,
    /// What was measured before anybody looked, the oldest first.
    pub past: Arc<Vec<Snapshot>>,
    /// What has happened before, likewise.
    pub events: Arc<Vec<Event>>,
}

/// What somebody wants to know besides the snapshot.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Wish {
    /// Which machine is looked at, by its name.
    pub host: String,
    /// Where memory went.
    pub memory: bool,
    /// The process that is looked at.
    pub process: Option<u32>,
    /// How far the past is wished for.
    pub past: Duration,
}

impl HostView {
    /// One of which nothing is known yet.
    pub fn new(name: impl Into<String>, place: impl Into<String>) -> HostView {
        HostView {
            name: name.into(),
            place: place.into(),
            state: Reach::Waiting,
            snapshot: None,
            age: None,
            alerts: Vec::new(),
            closer: None,
        }
    }

    /// Why it does not answer.
    pub fn trouble(&self) -> Option<&str> {
        match &self.state {
            Reach::Unreachable { why, .. } => Some(why),
            Reach::Waiting | Reach::Reached => None,
        }
    }

    /// What it told last, as it is to be shown: of a machine that does not answer any more no device is said to be well.
    pub fn aged(&self) -> Option<Snapshot> {
        let mut snapshot = Snapshot::clone(self.snapshot.as_deref()?);
        if let Some(why) = self.trouble() {
            let age = self.age.unwrap_or_default().as_secs_f64();
            for device in &mut snapshot.devices {
                device.sample_age_seconds = device.sample_age_seconds.map(|before| before + age);
                if matches!(device.state, State::Ok | State::Resetting) {
                    device.state = State::Silent;
                }
            }
            // Without the age, which would make a new fault of it every second.
            snapshot.faults.insert(0, Fault::new(&self.place, format!("does not answer: {why}")));
        }
        Some(snapshot)
    }
}

impl Alert {
    /// Whether it fires now.
    pub fn is_firing(&self) -> bool {
        self.state == "firing"
    }

    /// Whether it is of the worst kind.
    pub fn is_critical(&self) -> bool {
        self.severity == "critical"
    }
}
