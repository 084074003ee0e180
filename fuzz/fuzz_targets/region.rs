//! Any bytes as a tt-metal region: `cargo +nightly fuzz run region`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sources::decode;

fuzz_target!(|bytes: &[u8]| {
    // Most inputs are too short to be a region; filled up, they reach the decoder.
    let mut whole = [0; decode::REGION_SIZE];
    let length = bytes.len().min(whole.len());
    whole[..length].copy_from_slice(&bytes[..length]);
    for input in [bytes, &whole] {
        if let Ok(region) = decode::region(input) {
            assert!(region.slots.len() <= 64);
            assert!(region.slots.iter().all(|slot| slot.pid > 0 && slot.index < 64));
        }
    }
});
