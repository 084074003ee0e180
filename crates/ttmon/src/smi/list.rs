//! `-L`: one line per device.

use model::Snapshot;
use std::fmt::Write;

const UNKNOWN: &str = "N/A";

pub fn text(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    let simulated = if snapshot.host.simulated { " SIMULATED" } else { "" };
    for device in &snapshot.devices {
        let board = device.board.as_deref().or(device.arch.map(|arch| arch.name())).unwrap_or(UNKNOWN);
        let address = device.pci_address.as_ref().map_or(UNKNOWN, |address| &address.0);
        let serial = device.serial.as_deref().unwrap_or(UNKNOWN);
        let id = device.uuid().unwrap_or_else(|| UNKNOWN.into());
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "Device {}: Tenstorrent {board} (PCI: {address}, serial: {serial}, UUID: {id}, state: {}){simulated}",
            device.id,
            device.state.name()
        );
    }
    text
}
