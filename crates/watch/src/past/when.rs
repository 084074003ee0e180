//! Moments as people write them: `14:05`, `yesterday 14:05`, `2026-11-15 14:05:30`, `20m ago`, `now`. Times are local, unless they say where.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Span, Zoned};
use model::Timestamp;

/// What is expected, for messages.
pub const EXPECTED: &str = "expected a time such as 14:05, \"yesterday 14:05\", \"2026-11-15 14:05:30\" or \"20m ago\"";

/// The moment that a text means, seen from now. A time without a date is the last one that has been.
pub fn parse(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Timestamp, String> {
    let here = local(now, zone);
    moment(text.trim(), now, &here, zone).ok_or_else(|| format!("{text:?} is not a time: {EXPECTED}"))
}

/// A stretch from a moment to another one. An end without a date is the first one after the beginning.
pub fn parse_range(from: &str, to: &str, now: Timestamp, zone: &TimeZone) -> Result<(Timestamp, Timestamp), String> {
    let from_moment = parse(from, now, zone)?;
    let to_moment = match clock_time(to.trim()) {
        Some(time) => {
            let begin = local(from_moment, zone);
            let same_day = on(begin.date(), time, zone).filter(|moment| *moment >= from_moment);
            let next_day = || on(begin.date().tomorrow().ok()?, time, zone);
            same_day.or_else(next_day).ok_or_else(|| format!("{to:?} is not a time: {EXPECTED}"))?
        }
        None => parse(to, now, zone)?,
    };
    if to_moment < from_moment {
        return Err(format!("the stretch ends before it begins: {from:?} to {to:?}"));
    }
    Ok((from_moment, to_moment))
}

/// A moment on the clock of a place.
pub fn local(moment: Timestamp, zone: &TimeZone) -> Zoned {
    jiff::Timestamp::from_millisecond(moment.0).unwrap_or_default().to_zoned(zone.clone())
}

fn moment(text: &str, now: Timestamp, here: &Zoned, zone: &TimeZone) -> Option<Timestamp> {
    if text == "now" {
        return Some(now);
    }
    if let Some(ago) = text.strip_suffix("ago") {
        let back = i64::try_from(model::duration::parse(ago.trim())?.as_millis()).ok()?;
        return Some(Timestamp(now.0.checked_sub(back)?));
    }
    if let Some(time) = clock_time(text) {
        let today = on(here.date(), time, zone)?;
        return if today <= now { Some(today) } else { on(here.date().yesterday().ok()?, time, zone) };
    }
    if let Ok(moment) = text.parse::<jiff::Timestamp>() {
        return Some(Timestamp(moment.as_millisecond()));
    }
    let (day, time) = text.split_once([' ', 'T']).unwrap_or((text, ""));
    let date = match day {
        "today" => here.date(),
        "yesterday" => here.date().yesterday().ok()?,
        _ => day.parse::<Date>().ok()?,
    };
    let time = if time.trim().is_empty() { Time::midnight() } else { clock_time(time.trim())? };
    on(date, time, zone)
}

/// `9:05`, `14:05`, `14:05:30`, `14:05:30.250`.
fn clock_time(text: &str) -> Option<Time> {
    let is_written_so = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b':' || byte == b'.');
    if !is_written_so(text) || !text.contains(':') {
        return None;
    }
    let padded = if text.find(':') == Some(1) { format!("0{text}") } else { text.to_owned() };
    padded.parse().ok()
}

fn on(date: Date, time: Time, zone: &TimeZone) -> Option<Timestamp> {
    let moment = DateTime::from_parts(date, time).to_zoned(zone.clone()).ok()?;
    Some(Timestamp(moment.timestamp().as_millisecond())).filter(|moment| moment.0 >= 0)
}

