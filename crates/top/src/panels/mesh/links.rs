//! The links between cells that are neighbours. Others are listed in words.

use super::plan::Plan;
use crate::paint::{Buffer, Rect, Style, Theme, Tone};
use crate::state::TopState;
use model::topology::{EthernetLink, LinkState, LiveLinks, PlacedChip, Topology, TopologySource};

/// How a link looks, from left to right and from top to bottom.
pub struct LinkLine {
    pub across: char,
    pub down: char,
}

/// How many of the links between two chips are down, as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkHealth {
    /// None is known to be.
    Well,
    Degraded,
    Down,
}

pub fn health(link: &EthernetLink, live: &LiveLinks) -> LinkHealth {
    match live.count(&link.ends, LinkState::Down) {
        0 => LinkHealth::Well,
        down if down < link.count as usize => LinkHealth::Degraded,
        _ => LinkHealth::Down,
    }
}

pub fn line(link: &EthernetLink, health: LinkHealth, theme: &Theme) -> LinkLine {
    match (health, theme.unicode) {
        (LinkHealth::Degraded, true) => return LinkLine { across: '╌', down: '╎' },
        (LinkHealth::Degraded, false) => return LinkLine { across: '~', down: '~' },
        (LinkHealth::Down, true) => return LinkLine { across: '╳', down: '╳' },
        (LinkHealth::Down, false) => return LinkLine { across: 'x', down: 'x' },
        (LinkHealth::Well, _) => {}
    }
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
        let health = health(link, &state.places.live);
        let tone = match (health, link.source) {
            (LinkHealth::Down, _) => Tone::Critical,
            (LinkHealth::Degraded, _) => Tone::Warning,
            _ if is_selected => Tone::Title,
            (LinkHealth::Well, TopologySource::Assumed) => Tone::Faint,
            (LinkHealth::Well, _) => Tone::Plain,
        };
        let style = state.theme.style(tone);
        let line = line(link, health, &state.theme);
        // The number of those that are not down.
        let count = link.count.saturating_sub(state.places.live.count(&link.ends, LinkState::Down) as u32);
        if one.row == other.row {
            let shown = if health == LinkHealth::Well && count < 2 { None } else { char::from_digit(count, 10) };
            across(buf, from, to, shown.filter(|_| health != LinkHealth::Down), line.across, style);
        } else {
            let y = from.bottom()..to.top();
            y.for_each(|y| set(buf, from.x + 1, y, line.down, style));
        }
    }
}

/// In the middle of the cells, with how many there are where there is room for it.
fn across(buf: &mut Buffer, from: Rect, to: Rect, count: Option<char>, glyph: char, style: Style) {
    let y = from.y + from.height / 2;
    (from.right()..to.left()).for_each(|x| set(buf, x, y, glyph, style));
    if let Some(digit) = count.filter(|_| to.left() - from.right() >= 3) {
        set(buf, from.right() + (to.left() - from.right()) / 2, y, digit, style);
    }
}

fn set(buf: &mut Buffer, x: u16, y: u16, glyph: char, style: Style) {
    if let Some(cell) = buf.cell_mut((x, y)) {
        cell.set_char(glyph).set_style(style);
    }
}
