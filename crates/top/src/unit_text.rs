//! How numbers are written and drawn by their unit: texts of several lengths, degrees, and what the axis of a chart needs.

use crate::state::TopState;
use model::Bytes;
use model::figure::Unit;

/// A unit as people chose to see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitText {
    pub unit: Unit,
    pub fahrenheit: bool,
    pub unicode: bool,
}

const PREFIXES: [&str; 5] = ["", "Ki", "Mi", "Gi", "Ti"];
/// The widest of the briefest texts.
pub const BRIEF_COLUMNS: u16 = 4;

impl UnitText {
    pub fn new(unit: Unit, state: &TopState) -> UnitText {
        UnitText { unit, fahrenheit: state.settings.fahrenheit, unicode: state.theme.unicode }
    }

    /// A value in the unit that is shown.
    pub fn shown(self, value: f64) -> f64 {
        if self.fahrenheit && self.unit == Unit::Celsius { value * 1.8 + 32.0 } else { value }
    }

    pub fn symbol(self) -> &'static str {
        match (self.unit, self.fahrenheit, self.unicode) {
            (Unit::Celsius, false, false) => "C",
            (Unit::Celsius, true, true) => "°F",
            (Unit::Celsius, true, false) => "F",
            (Unit::Share, _, _) => "%",
            (unit, _, _) => unit.symbol(),
        }
    }

    /// `54.0 °C`, `12.4 GiB`
    pub fn text(self, value: f64) -> String {
        if self.unit == Unit::Celsius {
            return format!("{:.*} {}", self.unit.decimals(), self.shown(value), self.symbol());
        }
        self.unit.number(value)
    }

    /// `54°C`, `65W`, `1350 MHz`, `3.0G/s`
    pub fn short(self, value: f64) -> String {
        let number = self.short_number(value);
        match self.unit {
            Unit::Bytes => number,
            Unit::BytesPerSecond => number + "/s",
            _ => match self.symbol() {
                "" => number,
                symbol if symbol.chars().count() > 2 => format!("{number} {symbol}"),
                symbol => number + symbol,
            },
        }
    }

    /// `54`, `1350`, `3.0G`, `0.85`
    pub fn short_number(self, value: f64) -> String {
        match self.unit {
            Unit::Bytes | Unit::BytesPerSecond => Bytes(value.max(0.0) as u64).short(),
            Unit::Volts | Unit::Seconds => format!("{value:.2}"),
            Unit::Share => format!("{:.0}", value * 100.0),
            _ => format!("{:.0}", self.shown(value)),
        }
    }

    /// In four columns, with as much of the symbol as there is room for: `54°`, `65W`, `5.2G`.
    pub fn brief(self, value: f64) -> String {
        if self.unit.is_binary() {
            return brief_bytes(Bytes(value.max(0.0) as u64));
        }
        let (number, symbol) = (self.short_number(value), self.symbol());
        let symbol = if self.unit == Unit::Celsius { symbol.trim_end_matches(['C', 'F']) } else { symbol };
        let fits = number.chars().count() + symbol.chars().count() <= usize::from(BRIEF_COLUMNS);
        if fits { number + symbol } else { number }
    }

    /// Whether a chart begins at zero: temperatures, clocks and voltages never get near it.
    pub fn begins_at_zero(self) -> bool {
        !matches!(self.unit, Unit::Celsius | Unit::Megahertz | Unit::Volts)
    }

    /// The least that an axis spans, in the unit that is shown.
    pub fn least_span(self) -> f64 {
        match self.unit {
            Unit::Celsius if self.fahrenheit => 20.0,
            Unit::Megahertz | Unit::Rpm | Unit::Percent => 100.0,
            Unit::Bytes => 1024.0 * 1024.0,
            Unit::BytesPerSecond => 1024.0,
            Unit::Volts | Unit::Share | Unit::YesNo => 1.0,
            _ => 10.0,
        }
    }

    /// How many columns the labels of an axis take.
    pub fn label_columns(self) -> u16 {
        match self.unit {
            Unit::BytesPerSecond => 10,
            Unit::Bytes | Unit::Megahertz | Unit::Rpm | Unit::Seconds | Unit::Count => 8,
            _ => 6,
        }
    }

    /// What is written at a round place of an axis, whose value is in the unit that is shown.
    pub fn label(self, shown: f64) -> String {
        if !self.unit.is_binary() {
            let decimals = usize::from(shown.fract() != 0.0) * 2;
            return format!("{shown:.decimals$} {}", self.symbol()).trim_end().to_owned();
        }
        let (mut value, mut prefix) = (shown, 0);
        // Only so far that nothing but a half is left behind the point.
        while value >= 1024.0 && (value / 512.0).fract() == 0.0 && prefix + 1 < PREFIXES.len() {
            value /= 1024.0;
            prefix += 1;
        }
        let decimals = usize::from(value.fract() != 0.0);
        format!("{value:.decimals$} {}{}", PREFIXES[prefix], self.unit.symbol())
    }
}

