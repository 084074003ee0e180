//! Operations that a process runs on its devices, such as `MatmulDeviceOperation`.

use serde::{Deserialize, Serialize};

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

impl OperationList {
    /// Sorts the operations.
    pub fn sort(&mut self, order: OperationOrder) {
        self.operations.sort_by(|a, b| {
            let age = |operation: &Operation| operation.age_seconds.unwrap_or(f64::INFINITY);
            let recent = b.last_id.cmp(&a.last_id).then(age(a).total_cmp(&age(b)));
            let cost = time(b).total_cmp(&time(a)).then((b.launches, b.captured).cmp(&(a.launches, a.captured)));
            let first = if order == OperationOrder::Cost { cost.then(recent) } else { recent.then(cost) };
            first.then_with(|| a.name.cmp(&b.name))
        });
    }
}

fn time(operation: &Operation) -> f64 {
    operation.device_seconds.unwrap_or(0.0)
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
        expect_test::expect![[r#"{"pid":7,"source":"inspector","chips":null,"launches":9,"complete":true,"operations":[{"name":"add","launches":5,"device_time_seconds":null,"longest_seconds":null,"last_seconds":null,"captured":0,"traces":[],"tensors":null,"last_id":9}]}"#]]
        .assert_eq(&text);
    }
}
