//! Any bytes as a tt-metal region: `cargo +nightly fuzz run region`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sources::decode;

fuzz_target!(|bytes: &[u8]| {
    let _ = decode::region(bytes);
    // Few inputs would be a region by themselves: laid over a whole one of each version, all reach the decoder.
    for version in [3u32, 4] {
        let mut whole = [0; decode::REGION_SIZE];
        let length = bytes.len().min(whole.len() - 4);
        whole[4..4 + length].copy_from_slice(&bytes[..length]);
        whole[..4].copy_from_slice(&version.to_le_bytes());
        if let Ok(region) = decode::region(&whole) {
            assert!(region.slots.len() <= 64);
            assert!(region.slots.iter().all(|slot| slot.pid > 0 && slot.index < 64));
        }
    }
});
