//! A moment, as milliseconds since 1970, written the way JSON readers expect it.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::fmt;

/// Milliseconds since the Unix epoch. Written as `2026-01-02T03:04:05.678Z`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Year, month, day, hour, minute, second and millisecond.
    fn parts(self) -> [i64; 7] {
        let (days, millis) = (self.0.div_euclid(86_400_000), self.0.rem_euclid(86_400_000));
        let (year, month, day) = date_of(days);
        [year, month, day, millis / 3_600_000, millis / 60_000 % 60, millis / 1000 % 60, millis % 1000]
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [year, month, day, hour, minute, second, milli] = self.parts();
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }
}

impl std::str::FromStr for Timestamp {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let number = |range: std::ops::Range<usize>| -> Result<i64, ()> {
            let digits = text.get(range).ok_or(())?;
            if digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse().map_err(|_| ()) } else { Err(()) }
        };
        if text.len() != 24 || !text.ends_with('Z') {
            return Err(());
        }
        let days = days_of(number(0..4)?, number(5..7)?, number(8..10)?);
        let millis = number(11..13)? * 3_600_000 + number(14..16)? * 60_000 + number(17..19)? * 1000;
        Ok(Timestamp(days * 86_400_000 + millis + number(20..23)?))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // By hand, since an answer may have a hundred thousand of them.
        let parts = self.parts();
        let [year, month, day, hour, minute, second, milli] = parts.map(|part| part as u32);
        let pairs = [year / 100, year % 100, month, day, hour, minute, second, milli / 10];
        let mut text = *b"0000-00-00T00:00:00.000Z";
        for (pair, at) in pairs.into_iter().zip([0, 2, 5, 8, 11, 14, 17, 20]) {
            text[at] = b'0' + (pair / 10 % 10) as u8;
            text[at + 1] = b'0' + (pair % 10) as u8;
        }
        text[22] = b'0' + (milli % 10) as u8;
        match std::str::from_utf8(&text) {
            Ok(text) if (0..=9999).contains(&parts[0]) => serializer.serialize_str(text),
            _ => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|()| D::Error::custom(format_args!("not a UTC time with milliseconds: {text:?}")))
    }
}

// Years are counted from March, so that the leap day is a year's last (the proleptic Gregorian calendar in 400-year eras).
fn date_of(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_in_utc_with_milliseconds() {
        assert_eq!(Timestamp(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp(1_767_323_045_678).to_string(), "2026-01-02T03:04:05.678Z");
        assert_eq!(Timestamp(951_782_400_000).to_string(), "2000-02-29T00:00:00.000Z");
        assert_eq!(Timestamp(-1).to_string(), "1969-12-31T23:59:59.999Z");
    }

    proptest::proptest! {
        #[test]
        fn json_has_the_same_text(millis in proptest::prop_oneof![-99_999_999_999_999i64..399_999_999_999_999, 0i64..4_102_444_800_000]) {
            let text = serde_json::to_string(&Timestamp(millis)).unwrap();
            assert_eq!(text, format!("\"{}\"", Timestamp(millis)));
        }

        #[test]
        fn what_is_written_can_be_read_back(millis in 0i64..4_102_444_800_000) {
            assert_eq!(Timestamp(millis).to_string().parse(), Ok(Timestamp(millis)));
        }

        #[test]
        fn any_text_is_a_moment_or_none(text in "\\PC*") {
            let _ = text.parse::<Timestamp>();
        }
    }
}
