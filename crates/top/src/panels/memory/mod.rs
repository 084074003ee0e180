//! Where memory went, down to single buffers and banks: the chips, the selected one in detail, and a list of its processes or
//! buffers, of exited processes, or of memory still attributed to those.

mod buffer_window;
mod chips;
mod detail;
#[cfg(test)]
mod golden;
mod list;
mod map;
mod rows;

use crate::cursor::Cursor;
use crate::keys::Action;
use crate::overlay::MemoryChosen as Chosen;
use crate::paint::{Buffer, Position, Rect, Theme, Tone, put, split};
use crate::state::TopState;
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use rows::{Key, MemoryRow, Tab};
use show::memory::of_snapshot;
use show::memory::view::{Chip, View};
use show::style::Style;
use std::borrow::Cow;
use watch::moment::Moment;

/// The kinds of buffers, in the order in which a key shows them alone.
const KINDS: [&str; 5] = ["dram", "trace", "l1", "cb", "l1_small"];
/// A list is not lower than this where something else can be left out: its title, its head and some rows.
const GOOD_LIST: u16 = 8;
/// The same for a map, which has lines of its own, and a list of blocks.
const GOOD_MAP: u16 = 14;
/// So many rows a turn of the wheel goes on.
const WHEEL: isize = 3;

struct MemoryLayout {
    grid: chips::ChipRows,
    chips: Rect,
    detail: Rect,
    lines: Vec<detail::MemoryLine>,
    tabs: Rect,
    /// The bank, above the list of its blocks.
    map: Rect,
    list: Rect,
    /// What the list leaves out.
    foot: Rect,
}

impl MemoryLayout {
    fn of(state: &TopState, view: &View, area: Rect) -> MemoryLayout {
        let grid = chips::ChipRows::of(state, view, area);
        let (chips, rest) = split(area, grid.rows);
        let lines = selected_chip(state, view).map(|chip| detail::lines(state, chip, rest)).unwrap_or_default();
        let (detail, below) = split(rest, lines.len() as u16);
        let (tabs, list) = split(below, 1);
        let (map, list) = split(list, map::height(state, view, list));
        let lists_buffers = matches!(state.memory.tab, Tab::Buffers | Tab::Map);
        let says_more = lists_buffers && view.unlisted_buffers > 0 && list.height >= 4;
        let (list, foot) = split(list, list.height - u16::from(says_more));
        MemoryLayout { grid, chips, detail, lines, tabs, map, list, foot }
    }

    /// How many rows the list shows: all but its head.
    fn page(&self) -> usize {
        usize::from(self.list.height.saturating_sub(1)).max(1)
    }
}

/// What is known of memory: with buffers once they were read, else what the snapshot has.
fn view_of(moment: &Moment) -> Cow<'_, View> {
    match &moment.memory {
        Some(view) => Cow::Borrowed(view),
        None => Cow::Owned(of_snapshot(&moment.snapshot)),
    }
}

fn is_selected(state: &TopState, chip: &Chip) -> bool {
    state.device.as_ref().is_some_and(|id| id.to_string() == chip.id)
}

fn selected_chip<'a>(state: &TopState, view: &'a View) -> Option<&'a Chip> {
    view.chips.iter().find(|chip| is_selected(state, chip))
}

/// Text of `ttmon mem` is made with a style of the same width and characters.
fn style_of(theme: &Theme, columns: u16) -> Style {
    Style { columns: columns.into(), rows: None, color: false, unicode: theme.unicode }
}

pub fn draw(state: &TopState, area: Rect, buf: &mut Buffer) {
    let area = area.intersection(buf.area);
    let view = view_of(&state.shown);
    if view.chips.is_empty() {
        let text = if state.snapshot().taken_at.0 == 0 { "reading …" } else { "no device" };
        put(buf, area.x.saturating_add(1), area.y, area.right(), text, state.theme.style(Tone::Faint));
        return;
    }
    let places = MemoryLayout::of(state, &view, area);
    chips::draw(state, &view, &places.grid, places.chips, buf);
    detail::draw(state, &places.lines, places.detail, buf);
    list::tabs(state, &view, places.tabs, buf);
    map::draw(state, &view, places.map, buf);
    list::draw(state, &view, places.list, buf);
    list::foot(state, &view, places.foot, buf);
    if let Some(key) = &state.memory.closer {
        buffer_window::draw(state, &view, key, area, places.list, buf);
    }
}

/// Whether the action meant something here.
pub fn act(state: &mut TopState, action: Action) -> bool {
    let moment = state.shown.clone();
    let view = view_of(&moment);
    let area = state.area;
    let body = Rect { y: area.y.saturating_add(1), height: area.height.saturating_sub(2), ..area };
    let page = MemoryLayout::of(state, &view, body).page();
    let rows = rows::of(state, &view, state.memory.tab);
    let at = cursor(&state.memory, &rows);
    let last = rows.len().saturating_sub(1);
    match action {
        Action::Left => step_tab(&mut state.memory, -1),
        Action::Right => step_tab(&mut state.memory, 1),
        Action::Enter => return enter(state, &rows, at),
        Action::Back => return back(&mut state.memory),
        Action::BankMap if state.memory.tab == Tab::Map => open(&mut state.memory, Tab::default()),
        Action::BankMap => open(&mut state.memory, Tab::Map),
        Action::Metric if matches!(state.memory.tab, Tab::Buffers | Tab::Map) => {
            let chosen = &mut state.memory;
            let next = chosen.kind.and_then(|kind| KINDS.iter().position(|other| *other == kind)).map_or(0, |n| n + 1);
            *chosen = Chosen { tab: chosen.tab, pid: chosen.pid, kind: KINDS.get(next).copied(), ..Chosen::default() };
        }
        _ => match action.moved(at, page, last) {
            Some(to) => select(&mut state.memory, &rows, to, page),
            None => return false,
        },
    }
    true
}

