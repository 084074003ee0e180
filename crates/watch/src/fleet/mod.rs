//! Other machines: several seen at once, each with its own state, whether it answers or not.
//!
//! What is known is plain data, a [`Fleet`] of [`HostView`]s. `watcher.rs` keeps it up to date in threads of its own; `http.rs` asks
//! services (`ttmon serve`), `ssh.rs` starts `ttmon` on the other machine, `prometheus/` asks one Prometheus for all of them.

#[cfg(any(test, feature = "examples"))]
pub mod example;
pub mod http;
pub mod place;
pub mod prometheus;
mod push;
pub mod remote;
mod remote_history;
pub mod settings;
mod ssh;
pub mod summary;
pub mod watcher;

use model::{Alert, Event, ExitRecord, Fault, Snapshot, State};
use std::sync::Arc;
use std::time::Duration;

/// Several machines at one moment.
#[derive(Debug, Default, Clone)]
pub struct Fleet {
    /// In the order in which they were named.
    pub hosts: Vec<HostView>,
}

/// One of them.
#[derive(Debug, Default, Clone)]
pub struct HostView {
    /// What people call it; no two have the same.
    pub name: String,
    /// Where it is: a URL, or a name that ssh knows.
    pub place: String,
    /// State of the connection.
    pub state: Reach,
    /// Its last snapshot. Kept when the machine does not answer any more.
    pub snapshot: Option<Arc<Snapshot>>,
    /// How long ago that came.
    pub age: Option<Duration>,
    /// The alerts of its own rules.
    pub alerts: Vec<Alert>,
    /// More, when it is the one that is shown.
    pub detail: Option<Arc<HostDetail>>,
}

/// State of the connection to a machine.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum Reach {
    /// It was asked for the first time, and there is no answer yet.
    #[default]
    Waiting,
    /// Its last answer came in time.
    Reached,
    /// It does not answer.
    Unreachable {
        /// For people.
        why: String,
        /// Time since the first request that failed.
        since: Duration,
    },
}

/// What is only asked of the machine that is shown.
#[derive(Debug, Default)]
pub struct HostDetail {
    /// Where memory went, when that was requested for.
    pub memory: Option<show::memory::view::View>,
    /// The largest buffers of one process, when that was requested for.
    pub process: Option<(u32, Vec<show::memory::view::Buffer>)>,
    /// Processes that exited.
    pub exits: Vec<ExitRecord>,
    /// What was measured before it was shown, the oldest first.
    pub past: Arc<Vec<Snapshot>>,
    /// What has happened before, likewise.
    pub events: Arc<Vec<Event>>,
}

/// What is requested besides the snapshot.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct DetailRequest {
    /// Which machine is shown, by its name.
    pub host: String,
    /// True to ask for memory.
    pub memory: bool,
    /// Process whose buffers are asked for.
    pub process: Option<u32>,
    /// How far the past is requested for.
    pub past: Duration,
}

impl HostView {
    /// One of which nothing is known yet.
    pub fn new(name: impl Into<String>, place: impl Into<String>) -> HostView {
        HostView { name: name.into(), place: place.into(), ..HostView::default() }
    }

    /// The reason why the machine does not answer.
    pub fn trouble(&self) -> Option<&str> {
        match &self.state {
            Reach::Unreachable { why, .. } => Some(why),
            Reach::Waiting | Reach::Reached => None,
        }
    }

    /// Its last snapshot, as it is to be shown: no device of a machine that does not answer is ok.
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
            snapshot.faults.insert(0, Fault::new(&self.place, format!("not responding: {why}")));
        }
        Some(snapshot)
    }
}
