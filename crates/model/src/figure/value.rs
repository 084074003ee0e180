//! A value of a figure, and how fields become one and back.

use crate::{
    Amperes, Arch, Bytes, BytesPerSecond, Celsius, ClockDecision, ClockLimiter, ClockRaiser, DeepUnavailable, DeviceId,
    Joules, Megahertz, PciAddress, Rpm, Runtime, SelfTest, Source, State, Timestamp, UtilizationSource,
    UtilizationUnknown, Volts, Watts,
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

/// How each type becomes a value, and what a value is as this type.
macro_rules! field_values {
    (|$it:ident, $value:ident| $($($type:ty),+ => $to:expr, $from:expr;)+) => {$($(
        impl FieldValue for $type {
            fn to_value(&self) -> Value<'_> {
                let $it = self;
                $to
            }
            fn from_value($value: &Value<'_>) -> Option<Self> {
                $from
            }
        }
    )+)+};
}

field_values! {
    |it, value|
    Celsius, Watts, Volts, Amperes, Joules, BytesPerSecond => Value::Real(it.0), value.number().map(Self);
    Rpm, Megahertz => Value::Whole(it.0.into()), value.whole()?.try_into().ok().map(Self);
    Bytes => Value::Whole(it.0), value.whole().map(Self);
    u8, u32 => Value::Whole((*it).into()), value.whole()?.try_into().ok();
    u64 => Value::Whole(*it), value.whole();
    f64 => Value::Real(*it), value.number();
    bool => Value::YesNo(*it), value.number().map(|number| number != 0.0);
    String, Arc<str> => Value::text(&**it), value.as_text().map(Into::into);
    PciAddress => Value::text(&*it.0), value.as_text().map(|text| PciAddress(text.into()));
    Arch, State, Source, Runtime, UtilizationSource, UtilizationUnknown, ClockDecision, ClockLimiter, ClockRaiser, DeepUnavailable,
        SelfTest => Value::text(it.name()), Self::named(value.as_text()?);
    // These are not read back from a value.
    DeviceId, Timestamp => Value::text(it.to_string()), value.as_text().and(None);
}
