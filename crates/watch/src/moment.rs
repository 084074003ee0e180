//! One moment of a machine: a snapshot, and the details that are shown besides.

use crate::events::Observation;
use crate::machine::Machine;
use crate::news::EXITS;
use model::{ExitRecord, Snapshot};
use sources::About;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// A sample, and the details that its view needs.
#[derive(Debug)]
pub struct Moment {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// Where memory went, buffers included; only while that is shown.
    pub memory: Option<show::memory::view::View>,
    /// More about the one process that is shown.
    pub process: Option<ProcessDetail>,
    /// Processes that exited in the last minutes.
    pub exits: Vec<ExitRecord>,
    /// What was before the first moment, the earliest first, where that is known.
    pub past: Vec<Snapshot>,
    /// Why there is nothing to show from the start: no driver, no device.
    pub nothing: Option<anyhow::Error>,
}

/// Details of one process.
#[derive(Debug)]
pub struct ProcessDetail {
    /// Process id.
    pub pid: u32,
    /// What the kernel says of it.
    pub about: About,
    /// Its largest buffers.
    pub buffers: Vec<show::memory::view::Buffer>,
}

impl ProcessDetail {
    /// A process of another machine, of which this one knows nothing.
    pub fn remote(pid: u32, buffers: Vec<show::memory::view::Buffer>) -> ProcessDetail {
        ProcessDetail { pid, about: About::default(), buffers }
    }
}

/// Which details are wanted besides the snapshot.
#[derive(Debug, Default)]
pub struct DetailWishes {
    memory: AtomicBool,
    /// Zero for no process.
    process: AtomicU32,
    /// Whether rates are shown.
    rates: AtomicBool,
}

impl Default for Moment {
    fn default() -> Moment {
        Moment::of(Snapshot::empty())
    }
}

impl Moment {
    /// A snapshot without details.
    pub fn of(snapshot: Snapshot) -> Moment {
        Moment { snapshot, memory: None, process: None, exits: Vec::new(), past: Vec::new(), nothing: None }
    }

    /// The part that events are found in.
    pub fn observation(&self) -> Observation<'_> {
        Observation { snapshot: &self.snapshot, exits: &self.exits }
    }
}

impl DetailWishes {
    /// Says what is wanted from now on. Whether that is more than before.
    pub fn set(&self, memory: bool, process: Option<u32>, rates: bool) -> bool {
        let process = process.unwrap_or(0);
        let had_memory = self.memory.swap(memory, Relaxed);
        let had_process = self.process.swap(process, Relaxed);
        let had_rates = self.rates.swap(rates, Relaxed);
        memory && !had_memory || process != 0 && process != had_process || rates && !had_rates
    }
}

/// How many of the largest buffers: of the machine, and of one process.
const BUFFERS: usize = 1000;

/// Takes a sample, with the details that are wanted. Runs in the sampling thread.
pub fn take(machine: &mut Machine, wishes: &DetailWishes) -> Moment {
    machine.set_rates_watched(wishes.rates.load(Relaxed));
    let mut snapshot = machine.sample();
    let memory = wishes.memory.load(Relaxed).then(|| machine.memory_view(&mut snapshot, None, BUFFERS));
    let pid = Some(wishes.process.load(Relaxed)).filter(|pid| *pid != 0);
    let process = pid.map(|pid| ProcessDetail {
        pid,
        about: sources::about(pid),
        buffers: machine.buffers_of(&snapshot, pid, BUFFERS),
    });
    let exits = machine.service().and_then(|service| service.exits(EXITS)).unwrap_or_default();
    Moment { snapshot, memory, process, exits, past: Vec::new(), nothing: None }
}
