//! The selected chip: its bars, and what is known of each kind of memory.

use super::chips::state_tone;
use super::{GOOD_LIST, rule, style_of};
use crate::paint::{cell, columns, put};
use crate::state::TopState;
use crate::theme::{Theme, Tone};
use model::Bytes;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use show::figures::{part_tone, used_of_total};
use show::grid::{Cell, Column, fitted};
use show::memory::draw::bar::{Fill, Sizes, pieces};
use show::memory::draw::facts::{self, Fact, fill_of_banks, fragmentation_tone, percent};
use show::memory::view::{Chip, Kind};
use show::style::Style;
use show::text::Align;
use show::text::Align::Right;

pub enum MemoryLine {
    Title {
        left: Vec<(String, Tone)>,
        right: String,
    },
    Bar {
        name: &'static str,
        sizes: Option<Sizes>,
        figures: String,
    },
    /// Words that follow each other: of the bar above, or a remark about the chip.
    Words {
        words: Vec<Fact>,
        remark: bool,
    },
    Cells(Vec<(String, u16, Align, Tone)>),
}

/// Facts are under the bar, behind the area's name.
const INDENT: u16 = 6;
/// Below this a table of the kinds has not enough columns to be one.
const TABLE: u16 = 100;

/// The fullest form that leaves room for a list.
pub fn lines(state: &TopState, chip: &Chip, room: Rect) -> Vec<MemoryLine> {
    let theme = &state.theme;
    if room.width >= TABLE && has_particulars(chip) {
        let mut full = bars(chip, theme, room.width, false);
        full.extend(table(chip, theme, room.width));
        full.extend(remarks(chip, room.width));
        if full.len() + usize::from(GOOD_LIST) <= usize::from(room.height) {
            return full;
        }
    }
    let mut with_facts = bars(chip, theme, room.width, true);
    with_facts.extend(remarks(chip, room.width));
    if let Some(shortened) = shortened(with_facts, usize::from(room.height.saturating_sub(GOOD_LIST - 2))) {
        return shortened;
    }
    let mut brief = bars(chip, theme, room.width, false);
    brief.extend(remarks(chip, room.width));
    // Bars say the most in the least room.
    brief.truncate(usize::from(room.height.saturating_sub(3)).clamp(1, brief.len().max(1)));
    brief
}

/// Whether more is known than what is used, so that a table would not be empty.
fn has_particulars(chip: &Chip) -> bool {
    let mut kinds = chip.dram.kinds.iter().chain(&chip.l1.kinds);
    kinds.any(|kind| kind.peak_bytes.is_some() || kind.buffers.is_some() || kind.banks.is_some())
}

/// At most so many lines: words under a bar go first, beginning with the last ones of the bar that has most. Nothing where even
/// its first words would have to go.
fn shortened(mut lines: Vec<MemoryLine>, most: usize) -> Option<Vec<MemoryLine>> {
    while lines.len() > most {
        let is_fact = |line: &&MemoryLine| matches!(line, MemoryLine::Words { remark: false, .. });
        let facts = |at: usize| lines[at + 1..].iter().take_while(is_fact).count();
        let bars = (0..lines.len()).filter(|at| matches!(lines[*at], MemoryLine::Bar { .. }));
        let (words, at) = bars.map(|at| (facts(at), at)).filter(|(words, _)| *words > 1).max()?;
        lines.remove(at + words);
    }
    Some(lines)
}

fn bars(chip: &Chip, theme: &Theme, width: u16, with_facts: bool) -> Vec<MemoryLine> {
    let style = style_of(theme, width);
    let mut lines = vec![title(chip)];
    for (name, area) in [("DRAM", &chip.dram), ("L1", &chip.l1)] {
        let sizes = Sizes::of(area);
        let figures = used_of_total(area.used_bytes, area.total_bytes, chip.untracked_processes, &style);
        lines.push(MemoryLine::Bar { name, sizes, figures });
        if with_facts {
            lines.extend(flow(facts::of(area, &style), width, false));
        }
    }
    lines
}

