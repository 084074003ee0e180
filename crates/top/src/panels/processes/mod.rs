//! The process table.

mod act;
mod cells;
mod columns;

use crate::paint::{cell, columns as width_of, fill, put, repeat};
use crate::rows::Branch;
use crate::state::TopState;
use crate::theme::Tone;
use columns::{PlacedColumn, placed};
use model::Process;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use show::figures::no_process;
use show::text::Align;

pub use act::{act, mouse};

/// The rows above the processes: the title, and the names of the columns.
const HEAD: u16 = 2;

/// For how many processes there is room.
fn room(area: Rect) -> usize {
    usize::from(area.height.saturating_sub(HEAD))
}

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
        let whole = match (state.table.selected == Some(row.pid), is_tagged) {
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
            if let Some(command) = place.as_command() {
                draw_command(state, process, branch, command, y, whole, buf);
                continue;
            }
            let (text, tone) = cells::text(place.column, row, process, &state.theme);
            let style = whole.unwrap_or_else(|| state.theme.style(tone));
            cell(buf, (place.x, y), place.width, &text, place.align(), style, &state.theme);
        }
    }
    if state.rows.len() == 0 {
        let y = lines.start;
        if y < lines.end {
            put(buf, area.x + 1, y, area.right(), why_empty(state), state.theme.style(Tone::Faint));
        }
    }
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
    let (theme, rows, end) = (&state.theme, &state.rows, area.right());
    let (border, faint) = (theme.style(Tone::Border), theme.style(Tone::Faint));
    repeat(buf, area.x, area.y, end, theme.glyphs().horizontal, border);
    let shown = match (rows.len(), rows.all_len()) {
        (shown, all) if shown == all => all.to_string(),
        (shown, all) => format!("{shown} of {all}"),
    };
    // Which part of them is seen, when it is not all of them.
    let seen = room(area).min(rows.len() - first.min(rows.len()));
    let part = if seen < rows.len() { format!(" {}-{} ", first + 1, first + seen) } else { String::new() };
    let part_x = end.saturating_sub(width_of(&part) + 1);
    let mut x = put(buf, area.x + 1, area.y, end, " Processes ", theme.style(Tone::Title));
    x = put(buf, x, area.y, end, &format!("{shown} "), theme.style(Tone::Strong));
    let mut remark = |label: &str, value: &str, tone: Tone| {
        let left = part_x.saturating_sub(1);
        if x + width_of(label) + 3 < left {
            x = put(buf, x + 1, area.y, left, &format!(" {label}"), faint);
            x = put(buf, x, area.y, left, value, theme.style(tone));
            x = put(buf, x, area.y, left, " ", faint);
        }
    };
    if !state.table.tagged.is_empty() {
        remark("tagged ", &state.table.tagged.len().to_string(), Tone::Tagged);
    }
    if !state.table.filter.is_empty() {
        remark("filter ", &state.table.filter, Tone::Warning);
    }
    if !columns.iter().any(|place| place.column == state.settings.sort) {
        remark("sorted by ", &format!("{} {}", state.settings.sort.name(), direction(state)), Tone::Plain);
    }
    if state.settings.tree {
        remark("tree", "", Tone::Plain);
    }
    put(buf, part_x, area.y, end, &part, faint);
}

pub fn direction(state: &TopState) -> &'static str {
    match (state.theme.unicode, state.settings.descending) {
        (true, true) => "▼",
        (true, false) => "▲",
        (false, true) => "v",
        (false, false) => "^",
    }
}

/// The names of the columns. The mark of the sorted one is in the gap beside its name, so that nothing moves.
fn heads(state: &TopState, area: Rect, columns: &[PlacedColumn], buf: &mut Buffer) {
    let y = area.y + 1;
    for place in columns {
        let is_sorted = place.column == state.settings.sort;
        let style = state.theme.style(if is_sorted { Tone::Title } else { Tone::Faint });
        let head = place.column.head();
        cell(buf, (place.x, y), place.width, head, place.align(), style, &state.theme);
        if is_sorted {
            let mark_x = match place.align() {
                Align::Left => place.x + (head.len() as u16).min(place.width),
                Align::Right => (place.x + place.width).saturating_sub(head.len() as u16 + 1),
            };
            put(buf, mark_x, y, area.right(), direction(state), style);
        }
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
    let Some(command) = process.command.as_deref().or(process.name.as_deref()) else {
        put(buf, x, y, end, theme.glyphs().absent, style(Tone::Faint));
        return;
    };
    let columns = usize::from(end.saturating_sub(x));
    put(buf, x, y, end, &cells::window(command, state.table.sideways, columns, theme.glyphs().cut), style(Tone::Plain));
}

#[cfg(test)]
mod tests;
