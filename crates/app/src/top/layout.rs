//! Which panel is where.

use super::state::{State, View};
use ratatui::layout::Rect;

/// A part of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Panel {
    Header,
    Devices,
    Charts,
    Processes,
    Memory,
    Mesh,
    Events,
    Status,
}

/// Below this nothing makes sense.
pub const SMALLEST: (u16, u16) = (40, 8);

/// The panels of a view, from top to bottom.
pub fn of(state: &State, area: Rect) -> Vec<(Panel, Rect)> {
    let row = |y: u16, height: u16| Rect { x: area.x, y: area.y + y, width: area.width, height };
    let body = row(1, area.height - 2);
    let mut panels = vec![(Panel::Header, row(0, 1))];
    match state.view {
        View::Overview => {
            let devices = super::panels::devices::height(state, area);
            let rest = body.height - devices;
            let charts = super::panels::charts::height(state, rest);
            panels.push((Panel::Devices, row(1, devices)));
            panels.push((Panel::Charts, row(1 + devices, charts)));
            panels.push((Panel::Processes, row(1 + devices + charts, rest - charts)));
        }
        View::Memory => panels.push((Panel::Memory, body)),
        View::Mesh => panels.push((Panel::Mesh, body)),
        View::Events => panels.push((Panel::Events, body)),
    }
    panels.push((Panel::Status, row(area.height - 1, 1)));
    panels.retain(|(_, area)| area.height > 0);
    panels
}
