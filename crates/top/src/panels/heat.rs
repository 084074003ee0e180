//! One figure of all chips over time: a row for each chip, one colour scale.

use super::charts;
use crate::paint::{Align, Buffer, Position, Rect, Tone, cell, frame, put};
use crate::state::TopState;
use crate::unit_text::UnitText;
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use model::figure::Field;
use model::figure::Judge;
use model::{Device, Timestamp};
use show::figures::name;

/// Fewer chips are seen as well in charts.
const LEAST_CHIPS: usize = 4;
const LEAST_WIDTH: u16 = 100;
/// What charts and processes keep.
const OTHERS: u16 = 20;
/// Columns of the names at the left, and of the values at the right.
const NAMES: u16 = 4;
const VALUES: u16 = 8;

/// The rows that it takes of what is left below the devices; none where there is no room for all chips.
pub fn height(state: &TopState, rest: Rect) -> u16 {
    let chips = state.devices().len();
    let wanted = u16::try_from(chips).unwrap_or(u16::MAX).saturating_add(2);
    let fits = rest.width >= LEAST_WIDTH && rest.height >= wanted.saturating_add(OTHERS);
    if chips >= LEAST_CHIPS && fits && !state.settings.charts.is_empty() { wanted } else { 0 }
}

pub fn draw(state: &TopState, area: Rect, buf: &mut Buffer) {
    let field = charts::first_figure(state);
    let inner = frame(buf, area, &format!("{} of all chips (m: next metric)", field.title()), &state.theme);
    let plot = Rect { x: inner.x + NAMES + 1, width: inner.width.saturating_sub(NAMES + VALUES + 2), ..inner };
    if plot.is_empty() {
        return;
    }
    let window = charts::window(state, plot.width);
    let until = state.history.place(Timestamp(state.snapshot().taken_at.0.saturating_add(1)));
    let place = |column: usize| state.history.place(window.dot_time(column)).min(until);
    let starts: Vec<usize> = (0..=usize::from(plot.width)).map(place).collect();
    let rows: Vec<&Device> = state.listed().take(usize::from(plot.height)).collect();
    let scale = HeatScale::of(state, &rows, field, (starts[0], until));
    let cursor = state.charts.cursor.and_then(|cursor| window.column(cursor));
    for (device, y) in rows.iter().zip(plot.top()..plot.bottom()) {
        let series = state.history.series(device, field);
        draw_name(state, device, (inner.x, y), buf);
        for (column, pair) in (0..plot.width).zip(starts.windows(2)) {
            let greatest = series.stretch(pair[0]..pair[1]).extent.map(|(_, greatest)| greatest);
            let x = plot.x + if state.settings.reversed { plot.width - 1 - column } else { column };
            let (glyph, mut style) = match greatest {
                Some(value) => state.theme.heat(scale.part(value)),
                None if pair[0] < pair[1] => (state.theme.glyphs().unknown, state.theme.style(Tone::Faint)),
                None => (' ', state.theme.style(Tone::Plain)),
            };
            if cursor == Some(x - plot.x) {
                style = state.theme.style(Tone::Selected);
            }
            buf[(x, y)].set_char(glyph).set_style(style);
        }
        let value = until.checked_sub(1).and_then(|last| series.get(last));
        let text = value.map_or(state.theme.glyphs().absent.to_owned(), |value| scale.text.short(value));
        let tone = state.theme.style(show::figures::tone(field.figure, device));
        cell(
            buf,
            (plot.right() + 1, y),
            VALUES.min(inner.right() - plot.right() - 1),
            &text,
            Align::Right,
            tone,
            &state.theme,
        );
    }
    draw_legend(state, &scale, Rect { y: area.bottom() - 1, height: 1, ..inner }, buf);
}

fn draw_name(state: &TopState, device: &Device, (x, y): (u16, u16), buf: &mut Buffer) {
    let is_selected = state.device.as_ref() == Some(&device.id);
    let tone = if is_selected { Tone::Selected } else { super::devices::figures::state_tone(device) };
    let text = format!("{}{:>3}", state.theme.mark(is_selected), name(device, state.theme.glyphs()));
    cell(buf, (x, y), NAMES, &text, Align::Left, state.theme.style(tone), &state.theme);
}

