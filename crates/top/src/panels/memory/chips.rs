//! All chips, in the order of the overview: a line for each where there is room, else several in a line. The selected one can
//! always be seen, and those that cannot are counted.

use super::{is_selected, style_of};
use crate::paint::{Buffer, Position, Rect, Tone, columns, put, put_line};
use crate::panels::devices::summary::{ProblemWords, not_shown};
use crate::state::TopState;
use model::Device;
use show::memory::draw::chips::{ChipForm, ChipGrid};
use show::memory::view::{Chip, View};

/// Where chips are on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChipRows {
    grid: ChipGrid,
    /// So many rows are drawn, a head included, beginning with this one.
    pub rows: u16,
    first: u16,
}

/// The chips as the overview lists their devices. One that is no device of the snapshot comes last.
pub fn ordered<'a>(state: &TopState, view: &'a View) -> Vec<&'a Chip> {
    let listed: Vec<String> = state.listed().map(|device| device.id.to_string()).collect();
    let mut chips: Vec<&Chip> = view.chips.iter().collect();
    chips.sort_by_key(|chip| listed.iter().position(|id| *id == chip.id).unwrap_or(usize::MAX));
    chips
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
        let at = ordered(state, view).iter().position(|chip| is_selected(state, chip)).unwrap_or(0);
        let first = ((at / grid.across.max(1)) as u16 + 1).saturating_sub(visible);
        ChipRows { grid, rows: visible + 1, first }
    }

    /// Where the chip of this place in the order is, unless it cannot be seen.
    pub fn place(&self, area: Rect, at: usize) -> Option<Rect> {
        let (across, width) = (self.grid.across.max(1), self.grid.width as u16);
        let row = ((at / across) as u16).checked_sub(self.first)?.checked_add(1).filter(|row| *row < self.rows)?;
        Some(Rect { x: area.x + (at % across) as u16 * width, y: area.y + row, width, height: 1 })
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
    let style = style_of(&state.theme, area.width);
    let mut hidden: Vec<&Device> = Vec::new();
    for (at, chip) in ordered(state, view).into_iter().enumerate() {
        if let Some(place) = chips.place(area, at).map(|place| place.intersection(area)) {
            let line = chips.grid.line(chip, is_selected(state, chip), &style);
            put_line(buf, (place.x, place.y), place.right(), &line, &state.theme);
        } else {
            hidden.extend(state.devices().iter().find(|device| device.id.to_string() == chip.id));
        }
    }
    if !hidden.is_empty() {
        let texts = [ProblemWords::ByState, ProblemWords::Count].map(|words| not_shown(&hidden, words));
        let texts = [format!("  {}, Tab: next ", texts[0]), format!("  {} ", texts[0]), format!(" {} ", texts[1])];
        // The first head stays, where it can.
        let room = area.width.saturating_sub(chips.grid.width as u16);
        let fits = |room: u16| texts[..2].iter().find(|text| columns(text) <= room);
        let text = fits(room).or_else(|| fits(area.width)).unwrap_or(&texts[2]);
        let x = area.right().saturating_sub(columns(text)).max(area.x);
        put(buf, x, area.y, area.right(), text, state.theme.style(Tone::Warning));
    }
}
