//! Reads the text of a rule.

use crate::condition::{BYTES, Compare, Condition, Expr, LONGEST_INCREASE, Threshold};
use crate::rule_figure::RuleFigure;
use crate::subject::Scope;
use model::figure::Unit;
use model::text::did_you_mean;
use model::{Comparison, duration};
use std::str::FromStr;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {what}")]
pub struct ParseError {
    /// Where, counted from 1.
    pub column: usize,
    pub what: String,
}

/// A word, a number with its unit, or a sign.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RuleToken<'a> {
    column: usize,
    text: &'a str,
}

struct RuleParser<'a> {
    tokens: Vec<RuleToken<'a>>,
    at: usize,
    end: usize,
    /// How many parentheses are open.
    depth: usize,
}

/// The stack has an end.
const DEEPEST: usize = 20;
/// The longest time in a rule: a year.
const LONGEST_TIME: Duration = Duration::from_secs(366 * 86_400);

const SIGNS: &str = ">, >=, <, <=, == or !=";

type Parsed<T> = Result<T, ParseError>;

impl FromStr for Condition {
    type Err = ParseError;

    fn from_str(text: &str) -> Parsed<Condition> {
        let mut parser = RuleParser { tokens: tokens(text)?, at: 0, end: text.chars().count() + 1, depth: 0 };
        let when = parser.either()?;
        let hold = if parser.takes("for") { parser.time()? } else { Duration::ZERO };
        let until = if parser.takes("until") { Some(parser.either()?) } else { None };
        if let Some(token) = parser.peek() {
            let expected = if until.is_some() { "`and` or `or`" } else { "`and`, `or`, `for` or `until`" };
            return Err(token.wrong(format!("unexpected {:?}; expected {expected}", token.text)));
        }
        let condition = Condition { when, hold, until };
        let scopes: Vec<Scope> = condition.compares().iter().map(|compare| compare.figure.scope()).collect();
        if scopes.contains(&Scope::Exited) && scopes.iter().any(|scope| *scope != Scope::Exited) {
            let what = "left_at_exit cannot be combined with other figures".into();
            return Err(ParseError { column: 1, what });
        }
        Ok(condition)
    }
}

fn tokens(text: &str) -> Parsed<Vec<RuleToken<'_>>> {
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
            _ => return Err(ParseError { column: column + 1, what: format!("unexpected {c:?}") }),
        }
        tokens.push(RuleToken { column: column + 1, text: &text[start..end] });
    }
    Ok(tokens)
}

impl<'a> RuleParser<'a> {
    fn peek(&self) -> Option<RuleToken<'a>> {
        self.tokens.get(self.at).copied()
    }

    fn takes(&mut self, text: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.text == text);
        self.at += usize::from(found);
        found
    }

    fn next(&mut self, wanted: &str) -> Parsed<RuleToken<'a>> {
        let what = || format!("expected {wanted}, found the end of the rule");
        let token = self.peek().ok_or_else(|| ParseError { column: self.end, what: what() })?;
        self.at += 1;
        Ok(token)
    }

    fn expect(&mut self, text: &str) -> Parsed<()> {
        let token = self.next(text)?;
        if token.text == text { Ok(()) } else { Err(token.wrong(format!("expected {text}, found {:?}", token.text))) }
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
                return Err(token.wrong(format!("more than {DEEPEST} nested parentheses")));
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
        let figure = RuleFigure::named(token.text).ok_or_else(|| token.wrong(unknown(token.text)))?;
        let increase = if is_increase { Some(self.increase(token, figure)?) } else { None };
        let is_sign = |token: &RuleToken| token.text.starts_with(['<', '>', '=', '!']);
        let Some(sign) = self.peek().filter(is_sign) else {
            return self.without_sign(figure, increase);
        };
        self.at += 1;
        let operator = Comparison::named(sign.text)
            .ok_or_else(|| sign.wrong(format!("unknown operator {:?}; expected {SIGNS}", sign.text)))?;
        let token = self.next("a value")?;
        let threshold = threshold(figure, token.text).map_err(|what| token.wrong(what))?;
        if matches!(threshold, Threshold::Word(_)) && !matches!(operator, Comparison::Is | Comparison::IsNot) {
            return Err(sign.wrong(format!("{} can only be compared with == or !=", figure.word())));
        }
        if increase.is_some() && threshold.is_percent() {
            return Err(token.wrong("an increase cannot be compared with a percentage".into()));
        }
        Ok(Compare { figure, increase, operator, threshold })
    }

    /// A figure alone, which may be one that is true or false.
    fn without_sign(&self, figure: RuleFigure, increase: Option<Duration>) -> Parsed<Compare> {
        if figure.unit() == Unit::YesNo && increase.is_none() {
            return Ok(Compare { figure, increase, operator: Comparison::Is, threshold: Threshold::Word(1) });
        }
        let (column, found) = match self.peek() {
            Some(token) => (token.column, format!("{:?}", token.text)),
            None => (self.end, "the end of the rule".into()),
        };
        let what = format!("expected {SIGNS} after {}, found {found}", figure.word());
        Err(ParseError { column, what })
    }

    fn increase(&mut self, token: RuleToken, figure: RuleFigure) -> Parsed<Duration> {
        if !figure.unit().is_number() || figure.scope() != Scope::Device {
            return Err(token.wrong(format!("increase needs a number of a device, and {} is not one", figure.word())));
        }
        self.expect(",")?;
        let start = self.peek();
        let time = self.time()?;
        self.expect(")")?;
        match start {
            Some(start) if time.is_zero() || time > LONGEST_INCREASE => {
                Err(start.wrong("the time of an increase must be above 0s and at most 1h".into()))
            }
            _ => Ok(time),
        }
    }

    fn time(&mut self) -> Parsed<Duration> {
        let token = self.next("a time such as 30s")?;
        duration::parse(token.text)
            .filter(|time| *time <= LONGEST_TIME)
            .ok_or_else(|| token.wrong(format!("invalid time {:?}; expected one such as 30s, 5m or 1h30m", token.text)))
    }
}

