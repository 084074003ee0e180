//! The list of processes, buffers, deaths or leftovers: its names in a line, its rows below.

use super::rows::{self, MemoryRow, Tab};
use super::{cursor, selected_chip, style_of};
use crate::paint::{Align, Buffer, Rect, Tone, cell, columns, fill, put, put_line, rule, split};
use crate::state::TopState;
use model::Bytes;
use show::command::from_script;
use show::grid::{self, Cell, Column};
use show::memory::draw::lists::{
    ago, buffer_cells, buffer_columns, bytes, death_cells, death_columns, process_cells, process_columns, words,
};
use show::memory::map;
use show::memory::view::{Chip, Death, Holder, Part, View};
use show::style::Style;

/// Notes that are below a list, where there is room.
const NOTES: usize = 3;
/// The buffers of a process are shown below the list where there are so many lines: a title, a head and some rows.
const PREVIEW: u16 = 5;

/// Of buffers that are in no list: their process counts them alone, or only the largest of the machine are listed.
const COUNTED: &str = "counted, but not listed";

/// How per-buffer data comes about.
const REMEDY: &str = "run programs with `ttmon run`, or install the Python package";

/// The names of the lists, and from where to where each goes.
fn names(state: &TopState, view: &View, area: Rect) -> Vec<(Tab, String, u16, u16)> {
    let mut x = area.x.saturating_add(2);
    let place = |tab: &Tab| {
        let n = rows::of(state, view, *tab).len();
        let name = match tab {
            Tab::Processes => "Processes".into(),
            Tab::Buffers => buffers_name(state),
            Tab::Map => map_name(state),
            Tab::Deaths => "Exited".into(),
            Tab::Left => "Stale".to_owned(),
        };
        let text = if *tab == Tab::Map || (*tab == Tab::Buffers && state.shown.memory.is_none()) {
            format!(" {name} ")
        } else {
            format!(" {name} {n} ")
        };
        let from = x;
        x = x.saturating_add(columns(&text));
        let place = (*tab, text, from, x);
        x = x.saturating_add(1);
        place
    };
    Tab::ALL.iter().map(place).collect()
}

fn buffers_name(state: &TopState) -> String {
    let chosen = &state.memory;
    let kind = chosen.kind.map(|kind| format!("{} ", kind.to_uppercase())).unwrap_or_default();
    let of = chosen.pid.map(|pid| format!(" of {pid}")).unwrap_or_default();
    if kind.is_empty() { format!("Buffers{of}") } else { format!("{kind}buffers{of}") }
}

fn map_name(state: &TopState) -> String {
    let kind = state.memory.kind.filter(|_| state.memory.tab == Tab::Map);
    kind.map_or_else(|| "Bank map".to_owned(), |kind| format!("{} bank map", kind.to_uppercase()))
}

/// The list whose name is in a column.
pub fn tab_at(state: &TopState, view: &View, area: Rect, column: u16) -> Option<Tab> {
    names(state, view, area).into_iter().find(|(_, _, from, to)| (*from..*to).contains(&column)).map(|(tab, ..)| tab)
}

pub fn tabs(state: &TopState, view: &View, area: Rect, buf: &mut Buffer) {
    let theme = &state.theme;
    rule(buf, area, theme);
    if area.height == 0 {
        return;
    }
    let mut x = area.x;
    for (tab, text, from, _) in names(state, view, area) {
        let tone = if tab == state.memory.tab { Tone::Selected } else { Tone::Title };
        x = put(buf, from, area.y, area.right(), &text, theme.style(tone));
    }
    let hints = match (state.memory.tab, state.memory.pid) {
        (Tab::Processes, _) => [" Left, Right: other lists   Enter: its buffers ", " Left, Right   Enter: buffers "],
        (Tab::Buffers, None) => [" m: by kind   Enter: details ", " Enter: details "],
        (Tab::Buffers, Some(_)) => [" m: by kind   Enter: details   Esc: back ", " Esc: back "],
        (Tab::Map, _) => [" m: next kind   Enter: its buffers   b: back ", " m: next kind   b: back "],
        (Tab::Deaths, _) => [" of all chips "; 2],
        (Tab::Left, _) => [" of all chips   Enter: select the chip ", " Enter: select the chip "],
    };
    let fits = |hint: &&str| x.saturating_add(columns(hint)).saturating_add(3) <= area.right();
    let Some(hint) = hints.into_iter().find(fits) else { return };
    let at = area.right().saturating_sub(columns(hint).saturating_add(2));
    put(buf, at, area.y, area.right(), hint, theme.style(Tone::Faint));
}

