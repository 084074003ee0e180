//! The language in which processes are filtered: in `top`, on the page and in the API.
//!
//! - `word` is anywhere in the name, the command, the user, the container or the pod;
//! - `field:text` equals, `field~text` contains;
//! - `field>number`, `<`, `>=`, `<=` compare: bytes may have a binary K, M, G or T, percentages a %, times an s, m, h or d; a count
//!   such as a pid may also be compared with `:`;
//! - terms one after another must all hold; `or`, `not` or `-`, and brackets combine them;
//! - `"…"` is a text with blanks, brackets or anything else, and `\` takes the next character as it is.
//!
//! Upper and lower case are the same. An unknown value matches nothing, so `not dram>1G` also has processes whose DRAM is unknown.
//! The fields are the rows of the tables of a process and of a process on a device, and four that need the whole snapshot. Reading
//! order: this file, `fields`, `parse`.

mod fields;
mod parse;

use crate::figure::process::{COMMAND, CONTAINER, CONTAINER_NAME, NAME, POD, USER};
use crate::{Comparison, Process, Snapshot};
use fields::FilterField;
use std::fmt;

/// What a process must be. The default matches every process.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter(Node);

/// Why a text is not a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterError {
    /// How many characters come before the place of the error.
    pub at: usize,
    /// What is wrong, and what is expected instead.
    pub what: String,
    /// Whether only the end is missing: more text can make it a filter.
    pub is_incomplete: bool,
}

/// What a filter looks at beside the process itself.
#[derive(Debug, Clone, Copy)]
pub struct FilterContext<'a> {
    /// The snapshot that the process is in: its time for ages, its devices for shares.
    pub snapshot: &'a Snapshot,
    /// How many bytes of device memory the process gains per minute, where that is known.
    pub growth: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    /// Each of them. An empty list matches everything.
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    /// Anywhere in name, command, user, container or pod. In lower case, as all texts here.
    Word(String),
    Equals(&'static FilterField, String),
    Contains(&'static FilterField, String),
    Compare(&'static FilterField, Comparison, Amount),
}

/// A number as it was typed.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Amount {
    number: f64,
    /// The letter of its unit, and what that multiplies it by.
    unit: Option<(char, f64)>,
}

/// The syntax in one line, without the fields.
pub const SYNTAX: &str = "word  field:is  field~has  dram>1G  age<5m  or not ( )";

impl Filter {
    /// Reads a filter. An empty text matches every process.
    pub fn parse(text: &str) -> Result<Filter, FilterError> {
        parse::parse(text).map(Filter)
    }

    /// Whether it matches a process.
    pub fn matches(&self, process: &Process, context: &FilterContext) -> bool {
        self.0.matches(process, context)
    }

    /// The fields that a filter may name: the short word of each.
    pub fn fields() -> impl Iterator<Item = &'static str> {
        FilterField::all().iter().map(|field| field.word())
    }
}

impl Default for Node {
    fn default() -> Node {
        Node::All(Vec::new())
    }
}

impl Node {
    fn matches(&self, process: &Process, context: &FilterContext) -> bool {
        match self {
            Node::All(all) => all.iter().all(|node| node.matches(process, context)),
            Node::Any(any) => any.iter().any(|node| node.matches(process, context)),
            Node::Not(node) => !node.matches(process, context),
            Node::Word(word) => [&NAME, &COMMAND, &USER, &CONTAINER, &CONTAINER_NAME, &POD].iter().any(|row| {
                row.value(process).is_some_and(|value| value.as_text().is_some_and(|text| lower(text).contains(word)))
            }),
            Node::Equals(field, wanted) => field.has(process, |text| text == wanted),
            Node::Contains(field, wanted) => field.has(process, |text| text.contains(wanted)),
            Node::Compare(field, comparison, amount) => field.number(process, context).is_some_and(|value| {
                comparison.holds(value, amount.number * amount.unit.map_or(1.0, |(_, factor)| factor))
            }),
        }
    }
}

fn lower(text: &str) -> String {
    text.to_lowercase()
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}: {}", self.at + 1, self.what)
    }
}

impl std::error::Error for FilterError {}

/// As it could have been typed.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut fmt::Formatter<'_>, all: &[Node], by: &str, bracketed: fn(&Node) -> bool| {
            for (n, node) in all.iter().enumerate() {
                f.write_str(if n > 0 { by } else { "" })?;
                if bracketed(node) { write!(f, "({node})")? } else { write!(f, "{node}")? }
            }
            Ok(())
        };
        match self {
            Node::All(all) => joined(f, all, " ", |node| matches!(node, Node::All(_) | Node::Any(_))),
            Node::Any(any) => joined(f, any, " or ", |node| matches!(node, Node::Any(_))),
            Node::Not(node) if matches!(**node, Node::All(_) | Node::Any(_)) => write!(f, "not ({node})"),
            Node::Not(node) => write!(f, "not {node}"),
            Node::Word(word) => f.write_str(&parse::quoted(word, true)),
            Node::Equals(field, text) => write!(f, "{}:{}", field.word(), parse::quoted(text, false)),
            Node::Contains(field, text) => write!(f, "{}~{}", field.word(), parse::quoted(text, false)),
            Node::Compare(field, comparison, Amount { number, unit }) => {
                let unit = unit.map(|(letter, _)| letter.to_string()).unwrap_or_default();
                let sign = if *comparison == Comparison::Is { ":" } else { comparison.name() };
                write!(f, "{}{sign}{number}{unit}", field.word())
            }
        }
    }
}

#[cfg(test)]
mod tests;
