//! The language in which processes are filtered.
//!
//! - `word` is anywhere in the name, the command, the user or the container;
//! - `field:text` equals, `field~text` contains: dev, pid, user, container, name, command, source, runtime;
//! - `field>number`, `<`, `>=`, `<=`: dram, l1, l1_small, trace, cb, total, rss and growth (per minute) in bytes or with
//!   a binary K, M, G or T; cpu and share in percent; age in seconds or with s, m, h or d; pid;
//! - terms one after another must all hold; `or`, `not` or `-`, and brackets do what they say;
//! - `"…"` is a text with blanks, brackets or anything else, and `\` takes the next character as it is.
//!
//! Capitals do not matter. What is not known matches nothing, so that `not dram>1G` has those of which nothing is known.

mod parse;

use super::row::Row;
use model::{Process, Runtime, Source};
use std::fmt;

pub use parse::{Wrong, parse};

/// What a row must be.
#[derive(Debug, Clone, PartialEq)]
pub enum Query {
    /// All of them. None of them is true of everything.
    All(Vec<Query>),
    Any(Vec<Query>),
    Not(Box<Query>),
    /// Anywhere in what people call a process. In small letters, as all texts here.
    Word(String),
    Equals(Text, String),
    Contains(Text, String),
    Compare(Number, Comparison, Amount),
}

macro_rules! fields {
    ($(#[$doc:meta])* $name:ident { $($variant:ident $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($variant,)+ }

        impl $name {
            pub const ALL: &[$name] = &[$($name::$variant,)+];

            /// As it is typed.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }
        }
    };
}

fields! {
    /// A field that is a text.
    Text {
        Device "dev",
        User "user",
        Container "container",
        Name "name",
        Command "command",
        Source "source",
        Runtime "runtime",
    }
}

fields! {
    /// A field that is a number.
    Number {
        Pid "pid",
        Dram "dram",
        L1 "l1",
        L1Small "l1_small",
        Trace "trace",
        Cb "cb",
        Total "total",
        HostMemory "rss",
        Growth "growth",
        Cpu "cpu",
        Share "share",
        Utilization "util",
        Age "age",
    }
}

fields! {
    /// How a number is compared. What is longer comes first, so that it is found first.
    Comparison {
        AtLeast ">=",
        AtMost "<=",
        More ">",
        Less "<",
        Equal ":",
    }
}

/// A number as it was typed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Amount {
    pub number: f64,
    /// The letter behind it.
    pub unit: Option<char>,
}

impl Default for Query {
    fn default() -> Query {
        Query::All(Vec::new())
    }
}

impl Query {
    /// Whether it is true of a row.
    pub fn matches(&self, row: &Row, process: &Process) -> bool {
        match self {
            Query::All(all) => all.iter().all(|query| query.matches(row, process)),
            Query::Any(any) => any.iter().any(|query| query.matches(row, process)),
            Query::Not(query) => !query.matches(row, process),
            Query::Word(word) => [Text::Name, Text::Command, Text::User, Text::Container]
                .into_iter()
                .any(|field| field.any_of(process, |text| contains(text, word))),
            Query::Equals(field, wanted) => field.any_of(process, |text| lower(text) == *wanted),
            Query::Contains(field, wanted) => field.any_of(process, |text| contains(text, wanted)),
            Query::Compare(field, comparison, amount) => {
                field.of(row, process).is_some_and(|value| comparison.holds(value, amount.value()))
            }
        }
    }
}

/// In small letters.
fn lower(text: &str) -> String {
    text.to_lowercase()
}

fn contains(text: &str, wanted: &str) -> bool {
    lower(text).contains(wanted)
}

