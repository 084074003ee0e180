//! Comma-separated rows: the first line names each column and its type, `power_watts:real`. A value that is missing is an empty cell.

use super::Slice;
use super::output::Output;
use crate::smi::csv::quoted;
use model::figure::device::figures_of;
use model::figure::operation::OPERATION_FIGURES;
use model::figure::process::{HELD_FIGURES, PID, PROCESS_FIGURES};
use model::figure::{Field, Unit, Value};
use model::{Device, Event, Held, LogEntry, Operation, OperationTotals, Process, Snapshot, Timestamp};
use std::fmt::Write as _;
use std::io::{self, Write};

/// Which table.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum TableKind {
    /// A row per sample and device
    #[default]
    Devices,
    /// A row per sample, process and device that it holds
    Processes,
    /// A row per event
    Events,
    /// A row per process, stretch of time and operation
    Operations,
    /// A row per program that ran, of `ttmon run --timeline`
    Slices,
}

/// A table that is being written.
pub struct Table {
    output: Output,
    kind: TableKind,
    devices: Vec<Field<Device>>,
    processes: Vec<Field<Process>>,
    held: Vec<Field<Held>>,
    operations: Vec<Field<Operation>>,
    has_header: bool,
    line: String,
}

impl Table {
    pub fn new(output: Output, kind: TableKind) -> Table {
        Table {
            output,
            kind,
            devices: Vec::new(),
            processes: PROCESS_FIGURES.iter().flat_map(|figure| figure.fields()).collect(),
            held: HELD_FIGURES.iter().flat_map(|figure| figure.fields()).collect(),
            operations: OPERATION_FIGURES.iter().flat_map(|figure| figure.fields()).collect(),
            has_header: false,
            line: String::new(),
        }
    }

    pub fn snapshot(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        match self.kind {
            TableKind::Devices => snapshot.devices.iter().try_for_each(|device| self.device(snapshot.taken_at, device)),
            TableKind::Processes => {
                snapshot.processes.iter().try_for_each(|process| self.process(snapshot.taken_at, process))
            }
            TableKind::Events | TableKind::Operations | TableKind::Slices => Ok(()),
        }
    }

    pub fn entry(&mut self, entry: &LogEntry) -> io::Result<()> {
        match (entry, self.kind) {
            (LogEntry::Event(event), TableKind::Events) => self.event(event),
            (LogEntry::Operations(totals), TableKind::Operations) => self.totals(totals),
            _ => Ok(()),
        }
    }

    pub fn event(&mut self, event: &Event) -> io::Result<()> {
        if self.kind != TableKind::Events {
            return Ok(());
        }
        self.header_once()?;
        self.line.clear();
        let _ = write!(self.line, "{},{},", event.time, event.weight.name());
        let _ = event.device.as_ref().map_or(Ok(()), |device| write!(self.line, "{device}"));
        let kernel = event.kernel.as_ref().map_or("", |kernel| &kernel.text);
        let _ = write!(self.line, ",{},{}", quoted(&event.text), quoted(kernel));
        self.write_line()
    }

