//! A line of a descriptor, and what can be read off its start: keys, plain words, quotes.

use crate::topology::TopologyError;

/// What is left to read of a line: neither blank nor comment.
#[derive(Debug, Clone, Copy)]
pub(super) struct YamlLine<'a> {
    pub number: usize,
    pub indent: usize,
    pub text: &'a str,
}

impl YamlLine<'_> {
    pub fn error(&self, what: impl Into<String>) -> TopologyError {
        TopologyError { line: self.number, what: what.into() }
    }

    pub fn is_item(&self) -> bool {
        self.text == "-" || self.text.starts_with("- ")
    }
}

pub(super) fn lines(text: &str) -> Result<Vec<YamlLine<'_>>, TopologyError> {
    let mut lines = Vec::new();
    for (index, whole) in text.trim_start_matches('\u{FEFF}').lines().enumerate() {
        let text = whole.trim_start_matches(' ');
        let line =
            YamlLine { number: index + 1, indent: whole.len() - text.len(), text: without_comment(text).trim_end() };
        match line.text {
            "" => {}
            "---" if lines.is_empty() => {}
            "..." => break,
            "---" => return Err(line.error("a second document begins here")),
            text if text.starts_with('\t') => return Err(line.error("a tab is no indentation")),
            _ => lines.push(line),
        }
    }
    Ok(lines)
}

/// A comment begins with a `#` at the start or behind a space, but not within quotes.
fn without_comment(text: &str) -> &str {
    let mut before = ' ';
    // Whether a quote would open a scalar here; anywhere else it is a letter like others.
    let mut fresh = true;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if c == '#' && before.is_whitespace() {
            return &text[..at];
        }
        if fresh && matches!(c, '"' | '\'') {
            let Ok((_, bytes)) = unquote(&text[at..]) else { return text };
            (at, before, fresh) = (at + bytes, c, false);
            continue;
        }
        fresh = match c {
            ' ' => fresh || matches!(before, ':' | '-'),
            _ => matches!(c, ',' | '[' | '{'),
        };
        (at, before) = (at + c.len_utf8(), c);
    }
    text
}

/// Where a colon ends a key: one before a space or at the end.
pub(super) fn has_colon(text: &str) -> Option<usize> {
    text.match_indices(':').map(|(at, _)| at).find(|at| matches!(text.as_bytes().get(at + 1), None | Some(b' ')))
}

/// The key that a line begins with, if it does, and the text after its colon.
pub(super) fn split_key(line: YamlLine<'_>) -> Result<Option<(String, &str)>, TopologyError> {
    match line.text.as_bytes().first() {
        Some(b'[' | b'{') => Ok(None),
        Some(b'"' | b'\'') => {
            let (key, bytes) = unquote(line.text).map_err(|what| line.error(what))?;
            let rest = line.text[bytes..].trim_start().strip_prefix(':');
            Ok(rest.filter(|rest| rest.is_empty() || rest.starts_with(' ')).map(|rest| (key, rest.trim_start())))
        }
        _ => {
            let Some(colon) = has_colon(line.text) else { return Ok(None) };
            let (key, rest) = line.text.split_at(colon);
            Ok(Some((plain(line, key.trim_end())?, rest[1..].trim_start())))
        }
    }
}

pub(super) fn plain(line: YamlLine<'_>, text: &str) -> Result<String, TopologyError> {
    match text.chars().next() {
        None => Err(line.error("a value is missing")),
        Some(c @ ('&' | '*' | '!' | '|' | '>' | '%' | '@' | '`' | '?')) => {
            Err(line.error(format!("a value that begins with {c:?} is not understood")))
        }
        Some(_) => Ok(text.to_owned()),
    }
}

/// The text between the quotes that a text begins with, and how many bytes it takes with them.
pub(super) fn unquote(quoted: &str) -> Result<(String, usize), &'static str> {
    let mut characters = quoted.char_indices().peekable();
    let quote = characters.next().map(|(_, c)| c);
    let mut text = String::new();
    while let Some((at, c)) = characters.next() {
        if Some(c) == quote {
            // Two single quotes within single quotes are one.
            match characters.peek() {
                Some((_, '\'')) if c == '\'' => {
                    characters.next();
                }
                _ => return Ok((text, at + c.len_utf8())),
            }
        } else if c == '\\' && quote == Some('"') {
            match characters.next() {
                Some((_, c @ ('\\' | '"' | '/'))) => text.push(c),
                _ => return Err("a backslash in quotes is not understood"),
            }
            continue;
        }
        text.push(c);
    }
    Err("a quote is not closed")
}
