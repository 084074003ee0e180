//! Reads the text of a rule.

use crate::condition::{BYTES, Compare, Condition, Expr, LONGEST_INCREASE, Op, Value};
use crate::figure::{self, FIGURES, Figure, Kind, STATES, Scope};
use crate::period;
use std::str::FromStr;
use std::time::Duration;

/// Why a text is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {what}")]
pub struct ParseError {
    /// Where, from one on.
    pub column: usize,
    /// What was wrong, and what to write instead.
    pub what: String,
}

/// A word, a number with what stands behind it, or a sign.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Token<'a> {
    column: usize,
    text: &'a str,
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    /// Where the text ends.
    end: usize,
    /// How many parentheses are open.
    depth: usize,
}

/// Nobody needs more, and a stack has an end.
const DEEPEST: usize = 20;

type Parsed<T> = Result<T, ParseError>;

impl FromStr for Condition {
    type Err = ParseError;

    fn from_str(text: &str) -> Parsed<Condition> {
        let mut parser = Parser { tokens: tokens(text)?, at: 0, end: text.chars().count() + 1, depth: 0 };
        let when = parser.either()?;
        let hold = if parser.takes("for") { parser.time()? } else { Duration::ZERO };
        let until = if parser.takes("until") { Some(parser.either()?) } else { None };
        if let Some(token) = parser.peek() {
            let before = if until.is_some() { "" } else { ", for or until" };
            return Err(token.wrong(format!("{:?} was not expected here: there may be and, or{before}", token.text)));
        }
        let condition = Condition { when, hold, until };
        let scopes: Vec<Scope> = condition.compares().iter().map(|compare| compare.figure.scope).collect();
        if scopes.contains(&Scope::Ended) && scopes.iter().any(|scope| *scope != Scope::Ended) {
            let what = "what a process left behind cannot be joined with figures of the living".into();
            return Err(ParseError { column: 1, what });
        }
        Ok(condition)
    }
}

