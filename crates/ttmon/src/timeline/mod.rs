//! A timeline: devices, processes, operations and events on one time axis, in a file that profilers open.
//!
//! In reading order: this file has what a timeline is made of, `output` opens the file, `drawing` decides on tracks and what is on them,
//! `perfetto` and `chrome` write these, `protobuf` has the bytes of the former; `table` writes rows instead.
//!
//! Everything is written as it comes. What is kept is one value per counter and one end per lane.

mod chrome;
mod drawing;
mod lanes;
mod output;
pub mod overlays;
mod perfetto;
mod protobuf;
mod results;
mod table;
#[cfg(test)]
mod tests;
mod trace;
mod tracks;

pub use output::{Form, Format, Output};
pub use results::ResultSlice;
pub use table::TableKind;
pub use trace::Clocks;

use chrome::Chrome;
use drawing::Drawing;
use model::{Event, LogEntry, Snapshot};
use perfetto::Perfetto;
use std::io;
use table::Table;

/// A timeline that is being written. Times of slices are ns since 1970.
pub enum Timeline {
    Perfetto(Drawing<Perfetto>),
    Chrome(Drawing<Chrome>),
    Csv(Table),
}

/// A program that ran on a chip.
#[derive(Debug, Clone, PartialEq)]
pub struct Slice<'a> {
    pub process: ProcessKey<'a>,
    /// As people call it: `device 0`.
    pub device: &'a str,
    /// By the order in which the process first used them. Absent where it cannot be said.
    pub queue: Option<u8>,
    pub operation: &'a str,
    pub runtime_id: u16,
    pub start: u64,
    pub end: u64,
    /// When it was launched, where that is known.
    pub launched: Option<u64>,
}

/// A process, and which one of those that had its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcessKey<'a> {
    pub pid: u32,
    pub name: &'a str,
    /// As people call it: the script, not its interpreter. Empty where that is not known.
    pub label: &'a str,
}

impl Timeline {
    /// Begins. Nothing in it is from before `clocks.began`.
    pub fn begin(output: Output, format: Format, table: TableKind, clocks: Clocks) -> io::Result<Timeline> {
        Ok(match format {
            Format::Perfetto => Timeline::Perfetto(Drawing::new(Perfetto::begin(output, clocks)?, clocks)),
            Format::Chrome => Timeline::Chrome(Drawing::new(Chrome::begin(output, clocks)?, clocks)),
            Format::Csv => Timeline::Csv(Table::new(output, table)),
        })
    }

    pub fn snapshot(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        match self {
            Timeline::Perfetto(drawing) => drawing.snapshot(snapshot),
            Timeline::Chrome(drawing) => drawing.snapshot(snapshot),
            Timeline::Csv(table) => table.snapshot(snapshot),
        }
    }

    pub fn entry(&mut self, entry: &LogEntry) -> io::Result<()> {
        match self {
            Timeline::Perfetto(drawing) => drawing.entry(entry),
            Timeline::Chrome(drawing) => drawing.entry(entry),
            Timeline::Csv(table) => table.entry(entry),
        }
    }

    pub fn event(&mut self, event: &Event) -> io::Result<()> {
        match self {
            Timeline::Perfetto(drawing) => drawing.event(event),
            Timeline::Chrome(drawing) => drawing.event(event),
            Timeline::Csv(table) => table.event(event),
        }
    }

    pub fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        match self {
            Timeline::Perfetto(drawing) => drawing.slice(slice),
            Timeline::Chrome(drawing) => drawing.slice(slice),
            Timeline::Csv(table) => table.slice(slice),
        }
    }

    /// Draws a slice of another tool. A table has no place for it.
    pub fn result(&mut self, slice: &ResultSlice<'_>) -> io::Result<()> {
        match self {
            Timeline::Perfetto(drawing) => drawing.result(slice),
            Timeline::Chrome(drawing) => drawing.result(slice),
            Timeline::Csv(_) => Ok(()),
        }
    }

    /// Ends the file. Returns how many bytes it has.
    pub fn finish(self) -> io::Result<u64> {
        match self {
            Timeline::Perfetto(drawing) => drawing.finish()?.into_output().finish(),
            Timeline::Chrome(drawing) => drawing.finish()?.into_output()?.finish(),
            Timeline::Csv(table) => table.into_output()?.finish(),
        }
    }
}
