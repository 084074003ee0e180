//! Any bytes in the place of the Inspector's answers, its schema, and what `/proc` says of sockets: `cargo +nightly fuzz run inspector`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sources::decode::inspector as decode;

/// The form of ttnn 0.81, shortened.
const SCHEMA: &str = "@0xf8b5d6e3c2a19074; struct Entry { workloadId @0 :UInt64; runtimeId @1 :UInt64; operationName @2 :Text; \
    operationParameters @3 :Text; traceId @4 :UInt32 = 0xFFFFFFFF; } \
    interface Inspector { getMeshWorkloadRuntimeEntries @7 () -> (runtimeEntries :List(Entry)); }";

fuzz_target!(|bytes: &[u8]| {
    let schema = decode::schema(SCHEMA).expect("is a schema");
    if let Ok(list) = decode::operations(bytes, 1, &schema.entry, 7) {
        assert!(list.launches <= 10_000 && list.operations.len() <= 10_000);
    }
    let _ = decode::chips(bytes, 1);
    if let Some(schema) = std::str::from_utf8(bytes).ok().and_then(|text| decode::schema(text).ok()) {
        let _ = decode::operations(bytes, 1, &schema.entry, 7);
    }
    let _ = decode::tcp_sockets(bytes);
    let _ = decode::unix_listener(bytes, b"/tmp/inspector");
    let _ = decode::settings(bytes);
    let _ = decode::socket_of(bytes);
});
