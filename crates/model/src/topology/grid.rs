//! A place in a grid for every chip: chips of a board next to each other, a tray of a Galaxy in a row.

use super::boards::{self, Home};
use super::{ChipGroup, GridShape, PlacedChip, Topology, TopologySource};
use crate::{Device, DeviceId};
use std::collections::{BTreeMap, BTreeSet};

/// Puts devices where `known` says, by their position, and all others below: first trays, then boards. The links are those on boards.
pub(super) fn lay_out(devices: &[Device], known: &[Option<(u32, u32)>]) -> Topology {
    let homes = boards::homes(devices);
    let mut members: BTreeMap<&Home, Vec<usize>> = BTreeMap::new();
    for (index, home) in homes.iter().enumerate() {
        members.entry(home).or_default().push(index);
    }
    let mut places = GridPlaces { of: vec![None; devices.len()], ..GridPlaces::default() };
    for (index, place) in known.iter().enumerate() {
        if let Some((column, row)) = *place {
            places.put(index, column, row);
        }
    }
    place_trays(devices, &members, &mut places);
    place_boards(devices, &members, &mut places);

    let mut groups = Vec::new();
    let mut group_of = vec![0; devices.len()];
    for (home, chips) in &mut members {
        chips.sort_by(|a, b| devices[*a].id.cmp(&devices[*b].id));
        chips.iter().for_each(|chip| group_of[*chip] = groups.len());
        groups.push(ChipGroup { name: name(home, &devices[chips[0]]) });
    }
    let placed = devices.iter().zip(places.of).zip(group_of).map(|((device, place), group)| {
        let (column, row) = place.unwrap_or_default();
        let (outside_links, outside_ports, is_described) = (None, Vec::new(), false);
        PlacedChip { id: device.id.clone(), group, column, row, outside_links, outside_ports, is_described }
    });
    let chips: Vec<PlacedChip> = placed.collect();
    let columns = chips.iter().map(|chip| chip.column + 1).max().unwrap_or(0);
    let rows = chips.iter().map(|chip| chip.row + 1).max().unwrap_or(0);
    let (links, shape) = (boards::links(devices), GridShape { columns, rows });
    Topology { chips, groups, links, shape, source: TopologySource::Board, remarks: Vec::new() }
}

#[derive(Default)]
struct GridPlaces {
    /// Column and row of each device, as far as they are found.
    of: Vec<Option<(u32, u32)>>,
    taken: BTreeSet<(u32, u32)>,
    /// The first row with nothing on it or below.
    free_row: u32,
}

impl GridPlaces {
    /// Leaves the device without a place if another is there.
    fn put(&mut self, device: usize, column: u32, row: u32) {
        if self.taken.insert((column, row)) {
            self.of[device] = Some((column, row));
            self.free_row = self.free_row.max(row.saturating_add(1));
        }
    }
}

/// A row for each tray that is there, a column for each slot.
fn place_trays(devices: &[Device], members: &BTreeMap<&Home, Vec<usize>>, places: &mut GridPlaces) {
    for (home, chips) in members {
        if matches!(home, Home::Tray { .. }) {
            let row = places.free_row;
            for chip in chips.iter().filter(|chip| places.of[**chip].is_none()).copied().collect::<Vec<_>>() {
                if let Some((_, slot)) = boards::slot(&devices[chip]) {
                    places.put(chip, slot, row);
                }
            }
        }
    }
}

/// Boards side by side, in the order of their chips, and as many rows as that takes.
fn place_boards(devices: &[Device], members: &BTreeMap<&Home, Vec<usize>>, places: &mut GridPlaces) {
    let mut boards = Vec::new();
    for chips in members.values() {
        let mut left: Vec<usize> = chips.iter().copied().filter(|chip| places.of[*chip].is_none()).collect();
        left.sort_by(|a, b| devices[*a].id.cmp(&devices[*b].id));
        boards.push(left);
    }
    let width = if boards.iter().flatten().count() > 16 { 8 } else { 4 };
    let (mut column, mut row) = (0, places.free_row);
    for board in boards {
        let wide = board.len() as u32;
        if column > 0 && column + wide > width {
            (column, row) = (0, row + 1);
        }
        for chip in board {
            if column == width {
                (column, row) = (0, row + 1);
            }
            places.put(chip, column, row);
            column += 1;
        }
    }
}

fn name(home: &Home, first: &Device) -> String {
    let board = first.board.as_deref().unwrap_or("card");
    match (home, &first.serial, &first.pci_address) {
        (Home::Tray { tray, .. }, ..) => format!("tray {}", tray + 1),
        (Home::SomeTray { .. }, ..) => format!("{board}, tray not known"),
        (_, Some(serial), _) if first.serial_number().is_some() => format!("{board} serial {serial}"),
        (_, _, Some(address)) => format!("{board} at {address}"),
        (Home::Board(DeviceId::Local(n)), ..) => format!("{board} of device {n}"),
        _ => board.to_owned(),
    }
}
