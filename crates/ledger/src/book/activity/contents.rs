//! What a process did on its chips, as its book has it, and whether the figures are possible.

use super::judgement::IDLE_TAIL;

/// The activity of a process, of one moment for each of its parts.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedActivity {
    /// When recording began.
    pub since: u64,
    /// What was launched.
    pub launches: Launches,
    /// What arrived from the device.
    pub delivery: RecordDelivery,
    /// Per chip, by its position in [`Book::chips`](crate::book::Book::chips).
    pub chips: Vec<ChipActivity>,
    /// Operations in use, except for the one for all that found no room.
    pub(super) operations: usize,
    /// Operations that found no room.
    pub unlisted_operations: u64,
    pub(super) table: usize,
}

/// What the threads of a process launched, and how long they waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Launches {
    /// Programs launched: launches, and for each replay the programs of its trace.
    pub programs: u64,
    /// Launches of single programs.
    pub launches: u64,
    /// Replays of traces.
    pub replays: u64,
    /// Programs recorded into traces.
    pub recorded: u64,
    /// Runtime id of the last launched program, of which 16 bits are known.
    pub last_runtime_id: Option<u16>,
    /// Its operation, by its number in the table.
    pub last_operation: Option<u16>,
    /// Time of the last launch, ns of the monotonic clock. 0 when there was none.
    pub last_launch: u64,
    /// Time of the first launch that no completed wait has covered. 0 when there is none.
    pub unfinished_since: u64,
    /// Programs that were launched before a wait began that has ended.
    pub finished: u64,
    /// When the last such wait ended. 0 when there was none.
    pub finished_at: u64,
    /// Waits that have ended.
    pub waits: u64,
    /// ns during which at least one thread waited for the device, without the wait under way.
    pub waited: u64,
    /// Since when a thread waits. 0 when none does.
    pub waiting_since: u64,
    /// ns during which launches waited for room in a queue of the device.
    pub back_pressure: u64,
}

/// How the records of the device arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordDelivery {
    /// Records that the library dropped before the agent had them.
    pub dropped: u64,
    /// When that was last. 0 for never.
    pub dropped_at: u64,
    /// Whether the agent is registered for records.
    pub is_registered: bool,
    /// Why no records arrive.
    pub reason: Option<NoRecords>,
    /// Records of a chip that the book does not have.
    pub of_unknown_chips: u64,
    /// Records that contradict themselves.
    pub broken: u64,
}

/// What a chip did for one process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChipActivity {
    /// Busy ticks: the length of the union of all records.
    pub busy_ticks: u64,
    /// The same in ns.
    pub busy: u64,
    /// Host time up to which that is complete, late records apart.
    pub until: u64,
    /// Records that have arrived; with dispatch telemetry the programs that have run.
    pub records: u64,
    /// Records of which only a part counts, since they arrived too late.
    pub late: u32,
    /// When the last one of these arrived. 0 for never.
    pub late_at: u64,
    /// Runtime id of the record that ended latest.
    pub last_runtime_id: u16,
    /// When recording began. 0 when it has not.
    pub since: u64,
    /// When the device was closed. 0 while it is open.
    pub closed_at: u64,
    /// Tick of the latest end.
    pub end_tick: u64,
    /// Ticks per ns.
    pub cycles_per_ns: f64,
    /// Where the figures come from.
    pub source: Option<ActivitySource>,
    /// Why there are none.
    pub reason: Option<NoRecords>,
    /// Busy ns and time, 0.5 to 1 s apart.
    pub checkpoints: [Checkpoint; 2],
    /// Programs that the process had launched when recording began on this chip.
    pub programs_before: u64,
    /// What the process launched, for the judgement.
    pub(super) launches: Launches,
    /// How many records the library dropped, of all chips, and when it last did.
    pub(super) dropped: u64,
    pub(super) dropped_at: u64,
}

/// Busy ns of a chip up to a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checkpoint {
    /// Busy ns since recording began.
    pub busy: u64,
    /// The time.
    pub at: u64,
}

/// Where the activity of a chip comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ActivitySource {
    /// tt-metal's real-time profiler: the start and end of every program.
    Profiler = 1,
    /// The counters of the dispatch core, read inside the process.
    DispatchTelemetry = 2,
}

impl ActivitySource {
    /// By its number in the book.
    pub fn from_number(number: u32) -> Option<ActivitySource> {
        [ActivitySource::Profiler, ActivitySource::DispatchTelemetry].into_iter().find(|it| *it as u32 == number)
    }

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            ActivitySource::Profiler => "profiler",
            ActivitySource::DispatchTelemetry => "dispatch telemetry",
        }
    }
}

/// Why no records of a chip arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum NoRecords {
    /// This release of tt-metal has no real-time profiler, or none that can be asked.
    NoProfiler = 1,
    /// It has one, which is not active on this machine.
    Inactive = 2,
    /// The chip is behind another one.
    Remote = 3,
    /// Programs are launched without the dispatch cores.
    SlowDispatch = 4,
    /// The dispatch cores are Ethernet cores.
    EthDispatch = 5,
    /// The library refused to deliver records.
    Refused = 6,
    /// Dispatch telemetry is off, or its block has no signature.
    NoTelemetry = 7,
    /// The block is all ones: the chip does not answer.
    AllOnes = 8,
    /// The time of the dispatch core stands still.
    ClockStopped = 9,
    /// Both copies of the block differ at every read.
    Torn = 10,
    /// The device was opened before the agent could register.
    Unknown = 11,
}

