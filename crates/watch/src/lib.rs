//! Where snapshots come from: this machine, its service, other machines, Prometheus, recordings; and the configuration.
//!
//! [`machine`] is the one that the command line names ([`args`]); [`sampling`] takes its samples in a thread of its own. [`client`] asks
//! the service, [`fleet`] several other machines, [`record`] writes and reads files, [`black_box`] keeps the last days,
//! [`past`] finds the stretch of time that somebody names, [`incident`] what went wrong in it, and [`overlay`] reads tt-metal's own
//! results.

#![cfg_attr(any(test, feature = "examples"), allow(clippy::unwrap_used))]

pub mod args;
pub mod atomic_file;
pub mod black_box;
pub mod client;
pub mod config;
mod deep_events;
pub mod duration;
pub mod events;
pub mod exit;
pub mod exit_status;
pub mod fleet;
pub mod handover;
pub mod incident;
mod kernel_events;
mod limit_events;
pub mod machine;
pub mod memory;
pub mod moment;
pub mod news;
pub mod operations;
pub mod overlay;
pub mod past;
pub mod record;
pub mod rules;
pub mod sampling;
pub mod selection;
pub mod service_limits;
pub mod sha256;
pub mod wait;

pub use sources::{
    Access, Hugepages, Iommu, MachineSetup, PciFunction, ProcessActivity, SetupUser, SharedMemory,
    about as about_process, boot_id,
};
