//! What a recording has besides snapshots: events, exited processes, operations, and when recording began.

use crate::{Event, ExitRecord, Operation, Timestamp};
use serde::{Deserialize, Serialize};

/// One thing that happened, as a recording keeps it: `{"event":{…}}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogEntry {
    /// Something that happened.
    Event(Event),
    /// A process that exited.
    Exit(Box<ExitRecord>),
    /// What a process ran on its devices during a stretch of time.
    Operations(OperationTotals),
    /// Recording began, or went on after a pause.
    Start(RecordingStart),
}

impl LogEntry {
    /// When it happened; of a stretch of time, when it ended.
    pub fn time(&self) -> Timestamp {
        match self {
            LogEntry::Event(event) => event.time,
            LogEntry::Exit(exit) => exit.died_at,
            LogEntry::Operations(totals) => totals.time,
            LogEntry::Start(start) => start.time,
        }
    }
}

/// What a process ran during a stretch of time. Counts are of this stretch alone.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperationTotals {
    /// When the stretch ended.
    pub time: Timestamp,
    /// How long it was.
    pub seconds: f64,
    /// The process,
    pub pid: u32,
    /// which began then,
    pub started_at: Option<Timestamp>,
    /// and its name.
    pub name: Option<String>,
    /// The operations that it launched or that ran, those with the most device time first.
    pub operations: Vec<Operation>,
    /// Operations that are not in the list, which has a limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: usize,
}

/// Recording began.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordingStart {
    /// When.
    pub time: Timestamp,
    /// The version of ttmon.
    pub ttmon: String,
    /// Which start of the machine this is, as the kernel numbers them.
    pub boot_id: Option<String>,
    /// Whether what recorded before had ended by itself. Absent when nothing did.
    pub ended_well: Option<bool>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Weight;
    use expect_test::expect;

    #[test]
    fn an_entry_is_an_object_with_its_kind_as_key() {
        let event = Event::new(Timestamp(1000), Weight::Bad, None, "x".into());
        let totals = OperationTotals { time: Timestamp(2000), seconds: 10.0, pid: 7, ..OperationTotals::default() };
        let start = RecordingStart { time: Timestamp(3000), ttmon: "0.1.0".into(), ..RecordingStart::default() };
        let entries = [LogEntry::Event(event), LogEntry::Operations(totals), LogEntry::Start(start)];
        let text = entries.each_ref().map(|entry| serde_json::to_string(entry).unwrap());
        expect![[r#"
            {"event":{"time":"1970-01-01T00:00:01.000Z","weight":"bad","device":null,"text":"x"}}
            {"operations":{"time":"1970-01-01T00:00:02.000Z","seconds":10.0,"pid":7,"started_at":null,"name":null,"operations":[]}}
            {"start":{"time":"1970-01-01T00:00:03.000Z","ttmon":"0.1.0","boot_id":null,"ended_well":null}}"#]]
        .assert_eq(&text.join("\n"));
        assert_eq!(text.map(|line| serde_json::from_str::<LogEntry>(&line).unwrap()), entries);
        assert_eq!(entries.map(|entry| entry.time().0), [1000, 2000, 3000]);
    }
}
