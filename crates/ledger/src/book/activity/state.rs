//! What the writer keeps of the activity in its own memory.

use super::contents::{Launches, RecordDelivery};
use super::names::Names;
use super::recorder::ChipRecorder;
use std::sync::Mutex;

/// What the writer keeps of the activity, once there is some.
#[derive(Debug)]
pub(in crate::book) struct ActivityState {
    /// Where the table of operations begins.
    pub(super) table: usize,
    pub(super) launches: Mutex<LaunchState>,
    pub(super) records: Mutex<RecordState>,
    pub(super) names: Names,
    pub(super) naming: Mutex<NamingState>,
}

#[derive(Debug, Default)]
pub(super) struct NamingState {
    pub(super) in_use: u16,
    pub(super) unlisted: u64,
    /// Operations that have memory behind them, and whether the last one does.
    pub(super) granted: u16,
    pub(super) has_last: bool,
    pub(super) version: u64,
}

#[derive(Debug)]
pub(super) struct LaunchState {
    pub(super) now: Launches,
    /// Threads that wait.
    pub(super) waiting: u32,
    pub(super) version: u64,
    pub(super) operations: Box<[LaunchedOperation]>,
}

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct LaunchedOperation {
    pub(super) launches: u64,
    pub(super) programs: u64,
    pub(super) last: u64,
    pub(super) version: u64,
}

#[derive(Debug)]
pub(super) struct RecordState {
    pub(super) delivery: RecordDelivery,
    pub(super) version: u64,
    pub(super) chips: Box<[Option<Box<ChipRecorder>>]>,
    pub(super) operations: Box<[OperationRecords]>,
    pub(super) singles: Option<SingleRing>,
}

/// Where single records go.
#[derive(Debug)]
pub(super) struct SingleRing {
    /// Where the ring begins.
    pub(super) at: usize,
    /// The number of the next one.
    pub(super) next: u64,
}

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct OperationRecords {
    pub(super) records: u64,
    pub(super) time: u64,
    pub(super) longest: u64,
    pub(super) end: u64,
    pub(super) version: u64,
}
