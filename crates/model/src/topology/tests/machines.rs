//! What is known by boards alone.

use super::*;
use expect_test::expect;

#[test]
fn a_single_card_has_a_place_and_no_links() {
    machine(
        &[n150(0)],
        expect![[r#"
            0
            n150 serial 0100018611800100: 0
        "#]],
    );
}

#[test]
fn no_devices_are_an_empty_grid() {
    machine(&[], expect![]);
}

#[test]
fn the_chips_of_an_n300_are_joined() {
    machine(
        &n300s(1),
        expect![[r#"
            0   0R
            n300 serial 0100014611800800: 0 0R
            0 =2= 0R (Board)
        "#]],
    );
}

#[test]
fn four_n300_are_taken_for_a_t3000() {
    machine(
        &n300s(4),
        expect![[r#"
            0R  0   2   2R
            1R  1   3   3R
            n300 serial 0100014611800800: 0 0R
            n300 serial 0100014611800801: 1 1R
            n300 serial 0100014611800802: 2 2R
            n300 serial 0100014611800803: 3 3R
            0 =2= 0R (Board)
            0 =2= 1 (Assumed)
            0 =2= 2 (Assumed)
            0R =2= 1R (Assumed)
            1 =2= 1R (Board)
            1 =2= 3 (Assumed)
            2 =2= 2R (Board)
            2 =2= 3 (Assumed)
            2R =2= 3R (Assumed)
            3 =2= 3R (Board)
            ! Four n300 are taken for a T3000. Only a cluster descriptor says how they are cabled.
        "#]],
    );
}

#[test]
fn other_cards_beside_four_n300_make_it_no_t3000() {
    let mut devices = n300s(4);
    devices.push(n150(9));
    assert_eq!(of_machine(&devices).source, TopologySource::Board);
    assert_eq!(of_machine(&n300s(3)).source, TopologySource::Board);
    assert_eq!(of_machine(&n300s(5)).source, TopologySource::Board);
    assert_eq!(of_machine(&n300s(5)).links.len(), 5);
}

#[test]
fn the_boards_of_a_t3000_go_by_their_addresses() {
    let mut devices = n300s(4);
    for device in &mut devices {
        let bus = 9 - device.id.gateway().unwrap();
        device.pci_address = Some(PciAddress(format!("0000:{bus:02x}:00.0").into()));
    }
    let topology = of_machine(&devices);
    let place = |n| topology.place(&DeviceId::Local(n)).map(|chip| (chip.column, chip.row)).unwrap();
    assert_eq!([place(3), place(2), place(1), place(0)], [(1, 0), (1, 1), (2, 0), (2, 1)]);
}

#[test]
fn the_chips_of_a_p300_are_joined_by_their_serial() {
    machine(
        &p300s(2),
        expect![[r#"
            0   1   2   3
            p300a serial 0000045131900000: 0 1
            p300a serial 0000045131900001: 2 3
            0 =2= 1 (Board)
            2 =2= 3 (Board)
        "#]],
    );
}

#[test]
fn a_wormhole_galaxy_is_four_trays() {
    machine(
        &wormhole_galaxy(),
        expect![[r#"
            0   1   2   3   4   5   6   7
            8   9   10  11  12  13  14  15
            16  17  18  19  20  21  22  23
            24  25  26  27  28  29  30  31
            tray 1: 0 1 2 3 4 5 6 7
            tray 2: 8 9 10 11 12 13 14 15
            tray 3: 16 17 18 19 20 21 22 23
            tray 4: 24 25 26 27 28 29 30 31
        "#]],
    );
}

#[test]
fn a_blackhole_galaxy_is_four_trays() {
    machine(
        &blackhole_galaxy(),
        expect![[r#"
            0   1   2   3   4   5   6   7
            8   9   10  11  12  13  14  15
            16  17  18  19  20  21  22  23
            24  25  26  27  28  29  30  31
            tray 1: 0 1 2 3 4 5 6 7
            tray 2: 8 9 10 11 12 13 14 15
            tray 3: 16 17 18 19 20 21 22 23
            tray 4: 24 25 26 27 28 29 30 31
        "#]],
    );
}

#[test]
fn a_slot_of_a_galaxy_follows_from_the_bus_and_not_from_the_ordinal() {
    let mut devices = blackhole_galaxy();
    devices.retain(|device| [3, 4, 30].contains(&device.id.index().unwrap()));
    devices[0].id = DeviceId::Local(0);
    let mut unknown = card(DeviceId::Local(31), "galaxy-blackhole", "0000:9a:00.0", "0000047330000000");
    unknown.serial = None;
    devices.push(unknown);
    machine(
        &devices,
        expect![[r#"
            ·   ·   ·   0   4   ·   ·
            ·   ·   ·   ·   ·   ·   30
            31  ·   ·   ·   ·   ·   ·
            tray 1: 0 4
            tray 4: 30
            galaxy-blackhole, tray not known: 31
        "#]],
    );
}

#[test]
fn a_mixed_machine_has_boards_side_by_side() {
    let mut devices = vec![n150(0)];
    devices.extend(n300s(2).split_off(2));
    for (index, mut chip) in p300s(1).into_iter().enumerate() {
        chip.id = DeviceId::Local(index as u32 + 4);
        devices.push(chip);
    }
    devices.push(card(DeviceId::Local(6), "p150a", "0000:61:00.0", "000004033191404A"));
    machine(
        &devices,
        expect![[r#"
            0   1   1R
            4   5   6
            n150 serial 0100018611800100: 0
            n300 serial 0100014611800801: 1 1R
            p300a serial 0000045131900000: 4 5
            p150a serial 000004033191404A: 6
            1 =2= 1R (Board)
            4 =2= 5 (Board)
        "#]],
    );
}

#[test]
fn what_is_missing_is_not_made_up() {
    let nothing = Device::new(DeviceId::Local(0));
    let mut dead = card(DeviceId::Local(1), "p300a", "0000:02:00.0", "FFFFFFFFFFFFFFFF");
    dead.arch = None;
    let mut other = dead.clone();
    other.id = DeviceId::Local(2);
    other.pci_address = None;
    let mut unbound = Device::new(DeviceId::NoDriver(PciAddress("0000:07:00.0".into())));
    unbound.pci_address = Some(PciAddress("0000:07:00.0".into()));
    let remote = Device::new(DeviceId::Remote(5));
    machine(
        &[nothing, dead, other, remote, unbound],
        expect![[r#"
            0   1   2   5R
            0000:07:00.0 ·   ·   ·
            card of device 0: 0
            p300a at 0000:02:00.0: 1
            p300a of device 2: 2
            card of device 5: 5R
            card at 0000:07:00.0: 0000:07:00.0
        "#]],
    );
}

#[test]
fn three_chips_with_one_serial_cannot_be_distinguished() {
    let mut devices = p300s(2);
    devices[2].serial = devices[0].serial.clone();
    machine(
        &devices,
        expect![[r#"
            0   1   2   3
            p300a serial 0000045131900000: 0 1 2
            p300a serial 0000045131900001: 3
        "#]],
    );
}

#[test]
fn neighbours_are_found_from_both_ends() {
    let topology = of_machine(&n300s(4));
    let names = |id| topology.neighbours(&id).map(|(other, _)| other.to_string()).collect::<Vec<_>>();
    assert_eq!(names(DeviceId::Local(0)), ["0R", "1", "2"]);
    assert_eq!(names(DeviceId::Remote(3)), ["2R", "3"]);
    assert_eq!(names(DeviceId::Local(7)), [""; 0]);
}

#[test]
fn a_topology_survives_json() {
    let topology = of_machine(&n300s(4));
    let text = serde_json::to_string(&topology).unwrap();
    assert_eq!(serde_json::from_str::<Topology>(&text).unwrap(), topology);
}
