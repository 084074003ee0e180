//! The condition of a rule: comparisons of figures, for how long, and until when.

use crate::rule_figure::RuleFigure;
use crate::subject::{Scope, Subject};
use model::figure::{Figure, Unit};
use model::{Comparison, Device, duration};
use std::fmt;
use std::time::Duration;

/// `asic_temp > 95% or power > 300 for 30s until asic_temp < 90%`: what must hold, for how long before the rule fires, and what ends
/// it. Without `until` it ends when `when` no longer holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The expression that must hold.
    pub when: Expr,
    /// For how long, before the rule fires.
    pub hold: Duration,
    /// The expression that ends it.
    pub until: Option<Expr>,
}

/// Comparisons, and what joins them. `and` binds tighter than `or`.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    Compare(Compare),
    /// All expressions hold; there are at least two.
    And(Vec<Expr>),
    /// At least one expression holds; there are at least two.
    Or(Vec<Expr>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Compare {
    pub figure: RuleFigure,
    /// Its increase over this time instead of its value: how far it is above its minimum.
    pub increase: Option<Duration>,
    pub operator: Comparison,
    pub threshold: Threshold,
}

/// What a figure is compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Threshold {
    /// In the figure's unit.
    Number(f64),
    /// A part of the figure's limit.
    Percent(f64),
    /// The place of a word in [`RuleFigure::words`]: a state, or `false` and `true`.
    Word(usize),
}

pub const LONGEST_INCREASE: Duration = Duration::from_secs(3600);

impl Condition {
    /// What keeps a rule firing once it does.
    pub(crate) fn stays(&self) -> Expr {
        self.until.as_ref().map_or_else(|| self.when.clone(), Expr::negated)
    }

    pub(crate) fn compares(&self) -> Vec<&Compare> {
        let mut all = self.when.compares();
        all.extend(self.until.iter().flat_map(Expr::compares));
        all
    }

    /// The figures of a device that can make it hold in the first sample.
    pub fn figures_at_once(&self) -> impl Iterator<Item = &'static Figure<Device>> {
        let is_at_once = |compare: &&Compare| self.hold.is_zero() && compare.increase.is_none();
        self.when.compares().into_iter().filter(is_at_once).filter_map(|compare| match compare.figure {
            RuleFigure::Device(figure) => Some(figure),
            _ => None,
        })
    }

    /// Whether earlier values are needed before it holds: for an increase, and for the last known value of what only `until` compares,
    /// or of a label that has none now.
    pub(crate) fn looks_back(&self) -> bool {
        let (when, all) = (self.when.compares(), self.compares());
        let comes_later = |compare: &&Compare| !when.iter().any(|other| other.looks_like(compare));
        let has_labels = |compare: &Compare| compare.figure.dimension().is_some();
        all.iter().any(|compare| compare.increase.is_some() || has_labels(compare) || comes_later(compare))
    }

    /// All figures that it looks at.
    pub(crate) fn figures(&self) -> Vec<RuleFigure> {
        let figures = self.compares().into_iter().map(|compare| compare.figure);
        figures.flat_map(|figure| std::iter::once(figure).chain(figure.limit())).collect()
    }

    /// The kind of subject that its figures belong to.
    pub fn scope(&self) -> Scope {
        let scopes = || self.compares().into_iter().map(|compare| compare.figure.scope());
        let (first, last) = (scopes().min(), scopes().max());
        match (first, last) {
            (Some(Scope::Device), Some(Scope::Process)) => Scope::Held,
            (_, Some(last)) => last,
            _ => Scope::Device,
        }
    }
}

impl Expr {
    /// What holds when this does not. With an unknown value neither holds.
    pub(crate) fn negated(&self) -> Expr {
        match self {
            Expr::Compare(compare) => {
                Expr::Compare(Compare { operator: compare.operator.opposite(), ..compare.clone() })
            }
            Expr::And(all) => Expr::Or(all.iter().map(Expr::negated).collect()),
            Expr::Or(all) => Expr::And(all.iter().map(Expr::negated).collect()),
        }
    }

