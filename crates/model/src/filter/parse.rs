//! From what was typed to a query, or to what is wrong with it.

use super::{Amount, Comparison, Number, Query, Text, lower};
use crate::text::nearest;
use std::fmt;

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// So many characters come before it.
    pub at: usize,
    pub what: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}: {}", self.at + 1, self.what)
    }
}

/// Brackets and `not` in each other go no deeper.
const DEEPEST: usize = 50;

/// Reads a query. An empty one is true of everything.
pub fn parse(text: &str) -> Result<Query, Wrong> {
    let mut reader = Reader { rest: text.chars().collect(), at: 0, depth: 0 };
    reader.skip_blanks();
    if reader.peek().is_none() {
        return Ok(Query::default());
    }
    let query = reader.any()?;
    match reader.peek() {
        None => Ok(query),
        Some(_) => Err(reader.wrong(reader.at, "this bracket was never opened")),
    }
}

/// A text as it must be typed to be read as itself. A word that stands alone must not look like anything else.
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

struct Reader {
    rest: Vec<char>,
    at: usize,
    depth: usize,
}

impl Reader {
    fn wrong(&self, at: usize, what: impl Into<String>) -> Wrong {
        Wrong { at, what: what.into() }
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
        let end = self.word_end();
        let is_it = self.rest[self.at..end].iter().collect::<String>().eq_ignore_ascii_case(word);
        if is_it {
            self.at = end;
            self.skip_blanks();
        }
        is_it
    }

    /// Where the unquoted word that begins here ends.
    fn word_end(&self) -> usize {
        let ends = |c: &char| c.is_whitespace() || matches!(c, '(' | ')' | '"');
        self.rest[self.at..].iter().position(ends).map_or(self.rest.len(), |n| self.at + n)
    }

    fn any(&mut self) -> Result<Query, Wrong> {
        let mut any = vec![self.all()?];
        while self.connective("or") {
            any.push(self.all()?);
        }
        Ok(single(any, Query::Any))
    }

    fn all(&mut self) -> Result<Query, Wrong> {
        let mut all = vec![self.term()?];
        loop {
            let joined = self.connective("and");
            let ends = self.peek().is_none_or(|c| c == ')') || self.is_before("or");
            if ends && !joined {
                return Ok(single(all, Query::All));
            }
            all.push(self.term()?);
        }
    }

    fn is_before(&self, word: &str) -> bool {
        self.rest[self.at..self.word_end()].iter().collect::<String>().eq_ignore_ascii_case(word)
    }

