//! The line in which a filter is typed.

use crate::top::keys::Key;
use crate::top::state::{Overlay, State};
use crossterm::event::MouseEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// What was typed so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt;

pub fn draw(_state: &State, _prompt: &Prompt, _area: Rect, _buf: &mut Buffer) {}

/// A key was pressed. Nothing closes it.
pub fn press(_state: &mut State, _prompt: Prompt, _key: Key) -> Option<Overlay> {
    None
}

pub fn mouse(_state: &mut State, _prompt: Prompt, _event: MouseEvent) -> Option<Overlay> {
    None
}

impl Prompt {
    pub fn paste(&mut self, _text: &str) {}
}
