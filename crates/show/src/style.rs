//! How things are drawn: characters, colours, width.

use crate::text::{Align, fit};
use model::figure::Field;
use model::{Device, Judgement, State};

/// The characters and colours that the output may use.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Columns of the terminal.
    pub columns: usize,
    /// How many lines can be seen at once, where that matters.
    pub rows: Option<usize>,
    /// True for colours.
    pub color: bool,
    /// True for characters beyond ASCII.
    pub unicode: bool,
}

/// What a text is, rather than how it looks. The one palette of `smi`, `mem` and `top`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary text.
    Plain,
    /// Of little importance, or out of date.
    Faint,
    /// Text that stands out.
    Strong,
    /// A heading.
    Title,
    /// A frame.
    Border,
    /// A value in its normal range.
    Good,
    /// A value that needs attention.
    Warning,
    /// A value that needs action.
    Critical,
    /// The selected row.
    Selected,
    /// A tagged row.
    Tagged,
    /// Keys in the last line, and whatever can be pressed.
    Key,
    /// The first part of a bar: buffers.
    Buffers,
    /// The second part of a bar: traces or circular buffers.
    Second,
    /// The third part of a bar: L1_SMALL.
    Third,
    /// The part of a bar that is free.
    Free,
    /// The part of a bar that no allocator hands out.
    Reserved,
}

impl From<Judgement> for Tone {
    /// The one place where a judgement gets its colour.
    fn from(judgement: Judgement) -> Tone {
        match judgement {
            Judgement::Normal => Tone::Good,
            Judgement::Warning => Tone::Warning,
            Judgement::Critical => Tone::Critical,
        }
    }
}

impl Tone {
    /// The tone of a device's state. A remote chip cannot say how it is.
    pub fn of_state(state: State) -> Tone {
        if state == State::Remote { Tone::Faint } else { state.judge().into() }
    }

    /// The tone of a figure in a text, where only what is not normal stands out.
    pub fn of_figure(judgement: Option<Judgement>, is_known: bool) -> Tone {
        match judgement {
            Some(judgement) if judgement > Judgement::Normal => judgement.into(),
            _ if is_known => Tone::Plain,
            _ => Tone::Faint,
        }
    }

    /// The tone of a bar or a block that shows a field, where more is drawn higher.
    pub fn of_level(field: Field<Device>, device: &Device) -> Tone {
        match (field.judge(device), field.share(device)) {
            (_, Some(share)) if share <= 0.0 => Tone::Faint,
            (Some(judgement), _) => judgement.into(),
            (None, Some(share)) if share >= 0.5 => Tone::Good,
            (None, Some(_)) => Tone::Buffers,
            (None, None) if field.number(device).is_some() => Tone::Plain,
            (None, None) => Tone::Faint,
        }
    }
}

/// A line as texts in their tones.
pub type Line = Vec<(String, Tone)>;

/// The characters of frames, bars and signs.
pub struct Glyphs {
    /// A horizontal line.
    pub horizontal: char,
    /// A horizontal line below heads.
    pub double: char,
    /// A vertical line.
    pub vertical: char,
    /// Left corner, crossing and right corner of the top.
    pub top: [char; 3],
    /// The same of a line between rows.
    pub middle: [char; 3],
    /// The same of a line below heads.
    pub joint: [char; 3],
    /// The same of the bottom.
    pub bottom: [char; 3],
    /// A full cell of a bar.
    pub full: char,
    /// Something, but less than half a cell.
    pub sliver: char,
    /// An empty cell of a bar.
    pub empty: char,
    /// A gap in a chart.
    pub unknown: char,
    /// An absent value.
    pub absent: &'static str,
    /// The end of a text that was cut.
    pub cut: char,
    /// In front of what is selected.
    pub selected: &'static str,
    /// The unit of a temperature.
    pub degree: &'static str,
    /// A lower bound.
    pub at_least: &'static str,
    /// Data to the device.
    pub to_device: &'static str,
    /// Data from the device.
    pub to_host: &'static str,
    /// On a time line: a warning, and something worse.
    pub event: char,
    /// The second of the two.
    pub incident: char,
}

const UNICODE: Glyphs = Glyphs {
    horizontal: '─',
    double: '═',
    vertical: '│',
    top: ['┌', '┬', '┐'],
    middle: ['├', '┼', '┤'],
    joint: ['╞', '╪', '╡'],
    bottom: ['└', '┴', '┘'],
    // Not the full block: the bars of lines below each other would run into one.
    full: '▇',
    sliver: '▏',
    empty: '░',
    unknown: '·',
    absent: "–",
    cut: '…',
    selected: "▸",
    degree: "°C",
    at_least: "≥",
    to_device: "→",
    to_host: "←",
    event: '◆',
    incident: '▲',
};

const ASCII: Glyphs = Glyphs {
    horizontal: '-',
    double: '=',
    vertical: '|',
    top: ['+', '+', '+'],
    middle: ['+', '+', '+'],
    joint: ['|', '+', '|'],
    bottom: ['+', '+', '+'],
    full: '#',
    sliver: ':',
    empty: '.',
    unknown: ' ',
    absent: "-",
    cut: '~',
    selected: ">",
    degree: "C",
    at_least: ">",
    to_device: "->",
    to_host: "<-",
    event: '*',
    incident: '!',
};

impl Glyphs {
    /// The characters beyond ASCII, or those of ASCII.
    pub fn of(unicode: bool) -> &'static Glyphs {
        if unicode { &UNICODE } else { &ASCII }
    }
}

impl Style {
    /// The characters of this style.
    pub fn glyphs(&self) -> &'static Glyphs {
        Glyphs::of(self.unicode)
    }

    /// The text in a tone. Its width stays the same.
    pub fn paint(&self, text: &str, tone: Tone) -> String {
        let code = match tone {
            Tone::Good | Tone::Buffers => "32",
            Tone::Warning => "33",
            Tone::Critical => "1;31",
            Tone::Faint | Tone::Free | Tone::Reserved => "2",
            Tone::Strong | Tone::Title => "1",
            Tone::Tagged => "1;33",
            Tone::Selected | Tone::Key => "7",
            Tone::Second => "36",
            Tone::Third => "35",
            Tone::Plain | Tone::Border => "",
        };
        if !self.color || code.is_empty() || text.trim().is_empty() {
            return text.to_owned();
        }
        // Blanks around the text stay plain, so that a copied line looks as it is.
        let body = text.trim();
        let start = text.len() - text.trim_start().len();
        format!("{}\x1b[{code}m{body}\x1b[0m{}", &text[..start], &text[start + body.len()..])
    }

    /// A text cut and filled up to a column, in its tone.
    pub fn cell(&self, text: &str, columns: usize, align: Align, tone: Tone) -> String {
        let text = fit(text, columns, align, self.glyphs().cut);
        if self.color { self.paint(&text, tone) } else { text }
    }

    /// A line as it is written to the terminal.
    pub fn painted(&self, line: &Line) -> String {
        line.iter().map(|(text, tone)| self.paint(text, *tone)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Style = Style { columns: 80, rows: None, color: false, unicode: true };

    #[test]
    fn colour_surrounds_the_text_and_not_its_blanks() {
        let style = Style { color: true, ..PLAIN };
        assert_eq!(style.paint("  ok ", Tone::Good), "  \x1b[32mok\x1b[0m ");
        assert_eq!(PLAIN.paint("ok", Tone::Good), "ok");
    }
}
