//! What the traces of this process run when they are replayed.

use super::runtime_ids;
use ledger::book::activity::Launch;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The traces that were recorded and not released.
pub struct Traces {
    traces: Mutex<Vec<RecordedTrace>>,
}

/// The programs of a trace.
pub struct RecordedTrace {
    id: u32,
    /// Each operation, and how often.
    operations: Vec<(Option<u16>, u64)>,
    runtime_ids: Vec<u16>,
    last: Launch,
}

impl Traces {
    pub const fn new() -> Traces {
        Traces { traces: Mutex::new(Vec::new()) }
    }

    /// Recording begins. A trace of the same number is recorded again.
    pub fn begin(&self, id: u32) {
        let mut traces = self.lock();
        remove(&mut traces, id);
        let operations = Vec::with_capacity(32);
        traces.push(RecordedTrace { id, operations, runtime_ids: Vec::with_capacity(1024), last: Launch::default() });
    }

    /// A program was recorded.
    pub fn add(&self, id: u32, launch: Launch) {
        let mut traces = self.lock();
        let Some(trace) = traces.iter_mut().find(|trace| trace.id == id) else { return };
        match trace.operations.iter_mut().find(|(operation, _)| *operation == launch.operation) {
            Some((_, count)) => *count += 1,
            None => trace.operations.push((launch.operation, 1)),
        }
        if let Some(id) = launch.runtime_id {
            trace.runtime_ids.push(id);
            runtime_ids::pinned(id, launch.operation);
        }
        trace.last = launch;
    }

    /// What a replay runs: each operation and how often, and the last program.
    pub fn with<T>(&self, id: u32, each: impl FnOnce(&[(Option<u16>, u64)], Launch) -> T) -> T {
        let traces = self.lock();
        match traces.iter().find(|trace| trace.id == id) {
            Some(trace) => each(&trace.operations, trace.last),
            None => each(&[], Launch::default()),
        }
    }

    /// The runtime ids of the programs that a replay runs.
    pub fn each_id(&self, id: u32, each: impl FnMut(u16)) {
        let traces = self.lock();
        let trace = traces.iter().find(|trace| trace.id == id);
        trace.into_iter().flat_map(|trace| &trace.runtime_ids).copied().for_each(each);
    }

    pub fn release(&self, id: u32) {
        remove(&mut self.lock(), id);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RecordedTrace>> {
        self.traces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn remove(traces: &mut Vec<RecordedTrace>, id: u32) {
    if let Some(at) = traces.iter().position(|trace| trace.id == id) {
        traces.swap_remove(at).runtime_ids.into_iter().for_each(runtime_ids::released);
    }
}
