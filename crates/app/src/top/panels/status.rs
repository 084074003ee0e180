//! The last line: the newest event or notice, and the keys.

use crate::top::keys::BINDINGS;
use crate::top::paint::put;
use crate::top::state::State;
use crate::top::theme::Tone;
use crossterm::event::MouseEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

pub fn draw(state: &State, area: Rect, buf: &mut Buffer) {
    let mut x = area.x;
    if let Some(notice) = &state.notice {
        x = put(buf, x, area.y, area.right(), &format!(" {notice} "), state.theme.style(Tone::Strong));
    }
    for binding in BINDINGS {
        let Some(word) = binding.word else { continue };
        let shown = binding.shown.split(", ").next().unwrap_or(binding.shown);
        x = put(buf, x, area.y, area.right(), shown, state.theme.style(Tone::Key));
        x = put(buf, x, area.y, area.right(), word, state.theme.style(Tone::Plain));
        x = put(buf, x, area.y, area.right(), " ", state.theme.style(Tone::Plain));
    }
}

pub fn mouse(_state: &mut State, _area: Rect, _event: MouseEvent) {}