fn tokens(text: &str) -> Parsed<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let mut rest = text.char_indices().enumerate().peekable();
    while let Some((column, (start, c))) = rest.next() {
        let mut end = start + c.len_utf8();
        let mut take_while = |wanted: &dyn Fn(char) -> bool| {
            while let Some((_, (at, next))) = rest.next_if(|(_, (_, next))| wanted(*next)) {
                end = at + next.len_utf8();
            }
        };
        match c {
            c if c.is_whitespace() => continue,
            c if c.is_ascii_alphabetic() || c == '_' => take_while(&|c| c.is_ascii_alphanumeric() || c == '_'),
            c if c.is_ascii_digit() || c == '-' => take_while(&|c| c.is_ascii_alphanumeric() || ".%°".contains(c)),
            '<' | '>' | '=' | '!' => take_while(&|c| c == '='),
            '(' | ')' | ',' => {}
            _ => return Err(ParseError { column: column + 1, what: format!("{c:?} has no meaning here") }),
        }
        tokens.push(Token { column: column + 1, text: &text[start..end] });
    }
    Ok(tokens)
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    fn takes(&mut self, text: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.text == text);
        self.at += usize::from(found);
        found
    }

    fn next(&mut self, wanted: &str) -> Parsed<Token<'a>> {
        let what = || format!("the rule ends here, and {wanted} is missing");
        let token = self.peek().ok_or_else(|| ParseError { column: self.end, what: what() })?;
        self.at += 1;
        Ok(token)
    }

    fn expect(&mut self, text: &str) -> Parsed<()> {
        let token = self.next(text)?;
        if token.text == text { Ok(()) } else { Err(token.wrong(format!("{text} is needed, not {:?}", token.text))) }
    }

    fn either(&mut self) -> Parsed<Expr> {
        let mut all = vec![self.both()?];
        while self.takes("or") {
            all.push(self.both()?);
        }
        Ok(joined(all, Expr::Or))
    }

    fn both(&mut self) -> Parsed<Expr> {
        let mut all = vec![self.one()?];
        while self.takes("and") {
            all.push(self.one()?);
        }
        Ok(joined(all, Expr::And))
    }

    fn one(&mut self) -> Parsed<Expr> {
        if let Some(token) = self.peek().filter(|token| token.text == "(") {
            self.at += 1;
            self.depth += 1;
            if self.depth > DEEPEST {
                return Err(token.wrong(format!("there are more than {DEEPEST} parentheses in each other")));
            }
            let inside = self.either()?;
            self.expect(")")?;
            self.depth -= 1;
            return Ok(inside);
        }
        self.compare().map(Expr::Compare)
    }

    fn compare(&mut self) -> Parsed<Compare> {
        let is_increase = self.takes("increase");
        if is_increase {
            self.expect("(")?;
        }
        let token = self.next("a figure")?;
        let figure = figure::named(token.text).ok_or_else(|| token.wrong(unknown(token.text)))?;
        let increase = if is_increase { Some(self.increase(token, figure)?) } else { None };
        let Some(sign) = self.peek().filter(|token| "<>=!".contains(token.text.get(..1).unwrap_or("x"))) else {
            if figure.kind == Kind::YesNo && increase.is_none() {
                return Ok(Compare { figure, increase, op: Op::Is, value: Value::Word(1) });
            }
            let (column, seen) =
                self.peek().map_or((self.end, "the end".into()), |t| (t.column, format!("{:?}", t.text)));
            let what = format!("{} must be compared, with >, >=, <, <=, == or !=, and here is {seen}", figure.name);
            return Err(ParseError { column, what });
        };
        self.at += 1;
        let op = Op::ALL.iter().find(|(_, written)| *written == sign.text).map(|(op, _)| *op);
        let op = op.ok_or_else(|| sign.wrong(format!("{:?} is none of >, >=, <, <=, ==, !=", sign.text)))?;
        let token = self.next("a value")?;
        let value = value(figure, token).map_err(|what| token.wrong(what))?;
        if matches!(value, Value::Word(_)) && !matches!(op, Op::Is | Op::IsNot) {
            return Err(sign.wrong(format!("{} can only be compared with == or !=", figure.name)));
        }
        if increase.is_some() && value.is_percent() {
            return Err(token.wrong("an increase has no limit to be a percentage of".into()));
        }
        Ok(Compare { figure, increase, op, value })
    }

    fn increase(&mut self, token: Token, figure: &Figure) -> Parsed<Duration> {
        if matches!(figure.kind, Kind::State | Kind::YesNo) || figure.scope != Scope::Device {
            return Err(token.wrong(format!("{} is no number of a device, so there is no increase", figure.name)));
        }
        self.expect(",")?;
        let start = self.peek();
        let time = self.time()?;
        self.expect(")")?;
        match start {
            Some(start) if time.is_zero() || time > LONGEST_INCREASE => {
                Err(start.wrong("an increase is looked for over more than nothing and not more than 1h".into()))
            }
            _ => Ok(time),
        }
    }

    fn time(&mut self) -> Parsed<Duration> {
        let token = self.next("a time such as 30s")?;
        period::parse(token.text)
            .ok_or_else(|| token.wrong(format!("{:?} is no time such as 30s, 5m or 1h30m", token.text)))
    }
}

impl Token<'_> {
    fn wrong(self, what: String) -> ParseError {
        ParseError { column: self.column, what }
    }
}

fn joined(mut all: Vec<Expr>, join: fn(Vec<Expr>) -> Expr) -> Expr {
    match all.len() {
        1 => all.remove(0),
        _ => join(all),
    }
}

fn unknown(name: &str) -> String {
    let names: Vec<&str> = FIGURES.iter().map(|figure| figure.name).collect();
    format!("there is no figure called {name:?}; there are {}", names.join(", "))
}

