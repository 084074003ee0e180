//! Where memory went, as a service tells and as books say.

pub mod books;
mod served;

use crate::client::MemoryService;
use model::Snapshot;
pub use served::{Told, ask, of_process};
use show::memory::gather;
use show::memory::view::{Buffer, View};

/// Where the memory of another machine went, as its service tells. `all` if these are all devices that it has.
pub fn told(service: &mut dyn MemoryService, snapshot: &mut Snapshot, all: bool, most: usize) -> View {
    let (buffers, deaths, unlisted) = ask(service, snapshot, all, most).unwrap_or_default();
    View { unlisted_buffers: unlisted, ..gather::view(snapshot, buffers, deaths) }
}

/// So many of the largest buffers of one process, as a service tells.
pub fn told_of_process(
    service: &mut dyn MemoryService,
    snapshot: &Snapshot,
    pid: u32,
    most: usize,
) -> Option<Vec<Buffer>> {
    of_process(service, snapshot, pid, most)
}