pub fn draw(state: &TopState, view: &View, area: Rect, buf: &mut Buffer) {
    if area.height == 0 || area.width < 2 {
        return;
    }
    let rows = rows::of(state, view, state.memory.tab);
    let at = cursor(&state.memory, &rows);
    let (mut rest, faint) = (area, state.theme.style(Tone::Faint));
    if rows.is_empty() {
        for line in nothing(state, view) {
            put(buf, rest.x + 1, rest.y, rest.right(), &line, faint);
            rest = split(rest, 1).1;
        }
    } else {
        let first = state.memory.cursor.first(at, rows.len(), usize::from(area.height - 1).max(1));
        rest = split(rest, table(state, view, state.memory.tab, &rows[first..], Some(at - first), rest, buf)).1;
    }
    for text in notes(state, view).into_iter().take(usize::from(rest.height)) {
        cell(buf, (rest.x + 1, rest.y), rest.width - 1, &text, Align::Left, faint, &state.theme);
        rest = split(rest, 1).1;
    }
    if let Some(MemoryRow::Process { holder, part }) = rows.get(at) {
        preview(state, view, (holder, part), split(rest, 1).1, buf);
    }
}

/// The buffers of the process that the cursor is on, where there is room for some.
fn preview(state: &TopState, view: &View, (holder, part): (&Holder, &Part), area: Rect, buf: &mut Buffer) {
    let buffers: Vec<MemoryRow> = rows::buffers(state, view, Some(holder.pid), None).map(MemoryRow::Buffer).collect();
    if area.height < PREVIEW || state.shown.memory.is_none() {
        return;
    }
    if buffers.is_empty() {
        let lines = match holder.agent {
            Some(_) if holds_some(part) => [format!("the buffers of {} are {COUNTED}", holder.pid), String::new()],
            Some(_) => [format!("{} has no buffers on this chip", holder.pid), String::new()],
            None => [format!("no per-buffer data for process {}:", holder.pid), REMEDY.into()],
        };
        for (line, y) in lines.iter().zip(area.y..) {
            put(buf, area.x + 1, y, area.right(), line, state.theme.style(Tone::Faint));
        }
        return;
    }
    let text = format!("Largest buffers of {}", holder.pid);
    put(buf, area.x + 1, area.y, area.right(), &text, state.theme.style(Tone::Title));
    table(state, view, Tab::Buffers, &buffers, None, split(area, 1).1, buf);
}

/// The rows that can be seen, below their head. Returns how many lines that makes.
fn table(
    state: &TopState,
    view: &View,
    tab: Tab,
    rows: &[MemoryRow],
    selected: Option<usize>,
    area: Rect,
    buf: &mut Buffer,
) -> u16 {
    let theme = &state.theme;
    let style = style_of(theme, area.width);
    let seen = &rows[..rows.len().min(usize::from(area.height.saturating_sub(1)).max(1))];
    let columns = match tab {
        Tab::Processes => process_columns(view),
        Tab::Buffers => buffer_columns(view),
        Tab::Map => map::columns(),
        Tab::Deaths => death_columns(),
        Tab::Left => left_columns(),
    };
    let cells = seen.iter().map(|row| cells(row, view, &style)).collect();
    let lines = grid::lines(columns, cells, usize::from(area.width.saturating_sub(2)), Tone::Faint, &style);
    for (n, (mut line, y)) in lines.into_iter().zip(area.top()..area.bottom()).enumerate() {
        if selected.is_some_and(|selected| n == selected + 1) {
            line.iter_mut().for_each(|(_, tone)| *tone = Tone::Selected);
            fill(buf, Rect { y, height: 1, ..area }, theme.style(Tone::Selected));
        }
        put_line(buf, (area.x + 1, y), area.right(), &line, theme);
    }
    1 + seen.len() as u16
}

fn cells(row: &MemoryRow, view: &View, style: &Style) -> Vec<Cell> {
    match row {
        MemoryRow::Process { holder, part } => process_cells(holder, part.usage, part.source.as_deref(), style),
        MemoryRow::Buffer(buffer) => buffer_cells(buffer, style),
        MemoryRow::Block(block) => map::cells(block, style),
        MemoryRow::Death(death) => death_cells(death, view, style),
        MemoryRow::Left { chip, bytes, death } => left_cells(chip, *bytes, *death, view, style),
    }
}

