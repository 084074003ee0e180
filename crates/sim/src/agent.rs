//! A workload with ttmon's agent: it keeps a book of its memory and of what it runs. What it runs is made up; the book is real.

use crate::region::Amounts;
use ledger::book::activity::{ActivitySource, DeviceRecord, Launch, NoRecords, monotonic};
use ledger::book::{MemoryKind, Writer};
use serde::{Deserialize, Serialize};
use std::io;

/// An operation that a workload runs, and how long it takes on a device that has nothing else to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SimOperation {
    pub name: String,
    pub microseconds: u64,
}

pub(crate) struct KeptBook {
    writer: Writer,
    /// By their numbers in the book, with their ns.
    operations: Vec<(Option<u16>, u64)>,
    /// The chips in the order of regions, and whether each is recorded.
    chips: Vec<(u8, bool)>,
    began: u64,
    /// Up to when everything has run.
    until: u64,
    launched: u64,
    /// An operation was launched that never ends.
    is_hung: bool,
}

/// Time that was missed is not made up for.
const LONGEST: u64 = 500_000_000;
/// Ticks of the devices are ns of the host.
const CLOCK: f64 = 1.0;

impl KeptBook {
    pub fn new(operations: &[SimOperation]) -> io::Result<KeptBook> {
        // It has been there for a while, so that the first look finds something.
        let (writer, began) = (Writer::create("ttmon-agent, simulated")?, monotonic().saturating_sub(LONGEST));
        writer.record_activity(began);
        writer.records_arrive(true, None);
        let number = |one: &SimOperation| (writer.operation(one.name.as_bytes()), one.microseconds.max(1) * 1000);
        let operations = operations.iter().map(number).collect();
        Ok(KeptBook { writer, operations, chips: Vec::new(), began, until: began, launched: 0, is_hung: false })
    }

    /// A chip was opened. One that is reached through another one has no records.
    pub fn open(&mut self, device: u32, asic: u64, is_remote: bool) {
        let Some(chip) = self.writer.chip(device, Some(asic)) else { return };
        if is_remote {
            self.writer.chip_unrecorded(chip, NoRecords::Remote);
        } else {
            self.writer.chip_opened(chip, ActivitySource::Profiler, self.began);
        }
        self.chips.push((chip, !is_remote));
    }

    pub fn set(&self, region: usize, amounts: Amounts) {
        let Some((chip, _)) = self.chips.get(region) else { return };
        let Amounts { dram, l1, l1_small, trace, cb } = amounts;
        let kinds = [
            (MemoryKind::Dram, dram, 291),
            (MemoryKind::L1, l1, 24),
            (MemoryKind::L1Small, l1_small, 4),
            (MemoryKind::Trace, trace, 1),
            (MemoryKind::Cb, cb, 8),
        ];
        for (kind, bytes, buffers) in kinds {
            self.writer.set(*chip, kind, bytes, if bytes > 0 { buffers } else { 0 });
        }
    }

    /// Runs one operation after another up to now, each on all chips. `busy` is how busy each of them is, in thousandths.
    pub fn run(&mut self, busy: &[u16]) {
        self.is_hung = false;
        let now = monotonic();
        let from = self.until.max(now.saturating_sub(LONGEST));
        self.until = now;
        let busiest = u64::from(busy.iter().copied().max().unwrap_or(0).min(1000));
        if busiest == 0 || self.operations.is_empty() {
            return;
        }
        let mut at = from;
        let mut records = Vec::new();
        loop {
            let (operation, ns) = self.operations[self.launched as usize % self.operations.len()];
            if at + ns > now {
                break;
            }
            self.launched += 1;
            let runtime_id = self.launched as u16;
            self.writer.launched(Launch { operation, runtime_id: Some(runtime_id) }, at);
            for ((chip, _), busy) in self.chips.iter().zip(busy).filter(|((_, is_recorded), _)| *is_recorded) {
                let ns = (ns * u64::from(*busy) / busiest).max(1000);
                let (start, end) = (at, at + ns);
                records.push(DeviceRecord { chip: *chip, runtime_id, operation, start, end, cycles_per_ns: CLOCK });
            }
            at += ns * 1000 / busiest;
        }
        // What did not fit any more is next.
        self.until = at.min(now);
        self.writer.records(records.into_iter(), 0, now);
        let waited = (now - from) * busiest / 2500;
        self.writer.held_back((now - from) * busiest / 40_000);
        self.writer.wait_begins(now - waited);
        self.writer.wait_ends(Some(self.writer.programs_launched()), now);
    }

    /// Launches the next operation, of which there will be no record.
    pub fn hang(&mut self) {
        if self.operations.is_empty() || std::mem::replace(&mut self.is_hung, true) {
            return;
        }
        let (operation, _) = self.operations[self.launched as usize % self.operations.len()];
        self.launched += 1;
        self.writer.launched(Launch { operation, runtime_id: Some(self.launched as u16) }, monotonic());
    }

    /// The chips are closed.
    pub fn close(self) {
        let now = monotonic();
        self.chips.iter().for_each(|(chip, _)| self.writer.chip_closed(*chip, now));
        self.writer.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::book::{self, activity};
    use std::time::Duration;

    #[test]
    fn a_chip_is_as_busy_as_ordered_and_operations_have_their_times() {
        let operation = |name: &str, microseconds| SimOperation { name: name.into(), microseconds };
        let mut kept = KeptBook::new(&[operation("Matmul", 1500), operation("Softmax", 500)]).unwrap();
        kept.open(0, 7, false);
        kept.open(1, 8, false);
        kept.open(2, 9, true);
        for _ in 0..12 {
            std::thread::sleep(Duration::from_millis(100));
            kept.run(&[600, 300, 0]);
        }
        let now = monotonic();
        let file = kept.writer.file().try_clone().unwrap();
        let source = book::of_file(&file);
        let found = book::read(&source).unwrap();
        let recorded = activity::activity(&source, &found, now).unwrap().unwrap();
        let ratios: Vec<f64> = recorded.chips[..2].iter().map(|chip| chip.utilization(now).unwrap().ratio).collect();
        assert!((0.5..=0.7).contains(&ratios[0]) && (0.2..=0.4).contains(&ratios[1]), "{ratios:?}");
        assert!(recorded.chips[2].utilization(now).is_err(), "one that is remote has no records");
        let operations = activity::operations(&source, &recorded, now).unwrap();
        let time = |name: &str| operations.iter().find(|one| one.name == name).unwrap().device_time as f64;
        assert!((2.5..=3.5).contains(&(time("Matmul") / time("Softmax"))), "{operations:?}");
        kept.run(&[0, 0, 0]);
        std::thread::sleep(Duration::from_millis(1300));
        let now = monotonic();
        let recorded = activity::activity(&source, &found, now).unwrap().unwrap();
        assert_eq!(recorded.chips[0].utilization(now).map(|found| found.ratio), Ok(0.0), "measured, and idle");
    }
}
