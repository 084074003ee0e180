//! Where memory went: from a service, and from the books of agents.

pub mod books;
mod served;

use crate::client::MemoryService;
use model::Snapshot;
pub use served::{MemoryReply, ask, of_process};
use show::memory::gather;
use show::memory::view::View;

/// Where the memory of another machine went, from its service. `all` if these are all devices that it has.
pub fn served_view(service: &mut dyn MemoryService, snapshot: &mut Snapshot, all: bool, most: usize) -> View {
    let (buffers, deaths, unlisted) = ask(service, snapshot, all, most).unwrap_or_default();
    View { unlisted_buffers: unlisted, ..gather::view(snapshot, buffers, deaths) }
}
