//! Where memory went at the moment of a snapshot: from a service, which lists those of all users, or from the books of agents.

use crate::client::{BuffersReply, MemoryService};
use ledger::wire::Wanted;
use model::{Bytes, ExitRecord, Fault, KindFigures, ListedBuffer, MemoryKind, Snapshot, Source, Usage};
use show::memory::gather::{self, Kept};
use show::memory::view::{Buffer, Death, View};
use show::text;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

const EXITS: usize = 50;

/// Buffers, exits, and how many buffers are not listed.
pub type MemoryReply = (Vec<Buffer>, Vec<Death>, u64);

/// Where the memory of another machine went, from its service. `all` if these are all devices that it has.
pub fn served_view(service: &mut dyn MemoryService, snapshot: &mut Snapshot, all: bool, most: usize) -> View {
    let reply = ask(service, snapshot, all, most).unwrap_or_default();
    view(snapshot, reply)
}

/// The memory view of a snapshot and an answer.
pub fn view(snapshot: &Snapshot, (buffers, deaths, unlisted_buffers): MemoryReply) -> View {
    View { unlisted_buffers, ..gather::view(snapshot, buffers, deaths) }
}

/// So many of the largest buffers of one process, from its book.
pub fn buffers_in_book(snapshot: &Snapshot, pid: u32, most: usize) -> Vec<Buffer> {
    let mut its = snapshot.clone();
    its.processes.retain(|process| process.pid == pid);
    let books = books(&mut its);
    gather::buffers(&its, snapshot, &books, most)
}

/// The buffers on the devices of a snapshot, from all books. `all` has the other devices, where some were chosen.
pub fn from_books(snapshot: &mut Snapshot, all: Option<&Snapshot>, most: usize) -> MemoryReply {
    let books = books(snapshot);
    gather::adopt(snapshot, all, &books);
    let buffers = gather::buffers(snapshot, all.unwrap_or(snapshot), &books, most);
    let without_room = books.iter().map(|kept| kept.memory.unlisted_buffers).fold(0, u64::saturating_add);
    let live: usize = books.iter().filter_map(|kept| kept.memory.buffers.as_ref()).map(Vec::len).sum();
    let left_out = if buffers.len() == most { live.saturating_sub(most) } else { 0 };
    (buffers, Vec::new(), without_room.saturating_add(left_out as u64))
}

/// Reads the book of every process that keeps one. What cannot be read becomes a fault.
fn books(snapshot: &mut Snapshot) -> Vec<Kept> {
    let mut kept = Vec::new();
    for process in snapshot.processes.iter().filter(|process| process.agent.is_some()) {
        match sources::whole_book(process.pid) {
            Ok(Some((book, table))) => {
                kept.push(Kept { pid: process.pid, memory: sources::process_memory(&book, Some(&table)) });
            }
            // It has ended since, which is no fault.
            Ok(None) => {}
            Err(reason) if reason.starts_with("there is no process") => {}
            Err(reason) => {
                snapshot.faults.push(Fault::new(format!("the buffers of process {}", process.pid), reason));
            }
        }
    }
    kept
}

