//! The keys, from the table that they are defined in.

use crate::keys::{self, BINDINGS, KeyPress};
use crate::paint::{Align, Buffer, Rect, Tone, cell, centred, clear, frame, put};
use crate::state::{Overlay, TopState};

const NAMES: u16 = 14;

pub fn draw(state: &TopState, scroll: usize, area: Rect, buf: &mut Buffer) {
    let area = centred(area, 90, BINDINGS.len() as u16 + 2);
    clear(buf, area);
    let inner = frame(buf, area, "Keys (any other key closes this)", &state.theme);
    let scroll = scroll.min(BINDINGS.len().saturating_sub(usize::from(inner.height)));
    for (binding, y) in BINDINGS.iter().skip(scroll).zip(inner.top()..inner.bottom()) {
        cell(buf, (inner.x, y), NAMES, binding.shown, Align::Right, state.theme.style(Tone::Strong), &state.theme);
        put(buf, inner.x + NAMES + 2, y, inner.right(), binding.help, state.theme.style(Tone::Plain));
    }
}

/// Arrows scroll; any other key closes it.
pub fn press(state: &TopState, scroll: usize, key: KeyPress) -> Option<Overlay> {
    let page = usize::from(state.area.height.saturating_sub(2));
    let scroll = keys::scrolled(key, scroll, page, BINDINGS.len().saturating_sub(page))?;
    Some(Overlay::Help { scroll })
}
