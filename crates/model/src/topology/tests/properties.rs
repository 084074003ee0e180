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
        device.board = board.map(str::to_owned);
        device.pci_address = bus.map(|bus| PciAddress(format!("0000:{bus:02x}:00.0")));
        device.serial = serial.map(|serial| format!("010001461180080{serial}"));
        device
    })
}

fn all_have_a_place(topology: &Topology, devices: &[Device]) {
    let ids: Vec<&DeviceId> = devices.iter().map(|device| &device.id).collect();
    assert_eq!(topology.chips.iter().map(|chip| &chip.id).collect::<Vec<_>>(), ids);
    let places: BTreeSet<(u32, u32)> = topology.chips.iter().map(|chip| (chip.column, chip.row)).collect();
    assert_eq!(places.len(), devices.len());
    let Shape { columns, rows } = topology.shape;
    assert!(topology.chips.iter().all(|chip| chip.column < columns && chip.row < rows));
    assert!(topology.chips.iter().all(|chip| chip.group < topology.groups.len()));
    for EthernetLink { ends, count, .. } in &topology.links {
        assert!(*count > 0 && ends[0] < ends[1] && ends.iter().all(|end| ids.contains(&end)), "{ends:?}");
    }
}

proptest! {
    #[test]
    fn every_device_has_one_place_and_no_two_the_same(devices in proptest::collection::vec(any_device(), 0..50)) {
        all_have_a_place(&of_machine(&devices), &devices);
    }
}
