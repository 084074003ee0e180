//! The table of figures: one row per figure of a device, of a process and of the machine.
//!
//! A row says everything about its figure once. JSON schema, `-q`, CSV, metrics and the way back from them, history, rules,
//! charts, mesh, device detail, `dmon` and the page's facts are derived from it. Reading order:
//!
//! - this file: what a row consists of,
//! - [`device`], [`deep`], [`process`], [`operation`], [`machine`]: the rows,
//! - `value`: how a field becomes a [`Value`] and back,
//! - `metric`: where Prometheus finds it,
//! - `unit`: what a number is measured in, and how it is written,
//! - `labels`: figures with one value per memory kind, GDDR channel, Ethernet port or command queue.

pub mod deep;
pub mod device;
mod labels;
pub mod machine;
mod metric;
pub mod operation;
pub mod process;
mod unit;
mod value;

pub use labels::{Dimension, Field};
pub use metric::{Metric, MetricKind};
pub use unit::Unit;
pub use value::{FieldValue, Value};

/// One figure of a subject `S`: a device, a process, a process on a device, or the machine.
pub struct Figure<S: 'static> {
    /// As JSON, CSV and queries spell it, with the unit. In JSON it may be inside of an object, see [`Figure::path`].
    pub name: &'static str,
    /// The JSON object inside of the subject that holds it: `memory`, or `exact.{label}` with an object per label.
    pub object: Option<&'static str>,
    /// Other names that a query may use.
    pub aliases: &'static [&'static str],
    /// For people, as the label of a row or the title of a chart.
    pub title: &'static str,
    /// The part of a report that it belongs to.
    pub section: Section,
    /// What a value is measured in.
    pub unit: Unit,
    /// One sentence for help, schema and metrics, without quotes and backslashes.
    pub help: &'static str,
    /// The values that a text can have. Empty: any text.
    pub words: &'static [&'static str],
    /// Whether there always is a value.
    pub always: bool,
    /// Whether JSON has a field for it. Otherwise it is computed from other fields.
    pub in_json: bool,
    /// The figure that is this one's limit or capacity.
    pub limit: Option<&'static Figure<S>>,
    /// How much of its limit is too much.
    pub judge: Judge,
    /// What counts as full activity where there is no limit, such as what a link can carry.
    pub full_scale: Option<fn(&S) -> Option<f64>>,
    /// One value, or one per label.
    pub dimension: Option<Dimension>,
    /// How often it is read.
    pub freshness: Freshness,
    /// Whether history keeps it.
    pub history: bool,
    /// Its column in `dmon` or `pmon`.
    pub column: Option<Column>,
    /// Its metric.
    pub metric: Option<Metric>,
    /// The word for it in rules.
    pub rule: Option<&'static str>,
    /// Its value; the second argument is the label, 0 where there is none.
    pub get: Get<S>,
    /// Sets the value.
    pub set: Set<S>,
}

/// The JSON object of the figures that only a deep read knows.
pub const DEEP: &str = "deep";
/// What stands for the label in the path of a figure with labels.
pub const LABEL: &str = "{label}";

/// Finds a value, given the label.
pub type Get<S> = for<'a> fn(&'a S, usize) -> Option<Value<'a>>;
/// Sets a value, given the label. A value of the wrong type clears it.
pub type Set<S> = fn(&mut S, usize, &Value<'_>);

named! {
    /// A part of a report, in the order of reports, by its heading. In capitals that is the word for `-d`.
    #[derive(PartialOrd, Ord)]
    pub enum Section {
        Identity = "Identity",
        Health = "Health",
        /// Temperature and cooling.
        Temperature = "Temperature",
        /// Power, voltage, current.
        Power = "Power",
        Clock = "Clock",
        /// What the device does.
        Utilization = "Utilization",
        /// The PCIe link and its traffic.
        Pcie = "PCIe",
        Memory = "Memory",
        /// The memory chips: temperature, errors, training.
        Gddr = "GDDR",
        Ethernet = "Ethernet",
        /// What of the chip is enabled.
        Units = "Units",
        Firmware = "Firmware",
        /// The firmware's telemetry table as it was read. No figure belongs to it.
        Raw = "Raw",
        Pids = "Pids",
    }
}

/// How often a figure is read, and what it says while the chip does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Once; again after a reset.
    Fixed,
    /// Every five seconds, also where every sample is wanted.
    Seldom,
    /// With every sample, but every five seconds in relaxed sampling.
    Relaxed,
    /// A rate: over at least two seconds in relaxed sampling.
    Rate,
    /// With every sample, but every two seconds in relaxed sampling of many devices.
    Often,
    /// With every sample.
    Sample,
    /// With every sample, from the host alone: it is current even while the chip does not answer.
    Host,
}