impl Text {
    /// Whether something is true of the field, or of one of them where a process has several.
    fn any_of(self, process: &Process, is: impl Fn(&str) -> bool) -> bool {
        match self {
            Text::Device => process.devices.iter().any(|held| is(&held.id.to_string())),
            Text::User => process.user.as_deref().is_some_and(is),
            // The whole, or the id that is shown of it.
            Text::Container => {
                process.container.as_deref().is_some_and(|container| is(container) || is(super::row::short(container)))
            }
            Text::Name => process.name.as_deref().is_some_and(is),
            Text::Command => process.command.as_deref().is_some_and(is),
            Text::Source => {
                process.devices.iter().filter_map(|held| held.source).any(|source| is(Source::name(source)))
            }
            Text::Runtime => process.runtime.map(Runtime::name).is_some_and(is),
        }
    }
}

impl Number {
    fn of(self, row: &Row, process: &Process) -> Option<f64> {
        let bytes = |bytes: Option<model::Bytes>| bytes.map(|bytes| bytes.0 as f64);
        match self {
            Number::Pid => Some(process.pid.into()),
            Number::Dram => bytes(row.usage.dram),
            Number::L1 => bytes(row.usage.l1),
            Number::L1Small => bytes(row.usage.l1_small),
            Number::Trace => bytes(row.usage.trace),
            Number::Cb => bytes(row.usage.cb),
            Number::Total => bytes(row.usage.total()),
            Number::HostMemory => bytes(process.host_memory),
            Number::Growth => row.growth,
            Number::Cpu => process.host_cpu_percent,
            Number::Share => row.share,
            Number::Utilization => row.utilization,
            Number::Age => row.age_seconds,
        }
    }

    /// The letters that may follow its numbers.
    fn units(self) -> &'static [char] {
        match self {
            Number::Pid => &[],
            Number::Cpu | Number::Share | Number::Utilization => &['%'],
            Number::Age => &['s', 'm', 'h', 'd'],
            _ => &['K', 'M', 'G', 'T'],
        }
    }
}

impl Comparison {
    fn holds(self, a: f64, b: f64) -> bool {
        match self {
            Comparison::AtLeast => a >= b,
            Comparison::AtMost => a <= b,
            Comparison::More => a > b,
            Comparison::Less => a < b,
            Comparison::Equal => a == b,
        }
    }
}

impl Amount {
    fn value(self) -> f64 {
        let factor = match self.unit {
            Some('K') => 1024.0,
            Some('M') => 1024.0 * 1024.0,
            Some('G') => 1024.0 * 1024.0 * 1024.0,
            Some('T') => 1024.0 * 1024.0 * 1024.0 * 1024.0,
            Some('m') => 60.0,
            Some('h') => 3600.0,
            Some('d') => 86400.0,
            _ => 1.0,
        };
        self.number * factor
    }
}

/// As it could have been typed.
impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut fmt::Formatter<'_>, all: &[Query], by: &str, bracketed: fn(&Query) -> bool| {
            for (n, query) in all.iter().enumerate() {
                f.write_str(if n > 0 { by } else { "" })?;
                if bracketed(query) { write!(f, "({query})")? } else { write!(f, "{query}")? }
            }
            Ok(())
        };
        match self {
            Query::All(all) => joined(f, all, " ", |query| matches!(query, Query::All(_) | Query::Any(_))),
            Query::Any(any) => joined(f, any, " or ", |query| matches!(query, Query::Any(_))),
            Query::Not(query) if matches!(**query, Query::All(_) | Query::Any(_)) => write!(f, "not ({query})"),
            Query::Not(query) => write!(f, "not {query}"),
            Query::Word(word) => f.write_str(&parse::quoted(word, true)),
            Query::Equals(field, text) => write!(f, "{}:{}", field.name(), parse::quoted(text, false)),
            Query::Contains(field, text) => write!(f, "{}~{}", field.name(), parse::quoted(text, false)),
            Query::Compare(field, comparison, Amount { number, unit }) => {
                let unit = unit.map(String::from).unwrap_or_default();
                write!(f, "{}{}{number}{unit}", field.name(), comparison.name())
            }
        }
    }
}

#[cfg(test)]
mod tests;