/// Goes on to another list, and round the ends.
fn step_tab(chosen: &mut Chosen, steps: isize) {
    let at = Tab::ALL.iter().position(|tab| *tab == chosen.tab).unwrap_or(0) as isize;
    open(chosen, Tab::ALL[(at + steps).rem_euclid(Tab::ALL.len() as isize) as usize]);
}

/// Shows another list, from its beginning.
fn open(chosen: &mut Chosen, tab: Tab) {
    *chosen = Chosen { tab, kind: chosen.kind, ..Chosen::default() };
}

/// A closer look at what the cursor is on.
fn enter(state: &mut TopState, rows: &[MemoryRow], at: usize) -> bool {
    if state.memory.closer.take().is_some() {
        return true;
    }
    match rows.get(at) {
        Some(MemoryRow::Process { holder, .. }) => {
            open(&mut state.memory, Tab::Buffers);
            state.memory.pid = Some(holder.pid);
        }
        Some(row @ MemoryRow::Buffer(_)) => state.memory.closer = Some(row.key()),
        Some(MemoryRow::Left { chip, .. }) => {
            select_chip(state, &chip.id);
        }
        Some(MemoryRow::Block(block)) => {
            if let Some(owner) = &block.used_by {
                open(&mut state.memory, Tab::Buffers);
                state.memory.pid = owner.pid;
            }
        }
        Some(MemoryRow::Death(_)) | None => {}
    }
    true
}

fn select_chip(state: &mut TopState, id: &str) {
    let device = state.devices().iter().find(|device| device.id.to_string() == id);
    state.device = device.map(|device| device.id.clone()).or(state.device.take());
}

/// One level up. Whether there was one.
fn back(chosen: &mut Chosen) -> bool {
    if chosen.closer.take().is_some() {
        return true;
    }
    if let Some(pid) = chosen.pid {
        *chosen = Chosen { cursor: Cursor::on(Key::Process(pid)), ..Chosen::default() };
        return true;
    }
    if chosen.tab == Tab::Map {
        open(chosen, Tab::default());
        return true;
    }
    let had_kind = chosen.tab == Tab::Buffers && chosen.kind.is_some();
    if had_kind {
        chosen.kind = None;
    }
    had_kind
}

fn cursor(chosen: &Chosen, rows: &[MemoryRow]) -> usize {
    chosen.cursor.place(rows.len(), |key| rows.iter().position(|row| row.is(key)))
}

fn select(chosen: &mut Chosen, rows: &[MemoryRow], at: usize, page: usize) {
    let at = at.min(rows.len().saturating_sub(1));
    chosen.cursor.select(at, rows.get(at).map(MemoryRow::key), rows.len(), page);
    // The details follow the cursor.
    if chosen.closer.is_some() {
        chosen.closer = chosen.cursor.key.clone();
    }
}

/// A click selects a chip, a list or a row, and a second one looks closer. The wheel goes through what is under it.
pub fn mouse(state: &mut TopState, area: Rect, event: MouseEvent) {
    let moment = state.shown.clone();
    let view = view_of(&moment);
    let places = MemoryLayout::of(state, &view, area);
    let position = Position { x: event.column, y: event.row };
    let steps = match event.kind {
        MouseEventKind::ScrollUp => -1,
        MouseEventKind::ScrollDown => 1,
        MouseEventKind::Down(MouseButton::Left) => 0,
        _ => return,
    };
    if steps == 0 && state.memory.closer.take().is_some() {
        return;
    }
    let (rows, page) = (rows::of(state, &view, state.memory.tab), places.page());
    let at = cursor(&state.memory, &rows);
    if places.chips.contains(position) {
        let hit = places.grid.at(places.chips, position, view.chips.len());
        match (steps, hit) {
            (0, Some(at)) => select_chip(state, &chips::ordered(state, &view)[at].id.clone()),
            (0, None) => {}
            (steps, _) => state.step_device(steps),
        }
    } else if steps != 0 {
        select(&mut state.memory, &rows, at.saturating_add_signed(steps * WHEEL), page);
    } else if places.tabs.contains(position) {
        if let Some(tab) = list::tab_at(state, &view, places.tabs, event.column) {
            open(&mut state.memory, tab);
        }
    } else if places.list.contains(position) && event.row > places.list.y {
        let row = state.memory.cursor.first(at, rows.len(), page) + usize::from(event.row - places.list.y - 1);
        if row < rows.len() {
            let again = row == at && state.memory.cursor.key.is_some();
            select(&mut state.memory, &rows, row, page);
            if again {
                enter(state, &rows, row);
            }
        }
    }
}