impl RuleToken<'_> {
    fn wrong(self, what: String) -> ParseError {
        ParseError { column: self.column, what }
    }
}

fn joined(mut all: Vec<Expr>, join: fn(Vec<Expr>) -> Expr) -> Expr {
    if all.len() == 1 { all.remove(0) } else { join(all) }
}

fn unknown(word: &str) -> String {
    let words: Vec<&str> = RuleFigure::all().map(RuleFigure::word).collect();
    let near = did_you_mean(word, words.iter().copied());
    format!("unknown figure {word:?}; {near}expected one of {}", words.join(", "))
}

fn threshold(figure: RuleFigure, text: &str) -> Result<Threshold, String> {
    let (word, words) = (figure.word(), figure.words());
    if !words.is_empty() {
        let place = words.iter().position(|word| word == text);
        let wrong = || format!("unknown value {text:?} of {word}; expected one of {}", words.join(", "));
        return place.map(Threshold::Word).ok_or_else(wrong);
    }
    let digits = text.find(|c: char| !c.is_ascii_digit() && !"-.".contains(c)).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().map_err(|_| format!("invalid number {text:?}"))?;
    let symbol = figure.unit().symbol();
    match unit {
        "" => Ok(Threshold::Number(number)),
        "%" if figure.limit().is_some() => Ok(Threshold::Percent(number)),
        _ if figure.unit() == Unit::Bytes && unit != "%" => bytes(number, unit),
        _ if unit == symbol || format!("°{unit}") == symbol => Ok(Threshold::Number(number)),
        "%" => Err(format!("{word} has no limit, so it cannot be compared with a percentage")),
        _ if symbol.is_empty() => Err(format!("unknown unit {unit:?}; {word} has no unit")),
        _ => Err(format!("unknown unit {unit:?}; {word} is in {symbol}")),
    }
}

