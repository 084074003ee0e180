//! Any bytes in the kernel's log: `cargo +nightly fuzz run kmsg`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::{DeviceId, PciAddress};
use sources::decode::{self, PciPlace, PciPlaces};

fuzz_target!(|bytes: &[u8]| {
    let place = PciPlace {
        id: DeviceId::Local(0),
        address: PciAddress("0000:01:00.0".into()),
        bridges: vec![PciAddress("0000:00:01.0".into())],
    };
    let places = PciPlaces(vec![place]);
    let check = |bytes: &[u8]| {
        let Some(record) = decode::kernel_record(bytes) else { return };
        assert!(record.level < 8 && record.text.len() <= 3 * bytes.len());
        if let Some(meaning) = decode::kernel_meaning(&record, &places) {
            assert!(record.is_kernel && !meaning.sentence.is_some_and(str::is_empty));
        }
    };
    check(bytes);
    check(&[b"3,1,1,-;tenstorrent 0000:01:00.0: ", bytes].concat());
    let mut rest = bytes;
    while let Some((first, others)) = decode::split_kernel_records(rest, true) {
        assert!(first.len() + others.len() < rest.len());
        check(first);
        rest = others;
    }
});