    fn term(&mut self) -> Result<Query, Wrong> {
        let at = self.at;
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.wrong(at, "too many brackets or `not`s in each other"));
        }
        let query = self.term_within();
        self.depth -= 1;
        self.skip_blanks();
        query
    }

    fn term_within(&mut self) -> Result<Query, Wrong> {
        let at = self.at;
        let Some(c) = self.peek() else { return Err(self.wrong(at, "something to look for is missing")) };
        if self.connective("not") {
            return Ok(Query::Not(Box::new(self.term()?)));
        }
        if is_connective(&self.rest[at..self.word_end()].iter().collect::<String>()) {
            return Err(self.wrong(at, "something to look for is missing before this"));
        }
        match c {
            '-' => {
                self.at += 1;
                if self.peek().is_none_or(char::is_whitespace) {
                    return Err(self.wrong(at, "a term must follow `-`"));
                }
                Ok(Query::Not(Box::new(self.term()?)))
            }
            '(' => {
                self.at += 1;
                self.skip_blanks();
                if self.peek() == Some(')') {
                    return Err(self.wrong(at, "nothing is between these brackets"));
                }
                let query = self.any()?;
                if self.peek() != Some(')') {
                    return Err(self.wrong(at, "this bracket is never closed"));
                }
                self.at += 1;
                Ok(query)
            }
            ')' => Err(self.wrong(at, "something to look for is missing before this bracket")),
            _ => self.test(),
        }
    }

    /// A field and what it shall be, or a word.
    fn test(&mut self) -> Result<Query, Wrong> {
        let at = self.at;
        if self.peek() == Some('"') {
            return Ok(Query::Word(lower(&self.text()?)));
        }
        let end = self.word_end();
        let is_operator = |c: &char| matches!(c, ':' | '~' | '<' | '>');
        let Some(n) = self.rest[at..end].iter().position(is_operator) else {
            return Ok(Query::Word(lower(&self.text()?)));
        };
        let name: String = self.rest[at..at + n].iter().collect();
        self.at += n;
        let operator = self.operator();
        let same = |field: &str| field.eq_ignore_ascii_case(&name);
        if let Some(&field) = Text::ALL.iter().find(|field| same(field.name())) {
            let value_at = self.at;
            let value = lower(&self.text()?);
            return match operator {
                ":" if value.is_empty() => Err(self.wrong(value_at, format!("a text must follow `{name}:`"))),
                ":" => Ok(Query::Equals(field, value)),
                "~" => Ok(Query::Contains(field, value)),
                _ => Err(self.wrong(at + n, format!("`{}` takes `:` or `~`, as it is no number", field.name()))),
            };
        }
        if let Some(&field) = Number::ALL.iter().find(|field| same(field.name())) {
            let comparison = Comparison::ALL.iter().copied().find(|comparison| comparison.name() == operator);
            let fits = |comparison: &Comparison| *comparison != Comparison::Equal || field == Number::Pid;
            let Some(comparison) = comparison.filter(fits) else {
                return Err(self.wrong(at + n, format!("`{}` takes > < >= or <=, as it is a number", field.name())));
            };
            return Ok(Query::Compare(field, comparison, self.amount(field)?));
        }
        let names = || Text::ALL.iter().map(|field| field.name()).chain(Number::ALL.iter().map(|field| field.name()));
        let what = match nearest(&lower(&name), names()) {
            _ if name.is_empty() => format!("a field must come before `{operator}`"),
            Some(near) => format!("unknown field \"{name}\": did you mean {near}?"),
            None => format!("unknown field \"{name}\": {}", names().collect::<Vec<_>>().join(" ")),
        };
        Err(self.wrong(at, what))
    }

    /// Reads the operator that is here.
    fn operator(&mut self) -> &'static str {
        let next = self.rest.get(self.at + 1);
        let operator = match (self.peek(), next) {
            (Some('>'), Some('=')) => ">=",
            (Some('<'), Some('=')) => "<=",
            (Some('>'), _) => ">",
            (Some('<'), _) => "<",
            (Some('~'), _) => "~",
            _ => ":",
        };
        self.at += operator.len();
        operator
    }

    /// Reads a word, or a text in quotes.
    fn text(&mut self) -> Result<String, Wrong> {
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
        if in_quotes { Err(self.wrong(at, "this quote is never closed")) } else { Ok(text) }
    }

    fn amount(&mut self, field: Number) -> Result<Amount, Wrong> {
        let at = self.at;
        let end = self.word_end();
        let typed: String = self.rest[at..end].iter().collect();
        self.at = end;
        let digits = typed.trim_end_matches(|c: char| !c.is_ascii_digit() && c != '.');
        let number = digits.parse::<f64>().ok().filter(|number| number.is_finite());
        let number = number.filter(|_| digits.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-')));
        let letters = &typed[digits.len()..];
        // `1G`, `1GB` and `1GiB` are the same here, as everywhere in this program.
        let letter = letters.strip_suffix(['B', 'b']).filter(|_| field.units().contains(&'K')).unwrap_or(letters);
        let letter = if letter.len() > 1 { letter.strip_suffix('i').unwrap_or(letter) } else { letter };
        let unit = field.units().iter().copied().find(|unit| unit.to_string().eq_ignore_ascii_case(letter));
        match number {
            Some(number) if letter.is_empty() || unit.is_some() => Ok(Amount { number, unit }),
            _ => {
                let example = match field {
                    Number::Pid => "4711",
                    Number::Cpu | Number::Share | Number::Utilization => "50",
                    Number::Age => "90, 10s, 5m, 2h or 1d",
                    _ => "4096, 512K, 100M, 1.5G or 1T",
                };
                Err(self.wrong(at, format!("`{}` is compared with a number, as in {example}", field.name())))
            }
        }
    }
}

/// What stands alone needs no list.
fn single(mut all: Vec<Query>, many: fn(Vec<Query>) -> Query) -> Query {
    match (all.len(), all.pop()) {
        (1, Some(one)) => one,
        (_, last) => {
            all.extend(last);
            many(all)
        }
    }
}
