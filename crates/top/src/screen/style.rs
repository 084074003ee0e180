//! How a cell looks: colours of the usual 256, and what a terminal does to letters beside.

use std::ops::BitOr;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    /// The terminal's own.
    #[default]
    Reset,
    /// One of 256. Of the first 16 a terminal chooses the shade.
    Indexed(u8),
}

/// A set of what a terminal can do to letters.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Modifier(u8);

impl Modifier {
    pub const NONE: Modifier = Modifier(0);
    pub const BOLD: Modifier = Modifier(1);
    pub const DIM: Modifier = Modifier(1 << 1);
    pub const ITALIC: Modifier = Modifier(1 << 2);
    pub const UNDERLINED: Modifier = Modifier(1 << 3);
    pub const REVERSED: Modifier = Modifier(1 << 4);

    pub const fn contains(self, other: Modifier) -> bool {
        self.0 & other.0 == other.0
    }

    const fn and(self, other: Modifier) -> Modifier {
        Modifier(self.0 | other.0)
    }
}

impl BitOr for Modifier {
    type Output = Modifier;

    fn bitor(self, other: Modifier) -> Modifier {
        self.and(other)
    }
}

/// What to change of the look of a cell. What is absent stays as it is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    pub fg: Option<Color>,
    pub bg: Option<Color>,
    pub add_modifier: Modifier,
}

impl Style {
    pub const fn new() -> Style {
        Style { fg: None, bg: None, add_modifier: Modifier::NONE }
    }

    pub const fn fg(self, color: Color) -> Style {
        Style { fg: Some(color), ..self }
    }

    pub const fn bg(self, color: Color) -> Style {
        Style { bg: Some(color), ..self }
    }

    pub const fn add_modifier(self, modifier: Modifier) -> Style {
        Style { add_modifier: self.add_modifier.and(modifier), ..self }
    }
}

/// The look of a cell.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    pub fg: Color,
    pub bg: Color,
    pub modifier: Modifier,
}

impl Look {
    pub const PLAIN: Look = Look { fg: Color::Reset, bg: Color::Reset, modifier: Modifier::NONE };

    pub fn change(&mut self, style: Style) {
        self.fg = style.fg.unwrap_or(self.fg);
        self.bg = style.bg.unwrap_or(self.bg);
        self.modifier = self.modifier | style.add_modifier;
    }
}
