//! A workload with ttmon's agent: it keeps a book of its buffers and of what it runs. What it runs is made up; the book is real.

use crate::banks::{ChipBanks, SimBuffer};
use crate::plan::{self, SimOperation};
use crate::region::Amounts;
use crate::work::Work;
use ledger::book::activity::{ActivitySource, DeviceRecord, Launch, NoRecords, monotonic};
use ledger::book::{Chips, MemoryKind, NewBuffer, Writer};
use std::io;

pub(crate) struct KeptBook {
    writer: Writer,
    work: Work,
    /// By their numbers in the book, with their ns.
    operations: Vec<(Option<u16>, u64)>,
    /// The chips in the order of regions.
    chips: Vec<KeptChip>,
    began: u64,
    /// Up to when everything has run.
    until: u64,
    launched: u64,
    /// An operation was launched that never ends.
    is_hung: bool,
}

struct KeptChip {
    /// Its number in the book.
    number: u8,
    is_recorded: bool,
    banks: Option<ChipBanks>,
    /// The live buffers of each kind that has banks.
    buffers: [Vec<SimBuffer>; 4],
}

/// Time that was missed is not made up for.
const LONGEST: u64 = 500_000_000;
/// Ticks of the devices are ns of the host.
const CLOCK: f64 = 1.0;

impl KeptBook {
    pub fn new(work: Work) -> io::Result<KeptBook> {
        KeptBook::with(work, &plan::operations(work))
    }

    fn with(work: Work, operations: &[SimOperation]) -> io::Result<KeptBook> {
        // It has been there for a while, so that the first look finds something.
        let (writer, began) = (Writer::create("ttmon-agent, simulated")?, monotonic().saturating_sub(LONGEST));
        writer.record_activity(began);
        writer.records_arrive(true, None);
        let number = |one: &SimOperation| (writer.operation(one.name.as_bytes()), one.microseconds.max(1) * 1000);
        let operations = operations.iter().map(number).collect();
        let chips = Vec::new();
        Ok(KeptBook { writer, work, operations, chips, began, until: began, launched: 0, is_hung: false })
    }

    /// A chip was opened. One that is reached through another one has no records.
    pub fn open(&mut self, device: u32, asic: u64, is_remote: bool, banks: Option<ChipBanks>) {
        let Some(number) = self.writer.chip(device, Some(asic)) else { return };
        if is_remote {
            self.writer.chip_unrecorded(number, NoRecords::Remote);
        } else {
            self.writer.chip_opened(number, ActivitySource::Profiler, self.began);
        }
        if let Some([dram, l1]) = banks.map(ChipBanks::bases) {
            self.writer.bases(number, dram, l1);
        }
        self.chips.push(KeptChip { number, is_recorded: !is_remote, banks, buffers: Default::default() });
    }

    /// Allocates and frees until there are these amounts on the chip that was opened as number `region`.
    pub fn set(&mut self, region: usize, amounts: Amounts) {
        let Some(chip) = self.chips.get_mut(region) else { return };
        let Amounts { dram, l1, l1_small, trace, cb } = amounts;
        let kinds = [
            (MemoryKind::Dram, dram),
            (MemoryKind::L1, l1),
            (MemoryKind::L1Small, l1_small),
            (MemoryKind::Trace, trace),
        ];
        for ((kind, bytes), live) in kinds.into_iter().zip(&mut chip.buffers) {
            let Some((wanted, said)) = chip.banks.and_then(|banks| banks.laid_out(self.work, kind, bytes)) else {
                continue;
            };
            let id = |at: usize| (region as u64) << 40 | (kind as u64) << 32 | at as u64;
            // What is freed first leaves its place to what is allocated.
            for at in (0..live.len()).filter(|at| live.get(*at) != wanted.get(*at)) {
                self.writer.free(id(at));
            }
            for (at, buffer) in wanted.iter().enumerate().filter(|(at, buffer)| live.get(*at) != Some(buffer)) {
                self.writer.allocate(&NewBuffer {
                    id: id(at),
                    chips: Chips::one(chip.number),
                    kind,
                    logical: buffer.bytes * u64::from(said.banks),
                    per_bank: buffer.bytes,
                    banks: said.banks,
                    address: buffer.address,
                    page: 2048,
                    layout: 0,
                    owner: region as u64,
                    label: buffer.label.as_bytes(),
                });
            }
            self.writer.banks(chip.number, kind, said);
            *live = wanted;
        }
        self.writer.set(chip.number, MemoryKind::Cb, cb, if cb > 0 { 8 } else { 0 });
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
            for (chip, busy) in self.chips.iter().zip(busy).filter(|(chip, _)| chip.is_recorded) {
                let chip = chip.number;
                let ns = (ns * u64::from(*busy) / busiest).max(1000);
                let (start, end) = (at, at + ns);
                records.push(DeviceRecord { chip, runtime_id, operation, start, end, cycles_per_ns: CLOCK });
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
        self.chips.iter().for_each(|chip| self.writer.chip_closed(chip.number, now));
        self.writer.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::book::{self, activity};
    use model::{Arch, Board};
    use std::time::Duration;

    #[test]
    fn a_chip_is_as_busy_as_ordered_and_operations_have_their_times() {
        let operation = |name, microseconds| SimOperation { name, microseconds };
        let operations = [operation("Matmul", 1500), operation("Softmax", 500)];
        let mut kept = KeptBook::with(Work::Serving, &operations).unwrap();
        kept.open(0, 7, false, None);
        kept.open(1, 8, false, None);
        kept.open(2, 9, true, None);
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

    #[test]
    fn buffers_in_the_book_add_up_to_what_was_ordered() {
        let capacity = Board::N150.capacity(None).unwrap();
        let banks = ChipBanks::of(Arch::Wormhole, capacity);
        let mut kept = KeptBook::new(Work::Training).unwrap();
        kept.open(0, 7, false, Some(banks));
        let mut seen = Vec::new();
        for ticks in [0, 10, 20] {
            let amounts = plan::memory(Work::Training, capacity, banks, ticks, 0.5);
            kept.set(0, amounts);
            let file = kept.writer.file().try_clone().unwrap();
            let source = book::of_file(&file);
            let found = book::read_with_banks(&source).unwrap();
            let table = book::table(&source, &found).unwrap();
            let of_kind = |kind| table.buffers.iter().filter(move |buffer| buffer.kind == kind);
            let sum = |kind| of_kind(kind).map(|buffer| buffer.bytes()).sum::<u64>();
            assert_eq!((sum(MemoryKind::Dram), sum(MemoryKind::L1)), (amounts.dram, amounts.l1));
            let bank = found.chips[0].banks[MemoryKind::Dram as usize].unwrap();
            assert_eq!(bank.allocated * u64::from(bank.banks), amounts.dram);
            assert!(bank.largest_free.unwrap() < bank.free);
            assert_eq!(found.chips[0].counters[MemoryKind::Cb as usize].bytes, amounts.cb);
            seen.push((amounts.dram, table.buffers.len()));
        }
        assert!(seen[0] == seen[2] && seen[0] != seen[1], "activations come and go: {seen:?}");
    }
}