/// A moment for people: the time of today, the date before it otherwise.
pub fn text(moment: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let (then, here) = (local(moment, zone), local(now, zone));
    let is_of_today = then.date() == here.date();
    let yesterday = here.checked_sub(Span::new().days(1)).is_ok_and(|before| before.date() == then.date());
    match (is_of_today, yesterday) {
        (true, _) => then.strftime("%H:%M:%S").to_string(),
        (false, true) => then.strftime("yesterday %H:%M:%S").to_string(),
        (false, false) => then.strftime("%Y-%m-%d %H:%M:%S").to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-16 10:30 in UTC.
    const NOW: Timestamp = Timestamp(1_794_825_000_000);

    fn utc(text: &str) -> String {
        parse(text, NOW, &TimeZone::UTC).map_or_else(|error| error, |moment| moment.to_string())
    }

    #[test]
    fn moments_are_read_as_people_write_them() {
        assert_eq!(NOW.to_string(), "2026-11-16T10:30:00.000Z");
        for (text, expected) in [
            ("now", "2026-11-16T10:30:00.000Z"),
            ("9:05", "2026-11-16T09:05:00.000Z"),
            ("14:05", "2026-11-15T14:05:00.000Z"),
            ("yesterday 14:05", "2026-11-15T14:05:00.000Z"),
            ("yesterday", "2026-11-15T00:00:00.000Z"),
            ("today 08:00:01.5", "2026-11-16T08:00:01.500Z"),
            ("2026-11-12 14:05", "2026-11-12T14:05:00.000Z"),
            ("2026-11-12T14:05:06", "2026-11-12T14:05:06.000Z"),
            ("2026-11-12T14:05:06.789Z", "2026-11-12T14:05:06.789Z"),
            ("2026-11-12T14:05:06+02:00", "2026-11-12T12:05:06.000Z"),
            ("20m ago", "2026-11-16T10:10:00.000Z"),
            ("1h30m ago", "2026-11-16T09:00:00.000Z"),
        ] {
            assert_eq!(utc(text), expected, "{text}");
        }
    }

    #[test]
    fn local_time_is_that_of_the_place() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        assert_eq!(parse("12:00", NOW, &zone).unwrap().to_string(), "2026-11-16T10:00:00.000Z");
        assert_eq!(text(Timestamp(NOW.0 - 60_000), NOW, &zone), "12:29:00");
        assert_eq!(text(Timestamp(NOW.0 - 86_400_000), NOW, &zone), "yesterday 12:30:00");
        assert_eq!(text(Timestamp(NOW.0 - 3 * 86_400_000), NOW, &zone), "2026-11-13 12:30:00");
    }

    #[test]
    fn what_is_not_a_time_is_refused_in_a_sentence() {
        for wrong in
            ["", "soon", "25:00", "14", "14:", "-1:00", "ago", "2026-13-01", "1900-01-01", "yesterday soon", "é"]
        {
            assert_eq!(utc(wrong), format!("{wrong:?} is not a time: {EXPECTED}"));
        }
    }

    #[test]
    fn an_end_without_a_date_follows_the_beginning() {
        let range = |from, to| parse_range(from, to, NOW, &TimeZone::UTC).map(|(a, b)| format!("{a} {b}"));
        assert_eq!(range("yesterday 23:50", "0:10").unwrap(), "2026-11-15T23:50:00.000Z 2026-11-16T00:10:00.000Z");
        assert_eq!(range("8:00", "9:00").unwrap(), "2026-11-16T08:00:00.000Z 2026-11-16T09:00:00.000Z");
        assert_eq!(range("today", "now").unwrap(), "2026-11-16T00:00:00.000Z 2026-11-16T10:30:00.000Z");
        let wrong = "the stretch ends before it begins: \"now\" to \"yesterday\"";
        assert_eq!(range("now", "yesterday").unwrap_err(), wrong);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_moment_or_refused(text in "\\PC*") {
            let _ = parse(&text, NOW, &TimeZone::UTC);
            let _ = parse_range(&text, &text, NOW, &TimeZone::UTC);
        }
    }
}
