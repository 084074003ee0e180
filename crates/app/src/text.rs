//! Text in columns. Strings from processes may hold anything; nothing they hold reaches a terminal unharmed.

use std::borrow::Cow;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Whether every letter is harmless and takes one byte and one column, as nearly all do.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Control characters, which could move a terminal's cursor or break a line, become `?`.
pub fn clean(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return text.into();
    }
    let harmful = |c: char| {
        c.is_control() || matches!(c, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if text.contains(harmful) { text.replace(harmful, "?").into() } else { text.into() }
}

/// What people call a signal: `SIGKILL`.
pub fn signal(number: i32) -> String {
    signal_hook::low_level::signal_name(number).map_or_else(|| format!("signal {number}"), str::to_owned)
}

/// How many columns a text takes.
pub fn width(text: &str) -> usize {
    if is_plain(text) { text.len() } else { text.width() }
}

/// The text cut to a width, with a mark where something was cut off.
pub fn cut(text: &str, columns: usize, mark: char) -> Cow<'_, str> {
    if width(text) <= columns {
        return text.into();
    }
    let mut kept = String::new();
    let mut used = 0;
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide + 1 > columns {
            break;
        }
        used += wide;
        kept.push(c);
    }
    if columns > 0 {
        kept.push(mark);
    }
    kept.into()
}

/// Which side the blanks go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// The text cleaned, cut and filled up to exactly so many columns.
pub fn fit(text: &str, columns: usize, align: Align, mark: char) -> String {
    if text.len() <= columns && is_plain(text) {
        return match align {
            Align::Left => format!("{text:<columns$}"),
            Align::Right => format!("{text:>columns$}"),
        };
    }
    let text = clean(text);
    let text = cut(&text, columns, mark);
    let blanks = " ".repeat(columns.saturating_sub(width(&text)));
    match align {
        Align::Left => format!("{text}{blanks}"),
        Align::Right => format!("{blanks}{text}"),
    }
}

/// The word of a list that is nearest to what was typed.
pub fn nearest<'a>(typed: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    words.min_by_key(|word| distance(typed, word)).filter(|word| distance(typed, word) <= 1 + typed.len() / 3)
}

/// How many letters must be put in, taken out or changed to make one word of the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = changed.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_takes_exactly_its_columns() {
        assert_eq!(fit("python3", 5, Align::Left, '…'), "pyth…");
        assert_eq!(fit("ok", 5, Align::Right, '…'), "   ok");
        assert_eq!(fit("日本語", 5, Align::Left, '…'), "日本…");
        assert_eq!(fit("日本語", 4, Align::Left, '…'), "日… ");
        assert_eq!(fit("x", 0, Align::Left, '…'), "");
    }

    #[test]
    fn nothing_moves_the_cursor() {
        assert_eq!(clean("a\x1b[2J\nb\u{202e}c"), "a?[2J?b?c");
    }

    #[test]
    fn the_nearest_word_is_offered() {
        let words = ["power.draw", "power.limit", "temperature.gpu"];
        assert_eq!(nearest("power.drew", words.into_iter()), Some("power.draw"));
        assert_eq!(nearest("temperature", words.into_iter()), Some("temperature.gpu"));
        assert_eq!(nearest("x", words.into_iter()), None);
        assert_eq!(nearest("zzzzzzzzzzzzzzzzzzzzzzz", words.into_iter()), None);
    }

    proptest::proptest! {
        #[test]
        fn any_text_fits_any_width(text in "\\PC*|.*", columns in 0usize..40) {
            assert_eq!(width(&fit(&text, columns, Align::Left, '~')), columns);
        }
    }
}
