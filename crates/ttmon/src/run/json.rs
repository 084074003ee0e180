//! The receipt for programs: one object, in base units, which the names carry.

use super::account::{ChipName, End, Fate, RunAccount, RunProcess, Verdict};
use super::energy::Tally;
use super::time_spent;
use crate::json::{JsonNode, Object, json};
use ledger::book::{BankReading, BookBuffer, BookChip, MemoryKind};
use model::figure::device::{ASIC_ID, PCI_ADDRESS};
use model::figure::process::{
    HELD_BUSY_TOTAL, HELD_PROGRAMS_TOTAL, HELD_UTILIZATION, HELD_UTILIZATION_SOURCE, HELD_UTILIZATION_UNKNOWN,
    PEAK_BYTES,
};
use model::{Activity, Operation, SCHEMA, Timestamp, chip_text};
use serde::Serialize;
use serde_json::Value;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
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
    leaks: Object,
    /// Programs launched; absent where no agent records them.
    programs: Option<u64>,
    waited_seconds: Option<f64>,
    back_pressure_seconds: Option<f64>,
    /// Of all processes together, the one with the most device time first.
    operations: Vec<Operation>,
    devices: Vec<Object>,
    processes: Vec<ProcessJson<'a>>,
    remarks: &'a [String],
}

#[derive(Serialize)]
struct ProcessJson<'a> {
    pid: u32,
    name: Option<&'a str>,
    end: Fate,
    producer: &'a str,
    remark: Option<&'a str>,
    exact: bool,
    one_moment: bool,
    untabled_buffers: u64,
    unknown_frees: u64,
    chips: Vec<Object>,
    /// What a process that ended normally had still allocated.
    leaks: Vec<BufferJson<'a>>,
    /// What any other had at last.
    held: Vec<BufferJson<'a>>,
    /// Why neither list is complete.
    list_error: Option<String>,
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

pub fn text(account: &RunAccount) -> String {
    let (verdict, reason) = match account.verdict() {
        Verdict::Clean => ("none", None),
        Verdict::Leaks => ("found", None),
        Verdict::None(why) => ("unknown", Some(why)),
    };
    let activities = || account.processes.iter().filter_map(|process| process.activity.as_ref());
    let is_recorded = activities().next().is_some();
    let seconds = |ns: u64| is_recorded.then_some(millis(ns as f64 / 1e9));
    let receipt = Receipt {
        schema: SCHEMA,
        command: &account.command,
        began_at: account.began,
        duration_seconds: millis(account.duration.as_secs_f64()),
        exit_code: account.end.code(),
        signal: if let End::Signal(signal) = account.end { Some(signal) } else { None },
        simulated: account.is_simulated,
        memory_followed: account.is_followed,
        leaks: Object(vec![("verdict", verdict.into()), ("reason", reason.into())]),
        programs: is_recorded.then(|| activities().map(|activity| activity.programs).sum()),
        waited_seconds: seconds(activities().map(|activity| activity.waited).sum()),
        back_pressure_seconds: seconds(activities().map(|activity| activity.back_pressure).sum()),
        operations: time_spent::operations(account),
        devices: account.devices.iter().map(device).collect(),
        processes: account.processes.iter().map(process).collect(),
        remarks: &account.remarks,
    };
    json(&receipt, false)
}

fn device(tally: &Tally) -> Object {
    let device = &tally.device;
    Object(vec![
        ("index", device.id.index().into()),
        ("id", device.id.to_string().into()),
        (PCI_ADDRESS.name, device.pci_address.as_ref().map(|address| &*address.0).into()),
        ("board", device.board.as_deref().into()),
        ("serial", device.serial.as_deref().into()),
        (ASIC_ID.name, device.asic_id.as_deref().into()),
        ("energy_joules", tally.energy.map(|energy| millis(energy.0)).into()),
        // The time over which the energy is known.
        ("energy_seconds", millis(tally.known.as_secs_f64()).into()),
        ("peak_power_watts", tally.peak_power.map(|power| power.0).into()),
        ("peak_asic_temp_celsius", tally.peak_temp.map(|temp| temp.0).into()),
    ])
}

fn process(process: &RunProcess) -> ProcessJson<'_> {
    let book = &process.book;
    let buffers: Vec<BufferJson> = process.buffers().iter().map(|one| buffer(process, one)).collect();
    let (leaks, held) = if process.fate == Fate::Clean { (buffers, vec![]) } else { (vec![], buffers) };
    ProcessJson {
        pid: process.pid,
        name: process.name.as_deref(),
        end: process.fate,
        producer: &book.producer,
        remark: book.remark.as_deref(),
        exact: !book.is_inexact,
        one_moment: book.is_of_one_moment && process.table.as_ref().is_ok_and(|table| !table.moved),
        untabled_buffers: book.untabled,
        unknown_frees: book.unknown_frees,
        chips: (0..)
            .zip(book.chips.iter().zip(&process.chips))
            .map(|(at, (one, name))| chip(process, at, one, name))
            .collect(),
        leaks,
        held,
        list_error: match &process.table {
            Err(error) => Some(error.clone()),
            Ok(table) if table.unreadable > 0 => Some(format!("{} buffers cannot be read", table.unreadable)),
            Ok(_) => None,
        },
    }
}

