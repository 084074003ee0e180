//! Lengths of time as rules and PromQL write them: `30s`, `1h30m`, `500ms`.

use std::time::Duration;

const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Reads a length of time of at most a year.
pub fn parse(text: &str) -> Option<Duration> {
    let mut rest = text;
    let (mut sum, mut smallest) = (0u64, u64::MAX);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        let letters = rest[digits..].find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len() - digits);
        let (unit, after) = rest[digits..].split_at(letters);
        let (_, millis) = *UNITS.iter().find(|(name, _)| *name == unit)?;
        // As in PromQL: the larger first, and each once.
        if millis >= smallest {
            return None;
        }
        smallest = millis;
        sum = number.checked_mul(millis).and_then(|more| sum.checked_add(more))?;
        rest = after;
    }
    (smallest < u64::MAX && sum <= 366 * 86_400_000).then_some(Duration::from_millis(sum))
}

/// Writes a length of time, in whole milliseconds.
pub fn print(time: Duration) -> String {
    let mut left = time.as_millis() as u64;
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
    fn a_length_of_time_is_numbers_with_units() {
        let read = |text| parse(text).map(|time| time.as_millis());
        assert_eq!(
            (read("30s"), read("1h30m"), read("500ms"), read("0s")),
            (Some(30_000), Some(5_400_000), Some(500), Some(0))
        );
        assert_eq!(["", "30", "s", "30x", "1m1h", "1s1s", "-1s", "99999999999999999999s", "400d"].map(read), [None; 9]);
    }

    proptest::proptest! {
        #[test]
        fn what_is_printed_is_what_is_read(millis in 0u64..31_000_000_000) {
            let time = Duration::from_millis(millis);
            assert_eq!(parse(&print(time)), Some(time));
        }

        #[test]
        fn any_text_is_a_length_of_time_or_none(text in "[0-9a-z]{0,12}|\\PC*") {
            let _ = parse(&text);
        }
    }
}
