//! A block for each chip, with all that is known of it.

use super::bar::{Sizes, bar};
use super::facts::{self, flow};
use crate::figures::{part_tone, state_tone, used_of_total};
use crate::grid::Page;
use crate::memory::view::{Area, Chip, View};
use crate::style::{Style, Tone};
use crate::text::{Align, clean, width};
use model::Bytes;

/// Facts stand under the bar, behind the area's name.
const INDENT: usize = 6;

pub fn draw(page: &mut Page, view: &View) {
    for chip in &view.chips {
        let (style, glyphs) = (page.style, page.style.glyphs());
        let inner = style.columns - 2;
        page.rule(&[inner], glyphs.horizontal, glyphs.middle);
        page.line(&[head(chip, inner, &style)]);
        for (name, area) in [("DRAM", &chip.dram), ("L1", &chip.l1)] {
            if area.kinds.is_empty() && area.total_bytes.is_none() {
                continue;
            }
            page.line(&[line(name, area, chip.untracked_processes, inner, &style)]);
            indented(page, facts::of(area, &style));
        }
        indented(page, facts::remarks(chip));
    }
}

fn indented(page: &mut Page, facts: Vec<facts::Fact>) {
    let style = page.style;
    for line in flow(facts, style.columns - 2 - INDENT - 1, &style) {
        page.line(&[format!("{}{line} ", " ".repeat(INDENT))]);
    }
}

/// ` 0  p150a  ok                      1 process, 812 buffers `
fn head(chip: &Chip, columns: usize, style: &Style) -> String {
    let board = chip.board.as_deref().map(clean).unwrap_or_default();
    let state = chip.state.map_or("", |state| state.name());
    let about = chip.about.as_deref().map(clean).unwrap_or_default();
    let right = facts::counts(chip) + " ";
    let id = format!(" {}", clean(&chip.id));
    let board = if board.is_empty() { String::new() } else { format!("  {board}") };
    let words = [
        (id, Tone::Strong),
        (board, Tone::Strong),
        (format!("  {state}"), chip.state.map_or(Tone::Plain, state_tone)),
        (about.into_owned(), Tone::Plain),
    ];
    let mut room = columns - width(&right).min(columns / 2);
    let mut text = String::new();
    for (word, tone) in words {
        let taken = width(&word).min(room);
        text += &style.cell(&word, taken, Align::Left, tone);
        room -= taken;
    }
    text + &" ".repeat(room) + &style.cell(&right, width(&right).min(columns / 2), Align::Right, Tone::Plain)
}

/// ` DRAM ████▓░░░░┃░░···╱  12.4/32.0 GiB  39 % `
fn line(name: &str, area: &Area, untracked: u32, columns: usize, style: &Style) -> String {
    let sizes = Sizes::of(area);
    let figures = match &sizes {
        Some(sizes) if sizes.is_of_bank => {
            used_of_total(Some(Bytes(sizes.all_used())), Some(Bytes(sizes.total)), untracked, style) + " a bank"
        }
        _ => used_of_total(
            area.used_bytes,
            area.total_bytes.or(sizes.as_ref().map(|sizes| Bytes(sizes.total))),
            untracked,
            style,
        ),
    };
    let (percent, tone) = match &sizes {
        Some(sizes) => (facts::percent(sizes.part()), part_tone(sizes.part(), Tone::Plain)),
        None => (String::new(), Tone::Plain),
    };
    let figures_width = (width(&figures) + 1).max(17);
    let bar = bar(sizes.as_ref(), columns - INDENT - figures_width - 7, style);
    let figures = style.cell(&figures, figures_width, Align::Right, tone);
    format!(" {name:<5}{bar}{figures}{} ", style.cell(&percent, 6, Align::Right, tone))
}