    pub fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        if self.kind != TableKind::Slices {
            return Ok(());
        }
        self.header_once()?;
        let Slice { process, device, queue, operation, runtime_id, start, end, launched } = slice;
        self.line.clear();
        let _ = write!(self.line, "{start},{end},{},{},{device},", process.pid, quoted(process.name));
        let _ = queue.map_or(Ok(()), |queue| write!(self.line, "{queue}"));
        let _ = write!(self.line, ",{},{runtime_id},", quoted(operation));
        let _ = launched.map_or(Ok(()), |launched| write!(self.line, "{launched}"));
        self.write_line()
    }

    /// A table without rows has its header, too.
    pub fn into_output(mut self) -> io::Result<Output> {
        if self.devices.is_empty() {
            self.devices = figures_of(&Device::default()).flat_map(|figure| figure.fields()).collect();
        }
        self.header_once()?;
        Ok(self.output)
    }

    fn device(&mut self, taken_at: Timestamp, device: &Device) -> io::Result<()> {
        if self.devices.is_empty() {
            // Those of deep reads only where there are some: they would be most of the columns.
            self.devices = figures_of(device).flat_map(|figure| figure.fields()).collect();
        }
        self.header_once()?;
        self.line.clear();
        let _ = write!(self.line, "{taken_at}");
        self.devices.iter().for_each(|field| cell(&mut self.line, field.figure.unit, field.value(device)));
        self.write_line()
    }

    fn process(&mut self, taken_at: Timestamp, process: &Process) -> io::Result<()> {
        self.header_once()?;
        for held in &process.devices {
            self.line.clear();
            let _ = write!(self.line, "{taken_at}");
            self.processes.iter().for_each(|field| cell(&mut self.line, field.figure.unit, field.value(process)));
            self.held.iter().for_each(|field| cell(&mut self.line, field.figure.unit, field.value(held)));
            self.write_line()?;
        }
        Ok(())
    }

    fn totals(&mut self, totals: &OperationTotals) -> io::Result<()> {
        self.header_once()?;
        for operation in &totals.operations {
            self.line.clear();
            let name = quoted(totals.name.as_deref().unwrap_or_default());
            let _ = write!(self.line, "{},{},{},{name}", totals.time, totals.seconds, totals.pid);
            self.operations.iter().for_each(|field| cell(&mut self.line, field.figure.unit, field.value(operation)));
            self.write_line()?;
        }
        Ok(())
    }

    fn header_once(&mut self) -> io::Result<()> {
        if self.has_header {
            return Ok(());
        }
        self.has_header = true;
        let time = "taken_at:timestamp".to_owned();
        let columns: Vec<String> = match self.kind {
            TableKind::Devices => std::iter::once(time).chain(self.devices.iter().map(column)).collect(),
            TableKind::Processes => {
                let processes = self.processes.iter().map(column);
                std::iter::once(time).chain(processes).chain(self.held.iter().map(column)).collect()
            }
            TableKind::Events => names(&["time:timestamp", "weight:text", "device:text", "text:text", "kernel:text"]),
            TableKind::Operations => {
                let begin = ["time:timestamp".into(), "seconds:real".into(), format!("{}:integer", PID.name)];
                let process = std::iter::once("process:text".to_owned());
                begin.into_iter().chain(process).chain(self.operations.iter().map(column)).collect()
            }
            TableKind::Slices => names(&[
                "start_nanoseconds:integer",
                "end_nanoseconds:integer",
                "pid:integer",
                "process:text",
                "device:text",
                "queue:integer",
                "operation:text",
                "runtime_id:integer",
                "launched_nanoseconds:integer",
            ]),
        };
        self.line = columns.join(",");
        self.write_line()
    }

    fn write_line(&mut self) -> io::Result<()> {
        self.line.push('\n');
        self.output.write_all(self.line.as_bytes())
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn column<S>(field: &Field<S>) -> String {
    let unit = field.figure.unit;
    let kind = match unit {
        Unit::Text => "text",
        Unit::YesNo => "boolean",
        unit if unit.is_whole() => "integer",
        _ => "real",
    };
    format!("{}:{kind}", field.name())
}

fn cell(line: &mut String, unit: Unit, value: Option<Value<'_>>) {
    line.push(',');
    let _ = match value {
        None | Some(Value::Absent) => Ok(()),
        Some(Value::Text(text)) => line.write_str(&quoted(&text)),
        Some(Value::YesNo(yes)) => write!(line, "{yes}"),
        Some(Value::Whole(number)) => write!(line, "{number}"),
        // A whole one is written as such, also where it was measured as a fraction.
        Some(Value::Real(number)) if unit.is_whole() => write!(line, "{}", number.round()),
        Some(Value::Real(number)) => write!(line, "{number}"),
    };
}
