//! One process in detail.

use crate::top::keys::Key;
use crate::top::state::{Overlay, State};
use crossterm::event::MouseEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// The process, and what is chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Detail {
    pub pid: u32,
}

impl Detail {
    pub fn of(pid: u32) -> Detail {
        Detail { pid }
    }
}

pub fn draw(_state: &State, _detail: &Detail, _area: Rect, _buf: &mut Buffer) {}

/// A key was pressed. Nothing closes it.
pub fn press(_state: &mut State, _detail: Detail, _key: Key) -> Option<Overlay> {
    None
}

pub fn mouse(_state: &mut State, _detail: Detail, _event: MouseEvent) -> Option<Overlay> {
    None
}
