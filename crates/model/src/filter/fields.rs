//! The fields of a filter: the rows of the tables, by name, by alias, or by name without the unit; and what the snapshot adds.

use super::FilterContext;
use crate::figure::process::{CONTAINER, HELD_FIGURES, PROCESS_FIGURES};
use crate::figure::{Field, Figure, Unit};
use crate::{Bytes, Held, Process, container_id};
use std::borrow::Cow;
use std::sync::LazyLock;

/// A field of a filter.
#[derive(Debug)]
pub(super) struct FilterField {
    source: FieldSource,
    name: Cow<'static, str>,
    aliases: &'static [&'static str],
}

#[derive(Debug, Clone, Copy)]
enum FieldSource {
    /// In the process.
    Process(&'static Figure<Process>),
    /// In what it holds on each of its devices.
    Held(Field<Held>),
    /// What takes more than the process to know.
    Computed(Unit, fn(&Process, &FilterContext) -> Option<f64>),
}

static COMPUTED: [(&str, FieldSource); 3] = [
    ("growth", FieldSource::Computed(Unit::Bytes, |_, context| context.growth)),
    ("share", FieldSource::Computed(Unit::Percent, share)),
    ("age", FieldSource::Computed(Unit::Seconds, age)),
];

static FIELDS: LazyLock<Vec<FilterField>> = LazyLock::new(|| {
    let processes = PROCESS_FIGURES.iter().map(|row| FilterField {
        source: FieldSource::Process(row),
        name: row.name.into(),
        aliases: row.aliases,
    });
    // What only an agent knows is for the memory view.
    let held = HELD_FIGURES.iter().filter(|row| row.object.is_none()).flat_map(|row| row.fields());
    let held = held.map(|field| FilterField {
        source: FieldSource::Held(field),
        name: field.name(),
        aliases: field.figure.aliases,
    });
    let computed =
        COMPUTED.iter().map(|(name, source)| FilterField { source: *source, name: (*name).into(), aliases: &[] });
    processes.chain(held).chain(computed).collect()
});

/// Names are there once.
impl PartialEq for FilterField {
    fn eq(&self, other: &FilterField) -> bool {
        self.name == other.name
    }
}

impl FilterField {
    /// All fields, in the order of the tables.
    pub fn all() -> &'static [FilterField] {
        &FIELDS
    }

    /// The field with this name; else with this alias; else with this name without its unit.
    pub fn named(word: &str) -> Option<&'static FilterField> {
        let same = |other: &str| other.eq_ignore_ascii_case(word);
        let by_name = FIELDS.iter().find(|field| same(&field.name));
        let by_alias = || FIELDS.iter().find(|field| field.aliases.iter().any(|alias| same(alias)));
        let by_stem = || FIELDS.iter().find(|field| same(field.stem()));
        by_name.or_else(by_alias).or_else(by_stem)
    }

    /// The preferred word for it: an alias, or the name without its unit unless that means another field.
    pub fn word(&self) -> &str {
        let means_this = |word: &&str| FilterField::named(word) == Some(self);
        self.aliases.iter().copied().chain([self.stem()]).find(means_this).unwrap_or(&self.name)
    }

    /// `trace` for `trace_bytes`.
    fn stem(&self) -> &str {
        let units = ["_bytes", "_percent", "_seconds"];
        units.iter().find_map(|unit| self.name.strip_suffix(unit)).unwrap_or(&self.name)
    }

    /// What its values are.
    pub fn unit(&self) -> Unit {
        match self.source {
            FieldSource::Process(row) => row.unit,
            FieldSource::Held(field) => field.figure.unit,
            FieldSource::Computed(unit, _) => unit,
        }
    }

    /// Whether something is true of its text in lower case, or of one of them where a process has several.
    pub fn has(&self, process: &Process, is: impl Fn(&str) -> bool) -> bool {
        let is = |text: &str| is(&text.to_lowercase());
        match self.source {
            // The whole, or the id alone, or the name, as tables show it.
            FieldSource::Process(row) if row == &CONTAINER => {
                process.container.as_deref().is_some_and(|container| is(container) || is(container_id(container)))
                    || process.owner.container_name.as_deref().is_some_and(is)
            }
            FieldSource::Process(row) => row.text(process).is_some_and(|text| is(&text)),
            FieldSource::Held(field) => {
                let values = process.devices.iter().filter_map(|held| field.value(held));
                values.into_iter().any(|value| is(&field.figure.unit.text(&value)))
            }
            FieldSource::Computed(..) => false,
        }
    }

    /// Its number: on several devices the sum, but of percentages and ages the largest.
    pub fn number(&self, process: &Process, context: &FilterContext) -> Option<f64> {
        match self.source {
            FieldSource::Process(row) => row.number(process),
            FieldSource::Held(field) => {
                let numbers = process.devices.iter().filter_map(|held| field.number(held));
                let is_sum = matches!(field.figure.unit, Unit::Bytes | Unit::Count);
                numbers.reduce(|a, b| if is_sum { a + b } else { a.max(b) })
            }
            FieldSource::Computed(_, number) => number(process, context),
        }
    }
}

/// DRAM in use, in percent of the DRAM of its devices.
fn share(process: &Process, context: &FilterContext) -> Option<f64> {
    let devices = &context.snapshot.devices;
    let total = |held: &Held| devices.iter().find(|device| device.id == held.id)?.memory.dram_total;
    let total: Bytes = process.devices.iter().map(total).sum::<Option<Bytes>>()?;
    Some(process.usage().dram_used?.0 as f64 / total.0 as f64 * 100.0).filter(|share| share.is_finite())
}

/// Seconds since it started.
fn age(process: &Process, context: &FilterContext) -> Option<f64> {
    let milliseconds = context.snapshot.taken_at.0.checked_sub(process.started_at?.0)?;
    Some(milliseconds as f64 / 1000.0).filter(|age| *age >= 0.0)
}
