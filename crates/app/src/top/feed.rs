//! Where samples come from: the machine, in a thread of its own.

use crate::client::Death;
use crate::machine::Machine;
use crate::mem;
use model::{Host, SCHEMA, Snapshot, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What is known of one moment.
#[derive(Debug)]
pub struct Moment {
    pub snapshot: Snapshot,
    /// Where memory went, buffers included; only while somebody looks at it.
    pub memory: Option<mem::view::View>,
    /// The latest deaths that the service remembers.
    pub deaths: Vec<Death>,
}

impl Default for Moment {
    fn default() -> Moment {
        let (host, taken_at) = (Host::default(), Timestamp(0));
        let snapshot =
            Snapshot { schema: SCHEMA, taken_at, host, devices: Vec::new(), processes: Vec::new(), faults: Vec::new() };
        Moment { snapshot, memory: None, deaths: Vec::new() }
    }
}

/// How many deaths are asked for with each sample.
const DEATHS: usize = 20;

/// Takes a sample, and asks for the buffers when `with_memory` says so. Runs in the sampling thread.
pub fn take(machine: &mut Machine, with_memory: &Arc<AtomicBool>) -> Moment {
    let mut snapshot = machine.sample();
    let memory = with_memory.load(Relaxed).then(|| mem::look(machine, &mut snapshot));
    let deaths = machine.service().and_then(|service| service.deaths(DEATHS)).unwrap_or_default();
    Moment { snapshot, memory, deaths }
}
