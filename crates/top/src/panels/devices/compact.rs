//! A device in one line, several of which are side by side.

use super::{figures, selection};
use crate::paint::{Align, Buffer, Rect, Tone, cell, put};
use crate::state::TopState;
use model::figure::device::{self, ASIC_TEMP, DRAM_USED, L1_USED, UTILIZATION};
use model::{Device, Severity, State as DeviceState};

/// Columns of temperature, power and clock or utilization, of what is used, and of a name.
const TEMPERATURE: u16 = 5;
const POWER: u16 = 4;
const CLOCK: u16 = 4;
const USED: u16 = 6;
const L1: u16 = 3;

pub fn draw(state: &TopState, device: &Device, names: usize, area: Rect, buf: &mut Buffer) {
    let (theme, y, end) = (&state.theme, area.y, area.right());
    let names = names.max(2);
    let mut x = area.x;
    let mut next = |buf: &mut Buffer, columns: u16, text: &str, align, tone| {
        let columns = columns.min(end.saturating_sub(x));
        cell(buf, (x, y), columns, text, align, theme.style(tone), theme);
        x += columns + 1;
        x
    };
    let (mark, tone) = selection(state, device);
    let name = figures::name(device, theme.glyphs());
    next(buf, names as u16 + 1, &format!("{mark}{name:>width$}", width = names), Align::Left, tone);
    let dot = if theme.unicode { "●" } else { "*" };
    let well = device.state == DeviceState::Ok && !figures::is_stale(device);
    // A remote chip cannot say more than it does; nothing is wrong with it.
    let worst = figures::alerts(state, device).map(|alert| alert.severity).max();
    let is_fine = (well || device.state == DeviceState::Remote) && worst.is_none();
    let tone = match worst {
        Some(Severity::Critical) => Tone::Critical,
        Some(_) if well => Tone::Warning,
        _ => figures::state_tone(device),
    };
    next(buf, 1, if is_fine { dot } else { "!" }, Align::Left, tone);
    let mut x = if well {
        let (temperature, tone) = figures::measured(device, &ASIC_TEMP, state, false);
        next(buf, TEMPERATURE, &temperature, Align::Right, tone);
        let (power, tone) = figures::measured(device, &device::POWER, state, false);
        next(buf, POWER, &power, Align::Right, tone);
        // How busy it is says more than its clock.
        let (busy, tone) = match knows_utilization(state) {
            true => figures::utilization(device, theme),
            false => figures::clock(device, theme, ""),
        };
        next(buf, CLOCK, &busy, Align::Right, tone)
    } else {
        // What is wrong is worth more than old figures.
        next(buf, TEMPERATURE + POWER + CLOCK + 2, &brief_state(device), Align::Left, figures::state_tone(device))
    };
    let bars = MemoryBars::of(end.saturating_sub(x).saturating_sub(1));
    let with_l1 = bars.with_l1;
    for (name, used, columns, with_figure) in [("", &DRAM_USED, bars.dram, true), ("L1 ", &L1_USED, bars.l1, with_l1)] {
        if with_l1 {
            x = put(buf, x, y, end, name, theme.style(Tone::Faint));
        }
        figures::memory_bar(buf, (x, y), columns, (device, used), theme);
        x += columns + 1;
        if with_figure {
            let (text, tone) = figures::used(device, used, theme);
            cell(buf, (x, y), USED.min(end.saturating_sub(x)), &text, Align::Right, theme.style(tone), theme);
            x += USED + 1;
        }
    }
}

/// What the figures of each line are. A column is as wide as below.
pub fn draw_head(state: &TopState, names: usize, area: Rect, buf: &mut Buffer) {
    let (theme, y, end) = (&state.theme, area.y, area.right());
    let style = theme.style(Tone::Faint);
    let busy = if knows_utilization(state) { "util" } else { "MHz" };
    let mut x = area.x;
    for (columns, text, align) in [
        (names.max(2) as u16 + 1, "dev", Align::Right),
        (1, "", Align::Left),
        (TEMPERATURE, "temp", Align::Right),
        (POWER, "pwr", Align::Right),
        (CLOCK, busy, Align::Right),
    ] {
        let columns = columns.min(end.saturating_sub(x));
        cell(buf, (x, y), columns, text, align, style, theme);
        x += columns + 1;
    }
    let bars = MemoryBars::of(end.saturating_sub(x).saturating_sub(1));
    put(buf, x, y, end, "DRAM", style);
    // With its figure, L1 has its name in each line.
    if !bars.with_l1 && bars.l1 >= 2 {
        put(buf, x + bars.dram + 1 + USED + 1, y, end, "L1", style);
    }
}

/// Columns of the bars of memory, in the room that is left.
struct MemoryBars {
    dram: u16,
    l1: u16,
    /// With some room more, L1 has its name and its figure too.
    with_l1: bool,
}

impl MemoryBars {
    fn of(room: u16) -> MemoryBars {
        let with_l1 = room >= 5 * USED;
        let bars = room.saturating_sub(if with_l1 { 2 * (USED + 2) + L1 } else { USED + 2 });
        let dram = (bars + 1) * 2 / 3;
        MemoryBars { dram, l1: bars - dram, with_l1 }
    }
}

/// Whether any device says how busy it is.
fn knows_utilization(state: &TopState) -> bool {
    state.devices().iter().any(|device| UTILIZATION.value(device).is_some())
}

/// `silent 4.2s`, in fifteen columns.
fn brief_state(device: &Device) -> String {
    let name = device.state.name();
    match device.sample_age_seconds.filter(|age| *age > 0.0) {
        Some(age) => format!("{name} {}", figures::short_time(age)),
        None => name.to_owned(),
    }
}
