//! The part of an address behind the question mark.

use super::answer::HttpRefusal;
use hyper::StatusCode;
use std::str::FromStr;

/// What was asked for, by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct UrlQuery(Vec<(String, String)>);

impl UrlQuery {
    /// Parses it. An unknown name is refused, so that a typing error does not return everything.
    pub fn parse(text: &str, known: &[&str]) -> Result<UrlQuery, HttpRefusal> {
        let mut all: Vec<(String, String)> = Vec::new();
        for part in text.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            if !known.contains(&name.as_str()) {
                let names = known.join(", ");
                return Err(refuse(match known {
                    [] => format!("no parameters are known here, so {name:?} is none"),
                    _ => format!("there is no parameter {name:?} here: known are {names}"),
                }));
            }
            if all.iter().any(|(other, _)| *other == name) {
                return Err(refuse(format!("{name} is there twice: separate several values with commas")));
            }
            all.push((name, value));
        }
        Ok(UrlQuery(all))
    }

    /// A value. An empty one is none.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, value)| other == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    /// A value that is a number, or another thing that can be read.
    pub fn number<T: FromStr>(&self, name: &str, what: &str) -> Result<Option<T>, HttpRefusal> {
        let Some(value) = self.get(name) else { return Ok(None) };
        value.parse().map(Some).map_err(|_| refuse(format!("{name}={value:?} is no {what}")))
    }

    /// Several values with commas between them.
    pub fn list(&self, name: &str) -> Vec<&str> {
        self.get(name)
            .into_iter()
            .flat_map(|value| value.split(','))
            .map(str::trim)
            .filter(|one| !one.is_empty())
            .collect()
    }

    /// How many, and leaving out how many.
    pub fn page(&self) -> Result<(Option<usize>, usize), HttpRefusal> {
        let limit = self.number::<usize>("limit", LIMIT)?;
        if let Some(limit) = limit.filter(|limit| !(1..=MOST).contains(limit)) {
            return Err(refuse(format!("limit={limit} is no {LIMIT}")));
        }
        Ok((limit, self.count("offset")?.unwrap_or(0) as usize))
    }

    /// A value that counts something. As large as programs that read JSON can take it.
    pub fn count(&self, name: &str) -> Result<Option<u64>, HttpRefusal> {
        let what = "whole number from 0 on";
        let value = self.number::<i64>(name, what)?;
        let checked = |value| u64::try_from(value).map_err(|_| refuse(format!("{name}={value} is no {what}")));
        value.map(checked).transpose()
    }
}

/// The most entries of one answer.
pub const MOST: usize = 10_000;
const LIMIT: &str = "number from 1 to 10000";

pub fn refuse(reason: String) -> HttpRefusal {
    HttpRefusal::new(StatusCode::BAD_REQUEST, reason)
}

fn decode(text: &str) -> Result<String, HttpRefusal> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |at: usize| rest.get(at).and_then(|byte| char::from(*byte).to_digit(16));
                let (Some(high), Some(low)) = (digit(0), digit(1)) else {
                    return Err(refuse("a % in the address is not followed by two hexadecimal digits".into()));
                };
                rest = &rest[2..];
                (high * 16 + low) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| refuse("the address is not UTF-8 behind its question mark".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str) -> String {
        let query = UrlQuery::parse(text, &["limit", "name"]);
        query.and_then(|query| query.page()).unwrap_err().reason
    }

    #[test]
    fn values_are_decoded_and_lists_are_parted() {
        let query = UrlQuery::parse("name=a%20b+c,%c3%a9&&limit=", &["limit", "name"]).unwrap();
        assert_eq!(query.get("name"), Some("a b c,é"));
        assert_eq!(query.list("name"), ["a b c", "é"]);
        assert_eq!(query.get("limit"), None);
        assert_eq!(query.page().unwrap(), (None, 0));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(why("nmae=x"), r#"there is no parameter "nmae" here: known are limit, name"#);
        assert_eq!(why("limit=0"), "limit=0 is no number from 1 to 10000");
        assert_eq!(why("limit=10001"), "limit=10001 is no number from 1 to 10000");
        assert_eq!(why("limit=-1"), r#"limit="-1" is no number from 1 to 10000"#);
        assert_eq!(why("name=%zz"), "a % in the address is not followed by two hexadecimal digits");
        assert_eq!(why("name=%ff"), "the address is not UTF-8 behind its question mark");
        assert_eq!(why("name=a&name=b"), "name is there twice: separate several values with commas");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_query_or_refused(text in "\\PC*") {
            let _ = UrlQuery::parse(&text, &["limit", "name"]);
        }
    }
}
