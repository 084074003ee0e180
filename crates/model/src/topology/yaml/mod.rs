//! The part of YAML that cluster descriptors are written in.
//!
//! Block mappings and sequences, flow ones over any number of lines, plain and quoted scalars, comments, one document.
//! Anchors, tags, block scalars, scalars over several lines and tabs as indentation are refused, with the line.
//! A scalar stays the text that it is: what looks like a number is the reader's affair.

mod line;

use super::TopologyError;
use line::{YamlLine, has_colon, lines, plain, split_key, unquote};
use std::collections::BTreeSet;

/// A value, and the line on which it begins, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct YamlNode {
    pub line: usize,
    pub value: YamlValue,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum YamlValue {
    /// Text without its quotes. Empty where nothing is written.
    Scalar(String),
    List(Vec<YamlNode>),
    /// In the order of the text, each key once.
    Map(Vec<(YamlNode, YamlNode)>),
}

/// Reads one document.
pub(super) fn parse(text: &str) -> Result<YamlNode, TopologyError> {
    let mut parser = YamlParser { lines: lines(text)?, at: 0 };
    if parser.lines.is_empty() {
        return Err(TopologyError { line: 1, what: "there is nothing in it".into() });
    }
    let node = parser.block(0)?;
    match parser.lines.get(parser.at) {
        None => Ok(node),
        Some(line) => Err(line.error("this belongs to nothing above it")),
    }
}

/// No descriptor is nested deeper than four levels.
const MAX_DEPTH: usize = 32;

struct YamlParser<'a> {
    lines: Vec<YamlLine<'a>>,
    /// The line that is read next.
    at: usize,
}

