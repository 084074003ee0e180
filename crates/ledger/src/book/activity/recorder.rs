//! Turns the records of one chip, or the samples of its dispatch core, into what the book has of it.

use super::anchor::Anchor;
use super::busy::BusyUnion;
use super::contents::{ActivitySource, Checkpoint, NoRecords};
use super::layout::DEVICE_WORDS;
use crate::book::layout::pack;

/// A program that ran on a chip, as the device reports it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviceRecord {
    /// The chip, by its number in the book.
    pub chip: u8,
    /// Runtime id of the program, of which 16 bits are known.
    pub runtime_id: u16,
    /// Its operation, by its number in the table.
    pub operation: Option<u16>,
    /// Tick of the start.
    pub start: u64,
    /// Tick of the end.
    pub end: u64,
    /// Ticks per ns.
    pub cycles_per_ns: f64,
}

impl DeviceRecord {
    /// Whether it does not contradict itself.
    pub(super) fn is_sound(&self) -> bool {
        self.end >= self.start && self.cycles_per_ns > 0.0 && self.cycles_per_ns < FASTEST
    }
}

/// What the counters of a dispatch core had at a time. All are cumulative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DispatchSample {
    /// Ticks during which a program ran.
    pub busy_ticks: u64,
    /// The tick of the sample.
    pub tick: u64,
    /// The host time of the sample, ns of the monotonic clock.
    pub time: u64,
    /// Programs.
    pub programs: u64,
}

/// Disjoint intervals that are kept in detail, so that late records merge exactly.
const RECENT: usize = 64;
/// ns between two checkpoints, at least.
const APART: u64 = 500_000_000;
/// No chip has a clock as fast as this, in ticks per ns.
const FASTEST: f64 = 100.0;

/// What is kept of one chip.
#[derive(Debug, Default)]
pub(super) struct ChipRecorder {
    source: Option<ActivitySource>,
    reason: Option<NoRecords>,
    since: u64,
    closed_at: u64,
    programs_before: u64,
    records: u64,
    late: u32,
    late_at: u64,
    last_runtime_id: u16,
    until: u64,
    version: u64,
    /// Of earlier times that the device was open.
    earlier_ticks: u64,
    union: BusyUnion<RECENT>,
    clock: Option<ChipClock>,
    /// Busy ns at `ns_ticks` busy ticks.
    ns: u64,
    ns_ticks: u64,
    opened_at: u64,
    /// Busy ticks and tick.
    points: [(u64, u64); 2],
    /// While there are no ticks.
    checkpoints: [Checkpoint; 2],
    sample: Option<DispatchSample>,
}

/// The time of the chip since it was opened.
#[derive(Debug)]
struct ChipClock {
    anchor: Anchor,
    end: u64,
}

impl ChipRecorder {
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Recording begins, or begins again after a close. The ticks may have begun again.
    pub fn open(&mut self, source: ActivitySource, now: u64, programs: u64) {
        if self.since != 0 && self.closed_at == 0 && self.source == Some(source) {
            return;
        }
        self.settle();
        self.earlier_ticks = self.earlier_ticks.saturating_add(self.union.busy());
        (self.union, self.clock, self.sample) = (BusyUnion::default(), None, None);
        (self.source, self.reason, self.closed_at) = (Some(source), None, 0);
        (self.since, self.opened_at) = (if self.since == 0 { now } else { self.since }, now);
        self.until = self.until.max(now);
        self.ns_ticks = 0;
        self.programs_before = programs.saturating_sub(self.records);
        self.checkpoints = [Checkpoint { busy: self.ns, at: now }; 2];
    }

    /// There are no records, for a reason.
    pub fn refuse(&mut self, reason: NoRecords) {
        if self.source.is_none() {
            self.reason = Some(reason);
        }
    }

    /// The counters of the dispatch core cannot be read, for a reason. What was counted stays.
    pub fn interrupt(&mut self, reason: NoRecords) {
        if self.source != Some(ActivitySource::Profiler) {
            (self.source, self.sample, self.reason) = (None, None, Some(reason));
        }
    }

    pub fn close(&mut self, now: u64) {
        if self.since != 0 && self.closed_at == 0 {
            self.closed_at = now;
        }
    }

