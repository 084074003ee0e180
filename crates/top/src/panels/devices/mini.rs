//! A device in twenty columns: utilization, temperature, power and the part of its DRAM, below a heading.

use super::{figures, selection};
use crate::paint::{Align, Buffer, Rect, Tone, cell};
use crate::state::TopState;
use crate::unit_text::UnitText;
use model::figure::device::{ASIC_TEMP, DRAM_USED, POWER, UTILIZATION};
use model::figure::{Figure, Unit};
use model::{Device, State as DeviceState};
use show::activity::utilization;

/// Columns of the name, the utilization, °C, watts and the part of DRAM; a blank in front of each is among them.
const COLUMNS: [u16; 5] = [3, 5, 4, 4, 4];

/// What the figures are, above the first place of each column.
pub fn draw_head(state: &TopState, area: Rect, buf: &mut Buffer) {
    let degrees = UnitText::new(Unit::Celsius, state).symbol();
    let style = state.theme.style(Tone::Faint);
    let (mut x, [name, busy, heat, power, memory]) = (area.x, widths(area));
    // The W is above the middle of its figures, so that DRAM beside it stays apart.
    let heads = [(name, "id"), (busy, "util"), (heat, degrees), (power, "W "), (memory, "DRAM")];
    for (columns, text) in heads {
        let columns = columns.min(area.right().saturating_sub(x));
        cell(buf, (x, area.y), columns, text, Align::Right, style, &state.theme);
        x += columns;
    }
}

/// The places are of one width; where that is more, the figures are further apart.
fn widths(area: Rect) -> [u16; 5] {
    let more = (area.width.saturating_sub(COLUMNS.iter().sum()) / 5).min(2);
    COLUMNS.map(|columns| columns + more)
}

pub fn draw(state: &TopState, device: &Device, area: Rect, buf: &mut Buffer) {
    let theme = &state.theme;
    let (mark, tone) = selection(state, device);
    let [name, busy, heat, power, memory] = widths(area);
    let mut x = area.x;
    let mut next = |buf: &mut Buffer, columns: u16, text: &str, align, tone: Tone| {
        let columns = columns.min(area.right().saturating_sub(x));
        cell(buf, (x, area.y), columns, text, align, theme.style(tone), theme);
        x += columns;
    };
    let number = figures::name(device, theme.glyphs());
    next(buf, name, &format!("{mark}{number:>width$}", width = usize::from(name) - 1), Align::Left, tone);
    let is_well = device.state == DeviceState::Ok && !figures::is_stale(device);
    if is_well {
        let percent = utilization(&device.activity, theme.glyphs());
        let worst = figures::alerts(state, device).next().is_some();
        // What fires is marked, where nothing else shows it.
        let percent = if worst { format!("!{}", percent.trim_end_matches('%')) } else { percent };
        let busy_tone = if worst { Tone::Warning } else { show::figures::tone(&UTILIZATION, device) };
        next(buf, busy, &percent, Align::Right, busy_tone);
        for (columns, figure) in [(heat, &ASIC_TEMP), (power, &POWER)] {
            let (text, tone) = number_of(state, device, figure);
            next(buf, columns, &text, Align::Right, tone);
        }
    } else {
        // What is wrong is worth more than old figures.
        let columns = busy + heat + power;
        let text = match device.sample_age_seconds.filter(|age| *age > 0.0) {
            Some(age) => format!(" {} {}", figures::brief_state(device.state, 8), figures::short_time(age)),
            None => format!(" {}", figures::brief_state(device.state, columns - 1)),
        };
        next(buf, columns, &text, Align::Left, figures::state_tone(device));
    }
    let (text, tone) = memory_part(device, theme.glyphs());
    next(buf, memory, &text, Align::Right, if is_well { tone } else { Tone::Faint });
}

fn number_of(state: &TopState, device: &Device, figure: &Figure<Device>) -> (String, Tone) {
    let units = UnitText::new(figure.unit, state);
    let absent = || state.theme.glyphs().absent.to_owned();
    let text = figure.number(device).map_or_else(absent, |value| units.short_number(value));
    (text, show::figures::tone(figure, device))
}

/// `49%`, `≥49`, `100`: in three columns.
fn memory_part(device: &Device, glyphs: &show::style::Glyphs) -> (String, Tone) {
    let Some(share) = DRAM_USED.field().share(device) else { return (glyphs.absent.to_owned(), Tone::Faint) };
    let percent = share * 100.0;
    let text = match device.memory.untracked_processes {
        0 if percent < 99.5 => format!("{percent:.0}%"),
        0 => format!("{percent:.0}"),
        _ => format!("{}{percent:.0}", glyphs.at_least),
    };
    (text, show::figures::tone(&DRAM_USED, device))
}
