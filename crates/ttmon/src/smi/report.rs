//! `-q`: everything about every device. Sections, rows and units are those of the tables of figures.

use super::deep_report::{self, DeepNote};
use super::nvidia_unknown;
use super::process_row::ProcessRow;
use model::figure::deep::AICLK_LIMITED;
use model::figure::device::figures_of;
use model::figure::machine::{SAMPLE_TIMESTAMP, TAKEN_AT, figures_of_machine};
use model::figure::process::{DEVICE, HELD_FIGURES, PID, PROCESS_FIGURES};
use model::figure::{Field, Figure, Section, Unit, Value};
use model::{Bytes, Device, Snapshot};
use show::labels::labelled;
use show::text::{clean, did_you_mean};
use std::fmt::Write;
use watch::exit::{Exit, Failure};

/// The sections with these names; when none is named, all but the raw table.
pub fn sections(names: &[String]) -> anyhow::Result<Vec<Section>> {
    if names.is_empty() {
        return Ok(Section::ALL.into_iter().filter(|section| *section != Section::Raw).collect());
    }
    let words = Section::ALL.map(|section| section.name().to_ascii_uppercase());
    let find = |name: &String| {
        let typed = name.trim().to_ascii_uppercase();
        words.iter().position(|word| *word == typed).map(|n| Section::ALL[n]).ok_or_else(|| {
            let why = match nvidia_unknown::SECTIONS.contains(&typed.as_str()) {
                true => format!("nothing of nvidia-smi's section {typed} is measured here: leave it out; sections"),
                false => {
                    let near = did_you_mean(&typed, words.iter().map(String::as_str));
                    format!("{name:?} is not a section: {near}they")
                }
            };
            Failure::error(Exit::Usage, format!("-d: {why} are {}", words.join(", ")))
        })
    };
    names.iter().map(find).collect()
}

pub fn text(snapshot: &Snapshot, sections: &[Section], time: &str) -> String {
    let names_sections = sections.len() + 1 < Section::ALL.len();
    let mut report = Report { text: String::new(), names_sections, key_width: KEY_WIDTH };
    let simulated = if snapshot.host.simulated { " (SIMULATED)" } else { "" };
    report.text += &format!("\n=============={}LOG{}==============\n\n", "TTMON ", simulated);
    report.row(0, "Timestamp", Some(time));
    // The time is already there, in the words of this place.
    for figure in figures_of_machine(snapshot).filter(|figure| ![&TAKEN_AT, &SAMPLE_TIMESTAMP].contains(figure)) {
        report.figure(0, figure, snapshot);
    }
    for device in &snapshot.devices {
        let address = device.pci_address.as_ref().map_or_else(String::new, |address| format!(" {address}"));
        report.text += &format!("\nDevice {}{address}\n", device.id);
        sections.iter().for_each(|section| report.section(snapshot, device, *section));
    }
    if !snapshot.alerts.is_empty() {
        report.text += "\nAlerts\n";
        for alert in &snapshot.alerts {
            let (severity, name, text) = (alert.severity.name(), clean(&alert.name), clean(&alert.text));
            report.text += &format!("    {severity}: {name}: {text}, since {}\n", alert.since);
        }
    }
    if !snapshot.faults.is_empty() {
        report.text += "\nNotes\n";
        for fault in &snapshot.faults {
            report.text += &format!("    {}: {}\n", clean(&fault.path), clean(&fault.reason));
        }
    }
    report.text
}

struct Report {
    text: String,
    /// Whether the user asked for some sections by name, and so should hear why one is empty.
    names_sections: bool,
    /// Where values begin.
    key_width: usize,
}

const KEY_WIDTH: usize = 55;
/// The values of all channels or ports need more room.
const LISTS_KEY_WIDTH: usize = 35;

impl Report {
    fn row(&mut self, depth: usize, key: &str, value: Option<&str>) {
        let value = value.map_or("N/A".into(), clean);
        let (indent, width) = (" ".repeat(depth * 4), self.key_width);
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{:<width$}: {value}", format!("{indent}{key}"));
    }

    /// A line for the figure, or one for each label that has a value.
    fn figure<S>(&mut self, depth: usize, figure: &'static Figure<S>, subject: &S) {
        for field in figure.fields() {
            self.field(depth, field, subject);
        }
    }

    fn field<S>(&mut self, depth: usize, field: Field<S>, subject: &S) {
        let value = field.value(subject).map(|value| written(field.figure, &value));
        if value.is_some() || field.figure.dimension.is_none() {
            self.row(depth, &field.title(), value.as_deref());
        }
    }

    fn section(&mut self, snapshot: &Snapshot, device: &Device, section: Section) {
        if section == Section::Pids {
            return self.processes(snapshot, device);
        }
        let figures: Vec<_> = figures_of(device).filter(|figure| figure.section == section).collect();
        let is_read = !figures.is_empty() || section == Section::Raw && device.deep.is_some();
        if !is_read && !self.names_sections {
            return;
        }
        // What a device is stands right below its name.
        let depth = if section == Section::Identity { 1 } else { 2 };
        if depth > 1 {
            self.text += &format!("    {}\n", section.name());
        }
        if section == Section::Raw {
            deep_report::tags(device).for_each(|line| self.text += &format!("        {line}\n"));
        }
        if deep_report::is_of_deep_reads(section) {
            self.key_width = LISTS_KEY_WIDTH;
        }
        let mut without_value = Vec::new();
        for figure in figures {
            match labelled(figure, device, "–") {
                _ if !figure.is_deep() => self.figure(depth, figure, device),
                Some((title, values)) => self.row(depth, &title, Some(&values)),
                None if figure.dimension.is_none() && figure.value(device).is_some() => {
                    self.figure(depth, figure, device)
                }
                // It is not the firmware that lacks what follows from other figures.
                None if !figure.in_json || *figure == AICLK_LIMITED => {}
                None => without_value.push(figure),
            }
        }
        self.key_width = KEY_WIDTH;
        let note = DeepNote { device, section, without_value: &without_value };
        note.lines().for_each(|line| self.text += &format!("{}{line}\n", " ".repeat(depth * 4)));
    }

    fn processes(&mut self, snapshot: &Snapshot, device: &Device) {
        let rows: Vec<ProcessRow> =
            ProcessRow::all(snapshot).into_iter().filter(|row| row.held.id == device.id).collect();
        if rows.is_empty() {
            return self.row(1, "Processes", Some("None"));
        }
        self.text += "    Processes\n";
        for row in rows {
            for figure in PROCESS_FIGURES {
                self.figure(if *figure == &PID { 2 } else { 3 }, figure, row.process);
            }
            let (plain, labelled): (Vec<_>, Vec<_>) =
                HELD_FIGURES.iter().filter(|figure| **figure != &DEVICE).partition(|figure| figure.dimension.is_none());
            plain.into_iter().for_each(|figure| self.figure(3, figure, row.held));
            // All about one memory kind, then all about the next.
            let mut labelled: Vec<_> = labelled.into_iter().flat_map(|figure| figure.fields()).collect();
            labelled.sort_by_key(|field| field.label);
            labelled.into_iter().for_each(|field| self.field(3, field, row.held));
        }
    }
}

/// For people, and to the byte where there is a value for each memory kind.
fn written<S>(figure: &Figure<S>, value: &Value<'_>) -> String {
    let text = figure.unit.text(value);
    match value {
        Value::Whole(bytes @ 1000..) if figure.unit == Unit::Bytes && figure.dimension.is_some() => {
            format!("{} ({bytes} B)", Bytes(*bytes))
        }
        _ => text,
    }
}
