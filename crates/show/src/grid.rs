//! Frames, and tables whose columns share out the width.

use crate::bar::{self, Sizes};
use crate::style::{Line, Style, Tone};
use crate::text::{Align, clean, fit, width};

/// Text that is built line by line.
pub struct Page {
    /// Width, characters and colours.
    pub style: Style,
    /// The lines so far.
    pub text: String,
}

impl Page {
    /// An empty page.
    pub fn new(style: Style) -> Page {
        Page { style, text: String::new() }
    }

    /// A line of the frame: ends, and crossings between columns of these widths.
    pub fn rule(&mut self, columns: &[usize], line: char, [left, cross, right]: [char; 3]) {
        self.text.push(left);
        for (i, &columns) in columns.iter().enumerate() {
            if i > 0 {
                self.text.push(cross);
            }
            self.text.extend(std::iter::repeat_n(line, columns));
        }
        self.text.push(right);
        self.text.push('\n');
    }

    /// A line of cells, each already as wide as its column.
    pub fn line(&mut self, cells: &[String]) {
        let bar = self.style.glyphs().vertical;
        self.text.push(bar);
        for cell in cells {
            self.text += cell;
            self.text.push(bar);
        }
        self.text.push('\n');
    }

    /// A table of one-line rows inside the frame.
    pub fn grid(&mut self, columns: Vec<Column>, rows: Vec<Vec<Cell>>) {
        let all = rows.len();
        self.groups(columns, rows, &[(None, all)]);
    }

    /// A line of texts, cut and filled up to the width of the frame.
    pub fn texts(&mut self, line: Line) {
        let mut room = self.style.columns - 2;
        let mut text = String::new();
        for (piece, tone) in line {
            let columns = width(&clean(&piece)).min(room);
            text += &self.style.cell(&piece, columns, Align::Left, tone);
            room -= columns;
        }
        self.line(&[text + &" ".repeat(room)]);
    }

    /// The same as a grid, in groups of so many rows, each below its heading, which is as wide as the frame.
    pub fn groups(&mut self, columns: Vec<Column>, rows: Vec<Vec<Cell>>, groups: &[(Option<String>, usize)]) {
        let (style, inner, glyphs) = (self.style, self.style.columns - 2, self.style.glyphs());
        let lines = lines(columns, rows, inner - 2, Tone::Plain, &style).into_iter();
        let mut lines = lines.map(|line| [format!(" {} ", style.painted(&line))]);
        self.line(&lines.next().unwrap_or_default());
        self.rule(&[inner], glyphs.double, glyphs.joint);
        for (n, (heading, count)) in groups.iter().enumerate() {
            if n > 0 {
                self.rule(&[inner], glyphs.horizontal, glyphs.middle);
            }
            heading.iter().for_each(|heading| self.line(std::slice::from_ref(heading)));
            lines.by_ref().take(*count).for_each(|line| self.line(&line));
        }
    }
}

/// A column of a table.
pub struct Column {
    /// Text of the head.
    pub head: &'static str,
    /// Alignment of the cells.
    pub align: Align,
    /// It is never narrower than this.
    pub least: usize,
    /// True if it takes a share of the room that is left.
    pub stretches: bool,
    /// Where there is not room for all, the highest goes first; zero stays.
    pub rank: u8,
    /// Its head where the column before it had to go.
    pub head_alone: Option<&'static str>,
}

impl Column {
    /// A column with its text on the left.
    pub fn left(head: &'static str, least: usize) -> Column {
        Column { head, align: Align::Left, least, stretches: false, rank: 0, head_alone: None }
    }

    /// A column with its text on the right.
    pub fn right(head: &'static str, least: usize) -> Column {
        Column { head, align: Align::Right, least, stretches: false, rank: 0, head_alone: None }
    }

    /// The same column, which takes a share of the room that is left.
    pub fn stretching(self) -> Column {
        Column { stretches: true, ..self }
    }

    /// With another head where the column before it is left out.
    pub fn head_alone(self, head: &'static str) -> Column {
        Column { head_alone: Some(head), ..self }
    }

    /// The higher, the sooner it is left out.
    pub fn rank(self, rank: u8) -> Column {
        Column { rank, ..self }
    }
}

/// The content of one cell of a table.
#[derive(Clone)]
pub enum Cell {
    /// A text and its tone.
    Text(String, Tone),
    /// A bar; what is used has this tone.
    Bar(Option<Sizes>, Tone),
}

impl Cell {
    /// A text in the plain tone.
    pub fn plain(text: impl Into<String>) -> Cell {
        Cell::Text(text.into(), Tone::Plain)
    }
}

