//! Operations that a process runs on its devices, such as `MatmulDeviceOperation`.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// The operations of one process.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OperationList {
    /// The process.
    pub pid: u32,
    /// Where this is known from.
    pub source: OperationSource,
    /// Numbers of the chips that it uses, as tt-metal counts them.
    pub chips: Option<Vec<u64>>,
    /// Launches that are counted below.
    pub launches: u64,
    /// Whether these are all launches since the process began. If not, all counts are lower bounds.
    pub complete: bool,
    /// One per name.
    pub operations: Vec<Operation>,
}

named! {
    /// Who has counted operations.
    pub enum OperationSource {
        /// tt-metal itself, which remembers the last launches.
        Inspector = "inspector",
        /// ttmon's agent in the process.
        Agent = "agent",
    }
}

/// One operation of a process, on all its chips. A source that does not measure time has none.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// What tt-metal calls it: `MatmulDeviceOperation`.
    pub name: String,
    /// How often it was launched. The agent counts replays of traces, too.
    pub launches: u64,
    /// Runs on chips that were recorded.
    pub runs: Option<u64>,
    /// Time on chips, added up over them.
    pub device_seconds: Option<f64>,
    /// Its longest run.
    pub longest_seconds: Option<f64>,
    /// How long ago it was last launched.
    pub age_seconds: Option<f64>,
    /// Launches in a second. From the second sample of a loop on.
    pub launches_per_second: Option<f64>,
    /// Whether its last launch has no record yet.
    #[serde(default)]
    pub in_flight: bool,
    /// How often it was recorded into a trace, as the Inspector counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured: Option<u64>,
    /// The traces that it was recorded into, without duplicates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<u32>,
    /// What the last launch was given, in tt-metal's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensors: Option<String>,
    /// tt-metal's number of the last launch: the higher, the later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_id: Option<u64>,
}

/// How a list of operations is sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationOrder {
    /// The most device time first where it is known, then the most launches.
    Cost,
    /// The last launched first.
    Recent,
}

impl Operation {
    /// The one with the most device time first; where none is known, the one that was launched most often.
    pub fn by_cost(&self, other: &Operation) -> Ordering {
        let time = |operation: &Operation| operation.device_seconds.unwrap_or(0.0);
        let counts = |operation: &Operation| (operation.launches, operation.captured);
        let cost = time(other).total_cmp(&time(self)).then(counts(other).cmp(&counts(self)));
        cost.then_with(|| self.by_age(other)).then_with(|| self.name.cmp(&other.name))
    }

    /// The one that was launched last first.
    fn by_age(&self, other: &Operation) -> Ordering {
        let age = |operation: &Operation| operation.age_seconds.unwrap_or(f64::INFINITY);
        other.last_id.cmp(&self.last_id).then(age(self).total_cmp(&age(other)))
    }
}

impl OperationList {
    /// Sorts the operations.
    pub fn sort(&mut self, order: OperationOrder) {
        self.operations.sort_by(|a, b| match order {
            OperationOrder::Cost => a.by_cost(b),
            OperationOrder::Recent => a.by_age(b).then_with(|| a.by_cost(b)),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(name: &str, launches: u64, last_id: u64, device_seconds: Option<f64>) -> Operation {
        Operation { name: name.into(), launches, last_id: Some(last_id), device_seconds, ..Operation::default() }
    }

    fn list(operations: Vec<Operation>) -> OperationList {
        let source = OperationSource::Inspector;
        OperationList { pid: 7, source, chips: None, launches: 9, complete: true, operations }
    }

    fn sorted(operations: &[Operation], order: OperationOrder) -> Vec<String> {
        let mut list = list(operations.to_vec());
        list.sort(order);
        list.operations.into_iter().map(|operation| operation.name).collect()
    }

    #[test]
    fn operations_are_sorted_by_time_then_launches_or_by_the_last_launch() {
        let counted = [operation("add", 5, 9, None), operation("matmul", 7, 8, None), operation("copy", 5, 10, None)];
        assert_eq!(sorted(&counted, OperationOrder::Cost), ["matmul", "copy", "add"]);
        assert_eq!(sorted(&counted, OperationOrder::Recent), ["copy", "add", "matmul"]);
        let timed = [operation("add", 900, 9, Some(0.001)), operation("matmul", 7, 8, Some(0.05))];
        assert_eq!(sorted(&timed, OperationOrder::Cost), ["matmul", "add"]);
    }

    #[test]
    fn time_that_was_not_measured_is_null() {
        let text = serde_json::to_string(&list(vec![operation("add", 5, 9, None)])).unwrap();
        expect_test::expect![[r#"{"pid":7,"source":"inspector","chips":null,"launches":9,"complete":true,"operations":[{"name":"add","launches":5,"runs":null,"device_seconds":null,"longest_seconds":null,"age_seconds":null,"launches_per_second":null,"in_flight":false,"last_id":9}]}"#]]
        .assert_eq(&text);
    }
}
