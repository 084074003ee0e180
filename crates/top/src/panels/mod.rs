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
pub mod heat;
pub mod help;
pub mod layout;
pub mod memory;
pub mod mesh;
pub mod processes;
pub mod setup;
pub mod signals;
pub mod sort;
pub mod status;
pub mod timeline;
mod trend;

use crate::paint;
use crate::paint::{Buffer, Rect, Tone};
use crate::state::{Overlay, TopState, TopView};
use devices::summary::ProblemWords;
use layout::Panel;
use model::figure::Freshness;

pub fn draw(state: &TopState, area: Rect, buf: &mut Buffer) {
    if is_too_small(area) {
        return draw_too_small(state, area, buf);
    }
    for (panel, area) in layout::of(state, area) {
        match panel {
            Panel::Header => header::draw(state, area, buf),
            Panel::Devices => devices::draw(state, area, buf),
            Panel::Charts => charts::draw(state, area, buf),
            Panel::Heat => heat::draw(state, area, buf),
            Panel::Processes => processes::draw(state, area, buf),
            Panel::Memory => memory::draw(state, area, buf),
            Panel::Mesh => mesh::draw(state, area, buf),
            Panel::Events => events::draw(state, area, buf),
            Panel::Fleet => fleet::draw(state, area, buf),
            Panel::Timeline => timeline::draw(state, area, buf),
            Panel::Status => status::draw(state, area, buf),
        }
    }
    match &state.overlay {
        Some(Overlay::Help(window)) => help::draw(state, window, area, buf),
        Some(Overlay::Setup(overlay)) => setup::draw(state, overlay, area, buf),
        Some(Overlay::Sort { at }) => sort::draw(state, *at, area, buf),
        Some(Overlay::Signals(menu)) => signals::draw(state, menu, area, buf),
        Some(Overlay::Filter(prompt)) => filter::draw(state, prompt, area, buf),
        Some(Overlay::Detail(overlay)) => detail::draw(state, overlay, area, buf),
        Some(Overlay::Device { scroll }) => device::draw(state, *scroll, area, buf),
        None => {}
    }
}

/// How the chips are, and what is lacking, in whole words.
fn draw_too_small(state: &TopState, area: Rect, buf: &mut Buffer) {
    let (columns, rows) = layout::SMALLEST;
    let pieces = devices::summary::pieces(state, &[], ProblemWords::WithNumbers);
    let known = pieces.into_iter().take_while(|piece| piece.rank == 0).map(|piece| piece.text);
    let text = if state.devices().is_empty() { String::new() } else { known.collect::<Vec<_>>().join(", ") };
    let words = format!("terminal too small: {columns}x{rows} at least");
    let lines = paint::wrapped(&words, area.width.into()).into_iter().chain(paint::wrapped(&text, area.width.into()));
    for (line, y) in lines.zip(area.top()..area.bottom()) {
        paint::put(buf, area.x, y, area.right(), &line, state.theme.style(Tone::Plain));
    }
}

/// Whether rates are drawn, such as the traffic of a link. They are read more often then.
pub fn shows_rates(state: &TopState) -> bool {
    match (&state.overlay, state.view) {
        (Some(Overlay::Device { .. }), _) | (_, TopView::Mesh) => true,
        (_, TopView::Overview) => {
            let mut charts = state.chosen_charts().into_iter();
            charts.any(|field| field.figure.freshness == Freshness::Rate) || devices::show_traffic(state)
        }
        _ => false,
    }
}

/// Whether there is no room for anything but saying so.
pub fn is_too_small(area: Rect) -> bool {
    area.width < layout::SMALLEST.0 || area.height < layout::SMALLEST.1
}