/// `12G`, `5.2G`, `980M`: in four columns.
fn brief_bytes(bytes: Bytes) -> String {
    let text = bytes.short();
    if text.len() <= usize::from(BRIEF_COLUMNS) {
        return text;
    }
    let (number, letter) = text.split_at(text.len() - 1);
    number.parse::<f64>().map_or(text.clone(), |value| format!("{value:.0}{letter}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(unit: Unit) -> UnitText {
        UnitText { unit, fahrenheit: false, unicode: true }
    }

    #[test]
    fn round_places_are_written_without_rounding() {
        let mib = |n: f64| of(Unit::Bytes).label(n * 1024.0 * 1024.0);
        assert_eq!([0.0, 512.0, 1024.0, 1280.0, 1536.0].map(mib), ["0 B", "512 MiB", "1 GiB", "1280 MiB", "1.5 GiB"]);
        assert_eq!(of(Unit::BytesPerSecond).label(65_536.0), "64 KiB/s");
        assert_eq!(of(Unit::Megahertz).label(1000.0), "1000 MHz");
        assert_eq!(of(Unit::Count).label(3.0), "3");
    }

    #[test]
    fn degrees_are_those_that_people_chose() {
        let fahrenheit = UnitText { fahrenheit: true, ..of(Unit::Celsius) };
        assert_eq!(
            (fahrenheit.text(54.0), fahrenheit.label(fahrenheit.shown(90.0))),
            ("129.2 °F".into(), "194 °F".into())
        );
        assert_eq!(UnitText { unicode: false, ..fahrenheit }.text(54.0), "129.2 F");
        assert_eq!(UnitText { unit: Unit::Watts, ..fahrenheit }.text(54.0), "54.0 W");
    }

    #[test]
    fn texts_get_shorter() {
        let texts = |unit, value| {
            let text = of(unit);
            [text.text(value), text.short(value), text.short_number(value), text.brief(value)].join(" | ")
        };
        expect_test::expect![[r#"
            54.3 °C | 54°C | 54 | 54°
            65.0 W | 65W | 65 | 65W
            1350 MHz | 1350 MHz | 1350 | 1350
            0.850 V | 0.85V | 0.85 | 0.85
            12.4 GiB | 12.4G | 12.4G | 12G
            3.0 GiB/s | 3.0G/s | 3.0G | 3.0G
            25.00 % | 25% | 25 | 25%"#]]
        .assert_eq(
            &[
                texts(Unit::Celsius, 54.3),
                texts(Unit::Watts, 65.0),
                texts(Unit::Megahertz, 1350.0),
                texts(Unit::Volts, 0.85),
                texts(Unit::Bytes, 13_314_398_618.0),
                texts(Unit::BytesPerSecond, 3_221_225_472.0),
                texts(Unit::Share, 0.25),
            ]
            .join("\n"),
        );
    }

    #[test]
    fn any_amount_fits_four_columns() {
        for shift in 0..44 {
            for bytes in [1u64 << shift, (1 << shift) * 3 / 2, ((1u64 << shift) * 1000) >> 10, (1 << shift) - 1] {
                assert!(brief_bytes(Bytes(bytes)).len() <= 4, "{bytes}: {}", brief_bytes(Bytes(bytes)));
            }
        }
        assert_eq!(brief_bytes(Bytes(13_314_398_618)), "12G");
        assert_eq!(brief_bytes(Bytes(5_600_000_000)), "5.2G");
        assert_eq!(brief_bytes(Bytes(1000 << 20)), "1.0G");
    }
}
