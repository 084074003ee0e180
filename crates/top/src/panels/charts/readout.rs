//! The upper edge of a chart's frame: what it shows, and the values of now or of the cursor.

use super::plot::{COLOURS, common_limit, line_style, selected};
use super::{Chart, axis};
use crate::paint::{Buffer, Style, Tone, columns, put};
use crate::state::TopState;
use model::figure::Judge;
use model::figure::device::UTILIZATION;
use model::{Device, Series, Timestamp};

/// A piece of the title, behind its rank. Those of the highest rank go first when there is no room; a value is never cut.
type TitlePiece = (u8, String, Style);

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LineReading {
    pub least: f64,
    pub greatest: f64,
    pub last: f64,
}

pub fn draw(
    state: &TopState,
    chart: &Chart,
    devices: &[&Device],
    series: &[Series<'_>],
    until: usize,
    buf: &mut Buffer,
) {
    let readings: Vec<Option<LineReading>> = series.iter().map(|series| reading(state, chart, series, until)).collect();
    let room = usize::from(chart.area.width.saturating_sub(4));
    let mut pieces = if state.settings.overlaid {
        let each = (devices.len() <= COLOURS).then(|| legend(state, chart, devices, &readings));
        each.filter(|each| length(each) <= room).unwrap_or_else(|| summary(state, chart, devices, &readings))
    } else {
        single(state, chart, devices, &readings)
    };
    while length(&pieces) > room {
        let Some(worst) = pieces.iter().map(|(rank, ..)| *rank).max().filter(|rank| *rank > 0) else { break };
        pieces.retain(|(rank, ..)| *rank < worst);
    }
    let (mut x, y, end) = (chart.area.x + 1, chart.area.y, chart.area.right().saturating_sub(1));
    let blank = state.theme.style(Tone::Border);
    x = put(buf, x, y, end, " ", blank);
    for (_, text, style) in pieces {
        x = put(buf, x, y, end.saturating_sub(1), &text, style);
    }
    put(buf, x, y, end, " ", blank);
}

fn length(pieces: &[TitlePiece]) -> usize {
    pieces.iter().map(|(_, text, _)| usize::from(columns(text))).sum()
}

/// What a line shows at the cursor, or at the moment that is on the screen.
pub fn reading(state: &TopState, chart: &Chart, series: &Series<'_>, until: usize) -> Option<LineReading> {
    let exactly = |value: f64| LineReading { least: value, greatest: value, last: value };
    let Some(cursor) = state.charts.cursor else { return series.get(until.checked_sub(1)?).map(exactly) };
    let (start, end) = places(state, chart, cursor, until);
    if start < end {
        let stretch = series.stretch(start..end);
        let (least, greatest) = stretch.extent?;
        return Some(LineReading { least, greatest, last: stretch.last.unwrap_or(greatest) });
    }
    // Between two samples the older one holds, unless there is a gap.
    let (before, _) = (series.get(start.checked_sub(1)?)?, series.get(start).filter(|_| start < until)?);
    Some(exactly(before))
}

/// The samples in the column of the cursor.
fn places(state: &TopState, chart: &Chart, cursor: Timestamp, until: usize) -> (usize, usize) {
    let (from, to) = chart.window.around(cursor);
    (state.history.place(from).min(until), state.history.place(to).min(until))
}

/// The name, and the time that is read out.
fn head(state: &TopState, chart: &Chart, device: Option<&Device>) -> Vec<TitlePiece> {
    let title = state.theme.style(Tone::Title);
    let mut pieces = vec![(0, chart.field.title().into_owned(), title)];
    if let Some(device) = device {
        pieces.push((2, format!(" of device {}", device.id), title));
    }
    if let Some(cursor) = state.charts.cursor {
        let until = state.history.len();
        let (start, end) = places(state, chart, cursor, until);
        let sample = end.checked_sub(1).filter(|_| start < end).and_then(|place| state.history.time(place));
        let time = axis::moment(sample.unwrap_or(cursor), state.snapshot().taken_at, &state.zone);
        pieces.push((1, format!(" at {time}"), title));
    } else if state.charts.end.is_some() {
        pieces.push((1, " now".into(), title));
    }
    pieces
}

fn single(state: &TopState, chart: &Chart, devices: &[&Device], readings: &[Option<LineReading>]) -> Vec<TitlePiece> {
    let (theme, absent) = (&state.theme, state.theme.glyphs().absent);
    let device = devices.first().copied();
    let mut pieces = head(state, chart, device);
    let text = value(chart, readings.first().copied().flatten(), absent);
    // History does not keep whether it was a lower bound.
    let is_lower_bound = |device: &Device| device.activity.utilization_lower_bound == Some(true);
    let is_of_now = chart.field.figure == &UTILIZATION && state.charts.cursor.is_none();
    let mark = if is_of_now && device.is_some_and(is_lower_bound) { theme.glyphs().at_least } else { "" };
    pieces.push((0, format!(": {mark}{text}"), line_style(state, chart, 0, 0, 1)));
    let Some(device) = device else { return pieces };
    if device.state != model::State::Ok && state.charts.cursor.is_none() {
        let tone = Tone::of_state(device.state);
        pieces.push((3, format!(", {}", device.state.name()), theme.style(tone)));
    }
    if let Some(limit) = common_limit(chart, devices) {
        let word = if chart.field.figure.judge == Judge::Capacity { " of" } else { ", limit" };
        let text = format!("{word} {}", chart.text.text(limit));
        pieces.push((4, text, theme.style(Tone::Faint)));
    }
    pieces
}

/// A value, or from which to which, where several samples lie in the cursor's column.
fn value(chart: &Chart, reading: Option<LineReading>, absent: &str) -> String {
    let Some(reading) = reading else { return absent.to_owned() };
    let (least, greatest) = (chart.text.text(reading.least), chart.text.text(reading.greatest));
    if least == greatest { least } else { format!("{least} to {greatest}") }
}

/// Every device by its colour.
fn legend(state: &TopState, chart: &Chart, devices: &[&Device], readings: &[Option<LineReading>]) -> Vec<TitlePiece> {
    let selected = selected(state, devices);
    let mut pieces = head(state, chart, None);
    for (n, (device, reading)) in devices.iter().zip(readings).enumerate() {
        let text = last(state, chart, *reading);
        let style = line_style(state, chart, n, selected, devices.len());
        pieces.push((1, format!("  {}: {text}", device.id), style));
    }
    pieces
}

/// The selected device among all.
fn summary(state: &TopState, chart: &Chart, devices: &[&Device], readings: &[Option<LineReading>]) -> Vec<TitlePiece> {
    let selected = selected(state, devices);
    let mut pieces = head(state, chart, None);
    if let Some(device) = devices.get(selected) {
        let text = format!("  {}: {}", device.id, last(state, chart, readings[selected]));
        pieces.push((0, text, line_style(state, chart, selected, selected, devices.len())));
    }
    let mut known: Vec<(f64, &Device)> =
        readings.iter().zip(devices).filter_map(|(reading, device)| Some(((*reading)?.last, *device))).collect();
    known.sort_by(|a, b| a.0.total_cmp(&b.0));
    let faint = state.theme.style(Tone::Faint);
    let (Some(least), Some(greatest)) = (known.first(), known.last()) else { return pieces };
    let middle = (known[(known.len() - 1) / 2].0 + known[known.len() / 2].0) / 2.0;
    let (min, max) = (format!(" ({})", least.1.id), format!(" ({})", greatest.1.id));
    for (rank, word, value, whose) in
        [(3, "min", least.0, min), (4, "median", middle, String::new()), (2, "max", greatest.0, max)]
    {
        pieces.push((rank, format!("  {word} {}{whose}", chart.text.text(value)), faint));
    }
    pieces
}

fn last(state: &TopState, chart: &Chart, reading: Option<LineReading>) -> String {
    reading.map_or(state.theme.glyphs().absent.to_owned(), |reading| chart.text.text(reading.last))
}
