//! Clocks of chips and of the profiler, and where their times are on the axis.

use super::Clock;
use std::collections::BTreeMap;

/// A moment on the clock of a chip and on that of the host, as a recording knows it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Anchor {
    /// As tt-metal counts chips.
    pub chip: u32,
    /// Cycles of the chip.
    pub ticks: u64,
    /// Nanoseconds since 1970.
    pub unix_ns: i64,
    /// Cycles in a nanosecond; zero where they are not known.
    pub gigahertz: f64,
    /// Largest error of the time.
    pub error_ns: u64,
}

/// A moment on the clock of a chip and on that of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Cycles of the chip.
    pub ticks: u64,
    /// Nanoseconds since 1970.
    pub nanoseconds: i64,
}

/// The clock of a chip, where moments of it are known.
#[derive(Debug, Clone, PartialEq)]
pub struct Fixed {
    /// By their ticks.
    pub moments: Vec<Moment>,
    /// Beyond the moments.
    pub gigahertz: f64,
    /// Largest error of a time.
    pub error_ns: u64,
}

impl Fixed {
    /// Between two moments on the line through them; before the first and behind the last with the frequency.
    fn nanoseconds(&self, ticks: u64) -> Option<i64> {
        let behind = self.moments.partition_point(|moment| moment.ticks <= ticks);
        let (before, after) = (behind.checked_sub(1).map(|at| self.moments[at]), self.moments.get(behind));
        let from = before.or(after.copied())?;
        let gigahertz = match (before, after) {
            (Some(a), Some(b)) if b.nanoseconds > a.nanoseconds => {
                (b.ticks - a.ticks) as f64 / b.nanoseconds.abs_diff(a.nanoseconds) as f64
            }
            _ => self.gigahertz,
        };
        let ticks_since = i128::from(ticks) - i128::from(from.ticks);
        // A cast beyond the range stays at its ends.
        Some(from.nanoseconds.saturating_add((ticks_since as f64 / gigahertz) as i64))
    }
}

/// All clocks of a file.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Clocks {
    chips: BTreeMap<u32, Fixed>,
    /// Where the profiler's zero is. None where its times have no place.
    host: Option<i64>,
    shift: i64,
    /// How far off the clocks of chips may be from each other, where they were synchronized.
    synchronized: Option<u64>,
}

impl Clocks {
    /// The host alone, with its zero here.
    pub fn of_host(zero: i64) -> Clocks {
        Clocks { host: Some(zero), ..Clocks::default() }
    }

    /// On the axis of the recording.
    pub fn of_anchors(anchors: &[Anchor], sync: &BTreeMap<u32, Fixed>, gigahertz: f64) -> Clocks {
        let mut clocks = Clocks::default();
        for anchor in anchors {
            let is_known = anchor.gigahertz.is_finite() && anchor.gigahertz > 0.0;
            let fixed = clocks.chips.entry(anchor.chip).or_insert(Fixed { moments: vec![], gigahertz, error_ns: 0 });
            fixed.moments.push(Moment { ticks: anchor.ticks, nanoseconds: anchor.unix_ns });
            fixed.gigahertz = if is_known { anchor.gigahertz } else { fixed.gigahertz };
            fixed.error_ns = fixed.error_ns.max(anchor.error_ns);
        }
        clocks.chips.values_mut().for_each(|fixed| fixed.moments.sort());
        // A moment that is on the profiler's clock as well places that one.
        let host = sync.iter().find_map(|(chip, synchronized)| {
            let moment = synchronized.moments.first()?;
            let here = clocks.chips.get(chip)?.nanoseconds(moment.ticks)?;
            Some((here.saturating_sub(moment.nanoseconds), synchronized.error_ns))
        });
        (clocks.host, clocks.synchronized) = host.unzip();
        clocks
    }

    /// On an axis of its own: that of the profiler where clocks were synchronized with it, else each clock begins at zero.
    pub fn of_its_own(spans: &BTreeMap<Clock, (u64, u64)>, sync: &BTreeMap<u32, Fixed>, gigahertz: f64) -> Clocks {
        let all = spans.keys().all(|clock| if let Clock::Chip(chip) = clock { sync.contains_key(chip) } else { true });
        let has_chips = spans.keys().any(|clock| *clock != Clock::Host);
        if all && has_chips {
            let error = sync.values().map(|fixed| fixed.error_ns).max();
            return Clocks { chips: sync.clone(), host: Some(0), shift: 0, synchronized: error };
        }
        let mut clocks = Clocks::default();
        for (clock, (first, _)) in spans {
            match clock {
                Clock::Chip(chip) => {
                    let moments = vec![Moment { ticks: *first, nanoseconds: 0 }];
                    clocks.chips.insert(*chip, Fixed { moments, gigahertz, error_ns: 0 });
                }
                Clock::Host => clocks.host = Some(i64::try_from(*first).map_or(i64::MIN, |first| -first)),
            }
        }
        clocks
    }

    /// Nanoseconds on the axis. None where a clock has no place on it.
    pub fn nanoseconds(&self, clock: Clock, time: u64) -> Option<i64> {
        let place = match clock {
            Clock::Chip(chip) => self.chips.get(&chip)?.nanoseconds(time)?,
            Clock::Host => self.host?.saturating_add(i64::try_from(time).unwrap_or(i64::MAX)),
        };
        Some(place.saturating_add(self.shift))
    }

    pub fn shift(&mut self, by: i64) {
        self.shift = self.shift.saturating_add(by);
    }

    pub fn has_host(&self) -> bool {
        self.host.is_some()
    }

    /// How far off times may be. None where some are before the first or behind the last known moment: the clock of a chip changes.
    pub fn error_ns(&self, spans: &BTreeMap<Clock, (u64, u64)>) -> Option<u64> {
        let is_covered = |(clock, (first, last)): (&Clock, &(u64, u64))| {
            let Clock::Chip(chip) = clock else { return true };
            let moments = self.chips.get(chip).map_or(&[][..], |fixed| &fixed.moments);
            moments.first().is_some_and(|moment| moment.ticks <= *first)
                && moments.last().is_some_and(|moment| moment.ticks >= *last)
        };
        let of_chips = self.chips.values().map(|fixed| fixed.error_ns).max().unwrap_or(0);
        spans.iter().all(is_covered).then(|| of_chips.saturating_add(self.synchronized.unwrap_or(0)))
    }

    /// How several clocks belong together.
    pub fn remark(&self, spans: &BTreeMap<Clock, (u64, u64)>) -> Option<String> {
        match self.synchronized {
            _ if spans.len() < 2 => None,
            Some(error) => Some(format!(
                "chips and host are aligned with each other within {} (sync_device_info.csv)",
                show::activity::seconds(error as f64 / 1e9, true)
            )),
            None => Some("chips and host are not aligned with each other: each begins at its own first slice".into()),
        }
    }
}
