//! Several chips in a line, where there are more of them than lines.

use super::bar::{Sizes, bar};
use crate::figures::{part_tone, state_tone};
use crate::grid::Page;
use crate::memory::view::{Area, Chip, View};
use crate::style::{Style, Tone};
use crate::text::Align::{Left, Right};
use model::State;

/// A tile is never narrower than this.
const TILE: usize = 36;
/// Number, percentages and the blanks between.
const FIGURES: usize = 4 + 1 + 1 + 4 + 1 + 1 + 4 + 1;

pub fn draw(page: &mut Page, view: &View) {
    let (style, glyphs) = (page.style, page.style.glyphs());
    let inner = style.columns - 2;
    page.rule(&[inner], glyphs.horizontal, glyphs.middle);
    let across = (inner / TILE).max(1);
    let width = inner / across;
    let bars = width - FIGURES;
    let bars = [bars - bars * 2 / 5, bars * 2 / 5];
    let head = format!(" Dev {:<dram$}  L1", "DRAM", dram = bars[0] + 4);
    let heads: String = (0..across).map(|_| style.cell(&head, width, Left, Tone::Plain)).collect();
    page.line(&[heads + &" ".repeat(inner - across * width)]);
    // Neighbours by number stand below each other.
    let down = view.chips.len().div_ceil(across);
    for line in 0..down {
        let tile = |n: usize| {
            view.chips.get(n * down + line).map_or_else(|| " ".repeat(width), |chip| tile(chip, bars, &style))
        };
        let tiles: String = (0..across).map(tile).collect();
        page.line(&[tiles + &" ".repeat(inner - across * width)]);
    }
}

fn tile(chip: &Chip, [dram, l1]: [usize; 2], style: &Style) -> String {
    let area = |area: &Area, columns: usize| {
        let sizes = Sizes::of(area);
        let (text, tone) = match &sizes {
            Some(sizes) => (super::facts::percent(sizes.part()).replace(' ', ""), part_tone(sizes.part(), Tone::Plain)),
            None => (style.glyphs().absent.to_owned(), Tone::Faint),
        };
        format!(" {}{}", bar(sizes.as_ref(), columns, style), style.cell(&text, 5, Right, tone))
    };
    let tone = chip.state.filter(|state| *state != State::Ok).map_or(Tone::Strong, state_tone);
    // Too narrow for words: something is the matter with it.
    let mark = if matches!(chip.state, None | Some(State::Ok | State::Remote)) { "" } else { "!" };
    let id = style.cell(&format!("{}{mark}", chip.id), 4, Right, tone);
    format!("{id}{}{} ", area(&chip.dram, dram), area(&chip.l1, l1))
}
