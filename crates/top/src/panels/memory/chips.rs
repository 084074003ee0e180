//! All chips: a line for each where there is room, else several in a line. The selected one can always be seen.

use super::detail::bar;
use crate::paint::{cell, put};
use crate::state::TopState;
use crate::theme::Tone;
use model::{Judgement, State as ChipState};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use show::figures::part_tone;
use show::memory::draw::bar::Sizes;
use show::memory::draw::facts::{fragmentation, percent, short_board};
use show::memory::draw::short_figures;
use show::memory::view::{Chip, View};
use show::text::Align::{Left, Right};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChipForm {
    Line,
    Tile,
    Cell,
}

/// Where chips are: neighbours by number below each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChipGrid {
    form: ChipForm,
    across: u16,
    /// So many rows are drawn, a head included, beginning with this one.
    pub rows: u16,
    first: u16,
    /// Rows that there are, drawn or not.
    down: u16,
}

/// Columns in front of the bars: the mark, the number and the board or state.
const LEAD: u16 = 15;
/// `12.4G/32G` with its mark, and the blanks around.
const FIGURES: u16 = 13;

impl ChipGrid {
    pub fn of(state: &TopState, view: &View, area: Rect) -> ChipGrid {
        let count = view.chips.len().min(4096) as u16;
        let most = (area.height / 3 + 1).min(area.height);
        let grid = |form: ChipForm, least: u16| {
            let across = (area.width / least).clamp(1, count.max(1));
            ChipGrid { form, across, rows: 0, first: 0, down: count.div_ceil(across) }
        };
        let forms = [
            ChipGrid { across: 1, down: count, ..grid(ChipForm::Line, 1) },
            grid(ChipForm::Tile, 38),
            grid(ChipForm::Cell, 15),
        ];
        let fits = |grid: &&ChipGrid| grid.down < most && (grid.form != ChipForm::Line || area.width >= 70);
        let mut grid = *forms.iter().find(fits).unwrap_or(&forms[2]);
        // One chip has its detail, and needs no list.
        if count <= 1 {
            return ChipGrid { rows: 0, ..grid };
        }
        let visible = (most.saturating_sub(1)).clamp(1, grid.down.max(1));
        let selected = state.device.as_ref().map(ToString::to_string);
        let at = view.chips.iter().position(|chip| Some(&chip.id) == selected.as_ref()).unwrap_or(0) as u16;
        let row = at % grid.down.max(1);
        grid.first = (row + 1).saturating_sub(visible);
        grid.rows = visible + 1;
        grid
    }

    fn width(&self, area: Rect) -> u16 {
        area.width / self.across.max(1)
    }

    /// Where a chip is, unless it cannot be seen.
    pub fn place(&self, area: Rect, at: usize) -> Option<Rect> {
        let down = usize::from(self.down.max(1));
        let row = ((at % down) as u16).checked_sub(self.first)?.checked_add(1).filter(|row| *row < self.rows)?;
        let width = self.width(area);
        Some(Rect { x: area.x + (at / down) as u16 * width, y: area.y + row, width, height: 1 })
    }

    pub fn at(&self, area: Rect, position: Position, count: usize) -> Option<usize> {
        (0..count).find(|at| self.place(area, *at).is_some_and(|place| place.contains(position)))
    }
}

pub fn draw(state: &TopState, view: &View, grid: &ChipGrid, area: Rect, buf: &mut Buffer) {
    if grid.rows == 0 || area.height == 0 {
        return;
    }
    for across in 0..grid.across {
        let width = grid.width(area);
        head(state, grid, Rect { x: area.x + across * width, width, height: 1, ..area }, buf);
    }
    let hidden = grid.down.saturating_sub(grid.rows - 1);
    if hidden > 0 {
        let text = format!("  {} chips, Tab: next ", view.chips.len());
        let x = area.right().saturating_sub(text.len() as u16);
        put(buf, x, area.y, area.right(), &text, state.theme.style(Tone::Faint));
    }
    for (at, chip) in view.chips.iter().enumerate() {
        if let Some(place) = grid.place(area, at) {
            draw_chip(state, chip, grid.form, place.intersection(area), buf);
        }
    }
}

