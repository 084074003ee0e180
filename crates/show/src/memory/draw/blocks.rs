//! A block for each chip, with all that is known of it.

use super::facts::{self, areas, bar_line, wrapped};
use crate::grid::Page;
use crate::memory::view::{Chip, View};
use crate::style::{Style, Tone};
use crate::text::{Align, clean, width};

pub fn draw(page: &mut Page, view: &View) {
    let (style, glyphs, inner) = (page.style, page.style.glyphs(), page.style.columns - 2);
    for chip in &view.chips {
        page.rule(&[inner], glyphs.horizontal, glyphs.middle);
        page.line(&[head(chip, inner, &style)]);
        for (name, area) in areas(chip) {
            if !area.kinds.is_empty() || area.total_bytes.is_some() {
                page.texts(bar_line(name, area, chip.untracked_processes, inner, &style));
                wrapped(facts::of(area, &style), inner).into_iter().for_each(|line| page.texts(line));
            }
        }
        wrapped(facts::remarks(chip), inner).into_iter().for_each(|line| page.texts(line));
    }
}

/// ` 0  p150a  ok                      1 process, 812 buffers `
fn head(chip: &Chip, columns: usize, style: &Style) -> String {
    let right = facts::counts(chip) + " ";
    let board = chip.board.as_deref().map(|board| format!("  {}", clean(board)));
    let state = chip.state.map_or("", |state| state.name());
    let words = [
        (format!(" {}", clean(&chip.id)), Tone::Strong),
        (board.unwrap_or_default(), Tone::Strong),
        (format!("  {state}"), chip.state.map_or(Tone::Plain, Tone::of_state)),
        (chip.about.as_deref().map(clean).unwrap_or_default().into_owned(), Tone::Plain),
    ];
    let taken = width(&right).min(columns / 2);
    let mut room = columns - taken;
    let mut text = String::new();
    for (word, tone) in words {
        let taken = width(&word).min(room);
        text += &style.cell(&word, taken, Align::Left, tone);
        room -= taken;
    }
    text + &" ".repeat(room) + &style.cell(&right, taken, Align::Right, Tone::Plain)
}
