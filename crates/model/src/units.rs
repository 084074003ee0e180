//! Units as types. Raw encodings (milli, micro, tags) are turned into these where they are read.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign};

macro_rules! units {
    ($($(#[$doc:meta])* $name:ident($inner:ty), $symbol:literal, $decimals:literal;)+) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!("{:.", $decimals, "} ", $symbol), self.0)
            }
        })+
    };
}

units! {
    /// Temperature.
    Celsius(f64), "°C", 1;
    /// Power.
    Watts(f64), "W", 1;
    /// Electric potential.
    Volts(f64), "V", 3;
    /// Electric current.
    Amperes(f64), "A", 1;
    /// Energy.
    Joules(f64), "J", 1;
    /// Fan speed in revolutions per minute.
    Rpm(u32), "rpm", 0;
    /// Clock frequency.
    Megahertz(u32), "MHz", 0;
}

/// An amount of memory.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A data rate.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BytesPerSecond(pub f64);

const PREFIXES: [&str; 5] = ["", "Ki", "Mi", "Gi", "Ti"];

/// The value below 1024 (after rounding to `decimals`) and the binary prefix that goes with it.
fn scale(value: f64, decimals: i32) -> (f64, &'static str) {
    let mut value = value;
    let mut step = 0;
    let limit = 1024.0 - 0.5 / 10f64.powi(decimals);
    while value >= limit && step + 1 < PREFIXES.len() {
        value /= 1024.0;
        step += 1;
    }
    (value, PREFIXES[step])
}

impl Bytes {
    /// At most five characters, for narrow columns: `0`, `128K`, `12.4G`, `1000M`.
    pub fn short(self) -> String {
        if self.0 < 1024 {
            return if self.0 == 0 { "0".into() } else { format!("{}B", self.0) };
        }
        let (value, prefix) = scale(self.0 as f64, 0);
        let letter = &prefix[..1];
        match value {
            // Of a whole number a part of one takes long to work out.
            whole if whole.fract() == 0.0 => format!("{}{letter}", whole as u64),
            small if small < 99.95 => trim_zero(format!("{small:.1}")) + letter,
            large => format!("{large:.0}{letter}"),
        }
    }
}

fn trim_zero(text: String) -> String {
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match scale(self.0 as f64, 1) {
            (value, "") => write!(f, "{value:.0} B"),
            (value, prefix) => write!(f, "{value:.1} {prefix}B"),
        }
    }
}

impl fmt::Display for BytesPerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match scale(self.0, 1) {
            (value, "") => write!(f, "{value:.0} B/s"),
            (value, prefix) => write!(f, "{value:.1} {prefix}B/s"),
        }
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        *self = *self + other;
    }
}

impl std::iter::Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(values: I) -> Bytes {
        values.fold(Bytes(0), Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_binary_units_with_one_decimal() {
        let text = |n| Bytes(n).to_string();
        assert_eq!(text(0), "0 B");
        assert_eq!(text(1023), "1023 B");
        assert_eq!(text(131_072), "128.0 KiB");
        assert_eq!(text(2_576_980_378), "2.4 GiB");
        assert_eq!(text(1_048_575), "1.0 MiB", "rounding never shows 1024.0 KiB");
        assert_eq!(text(u64::MAX), "16777216.0 TiB");
    }

    #[test]
    fn the_short_form_fits_five_columns() {
        let text = |n: u64| Bytes(n).short();
        assert_eq!(text(0), "0");
        assert_eq!(text(512), "512B");
        assert_eq!(text(131_072), "128K");
        assert_eq!(text(13_314_398_618), "12.4G");
        assert_eq!(text(1023 << 20), "1023M");
        assert_eq!(text(32 << 30), "32G");
        assert_eq!(text((1 << 30) - 1), "1G");
    }

    #[test]
    fn units_say_their_name() {
        assert_eq!(Celsius(51.25).to_string(), "51.2 °C");
        assert_eq!(Watts(65.0).to_string(), "65.0 W");
        assert_eq!(Volts(0.742).to_string(), "0.742 V");
        assert_eq!(Rpm(2068).to_string(), "2068 rpm");
        assert_eq!(BytesPerSecond(3.2e9).to_string(), "3.0 GiB/s");
    }

    proptest::proptest! {
        #[test]
        fn no_amount_below_a_thousand_tebibytes_outgrows_its_column(n in 0u64..(1000 << 40)) {
            assert!(Bytes(n).short().len() <= 5, "{}", Bytes(n).short());
            assert!(Bytes(n).to_string().len() <= 10);
        }
    }
}
