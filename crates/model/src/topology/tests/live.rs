//! Which links are up, by masks made by hand.

use super::*;
use crate::{Deep, State};
use expect_test::expect;
use proptest::prelude::*;

/// A deep read with these ports up, of so many.
fn masks(device: &mut Device, count: u32, up: impl Fn(u32) -> bool) {
    let deep = device.deep.get_or_insert_default();
    deep.eth_link_up = (0..count).map(|port| Some(up(port))).collect();
    deep.eth_heartbeat = vec![Some(true); count as usize];
}

/// All ports of all chips with PCIe are up, unless they are among these.
fn all_up_but(devices: &mut [Device], down: &[(u32, u32)]) {
    for device in devices.iter_mut() {
        let DeviceId::Local(n) = device.id else { continue };
        let count = if device.arch == Some(Arch::Wormhole) { 16 } else { 14 };
        masks(device, count, |port| !down.contains(&(n, port)));
    }
}

/// The links that are not up, the unused ports, and the summary.
fn text(topology: &Topology, devices: &[Device]) -> String {
    let live = live(topology, devices);
    let mut text = String::new();
    for link in live.links.iter().filter(|link| link.state != LinkState::Up) {
        let end = |end: &LinkEnd| format!("{}.{}", end.id, end.port.map_or("?".into(), |port| port.to_string()));
        text += &format!("{} – {}: {}", end(&link.ends[0]), end(&link.ends[1]), link.state.name());
        text += &format!("{}\n", link.remark().map(|remark| format!(" ({remark})")).unwrap_or_default());
    }
    for state in LinkState::ALL {
        let ports = live.ports.iter().filter(|port| port.state == state).count();
        text += &if ports > 0 { format!("{ports} ports {}\n", state.name()) } else { String::new() };
    }
    text + &live.degraded().unwrap_or("all well".into()) + "\n"
}

