//! Lines that are too long go on in the next one, below where their text begins.

use super::DetailLine;
use crate::paint::columns_of;
use show::text::{clean, width};

/// Where the value of a line begins that has a name in front.
const VALUES: usize = 11;

/// All lines in so many columns. Nothing is cut off.
pub fn fold(lines: Vec<DetailLine>, columns: usize) -> Vec<DetailLine> {
    let mut folded = Vec::with_capacity(lines.len());
    for (text, tone) in lines {
        let text = clean(&text).into_owned();
        if width(&text) <= columns || columns == 0 {
            folded.push((text, tone));
        } else {
            folded.extend(parts(&text, columns).into_iter().map(|part| (part, tone)));
        }
    }
    folded
}

fn parts(text: &str, columns: usize) -> Vec<String> {
    let indent = " ".repeat(indent(text).min(columns / 2));
    let (mut lines, mut line, mut rest) = (Vec::new(), String::new(), text);
    loop {
        let room = columns.saturating_sub(width(&line)).max(1);
        if width(rest) <= room {
            lines.push(line + rest);
            return lines;
        }
        let at = end_of_line(rest, room, lines.is_empty());
        lines.push(line + rest[..at].trim_end());
        rest = rest[at..].trim_start();
        line = indent.clone();
    }
}

/// Where a text is parted: at the last blank within so many columns, or in a word that is longer.
fn end_of_line(text: &str, room: usize, is_first: bool) -> usize {
    let (mut taken, mut blank, mut end) = (0, None, 0);
    for (at, c) in text.char_indices() {
        taken += columns_of(c);
        if taken > room {
            break;
        }
        end = at + c.len_utf8();
        // The name in front stays with the beginning of its value.
        if c == ' ' && !(is_first && at < indent(text)) {
            blank = Some(end);
        }
    }
    let first = text.chars().next().map_or(1, char::len_utf8);
    blank.unwrap_or(end).max(first)
}

/// How far what follows is indented.
fn indent(text: &str) -> usize {
    let blanks = text.len() - text.trim_start().len();
    let has_name = blanks == 0 && text.is_char_boundary(VALUES) && text[..VALUES].ends_with(' ');
    if has_name { VALUES } else { blanks + 2 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paint::Tone;

    fn folded(text: &str, columns: usize) -> Vec<String> {
        fold(vec![(text.to_owned(), Tone::Plain)], columns).into_iter().map(|(text, _)| text).collect()
    }

    #[test]
    fn a_line_goes_on_below_its_value_and_a_long_word_is_parted() {
        assert_eq!(folded("short", 20), ["short"]);
        assert_eq!(
            folded("Command    python3 serve.py --model llama", 26),
            ["Command    python3", "           serve.py", "           --model llama"]
        );
        assert_eq!(folded("  TT_METAL_HOME=/opt/tt/metal", 16), ["  TT_METAL_HOME=", "    /opt/tt/meta", "    l"]);
        assert_eq!(folded("日本語日本語", 5), ["日本", "  語", "  日", "  本", "  語"]);
    }

    proptest::proptest! {
        #[test]
        fn no_line_is_too_long_and_nothing_is_lost(text in "\\PC{0,80}|(Command    )?[a-z日 ]{0,80}", columns in 8usize..60) {
            let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            let lines = folded(&text, columns);
            assert!(lines.iter().all(|line| width(line) <= columns), "{lines:?}");
            assert_eq!(letters(&lines.concat()), letters(&clean(&text)));
        }
    }
}
