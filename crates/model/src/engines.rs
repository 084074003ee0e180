//! How busy a process keeps an engine of a chip: arithmetic on two readings of what the kernel counts.

/// What the kernel counts of one engine, for one open file. Names and meanings are those of `drm-engine-*` and `drm-cycles-*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineCounters {
    /// Time for which it was busy.
    pub busy_nanoseconds: Option<u64>,
    /// Cycles for which it was busy.
    pub busy_cycles: Option<u64>,
    /// All cycles that went by, counted as the busy ones are.
    pub total_cycles: Option<u64>,
    /// Cycles in a second at the most.
    pub max_hertz: Option<u64>,
    /// How many engines are counted as this one; never zero.
    pub capacity: u64,
}

impl Default for EngineCounters {
    fn default() -> Self {
        EngineCounters { busy_nanoseconds: None, busy_cycles: None, total_cycles: None, max_hertz: None, capacity: 1 }
    }
}

impl EngineCounters {
    /// Whether a counter is lower than it was. The kernel allows that for a while, and asks to stay with what was read before.
    pub fn fell_since(&self, earlier: &EngineCounters) -> bool {
        let fell = |earlier: Option<u64>, later: Option<u64>| matches!((earlier, later), (Some(a), Some(b)) if b < a);
        fell(earlier.busy_nanoseconds, self.busy_nanoseconds)
            || fell(earlier.busy_cycles, self.busy_cycles)
            || fell(earlier.total_cycles, self.total_cycles)
    }
}

/// More than an engine can do is taken for inaccurate up to this factor, and for nonsense beyond.
const PLAUSIBLE: f64 = 2.0;

/// How busy an engine was between two readings `seconds` apart, in percent of all that it can do.
///
/// Busy time comes first. Cycles are enough where all cycles are counted too, and otherwise by the highest frequency.
pub fn engine_percent(earlier: &EngineCounters, later: &EngineCounters, seconds: f64) -> Option<f64> {
    if later.fell_since(earlier) || seconds <= 0.0 {
        return None;
    }
    let more = |earlier: Option<u64>, later: Option<u64>| Some((later? - earlier?) as f64);
    let time = more(earlier.busy_nanoseconds, later.busy_nanoseconds).map(|busy| (busy, seconds * 1e9));
    let cycles = || {
        let busy = more(earlier.busy_cycles, later.busy_cycles)?;
        let all = more(earlier.total_cycles, later.total_cycles);
        Some((busy, all.or_else(|| Some(seconds * later.max_hertz? as f64))?))
    };
    let (busy, all) = time.or_else(cycles)?;
    let share = busy / (all * later.capacity.max(1) as f64);
    (all > 0.0 && share <= PLAUSIBLE).then(|| (share * 1000.0).round().min(1000.0) / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanoseconds(busy: u64) -> EngineCounters {
        EngineCounters { busy_nanoseconds: Some(busy), ..EngineCounters::default() }
    }

    fn cycles(busy: u64, total: Option<u64>, max_hertz: Option<u64>) -> EngineCounters {
        EngineCounters { busy_cycles: Some(busy), total_cycles: total, max_hertz, ..EngineCounters::default() }
    }

    #[test]
    fn busy_time_is_a_share_of_the_time_between() {
        assert_eq!(engine_percent(&nanoseconds(5_000), &nanoseconds(250_005_000), 1.0), Some(25.0));
        assert_eq!(engine_percent(&nanoseconds(0), &nanoseconds(250_000_000), 0.5), Some(50.0));
        assert_eq!(engine_percent(&nanoseconds(7), &nanoseconds(7), 1.0), Some(0.0));
        assert_eq!(engine_percent(&nanoseconds(7), &nanoseconds(7), 0.0), None);
    }

    #[test]
    fn a_group_of_engines_can_do_as_much_as_all_of_them() {
        let four = EngineCounters { capacity: 4, ..nanoseconds(2_000_000_000) };
        assert_eq!(engine_percent(&nanoseconds(0), &four, 1.0), Some(50.0));
    }

    #[test]
    fn cycles_are_a_share_of_all_cycles_or_of_those_at_the_highest_frequency() {
        let share = |a, b| engine_percent(&a, &b, 2.0);
        assert_eq!(share(cycles(100, Some(1000), None), cycles(400, Some(2000), None)), Some(30.0));
        assert_eq!(share(cycles(0, None, Some(1_000_000)), cycles(500_000, None, Some(1_000_000))), Some(25.0));
        assert_eq!(share(cycles(0, None, None), cycles(500_000, None, None)), None, "a share of what?");
        assert_eq!(share(cycles(9, Some(5), None), cycles(9, Some(5), None)), None, "no cycle went by");
    }

    #[test]
    fn a_counter_that_fell_gives_no_rate() {
        assert_eq!(engine_percent(&nanoseconds(10), &nanoseconds(9), 1.0), None);
        assert!(cycles(5, Some(9), None).fell_since(&cycles(5, Some(10), None)));
    }

    #[test]
    fn a_little_too_much_is_all_and_far_too_much_is_nothing() {
        assert_eq!(engine_percent(&nanoseconds(0), &nanoseconds(1_100_000_000), 1.0), Some(100.0));
        assert_eq!(engine_percent(&nanoseconds(0), &nanoseconds(u64::MAX), 1.0), None);
    }

    proptest::proptest! {
        #[test]
        fn no_counters_give_more_than_all_or_less_than_nothing(a: [Option<u64>; 4], b: [Option<u64>; 4], capacity: u64, seconds in -1.0f64..10.0) {
            let counters = |[busy_nanoseconds, busy_cycles, total_cycles, max_hertz]: [Option<u64>; 4]| EngineCounters {
                busy_nanoseconds, busy_cycles, total_cycles, max_hertz, capacity,
            };
            let percent = engine_percent(&counters(a), &counters(b), seconds);
            assert!(percent.is_none_or(|percent| (0.0..=100.0).contains(&percent)));
        }
    }
}
