//! What is known when the command has ended: plain data, which the receipt and the JSON show.

use super::collect::{Collected, Received};
use super::energy::Tally;
use ledger::book::{self, Book, BookBuffer, BufferTable, MemoryKind};
use model::{Device, DeviceId, Timestamp, chip_with_number};
use std::collections::BTreeMap;
use std::time::Duration;
use watch::ProcessActivity;

pub struct RunAccount {
    pub command: Vec<String>,
    pub began: Timestamp,
    pub duration: Duration,
    pub end: End,
    /// `false` when the agent was switched off.
    pub is_followed: bool,
    pub processes: Vec<RunProcess>,
    pub devices: Vec<Tally>,
    /// Why nothing is known of any device.
    pub no_device: Option<&'static str>,
    pub is_simulated: bool,
    /// What could not be read.
    pub remarks: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Code(u8),
    Signal(i32),
}

/// A process that kept a book, and its last state.
pub struct RunProcess {
    pub pid: u32,
    pub name: Option<String>,
    pub fate: Fate,
    /// When the book ended: with the process, or now.
    pub until: u64,
    pub book: Book,
    pub chips: Vec<ChipName>,
    pub table: Result<BufferTable, String>,
    /// What it had the chips do, where its agent records that.
    pub activity: Option<ProcessActivity>,
}

/// What became of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    Clean,
    /// It ended without having said so: by a signal, or by `_exit` with an error.
    Abrupt,
    /// It became another program, by `exec`.
    Replaced,
    Running,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChipName {
    Device(DeviceId),
    /// A chip that is none of this machine's devices, or that cannot be told from another one.
    Chip(u64),
    /// All that is known is how a process counts.
    Nth(u32, u32),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Clean,
    Leaks,
    /// It cannot be said, and why.
    None(&'static str),
}

impl End {
    /// As shells count.
    pub fn code(self) -> u8 {
        match self {
            End::Code(code) => code,
            End::Signal(signal) => 128u8.wrapping_add(signal as u8),
        }
    }
}

impl RunProcess {
    /// Buffers that went only because their device was closed.
    pub fn left(&self) -> u64 {
        self.book.chips.iter().flat_map(|chip| &chip.counters).map(|counter| counter.left).sum()
    }

    /// Whether it left something behind that it should have freed: at its own end, or when it closed a device.
    fn leaks(&self) -> bool {
        match self.fate {
            Fate::Clean => self.live() + self.left() > 0,
            Fate::Abrupt => self.left() > 0,
            Fate::Replaced | Fate::Running => false,
        }
    }

    /// Buffers that were still allocated, whether the table lists them or not.
    pub fn live(&self) -> u64 {
        let tabled = self.table.as_ref().map(|table| table.buffers.len() as u64 + table.unreadable);
        tabled.unwrap_or(self.book.tabled).saturating_add(self.book.untabled)
    }

    /// Those that the table lists.
    pub fn buffers(&self) -> &[BookBuffer] {
        self.table.as_ref().map_or(&[], |table| &table.buffers)
    }

    pub fn age(&self, buffer: &BookBuffer) -> Duration {
        Duration::from_nanos(self.until.saturating_sub(buffer.time))
    }
}

impl RunAccount {
    /// Whether something was still allocated at a clean end, or when a device was closed. A process that was killed is clean when it
    /// held nothing.
    pub fn verdict(&self) -> Verdict {
        let ended = |fate| self.processes.iter().any(|process| process.fate == fate);
        match self.end {
            _ if !self.is_followed => Verdict::None("memory was not followed"),
            End::Signal(_) => Verdict::None("the command was killed"),
            End::Code(1..) => Verdict::None("the command failed"),
            End::Code(0) if self.processes.iter().any(RunProcess::leaks) => Verdict::Leaks,
            End::Code(0) if !self.remarks.is_empty() => Verdict::None("the agent's data could not be read"),
            End::Code(0) if self.processes.is_empty() => Verdict::None("no process ran with the agent"),
            End::Code(0) if self.processes.iter().any(|process| process.book.is_inexact) => {
                Verdict::None("the agent's data is incomplete")
            }
            End::Code(0) if self.processes.iter().any(|p| p.fate == Fate::Abrupt && p.live() > 0) => {
                Verdict::None("a process ended abruptly with buffers allocated")
            }
            End::Code(0) if ended(Fate::Clean) || ended(Fate::Abrupt) => Verdict::Clean,
            End::Code(0) if ended(Fate::Running) => Verdict::None("no process has ended yet"),
            End::Code(0) => Verdict::None("no process ended normally"),
        }
    }

    /// Of each chip the processes that used it, with the place that it has in their books.
    pub fn chips(&self) -> BTreeMap<&ChipName, Vec<(&RunProcess, usize)>> {
        let mut chips: BTreeMap<&ChipName, Vec<(&RunProcess, usize)>> = BTreeMap::new();
        for process in &self.processes {
            for (at, name) in process.chips.iter().enumerate() {
                chips.entry(name).or_default().push((process, at));
            }
        }
        chips
    }
}

/// The most that was reserved of a kind on a chip at any time, as far as can be said from what each process had at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peak {
    Exact(u64),
    /// Several processes were there at once; when each had how much is not known.
    AtMost(u64),
}

