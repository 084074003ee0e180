//! Durations as people write them: `90s`, `10m`, `1h30m`, `250ms`.

use std::time::Duration;

/// What a text means.
pub fn parse(text: &str) -> Result<Duration, String> {
    model::duration::parse(text)
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| "a duration like 90s, 10m, 1h30m or 250ms is needed".into())
}

/// The same for how often to look: from 10 ms to a day.
pub fn period(text: &str) -> Result<Duration, String> {
    let allowed = Duration::from_millis(10)..=Duration::from_secs(86_400);
    parse(text)
        .ok()
        .filter(|duration| allowed.contains(duration))
        .ok_or_else(|| "a duration like 1s, 250ms or 1m30s is needed, from 10ms to 1d".into())
}

/// The text of a duration, to tenths of a second below a minute, to seconds above.
pub fn text(duration: Duration) -> String {
    match duration.as_secs() {
        0..60 => format!("{:.1}s", duration.as_secs_f64()),
        seconds => model::duration::print(Duration::from_secs(seconds)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        let millis = |text| parse(text).map(|duration| duration.as_millis() as u64).ok();
        assert_eq!(millis("90s"), Some(90_000));
        assert_eq!(millis("10m"), Some(600_000));
        assert_eq!(millis("2h"), Some(7_200_000));
        assert_eq!(millis("1h30m"), Some(5_400_000));
        assert_eq!(millis("1d2h3m4s5ms"), Some(93_784_005));
        assert_eq!(millis("250ms"), Some(250));
        for wrong in
            ["", "10", "m", "0s", "10x", "1.5h", "-1s", "1m1h", "1s1s", "1h 30m", "1s5", "99999999999999999d", "é"]
        {
            assert_eq!(millis(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_period_has_limits() {
        assert_eq!(period("10ms"), Ok(Duration::from_millis(10)));
        assert_eq!(period("1d"), Ok(Duration::from_secs(86_400)));
        assert!(period("9ms").is_err() && period("1d1ms").is_err() && period("1").is_err());
    }

    #[test]
    fn durations_are_written_as_they_are_read() {
        let written = |text: &str| super::text(parse(text).unwrap());
        assert_eq!(written("2s40ms"), "2.0s");
        assert_eq!(written("60s"), "1m");
        assert_eq!(written("25h1s"), "1d1h1s");
        assert_eq!(text(Duration::ZERO), "0.0s");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*|[0-9hmsd]*") {
            let _ = parse(&text);
        }

        #[test]
        fn whole_seconds_come_back(seconds in 60u64..10_000_000) {
            let duration = Duration::from_secs(seconds);
            assert_eq!(parse(&text(duration)), Ok(duration));
        }
    }
}
