//! Where samples come from: the machine, in a thread of its own.

use crate::client::Death;
use crate::machine::Machine;
use crate::mem;
use model::{Host, SCHEMA, Snapshot, Timestamp};
use sources::About;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// What is known of one moment.
#[derive(Debug)]
pub struct Moment {
    pub snapshot: Snapshot,
    /// Where memory went, buffers included; only while somebody looks at it.
    pub memory: Option<mem::view::View>,
    /// More about the one process that somebody looks at.
    pub process: Option<Closer>,
    /// The latest deaths that the service remembers.
    pub deaths: Vec<Death>,
}

/// One process seen from closer.
#[derive(Debug)]
pub struct Closer {
    pub pid: u32,
    pub about: About,
    /// Its largest buffers.
    pub buffers: Vec<mem::view::Buffer>,
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
        let (host, taken_at) = (Host::default(), Timestamp(0));
        let snapshot =
            Snapshot { schema: SCHEMA, taken_at, host, devices: Vec::new(), processes: Vec::new(), faults: Vec::new() };
        Moment::of(snapshot)
    }
}

impl Moment {
    /// A snapshot alone.
    pub fn of(snapshot: Snapshot) -> Moment {
        Moment { snapshot, memory: None, process: None, deaths: Vec::new() }
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
    let memory = wishes.memory.load(Relaxed).then(|| mem::look(machine, &mut snapshot, BUFFERS));
    let pid = Some(wishes.process.load(Relaxed)).filter(|pid| *pid != 0);
    let process = pid.map(|pid| Closer {
        pid,
        about: sources::about(pid),
        buffers: mem::buffers_of(machine, &snapshot, pid, BUFFERS),
    });
    let deaths = machine.service().and_then(|service| service.deaths(DEATHS)).unwrap_or_default();
    Moment { snapshot, memory, process, deaths }
}
