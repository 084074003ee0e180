//! From a snapshot and what the agents of its processes say to what is shown.

use super::view::{Area, Banks, Buffer, Chip, Death, Holder, Kind, Part, SCHEMA, View};
use crate::bar::unverified;
use model::{
    BankFigures, Bytes, ChipMatch, Device, DeviceId, Exact, Held, KindFigures, MemoryKind, Process, ProcessMemory,
    Snapshot, Source, chip_match, chip_of_text,
};
use std::cmp::Reverse;

/// The book of a process, with the pid that the snapshot gives it.
pub struct Kept {
    /// Process id in the snapshot.
    pub pid: u32,
    /// The contents of its book.
    pub memory: ProcessMemory,
}

/// What is known now of the devices that were chosen.
pub fn view(snapshot: &Snapshot, buffers: Vec<Buffer>, deaths: Vec<Death>) -> View {
    let mut processes: Vec<Holder> = snapshot.processes.iter().map(holder).collect();
    processes.sort_by_key(|holder| (Reverse(holder.usage.total()), holder.pid));
    View {
        schema: SCHEMA,
        taken_at: Some(snapshot.taken_at),
        host: snapshot.host.clone(),
        report: None,
        chips: snapshot.devices.iter().map(|device| chip(device, snapshot)).collect(),
        processes,
        buffers,
        unlisted_buffers: 0,
        deaths,
        faults: snapshot.faults.clone(),
        timeline: None,
    }
}

fn holder(process: &Process) -> Holder {
    let name = |source: Option<Source>| source.map(|source| source.name().to_owned());
    let part = |held: &Held| Part { id: held.id.to_string(), usage: held.usage, source: name(held.source) };
    // Of several sources the first; all chips of a process have the same in practice.
    let source = process.devices.iter().find_map(|held| held.source);
    Holder {
        pid: process.pid,
        user: process.user.clone(),
        name: process.name.clone(),
        command: process.command.clone(),
        container: process.container.clone(),
        agent: process.agent.clone(),
        usage: process.usage(),
        source: name(source),
        devices: process.devices.iter().map(part).collect(),
    }
}

fn chip(device: &Device, snapshot: &Snapshot) -> Chip {
    let held: Vec<&Held> = snapshot
        .processes
        .iter()
        .filter_map(|process| process.devices.iter().find(|held| held.id == device.id))
        .collect();
    let memory = &device.memory;
    let kind = |of: MemoryKind| kind(of, memory.usage().part(of), &held, memory.untracked_processes);
    let dram = MemoryKind::DRAM_USED.map(kind).to_vec();
    // In a bar, circular buffers follow the buffers, and the small region comes last.
    let mut l1 = [MemoryKind::L1, MemoryKind::Cb, MemoryKind::L1Small].map(kind).to_vec();
    if memory.kernel.is_some() {
        l1.push(kind(MemoryKind::Kernel));
    }
    let stale_dram = Some(memory.stale_dram()).filter(|bytes| bytes.0 > 0);
    Chip {
        index: device.id.index(),
        id: device.id.to_string(),
        board: device.board.as_deref().or(device.arch.map(|arch| arch.name())).map(str::to_owned),
        state: Some(device.state),
        about: None,
        dram: Area {
            used_bytes: memory.dram_used,
            stale_bytes: stale_dram,
            unverified_bytes: unverified(memory, |all| all.dram_bytes),
            ..Area::summed(memory.dram_total, dram)
        },
        l1: Area {
            used_bytes: memory.l1_used,
            stale_bytes: memory.stale_l1,
            unverified_bytes: unverified(memory, |all| all.l1_bytes),
            ..Area::summed(memory.l1_total, l1)
        },
        stale_bytes: memory.stale,
        processes: Some(held.len() as u32),
        untracked_processes: memory.untracked_processes,
    }
}

fn kind(kind: MemoryKind, used_bytes: Option<Bytes>, held: &[&Held], untracked: u32) -> Kind {
    let books: Vec<KindFigures> = held.iter().filter_map(|held| held.exact.as_deref()?.kind(kind)).collect();
    let without_book = |held: &&&Held| held.exact.is_none() && held.usage.part(kind).is_some_and(|bytes| bytes.0 > 0);
    let others = untracked > 0 || held.iter().any(|held| without_book(&held));
    let sum = |of: fn(&KindFigures) -> u64| {
        (!books.is_empty() && !others).then(|| books.iter().map(of).fold(0, u64::saturating_add))
    };
    let peak = books.iter().map(|figures| figures.peak_bytes).max();
    let asked: Vec<BankFigures> = books.iter().filter_map(|figures| figures.banks).collect();
    let holding = books.iter().filter(|figures| figures.bytes.0 > 0 || figures.banks.is_some()).count();
    let is_at_least = others || books.len() > 1;
    Kind {
        kind: kind.name().into(),
        used_bytes,
        logical_bytes: sum(|figures| figures.logical_bytes.0).map(Bytes),
        peak_bytes: if is_at_least { peak.max(used_bytes.filter(|_| peak.is_some())) } else { peak },
        peak_is_at_least: peak.is_some() && is_at_least,
        buffers: sum(|figures| figures.buffers),
        banks: banks(&asked).map(|banks| Banks { allocated_is_at_least: others || asked.len() < holding, ..banks }),
    }
}

