//! `topo -m` and `nvlink -s`: which chips are joined, as a matrix and as a list.

use model::topology::{Topology, TopologySource, of_machine};
use model::{Device, DeviceId, Snapshot};
use std::fmt::Write;

/// The driver publishes nothing about Ethernet, and to ask a chip means to open it.
const STATE_UNKNOWN: &str = "state and speed unknown: the driver does not publish them, and ttmon opens no device";

/// How each pair of chips is joined, with a legend.
pub fn matrix(snapshot: &Snapshot) -> String {
    let topology = of_machine(&snapshot.devices);
    let names: Vec<String> = snapshot.devices.iter().map(|device| format!("TT{}", device.id)).collect();
    let width = names.iter().map(String::len).max().unwrap_or(0).max(5) + 2;
    let mut text = " ".repeat(width);
    names.iter().for_each(|name| text += &format!("{name:<width$}"));
    text += "NUMA\n";
    for (device, name) in snapshot.devices.iter().zip(&names) {
        text += &format!("{name:<width$}");
        for other in &snapshot.devices {
            text += &format!("{:<width$}", joined(&topology, device, other));
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", device.numa_node.map_or_else(|| "N/A".to_owned(), |node| node.to_string()));
    }
    text += "\nLegend:\n\n  X     the chip itself\n  ET#   # Ethernet links between the two\n";
    text += "  ET#?  as machines with these boards are usually cabled; not certain\n  NODE  over PCIe, within a NUMA node\n";
    text += "  SYS   over PCIe, between NUMA nodes\n  PCIE  over PCIe; the NUMA nodes are not known\n";
    text += "  VIA   over the chip of the same board that has PCIe\n";
    for remark in &topology.remarks {
        text += &format!("\nnote: {remark}\n");
    }
    text
}

fn joined(topology: &Topology, one: &Device, other: &Device) -> String {
    if one.id == other.id {
        return "X".into();
    }
    let pair = |ends: &[DeviceId; 2]| ends.contains(&one.id) && ends.contains(&other.id);
    let links: Vec<_> = topology.links.iter().filter(|link| pair(&link.ends)).collect();
    if !links.is_empty() {
        let count: u32 = links.iter().map(|link| link.count).sum();
        let mark = if links.iter().any(|link| link.source == TopologySource::Assumed) { "?" } else { "" };
        return format!("ET{count}{mark}");
    }
    let has_pcie = |device: &Device| matches!(device.id, DeviceId::Local(_));
    match (one.numa_node, other.numa_node) {
        _ if !has_pcie(one) || !has_pcie(other) => "VIA".into(),
        (Some(a), Some(b)) if a == b => "NODE".into(),
        (Some(_), Some(_)) => "SYS".into(),
        _ => "PCIE".into(),
    }
}

/// The Ethernet links of each chip.
pub fn status(snapshot: &Snapshot) -> String {
    let topology = of_machine(&snapshot.devices);
    let mut text = String::new();
    for device in &snapshot.devices {
        let board = device.board.as_deref().unwrap_or("N/A");
        let uuid = device.uuid().unwrap_or_else(|| "N/A".into());
        let _ = writeln!(text, "Device {}: Tenstorrent {board} (UUID: {uuid})", device.id);
        let links: Vec<_> = topology.links.iter().filter(|link| link.ends.contains(&device.id)).collect();
        for link in &links {
            let other = link.ends.iter().find(|end| **end != device.id).unwrap_or(&device.id);
            let source = match link.source {
                TopologySource::Assumed => ", as such machines are usually cabled",
                TopologySource::Board => ", on the board",
                TopologySource::Descriptor => "",
            };
            let links =
                if link.count == 1 { "1 Ethernet link".into() } else { format!("{} Ethernet links", link.count) };
            let _ = writeln!(text, "    to device {other}: {links}{source}; {STATE_UNKNOWN}");
        }
        if links.is_empty() {
            let _ = writeln!(
                text,
                "    no Ethernet links are known; cables between boards are only in a cluster descriptor"
            );
        }
    }
    text
}
