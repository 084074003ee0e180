//! Which version of its own protocol the service uses: that of `ledger::wire`.

#[cfg(not(debug_assertions))]
pub fn version() -> u32 {
    ledger::wire::VERSION
}

/// The version. Tests of upgrades run the debug build with another number in `TTMON_WIRE_VERSION`.
#[cfg(debug_assertions)]
pub fn version() -> u32 {
    static OTHER: std::sync::LazyLock<Option<u32>> =
        std::sync::LazyLock::new(|| std::env::var("TTMON_WIRE_VERSION").ok()?.parse().ok());
    OTHER.unwrap_or(ledger::wire::VERSION)
}
