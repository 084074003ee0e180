//! What keys and the mouse do to the process table.

use super::placed;
use crate::keys::Action;
use crate::overlay::Detail;
use crate::panels::heading::{HEAD, column_at, room};
use crate::panels::layout::{Panel, area_of};
use crate::panels::{filter, signals, sort};
use crate::rows::sort_by;
use crate::screen::Rect;
use crate::state::{Overlay, TopState};
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

/// Columns that the command moves with each key.
const SIDEWAYS: usize = 8;

/// Rows that one notch of the wheel moves the table.
const NOTCH: usize = 3;

/// Two clicks are one double click when so many milliseconds at the most, or one sample, are between them.
const DOUBLE_CLICK_MS: u64 = 500;

/// Whether the action meant something here.
pub fn act(state: &mut TopState, action: Action) -> bool {
    state.refresh_rows();
    let at = state.table.cursor.at;
    let last = state.rows.len().saturating_sub(1);
    let page = shown_rows(state).max(2) - 1;
    match action {
        Action::Left => state.table.sideways = state.table.sideways.saturating_sub(SIDEWAYS),
        Action::Right => {
            let lengths = state.rows.from(0).filter_map(|(_, process, _)| Some(process.command.as_ref()?.len()));
            let most = lengths.max().unwrap_or(0).saturating_sub(1);
            state.table.sideways = (state.table.sideways + SIDEWAYS).min(most / SIDEWAYS * SIDEWAYS);
        }
        Action::Enter => open(state),
        Action::Back if !state.table.filter.is_empty() => state.table.filter.clear(),
        Action::Ascending => state.settings.descending = false,
        Action::Descending => state.settings.descending = true,
        Action::SortMenu => state.overlay = Some(sort::menu(&state.settings)),
        Action::Filter => state.overlay = Some(Overlay::Filter(filter::Prompt::new(state))),
        Action::Tree => state.settings.tree = !state.settings.tree,
        Action::Tag => {
            if let Some(pid) = state.table.cursor.key {
                if !state.table.tagged.remove(&pid) {
                    state.table.tagged.insert(pid);
                }
                select(state, at + 1);
            }
        }
        Action::UntagAll => state.table.tagged.clear(),
        // A process with this pid is another one today.
        Action::Signal if state.replay.is_some() => state.notice = Some("signals cannot be sent in a replay".into()),
        Action::Signal if state.hosts.is_some() => state.notice = Some(signals::REMOTE.into()),
        Action::Signal if state.settings.read_only => {
            state.notice = Some("read-only: signals are disabled".into());
        }
        Action::Signal => match signals::Menu::for_processes(state) {
            Some(menu) => state.overlay = Some(Overlay::Signals(menu)),
            None => state.notice = Some("no process is selected".into()),
        },
        _ => match action.moved(at, page, last) {
            Some(to) => select(state, to),
            None => return false,
        },
    }
    state.table.clicked = None;
    state.refresh_rows();
    true
}

pub fn select(state: &mut TopState, at: usize) {
    let shown = shown_rows(state);
    state.table.select(&state.rows, at, shown);
}

/// For how many rows there is room on the screen.
fn shown_rows(state: &TopState) -> usize {
    area_of(state, Panel::Processes).map_or(0, room)
}

fn open(state: &mut TopState) {
    if let Some(pid) = state.table.cursor.key {
        state.overlay = Some(Overlay::Detail(Detail { pid, scroll: 0 }));
    }
}

pub fn mouse(state: &mut TopState, area: Rect, event: MouseEvent) {
    state.refresh_rows();
    let first = state.table.first(&state.rows, room(area));
    let line = event.row.saturating_sub(area.y);
    match event.kind {
        MouseEventKind::ScrollUp => state.table.cursor.turn(first.saturating_sub(NOTCH)),
        MouseEventKind::ScrollDown => {
            state.table.cursor.turn((first + NOTCH).min(state.rows.len().saturating_sub(room(area))));
        }
        MouseEventKind::Down(MouseButton::Left) if line + 1 == HEAD => {
            if let Some(column) = column_at(&placed(state, area), event.column) {
                sort_by(&mut state.settings, column);
            }
        }
        MouseEventKind::Down(MouseButton::Left) if line >= HEAD => click(state, first + usize::from(line - HEAD)),
        _ => {}
    }
    state.refresh_rows();
}

/// Selects a row; the second click on it opens it.
fn click(state: &mut TopState, at: usize) {
    let Some(pid) = state.rows.pid_at(at) else { return };
    let now = state.latest.snapshot.taken_at;
    let between = state.settings.interval_ms.max(DOUBLE_CLICK_MS);
    let before = state.table.clicked.replace((pid, now));
    select(state, at);
    if before.is_some_and(|(other, then)| other == pid && now.0.abs_diff(then.0) <= between * 3 / 2) {
        state.table.clicked = None;
        open(state);
    }
}
