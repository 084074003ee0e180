//! `dmon` and `pmon`: a line per device or process, again and again, for eyes and for awk.

use super::args::{ProcessStreamArgs, StreamArgs};
use super::csv_fields::scaled;
use super::process_row::ProcessRow;
use model::figure::device::DEVICE_FIGURES;
use model::figure::process::{HELD_FIGURES, NAME, PROCESS_FIGURES};
use model::figure::{Column, Dimension, Field, Figure, Unit};
use model::{Device, DeviceId, Held, MemoryKind, Process, Snapshot};
use show::command::display_name;
use show::text::clean;
use std::borrow::Cow;

/// The header comes again after so many lines.
const SCREENFUL: usize = 24;
const ABSENT: &str = "-";

pub struct Stream {
    columns: Vec<StreamColumn>,
    by_process: bool,
    with_date: bool,
    with_time: bool,
    lines: Option<usize>,
}

/// A column: a field, and how it is shown.
struct StreamColumn {
    column: Column,
    heading: Cow<'static, str>,
    field: StreamField,
}

#[derive(Clone, Copy)]
enum StreamField {
    Device(Field<Device>),
    Process(Field<Process>),
    Held(Field<Held>),
}

impl Stream {
    pub fn of_devices(args: &StreamArgs) -> Stream {
        Stream::new(columns(DEVICE_FIGURES, StreamField::Device).collect(), false, args)
    }

    pub fn of_processes(args: &ProcessStreamArgs) -> Stream {
        let of_process = columns(PROCESS_FIGURES, StreamField::Process);
        let all = of_process.chain(columns(HELD_FIGURES, StreamField::Held));
        Stream::new(all.filter(|column| args.parts || !column.is_part()).collect(), true, &args.stream)
    }

    fn new(mut columns: Vec<StreamColumn>, by_process: bool, args: &StreamArgs) -> Stream {
        columns.sort_by_key(|column| column.column.position);
        if let Some(groups) = &args.select {
            columns.retain(|column| column.group().is_none_or(|group| groups.contains(group)));
        }
        let with = |letter| args.options.contains(letter);
        Stream { columns, by_process, with_date: with('D'), with_time: with('T'), lines: None }
    }

    /// The lines of one sample. `time` is the local date and time, a blank between them.
    pub fn text(&mut self, snapshot: &Snapshot, time: &str) -> String {
        let rows = if self.by_process { self.processes(snapshot) } else { self.devices(snapshot) };
        let mut text = String::new();
        if self.lines.is_none_or(|lines| lines + rows.len() > SCREENFUL) {
            if snapshot.host.simulated {
                text += "# SIMULATED\n";
            }
            let names: Vec<String> = self.columns.iter().map(|column| column.heading.to_string()).collect();
            let units: Vec<String> = self.columns.iter().map(|column| column.column.unit.to_owned()).collect();
            text += &self.line('#', "Date Time", &names);
            text += &self.line('#', "YYYYMMDD HH:MM:SS", &units);
            self.lines = Some(0);
        }
        for row in &rows {
            text += &self.line(' ', time, row);
        }
        self.lines = self.lines.map(|lines| lines + rows.len());
        text
    }

    fn line(&self, first: char, time: &str, cells: &[String]) -> String {
        let (date, time) = time.split_once(' ').unwrap_or((time, ""));
        let mut line = first.to_string();
        if self.with_date {
            line += &format!("{date:>9}");
        }
        if self.with_time {
            line += &format!("{time:>9}");
        }
        for (column, cell) in self.columns.iter().zip(cells) {
            let width = column.column.width;
            line += &if width == 0 { format!("  {cell}") } else { format!(" {cell:>0$}", width - 1) };
        }
        line.truncate(line.trim_end().len());
        line + "\n"
    }

    fn devices(&self, snapshot: &Snapshot) -> Vec<Vec<String>> {
        let line = |device: &Device| self.columns.iter().map(|column| column.cell(Some(device), None, None)).collect();
        snapshot.devices.iter().map(line).collect()
    }

    fn processes(&self, snapshot: &Snapshot) -> Vec<Vec<String>> {
        let cells = |held: &Held, process| {
            let cells = self.columns.iter().map(|column| column.cell(None, process, Some(held)));
            (held.id.clone(), cells.collect())
        };
        let mut rows: Vec<(DeviceId, Vec<String>)> =
            ProcessRow::all(snapshot).iter().map(|row| cells(row.held, Some(row.process))).collect();
        // A device without a process has a line that says so.
        for device in &snapshot.devices {
            if !rows.iter().any(|(id, _)| *id == device.id) {
                rows.push(cells(&Held::new(device.id.clone()), None));
            }
        }
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        rows.into_iter().map(|(_, cells)| cells).collect()
    }
}

/// The columns of the rows that have one. Of the memory kinds the parts of used have one, apart from buffers: what is used
/// has columns of its own.
fn columns<S>(table: &[&'static Figure<S>], field: fn(Field<S>) -> StreamField) -> impl Iterator<Item = StreamColumn> {
    let rows = table.iter().filter_map(|figure| Some((*figure, figure.column?)));
    let fields = rows.flat_map(|(figure, column)| figure.fields().map(move |field| (field, column)));
    fields.filter_map(move |(one, column)| {
        let heading = match one.figure.dimension {
            None => column.heading.into(),
            Some(Dimension::MemoryKind) => MemoryKind::ALL[one.label].column_of_part()?.into(),
            Some(dimension) => format!("{}{}", column.heading, dimension.label(one.label)).into(),
        };
        Some(StreamColumn { column, heading, field: field(one) })
    })
}

impl StreamColumn {
    /// The letter that nvidia-smi's -s has for its group. Names and states are in every one.
    fn group(&self) -> Option<char> {
        match &*self.heading {
            "pwr" | "temp" | "fan" => Some('p'),
            "util" | "progs" | "launch" | "wait" | "cpu" => Some('u'),
            "aiclk" => Some('c'),
            "dram" | "l1" | "l1sml" | "trace" | "cb" => Some('m'),
            "rxpci" | "txpci" => Some('t'),
            _ => None,
        }
    }

    /// Whether it is a part of what another column has.
    fn is_part(&self) -> bool {
        matches!(self.field, StreamField::Held(field) if field.figure.dimension == Some(Dimension::MemoryKind))
    }

    fn cell(&self, device: Option<&Device>, process: Option<&Process>, held: Option<&Held>) -> String {
        let is_current = |device: &&Device| device.sample_age_seconds == Some(0.0);
        let cell = match &self.field {
            // A line is of its moment: what was not read now is not in it.
            StreamField::Device(field) => self.text(field, device.filter(|it| field.figure.always || is_current(it))),
            // An interpreter says nothing of what it runs.
            StreamField::Process(field) if field.figure.name == NAME.name => {
                process.and_then(display_name).map(|name| clean(&name).replace(' ', "_"))
            }
            StreamField::Process(field) => self.text(field, process),
            StreamField::Held(field) => self.text(field, held),
        };
        cell.unwrap_or_else(|| ABSENT.to_owned())
    }

    /// A number in the column's unit, or one word.
    fn text<S>(&self, field: &Field<S>, subject: Option<&S>) -> Option<String> {
        let (figure, value) = (field.figure, field.value(subject?)?);
        if figure.unit != Unit::Text {
            return Some(scaled(&value, self.column.scale, 0));
        }
        let blank = if figure.words.is_empty() { "_" } else { "-" };
        Some(clean(&figure.unit.plain_text(&value)).replace(' ', blank))
    }
}
