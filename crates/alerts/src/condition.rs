//! What a rule says: comparisons of figures, for how long, and until when.

use crate::figure::{Figure, Kind, STATES, Scope, Seen};
use crate::period;
use std::fmt;
use std::time::Duration;

/// `asic_temp > 95% or power > 300 for 30s until asic_temp < 90%`: what must be so, for how long before it counts, and what ends it.
/// Without `until` it ends when what must be so is not so any more.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// What must be so.
    pub when: Expr,
    /// For how long, before it counts.
    pub hold: Duration,
    /// What ends it.
    pub until: Option<Expr>,
}

/// Comparisons, and what joins them. `and` binds tighter than `or`.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// One comparison.
    Compare(Compare),
    /// All of them; there are at least two.
    And(Vec<Expr>),
    /// One of them; there are at least two.
    Or(Vec<Expr>),
}

/// A figure against a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Compare {
    /// What is compared.
    pub figure: &'static Figure,
    /// Its increase over so long, instead of itself: how far it is above its least.
    pub increase: Option<Duration>,
    /// How.
    pub op: Op,
    /// With what.
    pub value: Value,
}

/// How two numbers are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// `>`
    Above,
    /// `>=`
    AtLeast,
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `==`
    Is,
    /// `!=`
    IsNot,
}

/// What a figure is compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// In the figure's unit.
    Number(f64),
    /// Of the figure's limit.
    Percent(f64),
    /// One of the words that the figure can be: a state, or `false` and `true`.
    Word(usize),
}

/// The longest time that an increase is looked for.
pub const LONGEST_INCREASE: Duration = Duration::from_secs(3600);

impl Op {
    pub(crate) const ALL: [(Op, &'static str); 6] = [
        (Op::AtLeast, ">="),
        (Op::AtMost, "<="),
        (Op::Is, "=="),
        (Op::IsNot, "!="),
        (Op::Above, ">"),
        (Op::Below, "<"),
    ];

    /// As it is written, in PromQL, too.
    pub fn sign(self) -> &'static str {
        Op::ALL.iter().find(|(op, _)| *op == self).map_or("?", |(_, sign)| sign)
    }

    fn opposite(self) -> Op {
        match self {
            Op::Above => Op::AtMost,
            Op::AtLeast => Op::Below,
            Op::Below => Op::AtLeast,
            Op::AtMost => Op::Above,
            Op::Is => Op::IsNot,
            Op::IsNot => Op::Is,
        }
    }

    fn holds(self, a: f64, b: f64) -> bool {
        match self {
            Op::Above => a > b,
            Op::AtLeast => a >= b,
            Op::Below => a < b,
            Op::AtMost => a <= b,
            Op::Is => a == b,
            Op::IsNot => a != b,
        }
    }
}

impl Condition {
    /// What keeps a rule firing once it does.
    pub(crate) fn stays(&self) -> Expr {
        self.until.as_ref().map_or_else(|| self.when.clone(), Expr::negated)
    }

    /// All comparisons in it.
    pub(crate) fn compares(&self) -> Vec<&Compare> {
        let mut all = self.when.compares();
        all.extend(self.until.iter().flat_map(Expr::compares));
        all
    }

    /// Whether the past must be known before it is so: for an increase, and for the last value of what ends it alone.
    pub(crate) fn looks_back(&self) -> bool {
        let (when, all) = (self.when.compares(), self.compares());
        let comes_later = |compare: &&Compare| !when.iter().any(|other| other.looks_like(compare));
        all.iter().any(|compare| compare.increase.is_some() || comes_later(compare))
    }

    /// What it is about.
    pub fn scope(&self) -> Scope {
        let scopes = || self.compares().into_iter().map(|compare| compare.figure.scope);
        let (first, last) = (scopes().min(), scopes().max());
        match (first, last) {
            (Some(Scope::Device), Some(Scope::Process)) => Scope::Held,
            (_, Some(last)) => last,
            _ => Scope::Device,
        }
    }
}

impl Expr {
    /// What is so when this is not. What is not known is neither.
    pub(crate) fn negated(&self) -> Expr {
        match self {
            Expr::Compare(compare) => Expr::Compare(Compare { op: compare.op.opposite(), ..compare.clone() }),
            Expr::And(all) => Expr::Or(all.iter().map(Expr::negated).collect()),
            Expr::Or(all) => Expr::And(all.iter().map(Expr::negated).collect()),
        }
    }

    /// Whether it is known to be so.
    pub(crate) fn holds(&self, value: &impl Fn(&Compare) -> Option<f64>) -> bool {
        match self {
            Expr::Compare(compare) => value(compare).is_some_and(|now| compare.op.holds(now, compare.value.number())),
            Expr::And(all) => all.iter().all(|one| one.holds(value)),
            Expr::Or(all) => all.iter().any(|one| one.holds(value)),
        }
    }

