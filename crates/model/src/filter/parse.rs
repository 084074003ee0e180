//! From a text to a filter, or to what is wrong with it.

use super::fields::FilterField;
use super::{Amount, FilterError, Node, lower};
use crate::Comparison;
use crate::figure::Unit;
use crate::text::nearest;

/// How deep brackets and `not` may be nested: the stack has an end.
const DEEPEST: usize = 50;

/// Reads a filter. An empty one matches everything.
pub fn parse(text: &str) -> Result<Node, FilterError> {
    let mut parser = FilterParser { rest: text.chars().collect(), at: 0, depth: 0 };
    parser.skip_blanks();
    if parser.peek().is_none() {
        return Ok(Node::default());
    }
    let node = parser.any()?;
    match parser.peek() {
        None => Ok(node),
        Some(_) => Err(parser.wrong(parser.at, "this bracket was not opened")),
    }
}

/// A text as it must be typed to be read as itself. A word alone must not look like anything else.
pub fn quoted(text: &str, alone: bool) -> String {
    let taken = |text: &str| {
        let is_operator = |c: char| matches!(c, ':' | '~' | '<' | '>');
        is_connective(text) || text.starts_with('-') || text.contains(is_operator)
    };
    let plain = |c: char| !c.is_whitespace() && !matches!(c, '(' | ')' | '"' | '\\');
    if !text.is_empty() && text.chars().all(plain) && !(alone && taken(text)) {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted + "\""
}

fn is_connective(word: &str) -> bool {
    ["and", "or", "not"].iter().any(|connective| word.eq_ignore_ascii_case(connective))
}

struct FilterParser {
    rest: Vec<char>,
    at: usize,
    depth: usize,
}

impl FilterParser {
    fn wrong(&self, at: usize, what: impl Into<String>) -> FilterError {
        FilterError { at, what: what.into(), is_incomplete: false }
    }

    /// The text ends too early.
    fn incomplete(&self, at: usize, what: impl Into<String>) -> FilterError {
        FilterError { is_incomplete: true, ..self.wrong(at, what) }
    }

    fn peek(&self) -> Option<char> {
        self.rest.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    /// Whether a connective comes next; if so it is read.
    fn connective(&mut self, word: &str) -> bool {
        let is_it = self.word().eq_ignore_ascii_case(word);
        if is_it {
            self.at = self.word_end();
            self.skip_blanks();
        }
        is_it
    }

    /// The unquoted word that begins here.
    fn word(&self) -> String {
        self.rest[self.at..self.word_end()].iter().collect()
    }

    /// Where that word ends.
    fn word_end(&self) -> usize {
        let ends = |c: &char| c.is_whitespace() || matches!(c, '(' | ')' | '"');
        self.rest[self.at..].iter().position(ends).map_or(self.rest.len(), |n| self.at + n)
    }

    fn any(&mut self) -> Result<Node, FilterError> {
        let mut any = vec![self.all()?];
        while self.connective("or") {
            any.push(self.all()?);
        }
        Ok(single(any, Node::Any))
    }

    fn all(&mut self) -> Result<Node, FilterError> {
        let mut all = vec![self.term()?];
        loop {
            let joined = self.connective("and");
            let ends = self.peek().is_none_or(|c| c == ')') || self.word().eq_ignore_ascii_case("or");
            if ends && !joined {
                return Ok(single(all, Node::All));
            }
            all.push(self.term()?);
        }
    }

    fn term(&mut self) -> Result<Node, FilterError> {
        let at = self.at;
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.wrong(at, "too many nested brackets or `not`s"));
        }
        let node = self.term_within();
        self.depth -= 1;
        self.skip_blanks();
        node
    }

    fn term_within(&mut self) -> Result<Node, FilterError> {
        let at = self.at;
        let Some(c) = self.peek() else { return Err(self.incomplete(at, "expected a term")) };
        if self.connective("not") {
            return Ok(Node::Not(Box::new(self.term()?)));
        }
        if is_connective(&self.word()) {
            return Err(self.wrong(at, "expected a term before this"));
        }
        match c {
            '-' => {
                self.at += 1;
                if self.peek().is_none_or(char::is_whitespace) {
                    let is_incomplete = self.peek().is_none();
                    return Err(FilterError { is_incomplete, ..self.wrong(at, "expected a term after `-`") });
                }
                Ok(Node::Not(Box::new(self.term()?)))
            }
            '(' => self.bracket(),
            ')' => Err(self.wrong(at, "expected a term before this bracket")),
            _ => self.test(),
        }
    }

    fn bracket(&mut self) -> Result<Node, FilterError> {
        let at = self.at;
        self.at += 1;
        self.skip_blanks();
        if self.peek() == Some(')') {
            return Err(self.wrong(at, "expected a term between these brackets"));
        }
        let node = self.any()?;
        if self.peek() != Some(')') {
            return Err(self.incomplete(at, "this bracket is not closed"));
        }
        self.at += 1;
        Ok(node)
    }

    /// A field with a text or a number, or a word.
    fn test(&mut self) -> Result<Node, FilterError> {
        let (at, end) = (self.at, self.word_end());
        let is_operator = |c: &char| matches!(c, ':' | '~' | '<' | '>');
        let Some(operator_at) = self.rest[at..end].iter().position(is_operator).map(|n| at + n) else {
            return Ok(Node::Word(lower(&self.text()?)));
        };
        let name: String = self.rest[at..operator_at].iter().collect();
        self.at = operator_at;
        let operator = self.operator();
        match FilterField::named(&name) {
            Some(field) if field.unit().is_number() => self.comparison(field, operator, operator_at),
            Some(field) => self.match_of(field, operator, operator_at),
            None if name.is_empty() => Err(self.wrong(at, format!("expected a field before `{operator}`"))),
            None => Err(self.wrong(at, unknown(&name))),
        }
    }

    /// What a text must be or contain.
    fn match_of(&mut self, field: &'static FilterField, operator: &str, at: usize) -> Result<Node, FilterError> {
        let (word, value_at) = (field.word(), self.at);
        let value = lower(&self.text()?);
        match operator {
            ":" if value.is_empty() => {
                let is_incomplete = self.peek().is_none();
                Err(FilterError { is_incomplete, ..self.wrong(value_at, format!("expected a text after `{word}:`")) })
            }
            ":" => Ok(Node::Equals(field, value)),
            "~" => Ok(Node::Contains(field, value)),
            _ => Err(self.wrong(at, format!("`{word}` is a text; expected `:` or `~`"))),
        }
    }

    /// What a number is compared with.
    fn comparison(&mut self, field: &'static FilterField, operator: &str, at: usize) -> Result<Node, FilterError> {
        // What is measured is hardly ever equal.
        let comparison = match operator {
            ":" => (field.unit() == Unit::Count).then_some(Comparison::Is),
            sign => Comparison::named(sign),
        };
        let Some(comparison) = comparison else {
            return Err(self.wrong(at, format!("`{}` is a number; expected > < >= or <=", field.word())));
        };
        Ok(Node::Compare(field, comparison, self.amount(field)?))
    }

    /// Reads the operator that is here.
    fn operator(&mut self) -> &'static str {
        let rest = &self.rest[self.at..];
        let is_here = |sign: &&str| sign.chars().eq(rest.iter().copied().take(sign.len()));
        let operator = [">=", "<=", ">", "<", "~"].into_iter().find(is_here).unwrap_or(":");
        self.at += operator.len();
        operator
    }

    /// Reads a word, or a text in quotes.
    fn text(&mut self) -> Result<String, FilterError> {
        let at = self.at;
        let mut text = String::new();
        let in_quotes = self.peek() == Some('"');
        if in_quotes {
            self.at += 1;
        }
        while let Some(c) = self.peek() {
            match c {
                '"' if in_quotes => {
                    self.at += 1;
                    return Ok(text);
                }
                '\\' if self.rest.get(self.at + 1).is_some() => {
                    self.at += 1;
                    text.push(self.rest[self.at]);
                }
                '"' | '(' | ')' if !in_quotes => break,
                c if c.is_whitespace() && !in_quotes => break,
                c => text.push(c),
            }
            self.at += 1;
        }
        if in_quotes { Err(self.incomplete(at, "this quote is not closed")) } else { Ok(text) }
    }

    fn amount(&mut self, field: &FilterField) -> Result<Amount, FilterError> {
        let (at, end) = (self.at, self.word_end());
        let typed = self.word();
        self.at = end;
        let digits = typed.trim_end_matches(|c: char| !c.is_ascii_digit() && c != '.');
        let number = digits.parse::<f64>().ok().filter(|number| number.is_finite());
        let number = number.filter(|_| digits.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-')));
        let (units, example) = units(field.unit());
        let letters = &typed[digits.len()..];
        // `1G`, `1GB` and `1GiB` are the same here, as everywhere in this program.
        let letter = letters.strip_suffix(['B', 'b']).filter(|_| units == BYTES).unwrap_or(letters);
        let letter = if letter.len() > 1 { letter.strip_suffix('i').unwrap_or(letter) } else { letter };
        let unit = units.iter().copied().find(|(unit, _)| unit.to_string().eq_ignore_ascii_case(letter));
        match number {
            Some(number) if letter.is_empty() || unit.is_some() => Ok(Amount { number, unit }),
            _ => {
                let is_incomplete = end == self.rest.len() && matches!(&typed[..], "" | "-" | "." | "-.");
                let what = format!("expected a number after `{}`, such as {example}", field.word());
                Err(FilterError { is_incomplete, ..self.wrong(at, what) })
            }
        }
    }
}

