//! Any bytes in the place of tt-metal's device profiler log: `cargo +nightly fuzz run device_log`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use watch::overlay::device_log;

const HEAD: &[u8] = b"ARCH: wormhole_b0, CHIP_FREQ[MHz]: 1000, Max Compute Cores: 64\n\
    PCIe slot, core_x, core_y, RISC processor type, time[cycles since reset], run host ID, zone name, type\n";

fuzz_target!(|bytes: &[u8]| {
    let check = |bytes: &[u8]| {
        let mut slices = 0;
        let head = device_log::decode(bytes, |slice| {
            assert!(slice.start <= slice.end && slice.name.len() <= 256);
            slices += 1;
        });
        if let Ok(head) = head {
            assert!(head.megahertz > 0.0 && slices + head.unmatched <= bytes.len() as u64);
        }
    };
    check(bytes);
    check(&[HEAD, bytes].concat());
});
