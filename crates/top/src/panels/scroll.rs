//! Scrolling a window of lines, by keys and by the wheel.

use crossterm::event::{KeyCode, MouseEvent, MouseEventKind};
use ratatui::layout::Rect;

/// Where a key scrolls to: a page has so many lines, and the last place to scroll to is this.
pub fn pressed(code: KeyCode, at: usize, page: usize, last: usize) -> usize {
    let to = match code {
        KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => at + 1,
        KeyCode::PageUp => at.saturating_sub(page),
        KeyCode::PageDown | KeyCode::Char(' ') => at + page,
        KeyCode::Home | KeyCode::Char('g') => 0,
        KeyCode::End | KeyCode::Char('G') => last,
        _ => at,
    };
    to.min(last)
}

/// What the mouse does, as a key: the wheel scrolls, a click above the window closes it.
pub fn turned(event: MouseEvent, area: Rect) -> Option<KeyCode> {
    match event.kind {
        MouseEventKind::ScrollUp => Some(KeyCode::Up),
        MouseEventKind::ScrollDown => Some(KeyCode::Down),
        MouseEventKind::Down(_) if event.row <= area.y => Some(KeyCode::Esc),
        _ => None,
    }
}
