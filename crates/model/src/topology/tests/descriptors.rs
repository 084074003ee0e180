//! What a cluster descriptor adds.

use super::*;
use expect_test::expect;

#[test]
fn the_descriptor_of_an_n300_has_its_links() {
    let mut devices = n300s(1);
    devices.iter_mut().for_each(|device| device.serial = Some("0100014611800300".into()));
    described(
        N300_DESCRIPTOR,
        &devices,
        expect![[r#"
            0   0R
            n300 serial 0100014611800300: 0 0R
            0 =2= 0R (Descriptor)
        "#]],
    );
}

#[test]
fn the_descriptor_of_a_t3000_has_places_and_cables() {
    described(
        T3K_DESCRIPTOR,
        &n300s(4),
        expect![[r#"
            0R  0   2   2R
            1R  1   3   3R
            n300 serial 0100014611800800: 0 0R
            n300 serial 0100014611800801: 1 1R
            n300 serial 0100014611800802: 2 2R
            n300 serial 0100014611800803: 3 3R
            0 =2= 0R (Descriptor)
            0 =2= 1 (Descriptor)
            0 =2= 2 (Descriptor)
            0R =2= 1R (Descriptor)
            1 =2= 1R (Descriptor)
            1 =2= 3 (Descriptor)
            2 =2= 2R (Descriptor)
            2 =2= 3 (Descriptor)
            2R =2= 3R (Descriptor)
            3 =2= 3R (Descriptor)
        "#]],
    );
}

#[test]
fn a_chip_is_found_by_its_board_where_ordinals_have_changed() {
    let mut devices = n300s(4);
    for device in &mut devices {
        let (DeviceId::Local(n) | DeviceId::Remote(n)) = &mut device.id else { unreachable!() };
        *n = 7 - *n;
    }
    let topology = from_descriptor(T3K_DESCRIPTOR, &devices).unwrap();
    assert_eq!(topology.remarks, [""; 0]);
    let place = |id| topology.place(&id).map(|chip| (chip.column, chip.row)).unwrap();
    assert_eq!([place(DeviceId::Local(7)), place(DeviceId::Remote(7))], [(1, 0), (0, 0)]);
}

#[test]
fn chips_are_found_by_their_unique_ids() {
    let mut devices = n300s(5);
    devices.iter_mut().skip(8).for_each(|device| device.serial = Some("010001451170C0C4".into()));
    devices.drain(2..8);
    described(
        WRITTEN_BY_UMD,
        &devices,
        expect![[r#"
            4   ·
            4R  ·
            0   0R
            n300 serial 0100014611800800: 0 0R
            n300 serial 010001451170C0C4: 4 4R
            0 =2= 0R (Board)
            4 =2= 4R (Descriptor)
            ! Devices 0, 0R are not in the descriptor.
        "#]],
    );
    let topology = from_descriptor(WRITTEN_BY_UMD, &devices).unwrap();
    let outside = |id| topology.place(&id).unwrap().outside_links;
    assert_eq!(outside(DeviceId::Remote(4)), Some(1));
    assert_eq!([outside(DeviceId::Local(4)), outside(DeviceId::Remote(0))], [Some(0), None]);
}

#[test]
fn a_chip_is_found_by_address_bus_or_ordinal_where_nothing_else_is_known() {
    let found = |text: &str, device: Device| from_descriptor(text, &[device]).unwrap().remarks.is_empty();
    let bare = |address: Option<&str>| {
        let mut device = Device::new(DeviceId::Local(3));
        device.pci_address = address.map(|address| PciAddress(address.into()));
        device
    };
    let ordinal = "arch: {0: blackhole}\nchips_with_mmio: [0: 3]\n";
    let address = "arch: {0: blackhole}\nchips_with_mmio: [0: 7]\nchip_pci_bdfs: {0: 0000:4A:00.0}\n";
    let bus = "arch: {0: blackhole}\nchips_with_mmio: [0: 7]\nchip_to_bus_id: {0: \"0x004a\"}\n";
    assert!(found(ordinal, bare(None)));
    assert!(found(address, bare(Some("0000:4a:00.0"))));
    assert!(found(bus, bare(Some("0000:4a:00.0"))));
    assert!(!found(&address.replace('7', "3"), bare(Some("0000:4b:00.0"))), "the address says otherwise");
    assert!(!found(&bus.replace('7', "3"), bare(Some("0000:4b:00.0"))), "the bus says otherwise");
    assert!(found(&address.replace('7', "3"), bare(None)));
    assert!(!found(&format!("{ordinal}io_device_type: JTAG"), bare(None)), "it is the number of a probe");
    let wormhole = Device { arch: Some(Arch::Wormhole), ..bare(None) };
    assert!(!found(ordinal, wormhole));
    let other = Device { serial: Some("0000040331914049".into()), ..bare(None) };
    assert!(!found(&format!("{ordinal}boards: [[board_id: 7, chips: [0]]]"), other));
}

#[test]
fn a_device_is_one_chip_only() {
    let text = "arch: {0: wormhole_b0, 1: wormhole_b0}\nchips_with_mmio: [{0: 0}, {1: 0}]";
    described(
        text,
        &[n150(0)],
        expect![[r#"
            0
            n150 serial 0100018611800100: 0
            ! Chip 1 of the descriptor is not found in this machine.
        "#]],
    );
}

#[test]
fn the_chips_of_a_galaxy_are_found_by_their_buses() {
    let devices = wormhole_galaxy();
    let member = |what: fn(usize, &Device) -> String| {
        let lines = devices.iter().enumerate().map(|(n, device)| format!("  {n}: {}\n", what(n, device)));
        lines.collect::<String>()
    };
    let link = |n: u32| format!("- [{{chip: {n}, chan: 8}}, {{chip: {}, chan: 4}}]\n", (n + 8) % 32);
    let text = format!(
        "arch:\n{}chip_unique_ids:\n{}chip_to_bus_id:\n{}chips_with_mmio:\n{}ethernet_connections:\n{}boards:\n{}",
        member(|_, _| "wormhole_b0".into()),
        member(|n, _| ((n as u64 % 8 + 1) << 56 | 0x0351_0000_0000).to_string()),
        member(|_, device| format!("\"0x00{}\"", &device.pci_address.as_ref().unwrap().0[5..7])),
        // Ordinals that the driver would not give.
        member(|n, _| (n + 5).to_string()).replace("  ", "  - "),
        (0..32).map(link).collect::<String>(),
        "- [board_id: 72061240465162240, board_type: ubb, chips: [0, 1]]",
    );
    let topology = from_descriptor(&text, &devices).unwrap();
    assert_eq!(topology.remarks, [""; 0]);
    assert_eq!(topology.shape, GridShape { columns: 8, rows: 4 });
    assert_eq!(topology.links.len(), 32);
    let names = topology.neighbours(&DeviceId::Local(9)).map(|(other, _)| other.to_string()).collect::<Vec<_>>();
    assert_eq!(names, ["1", "17"]);
}

#[test]
fn a_descriptor_of_another_machine_is_not_used() {
    described(
        T3K_DESCRIPTOR,
        &[n150(0), n150(1)],
        expect![[r#"
            0   1
            n150 serial 0100018611800100: 0
            n150 serial 0100018611800101: 1
            ! Chips 0, 1, 2, 3, 4, 5, 6, 7 of the descriptor are not found in this machine.
            ! Devices 0, 1 are not in the descriptor.
        "#]],
    );
}

#[test]
fn links_may_be_written_in_the_flow_style_and_twice() {
    let text = "
        arch: {
           0: blackhole,   # the first
           1: blackhole,
        }
        chips: {}
        ethernet_connections: [
           [{chip: 0, chan: 8}, {chip: 1, chan: 0}, {routing_enabled: true}],
           [{chip: 1, chan: 0}, {chip: 0, chan: 8}],
           [{chip: 1, chan: 3}, {chip: 1, chan: 4}],
           [{chip: 1, chan: 5}, {chip: 9, chan: 4}],
        ]
        chips_with_mmio: [
           0: 1, 1: 0,
        ]";
    described(
        text,
        &p300s(1),
        expect![[r#"
            0   1
            p300a serial 0000045131900000: 0 1
            0 =1= 1 (Descriptor)
            ! A link leads to chip 9, which the descriptor lacks.
            ! Chip 1 of the descriptor is linked with itself.
        "#]],
    );
}

#[test]
fn two_parts_without_a_link_are_drawn_one_below_the_other() {
    let text = "
arch: {0: wormhole_b0, 1: wormhole_b0, 2: wormhole_b0, 3: wormhole_b0}
chips: {0: [0, 0, 0, 0], 1: [1, 0, 0, 0], 2: [0, 0, 0, 0], 3: [1, 0, 0, 0]}
ethernet_connections:
- [{chip: 0, chan: 8}, {chip: 1, chan: 0}]
- [{chip: 2, chan: 8}, {chip: 3, chan: 0}]
chips_with_mmio: [{0: 0}, {1: 1}, {2: 2}, {3: 3}]";
    described(
        text,
        &[n150(0), n150(1), n150(2), n150(3), n150(4)],
        expect![[r#"
            0   1
            2   3
            4   ·
            n150 serial 0100018611800100: 0
            n150 serial 0100018611800101: 1
            n150 serial 0100018611800102: 2
            n150 serial 0100018611800103: 3
            n150 serial 0100018611800104: 4
            0 =1= 1 (Descriptor)
            2 =1= 3 (Descriptor)
            ! Device 4 is not in the descriptor.
        "#]],
    );
}

#[test]
fn an_error_names_its_line() {
    let check = |text: &str, expected: Expect| {
        expected.assert_eq(&from_descriptor(text, &[]).unwrap_err().to_string());
    };
    check("", expect!["line 1: there is nothing in it"]);
    check("# nothing\n", expect!["line 1: there is nothing in it"]);
    check("hello", expect![[r#"line 1: a mapping is expected here, not "hello""#]]);
    check("- 1\n- 2", expect!["line 1: a mapping is expected here, not a list"]);
    check("colour: red", expect![[r#"line 1: this is no cluster descriptor: it has neither "arch" nor "chips""#]]);
    check("arch:\n  zero: wormhole_b0", expect![[r#"line 2: a whole number is expected here, not "zero""#]]);
    check("arch:\n  0: [a]", expect!["line 2: a word is expected here, not a list"]);
    check("arch:\n  0: a\n   1: b", expect!["line 3: this is indented deeper than what it belongs to"]);
    check("arch:\n  0: a\n  0: b", expect![[r#"line 3: "0" is here twice"#]]);
    check("arch: {0: a, 0: b}", expect![[r#"line 1: "0" is here twice"#]]);
    check("arch: {0: a\n\n", expect!["line 1: a bracket is not closed"]);
    check("arch: {0: a} b", expect![[r#"line 1: "b" comes after a value"#]]);
    check("arch: {0: a]", expect!["line 1: a comma or '}' is expected before ']'"]);
    check("arch: {0 1}", expect!["line 1: a word is expected here, not nothing"]);
    check("arch: &x\n  0: a", expect!["line 1: a value that begins with '&' is not understood"]);
    check("arch: \"unclosed", expect!["line 1: a quote is not closed"]);
    check("arch:\n\t0: a", expect!["line 2: a tab is no indentation"]);
    check("arch:\n  0: a: b", expect!["line 2: a second colon on one line"]);
    check("chips:\n  0: [1, 2]", expect!["line 2: a list of column, row, rack and shelf is expected here, not a list"]);
    check("chips:\n  0: [1, 2, -3, 4]", expect![[r#"line 2: a whole number is expected here, not "-3""#]]);
    check("chips: {}\nethernet_connections:\n  - [{chip: 1, chan: 2}]", expect!["line 3: a connection has two ends"]);
    check(
        "chips: {}\nethernet_connections:\n  - [{chip: 1}, {chan: 2}]",
        expect![[r#"line 3: an end of a link lacks "chan""#]],
    );
    check("chips: {}\nboards: 5", expect![[r#"line 2: a list is expected here, not "5""#]]);
    check("chips: {}\n---\nchips: {}", expect!["line 2: a second document begins here"]);
    check(&format!("chips: {}", "[".repeat(1000)), expect!["line 1: this is nested too deeply"]);
    check(&"- ".repeat(1000), expect!["line 1: this is nested too deeply"]);
}

#[test]
fn coordinates_beyond_any_machine_are_not_drawn() {
    let text = "
arch: {0: wormhole_b0, 1: wormhole_b0}
chips: {0: [0, 0, 0, 0], 1: [4000000000, 18446744073709551615, 0, 0]}
ethernet_connections: [[{chip: 0, chan: 8}, {chip: 1, chan: 0}]]
chips_with_mmio: [0, 1]";
    described(
        text,
        &[n150(0), n150(1)],
        expect![[r#"
            0
            1
            n150 serial 0100018611800100: 0
            n150 serial 0100018611800101: 1
            0 =1= 1 (Descriptor)
            ! Chip 1 of the descriptor is too far off to be drawn where it says.
        "#]],
    );
}

#[test]
fn two_shelves_are_drawn_one_below_the_other_though_they_are_linked() {
    let text = "
arch: {0: wormhole_b0, 1: wormhole_b0, 2: wormhole_b0, 3: wormhole_b0}
chips: {0: [0, 0, 0, 0], 1: [1, 0, 0, 0], 2: [0, 0, 0, 1], 3: [1, 0, 0, 1]}
ethernet_connections:
- [{chip: 0, chan: 8}, {chip: 1, chan: 0}]
- [{chip: 2, chan: 8}, {chip: 3, chan: 0}]
- [{chip: 1, chan: 8}, {chip: 2, chan: 0}]
chips_with_mmio: [{0: 0}, {1: 1}, {2: 2}, {3: 3}]";
    let topology = from_descriptor(text, &[n150(0), n150(1), n150(2), n150(3)]).unwrap();
    let places: Vec<(u32, u32)> = topology.chips.iter().map(|chip| (chip.column, chip.row)).collect();
    assert_eq!(places, [(0, 0), (1, 0), (0, 1), (1, 1)]);
}