fn left_columns() -> Vec<Column> {
    vec![
        Column::right("Dev", 3),
        Column::right("stale", 10),
        Column::left("board", 8).rank(2),
        Column::left("last exited process", 20).stretching(),
        Column::right("held", 6).rank(1),
        Column::right("Ago", 6),
        Column::left("How", 8),
    ]
}

fn left_cells(chip: &Chip, stale: Bytes, death: Option<&Death>, view: &View, style: &Style) -> Vec<Cell> {
    let who = death.map(|death| format!("{} {}", death.pid, from_script(death.command.as_deref().unwrap_or_default())));
    let ago = death.and_then(|death| ago(death, view));
    vec![
        Cell::Text(chip.id.clone(), Tone::Strong),
        Cell::Text(stale.to_string(), Tone::Warning),
        words(chip.board.as_deref(), style),
        words(who.as_deref(), style),
        bytes(death.and_then(|death| death.usage.total()), style),
        words(ago.as_deref(), style),
        words(death.and_then(|death| death.how.as_deref()), style),
    ]
}

fn holds_some(part: &Part) -> bool {
    part.usage.total() > Some(Bytes(0))
}

/// Whether it is a process with an agent that holds some of the chip.
fn is_counted(row: &MemoryRow) -> bool {
    matches!(row, MemoryRow::Process { holder, part } if holder.agent.is_some() && holds_some(part))
}

fn nothing(state: &TopState, view: &View) -> Vec<String> {
    let has_books = view.processes.iter().any(|holder| holder.agent.is_some());
    let text = match state.memory.tab {
        Tab::Processes if selected_chip(state, view).is_none() => "no chip is selected",
        Tab::Processes => "no process holds this chip",
        Tab::Buffers | Tab::Map if state.shown.memory.is_none() && state.replay.is_some() => {
            "recordings have no per-buffer data"
        }
        Tab::Buffers | Tab::Map if state.shown.memory.is_none() && state.hosts.is_some() => {
            "per-buffer data needs the machine's own service (--host)"
        }
        Tab::Buffers | Tab::Map if state.shown.memory.is_none() => "reading …",
        Tab::Buffers | Tab::Map if rows::processes(state, view).is_empty() => "no process holds this chip",
        Tab::Buffers | Tab::Map if !has_books => {
            return vec!["no per-buffer data for any process here:".into(), REMEDY.into()];
        }
        Tab::Map if state.memory.kind.is_some() => "no buffer of this kind (m: next kind)",
        Tab::Buffers if state.memory.kind.is_some() => "no buffer of this kind (m: next kind, Esc: all)",
        Tab::Map | Tab::Buffers if rows::processes(state, view).iter().any(is_counted) => {
            return vec![format!("the buffers on this chip are {COUNTED}")];
        }
        Tab::Map => "no buffer with an address on this chip",
        Tab::Buffers => "no buffer on this chip",
        Tab::Deaths if state.replay.as_ref().is_some_and(|replay| replay.exits.is_none()) => {
            "this recording has no log of exited processes"
        }
        Tab::Deaths => {
            return vec![
                "no process is known to have exited while it held device memory:".into(),
                "only the service (`ttmon serve`) keeps a record of them".into(),
            ];
        }
        Tab::Left if view.chips.iter().all(|chip| chip.stale_bytes.is_none()) => {
            "unknown: no source counts memory of exited processes"
        }
        Tab::Left => "no memory is attributed to exited processes",
    };
    vec![text.into()]
}

/// How many buffers the list leaves out.
pub fn foot(state: &TopState, view: &View, area: Rect, buf: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    let consequence = if state.memory.tab == Tab::Map { ": the map shows them as free" } else { "" };
    let whose = if view.chips.len() > 1 { "of all chips " } else { "" };
    let text = match view.unlisted_buffers {
        1 => format!("1 buffer {whose}is not listed{consequence}"),
        n => format!("{n} buffers {whose}are not listed{consequence}"),
    };
    put(buf, area.x.saturating_add(1), area.y, area.right(), &text, state.theme.style(Tone::Warning));
}

/// What could not be read.
fn notes(state: &TopState, view: &View) -> Vec<String> {
    if !matches!(state.memory.tab, Tab::Processes | Tab::Buffers | Tab::Map) {
        return Vec::new();
    }
    view.faults.iter().take(NOTES).map(|fault| format!("note: {}: {}", fault.path, fault.reason)).collect()
}
