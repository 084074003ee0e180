//! Processes, buffers and exited processes, as far as there is room.

use super::{AT_LEAST, LIST_FRAME, LISTED, age, joined};
use crate::command::{from_script, name_of};
use crate::figures::no_process;
use crate::grid::{Cell, Column, Page};
use crate::memory::view::{Buffer, Death, Holder, View};
use crate::style::{Style, Tone};
use crate::text::{Align, clean, count};
use model::{Bytes, MemoryKind, Usage};

/// How many rows each list has: processes, buffers, exited processes.
pub struct Lists([usize; 3]);

impl Lists {
    /// All rows of a view.
    pub fn of(view: &View) -> Lists {
        Lists([view.processes.len(), view.buffers.len(), view.deaths.len()])
    }

    /// Lines that the lists take at least.
    pub fn least(&self) -> usize {
        self.0.iter().filter(|n| **n > 0).map(|n| LIST_FRAME + AT_LEAST.min(*n)).sum()
    }

    /// The rows that each gets. In so many lines, each its least and then the first ones more, half of the rest each.
    pub fn shares(&self, room: Option<usize>) -> [usize; 3] {
        let Some(room) = room else { return self.0.map(|n| n.min(LISTED)) };
        let mut shares = [0; 3];
        let mut left = room;
        for (share, n) in shares.iter_mut().zip(self.0) {
            let wanted = AT_LEAST.min(n);
            if wanted > 0 && left >= LIST_FRAME + wanted {
                *share = wanted;
                left -= LIST_FRAME + wanted;
            }
        }
        for (i, n) in self.0.into_iter().enumerate() {
            let others = self.0.iter().zip(shares).skip(i + 1).any(|(n, share)| share > 0 && *n > share);
            let more = if others { left.div_ceil(2) } else { left };
            let more = if shares[i] > 0 { more.min(n - shares[i]) } else { 0 };
            shares[i] += more;
            left -= more;
        }
        shares
    }

    /// What there was no room for, in words.
    pub fn hidden(&self, shares: &[usize; 3]) -> Option<String> {
        let names = [("process", "processes"), ("buffer", "buffers"), ("exited process", "exited processes")];
        let hidden = names.iter().zip(self.0).zip(shares).filter(|((_, n), share)| **share == 0 && *n > 0);
        let words: Vec<String> = hidden.map(|(((one, many), n), _)| count(n as u64, one, many)).collect();
        let hint = "enlarge the window, or choose devices with -d";
        (!words.is_empty()).then(|| format!("{} not shown: {hint}", words.join(", ")))
    }

    /// Draws so many rows of each list.
    pub fn draw(&self, page: &mut Page, view: &View, &[processes, buffers, deaths]: &[usize; 3]) {
        let (style, glyphs) = (page.style, page.style.glyphs());
        let rule = |page: &mut Page| page.rule(&[style.columns - 2], glyphs.horizontal, glyphs.middle);
        if processes > 0 {
            rule(page);
            let rows = view.processes.iter().take(processes);
            let rows =
                rows.map(|process| process_cells(process, process.usage, process.source.as_deref(), &style)).collect();
            page.grid(process_columns(view), rows);
        } else if view.processes.is_empty() && view.report.is_none() && style.rows.is_none() {
            rule(page);
            let inner = style.columns - 2;
            let text = no_process(view.chips.iter().any(|chip| chip.untracked_processes > 0));
            page.line(&[style.cell(&format!(" {text}"), inner, Align::Left, Tone::Plain)]);
        }
        if buffers > 0 {
            rule(page);
            let rows: Vec<_> = view.buffers.iter().take(buffers).map(|buffer| buffer_cells(buffer, &style)).collect();
            let (columns, rows) = without_empty(buffer_columns(view), rows, &style);
            page.grid(columns, rows);
        }
        if deaths > 0 {
            rule(page);
            let rows = view.deaths.iter().take(deaths).map(|death| death_cells(death, view, &style)).collect();
            page.grid(death_columns(), rows);
        }
    }
}

/// The columns of processes.
pub fn process_columns(view: &View) -> Vec<Column> {
    let pid = view.processes.iter().map(|process| process.pid.to_string().len()).max().unwrap_or(0).max(5);
    vec![
        Column::right("Dev", 3),
        Column::right("PID", pid),
        Column::left("User", 6).rank(3),
        Column::left("Process", 8).stretching(),
        Column::right("Total", 5),
        Column::right("DRAM", 5).rank(1),
        Column::right("L1", 5).rank(2),
        Column::right(MemoryKind::Trace.heading(), 5).rank(6),
        Column::right(MemoryKind::Cb.heading(), 5).rank(4),
        Column::right(MemoryKind::L1Small.heading(), 5).rank(7),
        Column::left("From", 5),
    ]
}