fn bytes(number: f64, unit: &str) -> Result<Threshold, String> {
    let factor = BYTES.iter().find(|(name, _)| *name == unit).map(|(_, factor)| factor);
    let factor = factor.ok_or_else(|| format!("unknown unit {unit:?}; expected one of B, KiB, MiB, GiB, TiB, %"))?;
    Ok(Threshold::Number(number * factor))
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
            ("process_cpu > 350%", "process_cpu > 350"),
        ] {
            assert_eq!(text.parse::<Condition>().map(|rule| rule.to_string()), Ok(printed.to_owned()), "{text}");
        }
    }

    fn mistakes(texts: &[&str], expected: Expect) {
        let line = |text: &&str| format!("{text}\n    {}\n", text.parse::<Condition>().unwrap_err());
        expected.assert_eq(&texts.iter().map(line).collect::<String>());
    }

    #[test]
    fn a_mistake_is_one_sentence_with_its_column() {
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

                    column 1: expected a figure, found the end of the rule
                asic_tmp > 85
                    column 1: unknown figure "asic_tmp"; did you mean asic_temp? expected one of state, sample_age, heartbeat, thermal_trips, asic_temp, fan, power, vcore, current, aiclk, utilization, programs, link_degraded, dram, trace, l1, stale, untracked_processes, smbus_errors, vreg_temp, board_temp, input_power, aiclk_ceiling_by, kernel_throttler, gddr_temp, gddr_top_temp, gddr_bottom_temp, gddr_trained, gddr_training_failed, gddr_corrected_reads, gddr_corrected_writes, gddr_uncorrected_read, gddr_uncorrected_write, eth_link_up, links_down, eth_ports_not_up, throttled_by, process_dram, process_l1, process_utilization, process_host_memory, process_memory, process_cpu, process_host_wait, process_idle, left_at_exit
                asic_temp
                    column 10: expected >, >=, <, <=, == or != after asic_temp, found the end of the rule
                asic_temp > 85 for
                    column 19: expected a time such as 30s, found the end of the rule
                asic_temp > 85 for ever
                    column 20: invalid time "ever"; expected one such as 30s, 5m or 1h30m
                asic_temp => 85
                    column 11: unknown operator "="; expected >, >=, <, <=, == or !=
                asic_temp > hot
                    column 13: invalid number "hot"
                asic_temp > 85W
                    column 13: unknown unit "W"; asic_temp is in °C
                fan > 10%
                    column 7: fan has no limit, so it cannot be compared with a percentage
                dram > 95GB
                    column 8: unknown unit "GB"; expected one of B, KiB, MiB, GiB, TiB, %
                state > hung
                    column 7: state can only be compared with == or !=
                state == hanging
                    column 10: unknown value "hanging" of state; expected one of ok, no_telemetry, resetting, hung, silent, lost, no_driver, remote
                (asic_temp > 85
                    column 16: expected ), found the end of the rule
                asic_temp > 85 asic_temp < 80
                    column 16: unexpected "asic_temp"; expected `and`, `or`, `for` or `until`
                asic_temp > 85 until asic_temp < 80 for 5s
                    column 37: unexpected "for"; expected `and` or `or`
                asic_temp > 85 & power > 3
                    column 16: unexpected '&'
                increase(state, 5m) > 1
                    column 10: increase needs a number of a device, and state is not one
                increase(thermal_trips, 2h) > 1
                    column 25: the time of an increase must be above 0s and at most 1h
                left_at_exit > 0 and dram > 1
                    column 1: left_at_exit cannot be combined with other figures
                heartbeat > 5x
                    column 13: unknown unit "x"; heartbeat has no unit
            "#]],
        );
    }

    fn compare() -> impl Strategy<Value = Compare> {
        let number =
            prop_oneof![(0u32..2000).prop_map(f64::from), -1e6..1e6f64, (0u64..1 << 50).prop_map(|n| n as f64)];
        let time = prop_oneof![1u64..3600, Just(3600)].prop_map(Duration::from_secs);
        let figures: Vec<RuleFigure> = RuleFigure::all().collect();
        (0..figures.len(), 0usize..6, number, 0usize..7, any::<bool>(), prop::option::of(time)).prop_map(
            move |(figure, operator, number, word, percent, increase)| {
                let (figure, words) = (figures[figure], figures[figure].words().len());
                let (operator, is) = (Comparison::ALL[operator], [Comparison::Is, Comparison::IsNot][operator % 2]);
                let threshold = Threshold::Number(number);
                let increase = increase.filter(|_| figure.scope() == Scope::Device);
                let compare = Compare { figure, increase, operator, threshold };
                match words {
                    0 if percent && figure.limit().is_some() => {
                        Compare { increase: None, threshold: Threshold::Percent(number), ..compare }
                    }
                    0 => compare,
                    _ => Compare { increase: None, operator: is, threshold: Threshold::Word(word % words), ..compare },
                }
            },
        )
    }

    fn expr() -> impl Strategy<Value = Expr> {
        let leaf = compare()
            .prop_filter("of what runs", |one| one.figure.scope() != Scope::Exited)
            .prop_map(Expr::Compare)
            .boxed();
        // `a and b and c` is read as one list, so no list is in one of its own kind.
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
