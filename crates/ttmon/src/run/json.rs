//! The receipt for programs: one object, in base units, which the names carry.

use super::account::{ChipName, End, Fate, RunAccount, RunProcess, Verdict};
use super::energy::Tally;
use ledger::book::{BankReading, BookBuffer, BookChip, MemoryKind};
use model::{Celsius, DeviceId, PciAddress, SCHEMA, Timestamp, Watts, chip_text};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use watch::exit::{Exit, Failure};

#[derive(Serialize)]
struct Receipt<'a> {
    schema: u32,
    command: &'a [String],
    began_at: Timestamp,
    duration_seconds: f64,
    /// That of the command, 128 and more for a signal; not the verdict's.
    exit_code: u8,
    signal: Option<i32>,
    simulated: bool,
    memory_followed: bool,
    leaks: Leaks,
    devices: Vec<ReceiptDevice<'a>>,
    processes: Vec<ProcessJson<'a>>,
    remarks: &'a [String],
}

#[derive(Serialize)]
struct Leaks {
    /// `none`, `found` or `unknown`.
    verdict: &'static str,
    reason: Option<&'static str>,
}

#[derive(Serialize)]
struct ReceiptDevice<'a> {
    #[serde(flatten)]
    id: &'a DeviceId,
    pci_address: Option<&'a PciAddress>,
    board: Option<&'a str>,
    serial: Option<&'a str>,
    asic_id: Option<&'a str>,
    energy_joules: Option<f64>,
    /// The time over which the energy is known.
    energy_seconds: f64,
    peak_power_watts: Option<Watts>,
    peak_asic_temp_celsius: Option<Celsius>,
}

#[derive(Serialize)]
struct ProcessJson<'a> {
    pid: u32,
    name: Option<&'a str>,
    /// `clean`, `abrupt`, `replaced` (by exec) or `running`.
    end: &'static str,
    producer: &'a str,
    remark: Option<&'a str>,
    exact: bool,
    one_moment: bool,
    untabled_buffers: u64,
    unknown_frees: u64,
    chips: Vec<ChipJson<'a>>,
    /// What a process that ended normally had still allocated.
    leaks: Vec<BufferJson<'a>>,
    /// What any other had at last.
    held: Vec<BufferJson<'a>>,
    /// Why neither list is complete.
    list_error: Option<String>,
}

#[derive(Serialize)]
struct ChipJson<'a> {
    /// As `devices` calls it. Absent when it is not known which one it is.
    device: Option<String>,
    unique_id: Option<String>,
    /// As the process counts.
    device_id: u32,
    left_buffers: u64,
    left_bytes: u64,
    kinds: BTreeMap<&'a str, KindJson>,
}

#[derive(Serialize)]
struct KindJson {
    bytes: u64,
    logical_bytes: u64,
    buffers: u64,
    peak_bytes: u64,
    allocations: u64,
    frees: u64,
    banks: Option<ReceiptBanks>,
}

/// Bytes are those of one bank; all are alike.
#[derive(Serialize)]
struct ReceiptBanks {
    banks: u32,
    allocatable_bytes: u64,
    allocated_bytes: u64,
    free_bytes: u64,
    largest_free_bytes: Option<u64>,
    fragmentation: Option<f64>,
    /// Whether the largest free block is known as of the last event.
    current: bool,
}

#[derive(Serialize)]
struct BufferJson<'a> {
    id: u64,
    /// The device, if it is on one only and that is known.
    device: Option<String>,
    /// By their places in `chips`.
    chips: Vec<u8>,
    kind: &'a str,
    /// Reserved, per chip.
    bytes: u64,
    logical_bytes: u64,
    per_bank_bytes: u64,
    banks: u32,
    address: u64,
    page_bytes: u64,
    age_seconds: f64,
    thread: u32,
    label: Option<&'a str>,
}

/// All of it, on several lines.
pub fn text(account: &RunAccount) -> String {
    let (verdict, reason) = match account.verdict() {
        Verdict::Clean => ("none", None),
        Verdict::Leaks => ("found", None),
        Verdict::None(why) => ("unknown", Some(why)),
    };
    let receipt = Receipt {
        schema: SCHEMA,
        command: &account.command,
        began_at: account.began,
        duration_seconds: millis(account.duration.as_secs_f64()),
        exit_code: account.end.code(),
        signal: if let End::Signal(signal) = account.end { Some(signal) } else { None },
        simulated: account.is_simulated,
        memory_followed: account.is_followed,
        leaks: Leaks { verdict, reason },
        devices: account.devices.iter().map(device).collect(),
        processes: account.processes.iter().map(process).collect(),
        remarks: &account.remarks,
    };
    // It holds strings, numbers and lists only, all of which JSON can write.
    serde_json::to_string_pretty(&receipt).expect("a receipt is always JSON") + "\n"
}

fn device(tally: &Tally) -> ReceiptDevice<'_> {
    let device = &tally.device;
    ReceiptDevice {
        id: &device.id,
        pci_address: device.pci_address.as_ref(),
        board: device.board.as_deref(),
        serial: device.serial.as_deref(),
        asic_id: device.asic_id.as_deref(),
        energy_joules: tally.energy.map(|energy| millis(energy.0)),
        energy_seconds: millis(tally.known.as_secs_f64()),
        peak_power_watts: tally.peak_power,
        peak_asic_temp_celsius: tally.peak_temp,
    }
}

