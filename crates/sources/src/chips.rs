//! Which chip a region or a page of a book belongs to.
//!
//! Its number alone is enough for most boards. Where several chips share the possible numbers (p300, Wormhole Galaxy), the
//! devices that its processes hold are compared, then the logical device number that the last of them wrote into it, which
//! counts the chips of one architecture in the order of their PCI addresses.

use crate::maps::Inode;
use crate::procs::ProcessFacts;
use crate::shm::FoundRegion;
use model::{Board, ChipMatch, ChipNumbers, Device, DeviceId, chip_match, chip_of_numbers};
use std::collections::{BTreeMap, BTreeSet};

/// The chip that each region is about, where that can be said. `numbers` are those of the devices.
pub(crate) fn chips_of(
    regions: &BTreeMap<Inode, FoundRegion>,
    devices: &[Device],
    numbers: &[ChipNumbers],
    holders: &BTreeMap<u32, BTreeSet<u32>>,
    processes: &BTreeMap<u32, ProcessFacts>,
) -> BTreeMap<Inode, DeviceId> {
    let chip = |(inode, found): (&Inode, &FoundRegion)| {
        if let Some(id) = chip_of_numbers(numbers, found.number) {
            return Some((*inode, id));
        }
        let attached: Vec<&ProcessFacts> = processes.values().filter(|process| process.has_mapped(*inode)).collect();
        let logical = found.region.as_ref().map(|region| region.device_id);
        Some((*inode, one_of_board(found.number, logical, devices, holders, &attached)?))
    };
    let mut chips: BTreeMap<Inode, DeviceId> = regions.iter().filter_map(chip).collect();
    // A chip has one number: where two claim it, neither can be trusted.
    let claims: Vec<(DeviceId, u64)> = chips.iter().map(|(inode, id)| (id.clone(), regions[inode].number)).collect();
    let alone = |id: &DeviceId, number| claims.iter().all(|(other, n)| other != id || *n == number);
    let sure = |id: &DeviceId, number| {
        devices
            .iter()
            .any(|d| id.gateway() == d.id.index() && chip_match(d, number).is_some_and(|m| m != ChipMatch::OneOfBoard))
    };
    chips.retain(|inode, id| alone(id, regions[inode].number) || sure(id, regions[inode].number));
    chips
}

/// The chip that a page of a process's book is about, if that can be said. `numbers` are those of the devices.
pub(crate) fn chip_of_book(
    chip: &ledger::book::BookChip,
    process: &ProcessFacts,
    devices: &[Device],
    numbers: &[ChipNumbers],
    holders: &BTreeMap<u32, BTreeSet<u32>>,
) -> Option<DeviceId> {
    if let Some(number) = chip.unique_id {
        let sure = chip_of_numbers(numbers, number);
        return sure.or_else(|| one_of_board(number, Some(chip.device_id), devices, holders, &[process]));
    }
    // Without a number only its place identifies it, and only where every chip has a place of its own.
    let has_remote =
        |device: &Device| device.board.as_deref().and_then(Board::named).is_none_or(Board::has_remote_chip);
    if devices.iter().any(has_remote) {
        return None;
    }
    let id = by_logical_number(chip.device_id, devices, &[process])?;
    id.index().and_then(|n| holders.get(&n)).is_some_and(|holders| holders.contains(&process.pid)).then_some(id)
}

/// The chip with a number that several may have, as these processes use it; they call it by the logical one.
fn one_of_board(
    number: u64,
    logical: Option<u32>,
    devices: &[Device],
    holders: &BTreeMap<u32, BTreeSet<u32>>,
    attached: &[&ProcessFacts],
) -> Option<DeviceId> {
    let held_by_all = |device: &Device| {
        let holders = device.id.index().and_then(|n| holders.get(&n));
        !attached.is_empty() && holders.is_some_and(|holders| attached.iter().all(|p| holders.contains(&p.pid)))
    };
    let is_possible = |device: &&Device| chip_match(device, number).is_some() && held_by_all(device);
    let mut possible: Vec<&Device> = devices.iter().filter(is_possible).collect();
    if possible.len() > 1 {
        if let Some(chosen) = by_logical_number(logical?, devices, attached) {
            possible.retain(|device| device.id == chosen);
        }
    }
    match possible[..] {
        [one] => Some(one.id.clone()),
        _ => None,
    }
}

/// The device whose place in PCI order is the logical number, as the attached processes count.
fn by_logical_number(logical: u32, devices: &[Device], attached: &[&ProcessFacts]) -> Option<DeviceId> {
    let mut answers = attached.iter().map(|process| {
        // A container may have been given some of the devices only, and counts those.
        if process.container.is_some() {
            return None;
        }
        let visible = process.visible_devices.as_ref().ok()?;
        visible_devices(devices, visible.as_deref())?.get(logical as usize).map(|device| device.id.clone())
    });
    let first = answers.next()??;
    answers.all(|answer| answer.as_ref() == Some(&first)).then_some(first)
}

