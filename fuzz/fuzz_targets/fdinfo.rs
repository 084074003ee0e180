//! Any bytes in the text of an open file: `cargo +nightly fuzz run fdinfo`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sources::decode;

fuzz_target!(|bytes: &[u8]| {
    let mut text = b"drm-driver:\ttenstorrent\n".to_vec();
    text.extend_from_slice(bytes);
    let _ = decode::fdinfo(bytes);
    if let Some(info) = decode::fdinfo(&text) {
        assert!(info.engines.values().all(|engine| engine.capacity > 0));
        assert!(info.engines.keys().chain(&info.unknown_regions).all(|name| !name.is_empty()));
    }
});
