//! Which device a chip of a cluster descriptor is.
//!
//! A descriptor may be old, or of another machine. Where it names a board or a generation that the device is not of, the
//! two are not taken for one, whatever their numbers say.

use super::boards;
use super::descriptor::{DescribedChip, Descriptor};
use crate::{Device, DeviceId, chip_with_number};
use std::collections::BTreeMap;

/// The devices of the descriptor's chips, as far as they are here. No device is two chips.
pub(super) fn devices_of(descriptor: &Descriptor, devices: &[Device]) -> BTreeMap<u64, DeviceId> {
    let mut matched: BTreeMap<u64, DeviceId> = BTreeMap::new();
    // What names a chip more surely comes first.
    for rule in [by_unique_id, by_address, by_board, by_bus, by_ordinal, by_gateway] {
        for (number, chip) in &descriptor.chips {
            if matched.contains_key(number) {
                continue;
            }
            let found = rule(&Search { number: *number, chip, descriptor, devices, matched: &matched });
            let device = found.and_then(|id| devices.iter().find(|device| device.id == id));
            if let Some(device) = device.filter(|device| can_be(chip, device)) {
                if !matched.values().any(|taken| *taken == device.id) {
                    matched.insert(*number, device.id.clone());
                }
            }
        }
    }
    matched
}

/// What the descriptor and the machine do not agree upon.
pub(super) fn remarks(descriptor: &Descriptor, matched: &BTreeMap<u64, DeviceId>, devices: &[Device]) -> Vec<String> {
    let mut remarks = Vec::new();
    let chips: Vec<String> =
        descriptor.chips.keys().filter(|chip| !matched.contains_key(chip)).map(u64::to_string).collect();
    let one = |plural: &'static str, singular: &'static str, count: usize| if count == 1 { singular } else { plural };
    if !chips.is_empty() {
        let (what, verb) = (one("Chips", "Chip", chips.len()), one("are", "is", chips.len()));
        remarks.push(format!("{what} {} of the descriptor {verb} not found in this machine.", chips.join(", ")));
    }
    let missing = devices.iter().filter(|device| !matched.values().any(|id| *id == device.id));
    let missing: Vec<String> = missing.map(|device| device.id.to_string()).collect();
    if !missing.is_empty() {
        let (what, verb) = (one("Devices", "Device", missing.len()), one("are", "is", missing.len()));
        remarks.push(format!("{what} {} {verb} not in the descriptor.", missing.join(", ")));
    }
    let mut strangers: Vec<u64> = descriptor.connections.iter().flatten().map(|(chip, _)| *chip).collect();
    strangers.retain(|chip| !descriptor.chips.contains_key(chip));
    strangers.sort_unstable();
    strangers.dedup();
    remarks.extend(strangers.iter().map(|chip| format!("A link leads to chip {chip}, which the descriptor lacks.")));
    remarks
}

fn can_be(chip: &DescribedChip, device: &Device) -> bool {
    let same_arch = match (&chip.arch, device.arch) {
        (Some(spelled), Some(arch)) => spelled.to_ascii_lowercase().starts_with(arch.name()),
        _ => true,
    };
    let same_board = match (chip.board, device.serial_number()) {
        (Some(board), Some(serial)) => board == serial,
        _ => true,
    };
    same_arch && same_board
}

struct Search<'a> {
    number: u64,
    chip: &'a DescribedChip,
    descriptor: &'a Descriptor,
    devices: &'a [Device],
    /// What is known of the chips so far.
    matched: &'a BTreeMap<u64, DeviceId>,
}

fn by_unique_id(search: &Search<'_>) -> Option<DeviceId> {
    chip_with_number(search.devices, search.chip.unique_id?)
}

fn by_address(search: &Search<'_>) -> Option<DeviceId> {
    let address = search.chip.address.as_ref()?;
    let is = |device: &&Device| device.pci_address.as_ref().is_some_and(|at| at.0.eq_ignore_ascii_case(address));
    only(search.local_devices().filter(is))
}

/// Where the board has one chip that the host reaches, both here and there.
fn by_board(search: &Search<'_>) -> Option<DeviceId> {
    let board = search.chip.board.filter(|_| search.chip.is_local)?;
    let local_there = search.descriptor.chips.values().filter(|chip| chip.is_local && chip.board == Some(board));
    (local_there.count() == 1).then_some(())?;
    only(search.local_devices().filter(|device| device.serial_number() == Some(board)))
}

/// Chips behind a gateway are listed with its bus.
fn by_bus(search: &Search<'_>) -> Option<DeviceId> {
    let bus = search.chip.bus.filter(|_| search.chip.is_local && search.chip.address.is_none())?;
    only(search.local_devices().filter(|device| boards::bus(device) == Some(bus)))
}

/// Ordinals change when cards are removed, so they do not count against an address.
fn by_ordinal(search: &Search<'_>) -> Option<DeviceId> {
    let ordinal = search.chip.ordinal?;
    let device = search.local_devices().find(|device| device.id == DeviceId::Local(ordinal))?;
    let elsewhere = match (&search.chip.address, search.chip.bus, &device.pci_address) {
        (Some(there), _, Some(here)) => !here.0.eq_ignore_ascii_case(there),
        (None, Some(bus), Some(_)) => boards::bus(device) != Some(bus),
        _ => false,
    };
    (!elsewhere).then(|| device.id.clone())
}

/// The chip without PCIe on the board of one that is known.
fn by_gateway(search: &Search<'_>) -> Option<DeviceId> {
    let board = search.chip.board.filter(|_| !search.chip.is_local)?;
    let mates = search.descriptor.chips.iter().filter(|(_, chip)| chip.board == Some(board));
    let mut others = mates.filter(|(number, _)| **number != search.number);
    match (others.next(), others.next()) {
        (Some((gateway, _)), None) => Some(DeviceId::Remote(search.matched.get(gateway)?.index()?)),
        _ => None,
    }
}

impl Search<'_> {
    fn local_devices(&self) -> impl Iterator<Item = &Device> {
        self.devices.iter().filter(|device| matches!(device.id, DeviceId::Local(_)))
    }
}

fn only<'a>(mut devices: impl Iterator<Item = &'a Device>) -> Option<DeviceId> {
    let first = devices.next()?;
    devices.next().is_none().then(|| first.id.clone())
}