impl<'a> YamlParser<'a> {
    fn line(&self) -> Option<YamlLine<'a>> {
        self.lines.get(self.at).copied()
    }

    /// What is wrong where the text has come to its end.
    fn ended(&self, what: &str) -> TopologyError {
        TopologyError { line: self.lines.last().map_or(1, |line| line.number), what: what.into() }
    }

    /// The value that begins at the current line, and all of the lines that belong to it.
    fn block(&mut self, depth: usize) -> Result<YamlNode, TopologyError> {
        let Some(line) = self.line() else { return Err(self.ended("a value is missing")) };
        if depth > MAX_DEPTH {
            return Err(line.error("this is nested too deeply"));
        }
        if line.is_item() {
            self.list(line, depth)
        } else if split_key(line)?.is_some() {
            self.map(line, depth)
        } else {
            self.inline(depth)
        }
    }

    fn list(&mut self, first: YamlLine<'a>, depth: usize) -> Result<YamlNode, TopologyError> {
        let mut items = Vec::new();
        while let Some(line) = self.line().filter(|line| line.indent == first.indent && line.is_item()) {
            let rest = line.text[1..].trim_start_matches(' ');
            if rest.is_empty() {
                self.at += 1;
                items.push(self.below(line, line.indent + 1, depth)?);
            } else {
                // The text after the dash is a block of its own, as if the dash were a space.
                let indent = line.indent + line.text.len() - rest.len();
                self.lines[self.at] = YamlLine { indent, text: rest, ..line };
                items.push(self.block(depth + 1)?);
            }
        }
        self.must_not_be_deeper(first.indent)?;
        Ok(YamlNode { line: first.number, value: YamlValue::List(items) })
    }

    fn map(&mut self, first: YamlLine<'a>, depth: usize) -> Result<YamlNode, TopologyError> {
        let mut keys = BTreeSet::new();
        let mut members = Vec::new();
        while let Some(line) = self.line().filter(|line| line.indent == first.indent && !line.is_item()) {
            let (key, rest) = split_key(line)?.ok_or_else(|| line.error("a key and a colon are expected here"))?;
            if !keys.insert(key.clone()) {
                return Err(twice(line.number, &key));
            }
            let value = if rest.is_empty() {
                self.at += 1;
                // The items of a list may be right below their key.
                let item = self.line().is_some_and(|next| next.is_item());
                self.below(line, line.indent + usize::from(!item), depth)?
            } else {
                self.lines[self.at] = YamlLine { text: rest, ..line };
                self.inline(depth + 1)?
            };
            members.push((YamlNode { line: line.number, value: YamlValue::Scalar(key) }, value));
        }
        self.must_not_be_deeper(first.indent)?;
        Ok(YamlNode { line: first.number, value: YamlValue::Map(members) })
    }

    /// The block on the next lines if they are indented enough, nothing otherwise.
    fn below(&mut self, above: YamlLine<'a>, indent: usize, depth: usize) -> Result<YamlNode, TopologyError> {
        match self.line() {
            Some(next) if next.indent >= indent => self.block(depth + 1),
            _ => Ok(YamlNode { line: above.number, value: YamlValue::Scalar(String::new()) }),
        }
    }

    fn must_not_be_deeper(&self, indent: usize) -> Result<(), TopologyError> {
        match self.line() {
            Some(line) if line.indent > indent => Err(line.error("this is indented deeper than what it belongs to")),
            _ => Ok(()),
        }
    }

    /// A scalar, or a flow collection, that is all the rest of its last line.
    fn inline(&mut self, depth: usize) -> Result<YamlNode, TopologyError> {
        let Some(line) = self.line() else { return Err(self.ended("a value is missing")) };
        let node = match line.text.as_bytes().first() {
            Some(b'[' | b'{') => self.flow(depth)?,
            Some(b'"' | b'\'') => self.quoted()?,
            _ => {
                if has_colon(line.text).is_some() {
                    return Err(line.error("a second colon on one line"));
                }
                let node = YamlNode { line: line.number, value: YamlValue::Scalar(plain(line, line.text)?) };
                self.advance(line.text.len());
                node
            }
        };
        match self.line() {
            Some(line) if !line.text.is_empty() => {
                let behind: String = line.text.chars().take(40).collect();
                Err(line.error(format!("{behind:?} comes after a value")))
            }
            _ => {
                self.at += 1;
                Ok(node)
            }
        }
    }

    /// Takes bytes off the current line, and leaves what follows the spaces behind them.
    fn advance(&mut self, bytes: usize) {
        if let Some(line) = self.lines.get_mut(self.at) {
            line.text = line.text[bytes..].trim_start();
        }
    }

    /// The next character of a flow collection, on whichever line it is.
    fn peek(&mut self) -> Result<char, TopologyError> {
        while let Some(line) = self.line() {
            match line.text.chars().next() {
                Some(c) => return Ok(c),
                None => self.at += 1,
            }
        }
        Err(self.ended("a bracket is not closed"))
    }

    fn flow(&mut self, depth: usize) -> Result<YamlNode, TopologyError> {
        let open = self.peek()?;
        let Some(line) = self.line() else { return Err(self.ended("a bracket is not closed")) };
        if depth > MAX_DEPTH {
            return Err(line.error("this is nested too deeply"));
        }
        let value = match open {
            '[' => YamlValue::List(self.items(']', depth)?.into_iter().map(single).collect()),
            '{' => {
                let mut keys = BTreeSet::new();
                let mut members = Vec::new();
                for (key, value) in self.items('}', depth)? {
                    let YamlValue::Scalar(text) = &key.value else {
                        return Err(TopologyError { line: key.line, what: "a key must be a word".into() });
                    };
                    if !keys.insert(text.clone()) {
                        return Err(twice(key.line, text));
                    }
                    let nothing = YamlNode { line: key.line, value: YamlValue::Scalar(String::new()) };
                    members.push((key, value.unwrap_or(nothing)));
                }
                YamlValue::Map(members)
            }
            '"' | '\'' => return self.quoted(),
            _ => {
                let end = line.text.find([',', '[', ']', '{', '}']).unwrap_or(line.text.len());
                let end = has_colon(&line.text[..end]).unwrap_or(end);
                let text = plain(line, line.text[..end].trim_end())?;
                self.advance(end);
                YamlValue::Scalar(text)
            }
        };
        Ok(YamlNode { line: line.number, value })
    }

    /// The items between two brackets: values, some with another behind a colon.
    fn items(&mut self, close: char, depth: usize) -> Result<Vec<(YamlNode, Option<YamlNode>)>, TopologyError> {
        self.advance(1);
        let mut items = Vec::new();
        loop {
            if self.peek()? == close {
                self.advance(1);
                return Ok(items);
            }
            let item = self.flow(depth + 1)?;
            let mut value = None;
            if self.peek()? == ':' {
                self.advance(1);
                let nothing = [',', close].contains(&self.peek()?);
                value = if nothing { None } else { Some(self.flow(depth + 1)?) };
            }
            items.push((item, value));
            match (self.peek()?, self.line()) {
                (',', _) => self.advance(1),
                (c, Some(line)) if c != close => {
                    return Err(line.error(format!("a comma or {close:?} is expected before {c:?}")));
                }
                _ => {}
            }
        }
    }

    /// A scalar in quotes, which ends on its line.
    fn quoted(&mut self) -> Result<YamlNode, TopologyError> {
        let Some(line) = self.line() else { return Err(self.ended("a value is missing")) };
        let (text, bytes) = unquote(line.text).map_err(|what| line.error(what))?;
        self.advance(bytes);
        Ok(YamlNode { line: line.number, value: YamlValue::Scalar(text) })
    }
}

fn twice(line: usize, key: &str) -> TopologyError {
    TopologyError { line, what: format!("{:?} is here twice", key.chars().take(40).collect::<String>()) }
}

/// `[0: 1]` is a list of a mapping.
fn single((item, value): (YamlNode, Option<YamlNode>)) -> YamlNode {
    match value {
        Some(value) => YamlNode { line: item.line, value: YamlValue::Map(vec![(item, value)]) },
        None => item,
    }
}

#[cfg(test)]
mod tests;
