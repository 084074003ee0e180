//! Any bytes in the files of `/proc`, in those of container runtimes and in a lock of tt-umd: `cargo +nightly fuzz run proc`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sources::decode;

fuzz_target!(|bytes: &[u8]| {
    let (holders, _) = decode::pids(bytes);
    assert!(!holders.pids.contains(&0));
    let _ = decode::maps(bytes);
    let _ = decode::stat(bytes);
    let _ = decode::status(bytes);
    let _ = decode::owner_of(bytes);
    let _ = decode::names_in(bytes);
    let _ = decode::podman_name(bytes, "3f2a9c1b7d4e");
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = decode::cgroup(text);
    }
});
