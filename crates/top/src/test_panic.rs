//! Panics on purpose, for tests of how the terminal is restored. Not compiled into release builds.

use super::terminal;

/// Panics where `TTMON_TEST_PANIC` names this place, once the terminal is taken.
pub fn maybe(place: &str) {
    let is_wanted = || std::env::var("TTMON_TEST_PANIC").is_ok_and(|wanted| wanted == place);
    assert!(!(terminal::is_taken() && is_wanted()), "{place} fails on purpose");
}
