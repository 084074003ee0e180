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

/// An amount as all texts for people have it. Below 100 of a unit it has one decimal, from 100 on none. What would be 1000 is one
/// of the next unit. Bytes themselves have no decimal. `format.js` of the page has the same rule.
#[derive(Clone, Copy)]
struct Rounded {
    whole: u64,
    tenth: Option<u64>,
    step: usize,
}

impl Rounded {
    fn of(bytes: f64) -> Rounded {
        let fits = |rounded: &Rounded| rounded.whole < 1000;
        let last = PREFIXES.len() - 1;
        (0..last).map(|step| Rounded::at(bytes, step)).find(fits).unwrap_or_else(|| Rounded::at(bytes, last))
    }

    /// In the unit with this prefix.
    fn at(bytes: f64, step: usize) -> Rounded {
        let value = bytes / (1u64 << (10 * step)) as f64;
        // Not with `{:.1}`: JavaScript rounds halves in another way, and it takes longer.
        let tenths = (value * 10.0).round() as u64;
        if step > 0 && tenths < 1000 {
            Rounded { whole: tenths / 10, tenth: Some(tenths % 10), step }
        } else {
            Rounded { whole: value.round() as u64, tenth: None, step }
        }
    }

    fn prefix(self) -> &'static str {
        PREFIXES[self.step]
    }

    /// `0`, `512B`, `12.4G`
    fn short(self) -> String {
        match self.prefix().get(..1) {
            Some(letter) => format!("{self}{letter}"),
            None if self.whole == 0 => "0".into(),
            None => format!("{self}B"),
        }
    }
}

/// The number alone.
impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tenth {
            Some(tenth) => write!(f, "{}.{tenth}", self.whole),
            None => write!(f, "{}", self.whole),
        }
    }
}

impl Bytes {
    /// At most five characters, for narrow columns: `0`, `64.0K`, `128M`, `12.4G`.
    pub fn short(self) -> String {
        Rounded::of(self.0 as f64).short()
    }

    /// The number alone, in the unit of a larger amount that is beside it: `12.4` of `32.0 GiB`. None where that would be less than
    /// one, and a little is not nothing.
    pub fn number_beside(self, larger: Bytes) -> Option<String> {
        let number = Rounded::at(self.0 as f64, Rounded::of(larger.0 as f64).step);
        (self.0 == 0 || number.whole > 0).then(|| number.to_string())
    }
}

impl BytesPerSecond {
    /// At most seven characters: `12.4G/s`.
    pub fn short(self) -> String {
        Rounded::of(self.0.max(0.0)).short() + "/s"
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = Rounded::of(self.0 as f64);
        write!(f, "{number} {}B", number.prefix())
    }
}

