//! The process table.

mod act;
mod cells;

use super::heading::{self, HEAD, Placed, Remark, direction, head, room, seen};
use crate::column::ProcessColumn;
use crate::paint::{Buffer, Rect, Style, Tone, cell, fill, put};
use crate::rows::{Branch, ColumnWidths};
use crate::state::TopState;
use model::Process;
use show::command::from_script;
use show::figures::no_process;

pub use act::{act, mouse, select};
pub use cells::duration;

type PlacedColumn = Placed<ProcessColumn>;

pub fn draw(state: &TopState, area: Rect, buf: &mut Buffer) {
    let area = area.intersection(buf.area);
    if area.is_empty() {
        return;
    }
    let columns = placed(state, area);
    let first = state.table.first(&state.rows, room(area));
    title(state, area, first, &columns, buf);
    if area.height > 1 {
        heads(state, area, &columns, buf);
    }
    let lines = area.top().saturating_add(HEAD)..area.bottom();
    for ((row, process, branch), y) in state.rows.from(first).zip(lines.clone()) {
        let is_tagged = state.table.tagged.contains(&row.pid);
        let whole = match (state.table.cursor.key == Some(row.pid), is_tagged) {
            (true, _) => Some(state.theme.style(Tone::Selected)),
            (false, true) => Some(state.theme.style(Tone::Tagged)),
            (false, false) => None,
        };
        if let Some(style) = whole {
            fill(buf, Rect { y, height: 1, ..area }, style);
        }
        if is_tagged {
            let mark = if state.theme.unicode { "•" } else { "+" };
            put(buf, area.x, y, area.right(), mark, whole.unwrap_or_default());
        }
        for place in &columns {
            if place.column == ProcessColumn::Command {
                draw_command(state, process, branch, place, y, whole, buf);
                continue;
            }
            let (text, tone) = cells::text(place.column, row, process, &state.theme);
            let style = whole.unwrap_or_else(|| state.theme.style(tone));
            cell(buf, (place.x, y), place.width, &text, place.column.align(), style, &state.theme);
        }
    }
    if state.rows.len() == 0 {
        let y = lines.start;
        if y < lines.end {
            put(buf, area.x + 1, y, area.right(), why_empty(state), state.theme.style(Tone::Faint));
        }
    }
}

/// The least that is worth showing of a command.
const COMMAND: u16 = 18;

fn width(column: ProcessColumn, widths: &ColumnWidths) -> u16 {
    match column {
        ProcessColumn::Devices => widths.devices.clamp(4, 11),
        ProcessColumn::Pid => widths.pid.max(5),
        ProcessColumn::User => widths.user.clamp(5, 10),
        ProcessColumn::Container => widths.container.clamp(10, 12),
        ProcessColumn::Source => widths.source.max(7),
        ProcessColumn::Growth => 8,
        ProcessColumn::Command => COMMAND,
        _ => 6,
    }
}

/// The columns that are shown. The first column of the screen is for marks.
pub fn placed(state: &TopState, area: Rect) -> Vec<PlacedColumn> {
    let widths = &state.rows.widths;
    let mut chosen: Vec<ProcessColumn> = Vec::new();
    for column in &state.settings.columns {
        let has_any = match column {
            ProcessColumn::Container => widths.container > 0,
            ProcessColumn::Utilization => widths.has_utilization,
            _ => true,
        };
        if has_any && !chosen.contains(column) {
            chosen.push(*column);
        }
    }
    let needed = |chosen: &[ProcessColumn]| 1 + chosen.iter().map(|column| width(*column, widths) + 1).sum::<u16>();
    let mut leaving = ProcessColumn::leaving();
    // A table without a single column would say nothing.
    while needed(&chosen) > area.width + 1 && chosen.len() > 1 {
        let Some(least) = leaving.next() else { break };
        chosen.retain(|column| *column != least);
    }
    let spare = (area.width + 1).saturating_sub(needed(&chosen));
    let mut x = area.x.saturating_add(1);
    let mut all = Vec::with_capacity(chosen.len());
    for column in chosen {
        let mut columns = width(column, widths);
        if column == ProcessColumn::Command {
            columns += spare;
        }
        all.push(PlacedColumn { column, x, width: columns.min(area.right().saturating_sub(x)) });
        x = x.saturating_add(columns + 1);
    }
    all
}

fn why_empty(state: &TopState) -> &'static str {
    match state.rows.all_len() {
        _ if state.snapshot().taken_at.0 == 0 => "no sample yet",
        0 => no_process(state.devices().iter().any(|it| it.foreign_holders + it.memory.untracked_processes > 0)),
        _ => "No process matches the filter (Esc or /: change it)",
    }
}

/// How many there are, which of them are shown, and what is not to be seen otherwise.
fn title(state: &TopState, area: Rect, first: usize, columns: &[PlacedColumn], buf: &mut Buffer) {
    let (table, settings, rows) = (&state.table, &state.settings, &state.rows);
    let shown = match (rows.len(), rows.all_len()) {
        (shown, all) if shown == all => all.to_string(),
        (shown, all) => format!("{shown} of {all}"),
    };
    let is_hidden = !columns.iter().any(|place| place.column == settings.sort);
    let sorted = format!("{} {}", settings.sort.name(), direction(&state.theme, settings.descending));
    let remarks = [
        (!table.tagged.is_empty(), "tagged ", table.tagged.len().to_string(), Tone::Tagged),
        (!table.filter.is_empty(), "filter ", table.filter.clone(), Tone::Warning),
        (is_hidden, "sorted by ", sorted, Tone::Plain),
        (settings.tree, "tree", String::new(), Tone::Plain),
    ];
    let remarks = remarks.into_iter().filter(|(is_said, ..)| *is_said);
    let remarks: Vec<Remark> =
        remarks.map(|(_, label, value, tone)| ((label.to_owned(), Tone::Faint), (value, tone))).collect();
    let part = seen(first, area, rows.len()).unwrap_or_default();
    heading::title(buf, area, " Processes ", &shown, &remarks, &part, &state.theme);
}

fn heads(state: &TopState, area: Rect, columns: &[PlacedColumn], buf: &mut Buffer) {
    let mark = direction(&state.theme, state.settings.descending);
    for place in columns {
        let mark = Some(mark).filter(|_| place.column == state.settings.sort);
        head(buf, area.y + 1, place, (place.column.head(), place.column.align()), mark, &state.theme);
    }
}

/// The command, scrolled sideways, behind its place in the tree.
fn draw_command(
    state: &TopState,
    process: &Process,
    branch: Branch,
    place: &PlacedColumn,
    y: u16,
    whole: Option<Style>,
    buf: &mut Buffer,
) {
    let theme = &state.theme;
    let end = place.x.saturating_add(place.width).min(buf.area.right());
    let style = |tone| whole.unwrap_or_else(|| theme.style(tone));
    let mut x = place.x;
    if state.settings.tree {
        x = put(buf, x, y, end, &branch.prefix(theme.unicode), style(Tone::Border));
    }
    let command = process.command.as_deref().map(from_script);
    let Some(command) = command.or(process.name.as_deref()) else {
        put(buf, x, y, end, theme.glyphs().absent, style(Tone::Faint));
        return;
    };
    let columns = usize::from(end.saturating_sub(x));
    put(buf, x, y, end, &cells::window(command, state.table.sideways, columns, theme.glyphs().cut), style(Tone::Plain));
}

#[cfg(test)]
mod tests;
