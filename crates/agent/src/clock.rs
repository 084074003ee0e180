//! Time for limits of rate. The coarse clock is a read of shared memory and moves every few milliseconds.

use rustix::time::{ClockId, Timespec, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Milliseconds of the coarse clock.
#[inline]
pub fn millis() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::MonotonicCoarse);
    tv_sec as u64 * 1_000 + tv_nsec as u64 / 1_000_000
}

/// How long something took, in microseconds, rounded up.
pub fn timed<T>(what: impl FnOnce() -> T) -> (T, u64) {
    let before = micros();
    let result = what();
    (result, (micros() - before).saturating_add(1))
}

/// Keeps something to one percent of the time, and to once per pause, both on average: so many pauses may be drawn in
/// advance, so that a few events in a row are all seen to, and what stops after them is up to date.
pub struct Pace {
    /// Milliseconds between two times.
    pause: u64,
    /// Milliseconds that may be drawn in advance.
    ahead: u64,
    /// Each time moves this on by its pause.
    due: AtomicU64,
}

impl Pace {
    pub const fn new(pause: u64, ahead: u64) -> Pace {
        Pace { pause, ahead, due: AtomicU64::new(0) }
    }

    pub fn reset(&self) {
        self.due.store(0, Relaxed);
    }

    /// Whether there is time left.
    #[inline]
    pub fn has_time(&self, now: u64) -> bool {
        self.due.load(Relaxed) <= now + self.ahead
    }

    /// Takes the time if there is. Of several threads one does it, and the others need not wait for it.
    #[inline]
    pub fn take(&self, now: u64) -> bool {
        let due = self.due.load(Relaxed);
        let next = due.max(now) + self.pause;
        due <= now + self.ahead && self.due.compare_exchange(due, next, Relaxed, Relaxed).is_ok()
    }

    /// It took so long.
    pub fn took(&self, micros: u64) {
        self.due.fetch_add((micros / 10).saturating_sub(self.pause), Relaxed);
    }
}

fn micros() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    tv_sec as u64 * 1_000_000 + tv_nsec as u64 / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_times_come_at_once_and_then_one_at_a_time() {
        let pace = Pace::new(20, 160);
        let taken = |now| (0..100).filter(|_| pace.take(now)).count();
        assert_eq!(taken(1_000), 9);
        assert_eq!(taken(1_020), 1);
        assert_eq!(taken(1_200), 9);
        assert_eq!(taken(1_205), 0);
    }

    #[test]
    fn what_takes_long_is_done_seldom() {
        let pace = Pace::new(20, 160);
        assert!(pace.take(1_000));
        pace.took(50_000);
        assert!(!pace.take(6_000 - 160 - 1));
        assert!(pace.take(6_000 - 160));
    }

    #[test]
    fn what_takes_no_time_needs_no_pause() {
        let pace = Pace::new(0, 100);
        assert!((0..100).all(|_| pace.take(1_000)));
        pace.took(2_000);
        assert!(!pace.has_time(1_099));
        assert!(pace.has_time(1_100));
    }
}
