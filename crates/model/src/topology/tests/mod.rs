//! Machines made by hand, drawn as text: the grid, the groups, the links.

mod descriptors;
mod live;
mod machines;
mod properties;

use super::*;
use crate::{Arch, PciAddress};
use expect_test::Expect;

const N300_DESCRIPTOR: &str = include_str!("../../../../harness/clusters/n300.yaml");
const T3K_DESCRIPTOR: &str = include_str!("../../../../harness/clusters/t3k.yaml");

fn card(id: DeviceId, board: &str, address: &str, serial: &str) -> Device {
    let mut device = Device::new(id);
    device.arch =
        Some(if board.starts_with('n') || board.ends_with("wormhole") { Arch::Wormhole } else { Arch::Blackhole });
    device.board = Some(board.into());
    device.pci_address = Some(PciAddress(address.into()));
    device.serial = Some(serial.into());
    device
}

fn n150(n: u32) -> Device {
    card(DeviceId::Local(n), "n150", &format!("0000:{n:02x}:00.0"), &format!("01000186118001{n:02X}"))
}

/// Both chips of each board. The serials are those of the harness's T3000.
fn n300s(count: u32) -> Vec<Device> {
    let chip = |id, n| card(id, "n300", &format!("0000:{n:02x}:00.0"), &format!("01000146118008{n:02X}"));
    (0..count).flat_map(|n| [chip(DeviceId::Local(n), n), chip(DeviceId::Remote(n), n)]).collect()
}

fn p300s(count: u32) -> Vec<Device> {
    let serial = |n| format!("0000045131900{:03X}", n / 2);
    (0..count * 2).map(|n| card(DeviceId::Local(n), "p300a", &format!("0000:{n:02x}:00.0"), &serial(n))).collect()
}

/// All trays have one serial, as those of the Galaxies that we know of.
fn galaxy(board: &str, serial: &str, trays: [u32; 4]) -> Vec<Device> {
    let chip = |n: u32| {
        let bus = trays[n as usize / 8] | (n % 8 + 1);
        card(DeviceId::Local(n), board, &format!("0000:{bus:02x}:00.0"), serial)
    };
    (0..32).map(chip).collect()
}

fn wormhole_galaxy() -> Vec<Device> {
    galaxy("galaxy-wormhole", "0100035100000000", [0xC0, 0x80, 0x00, 0x40])
}

fn blackhole_galaxy() -> Vec<Device> {
    galaxy("galaxy-blackhole", "0000047330000000", [0x00, 0x40, 0xC0, 0x80])
}

/// The same text that the tests of simulated machines show.
fn draw(topology: &Topology) -> String {
    let mut text = String::new();
    for row in 0..topology.shape.rows {
        let at = |column| topology.chips.iter().find(|chip| (chip.column, chip.row) == (column, row));
        let cell = |column| at(column).map_or("·".into(), |chip| chip.id.to_string());
        let cells: Vec<String> = (0..topology.shape.columns).map(|column| format!("{:<3}", cell(column))).collect();
        text += &format!("{}\n", cells.join(" ").trim_end());
    }
    for (index, group) in topology.groups.iter().enumerate() {
        let chips = topology.chips.iter().filter(|chip| chip.group == index).map(|chip| chip.id.to_string());
        text += &format!("{}: {}\n", group.name, chips.collect::<Vec<_>>().join(" "));
    }
    for EthernetLink { ends: [one, other], count, source, .. } in &topology.links {
        text += &format!("{one} ={count}= {other} ({source:?})\n");
    }
    text + &topology.remarks.iter().map(|remark| format!("! {remark}\n")).collect::<String>()
}

fn check(topology: &Topology, expected: Expect) {
    expected.assert_eq(&draw(topology));
}

fn machine(devices: &[Device], expected: Expect) {
    check(&of_machine(devices), expected);
}

fn described(text: &str, devices: &[Device], expected: Expect) {
    check(&from_descriptor(text, devices).unwrap(), expected);
}

/// In the block style and with all the keys that tt-umd writes today.
const WRITTEN_BY_UMD: &str = r#"arch:
  0: wormhole_b0
  1: wormhole_b0
chips:
  0:
    - 0
    - 0
    - 0
    - 0
  1:
    - 0
    - 1
    - 0
    - 0
chip_unique_ids:
  1: 14251245764
  0: 9956278468
ethernet_connections:
  -
    - chip: 0
      chan: 8
    - chip: 1
      chan: 0
  -
    - chip: 0
      chan: 9
    - chip: 1
      chan: 1
ethernet_connections_to_remote_devices:
  -
    - chip: 1
      chan: 7
    - remote_chip_id: 14251335820
      chan: 7
chips_with_mmio:
  - 0: 1
io_device_type: PCIe
harvesting:
  0:
    noc_translation: true
    harvest_mask: 3
chip_to_bus_id:
  0: "0x0041"
  1: "0x0041"
boards:
  -
    - board_id: 72058990194901188
    - board_type: n300
    - chips:
        - 1
        - 0
asic_locations:
  0: 0
  1: 1
chip_pci_bdfs:
  0: 0000:41:00.0"#;
