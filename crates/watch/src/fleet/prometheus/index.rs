//! The way back from metrics: which figure a series is of, from the tables that the metrics are written from.

use super::labels::Labels;
use model::figure::device::DEVICE_FIGURES;
use model::figure::machine::MACHINE_FIGURES;
use model::figure::process::HELD_FIGURES;
use model::figure::{Dimension, Figure, MetricKind, Unit, Value};
use model::{Device, Held, Snapshot};
use std::collections::HashMap;
use std::sync::LazyLock;

/// The figures of one kind of subject by their metrics.
pub struct MetricIndex<S: 'static> {
    /// Numbers, by the full name of their metric.
    numbers: HashMap<String, Vec<Place<S>>>,
    /// Words, by the full name of their metric, with the label that has the word.
    words: HashMap<String, (&'static str, &'static Figure<S>)>,
    /// Texts, by the label that has them.
    texts: Vec<(&'static str, &'static Figure<S>)>,
    /// Rates, by their own name.
    rates: HashMap<&'static str, Place<S>>,
}

struct Place<S: 'static> {
    figure: &'static Figure<S>,
    /// The label and its value that tell it from other figures of the same metric.
    fixed: Option<(&'static str, &'static str)>,
    dimension: Option<Dimension>,
    /// How many base units are in one of the figure's.
    scale: f64,
}

pub static DEVICES: LazyLock<MetricIndex<Device>> = LazyLock::new(|| MetricIndex::of(DEVICE_FIGURES));
pub static HELD: LazyLock<MetricIndex<Held>> = LazyLock::new(|| MetricIndex::of(HELD_FIGURES));
pub static MACHINE: LazyLock<MetricIndex<Snapshot>> = LazyLock::new(|| MetricIndex::of(MACHINE_FIGURES));

pub fn metric_name<S>(figure: &Figure<S>) -> Option<String> {
    figure.metric.map(|metric| format!("{}{}", metric.name, metric.kind.suffix()))
}

/// Rates that are to be computed: the name of the figure, and that of the counter.
pub fn rates() -> impl Iterator<Item = (&'static str, String)> {
    let rates = DEVICE_FIGURES.iter().filter_map(|figure| Some((figure.name, figure.metric?)));
    let rates = rates.filter(|(_, metric)| metric.kind == MetricKind::RateOf);
    rates.map(|(name, metric)| (name, format!("{}{}", metric.name, MetricKind::Counter.suffix())))
}

impl<S> MetricIndex<S> {
    fn of(table: &[&'static Figure<S>]) -> MetricIndex<S> {
        let mut index =
            MetricIndex { numbers: HashMap::new(), words: HashMap::new(), texts: Vec::new(), rates: HashMap::new() };
        for figure in table {
            let (Some(metric), Some(name)) = (figure.metric, metric_name(figure)) else { continue };
            let place = |fixed| Place { figure, fixed, dimension: figure.dimension, scale: figure.unit.base().1 };
            match (metric.kind, metric.label) {
                (MetricKind::Gauge | MetricKind::Counter, fixed) => {
                    index.numbers.entry(name).or_default().push(place(fixed));
                }
                (MetricKind::RateOf, _) => drop(index.rates.insert(figure.name, place(None))),
                (MetricKind::OneOf, Some((label, _))) => drop(index.words.insert(name, (label, figure))),
                (MetricKind::Info, Some((label, _))) => index.texts.push((label, figure)),
                (MetricKind::OneOf | MetricKind::Info, None) => {}
            }
        }
        index
    }

    /// Sets the figure that a series is of. A metric that this program does not know is ignored.
    pub fn set<const N: usize>(&self, subject: &mut S, labels: &Labels<'_, N>, value: f64) {
        if let Some(places) = self.numbers.get(&*labels.name) {
            let is_it = |place: &&Place<S>| place.fixed.is_none_or(|(label, fixed)| labels.get(label) == fixed);
            if let Some(place) = places.iter().find(is_it) {
                place.set(subject, labels, value);
            }
        } else if let Some((label, figure)) = self.words.get(&*labels.name) {
            if value == 1.0 {
                (figure.set)(subject, 0, &Value::text(labels.get(label)));
            }
        }
    }

    pub fn set_rate<const N: usize>(&self, subject: &mut S, name: &str, labels: &Labels<'_, N>, value: f64) {
        if let Some(place) = self.rates.get(name) {
            place.set(subject, labels, value);
        }
    }

    /// Sets the texts that labels have. The first value stays.
    pub fn identify<const N: usize>(&self, subject: &mut S, labels: &Labels<'_, N>) {
        for (label, text) in labels.others().filter(|(_, text)| !text.is_empty()) {
            if let Some((_, figure)) = self.texts.iter().find(|(other, _)| *other == label) {
                if figure.always || figure.value(subject).is_none() {
                    let value = match figure.unit {
                        Unit::YesNo => Value::YesNo(text == "true"),
                        _ => Value::text(text),
                    };
                    (figure.set)(subject, 0, &value);
                }
            }
        }
    }
}

impl<S> Place<S> {
    fn set<const N: usize>(&self, subject: &mut S, labels: &Labels<'_, N>, value: f64) {
        let place = match self.dimension {
            Some(dimension) => dimension.place(labels.get(dimension.name())),
            None => Some(0),
        };
        if let Some(place) = place {
            // A hundredth has no exact binary form.
            let value = if self.scale < 1.0 { (value / self.scale * 1e9).round() / 1e9 } else { value / self.scale };
            (self.figure.set)(subject, place, &Value::Real(value));
        }
    }
}
