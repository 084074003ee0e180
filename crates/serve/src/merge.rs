//! Puts what the service alone knows into a sample: what processes have reported, books that were handed over, and exits.
//! Of two sources for one process on one chip the better counts, never the sum.

use ledger::poc::ClientAccount;
use model::{
    Bytes, Device, DeviceId, Held, Memory, Process, Snapshot, Source, State, Unverified, Usage, UtilizationSource,
};

/// Takes a process that has exited out of a sample, with its bytes.
pub fn remove(snapshot: &mut Snapshot, pid: u32) {
    let Some(at) = snapshot.processes.iter().position(|process| process.pid == pid) else { return };
    for held in snapshot.processes.remove(at).devices {
        if let Some(device) = snapshot.devices.iter_mut().find(|device| device.id == held.id) {
            exchange(&mut device.memory, Some(&held), None);
        }
    }
}

/// Adds what is known of a process, where it is better than what the sample has.
pub fn overlay(snapshot: &mut Snapshot, process: &Process, all: Vec<Held>) {
    let at = match snapshot.processes.binary_search_by_key(&process.pid, |process| process.pid) {
        Ok(at) => at,
        Err(at) => {
            snapshot.processes.insert(at, process.clone());
            at
        }
    };
    let known = &mut snapshot.processes[at];
    known.agent = known.agent.take().or_else(|| process.agent.clone());
    if known.operations.is_empty() {
        known.operations.clone_from(&process.operations);
        known.launches_total = known.launches_total.or(process.launches_total);
        known.idle_seconds = known.idle_seconds.or(process.idle_seconds);
    }
    let devices = &mut known.devices;
    for mut held in all {
        let place = devices.binary_search_by(|known| known.id.cmp(&held.id));
        let before = place.ok().map(|place| devices[place].clone());
        if before.as_ref().is_some_and(|before| rank(before.source) >= rank(held.source)) {
            continue;
        }
        if let Some(device) = snapshot.devices.iter_mut().find(|device| device.id == held.id) {
            exchange(&mut device.memory, before.as_ref(), Some(&held));
        }
        // How busy it is the driver knows best, and who only reports memory does not know.
        let by_driver = |before: &Held| before.activity.utilization_source == Some(UtilizationSource::Driver);
        if let Some(before) = before.filter(|before| by_driver(before) || held.source != Some(Source::Exact)) {
            held.activity = before.activity;
        }
        match place {
            Ok(place) => devices[place] = held,
            Err(place) => devices.insert(place, held),
        }
    }
}

/// Why a process cannot have on a chip what the book says that it has handed over. As the sampler judges of those that it finds.
pub fn impossible(held: &Held, sampled: &[Held], devices: &[Device]) -> Option<String> {
    let gateway = |held: &Held| held.id.gateway();
    let is_held = sampled.iter().any(|other| gateway(other) == gateway(held));
    let id = &held.id;
    if !is_held && held.usage.total().is_some_and(|bytes| bytes.0 > 0) {
        Some(format!("its book has memory of device {id}, which the process does not hold"))
    } else {
        too_much(held, devices).map(|kind| format!("its book has more {kind} than device {id}"))
    }
}

/// The kind of which a chip does not have so much.
pub fn too_much(held: &Held, devices: &[Device]) -> Option<&'static str> {
    let memory = &devices.iter().find(|device| device.id == held.id)?.memory;
    let Usage { dram_used, l1, l1_small, .. } = held.usage;
    let sum = |kinds: &[Option<Bytes>]| kinds.iter().flatten().copied().sum::<Bytes>();
    let exceeds = |bytes: Bytes, total: Option<Bytes>| total.is_some_and(|total| bytes > total);
    if exceeds(sum(&[dram_used]), memory.dram_total) {
        Some("DRAM")
    } else if exceeds(sum(&[l1, l1_small]), memory.l1_total) {
        Some("L1")
    } else {
        None
    }
}

/// Whether a report of the same process on the same chip counts for nothing.
pub fn is_better_than_reported(held: &Held) -> bool {
    rank(held.source) >= rank(Some(Source::Reported))
}

/// Whether one source knows more than the other.
pub fn is_better(held: &Held, other: &Held) -> bool {
    rank(held.source) > rank(other.source)
}

fn rank(source: Option<Source>) -> u8 {
    match source {
        None => 0,
        Some(Source::Shm) => 1,
        Some(Source::Reported | Source::Unverified) => 2,
        // Whatever a process says of itself, the driver knows better; its own book has more.
        Some(Source::Kernel) => 3,
        Some(Source::Exact) => 4,
    }
}

/// Replaces in a device's sums what a process was thought to have by what it has.
fn exchange(memory: &mut Memory, before: Option<&Held>, after: Option<&Held>) {
    if before.is_some_and(|before| before.source.is_none()) {
        memory.untracked_processes = memory.untracked_processes.saturating_sub(1);
    }
    if let Some(more) = after.and_then(|after| after.unverified) {
        let all = memory.unverified.get_or_insert_default();
        (all.dram_bytes, all.l1_bytes) = (all.dram_bytes + more.dram_bytes, all.l1_bytes + more.l1_bytes);
    }
    let usage = |held: Option<&Held>| held.map(|held| held.usage).unwrap_or_default();
    memory.count(memory.usage().minus(usage(before)).plus(usage(after)));
}

