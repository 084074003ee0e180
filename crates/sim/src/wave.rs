//! How busy a device is, from the seed and the time alone.

/// Steps of the simulated clock in a second: the firmware measures ten times as well.
pub(crate) const TICKS_PER_SECOND: u64 = 10;

/// The load of a device that has a job, from 0 to 1, after so many ticks.
pub(crate) fn load(seed: u64, device: u64, ticks: u64) -> f64 {
    let phase = scatter(&[seed, device]);
    // The job goes through stretches of different kinds of work, now and then none.
    let stretch = (ticks + phase % STRETCH) / STRETCH;
    let level = match scatter(&[seed, device, stretch]) % 8 {
        0 => return 0.0,
        1 | 2 => 0.45,
        3 | 4 => 0.65,
        _ => 0.85,
    };
    let seconds = ticks as f64 / TICKS_PER_SECOND as f64 + unit(phase) * 100.0;
    let wave = |period: f64, share: f64| sine(seconds / period) * share;
    (level + wave(29.0, 0.15) + wave(7.3, 0.08) + wave(1.9, 0.04)).clamp(0.0, 1.0)
}

/// A load that swings around a level, for ever: no more than `swing` away from it.
pub(crate) fn steady_load(seed: u64, device: u64, ticks: u64, level: f64, swing: f64) -> f64 {
    let seconds = ticks as f64 / TICKS_PER_SECOND as f64 + unit(scatter(&[seed, device, 2])) * 100.0;
    let wave = |period: f64, share: f64| sine(seconds / period) * share;
    (level + swing * (wave(41.0, 0.5) + wave(9.7, 0.3) + wave(2.3, 0.2))).clamp(0.0, 1.0)
}

/// The place of a device in its own cycle of so many ticks, at a time.
pub(crate) fn in_cycle(seed: u64, device: u64, ticks: u64, cycle: u64) -> u64 {
    (ticks + scatter(&[seed, device, 3]) % cycle) % cycle
}

/// The sine of so many turns, to seven digits. The one of the system would be the only reason to load the library of mathematics at
/// every start of the program.
fn sine(turns: f64) -> f64 {
    let turn = turns.rem_euclid(1.0);
    // From -1/4 to 1/4 of a turn: the other half mirrors it.
    let turn = if turn < 0.25 {
        turn
    } else if turn < 0.75 {
        0.5 - turn
    } else {
        turn - 1.0
    };
    let angle = turn * std::f64::consts::TAU;
    let square = angle * angle;
    // The series by Horner's rule, up to the eleventh power.
    let series = [1.0 / 110.0, 1.0 / 72.0, 1.0 / 42.0, 1.0 / 20.0, 1.0 / 6.0];
    angle * series.iter().fold(1.0, |sum, factor| 1.0 - square * factor * sum)
}

/// Nine seconds.
const STRETCH: u64 = 90;

/// A number from numbers, as good as random (the steps of SplitMix64).
pub(crate) fn scatter(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0, |state, number| {
        let z = (state ^ number).wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    })
}

/// A scattered number as one from 0 to 1.
pub(crate) fn unit(scattered: u64) -> f64 {
    (scattered >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_is_between_nothing_and_everything_and_moves() {
        let loads: Vec<f64> = (0..6000).map(|ticks| load(1, 2, ticks)).collect();
        assert!(loads.iter().all(|load| (0.0..=1.0).contains(load)));
        assert!(loads.contains(&0.0), "a job pauses");
        assert!(loads.iter().any(|load| *load > 0.95), "a job goes all out");
    }

    #[test]
    fn a_steady_load_stays_near_its_level() {
        let loads: Vec<f64> = (0..6000).map(|ticks| steady_load(1, 2, ticks, 0.8, 0.1)).collect();
        assert!(loads.iter().all(|load| (0.7..=0.9).contains(load)));
        assert!(loads.iter().any(|load| *load < 0.75) && loads.iter().any(|load| *load > 0.85), "it moves");
    }

    #[test]
    fn the_sine_is_the_sine() {
        for step in -400..1000 {
            let turns = f64::from(step) / 100.0;
            let expected = (turns * std::f64::consts::TAU).sin();
            assert!((sine(turns) - expected).abs() < 1e-7, "{turns}: {} and not {expected}", sine(turns));
        }
    }

    #[test]
    fn devices_and_seeds_differ() {
        let minute = |seed, device| (0..600).map(|ticks| load(seed, device, ticks)).collect::<Vec<_>>();
        assert_eq!(minute(1, 0), minute(1, 0));
        assert_ne!(minute(1, 0), minute(1, 1));
        assert_ne!(minute(1, 0), minute(2, 0));
    }
}
