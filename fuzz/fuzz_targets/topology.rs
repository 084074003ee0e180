//! Any text as a cluster descriptor: `cargo +nightly fuzz run topology`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::topology::from_descriptor;
use model::{Device, DeviceId};
use std::collections::BTreeSet;

fuzz_target!(|text: &str| {
    let devices: Vec<Device> =
        (0..4).flat_map(|n| [DeviceId::Local(n), DeviceId::Remote(n)]).map(Device::new).collect();
    match from_descriptor(text, &devices) {
        Ok(topology) => {
            let places: BTreeSet<(u32, u32)> = topology.chips.iter().map(|chip| (chip.column, chip.row)).collect();
            assert_eq!(places.len(), devices.len());
        }
        Err(error) => assert!((1..=text.lines().count().max(1)).contains(&error.line)),
    }
});
