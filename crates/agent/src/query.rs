//! Answers about this process, another one, and the machine, as JSON. Nothing here runs before it is asked.

use crate::book::ProcessBook;
use crate::switch::is_on;
use ledger::book;
use model::{Device, Fault, Host, OperationList, Process, ProcessMemory, Snapshot, Timestamp};
use serde::Serialize;
use sources::{Options, Root, Sampler};
use std::path::Path;

/// The book of this process.
pub fn memory() -> String {
    reply(own_memory())
}

fn own_memory() -> Result<ProcessMemory, String> {
    if !is_on() {
        return Err("this process keeps no book: TTMON_AGENT switches the agent off".into());
    }
    let Some(own) = ProcessBook::current() else {
        return Err("this process keeps no book: nothing was allocated on a device since the agent was loaded".into());
    };
    // From within: a process need not be allowed to look into /proc/self, and may have closed the file.
    let pages = |offset, into: &mut [u8]| Ok(own.read_at(offset, into));
    let found = book::whole(pages).map(|(book, table)| sources::process_memory(&book, Some(&table)));
    found.map_err(|why| format!("the book of this process cannot be read: {why}"))
}

/// The book of any process.
pub fn process(pid: i32) -> String {
    reply(u32::try_from(pid).map_err(|_| format!("there is no process {pid}")).and_then(|pid| {
        let own = if pid == std::process::id() { own_memory().map(Some) } else { book_of(pid) };
        own?.ok_or_else(|| format!("process {pid} keeps no book"))
    }))
}

fn book_of(pid: u32) -> Result<Option<ProcessMemory>, String> {
    let found = sources::whole_book(pid)?;
    Ok(found.map(|(book, table)| sources::process_memory(&book, Some(&table))))
}

/// What this process, or any other one, has launched, and how long that took on the devices.
pub fn operations(pid: i32) -> String {
    let own = std::process::id();
    let pid = if pid <= 0 { own } else { pid.unsigned_abs() };
    let found = if pid == own { own_operations(pid) } else { sources::operations_in_book(pid) };
    reply(found.and_then(|found| found.ok_or_else(|| format!("no operations of process {pid} are recorded"))))
}

fn own_operations(pid: u32) -> Result<Option<OperationList>, String> {
    let Some(own) = ProcessBook::current() else { return Ok(None) };
    let pages = |offset, into: &mut [u8]| Ok(own.read_at(offset, into));
    sources::operation_list(pid, pages).map_err(|why| format!("the book of this process cannot be read: {why}"))
}

/// A device, or all, and who uses it.
pub fn system(device: i32) -> String {
    reply(snapshot(device))
}

/// A snapshot with the whole book of each process.
pub fn detailed(device: i32) -> String {
    reply(snapshot(device).map(DetailedSnapshot::of))
}

/// What a [`Snapshot`] has, with the book of each process.
#[derive(Serialize)]
struct DetailedSnapshot {
    schema: u32,
    taken_at: Timestamp,
    host: Host,
    devices: Vec<Device>,
    processes: Vec<WithBook>,
    faults: Vec<Fault>,
}

#[derive(Serialize)]
struct WithBook {
    #[serde(flatten)]
    process: Process,
    book: Option<ProcessMemory>,
}

impl DetailedSnapshot {
    fn of(snapshot: Snapshot) -> DetailedSnapshot {
        let Snapshot { schema, taken_at, host, devices, processes, mut faults, .. } = snapshot;
        let with_book = |process: Process| {
            // One that ended meanwhile, or belongs to another user, is shown without.
            let book = process.agent.as_ref().and_then(|_| match book_of(process.pid) {
                Ok(book) => book,
                Err(why) => {
                    faults.push(Fault::new(format!("/proc/{}", process.pid), why));
                    None
                }
            });
            WithBook { process, book }
        };
        let processes = processes.into_iter().map(with_book).collect();
        DetailedSnapshot { schema, taken_at, host, devices, processes, faults }
    }
}

fn snapshot(device: i32) -> Result<Snapshot, String> {
    let root = std::env::var_os("TTMON_ROOT").map_or_else(Root::machine, |root| Root::under(Path::new(&root)));
    let mut sampler = Sampler::new(root, Options::default());
    let mut snapshot = sampler.sample();
    if snapshot.devices.is_empty() && !sampler.driver_is_loaded() {
        return Err("the tenstorrent driver is not loaded".into());
    }
    if device == ALL {
        return Ok(snapshot);
    }
    // As on the command line: the number of a card means all of its chips.
    let wanted = u32::try_from(device).map_err(|_| format!("there is no device {device}"))?;
    snapshot.devices.retain(|device| device.id.gateway() == Some(wanted));
    if snapshot.devices.is_empty() {
        return Err(format!("there is no device {device}"));
    }
    for process in &mut snapshot.processes {
        process.devices.retain(|held| snapshot.devices.iter().any(|device| device.id == held.id));
    }
    snapshot.processes.retain(|process| !process.devices.is_empty());
    Ok(snapshot)
}

/// In place of the index of a device.
const ALL: i32 = -1;

/// An answer, or why there is none.
fn reply(answer: Result<impl Serialize, String>) -> String {
    match answer {
        Ok(answer) => serde_json::to_string(&answer).unwrap_or_else(|why| failed(&why.to_string())),
        Err(why) => failed(&why),
    }
}

/// Why there is no answer.
pub fn failed(why: &str) -> String {
    serde_json::json!({ "error": why }).to_string()
}
