//! Failures on purpose, for tests of what becomes of the terminal. A released program has none.

use super::terminal;

/// Panics where `TTMON_TEST_PANIC` names this place, once the terminal is taken.
pub fn maybe(place: &str) {
    let is_wanted = || std::env::var("TTMON_TEST_PANIC").is_ok_and(|wanted| wanted == place);
    assert!(!(cfg!(debug_assertions) && terminal::is_taken() && is_wanted()), "{place} fails on purpose");
}
