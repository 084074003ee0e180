//! A scanner of Rust text: what is code and what is not, where test modules are, how long functions are.

use std::ops::Range;

/// A function that has a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    /// Its first line, from 1.
    pub line: usize,
    /// From the line with `fn` to that of its last brace.
    pub lines: usize,
}

/// The text with blanks for comments, strings and characters. Lengths and line breaks stay.
pub fn bare(text: &str) -> String {
    let mut bare = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let end = at + hidden(text, at);
        if end > at {
            bare.extend(text[at..end].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
            at = end;
        } else {
            bare.push(c);
            at += c.len_utf8();
        }
    }
    bare
}

/// The bytes of the comment, string or character that begins here; 0 where none does.
fn hidden(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    match rest.as_bytes()[0] {
        b'/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
        b'/' if rest.starts_with("/*") => block_comment(rest),
        b'"' => quoted(rest, '"'),
        b'\'' => character(rest),
        b'r' if !is_inside_word(text, at) => raw_string(rest),
        _ => 0,
    }
}

/// Whether the letter is not the first of a word; a `b` or `c` before a raw string is part of its prefix.
fn is_inside_word(text: &str, at: usize) -> bool {
    let before = &text[..at];
    let before = before.strip_suffix(['b', 'c']).unwrap_or(before);
    before.ends_with(is_word)
}

/// Comments are nested.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        let two = rest.as_bytes().get(at..at + 2);
        match two {
            Some(b"/*") => depth += 1,
            Some(b"*/") => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A character, but not a lifetime.
fn character(rest: &str) -> usize {
    let mut chars = rest[1..].chars();
    match (chars.next(), chars.next()) {
        (Some('\\'), _) => quoted(rest, '\''),
        (Some(c), Some('\'')) => c.len_utf8() + 2,
        _ => 0,
    }
}

fn raw_string(rest: &str) -> usize {
    let hashes = rest[1..].chars().take_while(|c| *c == '#').count();
    let Some(body) = rest[1 + hashes..].strip_prefix('"') else { return 0 };
    let close = format!("\"{}", "#".repeat(hashes));
    let begin = rest.len() - body.len();
    body.find(&close).map_or(rest.len(), |at| begin + at + close.len())
}

/// Where the modules with `#[cfg(test)]` are: from the line of the attribute to that of the last brace.
pub fn test_modules(bare: &str) -> Vec<Range<usize>> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    for (at, attribute) in bare.match_indices("#[cfg(test)]") {
        let is_in_last = blocks.last().is_some_and(|last| last.contains(&at));
        let Some(body) = module_body(&bare[at + attribute.len()..]).filter(|_| !is_in_last) else { continue };
        let open = bare.len() - body.len();
        let begin = bare[..at].rfind('\n').map_or(0, |line| line + 1);
        let end = after_braces(bare, open);
        blocks.push(begin..bare[end..].find('\n').map_or(bare.len(), |rest| end + rest + 1));
    }
    blocks
}

/// The text from the brace of `mod name {`, after other attributes.
fn module_body(mut rest: &str) -> Option<&str> {
    rest = rest.trim_start();
    while let Some(attribute) = rest.strip_prefix("#[") {
        rest = attribute.split_once(']')?.1.trim_start();
    }
    if let Some(shown) = rest.strip_prefix("pub") {
        rest = shown.trim_start();
        rest = rest.strip_prefix('(').map_or(Some(rest), |path| Some(path.split_once(')')?.1))?.trim_start();
    }
    let name = rest.strip_prefix("mod ")?;
    let body = name.trim_start_matches(is_word).trim_start();
    body.starts_with('{').then_some(body)
}

/// The place after the brace that closes the one at `open`.
fn after_braces(bare: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in bare.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return at + 1,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    bare.len()
}

/// The text with blanks in these places.
pub fn without(bare: &str, blocks: &[Range<usize>]) -> String {
    let mut text = String::with_capacity(bare.len());
    let mut at = 0;
    for block in blocks {
        text.push_str(&bare[at..block.start]);
        text.extend(bare[block.clone()].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        at = block.end;
    }
    text + &bare[at..]
}

/// How many lines a part of the text has.
pub fn lines_of(text: &str, part: &Range<usize>) -> usize {
    text[part.clone()].lines().count()
}

/// Every function with a body.
pub fn functions(bare: &str) -> Vec<Function> {
    let places = bare.match_indices("fn ").filter(|(at, _)| !bare[..*at].ends_with(is_word));
    places.filter_map(|(at, _)| function(bare, at)).collect()
}

fn function(bare: &str, at: usize) -> Option<Function> {
    let rest = bare[at + 2..].trim_start();
    let name: String = rest.chars().take_while(|c| is_word(*c)).collect();
    let open = at + opening_brace(&bare[at..])?;
    let lines = lines_of(bare, &(at..after_braces(bare, open)));
    (!name.is_empty()).then(|| Function { name, line: bare[..at].matches('\n').count() + 1, lines })
}

/// The brace of a function's body; `None` if its declaration ends without one.
fn opening_brace(declaration: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in declaration.bytes().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' if depth == 0 => return None,
            b')' | b']' => depth -= 1,
            b'{' if depth == 0 => return Some(at),
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// Whether a character can be part of an identifier.
pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests;
