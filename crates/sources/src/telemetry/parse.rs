//! How the text of an attribute becomes a value: pure functions on text.

use crate::dir::{Dir, Trouble, decimal};
use model::figure::Value;
use model::{Device, Version};
use std::ops::RangeInclusive;

/// How the text of an attribute becomes a value.
pub(crate) enum Parse {
    /// A decimal number.
    Number(Number),
    /// A text of its own form.
    Text(fn(&str) -> Parsed<'_>),
    /// What one text alone does not say.
    Special(fn(&Dir, &Device, &mut Trouble) -> Option<Value<'static>>),
}

#[derive(Debug, PartialEq)]
pub(crate) enum Parsed<'a> {
    /// This value, in the unit of the figure.
    Value(Value<'a>),
    /// There is no such value on this machine.
    Absent,
    /// What the bus answers for a chip that does not respond.
    AllOnes,
    /// Nothing that can be right, for this reason.
    Wrong(String),
}

/// A decimal number in a file.
#[derive(Debug)]
pub(crate) struct Number {
    /// What the driver prints when the bus answers all-ones.
    pub all_ones: Option<u64>,
    /// What the firmware says where there is no such thing.
    pub absent: Option<u64>,
    /// Whether the firmware's number has a sign in 16 bits before the point, which the driver prints as if it had none.
    pub signed: bool,
    /// In the unit of the file. What is outside is no measurement.
    pub plausible: RangeInclusive<i64>,
    /// How many of the file's units are one of the figure's.
    pub per_unit: f64,
}

impl Number {
    /// Any count of 32 bits.
    pub const COUNT: Number =
        Number { all_ones: None, absent: None, signed: false, plausible: 0..=u32::MAX as i64, per_unit: 1.0 };

    /// The value of a text of digits.
    pub fn parse(&self, text: &str) -> Parsed<'static> {
        let Some(raw) = decimal(text) else { return Parsed::Wrong(format!("not a number: {text:?}")) };
        if Some(raw) == self.all_ones {
            return Parsed::AllOnes;
        }
        if Some(raw) == self.absent {
            return Parsed::Absent;
        }
        let negative = self.signed && (32_768_000..65_536_000).contains(&raw);
        let value = if negative { raw as i64 - 65_536_000 } else { i64::try_from(raw).unwrap_or(i64::MAX) };
        if !self.plausible.contains(&value) {
            return Parsed::Wrong(format!("implausible value {raw}"));
        }
        Parsed::Value(if self.per_unit == 1.0 {
            Value::Whole(value as u64)
        } else {
            Value::Real(value as f64 / self.per_unit)
        })
    }
}

/// Reads a file and takes note of what is wrong with it.
pub(crate) fn read<'a>(
    folder: &Dir,
    file: &'static str,
    parse: impl FnOnce(&'a str) -> Parsed<'a>,
    buffer: &'a mut [u8; 256],
    trouble: &mut Trouble,
) -> Option<Value<'a>> {
    match parse(folder.text(file, buffer, trouble)?) {
        Parsed::Value(value) => return Some(value),
        Parsed::Absent => {}
        Parsed::AllOnes => {
            trouble.all_ones += 1;
            trouble.add(&folder.path_of(file), "all-ones, which is not a measurement");
        }
        Parsed::Wrong(reason) => trouble.add(&folder.path_of(file), reason),
    }
    None
}

/// A board's name as the driver spells it.
pub(crate) fn board_name(text: &str) -> Parsed<'_> {
    if text.len() > 32 || !text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
        return Parsed::Wrong(format!("not a board name: {text:?}"));
    }
    if text == "unknown" { Parsed::Absent } else { Parsed::Value(Value::text(text)) }
}

/// A board's or a chip's id: 16 hex digits.
pub(crate) fn hex_id(text: &str) -> Parsed<'_> {
    if text.len() != 16 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Parsed::Wrong(format!("not 16 hex digits: {text:?}"));
    }
    if text.bytes().all(|b| b.eq_ignore_ascii_case(&b'F')) {
        return Parsed::AllOnes;
    }
    Parsed::Value(Value::text(text.to_ascii_uppercase()))
}

