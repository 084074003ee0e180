//! A small reader of the text format, for tests: what the writer means is what it reads.

use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq)]
pub struct MetricLine {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub value: f64,
}

/// All lines that are no comments. Panics at what is none.
pub fn lines(text: &str) -> Vec<MetricLine> {
    text.split_terminator('\n').filter(|line| !line.starts_with('#')).map(line).collect()
}

fn line(text: &str) -> MetricLine {
    let end = text.find(['{', ' ']).unwrap();
    let name = text[..end].to_owned();
    let mut labels = BTreeMap::new();
    let mut rest = &text[end..];
    if let Some(mut inside) = rest.strip_prefix('{') {
        loop {
            let (label, behind) = inside.split_once("=\"").unwrap();
            let (value, behind) = quoted(behind);
            assert!(labels.insert(label.to_owned(), value).is_none(), "{label} twice in {text}");
            match behind.strip_prefix(',') {
                Some(next) => inside = next,
                None => {
                    rest = behind.strip_prefix('}').unwrap();
                    break;
                }
            }
        }
    }
    MetricLine { name, labels, value: rest.strip_prefix(' ').unwrap().parse().unwrap() }
}

/// A value up to its quote, and what is behind that.
fn quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.push(match characters.next().unwrap().1 {
                'n' => '\n',
                c @ ('"' | '\\') => c,
                c => panic!("\\{c} means nothing"),
            }),
            '\n' => panic!("a line within a value"),
            c => value.push(c),
        }
    }
    panic!("no end of {text}")
}
