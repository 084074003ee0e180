//! The menu of columns to sort by.

use crate::top::keys::Key;
use crate::top::state::{Overlay, State};
use crossterm::event::MouseEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Where the cursor is.
#[derive(Debug, Clone, PartialEq)]
pub struct Menu;

pub fn draw(_state: &State, _menu: &Menu, _area: Rect, _buf: &mut Buffer) {}

/// A key was pressed. Nothing closes it.
pub fn press(_state: &mut State, _menu: Menu, _key: Key) -> Option<Overlay> {
    None
}

pub fn mouse(_state: &mut State, _menu: Menu, _event: MouseEvent) -> Option<Overlay> {
    None
}
