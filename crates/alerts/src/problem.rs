//! What is wrong with a configuration file, and where.

/// Something in the file that was not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// From one on.
    pub line: usize,
    /// For people.
    pub what: String,
}

/// The line of a place in a text, from one on.
pub fn line_of(text: &str, span: Option<std::ops::Range<usize>>) -> usize {
    let start = span.map_or(0, |span| span.start.min(text.len()));
    text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1
}
