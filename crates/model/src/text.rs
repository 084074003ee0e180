//! Text from elsewhere, made harmless; and words compared with those that are known.

use std::borrow::Cow;

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

/// The word of a list that is nearest to what was typed.
pub fn nearest<'a>(typed: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    words.min_by_key(|word| distance(typed, word)).filter(|word| distance(typed, word) <= 1 + typed.len() / 3)
}

/// The question that a message asks where a word of a list is near, with a blank behind it; else nothing.
pub fn did_you_mean<'a>(typed: &str, words: impl Iterator<Item = &'a str>) -> String {
    nearest(typed, words).map_or_else(String::new, |near| format!("did you mean {near}? "))
}

/// Numbers in ascending order, with neighbours joined: `0-3 5`.
pub fn ranges(numbers: impl IntoIterator<Item = usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let text = |(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(" ")
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

    #[test]
    fn neighbours_are_joined() {
        assert_eq!(ranges([]), "");
        assert_eq!(ranges([3]), "3");
        assert_eq!(ranges([0, 1, 2, 5, 7, 8]), "0-2 5 7-8");
    }
}
