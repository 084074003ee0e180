//! The fields that a query can name: every row of the tables of figures, and nvidia-smi's names for some of them.

use super::nvidia;
use super::process_row::ProcessRow;
use model::figure::device::DEVICE_FIGURES;
use model::figure::machine::DRIVER_VERSION;
use model::figure::process::{DEVICE, HELD_FIGURES, PROCESS_FIGURES};
use model::figure::{Field, Figure, Unit, Value};
use model::{Device, DeviceId, Held, Process, Snapshot};
use std::borrow::Cow;

/// What a line of the answer is about.
#[derive(Clone, Copy)]
pub struct CsvRow<'a> {
    pub snapshot: &'a Snapshot,
    pub device: Option<&'a Device>,
    /// The process, where the line is about one.
    pub process: Option<ProcessRow<'a>>,
    pub time: &'a str,
    /// The numbers of all chips, also of those that are not shown.
    pub numbers: &'a [(DeviceId, u32)],
}

/// A field that can be asked for by name. Help, header and answer come from it.
#[derive(Clone)]
pub struct CsvField {
    pub name: Cow<'static, str>,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    pub help: Cow<'static, str>,
    pub form: NumberForm,
    pub value: CsvValue,
}

#[derive(Clone, Copy)]
pub enum CsvValue {
    Time,
    Machine(Field<Snapshot>),
    Device(Field<Device>),
    Process(Field<Process>),
    Held(Field<Held>),
    /// Composed of several figures.
    Composed(fn(&CsvRow<'_>) -> Option<String>),
    /// Nothing measures it.
    Unmeasured,
}

#[derive(Clone, Copy, PartialEq)]
pub enum NumberForm {
    /// In the figure's own unit, which is part of the field's name: only the help shows it.
    Own(Unit),
    /// In nvidia-smi's unit, behind the number and in the header.
    Nvidia { unit: &'static str, scale: f64, decimals: usize },
}

impl CsvField {
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&*self.name).chain(self.aliases.iter().copied())
    }

    /// The field with the name for the header: nvidia-smi's own names stay as they were typed, since callers look for them there. It
    /// shortens those in `gpu_` itself.
    pub fn as_typed(&self, typed: &str) -> CsvField {
        let is_nvidia = |name: &&&str| name.contains('.') || **name == "vbios_version";
        let other = self.aliases.iter().filter(is_nvidia).find(|name| name.eq_ignore_ascii_case(typed));
        CsvField { name: other.map_or_else(|| self.name.clone(), |name| (*name).into()), ..self.clone() }
    }

    /// The unit that header and answer have.
    pub fn shown_unit(&self) -> Option<&'static str> {
        match self.form {
            NumberForm::Nvidia { unit, .. } => Some(unit).filter(|unit| !unit.is_empty()),
            NumberForm::Own(_) => None,
        }
    }

    /// The unit that the help has.
    pub fn unit(&self) -> Option<&'static str> {
        match self.form {
            NumberForm::Own(Unit::Share) => Some("%"),
            NumberForm::Own(unit) => Some(unit.symbol()).filter(|unit| !unit.is_empty()),
            NumberForm::Nvidia { .. } => self.shown_unit(),
        }
    }

    /// The answer, without a unit.
    pub fn text(&self, row: &CsvRow<'_>) -> Option<String> {
        let value = match &self.value {
            CsvValue::Time => return Some(row.time.to_owned()),
            CsvValue::Composed(compose) => return compose(row),
            CsvValue::Unmeasured => return None,
            CsvValue::Machine(field) => field.value(row.snapshot)?,
            CsvValue::Device(field) => field.value(row.device?)?,
            CsvValue::Process(field) => field.value(row.process?.process)?,
            CsvValue::Held(field) => field.value(row.process?.held)?,
        };
        Some(self.form.text(&value))
    }
}

impl NumberForm {
    fn text(self, value: &Value<'_>) -> String {
        match (self, value) {
            (NumberForm::Nvidia { scale, decimals, .. }, value) => scaled(value, scale, decimals),
            (NumberForm::Own(Unit::Share), Value::Real(share)) => format!("{:.2}", share * 100.0),
            (NumberForm::Own(unit), value) => unit.plain_text(value),
        }
    }
}

/// A value in a larger unit. A whole number stays whole: it is rounded down.
pub fn scaled(value: &Value<'_>, scale: f64, decimals: usize) -> String {
    match value {
        Value::Whole(number) if decimals == 0 => (number / (scale as u64).max(1)).to_string(),
        value => match value.number() {
            Some(number) => format!("{:.decimals$}", number / scale),
            None => Unit::Text.plain_text(value),
        },
    }
}

/// The fields of a row of a table, one for each label.
fn of_figure<S>(figure: &'static Figure<S>, value: fn(Field<S>) -> CsvValue) -> impl Iterator<Item = CsvField> {
    figure.fields().map(move |field| CsvField {
        // A part of one is shown in percent, and its name says so.
        name: if figure.unit == Unit::Share { format!("{}_percent", field.name()).into() } else { field.name() },
        aliases: figure.aliases,
        help: help(figure),
        form: NumberForm::Own(figure.unit),
        value: value(field),
    })
}

/// The sentence of the row, and the words that a value can be where the sentence does not have them.
fn help<S>(figure: &'static Figure<S>) -> Cow<'static, str> {
    match figure.words.iter().all(|word| figure.help.contains(word)) {
        true => figure.help.into(),
        false => format!("{} One of: {}.", figure.help, figure.words.join(", ")).into(),
    }
}

fn timestamp() -> CsvField {
    let help = "Local time of the sample, YYYY/MM/DD HH:MM:SS.msec.";
    nvidia::field("timestamp", &[], help, NumberForm::Own(Unit::Text), CsvValue::Time)
}

pub fn device_fields() -> Vec<CsvField> {
    let device = DEVICE_FIGURES.iter().flat_map(|figure| of_figure(figure, CsvValue::Device));
    let device = device.map(|field| if field.name == "index" { nvidia::index(field) } else { field });
    let driver = of_figure(&DRIVER_VERSION, CsvValue::Machine);
    std::iter::once(timestamp()).chain(device).chain(driver).chain(nvidia::device_fields()).collect()
}

pub fn process_fields() -> Vec<CsvField> {
    // A line about a process calls the id of the device `device`.
    let called = |field| CsvField { name: "device".into(), aliases: &["id", "index"], ..field };
    let device = of_figure(&DEVICE, CsvValue::Held).map(called);
    let process = PROCESS_FIGURES.iter().flat_map(|figure| of_figure(figure, CsvValue::Process));
    let held = HELD_FIGURES.iter().filter(|figure| **figure != &DEVICE);
    let held = held.flat_map(|figure| of_figure(figure, CsvValue::Held));
    std::iter::once(timestamp()).chain(device).chain(process).chain(held).chain(nvidia::process_fields()).collect()
}
