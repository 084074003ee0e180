//! What each process held before: for its growth, and for its history.

use model::{Bytes, Held, Process, Snapshot, Source, Timestamp};
use std::collections::{HashMap, VecDeque};

#[derive(Debug, Default)]
pub struct Trails {
    trails: HashMap<u32, Trail>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    at: Timestamp,
    /// All kinds.
    total: Bytes,
}

#[derive(Debug)]
struct Trail {
    started_at: Option<Timestamp>,
    /// Which of its figures were known, and where from: figures that say something else are not compared.
    known: Vec<Option<Source>>,
    /// The last minute.
    recent: VecDeque<Point>,
    /// Its whole life as far as it was seen, every so many samples.
    long: Vec<Point>,
    every: u32,
    skipped: u32,
}

/// How many points of a life are kept. When they are full, every second one goes.
const POINTS: usize = 512;

/// What growth is measured over, and the least that it is measured over.
const MINUTE_MS: i64 = 60_000;
const LEAST_MS: i64 = 10_000;

/// Of moments that are nearer to each other only the later one is kept.
const NEAR_MS: i64 = 500;

/// The same start in two samples: the clock may have been set a little in between.
const SAME_START_MS: u64 = 1000;

impl Trails {
    /// Adds a moment. Processes that are gone are forgotten.
    pub fn push(&mut self, snapshot: &Snapshot) {
        let mut before = std::mem::take(&mut self.trails);
        for process in &snapshot.processes {
            let trail = before.remove(&process.pid).filter(|trail| trail.is_of(process));
            let mut trail = trail.unwrap_or_else(Trail::new);
            trail.push(snapshot.taken_at, process);
            self.trails.insert(process.pid, trail);
        }
    }

    /// Bytes per minute by which a process grew in the minute before a moment. Absent when less than ten seconds of it
    /// are known.
    pub fn growth(&self, pid: u32, at: Timestamp) -> Option<f64> {
        let recent = &self.trails.get(&pid)?.recent;
        let now = recent.iter().rfind(|point| point.at == at)?;
        let then = recent.iter().find(|point| point.at.0 >= at.0.saturating_sub(MINUTE_MS))?;
        let elapsed = now.at.0 - then.at.0;
        let grown = now.total.0 as f64 - then.total.0 as f64;
        (elapsed >= LEAST_MS).then(|| grown * MINUTE_MS as f64 / elapsed as f64)
    }

    /// What a process held in all kinds, the oldest first: its life, and the newest, which may not be part of that.
    pub fn series(&self, pid: u32) -> Vec<(Timestamp, Bytes)> {
        let Some(trail) = self.trails.get(&pid) else { return Vec::new() };
        let newest = trail.recent.back().filter(|newest| trail.long.last().is_none_or(|last| last.at < newest.at));
        trail.long.iter().chain(newest).map(|point| (point.at, point.total)).collect()
    }
}

impl Trail {
    fn new() -> Trail {
        Trail { started_at: None, known: Vec::new(), recent: VecDeque::new(), long: Vec::new(), every: 1, skipped: 0 }
    }

    fn is_of(&self, process: &Process) -> bool {
        match (self.started_at, process.started_at) {
            (Some(one), Some(other)) => one.0.abs_diff(other.0) <= SAME_START_MS,
            _ => true,
        }
    }

