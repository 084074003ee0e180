//! Devices of several chips, and of another architecture.

use super::cluster::Cluster;
use super::harness::Harness;
use super::wheel::{wheel, wheels};

#[test]
fn a_buffer_of_a_mesh_is_on_both_chips() {
    for ttnn in wheels("a_buffer_of_a_mesh_is_on_both_chips") {
        let cluster = Cluster::n300();
        let mut harness = Harness::mesh(&ttnn, &cluster, "1x2");
        harness.value("alloc 1 2048 2048 dram", "address");
        assert_eq!(harness.ask("cb 4096"), "OK cores=64");
        for region in &cluster.regions {
            assert_eq!(region.read().totals(), [2048, 0, 0, 0, 64 * 4096]);
        }
        // A tensor is the same thing with a buffer for each device around it.
        harness.value("tensor 2 4096 2048 l1", "address");
        harness.value("tensor 3 4096 2048 l1_small", "address");
        for region in &cluster.regions {
            assert_eq!(region.read().totals()[..3], [2048, 4096, 4096]);
        }
        // As the chips are in lock-step, there is one allocator for both.
        assert_eq!(harness.value("stats l1", "banks"), 64);
        assert_eq!(harness.allocated("dram"), 2048);
        harness.ok("quit");
        for region in &cluster.regions {
            assert_eq!(region.read().totals(), [0; 5]);
        }
    }
}

#[test]
fn without_a_shape_only_the_first_chip_has_buffers() {
    for ttnn in wheels("without_a_shape_only_the_first_chip_has_buffers") {
        let cluster = Cluster::n300();
        let mut harness = Harness::mock(&ttnn, &cluster);
        harness.value("alloc 1 2048 2048 dram", "address");
        assert_eq!(cluster.regions[0].read().totals(), [2048, 0, 0, 0, 0]);
        harness.ok("quit");
    }
}

#[test]
fn a_mesh_takes_eight_chips() {
    for ttnn in wheels("a_mesh_takes_eight_chips") {
        let cluster = Cluster::t3k();
        let mut harness = Harness::mesh(&ttnn, &cluster, "2x4");
        harness.value("alloc 1 2048 2048 l1", "address");
        for region in &cluster.regions {
            assert_eq!(region.read().totals(), [0, 2048, 0, 0, 0]);
        }
        harness.ok("quit");
    }
}

#[test]
fn a_part_of_a_cluster_is_a_mesh_too() {
    let Some(ttnn) = wheel("a_part_of_a_cluster_is_a_mesh_too") else { return };
    let cluster = Cluster::t3k();
    let mut harness = Harness::mesh(&ttnn, &cluster, "1x2");
    harness.value("alloc 1 2048 2048 dram", "address");
    let counted = cluster.regions.iter().filter(|region| region.exists() && region.read().totals()[0] == 2048);
    assert_eq!(counted.count(), 2);
    harness.ok("quit");
}

#[test]
fn a_blackhole_has_more_banks() {
    for ttnn in wheels("a_blackhole_has_more_banks") {
        let cluster = Cluster::p150();
        let mut harness = Harness::mock(&ttnn, &cluster);
        assert_eq!(harness.value("stats dram", "banks"), 8);
        assert_eq!(harness.value("stats l1", "banks"), 110);
        harness.value("alloc 1 2048 2048 l1", "address");
        assert_eq!(cluster.region().read().totals(), [0, 2048, 0, 0, 0]);
        assert_eq!(harness.ask("cb 4096"), "OK cores=110");
        harness.ok("quit");
    }
}