/// A process: what it uses of all chips or of one, where that is known from, and the parts of it.
pub fn process_cells(process: &Holder, usage: Usage, source: Option<&str>, style: &Style) -> Vec<Cell> {
    let ids: Vec<String> = process.devices.iter().map(|part| part.id.clone()).collect();
    let short = name_of(process.name.as_deref(), process.command.as_deref());
    let whole = process.command.as_deref().map(from_script).or(process.name.as_deref());
    let name = if style.columns >= 104 { whole } else { short.as_deref() };
    vec![
        Cell::Text(joined(&ids), Tone::Strong),
        Cell::plain(process.pid.to_string()),
        words(process.user.as_deref(), style),
        words(name, style),
        bytes(usage.total(), style),
        bytes(usage.dram_used, style),
        bytes(usage.l1_used, style),
        bytes(usage.trace, style),
        bytes(usage.cb, style),
        bytes(usage.l1_small, style),
        words(source, style),
    ]
}

/// A column without any value is left out.
fn without_empty(columns: Vec<Column>, mut rows: Vec<Vec<Cell>>, style: &Style) -> (Vec<Column>, Vec<Vec<Cell>>) {
    let is_absent = |cell: &Cell| matches!(cell, Cell::Text(text, _) if text == style.glyphs().absent);
    let keep: Vec<bool> = (0..columns.len()).map(|i| !rows.iter().all(|row| is_absent(&row[i]))).collect();
    for row in &mut rows {
        let mut keep = keep.iter();
        row.retain(|_| keep.next() == Some(&true));
    }
    let mut columns: Vec<Column> =
        columns.into_iter().zip(keep).filter_map(|(column, keep)| keep.then_some(column)).collect();
    if !columns.iter().any(|column| column.stretches) {
        if let Some(column) = columns.iter_mut().find(|column| column.align == Align::Left) {
            column.stretches = true;
        }
    }
    (columns, rows)
}

/// The columns of buffers.
pub fn buffer_columns(view: &View) -> Vec<Column> {
    let pid = view.buffers.iter().filter_map(|buffer| Some(buffer.pid?.to_string().len())).max();
    vec![
        Column::right("Dev", 3),
        Column::right("PID", pid.unwrap_or(0).max(5)),
        Column::right("Size", 10),
        Column::left("Kind", 8),
        Column::right("a bank", 10).rank(3),
        Column::right("Banks", 5).rank(4),
        Column::right("Address", 10).rank(5),
        Column::right("Age", 6).rank(1),
        Column::left("Label", 24).stretching(),
    ]
}

/// The row of one buffer.
pub fn buffer_cells(buffer: &Buffer, style: &Style) -> Vec<Cell> {
    let or_absent = |text: Option<String>| words(text.as_deref(), style);
    vec![
        match &buffer.devices[..] {
            [] => or_absent(None),
            devices => Cell::Text(clean(&joined(devices)).into_owned(), Tone::Strong),
        },
        or_absent(buffer.pid.map(|pid| pid.to_string())),
        or_absent(buffer.bytes.map(|bytes| bytes.to_string())),
        Cell::plain(clean(&buffer.kind.to_uppercase())),
        or_absent(buffer.bank_bytes.map(|bytes| bytes.to_string())),
        or_absent(buffer.banks.map(|banks| banks.to_string())),
        Cell::plain(format!("{}0x{:x}", if buffer.address_is_relative { "+" } else { "" }, buffer.address)),
        or_absent(buffer.age_seconds.map(age)),
        words(buffer.label.as_deref(), style),
    ]
}

/// The columns of exited processes.
pub fn death_columns() -> Vec<Column> {
    vec![
        Column::right("Dev", 3),
        Column::right("PID", 5),
        Column::left("User", 6).rank(2),
        Column::left("Exited with device memory", 12).stretching(),
        Column::right("Total", 5),
        Column::right("DRAM", 5).rank(1),
        Column::right("L1", 5).rank(1),
        Column::right("Ago", 6),
        Column::left("How", 6),
    ]
}

/// The row of one exited process.
pub fn death_cells(death: &Death, view: &View, style: &Style) -> Vec<Cell> {
    vec![
        Cell::Text(joined(&death.devices), Tone::Strong),
        Cell::plain(death.pid.to_string()),
        words(death.user.as_deref(), style),
        words(death.command.as_deref().map(from_script), style),
        bytes(death.usage.total(), style),
        bytes(death.usage.dram_used, style),
        bytes(death.usage.l1_used, style),
        words(ago(death, view).as_deref(), style),
        words(death.how.as_deref(), style),
    ]
}

/// How long ago a process exited.
pub fn ago(death: &Death, view: &View) -> Option<String> {
    Some(age((view.taken_at?.0 - death.died_at.0).max(0) as f64 / 1000.0))
}

/// A text, or that there is none.
pub fn words(text: Option<&str>, style: &Style) -> Cell {
    match text {
        Some(text) => Cell::plain(clean(text)),
        None => Cell::Text(style.glyphs().absent.into(), Tone::Faint),
    }
}

/// A number of bytes, or that there is none.
pub fn bytes(bytes: Option<Bytes>, style: &Style) -> Cell {
    match bytes {
        Some(Bytes(0)) => Cell::Text("0".into(), Tone::Faint),
        Some(bytes) => Cell::plain(bytes.short()),
        None => Cell::Text(style.glyphs().absent.into(), Tone::Faint),
    }
}
