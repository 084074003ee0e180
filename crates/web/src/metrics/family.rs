//! Families of metrics, made of tables of figures: once, so that writing a line allocates nothing.

use super::text;
use model::figure::{Figure, Get, Metric, MetricKind, Unit, Value};

/// All lines of one metric name.
pub struct Family<S: 'static> {
    /// With its unit, and without the suffix of its kind.
    pub name: &'static str,
    pub unit: Option<&'static str>,
    pub kind: MetricKind,
    /// The sentence of its figure, or the titles of its figures.
    pub help: String,
    pub series: Vec<MetricSeries<S>>,
}

/// One figure with one of its labels, or with one of the words that it can be.
pub struct MetricSeries<S: 'static> {
    pub figure: &'static Figure<S>,
    place: usize,
    /// Its labels, written already.
    pub labels: String,
    /// How many base units are in one of the figure's.
    scale: f64,
    /// The word that this line is about.
    word: Option<&'static str>,
}

/// A figure that only a scrape has: a number.
pub const fn gauge<S>(name: &'static str, help: &'static str, get: Get<S>) -> Figure<S> {
    Figure { metric: Metric::gauge(name), ..Figure::new(name, Unit::Count, help, (get, |_, _, _| {})) }
}

/// One that counts up.
pub const fn counter<S>(name: &'static str, help: &'static str, get: Get<S>) -> Figure<S> {
    Figure { metric: Metric::counter(name), ..gauge(name, help, get) }
}

/// One that is a text.
pub const fn info<S>(name: &'static str, label: &'static str, help: &'static str, get: Get<S>) -> Figure<S> {
    Figure { metric: Metric::info(name, label), unit: Unit::Text, ..gauge(name, help, get) }
}

macro_rules! rows {
    ($subject:ty; $($row:expr),+ $(,)?) => {
        &[$({ static ROW: Figure<$subject> = $row; &ROW }),+]
    };
}
pub(super) use rows;

/// The families of a table, in the order of their first figures. Of a rate there is none: its counter is written.
pub fn families<S>(table: &[&'static Figure<S>]) -> Vec<Family<S>> {
    let mut all: Vec<Family<S>> = Vec::new();
    for figure in table {
        let Some(metric) = figure.metric.filter(|metric| metric.kind != MetricKind::RateOf) else { continue };
        let at = all.iter().position(|family| family.name == metric.name).unwrap_or_else(|| {
            let (unit, help) = (figure.unit.base().0, figure.help.to_owned());
            all.push(Family { name: metric.name, unit, kind: metric.kind, help, series: Vec::new() });
            all.len() - 1
        });
        all[at].add(figure);
    }
    for family in &mut all {
        let mut titles: Vec<&str> = family.series.iter().map(|series| series.figure.title).collect();
        titles.dedup();
        if titles.len() > 1 {
            family.help = titles.join(", ") + ".";
        }
    }
    all
}

impl<S> Family<S> {
    fn add(&mut self, figure: &'static Figure<S>) {
        match self.kind {
            MetricKind::OneOf => {
                self.series.extend(figure.words.iter().map(|word| MetricSeries::new(figure, 0, Some(word))));
            }
            _ => self.series.extend((0..figure.labels()).map(|place| MetricSeries::new(figure, place, None))),
        }
    }
}

impl<S> MetricSeries<S> {
    fn new(figure: &'static Figure<S>, place: usize, word: Option<&'static str>) -> MetricSeries<S> {
        let mut labels = String::new();
        let fixed = figure.metric.and_then(|metric| metric.label);
        match (fixed, word) {
            (Some((name, _)), Some(word)) => text::label(&mut labels, name, word),
            (Some((name, value)), None) if !value.is_empty() => text::label(&mut labels, name, value),
            _ => {}
        }
        if let Some(dimension) = figure.dimension {
            text::label(&mut labels, dimension.name(), &dimension.label(place));
        }
        MetricSeries { figure, place, labels, scale: figure.unit.base().1, word }
    }

    /// The label that has the text of an info.
    pub fn info_label(&self) -> &'static str {
        self.figure.metric.and_then(|metric| metric.label).map_or("", |(name, _)| name)
    }

    /// The figure's value, as it is.
    pub fn value<'a>(&self, subject: &'a S) -> Option<Value<'a>> {
        (self.figure.get)(subject, self.place)
    }

    /// The number of this line, in base units.
    pub fn number(&self, subject: &S) -> Option<Value<'static>> {
        match (self.value(subject)?, self.word) {
            (Value::Text(text), Some(word)) => Some(Value::Whole(u64::from(text == word))),
            (Value::YesNo(yes), _) => Some(Value::Whole(u64::from(yes))),
            (Value::Whole(number), _) if self.scale.fract() == 0.0 => {
                Some(Value::Whole(number.saturating_mul(self.scale as u64)))
            }
            (value, _) => value.number().map(|number| Value::Real(number * self.scale)),
        }
    }
}
