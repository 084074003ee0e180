//! One panel, one file. `draw` only looks; `act`, `press` and `mouse` change the state.

pub mod charts;
pub mod detail;
pub mod device;
pub mod devices;
pub mod events;
pub mod filter;
pub mod fleet;
pub mod header;
mod heading;
pub mod help;
pub mod layout;
pub mod memory;
pub mod mesh;
pub mod processes;
pub mod setup;
pub mod signals;
pub mod sort;
pub mod status;

use crate::paint;
use crate::paint::{Buffer, Rect, Tone};
use crate::state::{Overlay, TopState};
use layout::Panel;

pub fn draw(state: &TopState, area: Rect, buf: &mut Buffer) {
    if is_too_small(area) {
        let (columns, rows) = layout::SMALLEST;
        let text = format!("too small: {columns}x{rows} at least");
        paint::put(buf, area.x, area.y, area.right(), &text, state.theme.style(Tone::Plain));
        return;
    }
    for (panel, area) in layout::of(state, area) {
        match panel {
            Panel::Header => header::draw(state, area, buf),
            Panel::Devices => devices::draw(state, area, buf),
            Panel::Charts => charts::draw(state, area, buf),
            Panel::Processes => processes::draw(state, area, buf),
            Panel::Memory => memory::draw(state, area, buf),
            Panel::Mesh => mesh::draw(state, area, buf),
            Panel::Events => events::draw(state, area, buf),
            Panel::Fleet => fleet::draw(state, area, buf),
            Panel::Status => status::draw(state, area, buf),
        }
    }
    match &state.overlay {
        Some(Overlay::Help { scroll }) => help::draw(state, *scroll, area, buf),
        Some(Overlay::Setup(overlay)) => setup::draw(state, overlay, area, buf),
        Some(Overlay::Sort { at }) => sort::draw(state, *at, area, buf),
        Some(Overlay::Signals(menu)) => signals::draw(state, menu, area, buf),
        Some(Overlay::Filter(prompt)) => filter::draw(state, prompt, area, buf),
        Some(Overlay::Detail(overlay)) => detail::draw(state, overlay, area, buf),
        Some(Overlay::Device { scroll }) => device::draw(state, *scroll, area, buf),
        None => {}
    }
}

/// Whether there is no room for anything but saying so.
pub fn is_too_small(area: Rect) -> bool {
    area.width < layout::SMALLEST.0 || area.height < layout::SMALLEST.1
}
