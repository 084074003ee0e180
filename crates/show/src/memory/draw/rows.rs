//! A line for each chip.

use super::bar::{Sizes, bar};
use super::facts::{fragmentation, short_board};
use super::short_figures;
use crate::figures::{part_tone, state_tone};
use crate::grid::Page;
use crate::memory::view::{Area, Chip, View};
use crate::style::{Style, Tone};
use crate::text::Align::{Left, Right};
use crate::text::width;
use model::{Bytes, State};

struct RowWidths {
    id: usize,
    board: usize,
    figures: usize,
    /// The peak is shown where there is room for it.
    peak: usize,
    bars: [usize; 2],
}

pub fn draw(page: &mut Page, view: &View) {
    let (style, glyphs) = (page.style, page.style.glyphs());
    let inner = style.columns - 2;
    page.rule(&[inner], glyphs.horizontal, glyphs.middle);
    let widths = widths(view, inner);
    page.line(&[header(&widths, &style)]);
    page.rule(&[inner], glyphs.double, glyphs.joint);
    for chip in &view.chips {
        page.line(&[row(chip, &widths, &style)]);
    }
}

fn widths(view: &View, inner: usize) -> RowWidths {
    let widest = |of: &dyn Fn(&Chip) -> usize, least: usize, most: usize| {
        view.chips.iter().map(of).max().unwrap_or(0).clamp(least, most)
    };
    let id = widest(&|chip| width(&chip.id), 3, if inner >= 78 { 12 } else { 4 });
    let board = widest(&|chip| width(&board(chip)), 5, if inner >= 100 { 16 } else { 9 });
    let peak = if inner >= 100 { 7 } else { 0 };
    let figures = if inner >= 78 { 11 } else { 10 };
    // Blanks: at both ends, and one between two columns.
    let taken = 5 + id + board + 2 * (2 + figures + peak + 5);
    let bars = inner.saturating_sub(taken);
    RowWidths { id, board, figures, peak, bars: [bars - bars * 2 / 5, bars * 2 / 5] }
}

fn header(widths: &RowWidths, style: &Style) -> String {
    let area = |name: &str, bar: usize| {
        [
            style.cell(name, bar, Left, Tone::Plain),
            style.cell("used/total", widths.figures, Right, Tone::Plain),
            style.cell("peak", widths.peak, Right, Tone::Plain) + &style.cell("frag", 5, Right, Tone::Plain),
        ]
        .join(" ")
    };
    let [dram, l1] = widths.bars;
    let (id, board) =
        (style.cell("Dev", widths.id, Right, Tone::Plain), style.cell("Board", widths.board, Left, Tone::Plain));
    fitted(format!(" {id} {board} {} {}", area("DRAM", dram), area("L1", l1)), style)
}

fn row(chip: &Chip, widths: &RowWidths, style: &Style) -> String {
    let area = |area: &Area, columns: usize| {
        let first = area.buffers();
        let peak = first.and_then(|kind| Some((kind.peak_bytes?, kind.peak_is_at_least)));
        let peak = peak.map_or_else(String::new, |(peak, least)| {
            format!("{}{}", if least { style.glyphs().at_least } else { "" }, Bytes::short(peak))
        });
        let (frag, frag_tone) = fragmentation(area, style.glyphs().absent);
        let sizes = Sizes::of(area);
        let used = sizes.as_ref().map_or(Tone::Plain, |sizes| part_tone(sizes.part(), Tone::Plain));
        [
            bar(sizes.as_ref(), columns, style),
            style.cell(&short_figures(area, chip.untracked_processes, style), widths.figures, Right, used),
            style.cell(&peak, widths.peak, Right, Tone::Plain) + &style.cell(&frag, 5, Right, frag_tone),
        ]
        .join(" ")
    };
    let [dram, l1] = widths.bars;
    let id = style.cell(&chip.id, widths.id, Right, Tone::Strong);
    let tone = chip.state.filter(|state| *state != State::Ok).map_or(Tone::Plain, state_tone);
    let board = style.cell(&board(chip), widths.board, Left, tone);
    format!(" {id} {board} {} {} ", area(&chip.dram, dram), area(&chip.l1, l1))
}

/// The board; what is the matter with the chip, where something is.
fn board(chip: &Chip) -> String {
    let board = short_board(chip);
    match chip.state {
        Some(State::Ok | State::Remote) | None => board.or_else(|| chip.about.clone()).unwrap_or_default(),
        Some(state) => state.name().to_owned(),
    }
}

fn fitted(text: String, style: &Style) -> String {
    style.cell(&text, style.columns - 2, Left, Tone::Plain)
}
