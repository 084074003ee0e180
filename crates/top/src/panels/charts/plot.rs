//! One chart: frame, axes, limit, lines, cursor.

use super::axis::{self, Scale};
use super::canvas::Canvas;
use super::{Chart, readout, shown};
use crate::paint::{Align, Buffer, Style, Tone, cell, columns, frame, put};
use crate::screen::Modifier;
use crate::state::TopState;
use crate::theme::Scheme;
use model::figure::Judge;
use model::figure::device::kept_in_history;
use model::{Device, DeviceId, Series, Timestamp};
use show::text::width;
use watch::events::Weight;

/// More devices than this do not get a colour each.
pub const COLOURS: usize = 8;

pub fn draw(state: &TopState, chart: &Chart, buf: &mut Buffer) {
    frame(buf, chart.area, "", &state.theme);
    if chart.plot.is_empty() {
        return;
    }
    let devices = shown(state);
    let series: Vec<Series<'_>> = devices.iter().map(|device| state.history.series(device, chart.field)).collect();
    // A held picture does not show what came later.
    let until = state.history.place(Timestamp(state.snapshot().taken_at.0.saturating_add(1)));
    let starts: Vec<usize> =
        (0..=chart.window.dots()).map(|dot| state.history.place(chart.window.dot_time(dot)).min(until)).collect();
    readout::draw(state, chart, &devices, &series, until, buf);
    time_axis(state, chart, buf);
    // PlotLines come from the last sample before the window, and go to the first one after it.
    let (oldest, newest) = (starts[0].saturating_sub(1), (starts[starts.len() - 1] + 1).min(until));
    let extents = series.iter().filter_map(|series| series.stretch(oldest..newest).extent);
    let Some(extent) = extents.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) else {
        return message(state, chart, &series, buf);
    };
    let limit = common_limit(chart, &devices);
    // How full it is, is seen only beside all that there is.
    let capacity = limit.filter(|_| chart.field.figure.judge == Judge::Capacity);
    let extent = (extent.0, capacity.map_or(extent.1, |capacity| extent.1.max(capacity)));
    let scale = Scale::new(chart.text, extent, limit, chart.plot.height);
    let mut canvas = Canvas::new(chart.plot, state.theme.unicode, state.settings.reversed);
    let selected = selected(state, &devices);
    let lines = PlotLines { state, chart, scale: &scale, starts: &starts, until };
    if state.settings.filled {
        lines.draw(&series[selected], selected, true, &mut canvas);
    }
    for (n, series) in series.iter().enumerate().filter(|(n, _)| *n != selected) {
        lines.draw(series, n, false, &mut canvas);
    }
    lines.draw(&series[selected], selected, false, &mut canvas);
    value_axis(state, chart, &scale, limit, &canvas, buf);
    canvas.draw(buf, |line| line_style(state, chart, usize::from(line), selected, devices.len()));
    cursor(state, chart, &canvas, buf);
    markers(state, chart, &devices, buf);
}

/// A mark at the lower edge for each warning, and for what is worse.
fn markers(state: &TopState, chart: &Chart, devices: &[&Device], buf: &mut Buffer) {
    let (theme, oldest) = (&state.theme, chart.window.dot_time(0));
    let mark = if theme.unicode { '▲' } else { '^' };
    let news = state.events.latest(state.now()).take_while(|event| event.time >= oldest);
    let concerns = |id: &Option<DeviceId>| id.as_ref().is_some_and(|id| devices.iter().any(|device| device.id == *id));
    for event in news.filter(|event| event.weight > Weight::Good && concerns(&event.device)) {
        let Some(column) = chart.window.column(event.time) else { continue };
        let style = theme.style(crate::panels::events::tone(event.weight));
        buf[(chart.plot.x + column, chart.area.bottom() - 1)].set_char(mark).set_style(style);
    }
}

/// Which of the devices is selected.
pub fn selected(state: &TopState, devices: &[&Device]) -> usize {
    devices.iter().position(|device| state.device.as_ref() == Some(&device.id)).unwrap_or(0)
}

