//! What a number is measured in, and how it is written.

use super::Value;
use crate::{Bytes, BytesPerSecond};

named! {
    /// What a figure's values are.
    pub enum Unit {
        /// A text, possibly one of a few words.
        Text = "text",
        /// A number without a unit.
        Count = "count",
        YesNo = "yes_no",
        Celsius = "celsius",
        Watts = "watts",
        Volts = "volts",
        Amperes = "amperes",
        Joules = "joules",
        /// Revolutions per minute.
        Rpm = "rpm",
        Megahertz = "megahertz",
        Seconds = "seconds",
        Bytes = "bytes",
        BytesPerSecond = "bytes_per_second",
        /// Events in a second.
        PerSecond = "per_second",
        Percent = "percent",
        /// A part of one, shown as percent.
        Share = "share",
    }
}

impl Unit {
    /// The symbol behind a number; empty where there is none.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Text | Unit::Count | Unit::YesNo | Unit::Share => "",
            Unit::Celsius => "°C",
            Unit::Watts => "W",
            Unit::Volts => "V",
            Unit::Amperes => "A",
            Unit::Joules => "J",
            Unit::Rpm => "rpm",
            Unit::Megahertz => "MHz",
            Unit::Seconds => "s",
            Unit::Bytes => "B",
            Unit::BytesPerSecond => "B/s",
            Unit::PerSecond => "/s",
            Unit::Percent => "%",
        }
    }

    /// How many decimals a number has, in the figure's own unit.
    pub fn decimals(self) -> usize {
        match self {
            Unit::Celsius | Unit::Watts | Unit::Amperes | Unit::Joules | Unit::Percent | Unit::PerSecond => 1,
            Unit::Volts | Unit::Seconds => 3,
            Unit::Share => 4,
            _ => 0,
        }
    }

    /// Whether values are numbers.
    pub fn is_number(self) -> bool {
        !matches!(self, Unit::Text | Unit::YesNo)
    }

    /// Whether values are whole numbers in JSON.
    pub fn is_whole(self) -> bool {
        matches!(self, Unit::Count | Unit::Rpm | Unit::Megahertz | Unit::Bytes)
    }

    /// Whether it is written with binary prefixes.
    pub fn is_binary(self) -> bool {
        matches!(self, Unit::Bytes | Unit::BytesPerSecond)
    }

    /// The base unit that metrics are in: its name, and how many there are in one of this.
    pub fn base(self) -> (Option<&'static str>, f64) {
        match self {
            Unit::Text | Unit::Count | Unit::YesNo | Unit::PerSecond => (None, 1.0),
            Unit::Megahertz => (Some("hertz"), 1e6),
            Unit::BytesPerSecond => (Some("bytes"), 1.0),
            Unit::Percent => (Some("ratio"), 0.01),
            Unit::Share => (Some("ratio"), 1.0),
            unit => (Some(unit.name()), 1.0),
        }
    }

    /// A value for people, with its unit: `51.2 °C`, `2.4 GiB`, `yes`.
    pub fn text(self, value: &Value<'_>) -> String {
        match (self, value) {
            (_, Value::Absent) => String::new(),
            (_, Value::Text(text)) => text.to_string(),
            (_, Value::YesNo(yes)) => if *yes { "yes" } else { "no" }.to_owned(),
            (Unit::Bytes, Value::Whole(bytes)) => Bytes(*bytes).to_string(),
            (Unit::Count, Value::Whole(number)) => number.to_string(),
            (_, Value::Whole(number)) => self.number(*number as f64),
            (_, Value::Real(number)) => self.number(*number),
        }
    }

    /// A number for people, with its unit.
    pub fn number(self, number: f64) -> String {
        match self {
            Unit::Bytes => Bytes(number.max(0.0) as u64).to_string(),
            Unit::BytesPerSecond => BytesPerSecond(number).to_string(),
            Unit::Share => format!("{:.2} %", number * 100.0),
            Unit::Text | Unit::Count | Unit::YesNo => self.plain(number),
            _ => format!("{} {}", self.plain(number), self.symbol()),
        }
    }

    /// A value for programs, without its unit.
    pub fn plain_text(self, value: &Value<'_>) -> String {
        match value {
            Value::Absent => String::new(),
            Value::Text(text) => text.to_string(),
            Value::YesNo(yes) => u8::from(*yes).to_string(),
            Value::Whole(number) => number.to_string(),
            Value::Real(number) => self.plain(*number),
        }
    }

    fn plain(self, number: f64) -> String {
        format!("{number:.*}", self.decimals())
    }
}
