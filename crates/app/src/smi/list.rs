//! `-L`: one line per device.

use model::Snapshot;
use std::fmt::Write;

pub fn text(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    let simulated = if snapshot.host.simulated { " SIMULATED" } else { "" };
    for device in &snapshot.devices {
        let known = |value: Option<String>| value.unwrap_or_else(|| "N/A".into());
        let board = known(device.board.clone().or(device.arch.map(|arch| arch.name().into())));
        let address = known(device.pci_address.as_ref().map(ToString::to_string));
        let (serial, id) = (known(device.serial.clone()), known(device.uuid()));
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
