//! The setup window.

use crate::top::keys::Key;
use crate::top::state::{Overlay, State};
use crossterm::event::MouseEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// What is chosen in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup;

pub fn draw(_state: &State, _setup: &Setup, _area: Rect, _buf: &mut Buffer) {}

/// A key was pressed. Nothing closes it.
pub fn press(_state: &mut State, _setup: Setup, _key: Key) -> Option<Overlay> {
    None
}

pub fn mouse(_state: &mut State, _setup: Setup, _event: MouseEvent) -> Option<Overlay> {
    None
}

impl Setup {
    pub fn new(_state: &State) -> Setup {
        Setup
    }
}
