//! Regions as the real libtt_metal wrote them in seven situations, as version 4 is described, and as others might.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use sources::decode::{REGION_SIZE, RegionError, region};
use std::path::Path;

/// Reads a region that is kept as text: an offset and eight bytes a line.
fn golden(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/regions").join(name).with_extension("txt");
    let mut bytes = vec![0; REGION_SIZE];
    for line in std::fs::read_to_string(path).unwrap().lines().filter(|line| !line.starts_with('#')) {
        let (offset, word) = line.split_once(' ').unwrap();
        let (offset, word): (usize, _) = (offset.parse().unwrap(), u64::from_str_radix(word, 16).unwrap());
        bytes[offset..offset + 8].copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

fn check(name: &str, expected: Expect) {
    let region = region(&golden(name)).unwrap();
    let mut text = format!("chip {} device {} totals {:?}\n", region.asic_id, region.device_id, region.totals);
    for slot in region.slots.iter().take(4) {
        text += &format!("{}: pid {} {:?}\n", slot.index, slot.pid, slot.bytes);
    }
    expected.assert_eq(&text);
}

#[test]
fn a_process_that_has_allocated_every_kind() {
    check(
        "one_process_all_types",
        expect![[r#"
        chip 72059269368820857 device 0 totals [2097152, 131072, 4096, 8192, 786432]
        0: pid 19404 [2097152, 131072, 4096, 8192, 786432]
    "#]],
    );
}

#[test]
fn a_process_that_has_allocated_nothing_has_no_slot() {
    check(
        "attached_no_alloc",
        expect![[r#"
        chip 72059269368820857 device 0 totals [0, 0, 0, 0, 0]
    "#]],
    );
}

#[test]
fn two_processes_have_a_slot_each() {
    check(
        "two_processes",
        expect![[r#"
        chip 72059269368820857 device 0 totals [3145728, 131072, 4096, 8192, 786432]
        0: pid 19404 [2097152, 131072, 4096, 8192, 786432]
        1: pid 19405 [1048576, 0, 0, 0, 0]
    "#]],
    );
}

#[test]
fn a_killed_process_leaves_its_bytes() {
    check(
        "second_sigkilled",
        expect![[r#"
        chip 72059269368820857 device 0 totals [3145728, 131072, 4096, 8192, 786432]
        0: pid 19404 [2097152, 131072, 4096, 8192, 786432]
        1: pid 19405 [1048576, 0, 0, 0, 0]
    "#]],
    );
}

#[test]
fn a_leak_outlives_the_clean_close_of_the_other() {
    check(
        "first_closed_leak_stays",
        expect![[r#"
        chip 72059269368820857 device 0 totals [1048576, 0, 0, 0, 0]
        1: pid 19405 [1048576, 0, 0, 0, 0]
    "#]],
    );
}

#[test]
fn a_clean_close_leaves_nothing() {
    check(
        "clean_closed",
        expect![[r#"
        chip 72059269368820857 device 0 totals [0, 0, 0, 0, 0]
    "#]],
    );
}

#[test]
fn the_65th_process_finds_no_slot_though_its_bytes_are_in_the_total() {
    assert_eq!(region(&golden("slot_overflow")).unwrap().slots.len(), 64);
    check(
        "slot_overflow",
        expect![[r#"
        chip 72059269368820857 device 0 totals [700, 0, 0, 0, 0]
        0: pid 100000 [10, 0, 0, 0, 0]
        1: pid 100001 [10, 0, 0, 0, 0]
        2: pid 100002 [10, 0, 0, 0, 0]
        3: pid 100003 [10, 0, 0, 0, 0]
    "#]],
    );
}

#[test]
fn version_4_counts_when_it_is_ready() {
    let mut bytes = golden("two_processes");
    bytes[0] = 4;
    assert_eq!(region(&bytes), Err(RegionError::NotReady));
    bytes[8536..8540].copy_from_slice(&0x5245_4459u32.to_le_bytes());
    let expected = region(&golden("two_processes")).unwrap();
    assert_eq!(region(&bytes), Ok(expected.clone()));
    // A slot that is being released.
    bytes[856..860].copy_from_slice(&(-1i32).to_le_bytes());
    assert_eq!(region(&bytes).unwrap().slots.len(), expected.slots.len() - 1);
}

#[test]
fn version_4_has_processes_before_their_first_allocation_and_none_that_leaves() {
    check(
        "version_4",
        expect![[r#"
        chip 72059269368820857 device 0 totals [3145728, 131072, 4096, 8192, 65536]
        0: pid 19404 [2097152, 131072, 4096, 8192, 65536]
        1: pid 19405 [0, 0, 0, 0, 0]
        3: pid 19407 [1048576, 0, 0, 0, 0]
    "#]],
    );
}

#[test]
fn an_unknown_layout_is_refused_in_words() {
    let mut bytes = golden("two_processes");
    bytes[0] = 5;
    assert_eq!(region(&bytes).unwrap_err().to_string(), "unknown layout 5: only versions 3 and 4 are known");
    let error = region(&bytes[..100]).unwrap_err();
    assert_eq!(error.to_string(), "has 100 bytes where tt-metal writes 8576");
}

proptest! {
    #[test]
    fn any_bytes_are_a_region_or_a_reason(bytes in prop::collection::vec(any::<u8>(), 0..9000)) {
        let _ = region(&bytes);
    }

    #[test]
    fn a_region_of_any_bytes_claims_no_more_than_stands_in_it(mut bytes in prop::collection::vec(any::<u8>(), REGION_SIZE)) {
        bytes[..4].copy_from_slice(&3u32.to_le_bytes());
        let region = region(&bytes).unwrap();
        for slot in &region.slots {
            let at = 856 + 120 * slot.index;
            prop_assert!(slot.pid > 0 && slot.pid <= i32::MAX as u32);
            for (kind, value) in slot.bytes.iter().enumerate() {
                prop_assert_eq!(&bytes[at + 8 + 8 * kind..][..8], &value.to_le_bytes());
            }
        }
    }

    #[test]
    fn a_mutated_region_still_decodes(at in 4usize..REGION_SIZE, byte: u8) {
        let mut bytes = golden("one_process_all_types");
        bytes[at] = byte;
        prop_assert!(region(&bytes).is_ok());
    }
}
