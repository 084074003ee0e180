//! One moment of a machine: a snapshot, and whatever somebody looks at besides.

use crate::client::{Death, MemoryService};
use crate::events::Seen;
use crate::look;
use crate::machine::Machine;
use model::{Host, SCHEMA, Snapshot, Timestamp};
use sources::About;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// What is known of one moment.
#[derive(Debug)]
pub struct Moment {
    /// What was measured.
    pub snapshot: Snapshot,
    /// Where memory went, buffers included; only while somebody looks at it.
    pub memory: Option<show::memory::view::View>,
    /// More about the one process that somebody looks at.
    pub process: Option<Closer>,
    /// The latest deaths that the service remembers.
    pub deaths: Vec<Death>,
    /// Why there is nothing to show from the start: no driver, no device.
    pub nothing: Option<anyhow::Error>,
}

/// One process seen from closer.
#[derive(Debug)]
pub struct Closer {
    /// Its number.
    pub pid: u32,
    /// What the kernel says of it.
    pub about: About,
    /// Its largest buffers.
    pub buffers: Vec<show::memory::view::Buffer>,
}

impl Closer {
    /// A process of another machine, of which this one knows nothing.
    pub fn far(pid: u32, buffers: Vec<show::memory::view::Buffer>) -> Closer {
        Closer { pid, about: About::default(), buffers }
    }
}

/// What is wanted besides the snapshot, since somebody looks at it.
#[derive(Debug, Default)]
pub struct Wishes {
    memory: AtomicBool,
    /// Zero is nobody.
    process: AtomicU32,
}

impl Default for Moment {
    fn default() -> Moment {
        let (schema, host, taken_at) = (SCHEMA, Host::default(), Timestamp(0));
        let (devices, processes, faults, alerts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Moment::of(Snapshot { schema, taken_at, host, devices, processes, faults, alerts })
    }
}

impl Moment {
    /// A snapshot alone.
    pub fn of(snapshot: Snapshot) -> Moment {
        Moment { snapshot, memory: None, process: None, deaths: Vec::new(), nothing: None }
    }

    /// What there is to tell events from.
    pub fn seen(&self) -> Seen<'_> {
        Seen { snapshot: &self.snapshot, deaths: &self.deaths }
    }
}

impl Wishes {
    /// Says what is wanted from now on. Whether that is more than before.
    pub fn set(&self, memory: bool, process: Option<u32>) -> bool {
        let process = process.unwrap_or(0);
        let had_memory = self.memory.swap(memory, Relaxed);
        let had_process = self.process.swap(process, Relaxed);
        memory && !had_memory || process != 0 && process != had_process
    }
}

/// How many deaths are asked for with each sample.
const DEATHS: usize = 20;
/// How many of the largest buffers: of the machine, and of one process.
const BUFFERS: usize = 1000;

/// Takes a sample, and what is wished for besides. Runs in the sampling thread.
pub fn take(machine: &mut Machine, wishes: &Wishes) -> Moment {
    let mut snapshot = machine.sample();
    let memory = wishes.memory.load(Relaxed).then(|| look::look(machine, &mut snapshot, None, BUFFERS));
    let pid = Some(wishes.process.load(Relaxed)).filter(|pid| *pid != 0);
    let process = pid.map(|pid| Closer {
        pid,
        about: sources::about(pid),
        buffers: look::buffers_of(machine, &snapshot, pid, BUFFERS),
    });
    let deaths = machine.teller().and_then(|mut service| service.deaths(DEATHS)).unwrap_or_default();
    Moment { snapshot, memory, process, deaths, nothing: None }
}
