//! The books of the processes of a snapshot, with all their buffers.

use model::{Fault, Snapshot};
use show::memory::gather::Kept;

/// Reads the book of every process that keeps one. What cannot be read becomes a fault.
pub fn read(snapshot: &mut Snapshot) -> Vec<Kept> {
    let mut kept = Vec::new();
    for process in snapshot.processes.iter().filter(|process| process.agent.is_some()) {
        match sources::whole_book(process.pid) {
            Ok(Some((book, table))) => {
                kept.push(Kept { pid: process.pid, memory: sources::process_memory(&book, Some(&table)) });
            }
            // It has ended since.
            Ok(None) => {}
            Err(reason) => {
                // That the process is gone is no fault of anybody.
                if !reason.starts_with("there is no process") {
                    snapshot.faults.push(Fault::new(format!("the buffers of process {}", process.pid), reason));
                }
            }
        }
    }
    kept
}
