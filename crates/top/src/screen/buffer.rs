//! A picture: cells with a symbol and a look each.

use super::rect::{Position, Rect};
use super::style::{Look, Style};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::{Index, IndexMut};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    pub area: Rect,
    cells: Vec<Cell>,
    /// Symbols that no cell has room for, such as a family of emoji.
    long: BTreeMap<Symbol, Box<str>>,
}

/// In UTF-8 with zeros behind it. Of a longer symbol a hash, behind a byte that is in no UTF-8.
type Symbol = [u8; 8];

const IS_LONG: u8 = 0xff;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    symbol: Symbol,
    /// How many columns the symbol takes. None: it is covered by the one to the left.
    columns: u8,
    look: Look,
}

const BLANK: Cell = Cell { symbol: [b' ', 0, 0, 0, 0, 0, 0, 0], columns: 1, look: Look::PLAIN };

/// Covered by the symbol to the left.
const COVERED: Cell = Cell { symbol: [0; 8], columns: 0, look: Look::PLAIN };

/// Whether a character takes one column whatever is beside it: ASCII, letters of Latin alphabets, and what frames, bars, charts and marks
/// are made of.
const fn is_single(char: char) -> bool {
    matches!(char, ' '..='~' | '¡'..='¬' | '®'..='ʯ' | '–'..='‧' | '←'..='↙' | '─'..='◼' | '⠀'..='⣿')
}

impl Cell {
    pub fn columns(&self) -> u8 {
        self.columns
    }

    pub fn look(&self) -> Look {
        self.look
    }

    /// Sets the symbol to a character that takes one column.
    pub fn set_char(&mut self, char: char) -> &mut Cell {
        self.symbol = [0; 8];
        char.encode_utf8(&mut self.symbol);
        self.columns = 1;
        self
    }

    pub fn set_style(&mut self, style: Style) -> &mut Cell {
        self.look.change(style);
        self
    }

    pub fn reset(&mut self) {
        *self = BLANK;
    }
}

impl Buffer {
    pub fn empty(area: Rect) -> Buffer {
        Buffer { area, cells: vec![BLANK; usize::from(area.width) * usize::from(area.height)], long: BTreeMap::new() }
    }

    #[cfg(test)]
    pub fn filled(area: Rect, char: char) -> Buffer {
        let mut buf = Buffer::empty(area);
        buf.cells.iter_mut().for_each(|cell| _ = cell.set_char(char));
        buf
    }

    /// Makes all of it blank.
    pub fn reset(&mut self) {
        self.cells.fill(BLANK);
        self.long.clear();
    }

    /// What a cell of it shows. Nothing, where the symbol to the left covers it.
    pub fn symbol<'a>(&'a self, cell: &'a Cell) -> &'a str {
        if cell.symbol[0] == IS_LONG {
            return self.long.get(&cell.symbol).map_or(" ", |symbol| symbol);
        }
        let end = cell.symbol.iter().position(|byte| *byte == 0).unwrap_or(cell.symbol.len());
        std::str::from_utf8(&cell.symbol[..end]).unwrap_or(" ")
    }

    /// The cells of each row, from above.
    pub fn rows(&self) -> impl Iterator<Item = &[Cell]> {
        self.cells.chunks(usize::from(self.area.width).max(1))
    }

    pub fn cell_mut(&mut self, at: impl Into<Position>) -> Option<&mut Cell> {
        let at = self.place(at.into())?;
        self.cells.get_mut(at)
    }

    pub fn set_style(&mut self, area: Rect, style: Style) {
        let area = area.intersection(self.area);
        for y in area.y..area.bottom() {
            self.part(y, area.x, area.right()).iter_mut().for_each(|cell| cell.look.change(style));
        }
    }

    /// Writes a text from `x` on, not beyond `end`, and returns where it ended. What it has must be harmless to a terminal.
    pub fn put(&mut self, x: u16, y: u16, end: u16, text: &str, style: Style) -> u16 {
        // The usual case: each letter is a cell.
        if text.chars().all(is_single) {
            let mut written = 0;
            for (cell, char) in self.part(y, x, end).iter_mut().zip(text.chars()) {
                cell.set_char(char).look.change(style);
                written += 1;
            }
            return x + written;
        }
        let mut at = x;
        for (text, columns) in text.graphemes(true).map(|text| (text, text.width())).filter(|(_, columns)| *columns > 0)
        {
            let columns = columns.min(u8::MAX.into()) as u8;
            let symbol = self.short(text);
            let after = at.saturating_add(columns.into());
            let [first, covered @ ..] = self.part(y, at, end.min(after)) else { break };
            if covered.len() + 1 < columns.into() {
                break;
            }
            (first.symbol, first.columns) = (symbol, columns);
            first.look.change(style);
            covered.iter_mut().for_each(|cell| *cell = Cell { look: first.look, ..COVERED });
            at = after;
        }
        at
    }