    /// Adds a record that arrived now. False when it contradicts itself.
    pub fn add(&mut self, record: &DeviceRecord, arrival: u64) -> bool {
        let DeviceRecord { start, end, cycles_per_ns, runtime_id, .. } = *record;
        if !record.is_sound() {
            return false;
        }
        let half = (APART as f64 * cycles_per_ns) as u64;
        let clock = self.clock.get_or_insert_with(|| {
            let open = arrival.saturating_sub(self.opened_at) as f64 * cycles_per_ns;
            self.points = [(0, start.min(end.saturating_sub(open as u64))); 2];
            ChipClock { anchor: Anchor::new(end, arrival, cycles_per_ns), end: 0 }
        });
        if clock.anchor.cycles_per_ns() != cycles_per_ns {
            let ticks = self.union.busy();
            self.ns = self.ns.saturating_add(clock.anchor.ns(ticks.saturating_sub(self.ns_ticks)));
            self.ns_ticks = ticks;
            clock.anchor.change(clock.end, cycles_per_ns);
        }
        clock.anchor.arrived(end, arrival);
        let points = &mut self.points;
        let added = self.union.insert(start, end, |from, to| {
            for (busy, tick) in points.iter_mut() {
                *busy = busy.saturating_add(to.min(*tick).saturating_sub(from));
            }
        });
        if added.is_late {
            (self.late, self.late_at) = (self.late.saturating_add(1), arrival);
        }
        self.records = self.records.saturating_add(1);
        if end >= clock.end {
            (clock.end, self.last_runtime_id) = (end, runtime_id);
        }
        let apart = clock.end.saturating_sub(self.points[1].1);
        if apart >= half {
            let before = clock.end.saturating_sub(half);
            let earlier =
                if apart < half.saturating_mul(2) { self.points[1] } else { (self.union.busy_before(before), before) };
            self.points = [earlier, (self.union.busy(), clock.end)];
        }
        true
    }

    /// Host time of a tick, and ns of so many ticks.
    pub fn host_time(&self, tick: u64) -> u64 {
        self.clock.as_ref().map_or(0, |clock| clock.anchor.host_time(tick))
    }

    /// Adds a sample of the dispatch core.
    pub fn sampled(&mut self, sample: DispatchSample) {
        let before = self.sample.replace(sample);
        self.until = self.until.max(sample.time);
        let Some(before) = before else { return };
        let host = sample.time.saturating_sub(before.time);
        // A counter that went back began again.
        let Some(ticks) = sample.tick.checked_sub(before.tick).filter(|ticks| *ticks > 0) else { return };
        let busy = sample.busy_ticks.saturating_sub(before.busy_ticks);
        self.records = self.records.saturating_add(sample.programs.saturating_sub(before.programs));
        self.earlier_ticks = self.earlier_ticks.saturating_add(busy);
        let ns = (busy as f64 / ticks as f64 * host as f64) as u64;
        self.ns = self.ns.saturating_add(ns).min(self.until.saturating_sub(self.since));
        if sample.time.saturating_sub(self.checkpoints[1].at) >= APART {
            self.checkpoints = [self.checkpoints[1], Checkpoint { busy: self.ns, at: sample.time }];
        }
    }

    /// The next version of the record in the book, without its sum.
    pub fn line(&mut self) -> [u64; DEVICE_WORDS - 1] {
        self.version += 1;
        let ticks = self.union.busy();
        let (mut busy, mut checkpoints) = (self.ns, self.checkpoints);
        let (mut end, mut cycles_per_ns) = (0, 0.0);
        if let Some(clock) = &self.clock {
            (end, cycles_per_ns) = (clock.end, clock.anchor.cycles_per_ns());
            self.until = self.until.max(clock.anchor.host_time(clock.end));
            busy = busy.saturating_add(clock.anchor.ns(ticks.saturating_sub(self.ns_ticks)));
            checkpoints = self.points.map(|(at_ticks, tick)| Checkpoint {
                busy: busy.saturating_sub(clock.anchor.ns(ticks.saturating_sub(at_ticks))),
                at: self.until.saturating_sub(clock.anchor.ns(end.saturating_sub(tick))).max(self.opened_at),
            });
        }
        if let Some(sample) = self.sample {
            end = sample.tick;
        }
        let [earlier, later] = checkpoints;
        let source = self.source.map_or(0, |source| source as u32);
        let reason = self.reason.map_or(0, |reason| reason as u32);
        let mut line = [0; DEVICE_WORDS - 1];
        let facts = [
            self.earlier_ticks.saturating_add(ticks),
            busy,
            self.until,
            self.records,
            pack(self.late, u32::from(self.last_runtime_id)),
            self.since,
            end,
            cycles_per_ns.to_bits(),
            pack(source, reason),
            earlier.busy,
            earlier.at,
            later.busy,
            later.at,
            self.closed_at,
            self.late_at,
            self.programs_before,
        ];
        line.iter_mut().zip(facts).for_each(|(to, from)| *to = from);
        line[DEVICE_WORDS - 2] = self.version;
        line
    }

    /// Turns the ticks since the last change of frequency into ns.
    fn settle(&mut self) {
        if let Some(clock) = &self.clock {
            let ticks = self.union.busy();
            self.ns = self.ns.saturating_add(clock.anchor.ns(ticks.saturating_sub(self.ns_ticks)));
            self.ns_ticks = ticks;
        }
    }
}
