//! What holds for any machine and any text.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn any_device() -> impl Strategy<Value = Device> {
    let boards = ["n150", "n300", "p150a", "p300a", "galaxy-wormhole", "galaxy-blackhole", "new"];
    let board = proptest::option::of(proptest::sample::select(boards.to_vec()));
    let id =
        (0..40u32, any::<bool>()).prop_map(|(n, local)| if local { DeviceId::Local(n) } else { DeviceId::Remote(n) });
    (id, board, proptest::option::of(any::<u8>()), proptest::option::of(0..4u8)).prop_map(|(id, board, bus, serial)| {
        let mut device = Device::new(id);
        device.board = board.map(Into::into);
        device.pci_address = bus.map(|bus| PciAddress(format!("0000:{bus:02x}:00.0").into()));
        device.serial = serial.map(|serial| format!("010001461180080{serial}").into());
        device
    })
}

fn all_have_a_place(topology: &Topology, devices: &[Device]) {
    let ids: Vec<&DeviceId> = devices.iter().map(|device| &device.id).collect();
    assert_eq!(topology.chips.iter().map(|chip| &chip.id).collect::<Vec<_>>(), ids);
    let places: BTreeSet<(u32, u32)> = topology.chips.iter().map(|chip| (chip.column, chip.row)).collect();
    assert_eq!(places.len(), devices.len());
    let GridShape { columns, rows } = topology.shape;
    assert!(topology.chips.iter().all(|chip| chip.column < columns && chip.row < rows));
    assert!(topology.chips.iter().all(|chip| chip.group < topology.groups.len()));
    for EthernetLink { ends, count, .. } in &topology.links {
        assert!(*count > 0 && ends[0] < ends[1] && ends.iter().all(|end| ids.contains(&end)), "{ends:?}");
    }
}

/// Pieces of descriptors, put together at random.
fn any_text() -> impl Strategy<Value = String> {
    let words =
        "arch chips ethernet_connections chips_with_mmio boards chip chan : [ ] { } , - \" ' # \\ 0 1 0x1 é --- &";
    let mut pieces: Vec<&str> = words.split(' ').collect();
    pieces.extend([": ", "\n", "\n  ", "\n    ", "- ", " #", "\t"]);
    let piece = prop_oneof![8 => proptest::sample::select(pieces).prop_map(str::to_owned), 1 => ".{0,3}"];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn every_device_has_one_place_and_no_two_the_same(devices in proptest::collection::vec(any_device(), 0..50)) {
        all_have_a_place(&of_machine(&devices), &devices);
        for text in [N300_DESCRIPTOR, T3K_DESCRIPTOR, WRITTEN_BY_UMD] {
            all_have_a_place(&from_descriptor(text, &devices).unwrap(), &devices);
        }
    }

    #[test]
    fn any_text_is_a_descriptor_or_an_error(text in any_text()) {
        let devices = n300s(2);
        match from_descriptor(&text, &devices) {
            Ok(topology) => all_have_a_place(&topology, &devices),
            Err(error) => prop_assert!((1..=text.lines().count().max(1)).contains(&error.line), "{error}"),
        }
    }

    #[test]
    fn a_damaged_descriptor_is_read_or_refused(at in 0..WRITTEN_BY_UMD.len(), byte in 32..127u8) {
        let mut bytes = WRITTEN_BY_UMD.as_bytes().to_vec();
        bytes[at] = byte;
        let devices = n300s(2);
        if let Ok(topology) = from_descriptor(&String::from_utf8(bytes).unwrap(), &devices) {
            all_have_a_place(&topology, &devices);
        }
    }
}
