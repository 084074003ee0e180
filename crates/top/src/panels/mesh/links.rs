//! The links between cells that are neighbours. Others are listed in words.

use super::plan::Plan;
use crate::paint::{Buffer, Rect, Style, Theme, Tone};
use crate::state::TopState;
use model::topology::{EthernetLink, PlacedChip, Topology, TopologySource};

/// How a link looks, from left to right and from top to bottom.
pub struct LinkLine {
    pub across: char,
    pub down: char,
}

pub fn line(link: &EthernetLink, theme: &Theme) -> LinkLine {
    let (across, down) = match (link.source, link.count, theme.unicode) {
        (TopologySource::Assumed, _, true) => ('┄', '┊'),
        (TopologySource::Assumed, _, false) => ('.', ':'),
        (_, 0..=1, true) => ('─', '│'),
        (_, 0..=1, false) => ('-', '|'),
        (_, _, true) => ('═', '║'),
        (_, _, false) => ('=', '#'),
    };
    LinkLine { across, down }
}

/// Both ends, the left or upper one first, where one is next to the other.
pub fn neighbours<'a>(topology: &'a Topology, link: &EthernetLink) -> Option<[&'a PlacedChip; 2]> {
    let mut ends = [topology.place(&link.ends[0])?, topology.place(&link.ends[1])?];
    ends.sort_by_key(|chip| (chip.row, chip.column));
    let [one, other] = ends;
    let steps = (one.column.abs_diff(other.column), one.row.abs_diff(other.row));
    matches!(steps, (1, 0) | (0, 1)).then_some(ends)
}

pub fn draw(state: &TopState, plan: &Plan, buf: &mut Buffer) {
    let topology = &state.places.topology;
    for link in &topology.links {
        let Some([one, other]) = neighbours(topology, link) else { continue };
        let (Some(from), Some(to)) = (plan.place(one), plan.place(other)) else { continue };
        let is_selected = state.device.as_ref().is_some_and(|id| link.ends.contains(id));
        let tone = match link.source {
            _ if is_selected => Tone::Title,
            TopologySource::Assumed => Tone::Faint,
            _ => Tone::Plain,
        };
        let style = state.theme.style(tone);
        let line = line(link, &state.theme);
        if one.row == other.row {
            across(buf, from, to, link.count, line.across, style);
        } else {
            let y = from.bottom()..to.top();
            y.for_each(|y| set(buf, from.x + 1, y, line.down, style));
        }
    }
}

/// In the middle of the cells, with how many there are where there is room for it.
fn across(buf: &mut Buffer, from: Rect, to: Rect, count: u32, glyph: char, style: Style) {
    let y = from.y + from.height / 2;
    (from.right()..to.left()).for_each(|x| set(buf, x, y, glyph, style));
    if let Some(digit) = char::from_digit(count, 10).filter(|_| count > 1 && to.left() - from.right() >= 3) {
        set(buf, from.right() + (to.left() - from.right()) / 2, y, digit, style);
    }
}

fn set(buf: &mut Buffer, x: u16, y: u16, glyph: char, style: Style) {
    if let Some(cell) = buf.cell_mut((x, y)) {
        cell.set_char(glyph).set_style(style);
    }
}
