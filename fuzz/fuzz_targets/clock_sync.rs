//! Any bytes in the place of tt-metal's `sync_device_info.csv`: `cargo +nightly fuzz run clock_sync`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use watch::overlay::sync;

const HEAD: &[u8] = b"device id,device,host_real,host_start,delay,frequency,tracy_ratio,tracy_base_time\n";

fuzz_target!(|bytes: &[u8]| {
    for bytes in [bytes, &[HEAD, bytes].concat()] {
        for fixed in sync::decode(bytes).unwrap_or_default().values() {
            assert!(fixed.gigahertz > 0.0 && fixed.moments.len() == 1);
        }
    }
});
