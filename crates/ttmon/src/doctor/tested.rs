//! Versions that were tested together: one table, its date and its source.

use model::{Arch, Version};

/// A driver, a firmware bundle and tt-metal that Tenstorrent has tested together.
pub struct TestedSet {
    /// When the set was published.
    pub date: &'static str,
    pub driver: &'static str,
    pub firmware: &'static str,
    pub metal: &'static str,
}

/// The newest set of the table. What is newer than that is not in it, and is not wrong.
pub const DATE: &str = "2026-08-06";

/// `golden.json` of github.com/tenstorrent/tt-sw-manifest, up to its commit 0cf3eaa of that date. The newest comes first.
pub const SETS: [TestedSet; 4] = [
    TestedSet { date: "2026-08-06", driver: "2.10.0", firmware: "19.13.1", metal: "0.75.0" },
    TestedSet { date: "2026-06-25", driver: "2.9.0", firmware: "19.11.0", metal: "0.72.0" },
    TestedSet { date: "2026-06-24", driver: "2.8.0", firmware: "19.10.0", metal: "0.72.0" },
    TestedSet { date: "2026-06-02", driver: "2.8.0", firmware: "19.9.0", metal: "0.71.2" },
];

/// The oldest firmware bundle that tt-umd accepts (commit 3ed9cb6 of 2026-08-21).
pub fn oldest_firmware(arch: Arch) -> (u16, u16) {
    match arch {
        Arch::Wormhole => (18, 3),
        Arch::Blackhole => (18, 5),
    }
}

/// Whether a bundle is that of a set: the driver writes `19.13.1.0`, the set `19.13.1`.
pub fn is_firmware(set: &TestedSet, bundle: Version) -> bool {
    Version::parse(set.firmware).is_some_and(|version| version.0[..3] == bundle.0[..3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_of_its_date_and_the_newest_comes_first() {
        assert_eq!(SETS[0].date, DATE);
        assert!(SETS.is_sorted_by(|a, b| a.date >= b.date));
        assert!(SETS.iter().all(|set| Version::parse(set.firmware).is_some() && Version::parse(set.driver).is_some()));
    }
}
