//! Durations as people and PromQL write them: `90s`, `10m`, `1h30m`, `250ms`.

use std::time::Duration;

/// Units, the largest first, in milliseconds.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Reads a duration. Each unit may come once, the larger first; a number without a unit is refused, since it could be any.
pub fn parse(text: &str) -> Option<Duration> {
    let (mut rest, mut units, mut sum) = (text, &UNITS[..], 0u64);
    if text.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, behind) = rest.split_at(digits);
        let letters = behind.len() - behind.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        let (unit, behind) = behind.split_at(letters);
        let at = units.iter().position(|(name, _)| *name == unit)?;
        sum = sum.checked_add(number.parse::<u64>().ok()?.checked_mul(units[at].1)?)?;
        (rest, units) = (behind, &units[at + 1..]);
    }
    Some(Duration::from_millis(sum))
}

/// Writes a duration, in whole milliseconds.
pub fn print(duration: Duration) -> String {
    let mut left = duration.as_millis() as u64;
    let mut text = String::new();
    for (name, millis) in UNITS {
        if left >= millis {
            text += &format!("{}{name}", left / millis);
            left %= millis;
        }
    }
    if text.is_empty() { "0s".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_numbers_with_units() {
        let read = |text| parse(text).map(|time| time.as_millis());
        assert_eq!(
            (read("30s"), read("1h30m"), read("500ms"), read("0s"), read("1d2h3m4s5ms")),
            (Some(30_000), Some(5_400_000), Some(500), Some(0), Some(93_784_005))
        );
        let wrong =
            ["", "10", "m", "10x", "1.5h", "-1s", "1m1h", "1s1s", "1h 30m", "1s5", "99999999999999999d", "é", "s"];
        assert_eq!(wrong.map(read), [None; 13]);
    }

    proptest::proptest! {
        #[test]
        fn what_is_printed_is_what_is_read(millis in 0u64..31_000_000_000) {
            let time = Duration::from_millis(millis);
            assert_eq!(parse(&print(time)), Some(time));
        }

        #[test]
        fn any_text_is_a_duration_or_none(text in "[0-9a-z]{0,12}|\\PC*") {
            let _ = parse(&text);
        }
    }
}