/// A table in so many columns: its heads in their tone, and its rows. Columns for which there is no room are left out.
pub fn lines(
    mut columns: Vec<Column>,
    mut rows: Vec<Vec<Cell>>,
    total: usize,
    heads: Tone,
    style: &Style,
) -> Vec<Line> {
    drop_what_does_not_fit(&mut columns, &mut rows, total);
    let widths = widths(&columns, &rows, total);
    let heads = columns.iter().map(|column| Cell::Text(column.head.to_owned(), heads)).collect();
    let line = |row: Vec<Cell>| {
        let mut line = Line::with_capacity(row.len());
        for ((column, &width), cell) in columns.iter().zip(&widths).zip(row) {
            line.last_mut().into_iter().for_each(|(text, _)| text.push(' '));
            match cell {
                Cell::Text(text, tone) => line.push((fit(&text, width, column.align, style.glyphs().cut), tone)),
                Cell::Bar(sizes, tone) => line.extend(bar::pieces(sizes.as_ref(), width, tone, style)),
            }
        }
        line
    };
    std::iter::once(heads).chain(rows).map(line).collect()
}

fn drop_what_does_not_fit(columns: &mut Vec<Column>, rows: &mut [Vec<Cell>], total: usize) {
    let least = |columns: &[Column]| columns.iter().map(|column| column.least + 1).sum::<usize>() - 1;
    while least(columns) > total {
        let Some((at, column)) = columns.iter().enumerate().max_by_key(|(_, column)| column.rank) else { return };
        if column.rank == 0 {
            return;
        }
        columns.remove(at);
        if let Some(column) = columns.get_mut(at) {
            column.head = column.head_alone.unwrap_or(column.head);
        }
        rows.iter_mut().for_each(|row| drop(row.remove(at)));
    }
}

/// Each column gets its least; then, from the left, what its widest cell needs; the rest goes to the one that stretches.
fn widths(columns: &[Column], rows: &[Vec<Cell>], total: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = columns.iter().map(|column| column.least).collect();
    let taken = widths.iter().sum::<usize>() + columns.len().saturating_sub(1);
    let mut rest = total.saturating_sub(taken);
    for (i, column) in columns.iter().enumerate().filter(|(_, column)| !column.stretches) {
        let cells = rows.iter().map(|row| match &row[i] {
            Cell::Text(text, _) => width(text),
            Cell::Bar(..) => 0,
        });
        let wanted = cells.chain([width(column.head)]).max().unwrap_or(0);
        let more = wanted.saturating_sub(widths[i]).min(rest);
        widths[i] += more;
        rest -= more;
    }
    // Where that one had to go, the last takes its part.
    let stretching = columns.iter().position(|column| column.stretches).or(columns.len().checked_sub(1));
    if let Some(i) = stretching {
        widths[i] += rest;
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_important_column_goes_first() {
        let column = |rank| Column::left("x", 4).rank(rank);
        let mut columns = vec![column(0), column(2), column(1)];
        let mut rows = vec![vec![Cell::plain("a"), Cell::plain("b"), Cell::plain("c")]];
        drop_what_does_not_fit(&mut columns, &mut rows, 9);
        assert_eq!(columns.iter().map(|column| column.rank).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(rows[0].len(), 2);
        drop_what_does_not_fit(&mut columns, &mut rows, 1);
        assert_eq!(columns.len(), 1, "what must stay stays");
    }

    #[test]
    fn a_column_has_another_head_where_the_one_before_it_is_left_out() {
        let mut columns = vec![Column::left("DRAM", 4).rank(1), Column::right("used", 4).head_alone("DRAM")];
        drop_what_does_not_fit(&mut columns, &mut [], 9);
        assert_eq!(columns[1].head, "used");
        drop_what_does_not_fit(&mut columns, &mut [], 4);
        assert_eq!(columns[0].head, "DRAM");
    }

    #[test]
    fn columns_take_what_they_need_and_one_takes_the_rest() {
        let columns = [Column::left("A", 2), Column::left("NAME", 4).stretching(), Column::right("B", 2)];
        let row = |a: &str, b: &str| vec![Cell::plain(a), Cell::plain("name"), Cell::plain(b)];
        assert_eq!(widths(&columns, &[row("x", "12345")], 30), [2, 21, 5]);
        assert_eq!(widths(&columns, &[row("x", "12345")], 11), [2, 4, 3], "too narrow: the last gets what is left");
        assert_eq!(widths(&columns, &[], 10), [2, 4, 2]);
    }
}
