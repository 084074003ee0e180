//! The part of an address behind the question mark.

use super::answer::HttpRefusal;
use super::routes::{ParamType, Parameter};
use hyper::StatusCode;

/// What was asked for, by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct UrlQuery(Vec<(&'static str, String)>);

impl UrlQuery {
    /// Parses it. An unknown name is refused, so that a typing error does not return everything.
    pub fn parse(text: &str, parameters: &[Parameter]) -> Result<UrlQuery, HttpRefusal> {
        let mut all: Vec<(&'static str, String)> = Vec::new();
        for part in text.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            let Some(parameter) = parameters.iter().find(|parameter| parameter.name == name) else {
                let known: Vec<&str> = parameters.iter().map(|parameter| parameter.name).collect();
                return Err(refuse(match &known[..] {
                    [] => format!("no parameters are known here, so {name:?} is none"),
                    _ => format!("there is no parameter {name:?} here: known are {}", known.join(", ")),
                }));
            };
            if all.iter().any(|(other, _)| *other == name) {
                return Err(refuse(format!("{name} is there twice: separate several values with commas")));
            }
            if let Some(wrong) = parameter.param_type.wrong(&value).filter(|_| !value.is_empty()) {
                return Err(refuse(format!("{name}={value:?} is {wrong}")));
            }
            all.push((parameter.name, value));
        }
        Ok(UrlQuery(all))
    }

    /// A value. An empty one is none.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, value)| *other == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    /// A value that is a number, within the limits of its parameter.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.get(name)?.parse().ok()
    }

    /// Several values with commas between them.
    pub fn list(&self, name: &str) -> Vec<&str> {
        let values = self.get(name).unwrap_or_default().split(',').map(str::trim);
        values.filter(|one| !one.is_empty()).collect()
    }

    /// How many, and leaving out how many.
    pub fn page(&self) -> (Option<usize>, usize) {
        let number = |name| self.number(name).map(|number| number as usize);
        (number("limit"), number("offset").unwrap_or(0))
    }
}

impl ParamType {
    /// What a value is not, though it should be.
    fn wrong(self, value: &str) -> Option<String> {
        match self {
            ParamType::OneOf(words) if !words.contains(&value) => Some(format!("none of {}", words.join(", "))),
            ParamType::Number(least, most) if !value.parse().is_ok_and(|number| (least..=most).contains(&number)) => {
                Some(match (least, most) {
                    (i64::MIN, _) => "no whole number".into(),
                    (least, i64::MAX) => format!("no whole number from {least} on"),
                    (least, most) => format!("no whole number from {least} to {most}"),
                })
            }
            _ => None,
        }
    }
}

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
    use super::super::routes::{LIMIT, parameter};
    use super::*;

    const KNOWN: [Parameter; 2] = [LIMIT, parameter("name", ParamType::Text, "")];

    fn why(text: &str) -> String {
        UrlQuery::parse(text, &KNOWN).unwrap_err().reason
    }

    #[test]
    fn values_are_decoded_and_lists_are_parted() {
        let query = UrlQuery::parse("name=a%20b+c,%c3%a9&&limit=", &KNOWN).unwrap();
        assert_eq!(query.get("name"), Some("a b c,é"));
        assert_eq!(query.list("name"), ["a b c", "é"]);
        assert_eq!(query.get("limit"), None);
        assert_eq!(query.page(), (None, 0));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(why("nmae=x"), r#"there is no parameter "nmae" here: known are limit, name"#);
        assert_eq!(why("limit=0"), r#"limit="0" is no whole number from 1 to 10000"#);
        assert_eq!(why("limit=10001"), r#"limit="10001" is no whole number from 1 to 10000"#);
        assert_eq!(why("limit=-1"), r#"limit="-1" is no whole number from 1 to 10000"#);
        assert_eq!(why("name=%zz"), "a % in the address is not followed by two hexadecimal digits");
        assert_eq!(why("name=%ff"), "the address is not UTF-8 behind its question mark");
        assert_eq!(why("name=a&name=b"), "name is there twice: separate several values with commas");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_query_or_refused(text in "\\PC*") {
            let _ = UrlQuery::parse(&text, &KNOWN);
        }
    }
}
