//! Any bytes in the place of tt-metal's operations report: `cargo +nightly fuzz run operations_report`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use watch::overlay::operations_report;

const HEAD: &[u8] = b"OP CODE,GLOBAL CALL COUNT,DEVICE ID,HOST START TS,HOST END TS,DEVICE FW START CYCLE,DEVICE FW END CYCLE,\
    DEVICE FW DURATION [ns]\n";

fuzz_target!(|bytes: &[u8]| {
    let check = |bytes: &[u8]| {
        let mut slices = 0;
        let head = operations_report::decode(bytes, |slice| {
            assert!(slice.start <= slice.end && slice.name.len() <= 256);
            slices += 1;
        });
        if let Ok(head) = head {
            assert!(slices <= bytes.len() && head.gigahertz.is_none_or(|gigahertz| gigahertz > 0.0));
        }
    };
    check(bytes);
    check(&[HEAD, bytes].concat());
});
