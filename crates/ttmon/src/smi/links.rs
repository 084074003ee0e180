//! `topo -m` and `nvlink -s`: which chips are joined, as a matrix and as a list.

use model::topology::{LinkState, LiveLink, LiveLinks, LivePort, Topology, TopologySource, live, of_machine};
use model::{Device, DeviceId, Snapshot};
use std::fmt::Write;

/// The driver publishes nothing about Ethernet.
const STATE_UNKNOWN: &str = "state unknown: the driver does not publish it, and only deep reads know it";

/// How each pair of chips is joined, with a legend.
pub fn matrix(snapshot: &Snapshot) -> String {
    let topology = of_machine(&snapshot.devices);
    let live = live(&topology, &snapshot.devices);
    let names: Vec<String> = snapshot.devices.iter().map(|device| format!("TT{}", device.id)).collect();
    let row = |device| snapshot.devices.iter().map(|other| joined(&topology, &live, device, other)).collect();
    let rows: Vec<Vec<String>> = snapshot.devices.iter().map(row).collect();
    let width = rows.iter().flatten().chain(&names).map(String::len).max().unwrap_or(0).max(5) + 2;
    let mut text = " ".repeat(width);
    names.iter().for_each(|name| text += &format!("{name:<width$}"));
    text += "NUMA\n";
    for ((device, name), row) in snapshot.devices.iter().zip(&names).zip(rows) {
        text += &format!("{name:<width$}");
        row.iter().for_each(|cell| text += &format!("{cell:<width$}"));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", device.numa_node.map_or_else(|| "N/A".to_owned(), |node| node.to_string()));
    }
    text += "\nLegend:\n\n  X     the chip itself\n  ET#   # Ethernet links between the two\n";
    if live.is_known() {
        text += "  ET#/# so many of the Ethernet links between the two are up\n";
    }
    text += "  ET#?  as machines with these boards are usually cabled; not certain\n  NODE  over PCIe, within a NUMA node\n";
    text += "  SYS   over PCIe, between NUMA nodes\n  PCIE  over PCIe; the NUMA nodes are not known\n";
    text += "  VIA   over the chip of the same board that has PCIe\n";
    for remark in topology.remarks.iter().chain(&live.degraded()) {
        text += &format!("\nnote: {remark}\n");
    }
    text
}

fn joined(topology: &Topology, live: &LiveLinks, one: &Device, other: &Device) -> String {
    if one.id == other.id {
        return "X".into();
    }
    let pair = |ends: &[DeviceId; 2]| ends.contains(&one.id) && ends.contains(&other.id);
    let links: Vec<_> = topology.links.iter().filter(|link| pair(&link.ends)).collect();
    if !links.is_empty() {
        let count: u32 = links.iter().map(|link| link.count).sum();
        let mark = if links.iter().any(|link| link.source == TopologySource::Assumed) { "?" } else { "" };
        let of = |state| links.iter().map(|link| live.count(&link.ends, state)).sum::<usize>();
        return match (of(LinkState::Up), of(LinkState::Down)) {
            (0, 0) => format!("ET{count}{mark}"),
            (up, _) => format!("ET{up}/{count}{mark}"),
        };
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
    let live = live(&topology, &snapshot.devices);
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
            let known: Vec<&LiveLink> =
                live.between(&link.ends).filter(|link| link.state != LinkState::Unknown).collect();
            let unknown = if known.is_empty() { format!("; {STATE_UNKNOWN}") } else { String::new() };
            let _ = writeln!(text, "    to device {other}: {links}{source}{unknown}");
            known.into_iter().for_each(|link| text += &state_line(link, &device.id));
        }
        text += &other_ports(&live, &device.id);
        if links.is_empty() {
            let _ = writeln!(
                text,
                "    no Ethernet links are known; cables between boards are only in a cluster descriptor"
            );
        }
    }
    text
}

/// `port 8 to port 0: down (ends disagree: 0 says up, 0R says down)`
fn state_line(link: &LiveLink, id: &DeviceId) -> String {
    let [one, other] = &link.ends;
    let (here, there) = if one.id == *id { (one, other) } else { (other, one) };
    let port = |port: Option<u32>| port.map_or("?".into(), |port| port.to_string());
    let remark = link.remark().map(|remark| format!(" ({remark})")).unwrap_or_default();
    format!("        port {} to port {}: {}{remark}\n", port(here.port), port(there.port), link.state.name())
}

/// The ports whose other end is not known, by state.
fn other_ports(live: &LiveLinks, id: &DeviceId) -> String {
    let mut text = String::new();
    let ports: Vec<&LivePort> = live.ports.iter().filter(|port| port.id == *id && port.other.is_none()).collect();
    for state in LinkState::ALL {
        let names = ports.iter().filter(|port| port.state == state).map(|port| port.port.to_string());
        let names: Vec<String> = names.collect();
        if !names.is_empty() {
            let word = if names.len() == 1 { "port" } else { "ports" };
            text += &format!("    {word} {}: {}\n", names.join(", "), state.name());
        }
    }
    text
}