/// The largest buffers on the devices of a snapshot, the latest exits there, and how many buffers are not listed. `all` if
/// those are all devices that there are. None when the service does not answer.
pub fn ask(service: &mut dyn MemoryService, snapshot: &mut Snapshot, all: bool, most: usize) -> Option<MemoryReply> {
    let ids: Vec<String> = snapshot.devices.iter().map(|device| device.id.to_string()).collect();
    let wanted = |device: Option<String>| Wanted { device, limit: Some(most), ..Wanted::default() };
    let pages = if all { vec![wanted(None)] } else { ids.iter().cloned().map(|id| wanted(Some(id))).collect() };
    let (mut rows, mut unlisted) = (Vec::new(), 0);
    for page in pages {
        let reply = whole(service, page)?;
        snapshot.faults.extend(reply.faults.into_iter().map(|reason| Fault::new("the buffers of a process", reason)));
        let left_out = reply.total.saturating_sub(reply.buffers.len() as u64);
        // A page of one device counts the buffers of all books.
        unlisted = if all { reply.unlisted.saturating_add(left_out) } else { 0 };
        if all && unlisted == 0 {
            recount(snapshot, &reply.buffers);
        }
        rows.extend(reply.buffers);
    }
    rows.sort_by_key(|row| (Reverse(row.bytes), row.pid, row.id, row.address));
    rows.dedup_by_key(|row| (row.pid, row.id, row.kind.clone(), row.devices.clone()));
    rows.truncate(most);
    let deaths = service.exits(EXITS)?.into_iter().filter_map(|death| exit_record(death, &ids)).collect();
    Some((rows.into_iter().map(|row| buffer(row, &ids)).collect(), deaths, unlisted))
}

/// What is asked for, with as many requests as it takes: a service has a limit of its own for each.
fn whole(service: &mut dyn MemoryService, wanted: Wanted) -> Option<BuffersReply> {
    let limit = wanted.limit.unwrap_or(usize::MAX);
    let mut reply = service.buffers(wanted.clone())?;
    while reply.buffers.len() < limit && (reply.buffers.len() as u64) < reply.total {
        let (offset, limit) = (reply.buffers.len(), limit - reply.buffers.len());
        let more = service.buffers(Wanted { offset, limit: Some(limit), ..wanted.clone() })?;
        if more.buffers.is_empty() {
            break;
        }
        reply.total = more.total;
        reply.buffers.extend(more.buffers);
    }
    Some(reply)
}

/// Takes the figures of processes from their buffers, when these are all that there are: the service read them a moment after it took
/// the snapshot.
fn recount(snapshot: &mut Snapshot, rows: &[ListedBuffer]) {
    let mut sums: HashMap<(u32, &str, &str), (u64, u64, u64)> = HashMap::new();
    for row in rows.iter().filter(|row| row.source == Source::Exact) {
        for device in &row.devices {
            let (bytes, logical, buffers) = sums.entry((row.pid, device, &row.kind)).or_default();
            *bytes = bytes.saturating_add(row.bytes.0);
            *logical = logical.saturating_add(row.logical_bytes.map_or(0, |bytes| bytes.0));
            *buffers += 1;
        }
    }
    // Of a process that is not in the list the snapshot knows more.
    let listed: HashSet<(u32, &str)> =
        rows.iter().flat_map(|row| row.devices.iter().map(|device| (row.pid, device.as_str()))).collect();
    let mut counted = Vec::new();
    for process in &snapshot.processes {
        for held in &process.devices {
            let (Some(exact), id) = (&held.exact, held.id.to_string()) else { continue };
            let mut exact = exact.as_ref().clone();
            let kinds = [
                (MemoryKind::Dram, &mut exact.dram),
                (MemoryKind::L1, &mut exact.l1),
                (MemoryKind::L1Small, &mut exact.l1_small),
                (MemoryKind::Trace, &mut exact.trace),
            ];
            for (kind, figures) in kinds {
                let sum = sums.get(&(process.pid, id.as_str(), kind.name())).copied().unwrap_or_default();
                set(figures, sum);
            }
            if listed.contains(&(process.pid, id.as_str())) {
                counted.push((process.pid, held.id.clone(), exact));
            }
        }
    }
    counted.into_iter().for_each(|(pid, id, exact)| gather::replace(snapshot, pid, &id, exact));
}