fn title(chip: &Chip) -> MemoryLine {
    let mut left = vec![(chip.id.clone(), Tone::Title)];
    left.extend(chip.board.clone().map(|board| (board, Tone::Strong)));
    let tone = state_tone(chip.state).unwrap_or(Tone::Good);
    left.extend(chip.state.map(|state| (state.name().to_owned(), tone)));
    MemoryLine::Title { left, right: facts::counts(chip) }
}

/// What no figure says.
fn remarks(chip: &Chip, width: u16) -> Vec<MemoryLine> {
    flow(facts::remarks(chip), width, true)
}

fn flow(facts: Vec<Fact>, width: u16, remark: bool) -> Vec<MemoryLine> {
    let lines = facts::wrapped(facts, usize::from(width.saturating_sub(INDENT + 1)));
    lines.into_iter().map(|words| MemoryLine::Words { words, remark }).collect()
}

/// A line for each kind of which something is known.
fn table(chip: &Chip, theme: &Theme, width: u16) -> Vec<MemoryLine> {
    // Fewer banks are drawn where the line would not hold them all.
    let style = style_of(theme, if width < 150 { TABLE } else { width });
    let mut columns = vec![
        Column::left("", 1),
        Column::left("Kind", 11),
        Column::right("used", 9),
        Column::right("asked for", 9).rank(6),
        Column::right("peak", 9).rank(1),
        Column::right("buffers", 7).rank(5),
        Column::right("free block of free", 18).rank(2),
        Column::right("frag", 5),
        Column::left("each bank", 20).rank(3).stretching(),
    ];
    let mut rows = Vec::new();
    for (name, area) in [("DRAM", &chip.dram), ("L1", &chip.l1)] {
        for (n, kind) in area.kinds.iter().enumerate() {
            let is_known = kind.used_bytes.is_some() || kind.banks.is_some();
            rows.extend(is_known.then(|| kind_cells(name, n, kind, chip.untracked_processes > 0, &style)));
        }
        let fixed = [
            (Fill::KernelRing, "kernel ring", area.kernel_ring_bytes),
            (Fill::Reserved, "reserved", area.reserved_bytes),
        ];
        rows.extend(fixed.into_iter().filter_map(|(fill, name, bytes)| Some(fixed_cells(fill, name, bytes?, &style))));
    }
    let heads = columns.iter().map(|column| Cell::Text(column.head.to_owned(), Tone::Faint)).collect();
    rows.insert(0, heads);
    let widths = fitted(&mut columns, &mut rows, usize::from(width.saturating_sub(INDENT + 1)));
    let line = |row: Vec<Cell>| {
        let cells = row.into_iter().zip(&columns).zip(&widths).map(|((cell, column), width)| {
            let (text, tone) = match cell {
                Cell::Text(text, tone) => (text, tone),
                Cell::Bar(..) => (String::new(), Tone::Plain),
            };
            (text, *width as u16, column.align, tone)
        });
        MemoryLine::Cells(cells.collect())
    };
    rows.into_iter().map(line).collect()
}

fn kind_cells(area: &str, n: usize, kind: &Kind, is_at_least: bool, style: &Style) -> Vec<Cell> {
    let absent = || Cell::Text(style.glyphs().absent.into(), Tone::Faint);
    let or_absent = |text: Option<String>| text.map_or_else(absent, Cell::plain);
    let least = |is: bool| if is { style.glyphs().at_least } else { "" };
    let fill = Fill::of_kind(&kind.kind);
    let name = if n == 0 { format!("{area} buffers") } else { facts::name(kind, n) };
    let banks = kind.banks.as_ref();
    let peak = kind.peak_bytes.map(|bytes| format!("{}{bytes}", least(kind.peak_is_at_least)));
    let block = banks.and_then(|banks| Some((banks.largest_free_bytes?, banks.free_bytes)));
    let block = block.map(|(largest, free)| used_of_total(Some(largest), free, 0, style));
    let fragmentation = banks.and_then(|banks| banks.fragmentation);
    let filled = banks.and_then(|banks| fill_of_banks(banks, style));
    vec![
        Cell::Text(fill.glyph(style).to_string(), fill.tone(Tone::Buffers)),
        Cell::plain(if name == "trace" { "TRACE".into() } else { name }),
        or_absent(kind.used_bytes.map(|bytes| format!("{}{bytes}", least(is_at_least)))),
        or_absent(kind.logical_bytes.map(|bytes| bytes.to_string())),
        or_absent(peak),
        or_absent(kind.buffers.map(|n| n.to_string())),
        or_absent(block),
        fragmentation.map_or_else(absent, |part| Cell::Text(percent(part), fragmentation_tone(part))),
        filled.map_or_else(absent, |fact| Cell::Text(fact.text, fact.tone)),
    ]
}