pub fn reported(id: DeviceId, kinds: ledger::poc::Kinds) -> Held {
    let [dram, l1, l1_small, trace, cb, kernel] = kinds;
    let usage = Usage { kernel: Some(Bytes(kernel)), ..Usage::measured(dram, l1, l1_small, trace, cb) };
    Held { usage, source: Some(Source::Reported), ..Held::new(id) }
}

/// What a process has reported, by the number of the device, and why the rest of it is not counted.
///
/// `holds` says whether it holds a chip, if that can be known. What it reports of a chip that it does not hold is kept apart.
pub fn accepted(
    account: &ClientAccount,
    devices: &[Device],
    holds: impl Fn(&Device) -> Option<bool>,
) -> (Vec<(i32, Held)>, Vec<String>) {
    let (mut all, mut why, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for (number, kinds) in account.totals() {
        let Some(device) = chip_of_number(devices, number) else {
            unknown.push(number);
            continue;
        };
        let held = reported(device.id.clone(), kinds);
        match too_much(&held, devices) {
            None => all.push((number, verified(held, holds(device)))),
            Some(kind) => why.push(format!("reports more {kind} than device {} has", held.id)),
        }
    }
    // One line, however many devices a process reports.
    if let [number, others @ ..] = &unknown[..] {
        let others = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
        why.push(format!("reports memory of unknown device {number}{others}"));
    }
    if account.refused > 0 {
        why.push(format!("reported {} buffers too many: they are not counted", account.refused));
    }
    (all, why)
}

/// Marks what a process reported of a chip that it is not known to hold, and takes it out of the figures if it does not.
pub fn verified(held: Held, holds: Option<bool>) -> Held {
    let bytes = |bytes: Option<Bytes>| bytes.unwrap_or(Bytes(0));
    let Held { id, usage, .. } = held;
    let unverified = Unverified { dram_bytes: bytes(usage.dram_used), l1_bytes: bytes(usage.l1_used) };
    match holds {
        Some(true) => Held { usage, source: Some(Source::Reported), ..Held::new(id) },
        None => Held { usage, source: Some(Source::Unverified), ..Held::new(id) },
        Some(false) => Held { unverified: Some(unverified), source: Some(Source::Unverified), ..Held::new(id) },
    }
}

/// Why a report cannot be added to what a chip has in use already, in all.
pub fn exceeds(held: &Held, before: Option<&Held>, devices: &[Device]) -> Option<String> {
    let memory = &devices.iter().find(|device| device.id == held.id)?.memory;
    let usage = memory.usage().minus(before.map(|held| held.usage).unwrap_or_default()).plus(held.usage);
    let sum = |of: fn(Unverified) -> Bytes| {
        [memory.unverified, held.unverified].into_iter().flatten().fold(0u64, |sum, all| of(all).0.saturating_add(sum))
    };
    let is_more =
        |bytes: Option<Bytes>, total: Option<Bytes>| bytes.zip(total).is_some_and(|(bytes, total)| bytes > total);
    let (dram, l1) = match held.unverified {
        None => (usage.dram_used, usage.l1_used),
        Some(_) => (Some(Bytes(sum(|all| all.dram_bytes))), Some(Bytes(sum(|all| all.l1_bytes)))),
    };
    let kind = if is_more(dram, memory.dram_total) {
        "DRAM"
    } else if is_more(l1, memory.l1_total) {
        "L1"
    } else {
        return None;
    };
    Some(format!("reports {kind} of device {} that others report as well: it has less in all", held.id))
}

/// The chip that clients of the proof of concept call by a number: tt-metal counts in the order of PCI addresses, and remote
/// chips behind all others. Which of several remote ones is meant is not known.
pub fn chip_of_number(devices: &[Device], number: i32) -> Option<&Device> {
    let number = usize::try_from(number).ok()?;
    let mut local: Vec<&Device> = devices.iter().filter(|device| is_local(device)).collect();
    local.sort_by_key(|device| (&device.pci_address, device.id.index()));
    let mut remote = devices.iter().filter(|device| matches!(device.id, DeviceId::Remote(_)));
    match local.get(number) {
        Some(device) => Some(device),
        None if number == local.len() => remote.next().filter(|_| remote.next().is_none()),
        None => None,
    }
}

/// How many chips there are for those clients.
pub fn number_of_chips(devices: &[Device]) -> u32 {
    devices.iter().filter(|device| is_local(device) || matches!(device.id, DeviceId::Remote(_))).count() as u32
}

fn is_local(device: &Device) -> bool {
    matches!(device.id, DeviceId::Local(_)) && !matches!(device.state, State::Lost | State::NoDriver)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Activity, Host, PciAddress, SCHEMA, Timestamp};

    fn process(pid: u32, devices: Vec<Held>) -> Process {
        Process { devices, ..Process::new(pid) }
    }

    fn held(dram: u64, source: Option<Source>) -> Held {
        let usage = source.map(|_| Usage::measured(dram, 0, 0, 0, 0)).unwrap_or_default();
        Held { usage, source, ..Held::new(DeviceId::Local(0)) }
    }

    fn snapshot(processes: Vec<Process>, used: Option<u64>, untracked: u32) -> Snapshot {
        let mut device = Device::new(DeviceId::Local(0));
        device.memory.dram_used = used.map(Bytes);
        device.memory.untracked_processes = untracked;
        let (host, taken_at) = (Host::default(), Timestamp(0));
        Snapshot {
            schema: SCHEMA,
            taken_at,
            host,
            devices: vec![device],
            processes,
            faults: Vec::new(),
            alerts: Vec::new(),
            kernel_log: None,
        }
    }

    fn used(snapshot: &Snapshot) -> (Option<u64>, u32) {
        let memory = &snapshot.devices[0].memory;
        (memory.dram_used.map(|bytes| bytes.0), memory.untracked_processes)
    }

    #[test]
    fn a_report_takes_the_place_of_shared_memory_and_not_of_a_book() {
        for (source, expected) in
            [(Some(Source::Shm), 75), (Some(Source::Kernel), 110), (Some(Source::Exact), 110), (None, 85)]
        {
            let before = if source.is_some() { 110 } else { 10 };
            let untracked = u32::from(source.is_none());
            let mut snapshot = snapshot(vec![process(7, vec![held(100, source)])], Some(before), untracked);
            overlay(&mut snapshot, &process(7, vec![]), vec![held(65, Some(Source::Reported))]);
            let expected = if source.is_none() { 75 } else { expected };
            assert_eq!(used(&snapshot), (Some(expected), 0), "{source:?}");
        }
    }

    #[test]
    fn a_book_takes_the_place_of_what_the_driver_counts_but_for_how_busy_it_is() {
        let counted =
            Held { activity: Activity::measured(62.5, UtilizationSource::Driver), ..held(100, Some(Source::Kernel)) };
        let mut snapshot = snapshot(vec![process(7, vec![counted])], Some(100), 0);
        overlay(&mut snapshot, &process(7, vec![]), vec![held(65, Some(Source::Exact))]);
        assert_eq!(used(&snapshot), (Some(65), 0));
        let held = &snapshot.processes[0].devices[0];
        assert_eq!((held.source, held.activity.utilization_percent), (Some(Source::Exact), Some(62.5)));
    }

    #[test]
    fn a_process_that_the_sample_lacks_is_put_where_it_belongs() {
        let mut snapshot = snapshot(vec![process(3, vec![]), process(9, vec![])], None, 0);
        overlay(&mut snapshot, &process(7, vec![]), vec![held(65, Some(Source::Reported))]);
        assert_eq!(snapshot.processes.iter().map(|process| process.pid).collect::<Vec<_>>(), [3, 7, 9]);
        assert_eq!(used(&snapshot), (Some(65), 0));
        remove(&mut snapshot, 7);
        assert_eq!(used(&snapshot), (Some(0), 0));
        remove(&mut snapshot, 7);
        assert_eq!(snapshot.processes.len(), 2);
    }

    #[test]
    fn a_book_is_not_believed_beyond_what_its_process_holds_and_the_device_has() {
        let mut devices = snapshot(vec![], None, 0).devices;
        devices[0].memory.dram_total = Some(Bytes(100));
        let exact = |dram| held(dram, Some(Source::Exact));
        let why = |dram, sampled: &[Held]| impossible(&exact(dram), sampled, &devices).unwrap_or_default();
        assert_eq!(why(100, &[held(0, None)]), "");
        assert_eq!(why(101, &[held(0, None)]), "its book has more DRAM than device 0");
        assert_eq!(why(1, &[]), "its book has memory of device 0, which the process does not hold");
        assert_eq!(why(0, &[]), "");
    }

    #[test]
    fn numbers_count_in_the_order_of_pci_addresses() {
        let device = |id: DeviceId, address: &str| {
            let mut device = Device::new(id);
            device.pci_address = Some(PciAddress(address.into()));
            device
        };
        let mut devices = vec![device(DeviceId::Local(0), "0000:02:00.0"), device(DeviceId::Local(1), "0000:01:00.0")];
        let name = |devices: &[Device], n| chip_of_number(devices, n).map(|device| device.id.to_string());
        assert_eq!([0, 1, 2, -1].map(|n| name(&devices, n)), [Some("1".into()), Some("0".into()), None, None]);
        devices.push(device(DeviceId::Remote(1), "0000:01:00.0"));
        assert_eq!((name(&devices, 2), number_of_chips(&devices)), (Some("1R".into()), 3));
        devices.push(device(DeviceId::Remote(0), "0000:02:00.0"));
        assert_eq!(name(&devices, 2), None, "one of two, and it is not known which");
    }
}
