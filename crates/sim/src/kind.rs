//! The kinds of boards, and what their firmware says about them.

use model::Arch;

/// A board by the name of `tt_card_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One Wormhole.
    N150,
    /// Two Wormholes, one of them without PCIe.
    N300,
    /// One of 32 Wormholes.
    GalaxyWormhole,
    /// One Blackhole with seven memory channels, with fans.
    P100a,
    /// One Blackhole, with fans.
    P150a,
    /// One Blackhole, cooled by the case.
    P150b,
    /// One Blackhole, cooled by liquid.
    P150c,
    /// Two Blackholes, with fans.
    P300a,
    /// Two Blackholes, cooled by the case.
    P300b,
    /// Two Blackholes, cooled by liquid.
    P300c,
    /// One of 32 Blackholes.
    GalaxyBlackhole,
}

/// What the firmware states as limits, and what the chip does at its ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub watts: u32,
    pub amperes: u32,
    pub celsius: u32,
    pub millivolts: u32,
    /// Drawn with nothing to do.
    pub idle_watts: u32,
    /// Drawn with everything to do: boards with a generous limit do not reach it.
    pub busy_watts: u32,
}

impl Kind {
    /// As the driver spells it in `tt_card_type`.
    pub fn card_type(self) -> &'static str {
        match self {
            Kind::N150 => "n150",
            Kind::N300 => "n300",
            Kind::GalaxyWormhole => "galaxy-wormhole",
            Kind::P100a => "p100a",
            Kind::P150a => "p150a",
            Kind::P150b => "p150b",
            Kind::P150c => "p150c",
            Kind::P300a => "p300a",
            Kind::P300b => "p300b",
            Kind::P300c => "p300c",
            Kind::GalaxyBlackhole => "galaxy-blackhole",
        }
    }

    /// The generation of its chips.
    pub fn arch(self) -> Arch {
        match self {
            Kind::N150 | Kind::N300 | Kind::GalaxyWormhole => Arch::Wormhole,
            _ => Arch::Blackhole,
        }
    }

    /// The kind's number, which is a part of each board's serial number and the PCI subsystem.
    pub fn number(self) -> u16 {
        match self {
            Kind::N300 => 0x14,
            Kind::N150 => 0x18,
            Kind::GalaxyWormhole => 0x35,
            Kind::P150a => 0x40,
            Kind::P150b => 0x41,
            Kind::P150c => 0x42,
            Kind::P100a => 0x43,
            Kind::P300b => 0x44,
            Kind::P300a => 0x45,
            Kind::P300c => 0x46,
            Kind::GalaxyBlackhole => 0x47,
        }
    }

    /// PCI functions on one board.
    pub fn functions(self) -> u32 {
        match self {
            Kind::P300a | Kind::P300b | Kind::P300c => 2,
            _ => 1,
        }
    }

    /// Whether the firmware turns a fan and tells its speed.
    pub fn has_fan(self) -> bool {
        matches!(self, Kind::P100a | Kind::P150a | Kind::P300a)
    }

    pub(crate) fn limits(self) -> Limits {
        let (watts, amperes) = match self {
            Kind::N150 => (100, 160),
            Kind::N300 | Kind::GalaxyWormhole => (85, 160),
            Kind::P100a | Kind::P150a | Kind::P150b => (150, 200),
            Kind::P150c => (500, 200),
            Kind::P300a => (86, 500),
            Kind::P300b => (94, 500),
            Kind::P300c => (125, 500),
            Kind::GalaxyBlackhole => (130, 500),
        };
        let (celsius, millivolts, idle_watts) = match self.arch() {
            Arch::Wormhole => (75, 1000, 12),
            Arch::Blackhole => (90, 900, 18),
        };
        Limits { watts, amperes, celsius, millivolts, idle_watts, busy_watts: watts.min(150) }
    }

    /// AI clock in MHz, idle and busy.
    pub(crate) fn clocks(self) -> (u32, u32) {
        match self.arch() {
            Arch::Wormhole => (500, 1000),
            Arch::Blackhole => (800, 1350),
        }
    }
}
