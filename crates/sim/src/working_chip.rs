//! A chip at work without a folder: its values second by second, as fast as they can be computed.

use crate::BoardKind;
use crate::motion::Motion;
use crate::tree::Chip;
use crate::wave::{self, TICKS_PER_SECOND};

/// A chip whose time is what its owner says.
pub struct WorkingChip {
    chip: Chip,
    motion: Motion,
    ticks: u64,
}

impl WorkingChip {
    /// A chip that has been idle for long.
    pub fn new(kind: BoardKind, index: u32, seed: u64) -> WorkingChip {
        WorkingChip { chip: Chip::of(kind, index), motion: Motion::new(kind, index.into(), seed), ticks: 0 }
    }

    /// One second later. The load, from 0 to 1, is asked for ten times, with the tick that it is for.
    pub fn second(&mut self, mut load: impl FnMut(u64) -> f64) -> &Chip {
        for _ in 0..TICKS_PER_SECOND {
            self.ticks += 1;
            self.motion.tick(load(self.ticks).clamp(0.0, 1.0), true);
        }
        self.motion.show(&mut self.chip);
        &self.chip
    }
}

/// The load that a simulated job puts on a device, from 0 to 1, after so many ticks: ten are a second.
pub fn job_load(seed: u64, device: u64, ticks: u64) -> f64 {
    wave::load(seed, device, ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chip_works_as_hard_as_it_is_told() {
        let mut chip = WorkingChip::new(BoardKind::P150a, 0, 7);
        let idle = chip.second(|_| 0.0).hwmon[0].power.unwrap();
        let busy = chip.second(|_| 1.0).hwmon[0].power.unwrap();
        assert!(busy > 5 * idle, "{idle} {busy}");
        let mut asked = Vec::new();
        chip.second(|tick| {
            asked.push(tick);
            job_load(7, 0, tick)
        });
        assert_eq!(asked, (21..=30).collect::<Vec<_>>());
    }
}
