//! Text in columns. Strings from processes may hold anything; nothing they hold reaches a terminal unharmed.

use model::DeviceId;
pub use model::text::{clean, did_you_mean, nearest};
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

/// Devices in short: `0-3`, `0,2`.
pub fn in_short(ids: &[&DeviceId]) -> String {
    let mut ids = ids.to_vec();
    ids.sort();
    let mut parts: Vec<String> = Vec::new();
    let mut rest = &ids[..];
    while let [first, ..] = rest {
        // Remote chips have numbers of others; they are never part of a run.
        let follows = |n: usize| first.index().is_some_and(|i| rest[n].index() == i.checked_add(n as u32));
        let run = (1..rest.len()).take_while(|&n| follows(n)).count() + 1;
        let run = if run > 2 { run } else { 1 };
        parts.push(if run > 2 { format!("{first}-{}", rest[run - 1]) } else { first.to_string() });
        rest = &rest[run..];
    }
    parts.join(",")
}

/// Columns that a text takes on a terminal.
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
    /// Text on the left.
    Left,
    /// Text on the right.
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

/// Lines of so many columns, parted at blanks.
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if width(line) + width(word) < columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
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
    fn devices_are_listed_in_short() {
        let short = |ids: &[DeviceId]| in_short(&ids.iter().collect::<Vec<_>>());
        let local = DeviceId::Local;
        assert_eq!(short(&[]), "");
        assert_eq!(short(&[local(0), local(2)]), "0,2");
        assert_eq!(short(&[local(1), local(0)]), "0,1");
        assert_eq!(short(&[local(0), local(1), local(2), local(3), local(7)]), "0-3,7");
        assert_eq!(short(&[local(2), DeviceId::Remote(2)]), "2,2R");
        assert_eq!(short(&(0..32).map(local).collect::<Vec<_>>()), "0-31");
        assert_eq!(short(&[local(u32::MAX - 1), local(u32::MAX)]), "4294967294,4294967295");
    }

    proptest::proptest! {
        #[test]
        fn any_text_fits_any_width(text in "\\PC*|.*", columns in 0usize..40) {
            assert_eq!(width(&fit(&text, columns, Align::Left, '~')), columns);
        }
    }
}
