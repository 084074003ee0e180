//! Where the memory of a machine went, at the moment of a snapshot.

use crate::machine::Machine;
use crate::memory::{ask, books, of_process};
use model::Snapshot;
use show::memory::gather;
use show::memory::view::{Buffer, Death, View};

/// Where memory went at the moment of a snapshot that was taken just now, with so many of the largest buffers. `all` has the other
/// devices, where some were chosen.
pub fn memory_view(machine: &mut Machine, snapshot: &mut Snapshot, all: Option<&Snapshot>, most: usize) -> View {
    let served = machine.service().and_then(|mut service| ask(&mut service, snapshot, all.is_none(), most));
    let (buffers, deaths, unlisted) = served.unwrap_or_else(|| without_service(machine, snapshot, all, most));
    View { unlisted_buffers: unlisted, ..gather::view(snapshot, buffers, deaths) }
}

/// The buffers without a service. The processes of another machine cannot be read here.
fn without_service(
    machine: &Machine,
    snapshot: &mut Snapshot,
    all: Option<&Snapshot>,
    most: usize,
) -> (Vec<Buffer>, Vec<Death>, u64) {
    if machine.is_remote() { Default::default() } else { from_books(snapshot, all, most) }
}

/// The buffers on the devices of a snapshot, without a service. `all` has the other devices, where some were chosen.
fn from_books(snapshot: &mut Snapshot, all: Option<&Snapshot>, most: usize) -> (Vec<Buffer>, Vec<Death>, u64) {
    let books = books::read(snapshot);
    gather::adopt(snapshot, all, &books);
    let buffers = gather::buffers(snapshot, all.unwrap_or(snapshot), &books, most);
    let without_room = books.iter().map(|kept| kept.memory.unlisted_buffers).fold(0, u64::saturating_add);
    let live: usize = books.iter().filter_map(|kept| kept.memory.buffers.as_ref()).map(Vec::len).sum();
    let left_out = if buffers.len() == most { live.saturating_sub(most) } else { 0 };
    let unlisted = without_room.saturating_add(left_out as u64);
    (buffers, Vec::new(), unlisted)
}

/// So many of the largest buffers of one process.
pub fn buffers_of(machine: &mut Machine, snapshot: &Snapshot, pid: u32, most: usize) -> Vec<Buffer> {
    let served = machine.service().and_then(|mut service| of_process(&mut service, snapshot, pid, most));
    served.unwrap_or_else(|| {
        if machine.is_remote() {
            return Vec::new();
        }
        let mut its = snapshot.clone();
        its.processes.retain(|process| process.pid == pid);
        let books = books::read(&mut its);
        gather::buffers(&its, snapshot, &books, most)
    })
}