fn process(process: &RunProcess) -> ProcessJson<'_> {
    let book = &process.book;
    let buffers: Vec<BufferJson> = process.buffers().iter().map(|one| buffer(process, one)).collect();
    let (leaks, held) = if process.fate == Fate::Clean { (buffers, vec![]) } else { (vec![], buffers) };
    ProcessJson {
        pid: process.pid,
        name: process.name.as_deref(),
        end: process.fate.name(),
        producer: &book.producer,
        remark: book.remark.as_deref(),
        exact: !book.is_inexact,
        one_moment: book.is_of_one_moment && process.table.as_ref().is_ok_and(|table| !table.moved),
        untabled_buffers: book.untabled,
        unknown_frees: book.unknown_frees,
        chips: book.chips.iter().zip(&process.chips).map(|(one, name)| chip(one, name)).collect(),
        leaks,
        held,
        list_error: match &process.table {
            Err(error) => Some(error.clone()),
            Ok(table) if table.unreadable > 0 => Some(format!("{} buffers cannot be read", table.unreadable)),
            Ok(_) => None,
        },
    }
}

fn chip<'a>(chip: &BookChip, name: &ChipName) -> ChipJson<'a> {
    let kind = |kind: MemoryKind| {
        let counter = chip.counters[kind as usize];
        let banks = chip.banks.get(kind as usize).copied().flatten();
        let is_used = counter.allocations > 0 || banks.is_some();
        let figures = KindJson {
            bytes: counter.bytes,
            logical_bytes: counter.logical,
            buffers: counter.buffers,
            peak_bytes: counter.peak,
            allocations: counter.allocations,
            frees: counter.frees,
            banks: banks.map(figures),
        };
        is_used.then_some((kind.name(), figures))
    };
    ChipJson {
        device: device_name(name),
        unique_id: chip.unique_id.map(chip_text),
        device_id: chip.device_id,
        left_buffers: chip.counters.iter().map(|counter| counter.left).sum(),
        left_bytes: chip.left_bytes,
        kinds: MemoryKind::ALL.into_iter().filter_map(kind).collect(),
    }
}

fn figures(bank: BankReading) -> ReceiptBanks {
    ReceiptBanks {
        banks: bank.banks,
        allocatable_bytes: bank.allocatable,
        allocated_bytes: bank.allocated,
        free_bytes: bank.free,
        largest_free_bytes: bank.largest_free,
        fragmentation: bank.fragmentation(),
        current: bank.largest_free.is_some(),
    }
}

fn buffer<'a>(process: &RunProcess, buffer: &'a BookBuffer) -> BufferJson<'a> {
    let chips: Vec<u8> = buffer.chips.iter().collect();
    let device = match chips[..] {
        [one] => process.chips.get(usize::from(one)).and_then(device_name),
        _ => None,
    };
    BufferJson {
        id: buffer.id,
        device,
        chips,
        kind: buffer.kind.name(),
        bytes: buffer.bytes(),
        logical_bytes: buffer.logical,
        per_bank_bytes: buffer.per_bank,
        banks: buffer.banks,
        address: buffer.address,
        page_bytes: buffer.page,
        age_seconds: millis(process.age(buffer).as_secs_f64()),
        thread: buffer.thread,
        label: buffer.label.as_deref(),
    }
}

fn device_name(name: &ChipName) -> Option<String> {
    if let ChipName::Device(id) = name { Some(id.to_string()) } else { None }
}

fn millis(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Where the JSON goes. A file is there, whole, only when all is written.
pub enum Target {
    Stdout,
    /// Something that cannot be replaced, such as a pipe.
    Into(File),
    Replace {
        file: File,
        temporary: Temporary,
        path: PathBuf,
    },
}

/// Removed, unless it became the file that it was for.
pub struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Target {
    /// Opens it, before anything else is done.
    pub fn open(path: &Path) -> anyhow::Result<Target> {
        let open = || -> io::Result<Target> {
            if path.as_os_str() == "-" {
                return Ok(Target::Stdout);
            }
            // The command may change what a link means; a link stays one.
            let path = path.canonicalize().or_else(|_| std::path::absolute(path))?;
            match path.metadata() {
                Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
                Ok(there) if !there.is_file() => return Ok(Target::Into(File::options().write(true).open(&path)?)),
                Ok(_) => drop(File::options().append(true).open(&path)?),
                Err(_) => {}
            }
            let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
            let temporary = path.with_file_name(format!(".{name}.{}", std::process::id()));
            let file = File::options().write(true).create(true).truncate(true).open(&temporary)?;
            Ok(Target::Replace { file, temporary: Temporary(temporary), path })
        };
        open().map_err(|error| {
            Failure::error(Exit::Usage, format!("--json: cannot write to {}: {error}", path.display()))
        })
    }

    /// Writes, and puts the file into its place.
    pub fn write(self, text: &str) -> io::Result<()> {
        match self {
            Target::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(text.as_bytes())?;
                out.flush()
            }
            Target::Into(mut file) => file.write_all(text.as_bytes()),
            Target::Replace { mut file, temporary, path } => {
                file.write_all(text.as_bytes())?;
                std::fs::rename(&temporary.0, path)
            }
        }
    }
}
