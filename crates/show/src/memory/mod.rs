//! Where the memory of chips went: as data ([`view`]), from a snapshot ([`gather`]), and as text ([`draw`]).

pub mod draw;
#[cfg(any(test, feature = "examples"))]
pub mod example;
pub mod gather;
#[cfg(test)]
mod golden;
pub mod view;

use model::Snapshot;
use view::View;

/// What a snapshot alone tells: no buffers, and nobody who died.
pub fn of_snapshot(snapshot: &Snapshot) -> View {
    gather::view(snapshot, Vec::new(), Vec::new())
}
