//! How busy a chip is: the one place that decides what is known.
//!
//! A record arrives when its program ends. So busy time is complete only up to the latest end. Whether the chip was idle since is known
//! only when all that was launched has been recorded, or has been waited for. Otherwise a program may be running.

use super::contents::{ActivitySource, ChipActivity, NoRecords};
use std::fmt;

/// Busy time of a chip, and up to when it is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusyTime {
    /// Busy ns since recording began.
    pub busy: u64,
    /// Up to this time it is complete, ns of the monotonic clock.
    pub until: u64,
    /// Whether that is now: nothing runs since the last record ended.
    pub is_tail_known: bool,
}

/// How busy a chip was.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredUtilization {
    /// Busy time by the length of the window, 0 to 1.
    pub ratio: f64,
    /// Length of the window in ns.
    pub window: u64,
    /// When it ended, ns of the monotonic clock.
    pub until: u64,
    /// Whether records were lost in it, so that the chip was at least so busy.
    pub is_lower_limit: bool,
}

/// Why it is not known how busy a chip is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotKnown {
    /// No records arrive, for this reason.
    NoRecords(NoRecords),
    /// The device was closed.
    Closed,
    /// Recording began just now.
    TooEarly,
    /// A program has been running for so many ns: no record before it ends.
    Running(u64),
    /// The last sample of dispatch telemetry is so many ns old.
    Stale(u64),
}

impl fmt::Display for NotKnown {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let seconds = |ns: &u64| ns / 1_000_000_000;
        match self {
            NotKnown::NoRecords(reason) => f.write_str(reason.text()),
            NotKnown::Closed => f.write_str("the device was closed"),
            NotKnown::TooEarly => f.write_str("recording has just begun"),
            NotKnown::Running(ns) => write!(f, "a program has been running for {} s", seconds(ns)),
            NotKnown::Stale(ns) => write!(f, "not read for {} s", seconds(ns)),
        }
    }
}

/// ns after a completed wait until all records of before have arrived.
pub(super) const IDLE_TAIL: u64 = 200_000_000;
/// The shortest window.
const SHORTEST: u64 = 100_000_000;
/// The window of a chip that is idle.
const IDLE_WINDOW: u64 = 1_000_000_000;
/// A value of earlier than this is not a value of now.
const OLDEST: u64 = 2_000_000_000;

impl ChipActivity {
    /// Busy time as of now. Where the tail is not known, a program is running, or its record is under way.
    pub fn at(&self, now: u64) -> BusyTime {
        let is_tail_known = self.is_open() && self.is_idle_since_last_record(now);
        let until = if is_tail_known { self.until.max(now) } else { self.until };
        BusyTime { busy: self.busy, until, is_tail_known }
    }

    /// How busy the chip was for this process during the last second, or a little more.
    pub fn utilization(&self, now: u64) -> Result<MeasuredUtilization, NotKnown> {
        if let Some(reason) = self.reason.filter(|_| self.source.is_none()) {
            return Err(NotKnown::NoRecords(reason));
        }
        if self.source.is_none() || self.since == 0 {
            return Err(NotKnown::NoRecords(NoRecords::Unknown));
        }
        if self.closed_at != 0 {
            return Err(NotKnown::Closed);
        }
        if self.programs() > 0 && self.records == 0 && self.is_finished(now) {
            return Err(NotKnown::NoRecords(NoRecords::Unknown));
        }
        let BusyTime { busy, until, is_tail_known } = self.at(now);
        let age = now.saturating_sub(until);
        if age > OLDEST && self.source == Some(ActivitySource::DispatchTelemetry) {
            return Err(NotKnown::Stale(age));
        }
        if age > OLDEST {
            let since = self.until.max(self.launches.unfinished_since);
            return Err(NotKnown::Running(now.saturating_sub(since)));
        }
        if is_tail_known && now.saturating_sub(self.until) >= IDLE_WINDOW {
            return Ok(self.over(0, IDLE_WINDOW, until));
        }
        let [earlier, _] = self.checkpoints;
        let (start, before) = if earlier.at == 0 { (self.since, 0) } else { (earlier.at, earlier.busy) };
        let window = until.saturating_sub(start);
        if window >= SHORTEST {
            Ok(self.over(busy.saturating_sub(before), window, until))
        } else if self.records == 0 && self.programs() > 0 {
            Err(NotKnown::Running(now.saturating_sub(self.launches.unfinished_since.max(self.since))))
        } else {
            Err(NotKnown::TooEarly)
        }
    }

    /// Whether something may be running: a program was launched, and neither recorded nor waited for.
    pub fn may_be_running(&self, now: u64) -> bool {
        self.closed_at == 0 && !self.is_idle_since_last_record(now)
    }

    fn over(&self, busy: u64, window: u64, until: u64) -> MeasuredUtilization {
        let ratio = (busy as f64 / window.max(1) as f64).clamp(0.0, 1.0);
        let lost_at = self.late_at.max(self.dropped_at);
        MeasuredUtilization {
            ratio,
            window,
            until,
            is_lower_limit: lost_at != 0 && lost_at >= until.saturating_sub(window),
        }
    }

    fn is_open(&self) -> bool {
        self.since != 0 && self.closed_at == 0 && self.source == Some(ActivitySource::Profiler)
    }

    /// Programs launched while this chip was recorded.
    fn programs(&self) -> u64 {
        self.launches.programs.saturating_sub(self.programs_before)
    }

    fn is_idle_since_last_record(&self, now: u64) -> bool {
        self.programs() == 0 || self.has_all_records() || self.is_finished(now)
    }

    /// Whether the last record is that of the last launch, and no other one is missing that was not dropped.
    fn has_all_records(&self) -> bool {
        let is_of_last_launch = self.launches.last_runtime_id == Some(self.last_runtime_id);
        let records = self.records.saturating_add(self.dropped);
        records >= self.programs() && is_of_last_launch && self.until > self.launches.last_launch
    }

    /// Whether all that was launched was waited for, long enough ago.
    fn is_finished(&self, now: u64) -> bool {
        let launches = &self.launches;
        let is_waited_for = launches.finished >= launches.programs && launches.finished_at >= launches.last_launch;
        launches.finished_at != 0 && is_waited_for && now.saturating_sub(launches.finished_at) >= IDLE_TAIL
    }
}