/// Adds up the peaks of the processes that were there at the same time.
pub fn peak(users: &[(&RunProcess, usize)], kind: MemoryKind) -> Peak {
    let spans: Vec<(u64, u64, u64)> = users
        .iter()
        .map(|(process, chip)| {
            let peak = process.book.chips[*chip].counters[kind as usize].peak;
            (process.book.created, process.until, peak)
        })
        .filter(|(_, _, peak)| *peak > 0)
        .collect();
    // The most is reached when somebody has just come.
    let together = spans.iter().map(|(begin, ..)| {
        let there = spans.iter().filter(|(from, until, _)| from <= begin && begin <= until);
        there.fold((0u64, 0), |(sum, count), (.., peak)| (sum.saturating_add(*peak), count + 1))
    });
    match together.max() {
        Some((most, 2..)) => Peak::AtMost(most),
        Some((most, _)) => Peak::Exact(most),
        None => Peak::Exact(0),
    }
}

/// Reads the books, and says what became of their processes.
pub fn processes(collected: Collected, devices: &[Device], now: u64) -> (Vec<RunProcess>, Vec<String>) {
    let Collected { books, mut remarks } = collected;
    let mut processes: Vec<RunProcess> = Vec::new();
    for received in books {
        let pid = received.pid;
        match process(received, devices, now) {
            Ok(process) => processes.push(process),
            Err(error) => remarks.push(format!("pid {pid}: the agent's data cannot be read: {error}")),
        }
    }
    // A process that began a second book has become another program.
    for at in 0..processes.len() {
        let (before, after) = processes.split_at_mut(at);
        for earlier in before.iter_mut().filter(|earlier| earlier.pid == after[0].pid && earlier.fate != Fate::Clean) {
            earlier.fate = Fate::Replaced;
            earlier.until = earlier.until.min(after[0].book.created);
        }
    }
    (processes, remarks)
}

fn process(received: Received, devices: &[Device], now: u64) -> Result<RunProcess, book::BookError> {
    let Received { pid, name, file, died, .. } = received;
    let (book, table) = match book::whole(book::of_file(&file)) {
        Ok((book, table)) => (book, Ok(table)),
        Err(error) => (book::read(book::of_file(&file))?, Err(error.to_string())),
    };
    let fate = match (book.is_closed, died) {
        (true, _) => Fate::Clean,
        (false, Some(_)) => Fate::Abrupt,
        (false, None) => Fate::Running,
    };
    let until = if book.is_closed { book.changed } else { died.unwrap_or(now) };
    let chips = book.chips.iter().map(|chip| chip_name(chip, pid, devices)).collect();
    let activity = ProcessActivity::of(book::of_file(&file), &book)?;
    Ok(RunProcess { pid, name, fate, until, book, chips, table, activity })
}