const BYTES: &[(char, f64)] =
    &[('K', (1u64 << 10) as f64), ('M', (1u64 << 20) as f64), ('G', (1u64 << 30) as f64), ('T', (1u64 << 40) as f64)];

/// The letters that may follow a number, what they multiply it by, and an example.
fn units(unit: Unit) -> (&'static [(char, f64)], &'static str) {
    match unit {
        Unit::Bytes | Unit::BytesPerSecond => (BYTES, "4096, 512K, 100M, 1.5G or 1T"),
        Unit::Percent => (&[('%', 1.0)], "50"),
        Unit::Seconds => (&[('s', 1.0), ('m', 60.0), ('h', 3600.0), ('d', 86400.0)], "90, 10s, 5m, 2h or 1d"),
        _ => (&[], "4711"),
    }
}

fn unknown(name: &str) -> String {
    let words = || FilterField::all().iter().map(FilterField::word);
    let hint = nearest(&lower(name), words()).map_or_else(String::new, |near| format!(" (did you mean {near}?)"));
    format!("unknown field {name:?}{hint}; expected one of {}", words().collect::<Vec<_>>().join(", "))
}

/// A single term needs no list.
fn single(mut all: Vec<Node>, many: fn(Vec<Node>) -> Node) -> Node {
    if all.len() == 1 { all.remove(0) } else { many(all) }
}