/// Sets bytes, requested bytes and number of buffers, and what follows from them.
fn set(figures: &mut Option<KindFigures>, (bytes, logical, buffers): (u64, u64, u64)) {
    let Some(figures) = figures else { return };
    let has_changed = figures.bytes.0 != bytes || figures.buffers != buffers;
    (figures.bytes, figures.logical_bytes, figures.buffers) = (Bytes(bytes), Bytes(logical), buffers);
    figures.peak_bytes = figures.peak_bytes.max(figures.bytes);
    let Some(banks) = figures.banks.as_mut().filter(|_| has_changed) else { return };
    banks.allocated_bytes = Bytes(bytes.checked_div(banks.count.into()).unwrap_or(0));
    banks.free_bytes = Bytes(banks.allocatable_bytes.0.saturating_sub(banks.allocated_bytes.0));
    // How the buffers lie there is not known as of this moment.
    (banks.largest_free_bytes, banks.fragmentation) = (None, None);
}

/// The largest buffers of one process. None when the service does not answer.
pub fn of_process(service: &mut dyn MemoryService, snapshot: &Snapshot, pid: u32, most: usize) -> Option<Vec<Buffer>> {
    let ids: Vec<String> = snapshot.devices.iter().map(|device| device.id.to_string()).collect();
    let reply = service.buffers(Wanted { pid: Some(pid), limit: Some(most), ..Wanted::default() })?;
    Some(reply.buffers.into_iter().map(|row| buffer(row, &ids)).collect())
}

fn buffer(row: ListedBuffer, ids: &[String]) -> Buffer {
    // A name of no device is of one that could not be identified.
    let devices = row.devices.into_iter().filter(|id| ids.contains(id)).collect();
    Buffer {
        pid: Some(row.pid),
        devices,
        kind: row.kind,
        bytes: Some(row.bytes),
        logical_bytes: row.logical_bytes,
        bank_bytes: row.bank_bytes,
        banks: row.banks,
        address: row.address,
        address_is_relative: false,
        age_seconds: row.age_seconds,
        label: row.label,
    }
}

/// An exit as it is shown, where the process held memory of these devices.
fn exit_record(death: ExitRecord, ids: &[String]) -> Option<Death> {
    let held = || death.devices.iter().filter(|held| ids.contains(&held.id.to_string()));
    let usage = held().fold(Usage::default(), |sum, held| sum.plus(held.usage));
    usage.total().filter(|bytes| bytes.0 > 0)?;
    let how = death.signal.map(text::signal).or_else(|| death.exit_code.map(|code| format!("exit {code}")));
    let devices = held().map(|held| held.id.to_string()).collect();
    Some(Death {
        pid: death.pid,
        user: death.user,
        command: death.command.or(death.name),
        died_at: death.died_at,
        how,
        devices,
        usage,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(text: &str) -> ExitRecord {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn only_exits_with_memory_of_these_devices_are_listed() {
        let text = r#"{"pid": 7, "user": "tt", "name": "python3", "command": null, "died_at": "2026-01-02T03:04:05.678Z",
            "exit_code": null, "signal": 9, "devices": [
            {"index": 0, "id": "0", "dram_used_bytes": 5, "l1_used_bytes": 1, "dram_bytes": 5, "l1_bytes": 1, "l1_small_bytes": 0, "trace_bytes": 0, "cb_bytes": 0, "source": "exact"},
            {"index": 1, "id": "1", "dram_used_bytes": 7, "l1_used_bytes": 0, "dram_bytes": 7, "l1_bytes": 0, "l1_small_bytes": 0, "trace_bytes": 0, "cb_bytes": 0, "source": "exact"}]}"#;
        let here = |ids: &[&str]| exit_record(exit(text), &ids.iter().map(|id| id.to_string()).collect::<Vec<_>>());
        let reply = here(&["0", "2"]).unwrap();
        assert_eq!((reply.devices, reply.usage.total().unwrap().0), (vec!["0".to_owned()], 6));
        assert_eq!((reply.command.as_deref(), reply.how.as_deref()), (Some("python3"), Some("SIGKILL")));
        assert_eq!(here(&["2"]), None);
        let exited = text.replace("\"exit_code\": null, \"signal\": 9", "\"exit_code\": 3, \"signal\": null");
        assert_eq!(exit_record(exit(&exited), &["0".into()]).unwrap().how.as_deref(), Some("exit 3"));
    }
}
