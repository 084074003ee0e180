//! What a process did on its chips: the activity in its book, in plain data.

use ledger::book::activity::{self, ActivitySource, ChipActivity, Launches, NoRecords, NotKnown};
use ledger::book::{Book, BookError};
use model::{Activity, Operation, OperationList, OperationSource, Process, UtilizationSource, UtilizationUnknown};
use std::io;

/// The activity of a process at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessActivity {
    /// When it was read, ns of the monotonic clock.
    pub read_at: u64,
    /// By the position of the chip in the book.
    pub chips: Vec<Activity>,
    /// For how many seconds each was open and recorded; absent where it was not.
    pub open_seconds: Vec<Option<f64>>,
    /// Records that were dropped, or arrived too late.
    pub records_lost: u64,
    /// Programs launched.
    pub programs: u64,
    /// ns for which at least one thread waited for a device.
    pub waited: u64,
    /// ns for which launches waited because a device was behind.
    pub back_pressure: u64,
    /// For how long nothing has run. Absent while something may be running.
    pub idle_seconds: Option<f64>,
    /// All operations, the one with the most device time first.
    pub operations: Vec<Operation>,
}

const SECOND: f64 = 1e9;

/// The operations of a process, from its book. `None` where its agent does not record them.
pub fn operation_list(
    pid: u32,
    source: impl Fn(usize, &mut [u8]) -> io::Result<usize>,
) -> Result<Option<OperationList>, BookError> {
    let book = ledger::book::read(&source)?;
    let activity = ProcessActivity::of(source, &book)?;
    Ok(activity.map(|activity| OperationList {
        pid,
        source: OperationSource::Agent,
        chips: Some(book.chips.iter().map(|chip| chip.device_id.into()).collect()),
        launches: activity.programs,
        complete: true,
        operations: activity.operations,
    }))
}

impl ProcessActivity {
    /// Copies it out of a book. `None` where its agent does not record any.
    pub fn of(
        source: impl Fn(usize, &mut [u8]) -> io::Result<usize>,
        book: &Book,
    ) -> Result<Option<ProcessActivity>, BookError> {
        let now = activity::monotonic();
        let Some(recorded) = activity::activity(&source, book, now)? else { return Ok(None) };
        let launches = &recorded.launches;
        let is_running = recorded.chips.iter().any(|chip| chip.may_be_running(now));
        let found = activity::operations(&source, &recorded, now)?;
        let mut operations: Vec<Operation> =
            found.iter().map(|operation| plain_operation(operation, launches, is_running, now)).collect();
        operations.sort_by(Operation::by_cost);
        let last =
            recorded.chips.iter().map(|chip| chip.until).fold(launches.last_launch.max(recorded.since), u64::max);
        Ok(Some(ProcessActivity {
            read_at: now,
            chips: recorded.chips.iter().map(|chip| plain_activity(chip, now)).collect(),
            open_seconds: recorded.chips.iter().map(|chip| open_seconds(chip, now)).collect(),
            records_lost: recorded.chips.iter().fold(recorded.delivery.dropped, |sum, chip| sum + u64::from(chip.late)),
            programs: launches.programs,
            waited: launches.waited_until(now),
            back_pressure: launches.back_pressure,
            idle_seconds: (!is_running).then(|| (now.saturating_sub(last) as f64 / SECOND * 1000.0).round() / 1000.0),
            operations,
        }))
    }

    /// Adds to a process what it did, with rates since an earlier reading of it.
    pub fn add_to(&self, process: &mut Process, earlier: Option<&ProcessActivity>) {
        process.launches_total = Some(self.programs);
        process.idle_seconds = self.idle_seconds;
        process.operations = self.operations.iter().take(Process::OPERATIONS).cloned().collect();
        let Some((earlier, time)) = earlier.and_then(|earlier| Some((earlier, self.since(earlier)?))) else { return };
        let share = |now: u64, before: u64| {
            Some((now.saturating_sub(before) as f64 / (time * SECOND) * 1000.0).round().min(1000.0) / 10.0)
        };
        process.host_wait_percent = share(self.waited, earlier.waited);
        process.back_pressure_percent = share(self.back_pressure, earlier.back_pressure);
        process.launches_per_second = Some(rate(self.programs, earlier.programs, time));
        for operation in &mut process.operations {
            let before = earlier.operations.iter().find(|before| before.name == operation.name);
            let before = before.map_or(0, |before| before.launches);
            operation.launches_per_second = Some(rate(operation.launches, before, time));
        }
    }

