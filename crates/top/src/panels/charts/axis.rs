//! Axes: round values, and round times.

use super::window::Window;
use crate::unit_text::UnitText;
use jiff::tz::TimeZone;
use model::Timestamp;

/// The values of a chart from bottom to top, in the unit that is shown. Both ends are whole steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    pub low: f64,
    pub high: f64,
    pub step: f64,
}

/// A limit is part of the picture once values get beyond this part of it.
const NEAR: f64 = 0.6;

impl Scale {
    /// A scale for values between these (as they are stored), on so many rows.
    pub fn new(text: UnitText, (least, greatest): (f64, f64), limit: Option<f64>, rows: u16) -> Scale {
        let near = limit.filter(|limit| greatest > NEAR * limit);
        let mut high = text.shown(near.map_or(greatest, |limit| greatest.max(limit)));
        let mut low = text.shown(least);
        if text.begins_at_zero() {
            low = low.min(0.0);
        }
        let lacking = text.least_span() - (high - low);
        if lacking > 0.0 {
            // What is constant is in the middle, or at the bottom.
            low -= if text.begins_at_zero() { 0.0 } else { lacking / 2.0 };
            high += if text.begins_at_zero() { lacking } else { lacking / 2.0 };
        }
        // At least two steps: one alone could not hold what lies on both sides of zero.
        let most = f64::from(rows.saturating_sub(1) / 2).clamp(2.0, 8.0);
        let mut step = round_up((high - low) / most, text.unit.is_binary());
        loop {
            let (bottom, top) = ((low / step).floor() * step, (high / step).ceil() * step);
            if (top - bottom) / step <= most + 0.5 {
                return Scale { low: bottom, high: top, step };
            }
            step = round_up(step * 1.01, text.unit.is_binary());
        }
    }

    /// The whole steps.
    pub fn ticks(&self) -> impl Iterator<Item = f64> {
        let (low, step) = (self.low, self.step);
        (0..=((self.high - self.low) / self.step).round() as usize).map(move |n| low + n as f64 * step)
    }

    /// How far up a value lies: 0 is the bottom, 1 the top.
    pub fn part(&self, shown: f64) -> f64 {
        (shown - self.low) / (self.high - self.low)
    }
}

/// The next round number: 1, 2 or 5 and zeros, or a power of two.
fn round_up(least: f64, binary: bool) -> f64 {
    let least = least.max(1.0);
    let powers = |base: f64| std::iter::successors(Some(1.0), move |power| Some(power * base));
    if binary {
        return powers(2.0).find(|power| *power >= least).unwrap_or(least);
    }
    let ten = powers(10.0).take_while(|power| power.is_finite() && *power <= least).last().unwrap_or(1.0);
    [1.0, 2.0, 5.0].into_iter().map(|n| n * ten).find(|step| *step >= least * 0.999_999).unwrap_or(10.0 * ten)
}

/// Times that people count in, in seconds.
const STEPS: [i64; 21] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800,
    2_592_000,
];

/// Where times are written, from the newest to the oldest: the column from the left, and the text.
pub fn times(window: &Window, now: Option<Timestamp>, zone: &TimeZone) -> Vec<(u16, String)> {
    let column = window.column_ms();
    let step = |columns: i64| STEPS.into_iter().find(|step| step * 1000 / column >= columns);
    let mut places = Vec::new();
    let mut add = |time: i64, text: String| {
        if let Some(column) = window.column(Timestamp(time)) {
            places.push((column, text));
        }
    };
    if let Some(now) = now {
        add(now.0, "now".into());
        let Some(step) = step(9) else { return places };
        for n in 1..=window.span_ms() / (step * 1000) {
            add(now.0 - n * step * 1000, ago(n * step));
        }
    } else {
        let Some(step) = step(12) else { return places };
        let (oldest, newest) = (window.dot_time(0), window.end());
        let offset = offset(newest, zone);
        let last = (newest.0 / 1000 + offset).div_euclid(step);
        for n in 0..=window.span_ms() / (step * 1000) {
            let local = (last - n) * step;
            let time = (local - offset) * 1000;
            if time >= oldest.0 {
                add(time, clock(local, step < 60));
            }
        }
    }
    places
}

/// A round while ago.
fn ago(seconds: i64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("-{s}s"),
        (0, m, 0) => format!("-{m}m"),
        (0, m, s) => format!("-{m}m{s:02}"),
        (h, 0, _) => format!("-{h}h"),
        (h, m, _) => format!("-{h}h{m:02}"),
    }
}

