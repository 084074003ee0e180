//! Where the memory of chips went: as data ([`view`]), from a snapshot ([`gather`]), and as text ([`draw`], [`map`]).

pub mod draw;
#[cfg(any(test, feature = "examples"))]
pub mod example;
pub mod gather;
#[cfg(test)]
mod golden;
pub mod map;
pub mod view;

use model::Snapshot;
use view::View;

/// What follows from a snapshot alone: no buffers and no exited processes.
pub fn of_snapshot(snapshot: &Snapshot) -> View {
    gather::view(snapshot, Vec::new(), Vec::new())
}
