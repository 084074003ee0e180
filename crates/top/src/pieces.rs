//! A line of pieces, of which the least important are left out where there is no room for all.

use super::theme::{Theme, Tone};
use crate::paint::{Buffer, columns, put};
use show::text::{clean, cut};

#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    pub text: String,
    pub tone: Tone,
    /// The lowest comes first where there is no room for all; zero is never left out.
    pub rank: u8,
    pub right: bool,
}

impl Piece {
    pub fn left(text: impl Into<String>, tone: Tone, rank: u8) -> Piece {
        Piece { text: text.into(), tone, rank, right: false }
    }

    pub fn right(text: impl Into<String>, tone: Tone, rank: u8) -> Piece {
        Piece { text: text.into(), tone, rank, right: true }
    }
}

/// Leaves out what must go for so many columns, with `gap` between two pieces.
pub fn keep_fitting(pieces: &mut Vec<Piece>, gap: u16, room: u16) {
    if width(pieces.iter(), gap) <= room {
        return;
    }
    // The most important are placed first, and lesser ones where there is still room.
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_by_key(|at| pieces[*at].rank);
    let mut kept = vec![false; pieces.len()];
    let mut taken: u16 = 0;
    for at in order {
        let columns = columns(&pieces[at].text).saturating_add(if taken == 0 { 0 } else { gap });
        if pieces[at].rank == 0 || taken.saturating_add(columns) <= room {
            taken = taken.saturating_add(columns);
            kept[at] = true;
        }
    }
    let mut kept = kept.into_iter();
    pieces.retain(|_| kept.next().unwrap_or(false));
}

pub fn width<'a>(pieces: impl Iterator<Item = &'a Piece>, gap: u16) -> u16 {
    let mut sum: u16 = 0;
    for (n, piece) in pieces.enumerate() {
        let between = if n == 0 { 0 } else { gap };
        sum = sum.saturating_add(columns(&piece.text)).saturating_add(between);
    }
    sum
}

/// Draws what fits from `x` to `end`. What never goes and does not fit ends in a mark.
pub fn draw(buf: &mut Buffer, (x, y): (u16, u16), end: u16, mut pieces: Vec<Piece>, gap: u16, theme: &Theme) {
    keep_fitting(&mut pieces, gap, end.saturating_sub(x));
    let mut at = x;
    for piece in pieces.iter().filter(|piece| !piece.right) {
        let text = clean(&piece.text);
        let text = cut(&text, usize::from(end.saturating_sub(at)), theme.glyphs().cut);
        at = put(buf, at, y, end, &text, theme.style(piece.tone)).saturating_add(gap);
    }
    let right = width(pieces.iter().filter(|piece| piece.right), gap);
    at = at.max(end.saturating_sub(right));
    for piece in pieces.iter().filter(|piece| piece.right) {
        at = put(buf, at, y, end, &piece.text, theme.style(piece.tone)).saturating_add(gap);
    }
}

#[cfg(test)]
mod tests {
    use super::super::paint::lines;
    use super::super::theme::Scheme;
    use super::*;
    use crate::screen::Rect;

    fn drawn(columns: u16) -> String {
        let pieces = vec![
            Piece::left("name", Tone::Plain, 0),
            Piece::left("address", Tone::Plain, 2),
            Piece::left("state", Tone::Plain, 1),
            Piece::right("link", Tone::Plain, 3),
        ];
        let mut buf = Buffer::empty(Rect::new(0, 0, columns, 1));
        draw(&mut buf, (0, 0), columns, pieces, 1, &Theme { scheme: Scheme::Dark, unicode: true });
        lines(&buf).trim_end().to_owned()
    }

    #[test]
    fn the_most_important_stays_and_the_order_too() {
        assert_eq!(drawn(26), "name address state    link");
        assert_eq!(drawn(23), "name address state link");
        assert_eq!(drawn(22), "name address state");
        assert_eq!(drawn(17), "name state   link", "there is still room for less");
        assert_eq!(drawn(14), "name state");
        assert_eq!(drawn(8), "name");
        assert_eq!(drawn(3), "na…");
        assert_eq!(drawn(1), "…");
    }
}
