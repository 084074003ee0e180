//! What processes ran, summed up every ten seconds, from the totals that their books have.

use model::{ExitRecord, LogEntry, Operation, OperationTotals, Process, Snapshot, Timestamp};
use std::collections::BTreeMap;

/// What was counted when the stretch began, by process and operation.
#[derive(Debug, Default)]
pub struct OperationSums {
    began: Option<Timestamp>,
    processes: BTreeMap<ProcessKey, Vec<Operation>>,
}

/// A pid, and when the process began.
type ProcessKey = (u32, Option<Timestamp>);

/// How long a stretch is, in milliseconds.
const STRETCH: i64 = 10_000;
/// So many operations of a process are kept in each entry.
const MOST: usize = 20;

impl OperationSums {
    /// What was run in the stretch that ends now. Nothing while it goes on, apart from processes that exited.
    pub fn notice(&mut self, now: &Snapshot, exits: &[ExitRecord]) -> Vec<LogEntry> {
        let time = now.taken_at;
        let Some(began) = self.began.filter(|began| *began <= time) else {
            self.begin(now);
            return Vec::new();
        };
        let mut entries: Vec<LogEntry> = exits.iter().filter_map(|exit| self.of_exit(exit, began)).collect();
        if time.0 - began.0 >= STRETCH {
            entries.extend(now.processes.iter().filter_map(|process| self.of_process(process, began, time)));
            self.begin(now);
        }
        entries
    }

    fn begin(&mut self, now: &Snapshot) {
        self.began = Some(now.taken_at);
        let with_operations = now.processes.iter().filter(|process| !process.operations.is_empty());
        self.processes = with_operations.map(|process| (key(process), process.operations.clone())).collect();
    }

    fn of_process(&self, process: &Process, began: Timestamp, time: Timestamp) -> Option<LogEntry> {
        let name = process.name.clone();
        self.totals(key(process), name, &process.operations, began, time).map(LogEntry::Operations)
    }

    fn of_exit(&mut self, exit: &ExitRecord, began: Timestamp) -> Option<LogEntry> {
        let key = (exit.pid, exit.started_at);
        let time = exit.died_at.max(began);
        let totals = self.totals(key, exit.name.clone(), &exit.operations, began, time);
        self.processes.remove(&key);
        totals.map(LogEntry::Operations)
    }

    fn totals(
        &self,
        key: ProcessKey,
        name: Option<String>,
        operations: &[Operation],
        began: Timestamp,
        time: Timestamp,
    ) -> Option<OperationTotals> {
        let seconds = (time.0 - began.0) as f64 / 1e3;
        let before = self.processes.get(&key).map_or(&[][..], |operations| operations);
        let of_name = |name: &str| before.iter().find(|operation| operation.name == name);
        let news = operations.iter().map(|operation| since(operation, of_name(&operation.name), seconds));
        let mut operations: Vec<Operation> = news.filter(has_run).collect();
        operations.sort_by(Operation::by_cost);
        let left_out = operations.len().saturating_sub(MOST);
        operations.truncate(MOST);
        let (pid, started_at) = key;
        (!operations.is_empty()).then_some(OperationTotals {
            time,
            seconds,
            pid,
            started_at,
            name,
            operations,
            left_out,
        })
    }
}

fn key(process: &Process) -> ProcessKey {
    (process.pid, process.started_at)
}

fn has_run(operation: &Operation) -> bool {
    operation.launches > 0 || operation.runs.is_some_and(|runs| runs > 0) || operation.in_flight
}

