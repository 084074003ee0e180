//! Host time of the ticks of a chip.

/// A tick and its host time.
#[derive(Debug)]
pub(super) struct Anchor {
    tick: u64,
    time: u64,
    cycles_per_ns: f64,
    /// The smallest delay in this period, and when the period began.
    delay: u64,
    period: u64,
}

/// ns after which a delay that all records had counts as none: the clocks of host and chip drift apart.
const PERIOD: u64 = 10_000_000_000;

impl Anchor {
    /// From the first record, which is taken to have arrived without delay.
    pub fn new(end: u64, arrival: u64, cycles_per_ns: f64) -> Anchor {
        Anchor { tick: end, time: arrival, cycles_per_ns, delay: u64::MAX, period: arrival }
    }

    pub fn cycles_per_ns(&self) -> f64 {
        self.cycles_per_ns
    }

    /// A record that ended at a tick has arrived: it cannot have ended later.
    pub fn arrived(&mut self, end: u64, arrival: u64) {
        let time = self.host_time(end);
        if time > arrival {
            self.time = self.time.saturating_sub(time - arrival);
        }
        self.delay = self.delay.min(arrival.saturating_sub(time));
        if arrival.saturating_sub(self.period) >= PERIOD {
            self.time = self.time.saturating_add(self.delay);
            (self.delay, self.period) = (u64::MAX, arrival);
        }
    }

    /// From this tick on, the chip has another frequency.
    pub fn change(&mut self, tick: u64, cycles_per_ns: f64) {
        (self.tick, self.time) = (tick, self.host_time(tick));
        self.cycles_per_ns = cycles_per_ns;
    }

    /// Host time of a tick.
    pub fn host_time(&self, tick: u64) -> u64 {
        if tick >= self.tick {
            self.time.saturating_add(self.ns(tick - self.tick))
        } else {
            self.time.saturating_sub(self.ns(self.tick - tick))
        }
    }

    /// ns of so many ticks.
    pub fn ns(&self, ticks: u64) -> u64 {
        (ticks as f64 / self.cycles_per_ns) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_record_ends_after_it_arrived() {
        let mut anchor = Anchor::new(1_000, 50_000, 0.5);
        assert_eq!((anchor.host_time(1_000), anchor.host_time(2_000), anchor.host_time(0)), (50_000, 52_000, 48_000));
        // The first one was under way for at least 700 ns.
        anchor.arrived(2_000, 51_300);
        assert_eq!((anchor.host_time(2_000), anchor.host_time(1_000)), (51_300, 49_300));
        anchor.arrived(3_000, 60_000);
        assert_eq!(anchor.host_time(3_000), 53_300, "a delay alone changes nothing");
    }

    #[test]
    fn a_chip_whose_clock_is_slower_than_it_says_does_not_fall_behind() {
        let (said, real) = (1.0, 0.9999);
        let mut anchor = Anchor::new(0, 0, said);
        for second in 1..1_000u64 {
            let time = second * 1_000_000_000;
            let tick = (time as f64 * real) as u64;
            anchor.arrived(tick, time);
            let behind = time - anchor.host_time(tick);
            assert!(behind <= 2_000_000, "{behind} ns after {second} s");
        }
    }

    #[test]
    fn a_new_frequency_counts_from_the_last_tick() {
        let mut anchor = Anchor::new(0, 1_000, 1.0);
        anchor.change(1_000, 2.0);
        assert_eq!((anchor.host_time(1_000), anchor.host_time(3_000)), (2_000, 3_000));
    }
}
