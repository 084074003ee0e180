//! What is known of boards: which chips are on one, how they are joined, and where a Galaxy's chip sits.

use super::{EthernetLink, TopologySource};
use crate::{Board, Device, DeviceId};
use std::collections::BTreeMap;

/// What a chip is on. Sorts as groups are drawn: trays first, then boards in the order of their chips.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Home {
    /// A tray of a Galaxy, by the driver's order, counted from 0.
    Tray { arch: &'static str, tray: u32 },
    /// A board with several chips, by the first of them.
    Board(DeviceId),
    /// A Galaxy, but its bus does not say which tray.
    SomeTray { arch: &'static str },
}

/// What each of the devices is on.
pub(super) fn homes(devices: &[Device]) -> Vec<Home> {
    devices.iter().map(|device| home(device, devices)).collect()
}

fn home(device: &Device, devices: &[Device]) -> Home {
    let board = board_of(device);
    if let Some(board @ (Board::GalaxyWormhole | Board::GalaxyBlackhole)) = board {
        let arch = board.arch().name();
        return slot(device).map_or(Home::SomeTray { arch }, |(tray, _)| Home::Tray { arch, tray });
    }
    if let DeviceId::Remote(n) = device.id {
        return Home::Board(DeviceId::Local(n));
    }
    let serial = device.serial_number().filter(|_| board == Some(Board::P300));
    let same = |other: &&Device| board_of(other) == board && other.serial_number() == serial;
    let first = serial.and_then(|_| devices.iter().filter(same).map(|other| &other.id).min());
    Home::Board(first.unwrap_or(&device.id).clone())
}

/// Tray and slot of a Galaxy's chip, both counted from 0, from its bus as the driver numbers them.
pub(super) fn slot(device: &Device) -> Option<(u32, u32)> {
    let trays = match board_of(device)? {
        Board::GalaxyWormhole => [0xC, 0x8, 0x0, 0x4],
        Board::GalaxyBlackhole => [0x0, 0x4, 0xC, 0x8],
        _ => return None,
    };
    let bus = bus(device)?;
    let tray = trays.iter().position(|high| *high == bus >> 4)?;
    let low = bus & 0xF;
    (1..=8).contains(&low).then(|| (tray as u32, u32::from(low) - 1))
}

/// The PCI bus: `81` of `0000:81:00.0`.
pub(super) fn bus(device: &Device) -> Option<u8> {
    let address = &device.pci_address.as_ref()?.0;
    let (_, rest) = address.split_once(':')?;
    u8::from_str_radix(rest.split_once(':')?.0, 16).ok()
}

pub(super) fn board_of(device: &Device) -> Option<Board> {
    Board::named(device.board.as_deref()?)
}

/// The links on the boards themselves: an n300 and a p300 have two between their chips.
pub(super) fn links(devices: &[Device]) -> Vec<EthernetLink> {
    let mut boards: BTreeMap<Home, Vec<&Device>> = BTreeMap::new();
    for (device, home) in devices.iter().zip(homes(devices)) {
        boards.entry(home).or_default().push(device);
    }
    let mut links: Vec<EthernetLink> = boards.values().filter_map(|chips| link_on_board(chips)).collect();
    links.sort_by(|a, b| a.ends.cmp(&b.ends));
    links
}

fn link_on_board(chips: &[&Device]) -> Option<EthernetLink> {
    // More than two with one serial are boards that cannot be distinguished.
    let [one, other] = chips else { return None };
    let both = |board| [one, other].iter().all(|chip| board_of(chip) == Some(board));
    let joined = one.id != other.id && (both(Board::N300) || both(Board::P300));
    let link = joined.then(|| EthernetLink::between(one.id.clone(), other.id.clone(), 2, TopologySource::Board))?;
    let ports = match (board_ports(one), board_ports(other)) {
        (Some(here), Some(there)) if here != there => Some([[here[0], there[0]], [here[1], there[1]]]),
        _ => None,
    };
    Some(link.with_ports(&one.id, ports.into_iter().flatten()))
}

/// The ports of a chip that lead to the other chip of its board, in an order in which both chips' ports are joined.
///
/// An n300 joins 8 and 9 of L with 0 and 1 of R. A p300 joins 2 and 3 of the right chip with 11 and 10 of the left one: tt-umd's
/// blackhole_P300_both_mmio.yaml has channels 2, 3 and 9, 8, counted without the unused ports 5 and 8.
fn board_ports(device: &Device) -> Option<[u32; 2]> {
    match (board_of(device)?, &device.id) {
        (Board::N300, DeviceId::Local(_)) => Some([8, 9]),
        (Board::N300, DeviceId::Remote(_)) => Some([0, 1]),
        (Board::P300, _) => match device.deep.as_ref()?.asic_location? {
            0 => Some([2, 3]),
            1 => Some([11, 10]),
            _ => None,
        },
        _ => None,
    }
}

/// How many links of a chip to the other chip of its board are down, by what this chip says.
pub fn board_links_down(device: &Device) -> Option<u32> {
    let said = board_ports(device)?.map(|port| super::live::says_up(device, port));
    said.iter().flatten().next()?;
    Some(said.iter().filter(|up| **up == Some(false)).count() as u32)
}

/// A machine that is usually cabled in one way.
pub(super) struct KnownCabling {
    /// Column and row of each device, in the order of the devices.
    pub places: Vec<Option<(u32, u32)>>,
    /// The links between boards.
    pub cables: Vec<EthernetLink>,
}

/// A T3000 is four n300 and nothing else:
///
/// ```text
///     0R ═ 0 ─ 2 ═ 2R     ═  on a board
///     │    │   │   │      ─  cables, two links each
///     1R ═ 1 ─ 3 ═ 3R
/// ```
pub(super) fn assumed_mesh(devices: &[Device]) -> Option<KnownCabling> {
    if devices.len() != 8 || devices.iter().any(|device| board_of(device) != Some(Board::N300)) {
        return None;
    }
    let find = |id: DeviceId| devices.iter().position(|device| device.id == id);
    let mut boards: Vec<(usize, usize)> = devices
        .iter()
        .filter_map(|device| Some((find(device.id.clone())?, find(DeviceId::Remote(device.id.index()?))?)))
        .collect();
    // Chips are numbered in the order of their addresses, in which the boards of a T3000 are cabled.
    boards.sort_by_key(|(left, _)| (&devices[*left].pci_address, &devices[*left].id));
    boards.dedup();
    let [a, b, c, d] = boards[..] else { return None };
    let mut places = vec![None; devices.len()];
    for ((left, right), (column, outer, row)) in [(a, (1, 0, 0)), (b, (1, 0, 1)), (c, (2, 3, 0)), (d, (2, 3, 1))] {
        places[left] = Some((column, row));
        places[right] = Some((outer, row));
    }
    let cable = |one: usize, other: usize| {
        EthernetLink::between(devices[one].id.clone(), devices[other].id.clone(), 2, TopologySource::Assumed)
    };
    let across = [cable(a.0, c.0), cable(b.0, d.0)];
    let down = [cable(a.0, b.0), cable(a.1, b.1), cable(c.0, d.0), cable(c.1, d.1)];
    Some(KnownCabling { places, cables: across.into_iter().chain(down).collect() })
}