/// What an operation did since then.
fn since(now: &Operation, before: Option<&Operation>, seconds: f64) -> Operation {
    let before = before.cloned().unwrap_or_default();
    let launches = now.launches.saturating_sub(before.launches);
    Operation {
        launches,
        runs: now.runs.map(|runs| runs.saturating_sub(before.runs.unwrap_or(0))),
        device_seconds: now.device_seconds.map(|time| (time - before.device_seconds.unwrap_or(0.0)).max(0.0)),
        // The longest of all times, and known to be of this stretch only when it has grown.
        longest_seconds: now.longest_seconds.filter(|longest| before.longest_seconds.is_none_or(|old| *longest > old)),
        launches_per_second: (seconds > 0.0).then(|| launches as f64 / seconds),
        ..now.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(name: &str, launches: u64, device_seconds: f64) -> Operation {
        let (runs, device_seconds) = (Some(launches), Some(device_seconds));
        Operation { name: name.into(), launches, runs, device_seconds, ..Operation::default() }
    }

    fn snapshot(time: i64, operations: Vec<Operation>) -> Snapshot {
        let process = Process { operations, name: Some("train".into()), ..Process::new(7) };
        Snapshot { taken_at: Timestamp(time), processes: vec![process], ..Snapshot::empty() }
    }

    /// Name, launches and device time of each.
    type Ran = Vec<(String, u64, Option<f64>)>;

    fn totals(entries: Vec<LogEntry>) -> Vec<(i64, Ran)> {
        let totals = entries.into_iter().map(|entry| match entry {
            LogEntry::Operations(totals) => totals,
            other => panic!("{other:?}"),
        });
        let of = |operation: Operation| (operation.name, operation.launches, operation.device_seconds);
        totals.map(|totals| (totals.time.0, totals.operations.into_iter().map(of).collect())).collect()
    }

    #[test]
    fn operations_are_counted_in_stretches_of_ten_seconds() {
        let mut sums = OperationSums::default();
        let idle = || operation("copy", 3, 0.5);
        assert!(sums.notice(&snapshot(1000, vec![operation("matmul", 100, 1.0), idle()]), &[]).is_empty());
        assert!(sums.notice(&snapshot(6000, vec![operation("matmul", 150, 1.5), idle()]), &[]).is_empty());
        let entries = sums.notice(&snapshot(11_000, vec![operation("matmul", 180, 1.75), idle()]), &[]);
        assert_eq!(totals(entries), [(11_000, vec![("matmul".into(), 80, Some(0.75))])]);
        let mut stuck = operation("matmul", 180, 1.75);
        stuck.in_flight = true;
        let entries = sums.notice(&snapshot(21_000, vec![stuck, idle()]), &[]);
        assert_eq!(totals(entries), [(21_000, vec![("matmul".into(), 0, Some(0.0))])], "what is in flight is kept");
        let exit = ExitRecord {
            pid: 7,
            died_at: Timestamp(23_000),
            operations: vec![operation("matmul", 190, 2.0)],
            ..ExitRecord::default()
        };
        let entries = sums.notice(&Snapshot { taken_at: Timestamp(24_000), ..Snapshot::empty() }, &[exit]);
        assert_eq!(totals(entries), [(23_000, vec![("matmul".into(), 10, Some(0.25))])], "up to its end");
    }

    #[test]
    fn a_clock_that_goes_back_begins_another_stretch() {
        let mut sums = OperationSums::default();
        sums.notice(&snapshot(50_000, vec![operation("matmul", 100, 1.0)]), &[]);
        assert!(sums.notice(&snapshot(20_000, vec![operation("matmul", 120, 1.2)]), &[]).is_empty());
        let entries = sums.notice(&snapshot(30_000, vec![operation("matmul", 130, 1.5)]), &[]);
        assert_eq!(totals(entries), [(30_000, vec![("matmul".into(), 10, Some(0.30000000000000004))])]);
    }

    #[test]
    fn a_process_with_many_operations_has_the_largest_of_them() {
        let mut sums = OperationSums::default();
        sums.notice(&snapshot(0, vec![]), &[]);
        let many = (1..=25).map(|at| operation(&format!("op{at}"), at, at as f64)).collect();
        let entries = sums.notice(&snapshot(10_000, many), &[]);
        let LogEntry::Operations(totals) = &entries[0] else { panic!() };
        assert_eq!((totals.operations.len(), totals.left_out, &*totals.operations[0].name), (20, 5, "op25"));
    }
}
