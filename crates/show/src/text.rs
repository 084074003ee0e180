//! Text in columns. Strings from processes may hold anything; nothing they hold reaches a terminal unharmed.

pub use model::text::{clean, nearest};
use std::borrow::Cow;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Whether every letter is harmless and takes one byte and one column, as nearly all do.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// What people call a signal: `SIGKILL`.
pub fn signal(number: i32) -> String {
    signal_hook::low_level::signal_name(number).map_or_else(|| format!("signal {number}"), str::to_owned)
}

/// `1 process`, `2 processes`
pub fn count(n: u64, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}

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

    proptest::proptest! {
        #[test]
        fn any_text_fits_any_width(text in "\\PC*|.*", columns in 0usize..40) {
            assert_eq!(width(&fit(&text, columns, Align::Left, '~')), columns);
        }
    }
}
