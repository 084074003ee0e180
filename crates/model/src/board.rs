//! What is known of a board by its name: how much memory one of its chips has, and whether it has a chip without PCIe.

use crate::{Arch, Bytes};
use std::fmt;

/// A board's name as the driver spells it in `tt_card_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Board {
    /// One Wormhole.
    N150,
    /// Two Wormholes, one of them reached through the other.
    N300,
    /// One of the 32 Wormholes of a Galaxy.
    GalaxyWormhole,
    /// One Blackhole, engineering board.
    P100,
    /// One Blackhole with seven memory channels.
    P100a,
    /// One Blackhole (p150a, p150b, p150c).
    P150,
    /// Two Blackholes, each with PCIe (p300a, p300b, p300c).
    P300,
    /// One of the 32 Blackholes of a Galaxy.
    GalaxyBlackhole,
}

/// Physical memory of one chip. The allocator can use a little less of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// GDDR6.
    pub dram: Bytes,
    /// On-chip memory of the enabled Tensix cores. Absent when their number depends on a firmware we do not know.
    pub l1: Option<Bytes>,
}

const GIB: u64 = 1 << 30;
const WORMHOLE_L1_PER_CORE: u64 = 1_499_136;
const BLACKHOLE_L1_PER_CORE: u64 = 1_572_864;

impl Board {
    /// The board that the driver names so.
    pub fn named(name: &str) -> Option<Board> {
        Some(match name {
            "n150" => Board::N150,
            "n300" => Board::N300,
            "galaxy-wormhole" => Board::GalaxyWormhole,
            "p100" => Board::P100,
            "p100a" => Board::P100a,
            "p150a" | "p150b" | "p150c" => Board::P150,
            "p300a" | "p300b" | "p300c" => Board::P300,
            "galaxy-blackhole" => Board::GalaxyBlackhole,
            _ => return None,
        })
    }

    /// The chips on it.
    pub fn arch(self) -> Arch {
        match self {
            Board::N150 | Board::N300 | Board::GalaxyWormhole => Arch::Wormhole,
            Board::P100 | Board::P100a | Board::P150 | Board::P300 | Board::GalaxyBlackhole => Arch::Blackhole,
        }
    }

    /// Whether the board carries a second chip that has no PCIe and no driver of its own.
    pub fn has_remote_chip(self) -> bool {
        self == Board::N300
    }

    /// Memory of one chip of the board, by the firmware bundle where that matters.
    pub fn capacity(self, bundle: Option<Version>) -> Option<Capacity> {
        let wormhole = |cores| Some(WORMHOLE_L1_PER_CORE * cores);
        let blackhole = |cores| Some(BLACKHOLE_L1_PER_CORE * cores);
        let (dram, l1) = match self {
            Board::N150 => (12, wormhole(72)),
            Board::N300 => (12, wormhole(64)),
            Board::GalaxyWormhole => (12, wormhole(80)),
            // Bundle 19.5 took two more columns of cores out of use.
            Board::P150 => (32, bundle.map(|v| if v.release() >= (19, 5) { 120 } else { 140 }).and_then(blackhole)),
            Board::P100a => (28, blackhole(120)),
            Board::P300 => (32, blackhole(120)),
            Board::GalaxyBlackhole => (32, blackhole(130)),
            Board::P100 => return None,
        };
        Some(Capacity { dram: Bytes(dram * GIB), l1: l1.map(Bytes) })
    }
}

/// A firmware version, `19.6.0.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version(pub [u16; 4]);

impl Version {
    /// Parses `a.b.c.d` or `a.b.c`. All-ones, which a dead chip answers, is no version.
    pub fn parse(text: &str) -> Option<Version> {
        let mut parts = [0; 4];
        let mut count = 0;
        for part in text.split('.') {
            *parts.get_mut(count)? = part.parse().ok()?;
            count += 1;
        }
        (count >= 3 && parts != [255; 4] && parts[..3] != [255, 15, 4095]).then_some(Version(parts))
    }

    /// Major and minor, in the order of releases: bundles numbered from 80 on are older than all others.
    pub fn release(self) -> (u16, u16) {
        let [major, minor, ..] = self.0;
        if major >= 80 { (0, minor) } else { (major, minor) }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = self.0;
        write!(f, "{a}.{b}.{c}.{d}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_follows_the_board() {
        let capacity = |name, fw| Board::named(name).and_then(|b| b.capacity(Version::parse(fw)));
        let gib = |n| Bytes(n * GIB);
        assert_eq!(capacity("n150", "19.6.0.0").unwrap(), Capacity { dram: gib(12), l1: Some(Bytes(107_937_792)) });
        assert_eq!(capacity("n300", "19.6.0.0").unwrap().l1.unwrap().to_string(), "91.5 MiB");
        assert_eq!(capacity("galaxy-wormhole", "").unwrap().l1.unwrap().to_string(), "114 MiB");
        assert_eq!(capacity("p100a", "").unwrap().dram, gib(28));
        assert_eq!(capacity("p300c", "").unwrap().l1.unwrap().to_string(), "180 MiB");
        assert_eq!(capacity("galaxy-blackhole", "").unwrap().l1.unwrap().to_string(), "195 MiB");
        assert_eq!(capacity("p100", ""), None);
        assert_eq!(capacity("unknown", ""), None);
    }

    #[test]
    fn the_number_of_p150_cores_depends_on_the_firmware() {
        let l1 = |fw| Board::P150.capacity(Version::parse(fw)).unwrap().l1.map(|l1| l1.to_string());
        assert_eq!(l1("19.6.0.0").as_deref(), Some("180 MiB"));
        assert_eq!(l1("19.4.2.0").as_deref(), Some("210 MiB"));
        assert_eq!(l1("80.17.0.0").as_deref(), Some("210 MiB"), "80.x is older than 18.x");
        assert_eq!(l1(""), None, "without the firmware version we do not guess");
    }

    #[test]
    fn a_hung_chip_has_no_version() {
        assert_eq!(Version::parse("255.255.255.255"), None);
        assert_eq!(Version::parse("255.15.4095"), None);
        assert_eq!(Version::parse("7.2.0"), Some(Version([7, 2, 0, 0])));
        assert_eq!(Version::parse("19.6"), None);
        assert_eq!(Version::parse("1.2.3.4.5"), None);
    }
}