/// The device that a chip is, if that can be said; otherwise the best name that there is.
pub fn chip_name(chip: &book::BookChip, pid: u32, devices: &[Device]) -> ChipName {
    let Some(number) = chip.unique_id else { return ChipName::Nth(pid, chip.device_id) };
    chip_with_number(devices, number).map_or(ChipName::Chip(number), ChipName::Device)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use ledger::book::{Chips, Counter, NewBuffer, Writer};
    use model::{Arch, PciAddress};

    pub const SECOND: u64 = 1_000_000_000;

    pub fn p150a(n: u32) -> Device {
        let mut device = Device::new(DeviceId::Local(n));
        device.arch = Some(Arch::Blackhole);
        device.board = Some("p150a".into());
        device.pci_address = Some(PciAddress(format!("0000:0{}:00.0", n + 1).into()));
        device.asic_id = Some(format!("{:016X}", asic(n)).into());
        device
    }

    pub fn asic(n: u32) -> u64 {
        0x1A2B_3C4D_5E6F_7000 + u64::from(n)
    }

    pub fn new(id: u64, chips: Chips, kind: MemoryKind, per_bank: u64, banks: u32, label: &str) -> NewBuffer<'_> {
        let (address, page, layout, owner) = (0x1000 * id, 2048, 0, 7);
        NewBuffer {
            id,
            chips,
            kind,
            logical: per_bank,
            per_bank,
            banks,
            address,
            page,
            layout,
            owner,
            label: label.as_bytes(),
        }
    }

    /// What a process is after it has written its book: begun at second 100, ended at second 112.
    pub fn process_of(pid: u32, fate: Fate, devices: &[Device], write: impl FnOnce(&Writer)) -> RunProcess {
        let writer = Writer::create("ttmon-agent 0.1.0, ttnn 0.81.1").unwrap();
        write(&writer);
        if fate == Fate::Clean {
            writer.close();
        }
        let mut book = book::read(book::of_file(writer.file())).unwrap();
        let mut table = book::table(book::of_file(writer.file()), &book).unwrap();
        (book.created, book.changed) = (100 * SECOND, 112 * SECOND);
        for buffer in &mut table.buffers {
            buffer.time = 100 * SECOND + buffer.id * SECOND / 10;
            buffer.thread = pid + 1;
        }
        for figures in book.chips.iter_mut().flat_map(|chip| &mut chip.banks).flatten() {
            figures.time = 111 * SECOND;
        }
        let chips = book.chips.iter().map(|chip| chip_name(chip, pid, devices)).collect();
        let name = Some("python3".into());
        let activity = ProcessActivity::of(book::of_file(writer.file()), &book).unwrap();
        RunProcess { pid, name, fate, until: 112 * SECOND, book, chips, table: Ok(table), activity }
    }

    #[test]
    fn a_chip_is_named_only_when_it_can_be_no_other() {
        let chip = |unique_id| {
            let writer = Writer::create("test").unwrap();
            writer.chip(3, unique_id);
            book::read(book::of_file(writer.file())).unwrap().chips.remove(0)
        };
        let devices = [p150a(0), p150a(1)];
        assert_eq!(chip_name(&chip(Some(asic(1))), 9, &devices), ChipName::Device(DeviceId::Local(1)));
        assert_eq!(chip_name(&chip(Some(5)), 9, &devices), ChipName::Chip(5));
        assert_eq!(chip_name(&chip(None), 9, &devices), ChipName::Nth(9, 3));
        assert_eq!(chip_name(&chip(Some(asic(1))), 9, &[p150a(1), p150a(1)]), ChipName::Chip(asic(1)), "two claim it");

        let mut n300 = p150a(0);
        (n300.arch, n300.board) = (Some(Arch::Wormhole), Some("n300".into()));
        (n300.serial, n300.asic_id) = (Some("010001451170C0C4".into()), None);
        let remote = Device { id: DeviceId::Remote(0), ..n300.clone() };
        let n300 = [n300, remote];
        assert_eq!(chip_name(&chip(Some(9_956_278_468)), 9, &n300), ChipName::Device(DeviceId::Local(0)));
        assert_eq!(chip_name(&chip(Some(14_251_245_764)), 9, &n300), ChipName::Device(DeviceId::Remote(0)));

        let mut p300 = p150a(0);
        (p300.board, p300.serial) = (Some("p300a".into()), Some("000004513190F004".into()));
        let number = 0x0000_0451_3190_F004 << 5;
        assert_eq!(chip_name(&chip(Some(number)), 9, &[p300]), ChipName::Chip(number), "one of the board");
    }

    #[test]
    fn a_verdict_is_given_only_where_it_is_known() {
        let live = |fate| {
            process_of(1, fate, &[], |writer| {
                let chip = writer.chip(0, None).unwrap();
                writer.allocate(&new(1, Chips::one(chip), MemoryKind::Dram, 32, 1, ""));
            })
        };
        let empty = |fate| process_of(1, fate, &[], |_| {});
        let of = |end, processes, remarks: &[&str]| {
            let remarks = remarks.iter().map(|remark| remark.to_string()).collect();
            let (began, duration, devices) = (Timestamp(0), Duration::ZERO, vec![]);
            let (is_followed, is_simulated, no_device) = (true, false, None);
            let command = vec!["true".into()];
            RunAccount {
                command,
                began,
                duration,
                end,
                is_followed,
                processes,
                devices,
                no_device,
                is_simulated,
                remarks,
            }
            .verdict()
        };
        let ok = End::Code(0);
        assert_eq!(of(ok, vec![empty(Fate::Clean), live(Fate::Clean)], &[]), Verdict::Leaks);
        assert_eq!(of(ok, vec![empty(Fate::Clean), empty(Fate::Abrupt), live(Fate::Running)], &[]), Verdict::Clean);
        assert_eq!(of(ok, vec![empty(Fate::Abrupt)], &[]), Verdict::Clean, "it held nothing");
        let mut closed = live(Fate::Clean);
        closed.book.chips[0].counters[0] = Counter { left: 1, frees: 1, allocations: 1, ..Counter::default() };
        closed.table.as_mut().unwrap().buffers.clear();
        closed.fate = Fate::Abrupt;
        assert_eq!(of(ok, vec![closed], &[]), Verdict::Leaks, "however it ended after that");
        assert_eq!(of(ok, vec![live(Fate::Clean)], &["torn"]), Verdict::Leaks);
        let mut inexact = empty(Fate::Clean);
        inexact.book.is_inexact = true;
        for (end, processes, remarks, why) in [
            (ok, vec![], &[][..], "no process ran with the agent"),
            (ok, vec![empty(Fate::Clean)], &["torn"], "the agent's data could not be read"),
            (ok, vec![inexact], &[], "the agent's data is incomplete"),
            (ok, vec![live(Fate::Running)], &[], "no process has ended yet"),
            (ok, vec![empty(Fate::Replaced)], &[], "no process ended normally"),
            (ok, vec![empty(Fate::Clean), live(Fate::Abrupt)], &[], "a process ended abruptly with buffers allocated"),
            (End::Code(1), vec![live(Fate::Clean)], &[], "the command failed"),
            (End::Signal(15), vec![live(Fate::Clean)], &[], "the command was killed"),
        ] {
            assert_eq!(of(end, processes, remarks), Verdict::None(why));
        }
    }

    #[test]
    fn peaks_add_up_only_where_processes_meet() {
        let of = |from: u64, until: u64, bytes: u64| {
            let mut process = process_of(1, Fate::Clean, &[], |writer| {
                let chip = writer.chip(0, Some(1)).unwrap();
                writer.allocate(&new(1, Chips::one(chip), MemoryKind::Dram, bytes, 1, ""));
            });
            (process.book.created, process.until) = (from, until);
            process
        };
        let peak_of = |processes: &[RunProcess]| {
            peak(&processes.iter().map(|process| (process, 0)).collect::<Vec<_>>(), MemoryKind::Dram)
        };
        assert_eq!(peak_of(&[of(0, 10, 5), of(11, 20, 7)]), Peak::Exact(7), "one after the other");
        assert_eq!(peak_of(&[of(0, 10, 5), of(9, 20, 7)]), Peak::AtMost(12));
        assert_eq!(peak_of(&[of(0, 10, 5), of(9, 20, 7), of(30, 40, 100)]), Peak::Exact(100));
        assert_eq!(peak_of(&[]), Peak::Exact(0));
    }
}
