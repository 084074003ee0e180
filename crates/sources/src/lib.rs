//! The only code that reads `/sys`, `/proc`, `/dev/shm` and the kernel's log. One file per source; nothing here opens a device.
//!
//! [`Sampler`] is the way in: it asks every source and returns a [`model::Snapshot`] within a deadline, even if a read blocks. In
//! reading order:
//!
//! - `sampler`: the four steps of a sample; `inventory`, `jobs`, `pool`, `collected`, `assembly`: what they consist of,
//! - `telemetry`: one device, with the table of its [`ATTRIBUTES`]; `devices`: which devices there are,
//! - `pids`, `procs`, `maps`, `users`, `clock`: who holds a device, and what is known of a process,
//! - `cgroup`, `container_names`: its container, pod, Slurm job and unit,
//! - `books`, `book_owners`, `shm`, `device_fds`, `fdinfo`, `process_folders`, `device_memory`: sources of device memory, `locks`: of tt-umd's locks,
//! - `activity`: what a process did on its chips, out of its book,
//! - `chips`, `attribution`, `accounting`: whose memory it is, and on which chip,
//! - `inspector`: which operations a process has launched, asked on demand,
//! - `kernel_log`: what the kernel's log says about the devices, where that was asked for,
//! - `deep`, `node_opens`: what the firmware's telemetry says, which another process reads when that is asked for,
//! - `setup`: how the machine is set up, for `ttmon doctor`,
//! - `dir`, `open_files`: how files are read.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod about;
mod accounting;
mod activity;
mod assembly;
mod attribution;
mod book_owners;
mod books;
mod cgroup;
mod chips;
mod clock;
mod collected;
mod container_names;
mod deep;
mod device_fds;
mod device_memory;
mod devices;
mod dir;
mod fdinfo;
mod identify;
mod inspector;
mod inventory;
mod jobs;
mod kernel_log;
mod locks;
mod maps;
mod node_opens;
mod open_files;
mod pids;
mod pool;
mod process_folders;
mod process_memory;
mod procs;
mod sampler;
mod setup;
mod shm;
mod telemetry;
mod users;

pub use about::{About, about, boot_id, started_at};
pub use activity::{ProcessActivity, operation_list};
pub use deep::{DeepOptions, DeepReads};
pub use dir::{Inject, Root};
pub use identify::{Identity, WaitStatus, command_of, identify, open_book, reaped_status, user_name, wait_status};
pub use inspector::{InspectorRefusal, launched_operations};
pub use kernel_log::KernelLog;
pub use open_files::make_room_for_files;
pub use pool::a_read_is_stuck;
pub use process_memory::process_memory;
pub use procs::{operations_in_book, whole_book};
pub use sampler::{Options, Sampler};
pub use setup::{Access, Hugepages, Iommu, MachineSetup, PciFunction, SetupUser, SharedMemory};
pub use telemetry::FigureFilter;
pub use telemetry::attributes::{ATTRIBUTES, Attribute, Folder};

/// Decoders of foreign bytes, open to fuzzing and to property tests.
pub mod decode {
    pub use crate::cgroup::{CgroupOwner, ContainerId, parse as cgroup};
    pub use crate::container_names::{names_in, podman_name};
    pub use crate::fdinfo::{FdInfo, parse as fdinfo};
    pub use crate::inspector::decode as inspector;
    pub use crate::kernel_log::meaning::{Meaning, PciPlace, PciPlaces, of as kernel_meaning};
    pub use crate::kernel_log::record::{Record, parse as kernel_record, split_off as split_kernel_records};
    pub use crate::locks::owner_of;
    pub use crate::maps::{Maps, parse as maps};
    pub use crate::pids::{Holders, parse as pids};
    pub use crate::procs::{Stat, Status, stat, status};
    pub use crate::shm::{Region, RegionError, SIZE as REGION_SIZE, Slot, decode as region};
}
