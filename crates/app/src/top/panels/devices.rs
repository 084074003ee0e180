//! One header per device; many devices share a grid.

use crate::top::state::State;
use crossterm::event::MouseEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// The rows that the devices take on a screen.
pub fn height(_state: &State, _area: Rect) -> u16 {
    1
}

pub fn draw(_state: &State, _area: Rect, _buf: &mut Buffer) {}

pub fn mouse(_state: &mut State, _area: Rect, _event: MouseEvent) {}
