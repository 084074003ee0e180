//! A simulated Tenstorrent machine: the files of the driver, laid in a folder and moving, and real processes at work.
//!
//! The machine is described by a [`Spec`] such as `p150x4,hang=1@5s`. Whoever reads it takes [`SimMachine::root`] for `/`,
//! and asks [`SimMachine::inject`] before each read, since a plain file cannot fail the way a device does.
//! What moves follows from the seed and the time alone.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod agent;
mod banks;
mod child;
mod counted;
mod device;
mod folder;
mod inject;
mod kernel_log;
mod kind;
mod machine;
mod motion;
mod order;
mod past;
mod plan;
pub mod region;
mod running;
mod spec;
pub mod tree;
mod umd_lock;
mod wave;
mod work;
mod worker;
mod working_chip;
mod workload;

pub use folder::is_simulated;
pub use inject::Inject;
pub use kind::BoardKind;
pub use machine::SimMachine;
pub use running::Running;
pub use spec::{DEFAULT_SPEC, Spec, SpecError};
pub use tree::telemetry_table;
pub use working_chip::{WorkingChip, job_load};
pub use workload::run_workload_if_asked;
