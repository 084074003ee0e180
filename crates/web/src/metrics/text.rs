//! Lines of the two text formats. They differ in the names of families and in how the text ends.

use super::Format;
use super::table::{Kind, Metric};
use std::fmt::Write;

/// A value of a line.
#[derive(Debug, Clone, Copy)]
pub enum Value {
    Whole(u64),
    Real(f64),
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        Value::Whole(value)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Value {
        Value::Whole(u64::from(value))
    }
}

impl From<u8> for Value {
    fn from(value: u8) -> Value {
        Value::Whole(u64::from(value))
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Value {
        Value::Whole(value as u64)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Whole(u64::from(value))
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Real(value)
    }
}

/// The text as far as it is written.
pub struct Text {
    format: Format,
    written: String,
}

impl Text {
    pub fn with_capacity(format: Format, capacity: usize) -> Text {
        Text { format, written: String::with_capacity(capacity) }
    }

    /// Lines of one metric. Nothing is written of one that has no lines.
    pub fn family(&mut self, metric: &'static Metric) -> Family<'_> {
        Family { text: self, metric, is_begun: false }
    }

    pub fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.written.push_str("# EOF\n");
        }
        self.written
    }
}

/// One metric's lines.
pub struct Family<'a> {
    text: &'a mut Text,
    metric: &'static Metric,
    is_begun: bool,
}

impl Family<'_> {
    /// A line with labels that are written already, and one more. Without a value there is none.
    pub fn line(&mut self, labels: &str, more: Option<(&str, &str)>, value: Option<Value>) {
        let Some(value) = value.filter(|value| !matches!(value, Value::Real(real) if !real.is_finite())) else {
            return;
        };
        let written = self.begin_line();
        let start = written.len();
        written.push_str(labels);
        if let Some((name, value)) = more {
            label(written, name, value);
        }
        end_labels(written, start);
        let _ = match value {
            Value::Whole(whole) => writeln!(written, "{whole}"),
            Value::Real(real) => writeln!(written, "{real}"),
        };
    }

    /// A line that tells by its labels. Without any of its own there is none.
    pub fn info<'f>(&mut self, labels: &str, facts: impl Iterator<Item = (&'static str, &'f str)>) {
        let mut facts = facts.peekable();
        if facts.peek().is_none() {
            return;
        }
        let written = self.begin_line();
        let start = written.len();
        written.push_str(labels);
        facts.for_each(|(name, value)| label(written, name, value));
        end_labels(written, start);
        written.push_str("1\n");
    }

    /// The metric's name and a bracket, with what stands above all its lines before the first.
    fn begin_line(&mut self) -> &mut String {
        if !std::mem::replace(&mut self.is_begun, true) {
            self.head();
        }
        let written = &mut self.text.written;
        written.push_str(self.metric.name);
        written.push_str(self.metric.kind.suffix());
        written.push('{');
        written
    }

    fn head(&mut self) {
        let Metric { name, help, unit, kind, .. } = *self.metric;
        let written = &mut self.text.written;
        let _ = match self.text.format {
            // Here a counter is called as its lines are, and an info is just a gauge.
            Format::Prometheus => {
                let (suffix, kind) =
                    (kind.suffix(), if kind == Kind::Counter { Kind::Counter } else { Kind::Gauge }.name());
                write!(written, "# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}\n")
            }
            Format::OpenMetrics => {
                let unit_line = |written: &mut String| match unit {
                    Some(unit) => writeln!(written, "# UNIT {name} {unit}"),
                    None => Ok(()),
                };
                writeln!(written, "# TYPE {name} {}", kind.name())
                    .and_then(|()| unit_line(written))
                    .and_then(|()| writeln!(written, "# HELP {name} {help}"))
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

/// Ends what began at `start`: no comma behind the last label, and no brackets around none.
fn end_labels(written: &mut String, start: usize) {
    written.pop();
    if written.len() >= start {
        written.push('}');
    }
    written.push(' ');
}
