//! The memory of all chips as text: the chips, the processes and the buffers below each other in one frame.
//!
//! Up to eight chips get a block each, with all that is known. More of them, or a low terminal, get a line each; where even
//! that is too much, several share a line. What room is left goes to processes and buffers.

pub mod chips;
pub mod facts;
pub mod lists;
pub mod sizes;

use super::view::{Chip, View};
use crate::grid::Page;
use crate::style::{Style, Tone};
use crate::text::{Align, clean, cut, width};
use chips::{ChipForm, ChipGrid};
use facts::{areas, bar_line, wrapped};

/// More chips than this get a line each.
const BLOCKS: usize = 8;
const NARROWEST: usize = 60;
const WIDEST: usize = 160;
/// Processes and buffers in a list, where nothing limits them.
const LISTED: usize = 10;
/// In a low terminal each list that has so many keeps so many.
const AT_LEAST: usize = 3;
/// Lines of a list besides its rows.
const LIST_FRAME: usize = 3;
const NOTES: usize = 6;

/// The whole picture of `ttmon mem`: chips, processes, buffers, and notes.
pub fn text(view: &View, style: &Style, time: &str) -> String {
    let style = Style { columns: style.columns.clamp(NARROWEST, WIDEST), ..*style };
    let (devices, room) = chosen(view, style);
    let mut page = Page::new(style);
    title(&mut page, view, time);
    page.text += &devices;
    let lists = lists::Lists::of(view);
    let shares = lists.shares(room);
    lists.draw(&mut page, view, &shares);
    let glyphs = style.glyphs();
    page.rule(&[style.columns - 2], glyphs.horizontal, glyphs.bottom);
    notes(&mut page, view);
    if let Some(hidden) = lists.hidden(&shares).filter(|_| room.is_some_and(|room| room > 0)) {
        page.text += &cut(&hidden, style.columns, style.glyphs().cut);
        page.text.push('\n');
    }
    page.text
}

/// The fullest form of the chips that leaves room for the lists, and the lines that it leaves, where they are counted.
fn chosen(view: &View, style: Style) -> (String, Option<usize>) {
    let drawn = |form: Option<ChipForm>| {
        let mut page = Page::new(style);
        match form {
            Some(form) => grid(&mut page, view, form),
            None => blocks(&mut page, view),
        }
        page.text
    };
    let forms = [None, Some(ChipForm::Row), Some(ChipForm::Tile)];
    let forms = &forms[usize::from(view.chips.len() > BLOCKS)..];
    let Some(height) = style.rows else { return (drawn(forms[0]), None) };
    // Two lines of title, one at the bottom.
    let room = height.saturating_sub(3 + view.faults.len().min(NOTES));
    let wanted = lists::Lists::of(view).least();
    let forms: Vec<String> = forms.iter().copied().map(drawn).collect();
    let fits = |spare: usize| forms.iter().position(|form| form.lines().count() + spare <= room);
    let at = fits(wanted).or_else(|| fits(0)).unwrap_or(forms.len() - 1);
    let text = forms.into_iter().nth(at).unwrap_or_default();
    let left = room.saturating_sub(text.lines().count());
    (text, Some(left))
}

/// A block for each chip, with all that is known of it.
fn blocks(page: &mut Page, view: &View) {
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
        wrapped(facts::remarks(chip, &style), inner).into_iter().for_each(|line| page.texts(line));
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

/// The chips in lines.
fn grid(page: &mut Page, view: &View, form: ChipForm) {
    let (style, glyphs, inner) = (page.style, page.style.glyphs(), page.style.columns - 2);
    let grid = ChipGrid::new(form, view, inner);
    page.rule(&[inner], glyphs.horizontal, glyphs.middle);
    let head = style.cell(&grid.head(), grid.width, Align::Left, Tone::Plain);
    page.texts(vec![(head.repeat(grid.across), Tone::Plain)]);
    if form == ChipForm::Row {
        page.rule(&[inner], glyphs.double, glyphs.joint);
    }
    for chips in view.chips.chunks(grid.across.max(1)) {
        page.texts(chips.iter().flat_map(|chip| grid.line(chip, false, &style)).collect());
    }
}

fn title(page: &mut Page, view: &View, time: &str) {
    let (style, inner) = (page.style, page.style.columns - 2);
    page.rule(&[inner], style.glyphs().horizontal, style.glyphs().top);
    let left = match &view.report {
        Some(report) => format!(" ttmon {}   report {report}", env!("CARGO_PKG_VERSION")),
        None => format!(" ttmon {}   memory", env!("CARGO_PKG_VERSION")),
    };
    let host = view.host.name.as_deref().map(clean).unwrap_or_default();
    let (right, tone) = match view.host.simulated {
        true => (format!("SIMULATED   {time} "), Tone::Warning),
        false => (format!("{host}   {time} "), Tone::Plain),
    };
    let taken = width(&right).min(inner / 2);
    let left = style.cell(&left, inner - taken, Align::Left, Tone::Strong);
    page.line(&[left + &style.cell(&right, taken, Align::Right, tone)]);
}

/// What went wrong, below the frame.
fn notes(page: &mut Page, view: &View) {
    let style = page.style;
    for fault in view.faults.iter().take(NOTES) {
        let note = format!("{}: {}", clean(&fault.path), clean(&fault.reason));
        // Drawn in place, a line must not run over.
        let columns = if style.rows.is_some() { style.columns - 6 } else { usize::MAX };
        page.text += &style.paint("note: ", Tone::Warning);
        page.text += &cut(&note, columns, style.glyphs().cut);
        page.text.push('\n');
    }
}

/// `5 s`, `12 min`, `3.5 h`, `8 d`
pub fn age(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.0} d", s / 86_400.0),
    }
}

/// `0-3,7,2R`: numbers that follow each other are joined.
pub fn joined(ids: &[String]) -> String {
    let mut text = String::new();
    let mut at = 0;
    while at < ids.len() {
        let first: Option<u32> = ids[at].parse().ok();
        let follows = |n: usize| {
            let next: Option<u32> = ids.get(at + n).and_then(|id| id.parse().ok());
            next.is_some() && next == first.and_then(|first| first.checked_add(n as u32))
        };
        let run = if first.is_some() { (1..).take_while(|n| follows(*n)).count() } else { 0 };
        let separator = if text.is_empty() { "" } else { "," };
        text += &match run {
            0 => format!("{separator}{}", ids[at]),
            _ => format!("{separator}{}-{}", ids[at], ids[at + run]),
        };
        at += run + 1;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chips_that_follow_each_other_are_joined() {
        let text = |ids: &[&str]| joined(&ids.iter().map(|id| id.to_string()).collect::<Vec<_>>());
        assert_eq!(text(&[]), "");
        assert_eq!(text(&["0"]), "0");
        assert_eq!(text(&["0", "1", "2", "7", "2R"]), "0-2,7,2R");
        assert_eq!(text(&["4294967295", "4294967295"]), "4294967295,4294967295");
    }

    #[test]
    fn an_age_is_rounded() {
        assert_eq!([0.0, 59.0, 600.0, 9000.0, 900_000.0].map(age), ["0.0 s", "59 s", "10 min", "2.5 h", "10 d"]);
    }
}
