//! `tt-smi -ls` and `-glx_list_tray_to_device`: tables in the form of the official program, for scripts that look for words in them.

use super::tt_smi::{board_type_of, chips};
use model::{Arch, Device, DeviceId, Snapshot, State};
use std::collections::BTreeMap;
use watch::exit::{Exit, Failure};

/// All chips, then those that the official program can reset.
pub fn list(snapshot: &Snapshot) -> String {
    let chips = chips(snapshot);
    let row = |(n, device): (usize, &&Device)| {
        let is_remote = device.state == State::Remote;
        let address = device.pci_address.as_ref().filter(|_| !is_remote);
        let number = match device.id {
            DeviceId::Local(n) => n.to_string(),
            _ => NA.into(),
        };
        vec![
            n.to_string(),
            address.map_or_else(|| NA.into(), |address| address.0.to_string()),
            format!("/dev/tenstorrent/{number}"),
            match device.arch {
                Some(Arch::Wormhole) => "Wormhole".into(),
                Some(Arch::Blackhole) => "Blackhole".into(),
                _ => NA.into(),
            },
            board_type_of(device),
            device.serial_number().map_or_else(|| NA.into(), |serial| format!("{serial:016x}")),
        ]
    };
    let head = ["UMD Chip ID", "PCI BDF", "PCI Dev ID", "Board Type", "Device Series", "Board Number"];
    let all: Vec<Vec<String>> = chips.iter().enumerate().map(row).collect();
    let can_be_reset = |device: &Device| device.state != State::Remote && !board_type_of(device).starts_with("wh_4u");
    let some: Vec<Vec<String>> = chips.iter().enumerate().filter(|(_, device)| can_be_reset(device)).map(row).collect();
    table("All available boards on host (UMD):", &head, &all) + &table("Boards that can be reset (UMD):", &head, &some)
}

/// Trays of a Galaxy, each with the first bus of it and its devices.
pub fn trays(snapshot: &Snapshot) -> anyhow::Result<String> {
    let galaxy = |device: &&&Device| board_type_of(device).contains("galaxy");
    let chips = chips(snapshot);
    let mut trays: BTreeMap<u8, (u8, Vec<String>)> = BTreeMap::new();
    for device in chips.iter().filter(galaxy) {
        let (DeviceId::Local(number), Some(address)) = (&device.id, &device.pci_address) else { continue };
        let bus = address.0.split(':').nth(1).and_then(|bus| u8::from_str_radix(bus, 16).ok());
        // The high digit of the bus is the tray's; which tray that is depends on the generation.
        let Some(bus) = bus.map(|bus| bus & 0xF0) else { continue };
        let order: [u8; 4] = if device.arch == Some(Arch::Wormhole) { WORMHOLE_TRAYS } else { BLACKHOLE_TRAYS };
        if let Some(tray) = order.iter().position(|first| *first == bus) {
            trays.entry(tray as u8 + 1).or_insert((bus, Vec::new())).1.push(number.to_string());
        }
    }
    if trays.is_empty() {
        let why = "-glx_list_tray_to_device lists the trays of a Galaxy: this machine is none";
        return Err(Failure::error(Exit::NoDevice, why));
    }
    let row = |(tray, (bus, devices)): (&u8, &(u8, Vec<String>))| {
        vec![tray.to_string(), format!("{bus:#04x}"), devices.join(",")]
    };
    let rows: Vec<Vec<String>> = trays.iter().map(row).collect();
    let head = ["Tray Number", "Tray Bus ID", "/dev/tenstorrent/<id>"];
    Ok(table("Mapping of trays to devices on the galaxy:", &head, &rows))
}

const NA: &str = "N/A";
/// The buses of trays 1 to 4.
const WORMHOLE_TRAYS: [u8; 4] = [0xC0, 0x80, 0x00, 0x40];
const BLACKHOLE_TRAYS: [u8; 4] = [0x00, 0x40, 0xC0, 0x80];

/// A table with heavy lines around its head, as wide as its content.
fn table(title: &str, head: &[&str], rows: &[Vec<String>]) -> String {
    let widths: Vec<usize> = head
        .iter()
        .enumerate()
        .map(|(n, name)| rows.iter().map(|row| row[n].len()).fold(name.len(), usize::max))
        .collect();
    let rule = |left: &str, line: &str, cross: &str, right: &str| {
        let parts: Vec<String> = widths.iter().map(|width| line.repeat(width + 2)).collect();
        format!("{left}{}{right}\n", parts.join(cross))
    };
    let line = |bar: &str, cells: &mut dyn Iterator<Item = &str>| {
        let cells: Vec<String> = cells.zip(&widths).map(|(cell, width)| format!(" {cell:<width$} ")).collect();
        format!("{bar}{}{bar}\n", cells.join(bar))
    };
    let whole = widths.iter().sum::<usize>() + 3 * widths.len() + 1;
    let mut text = format!("{title:^whole$}").trim_end().to_owned() + "\n";
    text += &rule("┏", "━", "┳", "┓");
    text += &line("┃", &mut head.iter().copied());
    text += &rule("┡", "━", "╇", "┩");
    for row in rows {
        text += &line("│", &mut row.iter().map(String::as_str));
    }
    text + &rule("└", "─", "┴", "┘")
}
