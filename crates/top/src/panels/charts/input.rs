//! What keys and the mouse do to the charts.

use super::window::Window;
use super::{Chart, charts, end};
use crate::keys::Action;
use crate::overlay::PressedMoment;
use crate::panels::layout::{Panel, area_of};
use crate::screen::{Position, Rect};
use crate::state::TopState;
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use model::Timestamp;
use model::figure::device::kept_in_history;

/// The shortest time that charts show, in seconds, unless samples come so often that there is a column for each in less.
const SHORTEST: f64 = 15.0;

/// Whether the action meant something here.
pub fn act(state: &mut TopState, action: Action) -> bool {
    match action {
        Action::ZoomIn => zoom_at_cursor(state, 0.5),
        Action::ZoomOut => zoom_at_cursor(state, 2.0),
        Action::Older => pan(state, -1),
        Action::Newer => pan(state, 1),
        Action::Now => to_now(state),
        Action::Cursor => {
            state.charts.cursor = match state.charts.cursor {
                None if !state.history.is_empty() => Some(end(state)),
                _ => None,
            }
        }
        Action::Left | Action::Right if state.charts.cursor.is_some() => {
            step(state, if (action == Action::Left) == state.settings.reversed { 1 } else { -1 })
        }
        Action::Home | Action::End if state.charts.cursor.is_some() => {
            let newest = state.snapshot().taken_at;
            let to = if action == Action::End { newest } else { state.history.time(0).unwrap_or(newest) };
            put_cursor(state, to);
        }
        Action::Back if state.charts.cursor.is_some() => state.charts.cursor = None,
        Action::Back if state.charts.end.is_some() => state.charts.end = None,
        Action::Metric => state.charts.first = (state.charts.first + 1) % kept_in_history().count().max(1),
        Action::Overlay => state.settings.overlaid = !state.settings.overlaid,
        Action::Filled => state.settings.filled = !state.settings.filled,
        Action::Reversed => state.settings.reversed = !state.settings.reversed,
        _ => return false,
    }
    true
}

pub fn mouse(state: &mut TopState, area: Rect, event: MouseEvent) {
    let position = Position { x: event.column, y: event.row };
    let Some(chart) = charts(state, area).into_iter().find(|chart| chart.area.contains(position)) else { return };
    if chart.plot.is_empty() {
        return;
    }
    let column = event.column.clamp(chart.plot.left(), chart.plot.right() - 1) - chart.plot.x;
    match event.kind {
        MouseEventKind::ScrollUp => zoom(state, &chart, 0.5, Some(column)),
        MouseEventKind::ScrollDown => zoom(state, &chart, 2.0, Some(column)),
        MouseEventKind::Down(MouseButton::Left) if chart.plot.contains(position) => {
            state.charts.held = Some(PressedMoment { moment: chart.window.time(column), dragged: false });
        }
        MouseEventKind::Drag(MouseButton::Left) => {
            let Some(held) = &mut state.charts.held else { return };
            let moment = held.moment;
            if held.dragged || chart.window.column(moment) != Some(column) {
                held.dragged = true;
                end_with(state, &chart.window.with(moment, column));
            }
        }
        MouseEventKind::Up(MouseButton::Left) => {
            let Some(held) = state.charts.held.take() else { return };
            if !held.dragged {
                let again = state.charts.cursor.and_then(|cursor| chart.window.column(cursor)) == Some(column);
                state.charts.cursor = (!again).then(|| chart.window.time(column));
            }
        }
        _ => {}
    }
}

/// The chart that counts when a key is pressed: the first.
fn first(state: &TopState) -> Option<Chart> {
    charts(state, area_of(state, Panel::Charts)?).into_iter().find(|chart| !chart.plot.is_empty())
}

fn zoom_at_cursor(state: &mut TopState, factor: f64) {
    if let Some(chart) = first(state) {
        let column = state.charts.cursor.and_then(|cursor| chart.window.column(cursor));
        zoom(state, &chart, factor, column);
    }
}

/// Shows so many times the time that it did. What was drawn in the column stays there.
fn zoom(state: &mut TopState, chart: &Chart, factor: f64, column: Option<u16>) {
    let now = state.charts.span.unwrap_or(chart.window.span_ms() as f64 / 1000.0);
    let oldest = state.history.time(0).map_or(0.0, |oldest| (state.snapshot().taken_at.0 - oldest.0) as f64 / 1000.0);
    let longest = oldest.max(state.settings.history_seconds as f64).max(SHORTEST);
    let (columns, dots) = (chart.plot.width, super::Canvas::dots_across(state.theme.unicode));
    let usual = f64::from(columns) * f64::from(dots) * state.settings.interval_ms as f64 / 1000.0;
    let shortest = SHORTEST.min(usual).min(now);
    let span = if factor < 1.0 { (now * factor).max(shortest) } else { (now * factor).min(longest.max(now)) };
    state.charts.span = Some(span);
    let window = Window::new(end(state), span * 1000.0, columns, dots, state.settings.reversed);
    match column {
        Some(column) => end_with(state, &window.with(chart.window.time(column), column)),
        None if state.charts.end.is_some() => end_with(state, &window),
        None => {}
    }
}

/// Moves by a quarter of what is shown.
fn pan(state: &mut TopState, direction: i64) {
    if let Some(chart) = first(state) {
        let quarter = (chart.window.span_ms() / 4 / chart.window.column_ms()).max(1) * chart.window.column_ms();
        let to = Timestamp(chart.window.end().0 + direction * quarter);
        end_with(state, &Window::new(to, chart.window.span_ms() as f64, chart.plot.width, 1, state.settings.reversed));
    }
}

/// The charts end where this window does, as far as there is anything. At the newest sample they follow the present.
fn end_with(state: &mut TopState, window: &Window) {
    let newest = state.snapshot().taken_at;
    let oldest = state.history.time(0).unwrap_or(newest);
    let earliest = oldest.0.saturating_add(window.span_ms() - window.column_ms());
    let end = window.end().0.max(earliest);
    state.charts.end = (end.saturating_add(window.column_ms()) <= newest.0).then_some(Timestamp(end));
}

/// To the present; from there, to the zoom that was at first.
fn to_now(state: &mut TopState) {
    if state.charts.end.is_none() {
        state.charts.span = None;
    }
    state.charts.end = None;
    state.charts.cursor = None;
}

/// Moves the cursor by a column, towards the present or the past.
fn step(state: &mut TopState, direction: i64) {
    let (Some(chart), Some(cursor)) = (first(state), state.charts.cursor) else { return };
    let window = &chart.window;
    let to = if window.column(cursor).is_some() {
        Timestamp(cursor.0 + direction * window.column_ms())
    } else {
        // It was left behind: it comes back at the side that it went out at.
        cursor.clamp(window.dot_time(0), window.end())
    };
    put_cursor(state, to);
}

/// Puts the cursor somewhere, and the charts where it can be seen.
fn put_cursor(state: &mut TopState, to: Timestamp) {
    let newest = state.snapshot().taken_at;
    let oldest = state.history.time(0).unwrap_or(newest).min(newest);
    let to = to.clamp(oldest, newest);
    state.charts.cursor = Some(to);
    let Some(chart) = first(state) else { return };
    if chart.window.column(to).is_none() {
        let is_older = to < chart.window.dot_time(0);
        let edge = if is_older == state.settings.reversed { chart.plot.width - 1 } else { 0 };
        end_with(state, &chart.window.with(to, edge));
    }
}
