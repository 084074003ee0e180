//! `-q`: everything about every device. Sections, rows and units are those of the tables of figures.

use super::process_row::ProcessRow;
use model::figure::device::DEVICE_FIGURES;
use model::figure::machine::{MACHINE_FIGURES, SAMPLE_TIMESTAMP, TAKEN_AT};
use model::figure::process::{DEVICE, HELD_FIGURES, PID, PROCESS_FIGURES};
use model::figure::{Field, Figure, Section, Unit, Value};
use model::{Bytes, Device, Snapshot};
use show::text::{clean, did_you_mean};
use std::fmt::Write;
use watch::exit::{Exit, Failure};

/// The sections with these names; all when none is named.
pub fn sections(names: &[String]) -> anyhow::Result<Vec<Section>> {
    if names.is_empty() {
        return Ok(Section::ALL.to_vec());
    }
    let words = Section::ALL.map(|section| section.name().to_ascii_uppercase());
    let find = |name: &String| {
        let typed = name.trim().to_ascii_uppercase();
        words.iter().position(|word| *word == typed).map(|n| Section::ALL[n]).ok_or_else(|| {
            let near = did_you_mean(&typed, words.iter().map(String::as_str));
            Failure::error(Exit::Usage, format!("-d: {name:?} is not a section: {near}they are {}", words.join(", ")))
        })
    };
    names.iter().map(find).collect()
}

pub fn text(snapshot: &Snapshot, sections: &[Section], time: &str) -> String {
    let mut report = Report(String::new());
    let simulated = if snapshot.host.simulated { " (SIMULATED)" } else { "" };
    report.0 += &format!("\n=============={}LOG{}==============\n\n", "TTMON ", simulated);
    report.row(0, "Timestamp", Some(time));
    // The time is already there, in the words of this place.
    for figure in MACHINE_FIGURES.iter().filter(|figure| ![&&TAKEN_AT, &&SAMPLE_TIMESTAMP].contains(figure)) {
        report.figure(0, figure, snapshot);
    }
    for device in &snapshot.devices {
        let address = device.pci_address.as_ref().map_or_else(String::new, |address| format!(" {address}"));
        report.0 += &format!("\nDevice {}{address}\n", device.id);
        sections.iter().for_each(|section| report.section(snapshot, device, *section));
    }
    if !snapshot.alerts.is_empty() {
        report.0 += "\nAlerts\n";
        for alert in &snapshot.alerts {
            let (severity, name, text) = (alert.severity.name(), clean(&alert.name), clean(&alert.text));
            report.0 += &format!("    {severity}: {name}: {text}, since {}\n", alert.since);
        }
    }
    if !snapshot.faults.is_empty() {
        report.0 += "\nNotes\n";
        for fault in &snapshot.faults {
            report.0 += &format!("    {}: {}\n", clean(&fault.path), clean(&fault.reason));
        }
    }
    report.0
}

struct Report(String);

impl Report {
    fn row(&mut self, depth: usize, key: &str, value: Option<&str>) {
        let value = value.map_or("N/A".into(), clean);
        let indent = " ".repeat(depth * 4);
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{:<55}: {value}", format!("{indent}{key}"));
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
        // What a device is stands right below its name.
        let depth = if section == Section::Identity { 1 } else { 2 };
        if depth > 1 {
            self.0 += &format!("    {}\n", section.name());
        }
        for figure in DEVICE_FIGURES.iter().filter(|figure| figure.section == section) {
            self.figure(depth, figure, device);
        }
    }

    fn processes(&mut self, snapshot: &Snapshot, device: &Device) {
        let rows: Vec<ProcessRow> =
            ProcessRow::all(snapshot).into_iter().filter(|row| row.held.id == device.id).collect();
        if rows.is_empty() {
            return self.row(1, "Processes", Some("None"));
        }
        self.0 += "    Processes\n";
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
        Value::Whole(bytes @ 1024..) if figure.unit == Unit::Bytes && figure.dimension.is_some() => {
            format!("{} ({bytes} B)", Bytes(*bytes))
        }
        _ => text,
    }
}