fn value(figure: &Figure, token: Token) -> Result<Value, String> {
    let text = token.text;
    let word = |words: &[&str]| {
        let at = words.iter().position(|word| *word == text);
        at.map(Value::Word).ok_or_else(|| format!("{text:?} is none of {}", words.join(", ")))
    };
    match figure.kind {
        Kind::State => return word(&STATES.map(|(_, word)| word)),
        Kind::YesNo => return word(&["false", "true"]),
        Kind::Number(_) | Kind::Bytes => {}
    }
    let digits = text.find(|c: char| !c.is_ascii_digit() && !"-.".contains(c)).unwrap_or(text.len());
    let (number, behind) = text.split_at(digits);
    let number: f64 = number.parse().map_err(|_| format!("{text:?} is no number"))?;
    match (behind, figure.kind) {
        ("", _) => Ok(Value::Number(number)),
        ("%", _) if figure.most.is_some() => Ok(Value::Percent(number)),
        ("%", _) => Err(format!("{} has no limit to be a percentage of", figure.name)),
        (behind, Kind::Bytes) => {
            let unit = BYTES.iter().find(|(name, _)| *name == behind).map(|(_, unit)| unit);
            let unit = unit.ok_or_else(|| format!("{behind:?} is none of B, KiB, MiB, GiB, TiB, %"))?;
            Ok(Value::Number(number * unit))
        }
        (behind, Kind::Number(unit)) if behind.trim_start_matches('°') == unit => Ok(Value::Number(number)),
        (behind, Kind::Number("")) => Err(format!("{} is a mere number, without {behind:?}", figure.name)),
        (behind, Kind::Number(unit)) => Err(format!("{} is in {unit}, not in {behind:?}", figure.name)),
        (_, Kind::State | Kind::YesNo) => Err(format!("{text:?} is no value of {}", figure.name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    #[test]
    fn a_rule_is_read_and_printed() {
        for (text, printed) in [
            ("asic_temp > 85 for 30s", "asic_temp > 85 for 30s"),
            ("asic_temp>85°C for 30s until asic_temp<80C", "asic_temp > 85 for 30s until asic_temp < 80"),
            ("dram > 95%", "dram > 95%"),
            ("dram >= 30GiB and l1 < 1.5MiB", "dram >= 30GiB and l1 < 1536KiB"),
            ("( state == hung ) or (state==no_driver)", "state == hung or state == no_driver"),
            ("(asic_temp > 1 or power > 2W) and fan < 3rpm", "(asic_temp > 1 or power > 2) and fan < 3"),
            ("link_degraded == true for 1m", "link_degraded for 1m"),
            ("link_degraded != true", "link_degraded != true"),
            ("increase(thermal_trips, 10m) > 0", "increase(thermal_trips, 10m) > 0"),
            ("process_dram > 1GiB and asic_temp > -3.5", "process_dram > 1GiB and asic_temp > -3.5"),
            ("sample_age > 10s", "sample_age > 10"),
        ] {
            assert_eq!(text.parse::<Condition>().map(|rule| rule.to_string()), Ok(printed.to_owned()), "{text}");
        }
    }

    fn mistakes(texts: &[&str], expected: Expect) {
        let told = |text: &&str| format!("{text}\n    {}\n", text.parse::<Condition>().unwrap_err());
        expected.assert_eq(&texts.iter().map(told).collect::<String>());
    }

    #[test]
    fn a_mistake_is_told_in_one_sentence_with_its_column() {
        mistakes(
            &[
                "",
                "asic_tmp > 85",
                "asic_temp",
                "asic_temp > 85 for",
                "asic_temp > 85 for ever",
                "asic_temp => 85",
                "asic_temp > hot",
                "asic_temp > 85W",
                "fan > 10%",
                "dram > 95GB",
                "state > hung",
                "state == hanging",
                "(asic_temp > 85",
                "asic_temp > 85 asic_temp < 80",
                "asic_temp > 85 until asic_temp < 80 for 5s",
                "asic_temp > 85 & power > 3",
                "increase(state, 5m) > 1",
                "increase(thermal_trips, 2h) > 1",
                "left_at_exit > 0 and dram > 1",
                "heartbeat > 5x",
            ],
            expect![[r#"

                    column 1: the rule ends here, and a figure is missing
                asic_tmp > 85
                    column 1: there is no figure called "asic_tmp"; there are state, sample_age, asic_temp, power, vcore, current, fan, aiclk, heartbeat, thermal_trips, link_degraded, dram, l1, trace, stale, untracked_processes, process_dram, process_l1, process_host_memory, process_cpu, left_at_exit
                asic_temp
                    column 10: asic_temp must be compared, with >, >=, <, <=, == or !=, and here is the end
                asic_temp > 85 for
                    column 19: the rule ends here, and a time such as 30s is missing
                asic_temp > 85 for ever
                    column 20: "ever" is no time such as 30s, 5m or 1h30m
                asic_temp => 85
                    column 11: "=" is none of >, >=, <, <=, ==, !=
                asic_temp > hot
                    column 13: "hot" is no number
                asic_temp > 85W
                    column 13: asic_temp is in C, not in "W"
                fan > 10%
                    column 7: fan has no limit to be a percentage of
                dram > 95GB
                    column 8: "GB" is none of B, KiB, MiB, GiB, TiB, %
                state > hung
                    column 7: state can only be compared with == or !=
                state == hanging
                    column 10: "hanging" is none of ok, resetting, hung, silent, lost, no_driver, remote
                (asic_temp > 85
                    column 16: the rule ends here, and ) is missing
                asic_temp > 85 asic_temp < 80
                    column 16: "asic_temp" was not expected here: there may be and, or, for or until
                asic_temp > 85 until asic_temp < 80 for 5s
                    column 37: "for" was not expected here: there may be and, or
                asic_temp > 85 & power > 3
                    column 16: '&' has no meaning here
                increase(state, 5m) > 1
                    column 10: state is no number of a device, so there is no increase
                increase(thermal_trips, 2h) > 1
                    column 25: an increase is looked for over more than nothing and not more than 1h
                left_at_exit > 0 and dram > 1
                    column 1: what a process left behind cannot be joined with figures of the living
                heartbeat > 5x
                    column 13: heartbeat is a mere number, without "x"
            "#]],
        );
    }

    fn compare() -> impl Strategy<Value = Compare> {
        let number =
            prop_oneof![(0u32..2000).prop_map(f64::from), -1e6..1e6f64, (0u64..1 << 50).prop_map(|n| n as f64)];
        let time = prop_oneof![1u64..3600, Just(3600)].prop_map(Duration::from_secs);
        (0..FIGURES.len(), 0usize..6, number, 0usize..7, any::<bool>(), prop::option::of(time)).prop_map(
            |(figure, op, number, word, percent, increase)| {
                let figure = &FIGURES[figure];
                let (op, is) = (Op::ALL[op].0, [Op::Is, Op::IsNot][op % 2]);
                let increase = increase.filter(|_| figure.scope == Scope::Device);
                match figure.kind {
                    Kind::State => Compare { figure, increase: None, op: is, value: Value::Word(word) },
                    Kind::YesNo => Compare { figure, increase: None, op: is, value: Value::Word(word % 2) },
                    _ if percent && figure.most.is_some() => {
                        Compare { figure, increase: None, op, value: Value::Percent(number) }
                    }
                    _ => Compare { figure, increase, op, value: Value::Number(number) },
                }
            },
        )
    }

    fn expr() -> impl Strategy<Value = Expr> {
        let leaf = compare()
            .prop_filter("of the living", |one| one.figure.scope != Scope::Ended)
            .prop_map(Expr::Compare)
            .boxed();
        // What is printed without parentheses is read as one, so nothing holds its own kind.
        let and = prop::collection::vec(leaf.clone(), 2..4).prop_map(Expr::And).boxed();
        let or = prop::collection::vec(prop_oneof![leaf.clone(), and.clone()], 2..4).prop_map(Expr::Or).boxed();
        let and_of_or = prop::collection::vec(prop_oneof![leaf.clone(), or.clone()], 2..4).prop_map(Expr::And);
        prop_oneof![leaf, and, or, and_of_or]
    }

    proptest! {
        #[test]
        fn what_is_printed_is_what_is_read(when in expr(), until in prop::option::of(expr()), hold in 0u64..100_000_000) {
            let condition = Condition { when, hold: Duration::from_millis(hold), until };
            prop_assert_eq!(condition.to_string().parse::<Condition>(), Ok(condition));
        }

        #[test]
        fn any_text_is_a_rule_or_an_error(text in "\\PC*|[a-z_ ()<>=!,%.0-9]*|(asic_temp|\\(|\\)|and|or|>|=|<|85|%| )*") {
            if let Err(error) = text.parse::<Condition>() {
                prop_assert!(error.column <= text.chars().count() + 1);
            }
        }
    }
}