    /// What it did on one chip, with the rate since an earlier reading.
    pub(crate) fn on_chip(&self, place: usize, earlier: Option<&ProcessActivity>) -> Activity {
        let mut activity = self.chips.get(place).cloned().unwrap_or_default();
        activity.programs_per_second = earlier.and_then(|earlier| {
            let before = earlier.chips.get(place)?.programs_total?;
            Some(rate(activity.programs_total?, before, self.since(earlier)?))
        });
        activity
    }

    /// Seconds since an earlier reading, if there were any.
    fn since(&self, earlier: &ProcessActivity) -> Option<f64> {
        Some(self.read_at.saturating_sub(earlier.read_at) as f64 / SECOND).filter(|seconds| *seconds > 0.0)
    }
}

fn rate(now: u64, before: u64, seconds: f64) -> f64 {
    (now.saturating_sub(before) as f64 / seconds * 10.0).round() / 10.0
}

fn open_seconds(chip: &ChipActivity, now: u64) -> Option<f64> {
    let until = if chip.closed_at != 0 { chip.closed_at } else { now };
    (chip.since != 0).then(|| until.max(chip.until).saturating_sub(chip.since) as f64 / SECOND)
}

fn plain_activity(chip: &ChipActivity, now: u64) -> Activity {
    let source = chip.source.map(|source| match source {
        ActivitySource::Profiler => UtilizationSource::Profiler,
        ActivitySource::DispatchTelemetry => UtilizationSource::Dispatch,
    });
    // What was recorded before a source ended stays.
    let is_counted = source.is_some() || chip.records > 0;
    let totals = Activity {
        utilization_source: source,
        busy_seconds_total: is_counted.then(|| chip.busy as f64 / SECOND),
        programs_total: is_counted.then_some(chip.records),
        ..Activity::default()
    };
    match (chip.utilization(now), source) {
        (Ok(found), Some(source)) => Activity {
            utilization_lower_bound: Some(found.is_lower_limit),
            busy_seconds_total: totals.busy_seconds_total,
            programs_total: totals.programs_total,
            ..Activity::measured((found.ratio * 1000.0).round() / 10.0, source)
        },
        (Ok(_), None) => Activity { utilization_unknown: Some(UtilizationUnknown::ProfilerInactive), ..totals },
        (Err(why), _) => Activity { utilization_unknown: Some(unknown(why)), ..totals },
    }
}

fn unknown(why: NotKnown) -> UtilizationUnknown {
    match why {
        NotKnown::NoRecords(NoRecords::NoProfiler) => UtilizationUnknown::NoProfiler,
        NotKnown::NoRecords(NoRecords::Remote) => UtilizationUnknown::RemoteChip,
        NotKnown::NoRecords(NoRecords::SlowDispatch) => UtilizationUnknown::SlowDispatch,
        NotKnown::NoRecords(NoRecords::EthDispatch) => UtilizationUnknown::EthernetDispatch,
        NotKnown::NoRecords(_) => UtilizationUnknown::ProfilerInactive,
        NotKnown::Closed => UtilizationUnknown::Closed,
        NotKnown::TooEarly => UtilizationUnknown::TooShort,
        NotKnown::Running(_) => UtilizationUnknown::ProgramRunning,
        NotKnown::Stale(_) => UtilizationUnknown::RecordsLost,
    }
}

fn plain_operation(
    operation: &activity::RecordedOperation,
    launches: &Launches,
    is_running: bool,
    now: u64,
) -> Operation {
    let seconds = |ns: u64| (operation.records > 0).then_some(ns as f64 / SECOND);
    let last = operation.last_launch.max(operation.last_end);
    Operation {
        name: operation.name.clone(),
        launches: operation.programs,
        runs: (operation.records > 0).then_some(operation.records),
        device_seconds: seconds(operation.device_time),
        longest_seconds: seconds(operation.longest),
        age_seconds: (last > 0).then(|| now.saturating_sub(last) as f64 / SECOND),
        in_flight: is_running && operation.is_last_launched(launches),
        ..Operation::default()
    }
}
