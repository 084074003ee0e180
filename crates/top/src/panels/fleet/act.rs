//! What keys and the mouse do to the list of machines.

use super::columns::FleetColumn;
use super::{columns_of, list_area};
use crate::hosts::HostSort;
use crate::keys::Action;
use crate::panels::filter;
use crate::panels::heading::{HEAD, column_at, room};
use crate::panels::layout::{Panel, area_of};
use crate::screen::Rect;
use crate::state::{Overlay, TopState, TopView};
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

/// Lines that one notch of the wheel moves the list.
const NOTCH: usize = 3;

/// Whether the action meant something here.
pub fn act(state: &mut TopState, action: Action) -> bool {
    let area = area_of(state, Panel::Fleet);
    let Some(hosts) = &mut state.hosts else { return false };
    let shown = area.map_or(0, |area| room(list_area(hosts, area)));
    let at = hosts.cursor.at;
    let page = shown.max(2) - 1;
    match action {
        Action::Right => hosts.expand(Some(true)),
        Action::Left => hosts.expand(Some(false)),
        Action::Tag => hosts.expand(None),
        Action::Tree => hosts.expand_all(),
        Action::Ascending => sorted(state, |hosts| hosts.reversed = true),
        Action::Descending => sorted(state, |hosts| hosts.reversed = false),
        Action::SortMenu => sorted(state, |hosts| {
            let at = HostSort::ALL.iter().position(|sort| *sort == hosts.sort).unwrap_or(0);
            hosts.sort = HostSort::ALL[(at + 1) % HostSort::ALL.len()];
            hosts.reversed = false;
        }),
        Action::Filter => state.overlay = Some(Overlay::Filter(filter::Prompt::new(state))),
        Action::Enter => enter(state, TopView::Overview),
        Action::Overview => enter(state, TopView::Overview),
        Action::Memory => enter(state, TopView::Memory),
        Action::Mesh => enter(state, TopView::Mesh),
        Action::Events => enter(state, TopView::Events),
        Action::NextView if hosts.entered.is_none() => enter(state, TopView::Overview),
        Action::Back if !hosts.filter.is_empty() => hosts.set_filter(String::new()),
        // One Esc too many does not quit.
        Action::Back => state.notice = Some("press q to quit".into()),
        Action::Signal => state.notice = Some(super::super::signals::REMOTE.into()),
        _ => match action.moved(at, page, hosts.len().saturating_sub(1)) {
            Some(to) => hosts.select(to, shown),
            None => return false,
        },
    }
    true
}

fn sorted(state: &mut TopState, change: impl FnOnce(&mut crate::hosts::Hosts)) {
    if let Some(hosts) = &mut state.hosts {
        change(hosts);
        hosts.arrange();
        let way = if hosts.reversed { ", reversed" } else { "" };
        state.notice = Some(format!("sorted by {}{way}", hosts.sort.name()));
    }
}

/// Goes to the machine that the cursor is on, and to its device where it is on one.
pub fn enter(state: &mut TopState, view: TopView) {
    let Some((name, device)) = state.hosts.as_ref().and_then(|hosts| hosts.cursor.key.clone()) else { return };
    state.enter(&name);
    state.view = view;
    state.device = device.or(state.device.take());
}

pub fn mouse(state: &mut TopState, area: Rect, event: MouseEvent) {
    let Some(hosts) = &mut state.hosts else { return };
    let columns = columns_of(hosts, area);
    let area = list_area(hosts, area);
    let (room, first) = (room(area), hosts.first(room(area)));
    let line = event.row.saturating_sub(area.y);
    match event.kind {
        MouseEventKind::ScrollUp => hosts.cursor.turn(first.saturating_sub(NOTCH)),
        MouseEventKind::ScrollDown => hosts.cursor.turn((first + NOTCH).min(hosts.len().saturating_sub(room))),
        MouseEventKind::Down(MouseButton::Left) if line + 1 == HEAD => {
            let hit = column_at(&columns, event.column);
            if let Some(sort) = hit.and_then(FleetColumn::sort) {
                hosts.sort_by(sort);
            }
        }
        MouseEventKind::Down(MouseButton::Left) if line >= HEAD && line < area.height => {
            let at = first + usize::from(line - HEAD);
            // The second click on a line opens it.
            let is_again = at == hosts.cursor.at;
            if at < hosts.len() {
                hosts.select(at, room);
                if is_again {
                    enter(state, TopView::Overview);
                }
            }
        }
        _ => {}
    }
}