impl NoRecords {
    /// By its number in the book. One that this version does not know is unknown.
    pub fn from_number(number: u32) -> Option<NoRecords> {
        use NoRecords::{
            AllOnes, ClockStopped, EthDispatch, Inactive, NoProfiler, NoTelemetry, Refused, Remote, SlowDispatch, Torn,
            Unknown,
        };
        let all = [
            NoProfiler,
            Inactive,
            Remote,
            SlowDispatch,
            EthDispatch,
            Refused,
            NoTelemetry,
            AllOnes,
            ClockStopped,
            Torn,
        ];
        (number != 0).then(|| all.into_iter().find(|it| *it as u32 == number).unwrap_or(Unknown))
    }

    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            NoRecords::NoProfiler => "this release of tt-metal has no real-time profiler",
            NoRecords::Inactive => "tt-metal's real-time profiler is not active",
            NoRecords::Remote => "a remote chip, of which tt-metal records nothing",
            NoRecords::SlowDispatch => "slow dispatch",
            NoRecords::EthDispatch => "dispatch on Ethernet cores",
            NoRecords::Refused => "tt-metal refused to deliver records",
            NoRecords::NoTelemetry => "no dispatch telemetry",
            NoRecords::AllOnes => "the chip does not answer",
            NoRecords::ClockStopped => "the dispatch core does not run",
            NoRecords::Torn => "dispatch telemetry changes at every read",
            NoRecords::Unknown => "no records of this chip",
        }
    }
}

/// An operation of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedOperation {
    /// Its number in the table.
    pub number: u16,
    /// Its name, cleaned for a terminal.
    pub name: String,
    /// Launches of single programs.
    pub launches: u64,
    /// Programs launched, replays of traces included.
    pub programs: u64,
    /// Time of the last launch. 0 for never.
    pub last_launch: u64,
    /// Records of the device.
    pub records: u64,
    /// ns on the device, all records added up.
    pub device_time: u64,
    /// ns of the longest record.
    pub longest: u64,
    /// Host time of the latest end. 0 for never.
    pub last_end: u64,
}

/// ns by which a time may lie in the future: clocks of two processors differ, and a copy takes time.
const FUTURE: u64 = 1_000_000_000;
/// ns that a program takes at least. Faster ones do not exist.
const SHORTEST: u64 = 20;

impl Launches {
    pub(super) fn check(&self, now: u64) -> Result<(), &'static str> {
        let latest = [self.last_launch, self.unfinished_since, self.finished_at, self.waiting_since].into_iter().max();
        if latest.is_some_and(|latest| latest > now.saturating_add(FUTURE)) {
            Err("a launch or a wait in the future")
        } else if self.launches > self.programs {
            Err("more launches than programs")
        } else if self.finished > self.programs {
            Err("more programs finished than launched")
        } else if self.waited > now.saturating_add(FUTURE) {
            Err("more time waited than there was")
        } else {
            Ok(())
        }
    }

    /// ns waited for the device, with the wait under way.
    pub fn waited_until(&self, now: u64) -> u64 {
        let under_way = if self.waiting_since == 0 { 0 } else { now.saturating_sub(self.waiting_since) };
        self.waited.saturating_add(under_way)
    }
}

impl ChipActivity {
    pub(super) fn check(&self, now: u64) -> Result<(), &'static str> {
        let latest = now.saturating_add(FUTURE);
        let [earlier, later] = self.checkpoints;
        let time = self.until.saturating_sub(self.since);
        if self.until > latest || self.since > latest || self.closed_at > latest || later.at > latest {
            Err("activity in the future")
        } else if self.busy > time.saturating_add(FUTURE).saturating_add(time / 1000) {
            Err("busy for longer than it was recorded")
        } else if self.records > (time + FUTURE) / SHORTEST {
            Err("more records than there can be")
        } else if earlier.at > later.at || earlier.busy > later.busy || later.busy > self.busy {
            Err("checkpoints that go backwards")
        } else if !self.cycles_per_ns.is_finite() || self.cycles_per_ns < 0.0 {
            Err("a frequency that is none")
        } else {
            Ok(())
        }
    }
}

impl RecordedOperation {
    pub(super) fn check(&self, now: u64) -> Result<(), &'static str> {
        if self.last_launch.max(self.last_end) > now.saturating_add(FUTURE) {
            Err("an operation in the future")
        } else if self.longest > self.device_time {
            Err("a record longer than all together")
        } else if self.launches > self.programs {
            Err("more launches of an operation than programs")
        } else {
            Ok(())
        }
    }

    /// Whether its last launch is the process's last launch, and has not ended.
    pub fn is_last_launched(&self, launches: &Launches) -> bool {
        launches.last_operation == Some(self.number) && launches.finished < launches.programs
    }
}

const _: () = assert!(IDLE_TAIL < FUTURE);
