//! Operations that a process runs on its devices, such as `MatmulDeviceOperation`.

use serde::{Serialize, Serializer};
use std::time::Duration;

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

/// One operation of a process. A source that does not measure time has none.
#[derive(Debug, Default, Clone, PartialEq, Serialize)]
pub struct Operation {
    /// What tt-metal calls it.
    pub name: String,
    /// How often it was launched.
    pub launches: u64,
    /// The time that all launches took on the device.
    #[serde(rename = "device_time_seconds", serialize_with = "seconds")]
    pub device_time: Option<Duration>,
    /// That of the longest launch.
    #[serde(rename = "longest_seconds", serialize_with = "seconds")]
    pub longest: Option<Duration>,
    /// That of the last launch.
    #[serde(rename = "last_seconds", serialize_with = "seconds")]
    pub last: Option<Duration>,
    /// How often it was recorded into a trace. Replays of the trace run it again, which only the agent counts as launches.
    pub captured: u64,
    /// The traces that it was recorded into, without duplicates.
    pub traces: Vec<u32>,
    /// What the last launch was given, in tt-metal's words.
    pub tensors: Option<String>,
    /// tt-metal's number of the last launch: the higher, the later.
    pub last_id: Option<u64>,
}

fn seconds<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_secs_f64()).serialize(serializer)
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
            let recent = b.last_id.cmp(&a.last_id);
            let cost = (b.device_time, b.launches, b.captured).cmp(&(a.device_time, a.launches, a.captured));
            let first = if order == OperationOrder::Cost { cost.then(recent) } else { recent.then(cost) };
            first.then_with(|| a.name.cmp(&b.name))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(name: &str, launches: u64, last_id: u64, device_time: Option<u64>) -> Operation {
        let device_time = device_time.map(Duration::from_millis);
        Operation { name: name.into(), launches, last_id: Some(last_id), device_time, ..Operation::default() }
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
        let timed = [operation("add", 900, 9, Some(1)), operation("matmul", 7, 8, Some(50))];
        assert_eq!(sorted(&timed, OperationOrder::Cost), ["matmul", "add"]);
    }

    #[test]
    fn time_that_was_not_measured_is_null() {
        let text = serde_json::to_string(&list(vec![operation("add", 5, 9, None)])).unwrap();
        expect_test::expect![[r#"{"pid":7,"source":"inspector","chips":null,"launches":9,"complete":true,"operations":[{"name":"add","launches":5,"device_time_seconds":null,"longest_seconds":null,"last_seconds":null,"captured":0,"traces":[],"tensors":null,"last_id":9}]}"#]]
        .assert_eq(&text);
    }
}