fn bars(form: ChipForm, width: u16) -> [u16; 2] {
    let rest = match form {
        ChipForm::Line => width.saturating_sub(LEAD + 2 * (FIGURES + 5) + 2),
        ChipForm::Tile => width.saturating_sub(6 + 2 * 6 + 1),
        ChipForm::Cell => 0,
    };
    [rest - rest * 2 / 5, rest * 2 / 5]
}

fn head(state: &TopState, grid: &ChipGrid, area: Rect, buf: &mut Buffer) {
    let style = state.theme.style(Tone::Faint);
    let [dram, l1] = bars(grid.form, area.width);
    let mut write = |x: u16, columns: u16, text: &str, align| {
        let columns = columns.min(area.width.saturating_sub(x));
        cell(buf, (area.x.saturating_add(x), area.y), columns, text, align, style, &state.theme);
    };
    match grid.form {
        ChipForm::Line => {
            write(0, LEAD, " Dev Board", Left);
            let mut x = LEAD;
            for (name, bar) in [("DRAM", dram), ("L1", l1)] {
                write(x, bar, name, Left);
                write(x + bar, FIGURES, "used/total", Right);
                write(x + bar + FIGURES, 5, "frag", Right);
                x += bar + FIGURES + 5 + 1;
            }
        }
        ChipForm::Tile => {
            write(0, 6, " Dev", Left);
            write(6, dram, "DRAM", Left);
            write(6 + dram + 6, l1, "L1", Left);
        }
        ChipForm::Cell => write(0, 15, " Dev DRAM   L1", Left),
    }
}

fn draw_chip(state: &TopState, chip: &Chip, form: ChipForm, area: Rect, buf: &mut Buffer) {
    let theme = &state.theme;
    let is_selected = state.device.as_ref().is_some_and(|id| id.to_string() == chip.id);
    let mark = theme.mark(is_selected);
    let sick = state_tone(chip.state);
    // Too narrow for words: something is the matter with it.
    let id = format!("{mark}{:>3}{}", chip.id, if sick.is_some() && form != ChipForm::Line { "!" } else { " " });
    let tone = if is_selected { Tone::Selected } else { sick.unwrap_or(Tone::Strong) };
    let mut x = put(buf, area.x, area.y, area.right(), &id, theme.style(tone));
    let widths = bars(form, area.width);
    if form == ChipForm::Tile {
        x = x.saturating_add(1);
    }
    if form == ChipForm::Line {
        let board = short_board(chip);
        let word = chip.state.filter(|_| sick.is_some()).map(ChipState::name).or(board.as_deref());
        let tone = sick.unwrap_or(Tone::Plain);
        cell(buf, (x, area.y), LEAD - 6, word.unwrap_or_default(), Left, theme.style(tone), theme);
        x = area.x.saturating_add(LEAD);
    }
    for (memory, width) in [&chip.dram, &chip.l1].into_iter().zip(widths) {
        let sizes = Sizes::of(memory);
        let tone = sizes.as_ref().map_or(Tone::Faint, |sizes| part_tone(sizes.part(), Tone::Plain));
        bar(buf, (x, area.y), width, sizes.as_ref(), theme);
        x = x.saturating_add(width);
        let end = area.right();
        let mut write = |columns: u16, text: &str, tone| {
            let columns = columns.min(end.saturating_sub(x));
            cell(buf, (x, area.y), columns, text, Right, theme.style(tone), theme);
            x = x.saturating_add(columns);
        };
        if form == ChipForm::Line {
            let style = super::style_of(theme, area.width);
            write(FIGURES, &short_figures(memory, chip.untracked_processes, &style), tone);
            let (text, tone) = fragmentation(memory, theme.glyphs().absent);
            write(5, &text, tone);
            x = x.saturating_add(1);
        } else {
            let text = sizes.as_ref().map_or(theme.glyphs().absent.into(), |sizes| percent(sizes.part()));
            write(5, &text.replace(' ', ""), tone);
            x = x.saturating_add(u16::from(form == ChipForm::Tile));
        }
    }
}

/// The tone of a state that is not as it should be.
pub fn state_tone(state: Option<ChipState>) -> Option<Tone> {
    state.filter(|state| state.judge() > Judgement::Normal).map(Tone::of_state)
}
