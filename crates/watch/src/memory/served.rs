//! Buffers and deaths as the service tells of them: those of all users.

use crate::client::{self, MemoryService};
use ledger::wire::Wanted;
use model::{Fault, Snapshot, Usage};
use show::memory::view::{Buffer, Death};
use show::text;
use std::cmp::Reverse;

/// So many deaths are asked for.
const DEATHS: usize = 50;

/// Buffers, deaths, and how many buffers are not listed.
pub type Told = (Vec<Buffer>, Vec<Death>, u64);

/// The largest buffers on the devices of a snapshot, the latest deaths there, and how many buffers are not listed. `all` if
/// those are all devices that there are. None when the service does not answer.
pub fn ask(service: &mut dyn MemoryService, snapshot: &mut Snapshot, all: bool, most: usize) -> Option<Told> {
    let ids: Vec<String> = snapshot.devices.iter().map(|device| device.id.to_string()).collect();
    let wanted = |device: Option<String>| Wanted { device, limit: Some(most), ..Wanted::default() };
    let pages = if all { vec![wanted(None)] } else { ids.iter().cloned().map(|id| wanted(Some(id))).collect() };
    let (mut rows, mut unlisted) = (Vec::new(), 0);
    for page in pages {
        let told = service.buffers(page)?;
        snapshot.faults.extend(told.faults.into_iter().map(|reason| Fault::new("the buffers of a process", reason)));
        let left_out = told.total.saturating_sub(told.buffers.len() as u64);
        // A page of one device tells of the books of all.
        unlisted = if all { told.unlisted.saturating_add(left_out) } else { 0 };
        rows.extend(told.buffers);
    }
    rows.sort_by_key(|row| (Reverse(row.bytes), row.pid, row.id, row.address));
    rows.dedup_by_key(|row| (row.pid, row.id, row.kind.clone(), row.devices.clone()));
    rows.truncate(most);
    let deaths = service.deaths(DEATHS)?.into_iter().filter_map(|death| obituary(death, &ids)).collect();
    Some((rows.into_iter().map(|row| buffer(row, &ids)).collect(), deaths, unlisted))
}

/// The largest buffers of one process. None when the service does not answer.
pub fn of_process(service: &mut dyn MemoryService, snapshot: &Snapshot, pid: u32, most: usize) -> Option<Vec<Buffer>> {
    let ids: Vec<String> = snapshot.devices.iter().map(|device| device.id.to_string()).collect();
    let told = service.buffers(Wanted { pid: Some(pid), limit: Some(most), ..Wanted::default() })?;
    Some(told.buffers.into_iter().map(|row| buffer(row, &ids)).collect())
}

fn buffer(row: client::Row, ids: &[String]) -> Buffer {
    // A name that is no device's stands for one that could not be told.
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

/// A death that is of interest: of somebody who held memory of these devices.
fn obituary(death: client::Death, ids: &[String]) -> Option<Death> {
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

    fn death(text: &str) -> client::Death {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn only_those_who_held_memory_here_are_mourned() {
        let text = r#"{"pid": 7, "user": "tt", "name": "python3", "command": null, "died_at": "2026-01-02T03:04:05.678Z",
            "exit_code": null, "signal": 9, "devices": [
            {"index": 0, "id": "0", "dram_bytes": 5, "l1_bytes": 1, "l1_small_bytes": 0, "trace_bytes": 0, "cb_bytes": 0, "source": "exact"},
            {"index": 1, "id": "1", "dram_bytes": 7, "l1_bytes": 0, "l1_small_bytes": 0, "trace_bytes": 0, "cb_bytes": 0, "source": "exact"}]}"#;
        let here = |ids: &[&str]| obituary(death(text), &ids.iter().map(|id| id.to_string()).collect::<Vec<_>>());
        let told = here(&["0", "2"]).unwrap();
        assert_eq!((told.devices, told.usage.total().unwrap().0), (vec!["0".to_owned()], 6));
        assert_eq!((told.command.as_deref(), told.how.as_deref()), (Some("python3"), Some("SIGKILL")));
        assert_eq!(here(&["2"]), None);
        let exited = text.replace("\"exit_code\": null, \"signal\": 9", "\"exit_code\": 3, \"signal\": null");
        assert_eq!(obituary(death(&exited), &["0".into()]).unwrap().how.as_deref(), Some("exit 3"));
    }
}
