//! The sensors and counters of one chip as its load changes.

use crate::BoardKind;
use crate::tree::{Chip, NO_FAN};
use crate::wave::{TICKS_PER_SECOND, scatter, unit};
use model::Arch;

/// Where a chip's values are.
pub(crate) struct Motion {
    kind: BoardKind,
    seed: u64,
    device: u64,
    ticks: u64,
    load: f64,
    watts: u32,
    celsius: f64,
    heartbeat: u32,
    counters: [u64; 12],
    /// Its cooling has failed.
    pub uncooled: bool,
}

impl Motion {
    /// A chip that has been idle for long.
    pub fn new(kind: BoardKind, device: u64, seed: u64) -> Motion {
        let scattered = scatter(&[seed, device, 1]);
        let watts = kind.limits().idle_watts;
        Motion {
            kind,
            seed,
            device,
            ticks: 0,
            load: 0.0,
            watts,
            celsius: target_celsius(kind, watts),
            // Up for a few minutes to a day.
            heartbeat: (3_000 + scattered % 861_000) as u32,
            counters: std::array::from_fn(|i| scatter(&[scattered, i as u64]) % (1 << 32)),
            uncooled: false,
        }
    }

    /// One tick at this load, with or without a beat of the firmware.
    pub fn tick(&mut self, load: f64, beats: bool) {
        self.ticks += 1;
        self.load = load;
        self.heartbeat = self.heartbeat.wrapping_add(beats.into());
        let limits = self.kind.limits();
        let jitter = unit(scatter(&[self.seed, self.device, self.ticks])) * 1.5;
        let span = f64::from(limits.busy_watts - limits.idle_watts);
        self.watts = ((f64::from(limits.idle_watts) + span * load + jitter) as u32).min(limits.busy_watts);
        let seconds = 1.0 / TICKS_PER_SECOND as f64;
        let target = if self.uncooled { UNCOOLED_CELSIUS } else { target_celsius(self.kind, self.watts) };
        self.celsius += (target - self.celsius) * seconds / THERMAL_LAG_SECONDS;
        for (i, counter) in self.counters.iter_mut().enumerate() {
            *counter += (load * seconds * FLITS_PER_SECOND * SHARES[i]) as u64;
        }
    }

    pub fn celsius(&self) -> f64 {
        self.celsius
    }

    /// It has been off for a while, and its cooling works again.
    pub fn cool(&mut self) {
        (self.uncooled, self.celsius) = (false, target_celsius(self.kind, self.kind.limits().idle_watts));
    }

    /// What a reset does.
    pub fn restart(&mut self) {
        self.heartbeat = 0;
        self.counters = [0; 12];
    }

    /// Puts the values into the chip's files.
    pub fn show(&self, chip: &mut Chip) {
        let (idle, busy) = self.kind.clocks();
        chip.aiclk = chip.aiclk.and(Some(if self.load >= NEXT_TO_NOTHING { busy } else { idle }));
        chip.heartbeat = chip.heartbeat.and(Some(self.heartbeat));
        chip.counters = chip.counters.and(Some(self.counters.map(|counter| counter as u32)));
        // The core voltage rises with the load; the current is what then makes the power, in whole amperes.
        let (low, high) = match self.kind.arch() {
            Arch::Wormhole => (795.0, 900.0),
            Arch::Blackhole => (720.0, 810.0),
        };
        let millivolts = (low + (high - low) * self.load) as u32;
        for hwmon in &mut chip.hwmon {
            hwmon.vcore = hwmon.vcore.and(Some(millivolts));
            hwmon.power = hwmon.power.and(Some(self.watts * 1_000_000));
            hwmon.current = hwmon.current.and(Some(self.watts * 1000 / millivolts * 1000));
            hwmon.temp = hwmon.temp.and(Some(millidegrees(self.celsius)));
            hwmon.fan = hwmon.fan.filter(|fan| *fan == NO_FAN).or(hwmon.fan.and(Some(self.fan())));
        }
    }

    fn fan(&self) -> u32 {
        (1_000.0 + (self.celsius - 30.0).max(0.0) * 62.0) as u32
    }
}

/// With less load, a chip stays at its idle clock.
const NEXT_TO_NOTHING: f64 = 0.1;
const THERMAL_LAG_SECONDS: f64 = 15.0;
/// Where the temperature of a chip without cooling would settle.
const UNCOOLED_CELSIUS: f64 = 140.0;

/// At full load, both NoCs together: some gigabytes per second.
const FLITS_PER_SECOND: f64 = 2.4e8;