/// A firmware version: numbers with dots between.
pub(crate) fn version(text: &str) -> Parsed<'_> {
    match Version::parse(text) {
        // The firmware was not told its version.
        Some(Version([0, 0, 0, 0])) => Parsed::Absent,
        Some(_) => Parsed::Value(Value::text(text)),
        None if text.starts_with("255.") => Parsed::AllOnes,
        None => Parsed::Wrong(format!("not a version: {text:?}")),
    }
}

/// A PCIe speed as a generation: "16.0 GT/s PCIe", on old kernels "16 GT/s"; "Unknown" when the link is down.
pub(crate) fn link_speed(text: &str) -> Parsed<'_> {
    let Some((speed, _)) = text.split_once(" GT/s") else { return Parsed::Absent };
    let speed = speed.trim_end_matches(".0");
    match ["2.5", "5", "8", "16", "32", "64"].iter().position(|known| *known == speed) {
        Some(place) => Parsed::Value(Value::Whole(place as u64 + 1)),
        None => Parsed::Wrong(format!("not a PCIe speed: {text:?}")),
    }
}

/// A number of PCIe lanes. 0 and 63 are what the kernel prints for a link that is down.
pub(crate) fn link_width(text: &str) -> Parsed<'_> {
    match (Number { plausible: 0..=63, ..Number::COUNT }).parse(text) {
        Parsed::Value(Value::Whole(width)) if ![1, 2, 4, 8, 12, 16, 32].contains(&width) => Parsed::Absent,
        parsed => parsed,
    }
}

/// A memory node of the host. Minus one says that the platform does not know.
pub(crate) fn numa_node(text: &str) -> Parsed<'_> {
    text.parse().map_or(Parsed::Absent, |node: u32| Parsed::Value(Value::Whole(node.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_scaled_and_its_sentinels_are_no_values() {
        let volts =
            Number { all_ones: Some(99), absent: Some(98), plausible: 1..=1_999, per_unit: 1e3, ..Number::COUNT };
        assert_eq!(volts.parse("742"), Parsed::Value(Value::Real(0.742)));
        assert_eq!([volts.parse("99"), volts.parse("98")], [Parsed::AllOnes, Parsed::Absent]);
        assert_eq!(volts.parse("0"), Parsed::Wrong("implausible value 0".into()));
        assert_eq!(volts.parse("18446744073709551615"), Parsed::Wrong("implausible value 18446744073709551615".into()));
        assert_eq!(volts.parse("-1"), Parsed::Wrong("not a number: \"-1\"".into()));
        assert_eq!(Number::COUNT.parse("7"), Parsed::Value(Value::Whole(7)));
    }

    #[test]
    fn a_sign_is_in_sixteen_bits_before_the_point() {
        let celsius = Number { signed: true, plausible: -40_000..=150_000, per_unit: 1e3, ..Number::COUNT };
        assert_eq!(celsius.parse("65530750"), Parsed::Value(Value::Real(-5.25)));
        assert_eq!(celsius.parse("54012"), Parsed::Value(Value::Real(54.012)));
        assert_eq!(celsius.parse("32768000"), Parsed::Wrong("implausible value 32768000".into()));
    }

    #[test]
    fn a_link_that_is_down_has_no_speed_and_no_width() {
        assert_eq!(link_speed("16 GT/s"), Parsed::Value(Value::Whole(4)));
        assert_eq!([link_speed("Unknown"), link_width("63"), link_width("0")], [const { Parsed::Absent }; 3]);
        assert_eq!(link_width("64"), Parsed::Wrong("implausible value 64".into()));
    }

    #[test]
    fn an_id_of_all_ones_is_a_chip_that_does_not_respond() {
        assert_eq!(hex_id("00000403319140af"), Parsed::Value(Value::text("00000403319140AF")));
        assert_eq!([hex_id("FFFFffffFFFFffff"), version("255.255.255.255")], [const { Parsed::AllOnes }; 2]);
        assert_eq!(board_name("unknown"), Parsed::Absent);
        assert_eq!(numa_node("-1"), Parsed::Absent);
    }
}