#[test]
fn a_t3000_with_a_cut_cable_and_a_dead_on_board_link() {
    let mut devices = n300s(4);
    // The cable between 0 and 2 on port 7, and one of the links on board 1.
    all_up_but(&mut devices, &[(0, 7), (2, 7), (1, 9)]);
    let topology = from_descriptor(T3K_DESCRIPTOR, &devices).unwrap();
    expect![[r#"
        0.7 – 2.7: down
        0R.6 – 1R.6: unknown
        0R.7 – 1R.7: unknown
        1.9 – 1R.1: down
        2R.6 – 3R.6: unknown
        2R.7 – 3R.7: unknown
        61 ports up
        3 ports down
        2 of 16 links down
    "#]]
    .assert_eq(&text(&topology, &devices));
    // Only the boards are certain without a descriptor: the cables have no ports here.
    expect![[r#"
        0.? – 1.?: unknown
        0.? – 1.?: unknown
        0.? – 2.?: unknown
        0.? – 2.?: unknown
        0R.? – 1R.?: unknown
        0R.? – 1R.?: unknown
        1.9 – 1R.1: down
        1.? – 3.?: unknown
        1.? – 3.?: unknown
        2.? – 3.?: unknown
        2.? – 3.?: unknown
        2R.? – 3R.?: unknown
        2R.? – 3R.?: unknown
        61 ports up
        1 ports down
        2 ports not up
        1 of 8 links down
    "#]]
    .assert_eq(&text(&of_machine(&devices), &devices));
}

#[test]
fn the_links_on_a_p300_are_known_by_the_places_of_its_chips() {
    let mut devices = p300s(1);
    all_up_but(&mut devices, &[(0, 2), (1, 13)]);
    expect![[r#"
        0.? – 1.?: unknown
        0.? – 1.?: unknown
        26 ports up
        2 ports not up
        all well
    "#]]
    .assert_eq(&text(&of_machine(&devices), &devices));
    for (device, place) in devices.iter_mut().zip([0, 1]) {
        device.deep.get_or_insert_default().asic_location = Some(place);
    }
    expect![[r#"
        0.2 – 1.11: down (ends disagree: 0 says down, 1 says up)
        25 ports up
        2 ports down
        1 ports not up
        1 of 2 links down
    "#]]
    .assert_eq(&text(&of_machine(&devices), &devices));
    assert_eq!([0, 1].map(|n| board_links_down(&devices[n])), [Some(1), Some(0)]);
    devices[0].deep.get_or_insert_default().eth_heartbeat[2] = Some(false);
    devices[1].deep.get_or_insert_default().eth_link_up[11] = Some(false);
    let down = live(&of_machine(&devices), &devices).links.remove(0);
    assert_eq!(down.remark().unwrap(), "port firmware of 0 does not run");
}

#[test]
fn channels_of_a_blackhole_are_counted_without_the_ports_that_are_off() {
    let mut devices = p300s(1);
    all_up_but(&mut devices, &[(1, 11)]);
    // Those of tt-umd's example of a p300: ports 5 and 8 are off, so channel 9 is port 11.
    let text = |harvesting: &str| {
        format!(
            "arch:\n  0: blackhole\n  1: blackhole\nchips_with_mmio:\n  - 0: 0\n  - 1: 1\nethernet_connections:\n  \
             - [{{ chip: 0, chan: 2 }}, {{ chip: 1, chan: 9 }}]\n  - [{{ chip: 0, chan: 3 }}, {{ chip: 1, chan: 8 }}]\n{harvesting}"
        )
    };
    let off =
        "harvesting:\n  0: { eth_harvesting_mask: 288 }\n  1: { noc_translation: true, eth_harvesting_mask: 288 }\n";
    let known = from_descriptor(&text(off), &devices).unwrap();
    assert_eq!(known.links[0].ports, [[2, 11], [3, 10]]);
    assert_eq!(live(&known, &devices).degraded().unwrap(), "1 of 2 links down");
    let unknown = from_descriptor(&text(""), &devices).unwrap();
    assert_eq!((unknown.links[0].count, unknown.links[0].ports.len()), (2, 0), "which ports are off is not known");
    for device in &mut devices {
        let on = (0..14).map(|port| Some(port != 5 && port != 8)).collect();
        device.deep.get_or_insert_default().eth_enabled = on;
    }
    assert_eq!(from_descriptor(&text(""), &devices).unwrap().links[0].ports, [[2, 11], [3, 10]]);
}

#[test]
fn a_port_without_a_link_is_unused_and_one_that_leaves_the_machine_is_down() {
    let mut devices = n300s(1);
    devices[0].pci_address = Some(PciAddress("0000:41:00.0".into()));
    devices[1].pci_address = devices[0].pci_address.clone();
    devices.iter_mut().for_each(|device| device.serial = Some("010001451170C0C4".into()));
    all_up_but(&mut devices, &[(0, 3), (0, 9)]);
    let topology = from_descriptor(WRITTEN_BY_UMD, &devices).unwrap();
    expect![[r#"
        0.9 – 0R.1: down
        14 ports up
        1 ports down
        1 ports unused
        1 of 2 links down
    "#]]
    .assert_eq(&text(&topology, &devices));
    // The chip behind it says nothing, so neither does its link to the outside.
    assert_eq!(topology.place(&DeviceId::Remote(0)).unwrap().outside_ports, [7]);
    let outside = WRITTEN_BY_UMD.replace("    - chip: 1\n      chan: 7", "    - chip: 0\n      chan: 3");
    let topology = from_descriptor(&outside, &devices).unwrap();
    assert_eq!(live(&topology, &devices).degraded().unwrap(), "2 of 3 links down");
}

#[test]
fn a_galaxy_without_a_descriptor_has_no_link_that_is_down() {
    let mut devices = wormhole_galaxy();
    all_up_but(&mut devices, &[(3, 4), (4, 4)]);
    expect![[r#"
        510 ports up
        2 ports not up
        all well
    "#]]
    .assert_eq(&text(&of_machine(&devices), &devices));
    assert_eq!((ports_not_up(&devices[3]), ports_not_up(&devices[5])), (Some(1), Some(0)));
    devices[3].state = State::Hung;
    assert_eq!(ports_not_up(&devices[3]), None, "its last masks say nothing of now");
    assert_eq!(ports_not_up(&Device { deep: Some(Box::new(Deep::default())), ..devices[5].clone() }), None);
}

/// Wormhole and Blackhole boards whose ports say anything, or nothing.
fn any_machine() -> impl Strategy<Value = Vec<Device>> {
    let port = || proptest::option::weighted(0.9, any::<bool>());
    let ports = move || proptest::collection::vec(port(), 0..18);
    let chip = (ports(), ports(), ports(), proptest::option::of(0..3u32), any::<bool>());
    let boards = proptest::sample::select(vec!["t3k", "n300", "p300", "galaxy"]);
    (boards, proptest::collection::vec(chip, 32)).prop_map(|(board, chips)| {
        let mut devices = match board {
            "t3k" => n300s(4),
            "n300" => n300s(1),
            "p300" => p300s(2),
            _ => wormhole_galaxy(),
        };
        for (device, (up, heartbeat, enabled, place, has_deep)) in devices.iter_mut().zip(chips) {
            let deep = Deep {
                eth_link_up: up,
                eth_heartbeat: heartbeat,
                eth_enabled: enabled,
                asic_location: place,
                ..Deep::default()
            };
            device.deep = has_deep.then(|| Box::new(deep));
        }
        devices
    })
}

/// Links between any chips and channels of a machine.
fn any_descriptor() -> impl Strategy<Value = String> {
    let end = || (0..10u32, 0..18u32);
    proptest::collection::vec((end(), end()), 0..40).prop_map(|links| {
        let mut text = "arch:\n  0: wormhole_b0\nchips_with_mmio:\n".to_owned();
        (0..10).for_each(|n| text += &format!("  - {n}: {n}\n"));
        text += "ethernet_connections:\n";
        for ((a, x), (b, y)) in links {
            text += &format!("  - [{{ chip: {a}, chan: {x} }}, {{ chip: {b}, chan: {y} }}]\n");
        }
        text
    })
}

fn swapped(link: &LiveLink) -> LiveLink {
    let [one, other] = link.ends.clone();
    LiveLink { ends: [other, one], ..link.clone() }
}

proptest! {
    #[test]
    fn nothing_is_down_without_a_descriptor_but_what_is_on_a_board(devices in any_machine()) {
        let topology = of_machine(&devices);
        let live = live(&topology, &devices);
        for link in live.links.iter().filter(|link| link.state == LinkState::Down) {
            prop_assert_eq!(link.source, TopologySource::Board);
        }
        for port in live.ports.iter().filter(|port| port.state == LinkState::Down) {
            prop_assert!(port.other.is_some());
        }
        let down = live.links.iter().filter(|link| link.state == LinkState::Down).count();
        prop_assert_eq!(live.down(), down);
        // What a chip says of its own board is never more than what the links say.
        let is_n300 = |device: &&Device| device.board.as_deref() == Some("n300");
        let own: u32 = devices.iter().filter(is_n300).filter_map(board_links_down).sum();
        prop_assert!(own as usize <= 2 * down);
    }

    #[test]
    fn a_link_is_up_only_where_no_end_objects_and_down_only_where_one_does(
        devices in any_machine(), descriptor in any_descriptor(),
    ) {
        let topology = from_descriptor(&descriptor, &devices).unwrap();
        let live = live(&topology, &devices);
        for link in &live.links {
            let said: Vec<bool> = link.ends.iter().filter_map(|end| end.up).collect();
            let expected = match (said.is_empty(), said.contains(&false)) {
                (true, _) => LinkState::Unknown,
                (false, false) => LinkState::Up,
                (false, true) if link.source == TopologySource::Assumed => LinkState::NotUp,
                (false, true) => LinkState::Down,
            };
            prop_assert_eq!(link.state, expected);
            prop_assert_eq!(link.ends_disagree(), swapped(link).ends_disagree());
            prop_assert!(!link.ends_disagree() || link.state == LinkState::Down);
        }
        for port in &live.ports {
            let described = topology.place(&port.id).is_some_and(|chip| chip.is_described);
            prop_assert!(!(described && port.state == LinkState::NotUp));
            let link = live.links.iter().find(|link| {
                link.ends.iter().any(|end| end.id == port.id && end.port == Some(port.port))
            });
            prop_assert!(port.state != LinkState::Down || link.is_some());
        }
        prop_assert_eq!(live.degraded().is_some(), live.down() > 0);
    }
}
