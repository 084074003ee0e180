//! A device in a small cell: its number, and how high one figure is. The figure is that of the first chart.

use super::{figures, selection};
use crate::paint::{Align, Buffer, Rect, Tone, cell, put};
use crate::state::TopState;
use crate::unit_text::{BRIEF_COLUMNS, UnitText};
use model::Device;
use model::figure::device::POWER;

pub fn draw(state: &TopState, device: &Device, names: usize, area: Rect, buf: &mut Buffer) {
    let (theme, y, end) = (&state.theme, area.y, area.right());
    let names = names.max(2);
    let (mark, tone) = selection(state, device);
    let name = figures::name(device, theme.glyphs());
    let name = format!("{mark}{name:>width$}", width = names);
    let x = put(buf, area.x, y, end, &name, theme.style(tone)) + 1;
    let room = end.saturating_sub(x);
    let field = state.settings.charts.first().copied().unwrap_or(POWER.field());
    if !figures::is_known(device, field) {
        let word = figures::brief_state(device.state, 6);
        cell(buf, (x, y), room, word, Align::Left, theme.style(figures::state_tone(device)), theme);
        return;
    }
    let text = UnitText::new(field.figure.unit, state);
    let text = field.number(device).map_or(theme.glyphs().absent.to_owned(), |value| text.brief(value));
    let block = room.saturating_sub(BRIEF_COLUMNS + 1).max(1);
    let glyphs = theme.glyphs();
    let share = field.share(device);
    let (glyph, tone) = (theme.level(share), share.map_or(Tone::Faint, |_| Tone::of_level(field, device)));
    for x in x..x.saturating_add(block).min(end) {
        put(buf, x, y, end, glyph.encode_utf8(&mut [0; 4]), theme.style(tone));
    }
    let x = x.saturating_add(block + 1);
    let tone = if text == glyphs.absent { Tone::Faint } else { Tone::Plain };
    cell(buf, (x, y), BRIEF_COLUMNS.min(end.saturating_sub(x)), &text, Align::Right, theme.style(tone), theme);
}
