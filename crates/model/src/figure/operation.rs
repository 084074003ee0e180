//! The figures of an operation of a process, one row each.

use super::{Figure, Freshness, Section, always, field, figures};
use crate::Operation;

figures! {
    /// All figures of an operation, in the order of tables.
    OPERATION_FIGURES: Operation;

    with { section: Section::Pids, freshness: Freshness::Host };

    /// Operation, as the runtime calls it.
    OPERATION_NAME("name", "Operation", Text, always!(name)) { always: true };
    /// Time on devices, added up over them. Absent where there is no record.
    OPERATION_DEVICE_TIME("device_seconds", "Device time", Seconds, field!(device_seconds));
    /// How often the process launched it, replays of traces included.
    OPERATION_LAUNCHES("launches", "Launches", Count, always!(launches)) { always: true };
    /// Launches in a second. From the second sample of a loop on.
    OPERATION_LAUNCH_RATE("launches_per_second", "Launches per second", PerSecond, field!(launches_per_second));
    /// Runs on devices that were recorded.
    OPERATION_RUNS("runs", "Recorded runs", Count, field!(runs));
    /// Its longest run.
    OPERATION_LONGEST("longest_seconds", "Longest run", Seconds, field!(longest_seconds));
    /// How long ago it was last launched.
    OPERATION_AGE("age_seconds", "Last launch", Seconds, field!(age_seconds));
    /// Whether its last launch has no record yet.
    IN_FLIGHT("in_flight", "Running now", YesNo, always!(in_flight)) { always: true };
}
