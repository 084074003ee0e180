//! All chips: a line for each where there is room, else several in a line. The selected one can always be seen.

use super::{is_selected, style_of};
use crate::paint::{Buffer, Position, Rect, Tone, put, put_line};
use crate::state::TopState;
use show::memory::draw::chips::{ChipForm, ChipGrid};
use show::memory::view::View;

/// Where chips are on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChipRows {
    grid: ChipGrid,
    /// So many rows are drawn, a head included, beginning with this one.
    pub rows: u16,
    first: u16,
}

impl ChipRows {
    pub fn of(state: &TopState, view: &View, area: Rect) -> ChipRows {
        let most = (area.height / 3 + 1).min(area.height);
        let forms = [ChipForm::Row, ChipForm::Tile, ChipForm::Cell];
        let grids = forms.map(|form| ChipGrid::new(form, view, area.width.into()));
        let is_wide = |grid: &&ChipGrid| grid.form != ChipForm::Row || area.width >= 70;
        let fits = |grid: &&ChipGrid| grid.down < usize::from(most);
        let grid = *grids.iter().filter(is_wide).find(fits).unwrap_or(&grids[2]);
        // One chip has its detail, and needs no list.
        if view.chips.len() <= 1 {
            return ChipRows { grid, rows: 0, first: 0 };
        }
        let visible = usize::from(most.saturating_sub(1)).clamp(1, grid.down.max(1)) as u16;
        let at = view.chips.iter().position(|chip| is_selected(state, chip)).unwrap_or(0);
        let first = ((at % grid.down.max(1)) as u16 + 1).saturating_sub(visible);
        ChipRows { grid, rows: visible + 1, first }
    }

    /// Where a chip is, unless it cannot be seen.
    pub fn place(&self, area: Rect, at: usize) -> Option<Rect> {
        let (down, width) = (self.grid.down.max(1), self.grid.width as u16);
        let row = ((at % down) as u16).checked_sub(self.first)?.checked_add(1).filter(|row| *row < self.rows)?;
        Some(Rect { x: area.x + (at / down) as u16 * width, y: area.y + row, width, height: 1 })
    }

    pub fn at(&self, area: Rect, position: Position, count: usize) -> Option<usize> {
        (0..count).find(|at| self.place(area, *at).is_some_and(|place| place.contains(position)))
    }
}

pub fn draw(state: &TopState, view: &View, chips: &ChipRows, area: Rect, buf: &mut Buffer) {
    if chips.rows == 0 || area.height == 0 {
        return;
    }
    let (faint, head) = (state.theme.style(Tone::Faint), chips.grid.head());
    for across in 0..chips.grid.across as u16 {
        let x = area.x + across * chips.grid.width as u16;
        put(buf, x, area.y, (x + chips.grid.width as u16).min(area.right()), &head, faint);
    }
    if chips.grid.down >= usize::from(chips.rows) {
        let text = format!("  {} chips, Tab: next ", view.chips.len());
        let x = area.right().saturating_sub(text.len() as u16);
        put(buf, x, area.y, area.right(), &text, faint);
    }
    let style = style_of(&state.theme, area.width);
    for (at, chip) in view.chips.iter().enumerate() {
        if let Some(place) = chips.place(area, at).map(|place| place.intersection(area)) {
            let line = chips.grid.line(chip, is_selected(state, chip), &style);
            put_line(buf, (place.x, place.y), place.right(), &line, &state.theme);
        }
    }
}
