//! The keys, from the table that they are defined in.

use crate::keys::{BINDINGS, KeyPress};
use crate::paint::{cell, centred, clear, frame, put};
use crate::state::{Overlay, TopState};
use crate::theme::Tone;
use crossterm::event::{KeyCode, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use show::text::Align;

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

fn most(state: &TopState) -> usize {
    BINDINGS.len().saturating_sub(usize::from(state.area.height.saturating_sub(2)))
}

/// Arrows scroll; any other key closes it.
pub fn press(state: &TopState, scroll: usize, (code, _): KeyPress) -> Option<Overlay> {
    let most = most(state);
    let scroll = match code {
        KeyCode::Up | KeyCode::Char('k') => scroll.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => (scroll + 1).min(most),
        KeyCode::PageUp | KeyCode::Home => scroll.saturating_sub(10),
        KeyCode::PageDown | KeyCode::End => (scroll + 10).min(most),
        _ => return None,
    };
    Some(Overlay::Help { scroll })
}

pub fn mouse(state: &TopState, scroll: usize, event: MouseEvent) -> Option<Overlay> {
    match event.kind {
        MouseEventKind::ScrollUp => Some(Overlay::Help { scroll: scroll.saturating_sub(3) }),
        MouseEventKind::ScrollDown => Some(Overlay::Help { scroll: (scroll + 3).min(most(state)) }),
        MouseEventKind::Down(_) => None,
        _ => Some(Overlay::Help { scroll }),
    }
}