fn fixed_cells(fill: Fill, name: &str, bytes: Bytes, style: &Style) -> Vec<Cell> {
    let empty = || Cell::plain("");
    let about = if fill == Fill::KernelRing { "fixed size; use unknown" } else { "not allocatable" };
    vec![
        Cell::Text(fill.glyph(style).to_string(), fill.tone(Tone::Faint)),
        Cell::Text(name.into(), Tone::Faint),
        Cell::Text(bytes.to_string(), Tone::Faint),
        empty(),
        empty(),
        empty(),
        empty(),
        empty(),
        Cell::Text(about.into(), Tone::Faint),
    ]
}

pub fn draw(state: &TopState, lines: &[MemoryLine], area: Rect, buf: &mut Buffer) {
    for (line, y) in lines.iter().zip(area.top()..area.bottom()) {
        draw_line(line, Rect { y, height: 1, ..area }, &state.theme, buf);
    }
}

fn draw_line(line: &MemoryLine, area: Rect, theme: &Theme, buf: &mut Buffer) {
    let (y, end) = (area.y, area.right());
    match line {
        MemoryLine::Title { left, right } => {
            rule(buf, area, theme);
            let mut x = area.x.saturating_add(2);
            for (text, tone) in left {
                x = put(buf, x, y, end, &format!(" {text} "), theme.style(*tone));
            }
            let at = end.saturating_sub(columns(right).saturating_add(4));
            if at > x && !right.is_empty() {
                put(buf, at, y, end, &format!(" {right} "), theme.style(Tone::Plain));
            }
        }
        MemoryLine::Bar { name, sizes, figures } => {
            put(buf, area.x.saturating_add(1), y, end, name, theme.style(Tone::Strong));
            let figures_width = columns(figures).saturating_add(1).max(17);
            let width = area.width.saturating_sub(INDENT + figures_width + 7);
            bar(buf, (area.x.saturating_add(INDENT), y), width, sizes.as_ref(), theme);
            let x = area.x.saturating_add(INDENT).saturating_add(width);
            let tone = sizes.as_ref().map_or(Tone::Faint, |sizes| part_tone(sizes.part(), Tone::Strong));
            cell(buf, (x, y), figures_width.min(end.saturating_sub(x)), figures, Right, theme.style(tone), theme);
            let x = x.saturating_add(figures_width);
            let part = sizes.as_ref().map(|sizes| percent(sizes.part())).unwrap_or_default();
            cell(buf, (x, y), 6.min(end.saturating_sub(x)), &part, Right, theme.style(tone), theme);
        }
        MemoryLine::Words { words, .. } => {
            let mut x = area.x.saturating_add(INDENT);
            for word in words {
                if let Some((glyph, tone)) = word.glyph {
                    x = put(buf, x, y, end, &glyph.to_string(), theme.style(tone)).saturating_add(1);
                }
                x = put(buf, x, y, end, &word.text, theme.style(word.tone)).saturating_add(2);
            }
        }
        MemoryLine::Cells(cells) => {
            let mut x = area.x.saturating_add(INDENT);
            for (text, width, align, tone) in cells {
                let width = (*width).min(end.saturating_sub(x));
                cell(buf, (x, y), width, text, *align, theme.style(*tone), theme);
                x = x.saturating_add(width).saturating_add(1);
            }
        }
    }
}

/// A bar of what is used, by kind, what is free in one piece and in smaller ones, what is reserved, and where the peak was.
pub fn bar(buf: &mut Buffer, (mut x, y): (u16, u16), width: u16, sizes: Option<&Sizes>, theme: &Theme) {
    let end = x.saturating_add(width);
    for (text, tone) in pieces(sizes, usize::from(width), &style_of(theme, width)) {
        x = put(buf, x, y, end, &text, theme.style(tone));
    }
}
