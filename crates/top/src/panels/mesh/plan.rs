//! Where everything of the view is: the title, the cells of the grid, the facts of one chip, the legend.

use crate::screen::Rect;
use crate::state::TopState;
use model::topology::{GridShape, PlacedChip};
use std::ops::Range;

#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub title: Rect,
    pub facts: Rect,
    /// Whether the facts are beside the grid, not below it.
    pub aside: bool,
    pub legend: Rect,
    grid: Rect,
    pub cell: (u16, u16),
    /// Columns between two cells, and rows above a cell.
    pub gap: (u16, u16),
    pub columns: Range<u32>,
    pub rows: Range<u32>,
}

/// The least columns of a cell with a frame, and without.
const FRAMED: u16 = 8;
const BARE: u16 = 7;
/// A cell with a frame has so many lines at most.
const TALLEST: u16 = 6;
/// A cell and the gap behind it are not wider.
const WIDEST: u16 = 30;
const ASIDE: u16 = 42;
/// A rule and three lines.
const LEAST_FACTS: u16 = 4;

impl Plan {
    pub fn of(state: &TopState, area: Rect) -> Plan {
        let shape = state.places.topology.shape;
        let title = Rect { height: area.height.min(1), ..area };
        let has_legend = u16::from(area.height >= 5);
        let body = Rect { y: area.y + title.height, height: area.height - title.height - has_legend, ..area };
        let legend = Rect { y: body.bottom(), height: has_legend, ..area };
        let narrow = area.width.saturating_sub(ASIDE);
        let aside = area.width >= 100 && body.height >= 12 && wanted(shape.columns, FRAMED + 1) <= u32::from(narrow);
        let facts = match (aside, body.height) {
            (true, _) => Rect { x: area.x + narrow, width: ASIDE, ..body },
            (false, 0..6) => Rect { height: 0, ..body },
            (false, 6..14) => Rect { height: 2, ..body },
            (false, _) => Rect { height: LEAST_FACTS, ..body },
        };
        let grid =
            if aside { Rect { width: narrow, ..body } } else { Rect { height: body.height - facts.height, ..body } };
        let mut plan = Plan { title, facts, aside, legend, grid, cell: (0, 0), gap: (1, 1), columns: 0..0, rows: 0..0 };
        plan.choose(shape, state);
        if !aside {
            // What the grid does not need is for the facts.
            let used = plan.rows.len() as u16 * (plan.cell.1 + plan.gap.1);
            let y = body.y + used.min(body.height - facts.height);
            plan.facts = Rect { y, height: if facts.height > 0 { body.bottom() - y } else { 0 }, ..facts };
        }
        plan
    }

    /// The largest cells for which there is room; bare ones, and not all of them, where there is little.
    fn choose(&mut self, shape: GridShape, state: &TopState) {
        let (width, height) = (self.grid.width, self.grid.height);
        if shape.columns == 0 || shape.rows == 0 || width == 0 || height == 0 {
            return;
        }
        let fits = |rows: u16| wanted(shape.rows, rows) <= u32::from(height);
        let framed = (3..=TALLEST).rev().find(|rows| fits(rows + 1));
        let framed = framed.filter(|_| wanted(shape.columns, FRAMED + 1) <= u32::from(width) + 1);
        let (least, rows) = framed.map_or((BARE, 1), |rows| (FRAMED, rows));
        let above = u16::from(fits(rows + 1));
        let columns = u32::from(((width + 1) / (least + 1)).max(1)).min(shape.columns);
        let pitch = ((width + 1) / columns as u16).min(WIDEST);
        let between = match pitch {
            ..12 => 1,
            12..20 => 3,
            _ => 5,
        };
        self.cell = (pitch.saturating_sub(between).max(1), rows);
        self.gap = (between, above);
        let selected = state.device.as_ref().and_then(|id| state.places.topology.place(id));
        let (column, row) = selected.map_or((0, 0), |chip| (chip.column, chip.row));
        self.columns = page(column, columns, shape.columns);
        self.rows = page(row, u32::from((height / (rows + above)).max(1)), shape.rows);
    }

    /// Where a chip is; nowhere when it cannot be seen.
    pub fn place(&self, chip: &PlacedChip) -> Option<Rect> {
        if !self.columns.contains(&chip.column) || !self.rows.contains(&chip.row) {
            return None;
        }
        let (width, height) = self.cell;
        let (column, row) = ((chip.column - self.columns.start) as u16, (chip.row - self.rows.start) as u16);
        // A blank at the left, where there is one to spare.
        let margin = u16::from(self.columns.len() as u16 * (width + self.gap.0) <= self.grid.width);
        let x = self.grid.x + margin + column * (width + self.gap.0);
        let y = self.grid.y + self.gap.1 + row * (height + self.gap.1);
        Some(Rect { x, y, width, height }.intersection(self.grid))
    }

    pub fn is_framed(&self) -> bool {
        self.cell.1 >= 3
    }
}

fn wanted(count: u32, each: u16) -> u32 {
    count.saturating_mul(u32::from(each))
}

/// The page of so many that holds `at`.
fn page(at: u32, seen: u32, all: u32) -> Range<u32> {
    let seen = seen.clamp(1, all.max(1));
    let first = (at / seen * seen).min(all.saturating_sub(seen));
    first..(first + seen).min(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_holds_the_selected_one_and_is_full() {
        assert_eq!(page(0, 3, 8), 0..3);
        assert_eq!(page(4, 3, 8), 3..6);
        assert_eq!(page(7, 3, 8), 5..8);
        assert_eq!(page(7, 30, 8), 0..8);
        assert_eq!(page(0, 3, 0), 0..0);
    }
}