/// The time of day, of seconds since 1970 as clocks here count them.
fn clock(local: i64, with_seconds: bool) -> String {
    let (h, m, s) = (local.div_euclid(3600).rem_euclid(24), local.div_euclid(60).rem_euclid(60), local.rem_euclid(60));
    if with_seconds { format!("{h:02}:{m:02}:{s:02}") } else { format!("{h:02}:{m:02}") }
}

/// By how many seconds clocks here are ahead.
fn offset(time: Timestamp, zone: &TimeZone) -> i64 {
    let time = jiff::Timestamp::from_millisecond(time.0).unwrap_or_default();
    i64::from(zone.to_offset(time).seconds())
}

/// A moment for people, with the day when it is another one than that of `today`.
pub fn moment(time: Timestamp, today: Timestamp, zone: &TimeZone) -> String {
    let local = |time: Timestamp| time.0.div_euclid(1000) + offset(time, zone);
    let (time_of_day, days) = (clock(local(time), true), [time, today].map(|time| local(time).div_euclid(86_400)));
    if days[0] == days[1] {
        return time_of_day;
    }
    let date = jiff::Timestamp::from_millisecond(time.0).unwrap_or_default();
    format!("{} {time_of_day}", date.to_zoned(zone.clone()).strftime("%b %-d"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::figure::Unit;
    use proptest::prelude::*;

    fn scale(unit: Unit, least: f64, greatest: f64, limit: Option<f64>, rows: u16) -> (f64, f64, f64) {
        let text = UnitText { unit, fahrenheit: false, unicode: true };
        let Scale { low, high, step } = Scale::new(text, (least, greatest), limit, rows);
        (low, high, step)
    }

    const UNITS: [Unit; 7] =
        [Unit::Celsius, Unit::Watts, Unit::Megahertz, Unit::Rpm, Unit::Bytes, Unit::BytesPerSecond, Unit::Count];

    #[test]
    fn scales_are_round() {
        assert_eq!(scale(Unit::Watts, 12.0, 65.0, Some(150.0), 12), (0.0, 80.0, 20.0));
        assert_eq!(scale(Unit::Watts, 12.0, 95.0, Some(150.0), 12), (0.0, 150.0, 50.0), "the limit is near");
        assert_eq!(scale(Unit::Celsius, 54.0, 54.0, Some(100.0), 12), (45.0, 60.0, 5.0), "constant");
        assert_eq!(scale(Unit::Celsius, 41.0, 53.0, None, 3), (40.0, 60.0, 10.0), "three rows have three labels");
        assert_eq!(scale(Unit::Celsius, -3.0, 53.0, None, 3), (-100.0, 100.0, 100.0));
        assert_eq!(scale(Unit::Bytes, 0.0, 0.0, None, 12), (0.0, 1_048_576.0, 262_144.0));
        let gib = 1024.0 * 1024.0 * 1024.0;
        assert_eq!(scale(Unit::Bytes, 0.0, 12.4 * gib, Some(32.0 * gib), 12), (0.0, 16.0 * gib, 4.0 * gib));
        assert_eq!(scale(Unit::Megahertz, 500.0, 1350.0, None, 12), (400.0, 1400.0, 200.0));
    }

    #[test]
    fn a_new_sample_inside_the_scale_does_not_move_it() {
        let mut tops: Vec<f64> = (51..60).map(|n| scale(Unit::Celsius, 42.0, f64::from(n), None, 9).1).collect();
        tops.dedup();
        assert_eq!(tops, [55.0, 60.0]);
    }

    proptest! {
        #[test]
        fn a_scale_holds_what_it_is_for(
            a in -3e38..3e38f64, b in 0.0..1e6f64, small: bool, unit in 0usize..UNITS.len(), rows in 0u16..100,
            limit in proptest::option::of(0.1..1e12f64), fahrenheit: bool,
        ) {
            let text = UnitText { unit: UNITS[unit], fahrenheit, unicode: true };
            let a = if small { a / 1e35 } else { a };
            let (least, greatest) = (a.min(b), a.max(b));
            let scale = Scale::new(text, (least, greatest), limit, rows);
            prop_assert!(scale.part(text.shown(least)) >= -1e-9 && scale.part(text.shown(greatest)) <= 1.0 + 1e-9);
            prop_assert!(scale.ticks().count() <= 10, "{:?}", scale);
        }

        #[test]
        fn times_lie_in_the_window(
            end in 0i64..1 << 42, span in 1.0..1e11f64, columns in 1u16..400, dots in 1u16..3, reversed: bool, follows: bool,
        ) {
            let window = Window::new(Timestamp(end), span, columns, dots, reversed);
            let places = times(&window, follows.then_some(Timestamp(end)), &TimeZone::UTC);
            prop_assert!(places.iter().all(|(column, _)| *column < columns));
            prop_assert!(places.len() <= usize::from(columns) / 9 + 2);
        }
    }
}