    pub(crate) fn compares(&self) -> Vec<&Compare> {
        match self {
            Expr::Compare(compare) => vec![compare],
            Expr::And(all) | Expr::Or(all) => all.iter().flat_map(Expr::compares).collect(),
        }
    }
}

impl Compare {
    /// What is compared, as it is now. An increase is not to be seen at one moment.
    pub(crate) fn sees(&self, seen: &Seen) -> Option<f64> {
        let value = (self.figure.read)(seen).filter(|value| value.is_finite() && self.increase.is_none())?;
        if !self.value.is_percent() {
            return Some(value);
        }
        let (most, _) = self.figure.most?;
        Some(100.0 * value / most(seen).filter(|most| *most > 0.0)?)
    }

    /// Whether both look at the same, whatever they compare it with.
    pub(crate) fn looks_like(&self, other: &Compare) -> bool {
        // There is one of each.
        std::ptr::eq(self.figure, other.figure)
            && self.increase == other.increase
            && self.value.is_percent() == other.value.is_percent()
    }
}

impl Value {
    pub(crate) fn number(self) -> f64 {
        match self {
            Value::Number(number) | Value::Percent(number) => number,
            Value::Word(at) => at as f64,
        }
    }

    pub(crate) fn is_percent(self) -> bool {
        matches!(self, Value::Percent(_))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.when)?;
        if !self.hold.is_zero() {
            write!(f, " for {}", period::print(self.hold))?;
        }
        self.until.iter().try_for_each(|until| write!(f, " until {until}"))
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (all, word) = match self {
            Expr::Compare(compare) => return compare.fmt(f),
            Expr::And(all) => (all, " and "),
            Expr::Or(all) => (all, " or "),
        };
        for (at, one) in all.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { word })?;
            match (self, one) {
                (_, Expr::Compare(_)) | (Expr::Or(_), Expr::And(_)) => write!(f, "{one}")?,
                _ => write!(f, "({one})")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Compare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.figure.name;
        match self.increase {
            Some(time) => write!(f, "increase({name}, {})", period::print(time))?,
            None => f.write_str(name)?,
        }
        let sign = self.op.sign();
        match (self.value, self.figure.kind) {
            (Value::Word(1), Kind::YesNo) if self.op == Op::Is => Ok(()),
            (Value::Word(at), Kind::YesNo) => write!(f, " {sign} {}", at == 1),
            (Value::Word(at), _) => write!(f, " {sign} {}", STATES.get(at).map_or("?", |(_, word)| word)),
            (Value::Percent(number), _) => write!(f, " {sign} {number}%"),
            (Value::Number(number), Kind::Bytes) => write!(f, " {sign} {}", amount(number)),
            (Value::Number(number), _) => write!(f, " {sign} {number}"),
        }
    }
}

/// What may stand behind an amount of memory.
pub(crate) const BYTES: [(&str, f64); 5] = [
    ("TiB", (1u64 << 40) as f64),
    ("GiB", (1u64 << 30) as f64),
    ("MiB", (1u64 << 20) as f64),
    ("KiB", 1024.0),
    ("B", 1.0),
];

/// In the largest unit of which it is a whole number.
fn amount(bytes: f64) -> String {
    let whole = BYTES[..4].iter().find(|(_, unit)| bytes >= *unit && (bytes / unit).fract() == 0.0);
    whole.map_or_else(|| bytes.to_string(), |(name, unit)| format!("{}{name}", bytes / unit))
}

impl Compare {
    /// A value of what it looks at, for people.
    pub(crate) fn shown(&self, value: f64) -> String {
        let name = self.figure.name;
        match (self.increase, self.value, self.figure.kind) {
            (Some(time), ..) => format!("{name} +{value} in {}", period::print(time)),
            (_, Value::Percent(_), _) => format!("{name} {value:.1} %"),
            (_, _, Kind::Bytes) => format!("{name} {}", model::Bytes(value as u64)),
            (_, _, Kind::State) => {
                format!("state {}", STATES.get(value as usize).map_or("?", |(state, _)| state.name()))
            }
            (_, _, Kind::YesNo) if value == 1.0 => name.to_owned(),
            (_, _, Kind::YesNo) => format!("not {name}"),
            (_, _, Kind::Number("")) => format!("{name} {value}"),
            (_, _, Kind::Number("C")) => format!("{name} {value:.1} °C"),
            (_, _, Kind::Number(unit)) if value.fract() == 0.0 => format!("{name} {value} {unit}"),
            (_, _, Kind::Number(unit)) => format!("{name} {value:.1} {unit}"),
        }
    }
}
