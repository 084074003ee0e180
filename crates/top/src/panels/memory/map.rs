//! A bank of the selected chip as a strip of used and free blocks, above the list of them.

use super::rows::{self, Tab};
use super::{cursor, style_of};
use crate::paint::{Buffer, Rect, Tone, put, put_line};
use crate::state::TopState;
use show::memory::map::{strip, title};
use show::memory::view::View;

/// What it is, and the strip.
const HEIGHT: u16 = 2;
/// Below, the list needs so many rows.
const LIST: u16 = 3;

/// So many rows it takes, of an area that the list shares.
pub fn height(state: &TopState, view: &View, area: Rect) -> u16 {
    let is_shown = state.memory.tab == Tab::Map && area.height >= HEIGHT + LIST && rows::bank(state, view).is_some();
    if is_shown { HEIGHT } else { 0 }
}

pub fn draw(state: &TopState, view: &View, area: Rect, buf: &mut Buffer) {
    let Some(bank) = rows::bank(state, view).filter(|_| area.height >= HEIGHT) else { return };
    let (theme, x, end) = (&state.theme, area.x.saturating_add(1), area.right());
    put(buf, x, area.y, end, &title(bank.area, bank.kind, &bank.blocks), theme.style(Tone::Strong));
    let at = cursor(&state.memory, &rows::of(state, view, Tab::Map));
    let style = style_of(theme, area.width);
    let line = strip(&bank.blocks, Some(at), usize::from(area.width.saturating_sub(2)), &style);
    put_line(buf, (x, area.y + 1), end, &line, theme);
}
