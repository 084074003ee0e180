//! Which version of its own protocol the service speaks.

use std::sync::LazyLock;

/// That of `ledger::wire`. Tests of upgrades have the service speak another one with `TTMON_WIRE_VERSION`, which is read once: what
/// it says is the same, under another number.
pub static VERSION: LazyLock<u32> = LazyLock::new(|| {
    let other = std::env::var("TTMON_WIRE_VERSION").ok().and_then(|number| number.parse().ok());
    other.unwrap_or(ledger::wire::VERSION)
});
