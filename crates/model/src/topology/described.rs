//! A topology out of a cluster descriptor and the devices that its chips are.

use super::descriptor::{self, ChipPosition, Descriptor};
use super::{EthernetLink, Topology, TopologyError, TopologySource, grid, matching};
use crate::{Arch, Device, DeviceId};
use std::collections::BTreeMap;

/// What a descriptor knows of the devices. Chips and devices that are not the same thing are named in the remarks.
pub fn from_descriptor(text: &str, devices: &[Device]) -> Result<Topology, TopologyError> {
    let descriptor = descriptor::read(text)?;
    let matched = matching::devices_of(&descriptor, devices);
    let mut remarks = matching::remarks(&descriptor, &matched, devices);
    if matched.is_empty() {
        let machine = super::of_machine(devices);
        remarks.extend(machine.remarks.iter().cloned());
        return Ok(Topology { remarks, ..machine });
    }
    let blocks = blocks(&descriptor, &matched);
    let places = places(&descriptor, &blocks, &mut remarks);
    let known: Vec<Option<(u32, u32)>> = devices
        .iter()
        .map(|device| matched.iter().find(|(_, id)| **id == device.id).and_then(|(chip, _)| places.get(chip)).copied())
        .collect();
    let mut topology = grid::lay_out(devices, &known);
    for chip in &mut topology.chips {
        let number = matched.iter().find(|(_, id)| **id == chip.id).map(|(number, _)| number);
        let leave = |number: &u64| descriptor.outside.iter().filter(|(from, _)| from == number).count() as u32;
        chip.outside_links = number.filter(|_| descriptor.knows_outside).map(leave);
        let outside = descriptor.outside.iter().filter(|(from, _)| Some(from) == number);
        chip.outside_ports = outside.filter_map(|end| port(&descriptor, devices, &chip.id, *end)).collect();
        chip.is_described = number.is_some();
    }
    let on_boards = topology.links;
    let links = links(&descriptor, &matched, devices, on_boards, &mut remarks);
    Ok(Topology { links, source: TopologySource::Descriptor, remarks, ..topology })
}

/// Chips that are joined by links, in the same rack and shelf. Coordinates say nothing about chips of two blocks.
fn blocks(descriptor: &Descriptor, matched: &BTreeMap<u64, DeviceId>) -> Vec<Vec<u64>> {
    let mut block_of: BTreeMap<u64, u64> = matched.keys().map(|chip| (*chip, *chip)).collect();
    let shelf = |chip| descriptor.chips.get(&chip).and_then(|chip| chip.place).map(|place| (place.rack, place.shelf));
    for [(one, _), (other, _)] in &descriptor.connections {
        if let (Some(from), Some(to)) = (block_of.get(one).copied(), block_of.get(other).copied()) {
            if from != to && shelf(*one) == shelf(*other) {
                let (from, to) = (from.max(to), from.min(to));
                block_of.values_mut().filter(|block| **block == from).for_each(|block| *block = to);
            }
        }
    }
    let mut blocks: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (chip, block) in block_of {
        blocks.entry(block).or_default().push(chip);
    }
    blocks.into_values().collect()
}

/// Wider than any machine. A grid that large could not be drawn.
const MAX_SPAN: u64 = 64;

/// Columns and rows by the descriptor's coordinates, one block below the other.
fn places(descriptor: &Descriptor, blocks: &[Vec<u64>], remarks: &mut Vec<String>) -> BTreeMap<u64, (u32, u32)> {
    let mut places = BTreeMap::new();
    let mut top = 0;
    for block in blocks.iter().filter(|block| block.len() > 1) {
        let placed = block.iter().filter_map(|chip| Some((*chip, descriptor.chips.get(chip)?.place?)));
        let placed: Vec<(u64, ChipPosition)> = placed.collect();
        let least = |of: fn(&ChipPosition) -> u64| placed.iter().map(|(_, place)| of(place)).min().unwrap_or(0);
        let (left, upper) = (least(|place| place.column), least(|place| place.row));
        let mut rows = 0;
        for (chip, place) in &placed {
            let (column, row) = (place.column - left, place.row - upper);
            if column < MAX_SPAN && row < MAX_SPAN {
                places.insert(*chip, (column as u32, top + row as u32));
                rows = rows.max(row as u32 + 1);
            } else {
                remarks.push(format!("Chip {chip} of the descriptor is too far off to be drawn where it says."));
            }
        }
        top += rows;
    }
    places
}

/// The descriptor's links, and those on boards that it does not describe.
fn links(
    descriptor: &Descriptor,
    matched: &BTreeMap<u64, DeviceId>,
    devices: &[Device],
    on_boards: Vec<EthernetLink>,
    remarks: &mut Vec<String>,
) -> Vec<EthernetLink> {
    let mut joined: BTreeMap<[&DeviceId; 2], (u32, Vec<[u32; 2]>)> = BTreeMap::new();
    for ends in &descriptor.connections {
        let [(one, _), (other, _)] = ends;
        if one == other {
            remarks.push(format!("Chip {one} of the descriptor is linked with itself."));
        } else if let (Some(a), Some(b)) = (matched.get(one), matched.get(other)) {
            let ports = [port(descriptor, devices, a, ends[0]), port(descriptor, devices, b, ends[1])];
            let (key, ports) = if a <= b { ([a, b], ports) } else { ([b, a], [ports[1], ports[0]]) };
            let (count, known) = joined.entry(key).or_default();
            *count += 1;
            if let [Some(here), Some(there)] = ports {
                known.push([here, there]);
            }
        }
    }
    let described = joined.into_iter().map(|([one, other], (count, ports))| {
        let link = EthernetLink::between(one.clone(), other.clone(), count, TopologySource::Descriptor);
        link.with_ports(one, ports)
    });
    let is_described = |id: &DeviceId| matched.values().any(|known| known == id);
    let others = on_boards.into_iter().filter(|link| !link.ends.iter().any(is_described));
    let mut links: Vec<EthernetLink> = described.chain(others).collect();
    links.sort_by(|a, b| a.ends.cmp(&b.ends));
    links
}

/// The port of a chip that a channel of the descriptor is. On Blackhole tt-umd counts channels without the ports that are switched
/// off: two of 14 always are.
fn port(descriptor: &Descriptor, devices: &[Device], id: &DeviceId, (chip, channel): (u64, u64)) -> Option<u32> {
    let device = devices.iter().find(|device| device.id == *id)?;
    let all = |count: u32| 0..count;
    match device.arch? {
        Arch::Wormhole => all(16).find(|port| u64::from(*port) == channel),
        Arch::Blackhole => {
            let enabled = |port: u32| device.deep.as_ref()?.eth_enabled.get(port as usize).copied()?;
            let is_on = |port: u32| match descriptor.chips.get(&chip).and_then(|chip| chip.ethernet_off) {
                Some(off) => Some(off & (1 << port) == 0),
                None => enabled(port),
            };
            let on: Option<Vec<bool>> = all(14).map(is_on).collect();
            let mut ports = all(14).zip(on?).filter(|(_, on)| *on).map(|(port, _)| port);
            ports.nth(usize::try_from(channel).ok()?)
        }
    }
}
