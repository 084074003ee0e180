//! The checks of `ttmon doctor`, one function each, over what was found.

use super::check::DoctorCheck;
use super::{Findings, deep_checks, device_checks, host_checks};

/// All checks, in the order in which they are printed.
pub const CHECKS: [fn(&Findings) -> DoctorCheck; 18] = [
    device_checks::driver,
    device_checks::devices,
    device_checks::permissions,
    device_checks::firmware,
    device_checks::versions,
    device_checks::telemetry,
    device_checks::link,
    device_checks::iommu,
    host_checks::hugepages,
    host_checks::shm,
    host_checks::tracking,
    host_checks::agent,
    host_checks::service,
    host_checks::service_version,
    host_checks::black_box,
    host_checks::other_users,
    host_checks::configuration,
    host_checks::clock,
];

/// Those that need a deep read.
pub const DEEP_CHECKS: [fn(&Findings) -> DoctorCheck; 2] = [deep_checks::deep_reads, deep_checks::memory_health];