named! {
    /// How a value is judged against its limit. The thresholds are in [`crate::judgement`].
    pub enum Judge {
        /// Any value is normal.
        Never = "never",
        /// Near its limit the firmware throttles.
        Heat = "heat",
        /// It fills up a capacity.
        Capacity = "capacity",
        /// Load: full load is normal, and being at the limit is worth a word.
        Load = "load",
        /// A link: below its limit it is degraded.
        Link = "link",
    }
}

/// A column of `dmon` or `pmon`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Column {
    /// Its heading.
    pub heading: &'static str,
    /// The unit below the heading.
    pub unit: &'static str,
    /// How many of the figure's units are one of the column's.
    pub scale: f64,
    /// How many characters it takes.
    pub width: usize,
    /// Where it is: columns are in the order of this number.
    pub position: u8,
}

impl<S> Figure<S> {
    /// A row with nothing but a name, a unit, help and access to its field. The rows add what else is to be said.
    pub const fn new(name: &'static str, unit: Unit, help: &'static str, access: (Get<S>, Set<S>)) -> Figure<S> {
        Figure {
            name,
            object: None,
            aliases: &[],
            title: "",
            section: Section::Identity,
            unit,
            help,
            words: &[],
            always: false,
            in_json: true,
            limit: None,
            judge: Judge::Never,
            full_scale: None,
            dimension: None,
            freshness: Freshness::Sample,
            history: false,
            column: None,
            metric: None,
            rule: None,
            get: access.0,
            set: access.1,
        }
    }

    /// The JSON key inside of [`Figure::object`]: the name, without a prefix that only repeats the object's name. The figure
    /// that is called as its object is the count of what is in it: `banks` is `banks.count`, `bank_free_bytes` is
    /// `banks.free_bytes`.
    pub fn key(&self) -> &'static str {
        let Some(object) = self.object.and_then(|object| object.rsplit('.').next()) else { return self.name };
        if self.name == object {
            return "count";
        }
        let one = object.strip_suffix('s').unwrap_or(object);
        self.name.strip_prefix(one).and_then(|rest| rest.strip_prefix('_')).unwrap_or(self.name)
    }

    /// Where JSON has it inside of the subject: `power_watts`, `memory.dram_used_bytes`. A figure with labels has `{label}` in
    /// it: `{label}_bytes`, `exact.{label}.peak_bytes`, `gddr_temp_celsius.{label}`.
    pub fn path(&self) -> String {
        let key = self.key();
        match (self.object, self.dimension) {
            (Some(object), None) => format!("{object}.{key}"),
            (Some(object), Some(_)) if object.contains(LABEL) => format!("{object}.{key}"),
            (Some(object), Some(_)) => format!("{object}.{key}.{LABEL}"),
            (None, Some(Dimension::MemoryKind)) => format!("{LABEL}_{key}"),
            (None, Some(_)) => format!("{key}.{LABEL}"),
            (None, None) => key.to_owned(),
        }
    }

    /// Whether only a deep read knows it.
    pub fn is_deep(&self) -> bool {
        self.object == Some(DEEP)
    }

    /// A row for a subject outside of this crate, which is only read.
    pub const fn read_only(name: &'static str, unit: Unit, help: &'static str, get: Get<S>) -> Figure<S> {
        Figure::new(name, unit, help, (get, |_, _, _| {}))
    }

    /// The value of a figure without labels.
    pub fn value<'a>(&self, subject: &'a S) -> Option<Value<'a>> {
        (self.get)(subject, 0)
    }

    /// The number of a figure without labels, in its own unit.
    pub fn number(&self, subject: &S) -> Option<f64> {
        self.value(subject)?.number()
    }

    /// What the limit or capacity is, where it is known and above zero.
    pub fn limit_of(&self, subject: &S) -> Option<f64> {
        self.limit?.number(subject).filter(|limit| limit.is_finite() && *limit > 0.0)
    }

    /// The value as a part of its limit or, where there is none, of full activity.
    pub fn share(&self, subject: &S) -> Option<f64> {
        let full = self.limit_of(subject).or_else(|| self.full_scale?(subject).filter(|full| *full > 0.0))?;
        Some(self.number(subject)? / full)
    }

    /// The value for people, with its unit.
    pub fn text(&self, subject: &S) -> Option<String> {
        self.value(subject).map(|value| self.unit.text(&value))
    }

    /// All names that a query may use.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Copies the value from one subject to another.
    pub fn copy(&self, from: &S, to: &mut S) {
        for label in 0..self.labels() {
            match (self.get)(from, label) {
                Some(value) => (self.set)(to, label, &value),
                None => (self.set)(to, label, &Value::Absent),
            }
        }
    }
}

