//! Clock ticks of `/proc` and microseconds of the kernel's log, which count from the boot of the machine, as moments.

use model::Timestamp;
use rustix::time::{ClockId, clock_gettime};

/// Turns clock ticks since boot into a moment.
pub(crate) struct Clock {
    ticks_per_second: u64,
    boot_nanoseconds: i128,
}

impl Clock {
    pub fn now() -> Clock {
        Clock {
            ticks_per_second: rustix::param::clock_ticks_per_second(),
            boot_nanoseconds: nanoseconds(ClockId::Realtime) - nanoseconds(ClockId::Boottime),
        }
    }

    /// Nanoseconds since 1970.
    pub fn nanoseconds(&self, ticks: u64) -> u64 {
        let since_boot = i128::from(ticks) * 1_000_000_000 / i128::from(self.ticks_per_second);
        (self.boot_nanoseconds + since_boot).clamp(0, i128::from(u64::MAX)) as u64
    }

    pub fn timestamp(&self, ticks: u64) -> Timestamp {
        Timestamp((self.nanoseconds(ticks) / 1_000_000) as i64)
    }

    pub fn seconds(&self, ticks: u64) -> f64 {
        ticks as f64 / self.ticks_per_second as f64
    }
}

/// Turns microseconds of the clock that stands still while the machine sleeps into a moment.
pub(crate) struct MonotonicClock {
    now: i128,
    start: i128,
}

impl MonotonicClock {
    pub fn now() -> MonotonicClock {
        let now = nanoseconds(ClockId::Realtime);
        MonotonicClock { now, start: now - nanoseconds(ClockId::Monotonic) }
    }

    /// Never in the future.
    pub fn timestamp(&self, microseconds: u64) -> Timestamp {
        let time = (self.start + i128::from(microseconds) * 1000).clamp(0, self.now.max(0));
        Timestamp((time / 1_000_000) as i64)
    }
}

fn nanoseconds(id: ClockId) -> i128 {
    let time = clock_gettime(id);
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}

#[cfg(test)]
impl Clock {
    /// A machine that started in 1970, with ticks of a nanosecond.
    pub fn made_up() -> Clock {
        Clock { ticks_per_second: 1_000_000_000, boot_nanoseconds: 0 }
    }
}
