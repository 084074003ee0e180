//! Deep reads: what the firmware's telemetry table says beyond the driver's files.
//!
//! Reading it means opening the device. That is done only when asked, in a process of its own: a reset or a removal ends that
//! process, and not the monitor.
//!
//! - [`table`]: the table as it was read,
//! - [`decode`]: what it means, by chip generation and firmware version.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod decode;
pub mod table;

pub use decode::decode;
pub use table::RawTable;