/// One allocator's figures, or several added up. Each of them assumes that it has the chip alone.
fn banks(all: &[BankFigures]) -> Option<Banks> {
    let first = all.first()?;
    let count = first.count;
    let allocatable = all.iter().map(|banks| banks.allocatable_bytes).min()?;
    let allocated: Bytes = all.iter().map(|banks| banks.allocated_bytes).sum();
    let free = if all.len() == 1 { first.free_bytes } else { Bytes(allocatable.0.saturating_sub(allocated.0)) };
    let largest: Option<Vec<Bytes>> = all.iter().map(|banks| banks.largest_free_bytes).collect();
    let largest = largest.and_then(|all| all.into_iter().min());
    let greatest = |values: &mut dyn Iterator<Item = f64>| values.reduce(f64::max);
    Some(Banks {
        count: all.iter().all(|banks| banks.count == count).then_some(count),
        allocatable_bytes: Some(allocatable),
        allocated_bytes: Some(allocated),
        allocated_is_at_least: false,
        free_bytes: Some(free),
        largest_free_bytes: largest.map(|largest| largest.min(free)),
        fragmentation: greatest(&mut all.iter().filter_map(|banks| banks.fragmentation)).filter(|_| largest.is_some()),
        age_seconds: greatest(&mut all.iter().filter_map(|banks| banks.age_seconds)),
        allocators: all.len() as u32,
    })
}

/// Takes the figures of processes from books that were read with their buffers: then totals and buffers are of the same moment. `all`
/// has the other devices, where some were chosen.
pub fn adopt(snapshot: &mut Snapshot, all: Option<&Snapshot>, books: &[Kept]) {
    for kept in books.iter().filter(|kept| kept.memory.exact) {
        let all = all.unwrap_or(snapshot);
        let Some(process) = all.processes.iter().find(|process| process.pid == kept.pid) else { continue };
        let names = device_names(&kept.memory, process, &all.devices);
        for ((_, place), chip) in names.into_iter().zip(&kept.memory.chips) {
            if let ChipPlace::Here(id) = place {
                replace(snapshot, kept.pid, &id, chip.kinds.clone());
            }
        }
    }
}

/// Replaces the exact figures of a process on a device, and what the device has in use with them.
pub fn replace(snapshot: &mut Snapshot, pid: u32, id: &DeviceId, exact: Exact) {
    let process = snapshot.processes.iter_mut().find(|process| process.pid == pid);
    let mut devices = process.into_iter().flat_map(|process| &mut process.devices);
    let Some(held) = devices.find(|held| held.id == *id && held.source == Some(Source::Exact)) else { return };
    let (before, now) = (held.usage, exact.usage());
    (held.usage, held.exact) = (now, Some(Box::new(exact)));
    if let Some(device) = snapshot.devices.iter_mut().find(|device| device.id == *id) {
        let usage = device.memory.usage().minus(before).plus(now);
        device.memory.count(usage);
    }
}