impl<S> PartialEq for Figure<S> {
    fn eq(&self, other: &Figure<S>) -> bool {
        self.name == other.name
    }
}

impl<S> Eq for Figure<S> {}

impl<S> std::fmt::Debug for Figure<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Declares rows as statics, and the table of them all in the same order. A row's comment is its help. What `with` says holds
/// for the rows that follow, unless a row says otherwise:
///
/// ```text
/// with { section: Section::Power };
///
/// /// Power limit of the chip.
/// POWER_MAX("power_max_watts", "Power limit", Watts, field!(power_max)) { freshness: Freshness::Relaxed };
/// ```
macro_rules! figures {
    ($(#[$table_doc:meta])* $table:ident: $subject:ty; $(with $common:tt; $(
        $(#[doc = $help:literal])+
        $row:ident($name:literal, $title:literal, $unit:ident, $access:expr) $({ $($field:ident: $value:expr),+ $(,)? })?;
    )+)+) => {
        $($($(#[doc = $help])+ pub static $row: Figure<$subject> = Figure {
            title: $title,
            $($($field: $value,)+)?
            ..$crate::figure::common!($common, {
                let help = concat!($($help),+).trim_ascii();
                Figure::new($name, $crate::figure::Unit::$unit, help, $access)
            })
        };)+)+
        $(#[$table_doc])*
        pub static $table: &[&Figure<$subject>] = &[$($(&$row),+),+];
    };
}

macro_rules! common {
    ({ $($field:ident: $value:expr),+ $(,)? }, $row:expr) => { Figure { $($field: $value,)+ ..$row } };
}

/// Access to what is computed from other fields: it cannot be set.
const fn computed<S>(get: Get<S>) -> (Get<S>, Set<S>) {
    (get, |_, _, _| {})
}

const fn column(heading: &'static str, unit: &'static str, scale: f64, width: usize, position: u8) -> Option<Column> {
    Some(Column { heading, unit, scale, width, position })
}

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * 1024.0;

/// Access to an optional field: `field!(power)`, `field!(pcie.width)`, `field!(gddr_temp[])` for one with labels.
macro_rules! field {
    ($($path:ident).+) => {
        (
            |subject, _| subject.$($path).+.as_ref().map($crate::figure::FieldValue::to_value),
            |subject, _, value| subject.$($path).+ = $crate::figure::FieldValue::from_value(value),
        )
    };
    ($($path:ident).+ []) => {
        (
            |subject, label| subject.$($path).+.get(label)?.as_ref().map($crate::figure::FieldValue::to_value),
            |subject, label, value| {
                let all = &mut subject.$($path).+;
                let value = $crate::figure::FieldValue::from_value(value);
                if label >= all.len() && value.is_some() {
                    all.resize(label + 1, None);
                }
                if let Some(place) = all.get_mut(label) {
                    *place = value;
                }
            },
        )
    };
}

/// Access to a field that always has a value.
macro_rules! always {
    ($($path:ident).+) => {
        (
            |subject, _| Some($crate::figure::FieldValue::to_value(&subject.$($path).+)),
            |subject, _, value| {
                if let Some(value) = $crate::figure::FieldValue::from_value(value) {
                    subject.$($path).+ = value;
                }
            },
        )
    };
}

use {always, common, field, figures};

#[cfg(test)]
mod tests;
