//! The selected chip: its bars, and what is known of each kind of memory.

use super::{GOOD_LIST, GOOD_MAP, style_of};
use crate::overlay::MemoryTab;
use crate::paint::{Buffer, Rect, Theme, Tone, columns, put, put_line, rule};
use crate::state::TopState;
use model::Bytes;
use show::bar::Fill;
use show::figures::used_of_total;
use show::grid::{self, Cell, Column};
use show::memory::draw::facts::{self, INDENT, areas, bar_line, fill_of_banks, fragmentation_tone, percent, wrapped};
use show::memory::draw::lists::words;
use show::memory::view::{Chip, Kind};
use show::style::{Line, Style};

pub enum MemoryLine {
    Title {
        left: Line,
        right: String,
    },
    Bar(Line),
    /// Words about the bar above.
    Facts(Line),
    /// A remark about the chip, or a line of a table.
    Other(Line),
}

/// Below this a table of the kinds has not enough columns to be one.
const TABLE: u16 = 100;

/// The fullest form that leaves room for a list.
pub fn lines(state: &TopState, chip: &Chip, room: Rect) -> Vec<MemoryLine> {
    let theme = &state.theme;
    let good_list = if state.memory.tab == MemoryTab::Map { GOOD_MAP } else { GOOD_LIST };
    if room.width >= TABLE && has_particulars(chip) {
        let mut full = bars(chip, theme, room.width, false);
        full.extend(table(chip, theme, room.width));
        full.extend(remarks(chip, theme, room.width));
        if full.len() + usize::from(good_list) <= usize::from(room.height) {
            return full;
        }
    }
    let mut with_facts = bars(chip, theme, room.width, true);
    with_facts.extend(remarks(chip, theme, room.width));
    if let Some(shortened) = shortened(with_facts, usize::from(room.height.saturating_sub(good_list - 2))) {
        return shortened;
    }
    let mut brief = bars(chip, theme, room.width, false);
    brief.extend(remarks(chip, theme, room.width));
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
        let is_fact = |line: &&MemoryLine| matches!(line, MemoryLine::Facts(_));
        let facts = |at: usize| lines[at + 1..].iter().take_while(is_fact).count();
        let bars = (0..lines.len()).filter(|at| matches!(lines[*at], MemoryLine::Bar(_)));
        let (words, at) = bars.map(|at| (facts(at), at)).filter(|(words, _)| *words > 1).max()?;
        lines.remove(at + words);
    }
    Some(lines)
}

fn bars(chip: &Chip, theme: &Theme, width: u16, with_facts: bool) -> Vec<MemoryLine> {
    let style = style_of(theme, width);
    let mut lines = vec![title(chip)];
    for (name, area) in areas(chip) {
        lines.push(MemoryLine::Bar(bar_line(name, area, chip.untracked_processes, width.into(), &style)));
        if with_facts {
            lines.extend(wrapped(facts::of(area, &style), width.into()).into_iter().map(MemoryLine::Facts));
        }
    }
    lines
}

fn title(chip: &Chip) -> MemoryLine {
    let mut left = vec![(chip.id.clone(), Tone::Title)];
    left.extend(chip.board.clone().map(|board| (board, Tone::Strong)));
    left.extend(chip.state.map(|state| (state.name().to_owned(), state.judge().into())));
    MemoryLine::Title { left, right: facts::counts(chip) }
}

/// What no figure says.
fn remarks(chip: &Chip, theme: &Theme, width: u16) -> impl Iterator<Item = MemoryLine> {
    wrapped(facts::remarks(chip, &style_of(theme, width)), width.into()).into_iter().map(MemoryLine::Other)
}

/// A line for each kind of which something is known.
fn table(chip: &Chip, theme: &Theme, width: u16) -> Vec<MemoryLine> {
    // Fewer banks are drawn where the line would not hold them all.
    let style = style_of(theme, if width < 150 { TABLE } else { width });
    let columns = vec![
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
    for (name, area) in areas(chip) {
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
    let lines = grid::lines(columns, rows, usize::from(width).saturating_sub(INDENT + 1), Tone::Faint, &style);
    let indented = |line: Line| [(" ".repeat(INDENT), Tone::Plain)].into_iter().chain(line).collect();
    lines.into_iter().map(indented).map(MemoryLine::Other).collect()
}

fn kind_cells(area: &str, n: usize, kind: &Kind, is_at_least: bool, style: &Style) -> Vec<Cell> {
    let or_absent = |text: Option<String>| words(text.as_deref(), style);
    let least = |is: bool| if is { style.glyphs().at_least } else { "" };
    let fill = Fill::of_kind(&kind.kind);
    let name = if n == 0 { format!("{area} buffers") } else { facts::name(kind, n) };
    let banks = kind.banks.as_ref();
    let peak = kind.peak_bytes.map(|bytes| format!("{}{bytes}", least(kind.peak_is_at_least)));
    let block = banks.and_then(|banks| Some((banks.largest_free_bytes?, banks.free_bytes)));
    let block = block.map(|(largest, free)| used_of_total(Some(largest), free, 0, style.glyphs()));
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
        fragmentation.map_or_else(|| or_absent(None), |part| Cell::Text(percent(part), fragmentation_tone(part))),
        filled.map_or_else(|| or_absent(None), |(text, tone)| Cell::Text(text, tone)),
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
    let (theme, end) = (&state.theme, area.right());
    for (line, y) in lines.iter().zip(area.top()..area.bottom()) {
        match line {
            MemoryLine::Title { left, right } => draw_title(left, right, Rect { y, height: 1, ..area }, theme, buf),
            MemoryLine::Bar(line) | MemoryLine::Facts(line) | MemoryLine::Other(line) => {
                put_line(buf, (area.x, y), end, line, theme);
            }
        }
    }
}

/// A line across, with the name of the chip at its left and what is on it at its right.
fn draw_title(left: &Line, right: &str, area: Rect, theme: &Theme, buf: &mut Buffer) {
    rule(buf, area, theme);
    let (mut x, end) = (area.x.saturating_add(2), area.right());
    for (text, tone) in left {
        x = put(buf, x, area.y, end, &format!(" {text} "), theme.style(*tone));
    }
    let at = end.saturating_sub(columns(right).saturating_add(4));
    if at > x && !right.is_empty() {
        put(buf, at, area.y, end, &format!(" {right} "), theme.style(Tone::Plain));
    }
}