/// The devices in the order in which tt-umd numbers them for a process that set `TT_VISIBLE_DEVICES` so.
fn visible_devices<'a>(devices: &'a [Device], setting: Option<&str>) -> Option<Vec<&'a Device>> {
    let mut ordered: Vec<&Device> = devices.iter().filter(|device| device.id.index().is_some()).collect();
    ordered.sort_by_key(|device| device.pci_address.clone());
    // One architecture per process: that of the first device.
    let Some(setting) = setting.map(str::trim).filter(|setting| !setting.is_empty()) else {
        let arch = ordered.first()?.arch;
        ordered.retain(|device| device.arch == arch);
        return Some(ordered);
    };
    let mut chosen = Vec::new();
    for word in setting.split(',').map(str::trim) {
        match word.parse::<usize>() {
            Ok(position) => chosen.push(*ordered.get(position)?),
            Err(_) => {
                chosen.extend(ordered.iter().filter(|d| d.pci_address.as_ref().is_some_and(|a| a.0.contains(word))))
            }
        }
    }
    chosen.sort_by_key(|device| device.pci_address.clone());
    chosen.dedup_by_key(|device| device.id.clone());
    Some(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::Region;
    use model::{Arch, PciAddress};
    use std::path::PathBuf;

    const HERE: Inode = Inode { device: (0, 25), inode: 7 };

    fn p300(n: u32, address: &str) -> Device {
        let mut device = Device::new(DeviceId::Local(n));
        device.pci_address = Some(PciAddress(address.into()));
        device.arch = Some(Arch::Blackhole);
        device.board = Some("p300a".into());
        device.serial = Some("000004513190F004".into());
        device
    }

    const NUMBER: u64 = 0x0000_0451_3190_F004 << 5;

    /// The chips of the regions.
    fn found(
        regions: &BTreeMap<Inode, FoundRegion>,
        devices: &[Device],
        holders: &BTreeMap<u32, BTreeSet<u32>>,
        processes: &BTreeMap<u32, ProcessFacts>,
    ) -> BTreeMap<Inode, DeviceId> {
        let numbers: Vec<ChipNumbers> = devices.iter().map(ChipNumbers::of).collect();
        chips_of(regions, devices, &numbers, holders, processes)
    }

    /// The device that a region of the board belongs to, when a process holds `held` and wrote `device_id` into it.
    fn chip(held: &[u32], device_id: u32, visible: Result<Option<&str>, rustix::io::Errno>) -> Option<String> {
        // The numbers run against the order of the PCI addresses, as they may.
        let devices = [p300(0, "0000:42:00.0"), p300(1, "0000:41:00.0")];
        let region = Region { asic_id: NUMBER, device_id, totals: [0; 5], slots: vec![] };
        let region = FoundRegion { path: PathBuf::new(), number: NUMBER, region: Some(region) };
        let mut process = ProcessFacts::made_up(9, 9, 1, &[(HERE, NUMBER)]);
        process.visible_devices = visible.map(|text| text.map(str::to_owned));
        let pids = BTreeSet::from([9]);
        let holders = held.iter().map(|n| (*n, pids.clone())).collect();
        let (regions, processes) = (BTreeMap::from([(HERE, region)]), BTreeMap::from([(9, process)]));
        found(&regions, &devices, &holders, &processes).get(&HERE).map(|id| id.to_string())
    }

    #[test]
    fn the_only_chip_that_its_process_holds_is_the_one() {
        assert_eq!(chip(&[0], 0, Ok(None)).as_deref(), Some("0"));
        assert_eq!(chip(&[1], 0, Ok(None)).as_deref(), Some("1"));
    }

    #[test]
    fn of_two_chips_the_logical_number_counts_in_the_order_of_pci_addresses() {
        assert_eq!(chip(&[0, 1], 0, Ok(None)).as_deref(), Some("1"));
        assert_eq!(chip(&[0, 1], 1, Ok(None)).as_deref(), Some("0"));
    }

    #[test]
    fn a_process_that_sees_some_devices_only_counts_those() {
        assert_eq!(chip(&[0, 1], 0, Ok(Some("1"))).as_deref(), Some("0"));
        assert_eq!(chip(&[0, 1], 0, Ok(Some("0000:42:00.0"))).as_deref(), Some("0"));
        assert_eq!(chip(&[0, 1], 0, Ok(Some("7"))), None, "there is no such device");
    }

    #[test]
    fn two_regions_that_claim_one_chip_are_both_put_aside() {
        let devices = [p300(0, "0000:41:00.0"), p300(1, "0000:42:00.0")];
        let region = |device_id| Region { asic_id: 0, device_id, totals: [0; 5], slots: vec![] };
        let with = |number, device_id| FoundRegion { path: PathBuf::new(), number, region: Some(region(device_id)) };
        let there = Inode { inode: 8, ..HERE };
        let process = ProcessFacts::made_up(9, 9, 1, &[(HERE, NUMBER), (there, NUMBER + 1)]);
        let (pids, processes) = (BTreeSet::from([9]), BTreeMap::from([(9, process)]));
        let holders = BTreeMap::from([(0, pids.clone()), (1, pids)]);
        let chips = |second| {
            let regions = BTreeMap::from([(HERE, with(NUMBER, 0)), (there, with(NUMBER + 1, second))]);
            found(&regions, &devices, &holders, &processes).len()
        };
        assert_eq!((chips(1), chips(0)), (2, 0));
    }

    #[test]
    fn a_container_that_sees_some_devices_only_is_not_guessed_at() {
        let devices = [p300(0, "0000:41:00.0"), p300(1, "0000:42:00.0")];
        let region = Region { asic_id: NUMBER, device_id: 0, totals: [0; 5], slots: vec![] };
        let regions =
            BTreeMap::from([(HERE, FoundRegion { path: PathBuf::new(), number: NUMBER, region: Some(region) })]);
        let mut process = ProcessFacts::made_up(9, 9, 1, &[(HERE, NUMBER)]);
        process.container = Some("docker:3f2a9c1b7d4e".into());
        let pids = BTreeSet::from([9]);
        let holders = BTreeMap::from([(0, pids.clone()), (1, pids)]);
        assert_eq!(found(&regions, &devices, &holders, &BTreeMap::from([(9, process)])), BTreeMap::new());
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        assert_eq!(chip(&[0, 1], 0, Err(rustix::io::Errno::ACCESS)), None);
        assert_eq!(chip(&[0, 1], 5, Ok(None)), None);
        assert_eq!(chip(&[], 0, Ok(None)), None);
    }
}
