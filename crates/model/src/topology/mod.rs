//! Where each chip of a machine is, and which Ethernet links join them.
//!
//! What boards are made of is known: the two chips of an n300 or a p300 are joined, the bus of a Galaxy's chip names its tray
//! and slot. Only tt-umd's cluster descriptor says how boards are cabled; it takes a discovery that opens every chip, so
//! it is not made here, only read where one exists.

mod boards;
mod described;
mod descriptor;
mod grid;
mod live;
mod matching;
mod yaml;

pub use boards::board_links_down;
pub use described::from_descriptor;
pub use live::{LinkEnd, LinkState, LiveLink, LiveLinks, LivePort, live, ports_not_up};

use crate::{Device, DeviceId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The chips of a machine in a grid, and the links between them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    /// One for each device, in the order of the devices. No two are at the same place.
    pub chips: Vec<PlacedChip>,
    /// The boards and trays that the chips are on.
    pub groups: Vec<ChipGroup>,
    /// Those that are known. Where nothing is known of links there are none here.
    pub links: Vec<EthernetLink>,
    /// The size of the grid.
    pub shape: GridShape,
    /// The weakest of what this is built upon, unless there is a descriptor.
    pub source: TopologySource,
    /// What a person should know of it, in sentences.
    pub remarks: Vec<String>,
}

/// One chip in the grid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedChip {
    /// The device.
    #[serde(flatten)]
    pub id: DeviceId,
    /// The position in [`Topology::groups`] of what it is on.
    pub group: usize,
    /// Counted from 0 on the left.
    pub column: u32,
    /// Counted from 0 at the top.
    pub row: u32,
    /// Links that leave the machine, or at least what the descriptor's writer saw of it. Absent without a descriptor.
    pub outside_links: Option<u32>,
    /// The ports of these links, as far as they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside_ports: Vec<u32>,
    /// Whether the descriptor lists all links of this chip.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_described: bool,
}

/// A board, or a tray of a Galaxy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChipGroup {
    /// What people call it: `n300 serial 010001451170C0C4`, `tray 2`.
    pub name: String,
}

/// The links between two chips.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EthernetLink {
    /// The chips that are joined, in the order of their names.
    pub ends: [DeviceId; 2],
    /// Parallel links.
    pub count: u32,
    /// How this is known.
    pub source: TopologySource,
    /// Of each of them, the port at both ends, as far as that is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<[u32; 2]>,
}

/// Columns and rows of a grid.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GridShape {
    /// From left to right.
    pub columns: u32,
    /// From top to bottom.
    pub rows: u32,
}

/// How something about a topology is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TopologySource {
    /// A cluster descriptor says so.
    Descriptor,
    /// All boards of the kind are made so.
    Board,
    /// Machines with these boards are usually cabled so. Not certain.
    Assumed,
}

/// What is wrong with a cluster descriptor, and where. The file's name is known to whoever opened it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyError {
    /// Counted from 1.
    pub line: usize,
    /// A sentence without a full stop.
    pub what: String,
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for TopologyError {}

/// What is known of a machine by its boards alone.
pub fn of_machine(devices: &[Device]) -> Topology {
    let mesh = boards::assumed_mesh(devices);
    let mut topology = grid::lay_out(devices, mesh.as_ref().map_or(&[][..], |mesh| &mesh.places));
    if let Some(mesh) = mesh {
        topology.links.extend(mesh.cables);
        topology.links.sort_by(|a, b| a.ends.cmp(&b.ends));
        topology.source = TopologySource::Assumed;
        let remark = "Four n300 are taken for a T3000. Only a cluster descriptor says how they are cabled.";
        topology.remarks.push(remark.into());
    }
    topology
}

impl Topology {
    /// The chips that a chip is joined with, and how.
    pub fn neighbours(&self, id: &DeviceId) -> impl Iterator<Item = (&DeviceId, &EthernetLink)> {
        self.links.iter().filter_map(move |link| match &link.ends {
            [one, other] if one == id => Some((other, link)),
            [other, one] if one == id => Some((other, link)),
            _ => None,
        })
    }

    /// Where a chip is.
    pub fn place(&self, id: &DeviceId) -> Option<&PlacedChip> {
        self.chips.iter().find(|chip| chip.id == *id)
    }
}

impl EthernetLink {
    /// Puts the ends in order.
    fn between(one: DeviceId, other: DeviceId, count: u32, source: TopologySource) -> EthernetLink {
        let ends = if one <= other { [one, other] } else { [other, one] };
        EthernetLink { ends, count, source, ports: Vec::new() }
    }

    /// The same with the ports at `one` and at the other end.
    fn with_ports(mut self, one: &DeviceId, ports: impl IntoIterator<Item = [u32; 2]>) -> EthernetLink {
        let is_first = self.ends[0] == *one;
        self.ports = ports.into_iter().map(|[a, b]| if is_first { [a, b] } else { [b, a] }).collect();
        self.ports.sort_unstable();
        self
    }
}

#[cfg(test)]
mod tests;