/// How the line of a device looks.
pub fn line_style(state: &TopState, chart: &Chart, n: usize, selected: usize, count: usize) -> Style {
    let theme = &state.theme;
    if !state.settings.overlaid {
        let place = kept_in_history().position(|field| field == chart.field);
        return theme.series(place.unwrap_or(0));
    }
    if count <= COLOURS && theme.scheme != Scheme::Monochrome {
        return theme.series(n);
    }
    if n == selected { theme.series(0).add_modifier(Modifier::BOLD) } else { theme.style(Tone::Faint) }
}

/// What a line needs to be drawn.
struct PlotLines<'a> {
    state: &'a TopState,
    chart: &'a Chart,
    scale: &'a Scale,
    /// The place of the first sample of each dot.
    starts: &'a [usize],
    until: usize,
}

impl PlotLines<'_> {
    /// Draws a series. Where many samples share a dot, from the least to the greatest, so that no peak is lost.
    fn draw(&self, series: &Series<'_>, line: usize, filled: bool, canvas: &mut Canvas) {
        let line = line.min(255) as u8;
        let (starts, dots) = (self.starts, self.starts.len() - 1);
        let mut last = starts[0].checked_sub(1).and_then(|place| self.sample(series, place, canvas));
        for dot in 0..dots {
            if starts[dot] == starts[dot + 1] {
                continue;
            }
            let stretch = series.stretch(starts[dot]..starts[dot + 1]);
            if let (Some(from), Some(first)) = (last, stretch.first) {
                connect(from, (dot as f64, self.height(first, canvas)), dots, line, filled, canvas);
            }
            if let Some((least, greatest)) = stretch.extent {
                let least = if filled { 0.0 } else { self.height(least, canvas) };
                canvas.upright(dot, least, self.height(greatest, canvas), line);
            }
            last = stretch.last.map(|value| (dot as f64, self.height(value, canvas)));
        }
        let next = Some(starts[dots]).filter(|place| *place < self.until);
        if let (Some(from), Some(to)) = (last, next.and_then(|place| self.sample(series, place, canvas))) {
            connect(from, to, dots, line, filled, canvas);
        }
    }

    /// Where a sample outside the window is.
    fn sample(&self, series: &Series<'_>, place: usize, canvas: &Canvas) -> Option<(f64, f64)> {
        let time = self.state.history.time(place)?;
        Some((self.chart.window.dot(time) as f64, self.height(series.get(place)?, canvas)))
    }

    fn height(&self, value: f64, canvas: &Canvas) -> f64 {
        canvas.height(self.scale.part(self.chart.text.shown(value)))
    }
}

/// A line from one sample to the next, in both of their dots half of the way to the neighbour.
fn connect(from: (f64, f64), to: (f64, f64), dots: usize, line: u8, filled: bool, canvas: &mut Canvas) {
    let slope = (to.1 - from.1) / (to.0 - from.0).max(1.0);
    let at = |dot: f64| from.1 + (dot.clamp(from.0, to.0) - from.0) * slope;
    let range = from.0.max(0.0) as usize..=(to.0.max(0.0) as usize).min(dots.saturating_sub(1));
    for dot in range {
        let (left, right) = (at(dot as f64 - 0.5), at(dot as f64 + 0.5));
        let (left, right) = if filled { (0.0, left.max(right)) } else { (left, right) };
        canvas.upright(dot, left, right, line);
    }
}

/// The limit, when all devices of the chart have the same.
pub fn common_limit(chart: &Chart, devices: &[&Device]) -> Option<f64> {
    let mut limits = devices.iter().filter_map(|device| chart.field.limit_of(device));
    let first = limits.next()?;
    limits.all(|limit| limit == first).then_some(first)
}

