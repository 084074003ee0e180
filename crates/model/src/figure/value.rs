//! A value of a figure, and how fields become one and back.

use crate::{
    Amperes, Arch, Bytes, BytesPerSecond, Celsius, DeviceId, Megahertz, PciAddress, Rpm, Runtime, Source, State,
    Timestamp, Volts, Watts,
};
use std::borrow::Cow;
use std::sync::Arc;

/// A value of a figure, in the figure's own unit.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// No value: only for clearing a field.
    Absent,
    /// A whole number.
    Whole(u64),
    /// A number.
    Real(f64),
    /// Yes or no.
    YesNo(bool),
    /// A text.
    Text(Cow<'a, str>),
}

impl<'a> Value<'a> {
    /// The number; yes is 1.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Whole(number) => Some(*number as f64),
            Value::Real(number) => Some(*number),
            Value::YesNo(yes) => Some(f64::from(u8::from(*yes))),
            Value::Text(_) | Value::Absent => None,
        }
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A text.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Value<'a> {
        Value::Text(text.into())
    }

    fn whole(&self) -> Option<u64> {
        match self {
            Value::Whole(number) => Some(*number),
            // Beyond the range of u64 the cast stays at its ends.
            Value::Real(number) if number.is_finite() => Some(number.round() as u64),
            Value::YesNo(yes) => Some(u64::from(*yes)),
            _ => None,
        }
    }
}

/// A type that a field of a figure can have.
pub trait FieldValue: Sized {
    /// As a value.
    fn to_value(&self) -> Value<'_>;
    /// From a value, where it is one of this type.
    fn from_value(value: &Value<'_>) -> Option<Self>;
}

macro_rules! real {
    ($($unit:ident),+) => {$(
        impl FieldValue for $unit {
            fn to_value(&self) -> Value<'_> {
                Value::Real(self.0)
            }
            fn from_value(value: &Value<'_>) -> Option<Self> {
                value.number().map($unit)
            }
        }
    )+};
}
real!(Celsius, Watts, Volts, Amperes, BytesPerSecond);

macro_rules! whole {
    ($($unit:ident),+) => {$(
        impl FieldValue for $unit {
            fn to_value(&self) -> Value<'_> {
                Value::Whole(self.0.into())
            }
            fn from_value(value: &Value<'_>) -> Option<Self> {
                value.whole()?.try_into().ok().map($unit)
            }
        }
    )+};
}
whole!(Rpm, Megahertz, Bytes);

macro_rules! integer {
    ($($integer:ident),+) => {$(
        impl FieldValue for $integer {
            fn to_value(&self) -> Value<'_> {
                Value::Whole((*self).into())
            }
            fn from_value(value: &Value<'_>) -> Option<Self> {
                value.whole()?.try_into().ok()
            }
        }
    )+};
}
integer!(u8, u32, u64);

impl FieldValue for f64 {
    fn to_value(&self) -> Value<'_> {
        Value::Real(*self)
    }
    fn from_value(value: &Value<'_>) -> Option<Self> {
        value.number()
    }
}

impl FieldValue for bool {
    fn to_value(&self) -> Value<'_> {
        Value::YesNo(*self)
    }
    fn from_value(value: &Value<'_>) -> Option<Self> {
        value.number().map(|number| number != 0.0)
    }
}

macro_rules! text {
    ($($type:ty),+) => {$(
        impl FieldValue for $type {
            fn to_value(&self) -> Value<'_> {
                Value::Text(Cow::Borrowed(self))
            }
            fn from_value(value: &Value<'_>) -> Option<Self> {
                value.as_text().map(Into::into)
            }
        }
    )+};
}
text!(String, Arc<str>);

impl FieldValue for PciAddress {
    fn to_value(&self) -> Value<'_> {
        Value::Text(Cow::Borrowed(&self.0))
    }
    fn from_value(value: &Value<'_>) -> Option<Self> {
        value.as_text().map(|text| PciAddress(text.into()))
    }
}

impl FieldValue for DeviceId {
    fn to_value(&self) -> Value<'_> {
        Value::Text(self.to_string().into())
    }
    fn from_value(_: &Value<'_>) -> Option<Self> {
        None
    }
}

impl FieldValue for Timestamp {
    fn to_value(&self) -> Value<'_> {
        Value::Text(self.to_string().into())
    }
    fn from_value(_: &Value<'_>) -> Option<Self> {
        None
    }
}

macro_rules! word {
    ($($type:ident),+) => {$(
        impl FieldValue for $type {
            fn to_value(&self) -> Value<'_> {
                Value::Text(Cow::Borrowed(self.name()))
            }
            fn from_value(value: &Value<'_>) -> Option<Self> {
                let text = value.as_text()?;
                $type::ALL.into_iter().find(|word| word.name() == text)
            }
        }
    )+};
}
word!(Arch, State, Source, Runtime);
