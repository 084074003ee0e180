//! What the formats of profilers have in common: groups, tracks in them, and what is on a track.

use model::Timestamp;
use model::figure::{Unit, Value};
use std::io;

/// A group of tracks, or a track. Numbered from 1 on.
pub type TrackId = u64;

/// Writes a trace in one format. A track is declared before it is used. Times are ns since 1970.
pub trait TraceWriter {
    /// A group that stands for a device, or for the machine.
    fn group(&mut self, id: TrackId, name: &str) -> io::Result<()>;
    /// A group that stands for a process.
    fn process(&mut self, id: TrackId, pid: u32, name: &str) -> io::Result<()>;
    /// A track for slices and instants.
    fn track(&mut self, id: TrackId, group: TrackId, name: &str) -> io::Result<()>;
    /// A track for a number.
    fn counter_track(&mut self, id: TrackId, group: TrackId, name: &str, unit: Unit) -> io::Result<()>;
    fn counter(&mut self, track: TrackId, time: u64, number: Number) -> io::Result<()>;
    fn slice(&mut self, track: TrackId, slice: Drawn<'_>) -> io::Result<()>;
    /// Something without a length. A flow begins there, if it has one.
    fn instant(&mut self, track: TrackId, instant: Drawn<'_>) -> io::Result<()>;
}

/// A slice, or an instant, whose end is its start.
#[derive(Debug, Clone, Copy)]
pub struct Drawn<'a> {
    pub name: &'a str,
    pub category: Category,
    pub start: u64,
    pub end: u64,
    pub details: &'a [(&'static str, Detail<'a>)],
    /// The number of the arrow that begins at an instant or ends at a slice.
    pub flow: Option<u64>,
}

/// The names of all details.
pub const DETAILS: [&str; 7] = ["runtime_id", "weight", "device", "kernel", "operations", "launches", "left_bytes"];

/// What a detail of a slice is.
#[derive(Debug, Clone, Copy)]
pub enum Detail<'a> {
    Text(&'a str),
    Number(Number),
}

/// What is drawn, by the name that a viewer filters by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Category {
    Operation = 1,
    Launch = 2,
    Event = 3,
    /// Sums over a stretch of time.
    Totals = 4,
}

impl Category {
    pub const ALL: [Category; 4] = [Category::Operation, Category::Launch, Category::Event, Category::Totals];

    pub fn name(self) -> &'static str {
        match self {
            Category::Operation => "operation",
            Category::Launch => "launch",
            Category::Event => "event",
            Category::Totals => "totals",
        }
    }
}

/// A number as it was measured: whole ones stay exact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    Whole(u64),
    Real(f64),
}

impl Number {
    /// Of a value, where it is a number that can be drawn.
    pub fn of(value: &Value<'_>) -> Option<Number> {
        match value {
            Value::Whole(number) => Some(Number::Whole(*number)),
            Value::Real(number) if number.is_finite() => Some(Number::Real(*number)),
            _ => None,
        }
    }
}

/// What the clocks of the machine said at the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    /// ns since 1970.
    pub began: u64,
    /// The monotonic clock at that moment, where the timeline is of this machine now.
    pub monotonic: Option<u64>,
}

/// ns since 1970.
pub fn nanoseconds(time: Timestamp) -> u64 {
    u64::try_from(time.0).unwrap_or(0).saturating_mul(1_000_000)
}