    fn push(&mut self, at: Timestamp, process: &Process) {
        self.started_at = process.started_at.or(self.started_at);
        // A replay may have gone back.
        while self.recent.back().is_some_and(|last| last.at >= at) {
            self.recent.pop_back();
        }
        while self.long.last().is_some_and(|last| last.at >= at) {
            self.long.pop();
        }
        let known = |held: &Held| held.usage.total().and(held.source);
        if !process.devices.iter().map(known).eq(self.known.iter().copied()) {
            self.known = process.devices.iter().map(known).collect();
            self.recent.clear();
        }
        let usage = process.devices.iter().fold(model::Usage::default(), |sum, held| sum.plus(held.usage));
        let Some(total) = usage.total() else { return };
        let point = Point { at, total };
        let near = |one: &Point, other: &Point| other.at.0 - one.at.0 < NEAR_MS;
        if let [.., earlier, last] = self.recent.make_contiguous() {
            if near(earlier, last) {
                self.recent.pop_back();
            }
        }
        self.recent.push_back(point);
        while self.recent.front().is_some_and(|first| first.at.0 < at.0.saturating_sub(MINUTE_MS)) {
            self.recent.pop_front();
        }
        self.skipped += 1;
        if self.skipped >= self.every || self.long.is_empty() {
            self.skipped = 0;
            self.long.push(point);
        }
        if self.long.len() > POINTS {
            let mut n = 0;
            self.long.retain(|_| {
                n += 1;
                n % 2 == 1
            });
            self.every = self.every.saturating_mul(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{DeviceId, Usage};
    use watch::moment::Moment;

    fn moment(seconds: f64, dram: Option<u64>) -> Snapshot {
        let usage = dram.map_or(Usage::default(), |dram| Usage::measured(dram, 0, 0, 0, 0));
        let source = dram.map(|_| Source::Shm);
        let held = Held { usage, source, ..Held::new(DeviceId::Local(0)) };
        let started_at = Some(Timestamp(-5000));
        let process = Process { started_at, devices: vec![held], ..Process::new(7) };
        Snapshot {
            taken_at: Timestamp((seconds * 1000.0) as i64),
            processes: vec![process],
            ..Moment::default().snapshot
        }
    }

    fn after(seconds: impl Iterator<Item = u32>, bytes: impl Fn(u32) -> u64) -> Trails {
        let mut trails = Trails::default();
        for second in seconds {
            trails.push(&moment(f64::from(second), Some(bytes(second))));
        }
        trails
    }

    #[test]
    fn growth_is_per_minute_once_ten_seconds_are_known() {
        let growth =
            |seconds: u32| after(0..=seconds, |n| 1000 + u64::from(n) * 10).growth(7, Timestamp(seconds as i64 * 1000));
        assert_eq!(growth(0), None);
        assert_eq!(growth(9), None);
        assert_eq!(growth(10), Some(600.0));
        assert_eq!(growth(300), Some(600.0));
        let shrinks = after(0..=20, |n| 1000 - u64::from(n) * 10);
        assert_eq!(shrinks.growth(7, Timestamp(20_000)), Some(-600.0));
        assert_eq!(shrinks.growth(8, Timestamp(20_000)), None);
    }

    #[test]
    fn growth_is_of_the_last_minute_only() {
        let trails = after(0..=200, |n| if n < 100 { 0 } else { 5000 });
        assert_eq!(trails.growth(7, Timestamp(200_000)), Some(0.0));
    }

    #[test]
    fn a_figure_that_becomes_known_is_no_growth() {
        let mut trails = after(0..=20, |_| 100);
        trails.push(&moment(21.0, None));
        assert_eq!(trails.growth(7, Timestamp(21_000)), None);
        trails.push(&moment(22.0, Some(9000)));
        assert_eq!(trails.growth(7, Timestamp(22_000)), None);
    }

    #[test]
    fn who_is_gone_is_forgotten_and_a_pid_s_next_owner_begins_again() {
        let mut trails = after(0..=20, |_| 100);
        let mut other = moment(21.0, Some(5000));
        other.processes[0].started_at = Some(Timestamp(20_500));
        trails.push(&other);
        assert_eq!(trails.series(7), [(Timestamp(21_000), Bytes(5000))]);
        trails.push(&Snapshot { processes: vec![], ..moment(22.0, None) });
        assert_eq!(trails.series(7), []);
        assert!(trails.trails.is_empty());
    }

    #[test]
    fn a_long_life_is_thinned_and_keeps_its_first_and_its_last_moment() {
        for seconds in [1, 511, 512, 513, 5000, 100_000] {
            let trails = after(0..=seconds, u64::from);
            let series = trails.series(7);
            assert!(series.len() <= POINTS + 1, "{} points after {seconds} s", series.len());
            assert!(series.len() > POINTS / 2 || seconds < 512);
            assert_eq!(series[0], (Timestamp(0), Bytes(0)));
            assert_eq!(series.last(), Some(&(Timestamp(i64::from(seconds) * 1000), Bytes(seconds.into()))));
            assert!(series.is_sorted_by(|a, b| a.0 < b.0));
        }
    }

    #[test]
    fn frequent_samples_do_not_fill_the_memory() {
        let mut trails = Trails::default();
        for n in 0..5000 {
            trails.push(&moment(f64::from(n) / 10.0, Some(n as u64)));
        }
        assert!(trails.trails[&7].recent.len() <= 125);
        assert_eq!(trails.growth(7, Timestamp(499_900)), Some(600.0));
    }

    #[test]
    fn a_replay_that_goes_back_leaves_nothing_of_the_future() {
        let mut trails = after(0..=50, u64::from);
        trails.push(&moment(20.0, Some(20)));
        assert_eq!(trails.series(7).last(), Some(&(Timestamp(20_000), Bytes(20))));
        assert_eq!(trails.growth(7, Timestamp(20_000)), Some(60.0));
    }
}