/// The axis at the left, its labels, and the limit across.
fn value_axis(state: &TopState, chart: &Chart, scale: &Scale, limit: Option<f64>, canvas: &Canvas, buf: &mut Buffer) {
    let (theme, glyphs, plot) = (&state.theme, state.theme.glyphs(), chart.plot);
    let room = plot.x - chart.area.x - 2;
    let limit = limit.map(|limit| chart.text.shown(limit)).filter(|limit| (0.0..=1.0).contains(&scale.part(*limit)));
    let limit_row = limit.map(|limit| canvas.row(scale.part(limit)));
    let mut label = |row: u16, value: f64, tone: Tone| {
        let (y, text) = (plot.y + row, chart.text.label(value));
        if room > 0 {
            cell(buf, (chart.area.x + 1, y), room, &text, Align::Right, theme.style(tone), theme);
            buf[(plot.x - 1, y)].set_char(glyphs.middle[2]).set_style(theme.style(Tone::Border));
        }
    };
    for value in scale.ticks() {
        let row = canvas.row(scale.part(value));
        if limit_row != Some(row) {
            label(row, value, Tone::Faint);
        }
    }
    if let (Some(limit), Some(row)) = (limit, limit_row) {
        // Only heat gets dangerous at its limit: full power is normal, and a capacity is what there is.
        let tone = if chart.field.figure.judge == Judge::Heat { Tone::Warning } else { Tone::Faint };
        label(row, limit, tone);
        let dash = if theme.unicode { '┄' } else { '-' };
        for column in (0..plot.width).filter(|column| canvas.is_blank(*column, row)) {
            buf[(plot.x + column, plot.y + row)].set_char(dash).set_style(theme.style(tone));
        }
    }
}

/// The line of the axis, and times in the lower edge of the frame.
fn time_axis(state: &TopState, chart: &Chart, buf: &mut Buffer) {
    let (theme, glyphs, plot) = (&state.theme, state.theme.glyphs(), chart.plot);
    let (border, y) = (theme.style(Tone::Border), chart.area.bottom() - 1);
    if plot.x > chart.area.x + 2 {
        for y in plot.top()..plot.bottom() {
            buf[(plot.x - 1, y)].set_char(glyphs.vertical).set_style(border);
        }
        buf[(plot.x - 1, y)].set_char(glyphs.bottom[1]).set_style(border);
    }
    let now = state.charts.end.is_none().then(|| state.snapshot().taken_at);
    // A time is written on the older side of its mark.
    let mut taken = if state.settings.reversed { plot.x } else { plot.right() };
    for (column, text) in axis::times(&chart.window, now, &state.zone) {
        let (mark, columns) = (plot.x + column, width(&text) as u16);
        let (start, end) =
            if state.settings.reversed { (mark + 1, mark + 1 + columns) } else { (mark.saturating_sub(columns), mark) };
        let fits = if state.settings.reversed {
            mark >= taken && end <= plot.right()
        } else {
            mark < taken && start >= plot.x && mark >= columns
        };
        if fits {
            buf[(mark, y)].set_char(glyphs.bottom[1]).set_style(border);
            put(buf, start, y, end, &text, theme.style(Tone::Faint));
            taken = if state.settings.reversed { end + 1 } else { start.saturating_sub(1) };
        }
    }
}

fn message(state: &TopState, chart: &Chart, series: &[Series<'_>], buf: &mut Buffer) {
    let (plot, absent) = (chart.plot, state.theme.glyphs().absent);
    let ever = series.iter().any(|series| series.stretch(0..state.history.len()).extent.is_some());
    let text = if series.is_empty() {
        format!("no device: {absent}")
    } else if ever {
        format!("no {} in this time: {absent}", chart.field.title())
    } else {
        format!("no {} here: {absent}", chart.field.title())
    };
    let x = plot.x + plot.width.saturating_sub(columns(&text)) / 2;
    put(buf, x, plot.y + plot.height / 2, plot.right(), &text, state.theme.style(Tone::Faint));
}

fn cursor(state: &TopState, chart: &Chart, canvas: &Canvas, buf: &mut Buffer) {
    let Some(column) = state.charts.cursor.and_then(|cursor| chart.window.column(cursor)) else { return };
    let (theme, plot) = (&state.theme, chart.plot);
    for row in 0..plot.height {
        let cell = &mut buf[(plot.x + column, plot.y + row)];
        if canvas.is_blank(column, row) {
            cell.set_char(theme.glyphs().vertical).set_style(theme.style(Tone::Strong));
        } else {
            cell.set_style(theme.style(Tone::Selected));
        }
    }
}
