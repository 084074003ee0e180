//! The kinds of boards, and what their firmware says about them.

use model::Arch;

/// A board by the name of `tt_card_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoardKind {
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
pub(crate) struct BoardLimits {
    pub watts: u32,
    pub amperes: u32,
    pub celsius: u32,
    pub millivolts: u32,
    /// Drawn with nothing to do.
    pub idle_watts: u32,
    /// Drawn with everything to do: boards with a generous limit do not reach it.
    pub busy_watts: u32,
}

impl BoardKind {
    /// Its name in `tt_card_type`, its number, and what the firmware states as limits of power in W and current in A.
    fn row(self) -> (&'static str, u16, u32, u32) {
        match self {
            BoardKind::N150 => ("n150", 0x18, 100, 160),
            BoardKind::N300 => ("n300", 0x14, 85, 160),
            BoardKind::GalaxyWormhole => ("galaxy-wormhole", 0x35, 85, 160),
            BoardKind::P100a => ("p100a", 0x43, 150, 200),
            BoardKind::P150a => ("p150a", 0x40, 150, 200),
            BoardKind::P150b => ("p150b", 0x41, 150, 200),
            BoardKind::P150c => ("p150c", 0x42, 500, 200),
            BoardKind::P300a => ("p300a", 0x45, 86, 500),
            BoardKind::P300b => ("p300b", 0x44, 94, 500),
            BoardKind::P300c => ("p300c", 0x46, 125, 500),
            BoardKind::GalaxyBlackhole => ("galaxy-blackhole", 0x47, 130, 500),
        }
    }

    /// As the driver spells it in `tt_card_type`.
    pub fn card_type(self) -> &'static str {
        self.row().0
    }

    /// The generation of its chips.
    pub fn arch(self) -> Arch {
        match self {
            BoardKind::N150 | BoardKind::N300 | BoardKind::GalaxyWormhole => Arch::Wormhole,
            _ => Arch::Blackhole,
        }
    }

    /// The kind's number, which is a part of each board's serial number and the PCI subsystem.
    pub fn number(self) -> u16 {
        self.row().1
    }

    /// PCI functions on one board.
    pub fn functions(self) -> u32 {
        match self {
            BoardKind::P300a | BoardKind::P300b | BoardKind::P300c => 2,
            _ => 1,
        }
    }

    /// Whether the firmware turns a fan and reports its speed.
    pub fn has_fan(self) -> bool {
        matches!(self, BoardKind::P100a | BoardKind::P150a | BoardKind::P300a)
    }

    pub(crate) fn limits(self) -> BoardLimits {
        let (_, _, watts, amperes) = self.row();
        let (celsius, millivolts, idle_watts) = match self.arch() {
            Arch::Wormhole => (75, 1000, 12),
            Arch::Blackhole => (90, 900, 18),
        };
        BoardLimits { watts, amperes, celsius, millivolts, idle_watts, busy_watts: watts.min(150) }
    }

    /// AI clock in MHz, idle and busy.
    pub(crate) fn clocks(self) -> (u32, u32) {
        match self.arch() {
            Arch::Wormhole => (500, 1000),
            Arch::Blackhole => (800, 1350),
        }
    }
}
