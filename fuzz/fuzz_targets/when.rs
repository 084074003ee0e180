//! Any text in the place of a time that somebody types, two lines for a stretch: `cargo +nightly fuzz run when`.

#![no_main]

use jiff::tz::TimeZone;
use libfuzzer_sys::fuzz_target;
use model::Timestamp;
use watch::past::when;

/// 2026-11-16 14:00:00 UTC, and moments at the ends of what there is.
const MOMENTS: [i64; 4] = [1_794_837_600_000, 0, i64::MIN, i64::MAX];
/// New York's rules: hours that are there twice, or not at all.
const ZONE: &str = "EST5EDT,M3.2.0,M11.1.0";

fuzz_target!(|text: &str| {
    let Ok(zone) = TimeZone::posix(ZONE) else { return };
    let (from, to) = text.split_once('\n').unwrap_or((text, "now"));
    for now in MOMENTS.map(Timestamp) {
        if let Ok(moment) = when::parse(from, now, &zone) {
            let _ = when::text(moment, now, &zone);
        }
        if let Ok((from, to)) = when::parse_range(from, to, now, &zone) {
            assert!(from <= to);
        }
    }
});
