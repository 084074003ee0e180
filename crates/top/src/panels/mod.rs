//! One panel, one file. `draw` only looks; `act`, `press` and `mouse` change the state.

pub mod charts;
pub mod detail;
pub mod devices;
pub mod events;
pub mod filter;
pub mod fleet;
pub mod header;
pub mod help;
pub mod memory;
pub mod mesh;
pub mod processes;
pub mod setup;
pub mod signals;
pub mod sort;
pub mod status;