/// The largest buffers of all books that are on a chip which is shown. `all` has the others as well: which chip a book means
/// follows from all devices that its process holds. Books of processes that the snapshot does not have are left out.
pub fn buffers(snapshot: &Snapshot, all: &Snapshot, books: &[Kept], most: usize) -> Vec<Buffer> {
    let is_shown = |id: &DeviceId| snapshot.devices.iter().any(|device| device.id == *id);
    let mut largest: Vec<Buffer> = Vec::new();
    for kept in books {
        let is_its = |process: &&Process| process.pid == kept.pid;
        if !snapshot.processes.iter().any(|process| is_its(&process)) {
            continue;
        }
        let Some(process) = all.processes.iter().find(is_its) else { continue };
        let mut places = device_names(&kept.memory, process, &all.devices);
        places.retain(|(_, place)| match place {
            ChipPlace::Here(id) => is_shown(id),
            ChipPlace::Elsewhere => false,
            ChipPlace::Unknown => true,
        });
        let live = kept.memory.buffers.iter().flatten();
        let on_shown = live.filter_map(|buffer| {
            let mut its = places.iter().filter(|(number, _)| buffer.device_ids.contains(number)).peekable();
            its.peek()?;
            let named = its.filter_map(|(_, place)| match place {
                ChipPlace::Here(id) => Some(id.to_string()),
                ChipPlace::Elsewhere | ChipPlace::Unknown => None,
            });
            Some(Buffer {
                pid: Some(process.pid),
                devices: named.collect(),
                kind: buffer.kind.clone(),
                bytes: Some(buffer.bytes),
                logical_bytes: Some(buffer.logical_bytes),
                bank_bytes: Some(buffer.bank_bytes),
                banks: Some(buffer.banks),
                address: buffer.address,
                address_is_relative: false,
                // Buffers are read a moment after the snapshot was taken.
                age_seconds: Some((snapshot.taken_at.0 - buffer.allocated_at.0).max(0) as f64 / 1000.0),
                label: buffer.label.clone(),
            })
        });
        // They come sorted, so the largest of all are among the first of each.
        largest.extend(on_shown.take(most));
    }
    largest.sort_by_key(|buffer| (Reverse(buffer.bytes), buffer.age_seconds.map(|age| Reverse(age as u64))));
    largest.truncate(most);
    largest
}

/// Where a chip of a book is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ChipPlace {
    Here(DeviceId),
    /// On none of the devices that the process holds.
    Elsewhere,
    /// On one of several that cannot be distinguished.
    Unknown,
}

/// What a process calls its chips, and which devices they are.
fn device_names(memory: &ProcessMemory, process: &Process, devices: &[Device]) -> Vec<(u32, ChipPlace)> {
    let held: Vec<&Device> =
        devices.iter().filter(|device| process.devices.iter().any(|held| held.id == device.id)).collect();
    let place = |chip: &model::ChipMemory| {
        let Some(number) = chip.unique_id.as_deref().and_then(chip_of_text) else {
            return if held.is_empty() { ChipPlace::Elsewhere } else { ChipPlace::Unknown };
        };
        let mut of_board: Vec<&DeviceId> = Vec::new();
        for device in &held {
            // A chip without PCIe has the numbers of its gateway, too.
            let is_remote = matches!(device.id, DeviceId::Remote(_));
            match chip_match(device, number) {
                Some(ChipMatch::Chip) if !is_remote => return ChipPlace::Here(device.id.clone()),
                Some(ChipMatch::Remote) if is_remote => return ChipPlace::Here(device.id.clone()),
                Some(ChipMatch::OneOfBoard) => of_board.push(&device.id),
                _ => {}
            }
        }
        match &of_board[..] {
            [] => ChipPlace::Elsewhere,
            [one] => ChipPlace::Here((*one).clone()),
            _ => same_figures(chip, &of_board, process),
        }
    };
    memory.chips.iter().map(|chip| (chip.device_id, place(chip))).collect()
}

