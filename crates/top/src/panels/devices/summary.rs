//! The machine in one line: how many chips are well, what they draw, the hottest, memory, utilization.

use crate::paint::{Buffer, Rect, Tone, put};
use crate::pieces::{self, Piece};
use crate::state::TopState;
use crate::unit_text::UnitText;
use model::figure::Unit;
use model::figure::device::ASIC_TEMP;
use model::{Bytes, Device, DeviceId};
use show::figures::{tone, used_of_total};
use show::machine::{MachineTotals, SumOfLimit, is_troubled};
use show::text::{count, in_short};

/// How much is said of the chips with a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemWords {
    /// `2 hung (5,31)`
    WithNumbers,
    /// `2 hung`
    ByState,
    /// `2 problems`
    Count,
}

/// Draws it. Devices for which there is no room are counted here.
pub fn draw(state: &TopState, hidden: &[&Device], area: Rect, buf: &mut Buffer) {
    let theme = &state.theme;
    let between = if theme.unicode { " · " } else { ", " };
    let (gap, end) = (between.chars().count() as u16, area.right().saturating_sub(1));
    let room = end.saturating_sub(area.x + 1);
    let least = |pieces: &[Piece]| pieces::width(pieces.iter().filter(|piece| piece.rank == 0), gap);
    let mut pieces = pieces(state, hidden, ProblemWords::WithNumbers);
    for words in [ProblemWords::ByState, ProblemWords::Count] {
        if least(&pieces) > room {
            pieces = self::pieces(state, hidden, words);
        }
    }
    pieces::keep_fitting(&mut pieces, gap, room);
    let mut x = area.x + 1;
    for (n, piece) in pieces.iter().enumerate() {
        if n > 0 {
            x = put(buf, x, area.y, end, between, theme.style(Tone::Faint));
        }
        x = put(buf, x, area.y, end, &piece.text, theme.style(piece.tone));
    }
}

/// In the order of the line; the least important has the highest rank.
pub fn pieces(state: &TopState, hidden: &[&Device], words: ProblemWords) -> Vec<Piece> {
    let totals = MachineTotals::of(state.devices());
    let glyphs = state.theme.glyphs();
    // The shortest form of each figure leaves room for all of them.
    let is_narrow = state.area.width < 100;
    let mut pieces = vec![Piece::left(count(totals.chips as u64, "chip", "chips"), Tone::Strong, 0)];
    if !hidden.is_empty() {
        pieces.push(Piece::left(not_shown(hidden, words), Tone::Warning, 0));
    }
    let ok = if totals.ok == 0 { Tone::Faint } else { Tone::Good };
    pieces.push(Piece::left(format!("{} ok", totals.ok), ok, u8::from(words == ProblemWords::Count)));
    for (word, tone, ids) in totals.troubled.iter().filter(|_| words != ProblemWords::Count) {
        let numbers = if words == ProblemWords::ByState { String::new() } else { format!(" ({})", in_short(ids)) };
        pieces.push(Piece::left(format!("{} {word}{numbers}", ids.len()), *tone, 0));
    }
    if words == ProblemWords::Count && totals.ok < totals.chips {
        let text = count((totals.chips - totals.ok) as u64, "problem", "problems");
        pieces.push(Piece::left(text, Tone::Critical, 0));
    }
    if let Some(power) = totals.power {
        pieces.push(Piece::left(watts(power, glyphs.at_least), Tone::Plain, 1));
    }
    if let Some((value, id)) = totals.hottest {
        let units = UnitText::new(Unit::Celsius, state);
        let word = if is_narrow { "" } else { "hottest " };
        let text = format!("{word}{} {} ({id})", units.short_number(value), units.symbol());
        pieces.push(Piece::left(text, hottest_tone(state, id), 2));
    }
    if let Some(dram) = totals.dram {
        let bytes = |value: f64| Bytes(value.max(0.0) as u64);
        let mark = if dram.is_lower_bound { glyphs.at_least } else { "" };
        let text = match dram.limit.filter(|limit| is_narrow && *limit > 0.0) {
            Some(limit) => format!("{mark}{:.0}%", dram.sum / limit * 100.0),
            None => used_of_total(Some(bytes(dram.sum)), dram.limit.map(bytes), u32::from(dram.is_lower_bound), glyphs),
        };
        pieces.push(Piece::left(format!("DRAM {text}"), Tone::Plain, 2));
    }
    if let Some((mean, known)) = totals.utilization {
        let of = if known < totals.chips && !is_narrow { format!(" of {known}") } else { String::new() };
        pieces.push(Piece::left(format!("util {mean:.0}%{of}"), Tone::Plain, 1));
    }
    let processes = state.snapshot().processes.len() as u64;
    pieces.push(Piece::left(count(processes, "process", "processes"), Tone::Plain, 4));
    pieces
}

/// The hottest chip has the tone that its temperature has elsewhere.
fn hottest_tone(state: &TopState, id: &DeviceId) -> Tone {
    let device = state.devices().iter().find(|device| device.id == *id);
    device.map_or(Tone::Plain, |device| tone(&ASIC_TEMP, device))
}

/// `1.1/2.7 kW`, `84/150 W`
fn watts(power: SumOfLimit, at_least: &str) -> String {
    let mark = if power.is_lower_bound { at_least } else { "" };
    let (by, unit, decimals) =
        if power.limit.unwrap_or(power.sum) >= 1000.0 { (1000.0, "kW", 1) } else { (1.0, "W", 0) };
    let scaled = |value: f64| format!("{:.decimals$}", value / by);
    match power.limit {
        Some(limit) => format!("{mark}{}/{} {unit}", scaled(power.sum), scaled(limit)),
        None => format!("{mark}{} {unit}", scaled(power.sum)),
    }
}

/// `+6 not shown (1 hung)`: the devices without room, and what is wrong with them.
pub fn not_shown(hidden: &[&Device], words: ProblemWords) -> String {
    if words == ProblemWords::Count {
        return format!("+{} not shown", hidden.len());
    }
    let mut words: Vec<(&str, usize)> = Vec::new();
    for device in hidden.iter().filter(|device| is_troubled(device)) {
        let word = super::figures::brief_state(device.state, u16::MAX);
        match words.iter_mut().find(|(known, _)| *known == word) {
            Some((_, count)) => *count += 1,
            None => words.push((word, 1)),
        }
    }
    let words: Vec<String> = words.iter().map(|(word, count)| format!("{count} {word}")).collect();
    let what = if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) };
    format!("+{} not shown{what}", hidden.len())
}
