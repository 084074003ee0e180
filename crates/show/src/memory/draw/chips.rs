//! Chips in lines: each in a line of its own, or several in one where there are many.

use super::facts::{fragmentation_tone, percent};
use super::sizes;
use crate::bar::pieces;
use crate::figures::part_tone;
use crate::memory::view::{Area, Chip, View};
use crate::style::{Glyphs, Line, Style, Tone};
use crate::text::Align::{Left, Right};
use crate::text::{fit, width};
use model::{Bytes, Judgement, State};

/// Forms of a chip, from the largest to the smallest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChipForm {
    /// With the board and all figures.
    Row,
    /// In a frame, with bars below each other.
    Tile,
    /// Without bars.
    Cell,
}

/// Chips of one form, in places of one width, line by line as in the overview of `top`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChipGrid {
    /// The form of each chip.
    pub form: ChipForm,
    /// Number of chips side by side.
    pub across: usize,
    /// Number of lines of chips.
    pub down: usize,
    /// Columns of a place, and of what is in it.
    pub width: usize,
    id: usize,
    board: usize,
    figures: [usize; 2],
    peak: usize,
    bars: [usize; 2],
}

impl ChipGrid {
    /// The places of a form in so many columns.
    pub fn new(form: ChipForm, view: &View, columns: usize) -> ChipGrid {
        let widest = |of: &dyn Fn(&Chip) -> usize, least: usize, most: usize| {
            view.chips.iter().map(of).max().unwrap_or(0).clamp(least, most)
        };
        let least = match form {
            ChipForm::Row => columns,
            ChipForm::Tile => 38,
            ChipForm::Cell => 15,
        };
        let across = (columns / least.max(1)).clamp(1, view.chips.len().max(1));
        let width_of_place = columns / across;
        let id = if form == ChipForm::Row && columns >= 78 { widest(&|chip| width(&chip.id), 3, 12) } else { 3 };
        let board = widest(&|chip| width(&board(chip)), 5, if columns >= 100 { 16 } else { 9 });
        let is_at_least = view.chips.iter().any(|chip| chip.untracked_processes > 0);
        let totals: [fn(&Chip) -> Option<Bytes>; 2] = [|chip| chip.dram.total_bytes, |chip| chip.l1.total_bytes];
        let figures = totals.map(|total| short_figures_width(view.chips.iter().filter_map(total), is_at_least));
        let peak = if columns >= 100 { 7 } else { 0 };
        // Of a row, all but the blanks at both ends and between two columns.
        let taken = 5 + id + figures[0] + figures[1] + 2 * (2 + peak + 5);
        // Names of boards are cut before the heads of the bars are.
        let board = board.min(columns.saturating_sub(taken + "DRAML1".len())).max(5);
        let bars = match form {
            ChipForm::Row => columns.saturating_sub(taken + board),
            ChipForm::Tile => width_of_place.saturating_sub(6 + 2 * 6 + 1),
            ChipForm::Cell => 0,
        };
        let down = view.chips.len().div_ceil(across);
        let bars = [bars - bars * 2 / 5, bars * 2 / 5];
        ChipGrid { form, across, down, width: width_of_place, id, board, figures, peak, bars }
    }

    /// The heads of one place.
    pub fn head(&self) -> String {
        let ChipGrid { id, board, figures, peak, bars: [dram, l1], .. } = *self;
        let area = |name: &str, bar: usize, figures: usize| {
            let name = fit(name, bar, Left, ' ');
            format!("{name} {:>figures$} {}{:>5}", "used/total", fit("peak", peak, Right, ' '), "frag")
        };
        match self.form {
            ChipForm::Row => format!(
                " {:>id$} {:<board$} {} {} ",
                "Dev",
                "Board",
                area("DRAM", dram, figures[0]),
                area("L1", l1, figures[1])
            ),
            ChipForm::Tile => format!(" Dev  {:<bar$}L1", "DRAM", bar = dram + 6),
            ChipForm::Cell => " Dev DRAM   L1".into(),
        }
    }