fn chip(process: &RunProcess, at: usize, chip: &BookChip, name: &ChipName) -> Object {
    let kind = |kind: MemoryKind| {
        let counter = chip.counters[kind as usize];
        let banks = chip.banks.get(kind as usize).copied().flatten();
        let is_used = counter.allocations > 0 || banks.is_some();
        let figures = Object(vec![
            ("bytes", counter.bytes.into()),
            ("logical_bytes", counter.logical.into()),
            ("buffers", counter.buffers.into()),
            (PEAK_BYTES.name, counter.peak.into()),
            ("allocations", counter.allocations.into()),
            ("frees", counter.frees.into()),
            ("banks", banks.map_or(Value::Null.into(), |banks| JsonNode::Object(figures(banks)))),
        ]);
        is_used.then_some((kind.name(), JsonNode::Object(figures)))
    };
    let mut kinds: Vec<_> = MemoryKind::ALL.into_iter().filter_map(kind).collect();
    kinds.sort_by_key(|(name, _)| *name);
    let did = process.activity.as_ref().and_then(|activity| activity.chips.get(at).cloned());
    let Activity { busy_seconds_total, programs_total, utilization_source, utilization_unknown, .. } =
        did.unwrap_or_default();
    let time = time_spent::of_chip(&[(process, at)]).and_then(Result::ok);
    // A closed chip is no reason once the run has ended.
    let unknown = utilization_unknown.filter(|_| time.is_none());
    Object(vec![
        (HELD_UTILIZATION.name, time.as_ref().map(|time| (time.percent() * 10.0).round() / 10.0).into()),
        ("utilization_seconds", time.as_ref().map(|time| millis(time.open)).into()),
        (HELD_UTILIZATION_SOURCE.name, utilization_source.map(|source| source.name()).into()),
        (HELD_UTILIZATION_UNKNOWN.name, unknown.map(|why| why.name()).into()),
        (HELD_BUSY_TOTAL.name, busy_seconds_total.into()),
        (HELD_PROGRAMS_TOTAL.name, programs_total.into()),
        // As `devices` calls it. Absent when it is not known which one it is.
        ("device", device_name(name).into()),
        ("unique_id", chip.unique_id.map(chip_text).into()),
        // As the process counts.
        ("device_id", chip.device_id.into()),
        ("left_buffers", chip.counters.iter().map(|counter| counter.left).sum::<u64>().into()),
        ("left_bytes", chip.left_bytes.into()),
        ("kinds", JsonNode::Object(Object(kinds))),
    ])
}

/// Bytes are those of one bank; all are alike.
fn figures(banks: BankReading) -> Object {
    Object(vec![
        ("banks", banks.banks.into()),
        ("allocatable_bytes", banks.allocatable.into()),
        ("allocated_bytes", banks.allocated.into()),
        ("free_bytes", banks.free.into()),
        ("largest_free_bytes", banks.largest_free.into()),
        ("fragmentation", banks.fragmentation().into()),
        ("current", banks.largest_free.is_some().into()),
    ])
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

/// Where the JSON goes: standard output, something that cannot be replaced, such as a pipe, or a file, which is there, whole, only when
/// all is written.
pub struct Target {
    file: File,
    replaces: Option<(Temporary, PathBuf)>,
}

/// Removed, unless it became the file that it was for.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Target {
    /// Opens it, before anything else is done.
    pub fn open(path: &Path) -> anyhow::Result<Target> {
        let opened = if path.as_os_str() == "-" {
            io::stdout().as_fd().try_clone_to_owned().map(|out| Target { file: out.into(), replaces: None })
        } else {
            Target::at(path)
        };
        opened.map_err(|error| {
            Failure::error(Exit::Usage, format!("--json: cannot write to {}: {error}", path.display()))
        })
    }

    fn at(path: &Path) -> io::Result<Target> {
        // The command may change what a link means; a link stays one.
        let path = path.canonicalize().or_else(|_| std::path::absolute(path))?;
        match path.metadata() {
            Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(there) if !there.is_file() => {
                return Ok(Target { file: File::options().write(true).open(&path)?, replaces: None });
            }
            Ok(_) => drop(File::options().append(true).open(&path)?),
            Err(_) => {}
        }
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
        let temporary = path.with_file_name(format!(".{name}.{}", std::process::id()));
        let file = File::options().write(true).create(true).truncate(true).open(&temporary)?;
        Ok(Target { file, replaces: Some((Temporary(temporary), path)) })
    }

    /// Writes, and puts the file into its place.
    pub fn write(mut self, text: &str) -> io::Result<()> {
        self.file.write_all(text.as_bytes())?;
        self.replaces.map_or(Ok(()), |(temporary, path)| std::fs::rename(&temporary.0, path))
    }
}
