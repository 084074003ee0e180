//! What a terminal that shows one picture needs to show the next.

use super::buffer::{Buffer, Cell};
use super::style::{Color, Look, Modifier};

/// Adds the changes from one picture to the next of the same size.
pub fn write_changes(out: &mut Vec<u8>, shown: &Buffer, next: &Buffer) {
    let mut pen = Pen { out, at: None, look: Look::PLAIN };
    for (y, (old, new)) in shown.rows().zip(next.rows()).enumerate() {
        let mut is_unclear = false;
        for (x, (old, new)) in old.iter().zip(new).enumerate() {
            if (old != new || is_unclear) && new.columns() > 0 {
                is_unclear |= !pen.write((x, y), new, next.symbol(new));
            }
        }
    }
    pen.take_up(Look::PLAIN);
}

/// Where the terminal's cursor is, if that is known, and how letters look that come next.
struct Pen<'a> {
    out: &'a mut Vec<u8>,
    at: Option<(usize, usize)>,
    look: Look,
}

impl Pen<'_> {
    /// Returns whether every terminal shows the symbol in as many columns. Where one takes more, what follows must be written again.
    fn write(&mut self, (x, y): (usize, usize), cell: &Cell, symbol: &str) -> bool {
        self.take_up(cell.look());
        self.go_to((x, y));
        let is_clear = cell.columns() == 1 && symbol.chars().nth(1).is_none();
        if !is_clear {
            // Where one takes less, nothing old stays beside it.
            self.out.resize(self.out.len() + usize::from(cell.columns()), b' ');
            self.at = None;
            self.go_to((x, y));
        }
        self.out.extend(symbol.as_bytes());
        self.at = is_clear.then_some((x + 1, y));
        is_clear
    }

    fn go_to(&mut self, (x, y): (usize, usize)) {
        if self.at != Some((x, y)) {
            self.out.extend(b"\x1b[");
            self.number(y + 1);
            self.out.push(b';');
            self.number(x + 1);
            self.out.push(b'H');
        }
    }

    fn take_up(&mut self, look: Look) {
        if std::mem::replace(&mut self.look, look) == look {
            return;
        }
        self.out.extend(b"\x1b[0");
        for (modifier, code) in MODIFIERS {
            if look.modifier.contains(modifier) {
                self.out.extend([b';', code]);
            }
        }
        for (color, code) in [(look.fg, b";38;5;"), (look.bg, b";48;5;")] {
            if let Color::Indexed(n) = color {
                self.out.extend(code);
                self.number(n.into());
            }
        }
        self.out.push(b'm');
    }

    fn number(&mut self, n: usize) {
        if n >= 10 {
            self.number(n / 10);
        }
        self.out.push(b'0' + (n % 10) as u8);
    }
}

const MODIFIERS: [(Modifier, u8); 5] = [
    (Modifier::BOLD, b'1'),
    (Modifier::DIM, b'2'),
    (Modifier::ITALIC, b'3'),
    (Modifier::UNDERLINED, b'4'),
    (Modifier::REVERSED, b'7'),
];

#[cfg(test)]
mod tests {
    use super::super::{Rect, Style};
    use super::*;
    use proptest::prelude::*;
    use std::num::NonZero;

    fn changes(shown: &Buffer, next: &Buffer) -> String {
        let mut out = Vec::new();
        write_changes(&mut out, shown, next);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_what_differs_is_written_and_a_look_once() {
        let area = Rect::new(0, 0, 12, 2);
        let (mut shown, mut next) = (Buffer::empty(area), Buffer::empty(area));
        let warm = Style::new().fg(Color::Indexed(221)).add_modifier(Modifier::BOLD | Modifier::REVERSED);
        shown.put(0, 1, 12, "temp 60 °C", Style::new());
        assert_eq!(changes(&shown, &shown), "");
        next.put(0, 1, 12, "temp 71 °C", Style::new());
        next.put(5, 1, 7, "71", warm);
        next.put(9, 0, 12, "x", Style::new().bg(Color::Indexed(5)));
        assert_eq!(changes(&shown, &next), "\x1b[0;48;5;5m\x1b[1;10Hx\x1b[0;1;7;38;5;221m\x1b[2;6H71\x1b[0m");
    }

    #[test]
    fn what_follows_a_wide_letter_is_written_again() {
        let area = Rect::new(0, 0, 4, 1);
        let (mut shown, mut next) = (Buffer::empty(area), Buffer::empty(area));
        shown.put(0, 0, 4, "abcd", Style::new());
        next.put(0, 0, 4, "日cx", Style::new());
        assert_eq!(changes(&shown, &next), "\x1b[1;1H  \x1b[1;1H日\x1b[1;3Hcx");
        assert_eq!(changes(&next, &shown), "\x1b[1;1Hab\x1b[1;4Hd");
    }

    const SIZE: (u16, u16) = (10, 3);

    fn picture() -> impl Strategy<Value = Buffer> {
        let text = prop::collection::vec(prop::sample::select(vec!["a", " ", "░", "日", "e\u{301}", "7"]), 0..8);
        let style = (any::<Option<u8>>(), any::<Option<u8>>(), 0..MODIFIERS.len());
        let put = (0..SIZE.0, 0..SIZE.1, text, style);
        prop::collection::vec(put, 0..8).prop_map(|puts| {
            let mut buf = Buffer::empty(Rect::new(0, 0, SIZE.0, SIZE.1));
            for (x, y, text, (fg, bg, modifier)) in puts {
                let (fg, bg) = (fg.map(Color::Indexed), bg.map(Color::Indexed));
                let style = Style { fg, bg, add_modifier: MODIFIERS[modifier].0 };
                buf.put(x, y, SIZE.0, &text.concat(), style);
            }
            buf.mend();
            buf
        })
    }

    fn terminal() -> vt100::Parser {
        let [rows, columns] = [SIZE.1, SIZE.0].map(|size| NonZero::new(size).unwrap());
        vt100::Parser::new(rows, columns, 0)
    }

    /// The symbols and looks that a terminal shows.
    fn shown(terminal: &vt100::Parser) -> Vec<String> {
        let cells = (0..SIZE.1).flat_map(|y| (0..SIZE.0).filter_map(move |x| terminal.screen().cell(y, x)));
        let blank = |text: &str| if text.is_empty() { " ".to_owned() } else { text.to_owned() };
        let look = |cell: &vt100::Cell| {
            let modifiers = (cell.bold(), cell.dim(), cell.italic(), cell.underline(), cell.inverse());
            format!("{} {:?} {:?} {modifiers:?}", blank(cell.contents()), cell.fgcolor(), cell.bgcolor())
        };
        cells.filter(|cell| !cell.is_wide_continuation()).map(look).collect()
    }

    proptest! {
        /// A terminal that got the changes shows what one shows that got the whole picture.
        #[test]
        fn changes_lead_to_the_same_picture_as_all_of_it(first in picture(), second in picture()) {
            let blank = Buffer::empty(first.area);
            let mut one = terminal();
            one.process(changes(&blank, &first).as_bytes());
            one.process(changes(&first, &second).as_bytes());
            let mut other = terminal();
            other.process(changes(&blank, &second).as_bytes());
            prop_assert_eq!(shown(&one), shown(&other));
        }
    }
}