    pub(crate) fn holds(&self, value: &impl Fn(&Compare) -> Option<f64>) -> bool {
        match self {
            Expr::Compare(compare) => value(compare).is_some_and(|now| compare.holds(now)),
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
    /// The value that is compared, of one subject at one moment. An increase takes more than one.
    pub(crate) fn value_of(&self, subject: &Subject) -> Option<f64> {
        if self.increase.is_some() {
            return None;
        }
        let limit = self.figure.limit().and_then(|limit| limit.number(subject));
        let mut decisive = None;
        self.figure.numbers(subject, &mut |_, number| {
            decisive = self.decisive(decisive.into_iter().chain(self.threshold.of(number, limit)));
        });
        decisive
    }

    pub(crate) fn holds(&self, value: f64) -> bool {
        self.operator.holds(value, self.threshold.number())
    }

    /// Of the values of several labels the one that decides. A comparison holds where it does for any label.
    pub(crate) fn decisive(&self, values: impl Iterator<Item = f64>) -> Option<f64> {
        let is_low = matches!(self.operator, Comparison::Below | Comparison::AtMost);
        values.reduce(|one, other| match (self.holds(one), self.holds(other)) {
            (true, false) => one,
            (false, true) => other,
            _ if is_low => one.min(other),
            _ => one.max(other),
        })
    }

    /// Whether both look at the same value, whatever they compare it with.
    pub(crate) fn looks_like(&self, other: &Compare) -> bool {
        self.figure == other.figure
            && self.increase == other.increase
            && self.threshold.is_percent() == other.threshold.is_percent()
    }

    /// A value of what it looks at, for people, and the labels that it is about: `gddr_corrected_reads +7 in 1h on channel 3`.
    pub(crate) fn shown(&self, value: f64, labels: &[usize]) -> String {
        let dimension = self.figure.dimension().filter(|_| !labels.is_empty());
        let on = dimension.map(|dimension| {
            let names: Vec<_> = labels.iter().map(|label| dimension.label(*label)).collect();
            let plural = if names.len() == 1 { "" } else { "s" };
            format!(" on {}{plural} {}", dimension.name(), names.join(", "))
        });
        let (word, unit) = (self.figure.word(), self.figure.unit());
        let text = match (self.increase, self.threshold, unit) {
            (Some(time), ..) => format!("{word} +{value} in {}", duration::print(time)),
            (_, Threshold::Percent(_), _) => format!("{word} {}", Unit::Percent.number(value)),
            (_, _, Unit::YesNo) if value == 1.0 => word.to_owned(),
            (_, _, Unit::YesNo) => format!("not {word}"),
            (_, _, Unit::Text) => format!("{word} {}", self.figure.texts().get(value as usize).unwrap_or(&"?")),
            (_, _, unit) => format!("{word} {}", unit.number(value)),
        };
        text + &on.unwrap_or_default()
    }
}

impl Threshold {
    pub(crate) fn number(self) -> f64 {
        match self {
            Threshold::Number(number) | Threshold::Percent(number) => number,
            Threshold::Word(place) => place as f64,
        }
    }

    pub(crate) fn is_percent(self) -> bool {
        matches!(self, Threshold::Percent(_))
    }

    /// A value as it is compared with this: in percent of its limit, where this is a percentage.
    pub(crate) fn of(self, value: f64, limit: Option<f64>) -> Option<f64> {
        if self.is_percent() { Some(100.0 * value / limit.filter(|limit| *limit > 0.0)?) } else { Some(value) }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.when)?;
        if !self.hold.is_zero() {
            write!(f, " for {}", duration::print(self.hold))?;
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
        let (word, unit) = (self.figure.word(), self.figure.unit());
        match self.increase {
            Some(time) => write!(f, "increase({word}, {})", duration::print(time))?,
            None => f.write_str(word)?,
        }
        let sign = self.operator.name();
        match self.threshold {
            Threshold::Word(1) if unit == Unit::YesNo && self.operator == Comparison::Is => Ok(()),
            Threshold::Word(place) => {
                write!(f, " {sign} {}", self.figure.words().get(place).map_or("?", String::as_str))
            }
            Threshold::Percent(number) => write!(f, " {sign} {number}%"),
            Threshold::Number(number) if unit == Unit::Bytes => write!(f, " {sign} {}", amount(number)),
            Threshold::Number(number) => write!(f, " {sign} {number}"),
        }
    }
}

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
