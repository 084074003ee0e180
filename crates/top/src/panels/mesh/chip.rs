//! One chip: a frame with its name and its figures, or a single line.

use super::super::devices::cell::{ChipFigure, draw, draw_level};
use super::super::devices::figures::{self, is_known};
use crate::paint::{Align, Buffer, Rect, Theme, Tone, bar, cell, fill, frame, put};
use crate::state::TopState;
use model::figure::Field;
use model::figure::device::{ASIC_TEMP, DRAM_USED, POWER, UTILIZATION};
use model::{Device, Judgement, State as DeviceState};
use show::command::display_name;
use show::text::width;
use std::borrow::Cow;

/// A chip and what it is to the selected one.
pub struct MeshChip<'a> {
    /// Absent when the picture is older than the chip.
    pub device: Option<&'a Device>,
    pub name: String,
    pub is_selected: bool,
    /// Whether a link joins it with the selected one.
    pub is_linked: bool,
}

/// A character for how it is, and its tone.
pub fn mark(device: &Device, theme: &Theme) -> (&'static str, Tone) {
    let [good, doubtful, bad, remote] = if theme.unicode { ["●", "▲", "✗", "○"] } else { ["*", "!", "X", "o"] };
    match device.state {
        DeviceState::Ok if !figures::is_stale(device) => (good, Tone::Good),
        DeviceState::Ok => (doubtful, Tone::Warning),
        DeviceState::Remote => (remote, Tone::Faint),
        state => (if state.judge() == Judgement::Critical { bad } else { doubtful }, Tone::of_state(state)),
    }
}

/// With a frame, in three lines or more.
pub fn draw_framed(state: &TopState, chip: &MeshChip<'_>, area: Rect, buf: &mut Buffer) {
    let (theme, end) = (&state.theme, area.right().saturating_sub(1));
    let inner = frame(buf, area, "", theme);
    if inner.is_empty() {
        return;
    }
    let edge = if chip.is_selected || chip.is_linked { Tone::Title } else { Tone::Border };
    let sides = [
        Rect { height: 1, ..area },
        Rect { y: area.bottom() - 1, height: 1, ..area },
        Rect { width: 1, ..area },
        Rect { x: end, width: 1, ..area },
    ];
    sides.into_iter().for_each(|side| fill(buf, side, theme.style(edge)));
    let name = format!("{}{} ", theme.mark(chip.is_selected), chip.name);
    let x = put(buf, inner.x, area.y, end, &name, theme.style(name_tone(chip)));
    let Some(device) = chip.device else { return };
    let (mark, tone) = mark(device, theme);
    let board = figures::board(device, theme.glyphs());
    if usize::from(end.saturating_sub(x)) >= width(&board) + 5 {
        put(buf, x, area.y, end, &format!(" {board} "), theme.style(Tone::Faint));
    }
    put(buf, end.saturating_sub(1).max(x), area.y, end, mark, theme.style(tone));
    let figure = ChipFigure::of(device, state.mesh.metric, state);
    for (y, line) in (inner.top()..inner.bottom()).zip(0..) {
        let area = Rect { y, height: 1, ..inner };
        // In a single line there is no room for a bar.
        if inner.height == 1 && is_known(device, state.mesh.metric) {
            draw_level(state, &figure, inner.x, y, inner.right(), buf);
        } else {
            draw_line(state, device, &figure, line, area, buf);
        }
    }
}

/// One of the lines within the frame: the figure, its bar, other figures, who is there.
fn draw_line(state: &TopState, device: &Device, figure: &ChipFigure, line: u16, area: Rect, buf: &mut Buffer) {
    let (theme, x, y) = (&state.theme, area.x, area.y);
    let knows = is_known(device, state.mesh.metric);
    let text = |buf: &mut Buffer, text: &str, tone| {
        cell(buf, (x, y), area.width, text, Align::Left, theme.style(tone), theme);
    };
    match (line, knows) {
        (0, false) => text(buf, figures::brief_state(device.state, area.width), figures::state_tone(device)),
        (0, true) => text(buf, figure.text(area.width), figure.tone),
        (1, true) => {
            let sizes = figures::sizes(device, state.mesh.metric);
            bar(buf, (x, y), area.width, sizes.as_ref(), figure.tone, theme);
        }
        // The last that it said, and when.
        (1, false) => {
            let Some(age) = device.sample_age_seconds.filter(|age| *age > 0.0).map(figures::short_time) else { return };
            let texts = [format!("{} {age} ago", figure.brief(5)), format!("{age} ago"), age];
            let fitting = texts.iter().find(|text| width(text) <= usize::from(area.width));
            text(buf, fitting.map_or("", |text| text), Tone::Faint);
        }
        (2, _) => text(buf, &others(state, device, area.width), Tone::Faint),
        _ => text(buf, &holders(state, device, area.width), Tone::Faint),
    }
}

/// In a single line, without a frame.
pub fn draw_bare(state: &TopState, chip: &MeshChip<'_>, names: usize, area: Rect, buf: &mut Buffer) {
    let (theme, y, end) = (&state.theme, area.y, area.right());
    let tone = if chip.is_linked && !chip.is_selected { Tone::Title } else { name_tone(chip) };
    let name = format!("{}{:>names$}", theme.mark(chip.is_selected), chip.name);
    let x = put(buf, area.x, y, end, &name, theme.style(tone)).saturating_add(1);
    let Some(device) = chip.device else { return };
    draw(state, device, state.mesh.metric, x, y, end, buf);
}

fn name_tone(chip: &MeshChip<'_>) -> Tone {
    if chip.is_selected { Tone::Selected } else { Tone::Strong }
}

/// Two figures that are not the chosen one, where the chip gives them.
fn others(state: &TopState, device: &Device, columns: u16) -> String {
    let fields = [&UTILIZATION, &ASIC_TEMP, &POWER, &DRAM_USED].map(|figure| figure.field());
    // Utilization is not known of most: then it takes no room.
    let is_there = |field: &Field<Device>| field.figure != &UTILIZATION || field.number(device).is_some();
    let is_shown = |field: &Field<Device>| *field != state.mesh.metric && is_known(device, *field) && is_there(field);
    let mut text = String::new();
    for field in fields.into_iter().filter(is_shown) {
        let figure = ChipFigure::of(device, field, state);
        let more = match figure.brief(5) {
            "0" => "0B",
            more => more,
        };
        let gap = if text.is_empty() { "" } else { "  " };
        if width(&text) + gap.len() + width(more) <= usize::from(columns) {
            text = format!("{text}{gap}{more}");
        }
    }
    text
}

fn holders(state: &TopState, device: &Device, columns: u16) -> String {
    let holds = |process: &&model::Process| process.devices.iter().any(|held| held.id == device.id);
    let mut all = state.snapshot().processes.iter().filter(holds);
    match (all.next(), all.count()) {
        (None, _) => String::new(),
        (Some(process), 0) => display_name(process).map_or_else(|| process.pid.to_string(), Cow::into_owned),
        (Some(_), more) if columns < 12 => format!("{} pids", more + 1),
        (Some(_), more) => format!("{} processes", more + 1),
    }
}