/// The one of several devices of a board on which the process holds just what its book says of the chip.
fn same_figures(chip: &model::ChipMemory, ids: &[&DeviceId], process: &Process) -> ChipPlace {
    let usage = chip.kinds.usage();
    let mut same = process.devices.iter().filter(|held| ids.contains(&&held.id) && held.usage == usage);
    match (same.next(), same.next()) {
        (Some(held), None) => ChipPlace::Here(held.id.clone()),
        _ => ChipPlace::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use model::Usage;

    fn figures(allocated: u64, largest: u64) -> BankFigures {
        BankFigures {
            count: 8,
            allocatable_bytes: Bytes(1000),
            allocated_bytes: Bytes(allocated),
            free_bytes: Bytes(1000 - allocated),
            largest_free_bytes: Some(Bytes(largest)),
            fragmentation: Some(1.0 - largest as f64 / (1000 - allocated) as f64),
            age_seconds: None,
        }
    }

    #[test]
    fn one_allocator_is_taken_as_it_is_and_several_are_added_up() {
        assert_eq!(banks(&[]), None);
        let one = banks(&[figures(200, 600)]).unwrap();
        assert_eq!(
            (one.free_bytes, one.largest_free_bytes, one.fragmentation),
            (Some(Bytes(800)), Some(Bytes(600)), Some(0.25))
        );
        let two = banks(&[figures(200, 600), figures(500, 500)]).unwrap();
        assert_eq!((two.allocated_bytes, two.free_bytes), (Some(Bytes(700)), Some(Bytes(300))));
        assert_eq!(two.largest_free_bytes, Some(Bytes(300)), "not more than is free at all");
        assert_eq!((two.fragmentation, two.allocators), (Some(0.25), 2));
        let other = BankFigures { count: 7, ..figures(0, 1000) };
        assert_eq!(banks(&[figures(0, 1000), other]).unwrap().count, None);
    }

    #[test]
    fn a_peak_is_whole_only_where_one_book_has_all() {
        let mut snapshot = example::machine();
        let peak = |snapshot: &Snapshot| {
            let chip = &view(snapshot, vec![], vec![]).chips[0];
            let kind = chip.dram.buffers().unwrap();
            (kind.peak_bytes.unwrap().0, kind.peak_is_at_least)
        };
        snapshot.devices[0].memory.untracked_processes = 0;
        assert_eq!(peak(&snapshot), (2 * 13_314_398_618, false));
        snapshot.devices[0].memory.untracked_processes = 1;
        assert_eq!(peak(&snapshot), (2 * 13_314_398_618, true));
        snapshot.devices[0].memory.untracked_processes = 0;
        let mut neighbour = snapshot.processes[1].devices[0].clone();
        neighbour.exact = None;
        snapshot.processes[2].devices = vec![neighbour];
        snapshot.devices[0].memory.dram = Some(Bytes(30_000_000_000));
        assert_eq!(peak(&snapshot), (30_000_000_000, true), "at least what is in use now");
    }

    /// A process with a book of chips of these numbers, on the devices of a board.
    fn places(devices: &[Device], numbers: &[u64], usage: &[Usage]) -> Vec<ChipPlace> {
        let mut process = example::machine().processes[1].clone();
        let held = process.devices[0].clone();
        process.devices = devices
            .iter()
            .zip(usage)
            .map(|(device, usage)| Held { id: device.id.clone(), usage: *usage, ..held.clone() })
            .collect();
        let chips = numbers.iter().enumerate().map(|(n, number)| model::ChipMemory {
            device_id: n as u32,
            unique_id: Some(model::chip_text(*number)),
            left_bytes: Bytes(0),
            kinds: Exact {
                dram: Some(KindFigures { bytes: Bytes(n as u64), ..KindFigures::default() }),
                ..Exact::default()
            },
        });
        let memory = ProcessMemory {
            pid: 1,
            agent: String::new(),
            exact: true,
            remark: None,
            closed: false,
            began_at: model::Timestamp(0),
            changed_at: model::Timestamp(0),
            events: 0,
            chips: chips.collect(),
            buffers: None,
            unlisted_buffers: 0,
        };
        device_names(&memory, &process, devices).into_iter().map(|(_, place)| place).collect()
    }

    #[test]
    fn the_chips_of_an_n300_are_distinguished_by_their_numbers() {
        let machine = example::machine();
        let serial = machine.devices[2].serial_number().unwrap();
        let low = ((serial >> 4) & 0xF000_0000) | (serial & 0x0FFF_FFFF);
        let numbers = [2 << 32 | low, 3 << 32 | low, 77];
        let [left, right] = [DeviceId::Local(2), DeviceId::Remote(2)].map(ChipPlace::Here);
        let none = [Usage::default(); 2];
        let all = places(&machine.devices[2..], &numbers, &none);
        assert_eq!(all, [left, right.clone(), ChipPlace::Elsewhere]);
        let remote_only = places(&machine.devices[3..], &numbers, &none);
        assert_eq!(remote_only, [ChipPlace::Elsewhere, right, ChipPlace::Elsewhere], "-d 2R");
    }

    #[test]
    fn the_chips_of_a_p300_are_distinguished_by_what_they_hold_or_not_at_all() {
        let p300 = |n: u32| Device {
            id: DeviceId::Local(n),
            board: Some("p300c".into()),
            asic_id: None,
            ..example::machine().devices[0].clone()
        };
        let devices = [p300(0), p300(1)];
        let number = devices[0].serial_number().unwrap() << 5;
        let bytes = |n| Usage::measured(n, 0, 0, 0, 0);
        let by_usage = places(&devices, &[number, number | 1], &[bytes(1), bytes(0)]);
        assert_eq!(by_usage, [ChipPlace::Here(DeviceId::Local(1)), ChipPlace::Here(DeviceId::Local(0))]);
        let alike = places(&devices, &[number], &[bytes(0), bytes(0)]);
        assert_eq!(alike, [ChipPlace::Unknown]);
        assert_eq!(
            places(&devices[..1], &[number], &[bytes(5)]),
            [ChipPlace::Here(DeviceId::Local(0))],
            "the only one it holds"
        );
    }
}
