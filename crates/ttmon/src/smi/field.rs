//! A field that can be asked for by name. Help, header and answer come from the same row.

/// One field. `F` is the function that finds its value in a row.
pub struct Field<F> {
    /// Its name.
    pub name: &'static str,
    /// Other names for it; the header shows the first.
    pub aliases: &'static [&'static str],
    pub unit: Unit,
    pub help: &'static str,
    pub value: F,
}

impl<F> Field<F> {
    /// All names that it answers to.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }
}

/// What a number is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    None,
    /// Part of the field's own name: only the help tells.
    InName(&'static str),
    /// Written behind the number and, in brackets, behind the name, as nvidia-smi does.
    Shown(&'static str),
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Text(String),
    Integer(u64),
    /// With so many decimals.
    Decimal(f64, usize),
}

impl Value {
    /// A text, if there is one.
    pub fn text(text: &Option<impl ToString>) -> Option<Value> {
        text.as_ref().map(|text| Value::Text(text.to_string()))
    }

    /// A number, if there is one.
    pub fn integer(number: Option<impl Into<u64>>) -> Option<Value> {
        number.map(|number| Value::Integer(number.into()))
    }

    /// Bytes in whole MiB, as nvidia-smi counts memory.
    pub fn mebibytes(bytes: Option<model::Bytes>) -> Option<Value> {
        bytes.map(|bytes| Value::Integer(bytes.0 >> 20))
    }

    /// As it stands in a line.
    pub fn written(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            Value::Decimal(number, decimals) => format!("{number:.decimals$}"),
        }
    }
}

impl Unit {
    /// The unit in words for the help.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Unit::None => None,
            Unit::InName(unit) | Unit::Shown(unit) => Some(unit),
        }
    }
}
