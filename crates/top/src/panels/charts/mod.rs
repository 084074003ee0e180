//! History charts.

mod axis;
mod canvas;
mod input;
mod plot;
mod readout;
#[cfg(test)]
mod tests;
mod window;

use crate::paint::{Buffer, Rect};
use crate::state::TopState;
use crate::unit_text::UnitText;
use canvas::Canvas;
pub use input::{act, mouse};
use model::figure::Field;
use model::figure::device::{POWER, kept_in_history};
use model::{Device, Timestamp};
use window::Window;

/// A chart is at least so wide and so high, where the screen has room for one at all.
const LEAST: (u16, u16) = (36, 5);
/// What is left for processes.
const PROCESSES: u16 = 6;
/// Narrower than this, a chart has no room for the labels of its axis.
const LABELLED: u16 = 24;

/// How many of so many rows the charts take.
pub fn height(state: &TopState, rest: u16) -> u16 {
    let rows = (rest / 2).min(rest.saturating_sub(PROCESSES));
    if rows < LEAST.1 || state.settings.charts.is_empty() { 0 } else { rows }
}

pub fn draw(state: &TopState, area: Rect, buf: &mut Buffer) {
    for chart in charts(state, area.intersection(buf.area)) {
        plot::draw(state, &chart, buf);
    }
}

/// One chart: what it shows, and where.
#[derive(Debug, Clone, Copy)]
struct Chart {
    field: Field<Device>,
    /// How its values are written.
    text: UnitText,
    area: Rect,
    plot: Rect,
    window: Window,
}

/// The charts for which there is room. All show the same time.
fn charts(state: &TopState, area: Rect) -> Vec<Chart> {
    let mut fields = figures(state);
    let areas = places(area, fields.len().min(state.chosen_charts().len()));
    fields.truncate(areas.len());
    let text = |field: &Field<Device>| UnitText::new(field.figure.unit, state);
    let labels = fields.iter().map(|field| text(field).label_columns()).max().unwrap_or(0);
    let plots: Vec<Rect> = areas.iter().map(|area| inside(*area, labels)).collect();
    let dots = Canvas::dots_across(state.theme.unicode);
    let narrowest = plots.iter().map(|plot| plot.width).min().unwrap_or(1);
    let span = state.charts.span.map(|span| span * 1000.0);
    let span = span.unwrap_or(f64::from(narrowest) * f64::from(dots) * state.settings.interval_ms as f64);
    let (end, reversed) = (end(state), state.settings.reversed);
    let chart = |((field, area), plot): ((Field<Device>, Rect), Rect)| Chart {
        field,
        text: text(&field),
        area,
        plot,
        window: Window::new(end, span, plot.width, dots, reversed),
    };
    fields.into_iter().zip(areas).zip(plots).map(chart).collect()
}

/// The figure of the first chart.
pub fn first_figure(state: &TopState) -> Field<Device> {
    figures(state).first().copied().unwrap_or(POWER.field())
}

/// The time that so many columns show, a sample in each unless another time was chosen.
pub fn window(state: &TopState, columns: u16) -> Window {
    let usual = f64::from(columns) * state.settings.interval_ms as f64;
    let span = state.charts.span.map_or(usual, |span| span * 1000.0);
    Window::new(end(state), span, columns, 1, state.settings.reversed)
}

/// The moment at which the charts end.
fn end(state: &TopState) -> Timestamp {
    state.charts.end.unwrap_or(state.snapshot().taken_at)
}

/// All figures, from the one that comes first: those that were chosen, then the others.
fn figures(state: &TopState) -> Vec<Field<Device>> {
    let mut all: Vec<Field<Device>> = Vec::new();
    for field in state.chosen_charts().into_iter().chain(kept_in_history()) {
        if !all.contains(&field) {
            all.push(field);
        }
    }
    let first = state.charts.first % all.len().max(1);
    all.rotate_left(first);
    all
}

/// Where so many charts are, as far as there is room: side by side, then one below the other.
fn places(area: Rect, count: usize) -> Vec<Rect> {
    if area.width < 4 || area.height < 3 || count == 0 {
        return Vec::new();
    }
    let across = usize::from(area.width / LEAST.0).max(1);
    let down = usize::from(area.height / LEAST.1).max(1);
    let count = count.min(across * down);
    // Rather all of one size than more of them in a row.
    let fits = |columns: &usize| count.div_ceil(*columns) <= down;
    let even = (1..=across.min(count)).rev().find(|columns| count % columns == 0 && fits(columns));
    let columns = even.unwrap_or(across.min(count));
    let rows = count.div_ceil(columns);
    let mut places = Vec::with_capacity(count);
    for row in 0..rows {
        let (top, bottom) = (part(area.height, row, rows), part(area.height, row + 1, rows));
        let in_row = columns.min(count - row * columns);
        for column in 0..in_row {
            let (left, right) = (part(area.width, column, in_row), part(area.width, column + 1, in_row));
            places.push(Rect { x: area.x + left, y: area.y + top, width: right - left, height: bottom - top });
        }
    }
    places
}

/// Where the n-th of so many equal parts begins.
fn part(whole: u16, n: usize, parts: usize) -> u16 {
    (usize::from(whole) * n / parts) as u16
}

/// What is left inside the frame and its axis.
fn inside(area: Rect, labels: u16) -> Rect {
    let labels = if area.width < LABELLED { 0 } else { labels };
    let left = area.x.saturating_add(2 + labels).min(area.right());
    let (width, height) = (area.right().saturating_sub(1).saturating_sub(left), area.height.saturating_sub(2));
    Rect { x: left, y: area.y + 1, width, height }
}

fn shown(state: &TopState) -> Vec<&Device> {
    if state.settings.overlaid {
        state.devices().iter().collect()
    } else {
        state.selected_device().into_iter().collect()
    }
}
