//! Dots: eight in a cell where the terminal has Braille, two one above the other where it has not.

use crate::paint::{Buffer, Rect, Style};

pub struct Canvas {
    area: Rect,
    unicode: bool,
    reversed: bool,
    /// The dots of each cell, and whose they are.
    cells: Vec<(u8, u8)>,
}

impl Canvas {
    pub fn new(area: Rect, unicode: bool, reversed: bool) -> Canvas {
        Canvas { area, unicode, reversed, cells: vec![(0, 0); usize::from(area.width) * usize::from(area.height)] }
    }

    /// How many dots lie side by side in a cell.
    pub fn dots_across(unicode: bool) -> u16 {
        if unicode { 2 } else { 1 }
    }

    fn dots_down(&self) -> usize {
        if self.unicode { 4 } else { 2 }
    }

    /// The dot of a part of the height, from the bottom.
    pub fn height(&self, part: f64) -> f64 {
        let most = (usize::from(self.area.height) * self.dots_down()).saturating_sub(1) as f64;
        part.clamp(0.0, 1.0) * most
    }

    /// The row of a part of the height, from the top.
    pub fn row(&self, part: f64) -> u16 {
        let dots = usize::from(self.area.height) * self.dots_down();
        let from_top = dots.saturating_sub(1).saturating_sub(self.height(part).round() as usize);
        (from_top / self.dots_down()) as u16
    }

    /// Draws from one height to another, at a dot from the oldest.
    pub fn upright(&mut self, dot: usize, from: f64, to: f64, line: u8) {
        let across = usize::from(Canvas::dots_across(self.unicode));
        let (width, down) = (usize::from(self.area.width), self.dots_down());
        let dots = (width * across, usize::from(self.area.height) * down);
        if dot >= dots.0 || dots.1 == 0 {
            return;
        }
        let dot = if self.reversed { dots.0 - 1 - dot } else { dot };
        let column = dot / across;
        // Rounds, for which there is no instruction on every processor that this is built for.
        let nearest = |height: f64| ((height.max(0.0) + 0.5) as usize).min(dots.1 - 1);
        let (low, high) = (nearest(from.min(to)), nearest(from.max(to)));
        for height in low..=high {
            let y = dots.1 - 1 - height;
            // Shifts, because this runs for every dot.
            let (row, bit) = if self.unicode { (y >> 2, BRAILLE[y & 3][dot & 1]) } else { (y >> 1, 1 << (y & 1)) };
            let cell = &mut self.cells[row * width + column];
            *cell = (cell.0 | bit, line);
        }
    }

    pub fn is_blank(&self, column: u16, row: u16) -> bool {
        self.cells[usize::from(row) * usize::from(self.area.width) + usize::from(column)].0 == 0
    }

    /// Puts it on the screen, each line in its style.
    pub fn draw(&self, buf: &mut Buffer, style: impl Fn(u8) -> Style) {
        let width = usize::from(self.area.width).max(1);
        for (n, (bits, line)) in self.cells.iter().enumerate().filter(|(_, (bits, _))| *bits != 0) {
            let (x, y) = (self.area.x + (n % width) as u16, self.area.y + (n / width) as u16);
            let dots = if self.unicode {
                char::from_u32(0x2800 + u32::from(*bits)).unwrap_or(' ')
            } else {
                [' ', '\'', '.', ':'][usize::from(bits & 3)]
            };
            buf[(x, y)].set_char(dots).set_style(style(*line));
        }
    }
}

/// The bits of U+2800, from top to bottom, from left to right.
const BRAILLE: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paint::lines;

    fn drawn(unicode: bool, reversed: bool) -> String {
        let area = Rect::new(0, 0, 4, 2);
        let mut buf = Buffer::empty(area);
        let mut canvas = Canvas::new(area, unicode, reversed);
        let most = canvas.height(1.0);
        for dot in 0..3 {
            canvas.upright(dot, 0.0, most * dot as f64 / 2.0, 0);
        }
        canvas.upright(99, 0.0, 9.0, 0);
        canvas.draw(&mut buf, |_| Style::new());
        lines(&buf)
    }

    #[test]
    fn dots_are_where_they_belong() {
        assert_eq!(drawn(true, false), "⢀⡇\n⣸⡇\n");
        assert_eq!(drawn(true, true), "  ⢸⡀\n  ⢸⣇\n");
        assert_eq!(drawn(false, false), " .:\n.::\n");
    }

    #[test]
    fn the_ends_of_the_scale_are_the_first_and_the_last_row() {
        let canvas = Canvas::new(Rect::new(0, 0, 4, 5), true, false);
        assert_eq!([1.0, 0.5, 0.0, 7.0, -7.0].map(|part| canvas.row(part)), [0, 2, 4, 0, 4]);
    }
}
