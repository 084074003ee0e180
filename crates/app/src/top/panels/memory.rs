//! Where memory went, down to single buffers and banks.

use crate::top::keys::Action;
use crate::top::state::State;
use crossterm::event::MouseEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// What is chosen in this view.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Chosen;

pub fn draw(_state: &State, _area: Rect, _buf: &mut Buffer) {}

/// Whether the action meant something here.
pub fn act(_state: &mut State, _action: Action) -> bool {
    false
}

pub fn mouse(_state: &mut State, _area: Rect, _event: MouseEvent) {}