/// The scale in the lower edge of the frame: what is little, what is much.
fn draw_legend(state: &TopState, scale: &HeatScale, area: Rect, buf: &mut Buffer) {
    let (theme, y, end) = (&state.theme, area.y, area.right());
    let mut x = put(buf, area.x + 1, y, end, &format!(" {} ", scale.text.short(scale.low)), theme.style(Tone::Faint));
    for step in 0..9 {
        let (glyph, style) = theme.heat(f64::from(step) / 8.99);
        x = put(buf, x, y, end, glyph.encode_utf8(&mut [0; 4]), style);
    }
    put(buf, x, y, end, &format!(" {} ", scale.text.short(scale.high)), theme.style(Tone::Faint));
}

/// The values of the darkest and of the brightest colour.
struct HeatScale {
    text: UnitText,
    low: f64,
    high: f64,
}

impl HeatScale {
    /// Up to the limit where there is one, and else to the most that is seen. Temperatures begin at the least.
    fn of(state: &TopState, devices: &[&Device], field: Field<Device>, (from, until): (usize, usize)) -> HeatScale {
        let text = UnitText::new(field.figure.unit, state);
        let extent =
            devices.iter().filter_map(|device| state.history.series(device, field).stretch(from..until).extent);
        let (least, greatest) = extent.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((0.0, 1.0));
        let limit = devices.iter().filter_map(|device| field.limit_of(device)).reduce(f64::max);
        let full = if field.figure.judge == Judge::Never { None } else { limit };
        let full = full.or_else(|| (field.figure.unit == model::figure::Unit::Percent).then_some(100.0));
        let low = if text.begins_at_zero() { 0.0 } else { (least / 5.0).floor() * 5.0 };
        let high = full.map_or(greatest, |full| full.max(greatest));
        HeatScale { text, low, high: if high > low { high } else { low + 1.0 } }
    }

    fn part(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }
}

/// A click selects the chip of a row.
pub fn mouse(state: &mut TopState, area: Rect, event: MouseEvent) {
    let inner = crate::paint::inside(area);
    let position = Position { x: event.column, y: event.row };
    if event.kind == MouseEventKind::Down(MouseButton::Left) && inner.contains(position) {
        let hit = state.listed().nth(usize::from(event.row - inner.y)).map(|device| device.id.clone());
        state.device = hit.or(state.device.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paint::lines;
    use crate::settings::TopSettings;
    use crate::theme::Scheme;
    use show::example;
    use watch::moment::Moment;

    fn state(scheme: Scheme) -> TopState {
        let mut state = TopState::new(TopSettings { theme: scheme, ..TopSettings::default() }, true);
        let mut snapshot = example::galaxy();
        for step in 0..40 {
            snapshot.taken_at.0 += 1000;
            let part = f64::from(step) / 39.0;
            for device in &mut snapshot.devices {
                device.power = device.power.map(|_| model::Watts(85.0 * part));
            }
            state.take(Moment::of(snapshot.clone()));
        }
        state
    }

    fn drawn(state: &TopState, width: u16, height: u16) -> String {
        let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
        draw(state, buf.area, &mut buf);
        lines(&buf)
    }

    #[test]
    fn every_chip_has_a_row_from_little_to_much() {
        let text = drawn(&state(Scheme::Monochrome), 120, 34);
        assert_eq!(text.lines().count(), 34);
        for n in 0..32 {
            assert!(text.contains(&format!("{n:>3} ")), "{n}: {text}");
        }
        let row = text.lines().find(|line| line.contains("  0 ")).unwrap();
        let levels: Vec<char> = row.chars().filter(|c| ('▁'..='█').contains(c)).collect();
        assert_eq!(levels.len(), 40, "{row}");
        assert!(levels.is_sorted() && levels[0] == '▁' && levels[39] == '█', "{row}");
    }

    #[test]
    fn it_is_there_where_all_chips_have_room_and_any_size_will_do() {
        let state = state(Scheme::Dark);
        assert_eq!(height(&state, Rect::new(0, 0, 320, 64)), 34);
        assert_eq!(height(&state, Rect::new(0, 0, 160, 38)), 0);
        for (width, height) in [(1, 1), (3, 3), (12, 4), (16, 40), (300, 2)] {
            drawn(&state, width, height);
        }
    }
}