impl fmt::Display for BytesPerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = Rounded::of(self.0.max(0.0));
        write!(f, "{number} {}B/s", number.prefix())
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

    const GIB: f64 = (1u64 << 30) as f64;

    #[test]
    fn amounts_have_one_decimal_below_a_hundred_and_no_number_is_1000() {
        let texts = |n: u64| format!("{} {}", Bytes(n).short(), Bytes(n));
        let amounts = [
            0,
            1,
            999,
            1000,
            1023,
            1024,
            1280,
            1535,
            65_536,
            102_348,
            102_349,
            104_857,
            131_072,
            1023 << 10,
            1_048_575,
            1000 << 20,
            1023 << 20,
            (1 << 30) - 1,
            1 << 30,
            15 << 30,
            13_314_398_618,
            (99.94 * GIB) as u64,
            (99.95 * GIB) as u64 + 1,
            192 << 30,
            (999.4 * GIB) as u64,
            (999.5 * GIB) as u64,
            1 << 40,
            1000 << 40,
            u64::MAX,
        ];
        expect_test::expect![[r#"
            0: 0 0 B
            1: 1B 1 B
            999: 999B 999 B
            1000: 1.0K 1.0 KiB
            1023: 1.0K 1.0 KiB
            1024: 1.0K 1.0 KiB
            1280: 1.3K 1.3 KiB
            1535: 1.5K 1.5 KiB
            65536: 64.0K 64.0 KiB
            102348: 99.9K 99.9 KiB
            102349: 100K 100 KiB
            104857: 102K 102 KiB
            131072: 128K 128 KiB
            1047552: 1.0M 1.0 MiB
            1048575: 1.0M 1.0 MiB
            1048576000: 1.0G 1.0 GiB
            1072693248: 1.0G 1.0 GiB
            1073741823: 1.0G 1.0 GiB
            1073741824: 1.0G 1.0 GiB
            16106127360: 15.0G 15.0 GiB
            13314398618: 12.4G 12.4 GiB
            107309757890: 99.9G 99.9 GiB
            107320495309: 100G 100 GiB
            206158430208: 192G 192 GiB
            1073097578905: 999G 999 GiB
            1073204953088: 1.0T 1.0 TiB
            1099511627776: 1.0T 1.0 TiB
            1099511627776000: 1000T 1000 TiB
            18446744073709551615: 16777216T 16777216 TiB
        "#]]
        .assert_eq(&(amounts.map(|n| format!("{n}: {}\n", texts(n))).concat()));
    }

    #[test]
    fn a_part_is_in_the_unit_of_the_whole_unless_it_is_less_than_one_of_it() {
        let beside = |part: u64, whole: u64| Bytes(part).number_beside(Bytes(whole));
        assert_eq!(beside(13_314_398_618, 32 << 30).as_deref(), Some("12.4"));
        assert_eq!(beside(0, 32 << 30).as_deref(), Some("0.0"));
        assert_eq!(beside(150 << 30, 192 << 30).as_deref(), Some("150"));
        assert_eq!(beside(1000 << 20, 32 << 30).as_deref(), Some("1.0"));
        assert_eq!(beside(512 << 20, 32 << 30), None);
        assert_eq!(beside(900 << 30, 1 << 40), None);
        assert_eq!(beside(12, 512).as_deref(), Some("12"));
    }

    #[test]
    fn units_say_their_name() {
        assert_eq!(Celsius(51.25).to_string(), "51.2 °C");
        assert_eq!(Watts(65.0).to_string(), "65.0 W");
        assert_eq!(Volts(0.742).to_string(), "0.742 V");
        assert_eq!(Rpm(2068).to_string(), "2068 rpm");
        assert_eq!(BytesPerSecond(3.2e9).to_string(), "3.0 GiB/s");
        assert_eq!(
            [0.0, 999.4, 999.5, 3.2e9].map(|rate| BytesPerSecond(rate).short()),
            ["0/s", "999B/s", "1.0K/s", "3.0G/s"]
        );
    }

    /// What a short text says, and how much its last digit is.
    fn read_back(text: &str) -> (f64, f64) {
        let digits = text.trim_end_matches(char::is_alphabetic);
        let step = "KMGT".find(&text[digits.len()..]).filter(|_| text.len() > digits.len());
        let unit = 1024f64.powi(step.map_or(0, |step| step as i32 + 1));
        (digits.parse::<f64>().unwrap() * unit, if digits.contains('.') { unit / 10.0 } else { unit })
    }

    proptest::proptest! {
        /// As many of each unit, with those around 100 and 1000 of it.
        #[test]
        fn a_text_is_short_near_and_grows_with_its_amount(step in 0u32..5, tenths in 0u64..10_500, less in 0u64..2000, more in 0u64..2000) {
            let n = ((tenths << (10 * step)) / 10).saturating_sub(less).min((999 << 40) + (1 << 38));
            let text = Bytes(n).short();
            let (said, digit) = read_back(&text);
            assert!(text.len() <= 5 && Bytes(n).to_string().len() <= 8, "{n}: {text}");
            assert!(text.trim_end_matches(char::is_alphabetic).parse::<f64>().unwrap() < 1000.0, "{n}: {text}");
            assert!((said - n as f64).abs() <= digit / 2.0, "{n}: {text}");
            assert!(said <= read_back(&Bytes(n + (more << (5 * step))).short()).0, "{n}: {text}");
        }
    }
}