    /// The symbol as a cell has it.
    fn short(&mut self, text: &str) -> Symbol {
        let mut symbol = Symbol::default();
        if let Some(room) = symbol.get_mut(..text.len()) {
            room.copy_from_slice(text.as_bytes());
            return symbol;
        }
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        symbol = hasher.finish().to_le_bytes();
        symbol[0] = IS_LONG;
        self.long.entry(symbol).or_insert_with(|| text.into());
        symbol
    }

    /// Makes blank what is left of symbols of which a part was drawn over.
    pub fn mend(&mut self) {
        for row in self.cells.chunks_mut(usize::from(self.area.width).max(1)) {
            let mut at = 0;
            while at < row.len() {
                let columns = usize::from(row[at].columns);
                let is_whole = columns > 0
                    && row.get(at + 1..at + columns).is_some_and(|rest| rest.iter().all(|cell| cell.columns == 0));
                if !is_whole {
                    row[at].set_char(' ');
                }
                at += if is_whole { columns } else { 1 };
            }
        }
    }

    /// The cells of row `y` from `x` to `end`, as far as there are such.
    pub fn part(&mut self, y: u16, x: u16, end: u16) -> &mut [Cell] {
        let end = end.min(self.area.right());
        match self.place(Position { x, y }) {
            Some(at) => &mut self.cells[at..at + usize::from(end.saturating_sub(x))],
            None => &mut [],
        }
    }

    fn place(&self, at: Position) -> Option<usize> {
        let Rect { x, y, width, .. } = self.area;
        self.area.contains(at).then(|| usize::from(at.y - y) * usize::from(width) + usize::from(at.x - x))
    }
}

impl<At: Into<Position>> Index<At> for Buffer {
    type Output = Cell;

    fn index(&self, at: At) -> &Cell {
        let at = at.into();
        let place = self.place(at).unwrap_or_else(|| panic!("{at:?} is not in {:?}", self.area));
        &self.cells[place]
    }
}

impl<At: Into<Position>> IndexMut<At> for Buffer {
    fn index_mut(&mut self, at: At) -> &mut Cell {
        let at = at.into();
        let place = self.place(at).unwrap_or_else(|| panic!("{at:?} is not in {:?}", self.area));
        &mut self.cells[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthChar;

    fn row(width: u16) -> Buffer {
        Buffer::empty(Rect::new(0, 0, width, 1))
    }

    fn text(buf: &Buffer) -> String {
        buf.rows().flatten().map(|cell| buf.symbol(cell)).collect()
    }

    #[test]
    fn a_letter_of_two_columns_covers_the_next_cell_or_is_left_out() {
        let mut buf = row(6);
        assert_eq!(buf.put(1, 0, 6, "a日b本", Style::new()), 5, "the last does not fit");
        assert_eq!(text(&buf), " a日b ");
        assert_eq!(buf[(3, 0)].columns(), 0);
    }

    #[test]
    fn what_is_left_of_a_letter_that_was_drawn_over_is_blank() {
        for (x, expected) in [(0, "|日 "), (1, " |  "), (2, " |"), (3, " 日|")] {
            let mut buf = row(4);
            buf.put(1, 0, 4, "日", Style::new());
            buf[(x, 0)].set_char('|');
            buf.mend();
            let expected = if x == 2 { "  | " } else { expected };
            assert_eq!(text(&buf), expected, "{x}");
        }
    }

    #[test]
    fn a_symbol_of_several_characters_is_one_cell_however_long() {
        let mut buf = row(5);
        let many_marks = format!("a{}", "\u{301}".repeat(1000));
        for (symbol, columns) in [("e\u{301}", 1), ("👨\u{200d}👩\u{200d}👧", 2), (&many_marks, 1)] {
            assert_eq!(buf.put(0, 0, 5, &format!("{symbol}x"), Style::new()), columns + 1);
            assert_eq!((buf.symbol(&buf[(0, 0)]), buf.symbol(&buf[(columns, 0)])), (symbol, "x"));
        }
        buf.reset();
        assert_eq!(buf, row(5), "nothing is kept");
    }

    #[test]
    fn nothing_is_written_outside() {
        let mut buf = Buffer::empty(Rect::new(2, 2, 3, 1));
        for at in [(0, 2), (5, 2), (2, 0), (2, 3)] {
            buf.put(at.0, at.1, u16::MAX, "abc", Style::new());
            assert!(buf.cell_mut(at).is_none());
        }
        buf.set_style(Rect::new(0, 0, 9, 2), Style::new().fg(super::super::Color::Indexed(1)));
        assert_eq!(buf, Buffer::empty(buf.area));
        assert_eq!(buf.put(3, 2, u16::MAX, "abc", Style::new()), 5);
        assert_eq!(text(&buf), " ab");
    }

    #[test]
    fn each_single_character_takes_one_column_and_joins_no_other() {
        for char in ('\0'..=char::MAX).filter(|char| is_single(*char)) {
            assert_eq!(char.width(), Some(1), "{char:?}");
            let pair = format!("a{char}");
            assert_eq!(pair.graphemes(true).count(), 2, "{char:?}");
        }
    }
}
