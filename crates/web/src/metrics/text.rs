//! Lines of the two text formats. They differ in the names of families and in how the text ends.

use super::family::Family;
use super::{MetricsFormat, is_named};
use model::figure::{MetricKind, Value};
use std::fmt::Write;

/// The text as far as it is written.
pub struct MetricsText<'a> {
    format: MetricsFormat,
    /// The families that are wanted. Empty: all.
    families: &'a [String],
    written: String,
}

impl<'a> MetricsText<'a> {
    pub fn new(format: MetricsFormat, families: &'a [String], capacity: usize) -> MetricsText<'a> {
        let capacity = if families.is_empty() { capacity } else { 0 };
        MetricsText { format, families, written: String::with_capacity(capacity) }
    }

    /// Lines of one family. Nothing is written of a family without lines, or of one that is not wanted.
    pub fn lines<'b, S>(&'b mut self, family: &'b Family<S>) -> FamilyLines<'b, 'a, S> {
        let is_wanted = self.families.is_empty()
            || self.families.iter().any(|word| is_named(family.name, family.kind.suffix(), word));
        FamilyLines { text: self, family, is_wanted, is_begun: false }
    }

    pub fn finish(mut self) -> String {
        if self.format == MetricsFormat::OpenMetrics {
            self.written.push_str("# EOF\n");
        }
        self.written
    }
}

pub struct FamilyLines<'b, 'a, S: 'static> {
    text: &'b mut MetricsText<'a>,
    pub family: &'b Family<S>,
    is_wanted: bool,
    is_begun: bool,
}

impl<S> FamilyLines<'_, '_, S> {
    /// A line with two groups of labels that are written already. Without a number there is none.
    pub fn line(&mut self, labels: &str, more: &str, number: Option<Value<'_>>) {
        let is_written =
            |number: &Value<'_>| self.is_wanted && !matches!(number, Value::Real(real) if !real.is_finite());
        let Some(number) = number.filter(is_written) else { return };
        let written = self.begin_line();
        let start = written.len();
        written.push_str(labels);
        written.push_str(more);
        end_labels(written, start);
        let _ = match number {
            Value::Whole(whole) => writeln!(written, "{whole}"),
            Value::Real(real) => writeln!(written, "{real}"),
            Value::YesNo(_) | Value::Text(_) | Value::Absent => Ok(()),
        };
    }

    /// A line whose labels are its content. Without any of its own there is none.
    pub fn info<'f>(&mut self, labels: &str, facts: impl Iterator<Item = (&'static str, Value<'f>)>) {
        let mut facts = facts.peekable();
        if !self.is_wanted || facts.peek().is_none() {
            return;
        }
        let written = self.begin_line();
        let start = written.len();
        written.push_str(labels);
        facts.for_each(|(name, value)| label_of(written, name, &value));
        end_labels(written, start);
        written.push_str("1\n");
    }

    /// The name and a bracket, with what is above all lines of the family before the first.
    fn begin_line(&mut self) -> &mut String {
        if !std::mem::replace(&mut self.is_begun, true) {
            self.head();
        }
        let written = &mut self.text.written;
        written.push_str(self.family.name);
        written.push_str(self.family.kind.suffix());
        written.push('{');
        written
    }

    fn head(&mut self) {
        let Family { name, help, unit, kind, .. } = self.family;
        let written = &mut self.text.written;
        let _ = match self.text.format {
            // Here a counter is called as its lines are, and an info is just a gauge.
            MetricsFormat::Prometheus => {
                let (suffix, kind) = (kind.suffix(), if *kind == MetricKind::Counter { "counter" } else { "gauge" });
                write!(written, "# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}\n")
            }
            MetricsFormat::OpenMetrics => {
                let unit = unit.map_or_else(String::new, |unit| format!("# UNIT {name} {unit}\n"));
                let kind = match kind {
                    MetricKind::Counter => "counter",
                    MetricKind::Info => "info",
                    MetricKind::Gauge | MetricKind::OneOf | MetricKind::RateOf => "gauge",
                };
                write!(written, "# TYPE {name} {kind}\n{unit}# HELP {name} {help}\n")
            }
        };
    }
}

/// Adds a label, and a comma for the next.
pub fn label(to: &mut String, name: &str, value: &str) {
    to.push_str(name);
    to.push_str("=\"");
    let mut rest = value;
    while let Some(at) = rest.find(['\\', '"', '\n']) {
        to.push_str(&rest[..at]);
        to.push_str(match rest.as_bytes()[at] {
            b'\n' => "\\n",
            b'"' => "\\\"",
            _ => "\\\\",
        });
        rest = &rest[at + 1..];
    }
    to.push_str(rest);
    to.push_str("\",");
}

/// Adds a label with the value of a figure.
pub fn label_of(to: &mut String, name: &str, value: &Value<'_>) {
    let _ = match value {
        Value::Text(text) => return label(to, name, text),
        Value::Whole(number) => write!(to, "{name}=\"{number}\","),
        Value::Real(number) => write!(to, "{name}=\"{number}\","),
        Value::YesNo(yes) => write!(to, "{name}=\"{yes}\","),
        Value::Absent => write!(to, "{name}=\"\","),
    };
}

/// Ends what began at `start`: no comma behind the last label, and no brackets around none.
fn end_labels(written: &mut String, start: usize) {
    written.pop();
    if written.len() >= start {
        written.push('}');
    }
    written.push(' ');
}
