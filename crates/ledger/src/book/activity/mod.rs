//! What a process did on its chips: what it launched, what the device recorded of it, and its operations.
//!
//! In reading order: `layout` has every byte, `contents` what a copy has, `judgement` decides how busy a chip is, `reader` copies,
//! `writer` writes, with `state` and `put`; `recorder` turns records into busy time with `busy`, the union of intervals, and `anchor`, the time of a chip;
//! `singles` reads every record by itself, where they are kept.

mod anchor;
mod busy;
mod contents;
mod judgement;
pub(super) mod layout;
mod names;
mod put;
mod reader;
mod recorder;
mod singles;
pub(super) mod state;
mod writer;

pub use busy::{Added, BusyUnion};
pub use contents::{
    ActivitySource, Checkpoint, ChipActivity, Launches, NoRecords, RecordDelivery, RecordedActivity, RecordedOperation,
};
pub use judgement::{BusyTime, MeasuredUtilization, NotKnown};
pub use layout::{OPERATION_NAME, OPERATIONS};
pub use reader::{activity, operations};
pub use recorder::{DeviceRecord, DispatchSample};
pub use singles::{LaunchOf, SingleReader, SingleRecord};
pub use writer::Launch;

use rustix::time::{ClockId, clock_gettime};

/// The clock of all times of activity: ns of the monotonic clock.
#[inline]
pub fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}
