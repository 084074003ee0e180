//! The provider alone, without a device.

use super::harness::Harness;
use super::region::{CHIPS, FREE_CHIP, PROCESSES, Region};
use super::wheel::wheel;

#[test]
fn a_provider_counts_in_the_documented_places() {
    let Some(ttnn) = wheel("a_provider_counts_in_the_documented_places") else { return };
    let region = Region::unused();
    let mut harness = Harness::shm(&ttnn);

    harness.ok(&format!("open 1 {} 7", region.asic_id));
    let bytes = region.read();
    assert_eq!(bytes.len(), 8576);
    assert_eq!(bytes.u32(0), 3, "version");
    assert_eq!(bytes.u32(16), 1, "attachments");
    assert_eq!(bytes.u64(32), region.asic_id);
    assert_eq!(bytes.u32(40), 7, "device id");
    assert_eq!(bytes.totals(), [0; 5]);
    assert_eq!(bytes.u32(CHIPS), 7, "the creator's device is the first chip");
    assert_eq!(bytes.u32(CHIPS + 48), FREE_CHIP);
    assert_eq!(bytes.u32(PROCESSES), 0, "no slot before the first allocation");

    for (bytes, kind) in [(5000, "dram"), (400, "l1"), (30, "l1_small"), (2, "trace"), (1, "cb")] {
        harness.ok(&format!("alloc 1 {bytes} {kind}"));
    }
    harness.ok("alloc 1 600 dram 3");
    harness.ok("free 1 100 l1");
    let bytes = region.read();
    assert_eq!(bytes.totals(), [5600, 300, 30, 2, 1]);
    assert_eq!(bytes.u32(CHIPS), 7, "first chip");
    assert_eq!(bytes.counters(CHIPS + 8), [5000, 300, 30, 2, 1]);
    assert_eq!(bytes.u32(CHIPS + 48), 3, "second chip");
    assert_eq!(bytes.counters(CHIPS + 48 + 8), [600, 0, 0, 0, 0]);
    assert_eq!(bytes.u32(CHIPS + 2 * 48), FREE_CHIP);
    assert_eq!(bytes.u32(PROCESSES), harness.pid());
    assert_eq!(bytes.counters(PROCESSES + 8), [5600, 300, 30, 2, 1]);
    assert_eq!(bytes.0[PROCESSES + 56..][..16], *b"ttmetal-harness\0");
    assert_eq!(bytes.u32(PROCESSES + 120), 0, "one slot only");

    assert_eq!(harness.ask("alloc 2 1 dram"), "ERR slot 2 is not open");
    harness.ok("close 1");
    let bytes = region.read();
    assert_eq!(bytes.u32(16), 0, "attachments");
    assert_eq!(bytes.totals(), [0; 5]);
    assert_eq!(bytes.u32(PROCESSES), 0, "the slot is free again");

    harness.ok(&format!("open 2 {} 0", region.asic_id));
    assert_eq!(region.read().u32(16), 1, "attachments");
    harness.ok("quit");
    assert_eq!(region.read().u32(16), 0, "attachments");
    assert!(harness.wait().success());
}