/// Of each counter in the flits: mostly the device reads from the host by itself, and the host writes.
const SHARES: [f64; 12] = [0.16, 0.05, 0.01, 0.0, 0.26, 0.12, 0.22, 0.06, 0.02, 0.01, 0.06, 0.03];

/// Where the temperature settles. Wormholes throttle early, and are kept cooler.
fn target_celsius(kind: BoardKind, watts: u32) -> f64 {
    let hottest = match kind.arch() {
        Arch::Wormhole => 70.0,
        Arch::Blackhole => 82.0,
    };
    let limits = kind.limits();
    let share = f64::from(watts - limits.idle_watts) / f64::from(limits.busy_watts - limits.idle_watts);
    35.0 + (hottest - 35.0) * share
}

/// By way of the firmware's 16.16 fixed point and the driver's integer arithmetic.
fn millidegrees(celsius: f64) -> u32 {
    let fixed = (celsius * 65_536.0) as u32;
    (fixed >> 16) * 1000 + (fixed & 0xFFFF) * 1000 / 65_536
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wave;

    const KINDS: [BoardKind; 11] = [
        BoardKind::N150,
        BoardKind::N300,
        BoardKind::GalaxyWormhole,
        BoardKind::P100a,
        BoardKind::P150a,
        BoardKind::P150b,
        BoardKind::P150c,
        BoardKind::P300a,
        BoardKind::P300b,
        BoardKind::P300c,
        BoardKind::GalaxyBlackhole,
    ];

    #[test]
    fn no_board_exceeds_a_limit_in_ten_minutes() {
        for kind in KINDS {
            let mut chip = Chip::of(kind, 0);
            let mut motion = Motion::new(kind, 0, 7);
            let (mut hottest, mut coolest) = (0, u32::MAX);
            for ticks in 0..6000 {
                motion.tick(wave::load(7, 0, ticks), true);
                motion.show(&mut chip);
                let hwmon = &chip.hwmon[0];
                assert!(hwmon.power <= hwmon.power_max, "{kind:?}");
                assert!(hwmon.current <= hwmon.current_max, "{kind:?}");
                assert!(hwmon.vcore <= hwmon.vcore_max, "{kind:?}");
                assert!(hwmon.temp < hwmon.temp_max, "{kind:?}");
                hottest = hottest.max(hwmon.temp.unwrap());
                coolest = coolest.min(hwmon.temp.unwrap());
            }
            assert!(coolest >= 35_000 && hottest > coolest + 15_000, "{kind:?}: {coolest} to {hottest}");
            assert!(kind.arch() == Arch::Blackhole || hottest < 74_000, "{kind:?}: {hottest}");
        }
    }

    #[test]
    fn an_idle_chip_beats_and_counts_nothing() {
        let mut chip = Chip::p150a(0);
        let mut motion = Motion::new(BoardKind::P150a, 0, 7);
        motion.show(&mut chip);
        let before = chip.clone();
        (0..100).for_each(|_| motion.tick(0.0, true));
        motion.show(&mut chip);
        assert_eq!(chip.heartbeat, before.heartbeat.map(|beats| beats + 100));
        assert_eq!(chip.counters, before.counters);
        assert_eq!(chip.aiclk, Some(800));
    }

    #[test]
    fn load_warms_slowly_and_turns_the_fan() {
        let mut chip = Chip::p150a(0);
        let mut motion = Motion::new(BoardKind::P150a, 0, 7);
        let mut after = |seconds: u64| {
            (0..seconds * TICKS_PER_SECOND).for_each(|_| motion.tick(1.0, true));
            motion.show(&mut chip);
            let hwmon = &chip.hwmon[0];
            (hwmon.temp.unwrap() / 1000, hwmon.fan.unwrap() / 1000, hwmon.power.unwrap() / 1_000_000)
        };
        // The power is there at once. After one lag, 63 % of the way from 35 to 82 °C.
        assert_eq!(after(1), (38, 1, 150));
        assert_eq!(after(14), (64, 3, 150));
        assert_eq!(after(100), (81, 4, 150));
    }

    #[test]
    fn what_a_chip_lacks_does_not_appear() {
        let mut fanless = Chip { heartbeat: None, counters: None, ..Chip::p150b(0) };
        Motion::new(BoardKind::P150b, 0, 7).show(&mut fanless);
        assert_eq!(fanless.hwmon[0].fan, Some(u32::MAX));
        assert_eq!((fanless.heartbeat, fanless.counters), (None, None));
        let mut wormhole = Chip::n150(0);
        Motion::new(BoardKind::N150, 0, 7).show(&mut wormhole);
        assert_eq!(wormhole.hwmon[0].fan, None);
    }
}
