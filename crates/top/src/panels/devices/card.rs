//! A device in three lines, or in two.

use super::{NameWidths, figures, selection};
use crate::paint::{Align, Buffer, Rect, Theme, Tone, cell, columns, put};
use crate::pieces::{self, Piece};
use crate::state::TopState;
use model::figure::Figure;
use model::figure::device::{ASIC_TEMP, DRAM_USED, FAN, L1_USED, POWER};
use model::{Device, Severity, State as DeviceState};
use show::text::{clean, width};

const GAP: u16 = 2;
const GUTTER: u16 = 2;
/// What follows the first line is below its name.
const INDENT: u16 = 2;
/// `≥99.4/180 MiB`
const USED: u16 = 16;

/// Three lines: who it is and its link, what it measures, its memory.
pub fn draw(state: &TopState, device: &Device, widths: NameWidths, area: Rect, buf: &mut Buffer) {
    let (theme, end) = (&state.theme, area.right().saturating_sub(GUTTER));
    let mut first = title(state, device, widths);
    if let Some(address) = &device.pci_address {
        first.insert(1, Piece::left(&*address.0, Tone::Faint, 3));
    }
    first.extend(figures::link(device).map(|(text, tone)| Piece::right(text, tone, 2)));
    first.extend(figures::traffic(device, theme, false).map(|(text, tone)| Piece::right(text, tone, 1)));
    pieces::draw(buf, (area.x, area.y), end, first, GAP, theme);
    let mut second = measured(state, device);
    second.extend(remarks(state, device));
    pieces::draw(buf, (area.x + INDENT, area.y + 1), end, second, GAP, theme);
    let at = (area.x + INDENT, area.y + 2);
    memory(buf, at, end, device, theme);
}

/// Two lines: who it is and what it measures, its memory and what goes over its link.
pub fn draw_low(state: &TopState, device: &Device, widths: NameWidths, area: Rect, buf: &mut Buffer) {
    let (theme, end) = (&state.theme, area.right().saturating_sub(GUTTER));
    let mut first = title(state, device, widths);
    first.extend(measured(state, device));
    first.extend(figures::link(device).map(|(text, tone)| {
        let rank = if device.link_is_degraded() { 1 } else { 4 };
        Piece::left(text, tone, rank)
    }));
    first.extend(remarks(state, device));
    pieces::draw(buf, (area.x, area.y), end, first, GAP, theme);
    let mut end_of_bars = end;
    if let Some((text, tone)) = figures::traffic(device, theme, true) {
        end_of_bars = end.saturating_sub(columns(&text) + GAP);
        pieces::draw(buf, (area.x, area.y + 1), end, vec![Piece::right(text, tone, 0)], GAP, theme);
    }
    memory(buf, (area.x + INDENT, area.y + 1), end_of_bars, device, theme);
}

/// `▸0 p150a  ok`
fn title(state: &TopState, device: &Device, widths: NameWidths) -> Vec<Piece> {
    let (mark, tone) = selection(state, device);
    let (name, board) = (figures::name(device, state.theme.glyphs()), figures::board(device, state.theme.glyphs()));
    let NameWidths { names, states, .. } = widths;
    let blanks = " ".repeat(widths.boards.saturating_sub(width(&board)));
    vec![
        Piece::left(format!("{mark}{name:>names$} {board}{blanks}"), tone, 0),
        Piece::left(format!("{:<states$}", figures::state(device)), figures::state_tone(device), 0),
    ]
}

/// Utilization, temperature, power, clock and fan, each of one width, so that nothing moves.
fn measured(state: &TopState, device: &Device) -> Vec<Piece> {
    let theme = &state.theme;
    if device.state == DeviceState::Remote {
        return vec![Piece::left("reached through its neighbour: memory only", Tone::Faint, 3)];
    }
    // `54/90°C`, `129/194°F`
    let degrees = if state.settings.fahrenheit { 9 } else { 7 };
    let (percent, tone) = figures::utilization(device, theme);
    // A board without a fan has nothing to say of it.
    let has_fan = |device: &Device| FAN.value(device).is_some();
    let fan =
        if has_fan(device) { figures::measured(device, &FAN, state, false) } else { (String::new(), Tone::Plain) };
    let some_have_one = state.devices().iter().any(has_fan);
    [
        ((format!("util {percent:>4}"), tone), 9, 1),
        (figures::measured(device, &ASIC_TEMP, state, true), degrees, 1),
        (figures::measured(device, &POWER, state, true), 8, 1),
        (figures::clock(device, theme, "MHz"), 7, 1),
        (fan, 7, 3),
    ]
    .into_iter()
    .take(if some_have_one { 5 } else { 4 })
    .map(|((text, tone), width, rank)| Piece::left(format!("{text:>width$}"), tone, rank))
    .collect()
}

fn remarks(state: &TopState, device: &Device) -> impl Iterator<Item = Piece> {
    let why = figures::why_slow(device, state).map(|(why, tone)| Piece::left(why, tone, 2));
    let remarks = figures::remarks(device).into_iter().map(|remark| Piece::left(remark, Tone::Warning, 2));
    let firing = figures::alerts(state, device).map(|alert| {
        let tone = if alert.severity == Severity::Critical { Tone::Critical } else { Tone::Warning };
        Piece::left(format!("! {}", clean(&alert.name)), tone, 1)
    });
    firing.chain(why).chain(remarks)
}

/// `DRAM ▇▇▇╳░░░░  12.4/32.0 GiB  L1 ▇▇░░░░  24.0/180 MiB`
fn memory(buf: &mut Buffer, (x, y): (u16, u16), end: u16, device: &Device, theme: &Theme) {
    let room = end.saturating_sub(x).saturating_sub(GAP);
    // The names take five and three columns.
    let bars = room.saturating_sub(5 + 3 + 2 * (USED + 1));
    let dram = bars * 3 / 5;
    let x = one(buf, (x, y), end, ("DRAM ", dram), (device, &DRAM_USED), theme) + GAP;
    one(buf, (x, y), end, ("L1 ", bars - dram), (device, &L1_USED), theme);
}

/// Draws one kind of memory, and returns where it ended.
fn one(
    buf: &mut Buffer,
    (x, y): (u16, u16),
    end: u16,
    (name, bar_columns): (&str, u16),
    (device, figure): (&Device, &'static Figure<Device>),
    theme: &Theme,
) -> u16 {
    let x = put(buf, x, y, end, name, theme.style(Tone::Faint));
    let bar_columns = bar_columns.min(end.saturating_sub(x));
    figures::memory_bar(buf, (x, y), bar_columns, (device, figure), theme);
    let x = x + bar_columns + 1;
    let (text, tone) = figures::used_of_total(device, figure, theme);
    let room = USED.min(end.saturating_sub(x));
    cell(buf, (x, y), room, &text, Align::Right, theme.style(tone), theme);
    x + room
}