    /// A chip, in all columns of its place.
    pub fn line(&self, chip: &Chip, is_selected: bool, style: &Style) -> Line {
        let glyphs = style.glyphs();
        let sick = sick(chip);
        let tone = sick.map(Tone::of_state);
        let mark = if is_selected { glyphs.selected } else { " " };
        // Too narrow for words: something is the matter with it.
        let state = if sick.is_some() && self.form != ChipForm::Row { "!" } else { " " };
        let id = format!("{mark}{}{state}", fit(&chip.id, self.id, Right, glyphs.cut));
        let mut line = vec![(id, if is_selected { Tone::Selected } else { tone.unwrap_or(Tone::Strong) })];
        match self.form {
            ChipForm::Row => {
                line.push((fit(&board(chip), self.board, Left, glyphs.cut) + " ", tone.unwrap_or(Tone::Plain)));
            }
            ChipForm::Tile => line.push((" ".into(), Tone::Plain)),
            ChipForm::Cell => {}
        }
        for (n, area) in [&chip.dram, &chip.l1].into_iter().enumerate() {
            let bar = self.bars[n];
            let sizes = sizes::of(area);
            line.extend(pieces(sizes.as_ref(), bar, Tone::Buffers, style));
            let tone = sizes.as_ref().map_or(Tone::Faint, |sizes| part_tone(sizes.part(), Tone::Plain));
            if self.form == ChipForm::Row {
                line.extend(self.figures(n, area, chip.untracked_processes, tone, style));
                continue;
            }
            let text = sizes.map_or(glyphs.absent.to_owned(), |sizes| percent(sizes.part()).replace(' ', ""));
            let gap = if self.form == ChipForm::Tile { " " } else { "" };
            line.push((fit(&text, 5, Right, glyphs.cut) + gap, tone));
        }
        line
    }

    /// ` 12.4G/32.0G  ≥13.0G  12 % `
    fn figures(&self, n: usize, area: &Area, untracked: u32, tone: Tone, style: &Style) -> Line {
        let glyphs = style.glyphs();
        let first = area.buffers();
        let peak = first.and_then(|kind| Some((kind.peak_bytes?, kind.peak_is_at_least)));
        let peak = peak.map_or_else(String::new, |(peak, is_at_least)| {
            format!("{}{}", if is_at_least { glyphs.at_least } else { "" }, peak.short())
        });
        let fragmentation = first.and_then(|kind| kind.banks.as_ref()?.fragmentation);
        let (text, fragmented) =
            fragmentation.map_or((glyphs.absent.into(), Tone::Faint), |part| (percent(part), fragmentation_tone(part)));
        let used = short_figures(area.used_bytes, area.total_bytes, untracked > 0, glyphs);
        let [used, peak, text] =
            [(used, self.figures[n]), (peak, self.peak), (text, 5)].map(|(text, n)| fit(&text, n, Right, glyphs.cut));
        vec![(format!(" {used} "), tone), (peak, Tone::Plain), (text + " ", fragmented)]
    }
}

/// The state of a chip that is not as it should be.
pub fn sick(chip: &Chip) -> Option<State> {
    chip.state.filter(|state| state.judge() > Judgement::Normal)
}

/// The board; what is the matter with the chip, where something is.
fn board(chip: &Chip) -> String {
    let board = chip.board.as_deref().map(|board| board.replace("wormhole", "wh").replace("blackhole", "bh"));
    let state = sick(chip).map(|state| state.name().to_owned());
    state.or(board).or_else(|| chip.about.clone()).unwrap_or_default()
}

/// `≥12.4G/32.0G`, at least so much where a process does not report.
pub fn short_figures(used: Option<Bytes>, total: Option<Bytes>, is_at_least: bool, glyphs: &Glyphs) -> String {
    let mark = if is_at_least && used.is_some() { glyphs.at_least } else { "" };
    let used = used.map_or_else(|| glyphs.absent.to_owned(), Bytes::short);
    total.map_or_else(|| format!("{mark}{used}"), |total| format!("{mark}{used}/{}", total.short()))
}

/// How wide that gets with one of these totals, whatever is used: `used/total`, or more.
pub fn short_figures_width(totals: impl Iterator<Item = Bytes>, is_at_least: bool) -> usize {
    let widest = totals.map(|total| total.short().len()).max().unwrap_or(0);
    (usize::from(is_at_least) + "12.4G/".len() + widest).max("used/total".len())
}
