//! The metric of a figure.

/// Where Prometheus finds a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// The family's name, without the suffix of its type.
    pub name: &'static str,
    /// What it is.
    pub kind: MetricKind,
    /// A label with a fixed value, where several figures share a family; for an info, the label that has the text.
    pub label: Option<(&'static str, &'static str)>,
}

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Goes up and down.
    Gauge,
    /// Goes up.
    Counter,
    /// A text, as a label of a constant 1.
    Info,
    /// 1 for the word that holds, 0 for the others, in a label of that name.
    OneOf,
    /// Not written: the rate of the counter of this name.
    RateOf,
}

impl MetricKind {
    /// What follows the family's name in each line.
    pub fn suffix(self) -> &'static str {
        match self {
            MetricKind::Counter => "_total",
            MetricKind::Info => "_info",
            MetricKind::Gauge | MetricKind::OneOf | MetricKind::RateOf => "",
        }
    }
}

impl Metric {
    /// A gauge.
    pub const fn gauge(name: &'static str) -> Option<Metric> {
        Some(Metric { name, kind: MetricKind::Gauge, label: None })
    }

    /// A gauge that shares its family with others.
    pub const fn gauge_by(name: &'static str, label: (&'static str, &'static str)) -> Option<Metric> {
        Some(Metric { name, kind: MetricKind::Gauge, label: Some(label) })
    }

    /// A counter.
    pub const fn counter(name: &'static str) -> Option<Metric> {
        Some(Metric { name, kind: MetricKind::Counter, label: None })
    }

    /// A text: the label of an info metric.
    pub const fn info(name: &'static str, label: &'static str) -> Option<Metric> {
        Some(Metric { name, kind: MetricKind::Info, label: Some((label, "")) })
    }

    /// A word out of several.
    pub const fn one_of(name: &'static str, label: &'static str) -> Option<Metric> {
        Some(Metric { name, kind: MetricKind::OneOf, label: Some((label, "")) })
    }

    /// The rate of a counter.
    pub const fn rate_of(name: &'static str) -> Option<Metric> {
        Some(Metric { name, kind: MetricKind::RateOf, label: None })
    }
}
