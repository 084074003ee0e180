//! Buffers on a device.

use super::cluster::Cluster;
use super::harness::Harness;
use super::region::PROCESSES;
use super::wheel::wheels;

#[test]
fn a_buffer_on_a_mock_device_is_counted() {
    for ttnn in wheels("a_buffer_on_a_mock_device_is_counted") {
        let cluster = Cluster::n150();
        let mut harness = Harness::mock(&ttnn, &cluster);

        for (command, per_bank) in [
            // 1024 pages on 12 banks: 86 on the fullest.
            ("alloc 1 2097152 2048 dram", 86 * 2048),
            // 64 pages on 64 banks.
            ("alloc 2 131072 2048 l1", 2048),
            ("alloc 3 4096 4096 trace", 4096),
            // All on one core.
            ("alloc 4 8192 4096 l1_small", 8192),
        ] {
            let reply = harness.ask(command);
            assert!(reply.starts_with("OK address=") && reply.ends_with(&format!(" per_bank={per_bank}")), "{reply}");
        }
        let bytes = cluster.region().read();
        assert_eq!(bytes.totals(), [2_097_152, 131_072, 8192, 4096, 0]);
        assert_eq!(bytes.u32(PROCESSES), harness.pid());

        harness.ok("free 2");
        assert_eq!(cluster.region().read().totals(), [2_097_152, 0, 8192, 4096, 0]);
        assert_eq!(harness.ask("free 2"), "ERR there is no buffer 2");

        // The end of input closes the device, as `quit` does.
        harness.end_input();
        assert!(harness.wait().success());
        let bytes = cluster.region().read();
        assert_eq!(bytes.totals(), [0; 5]);
        assert_eq!(bytes.u32(PROCESSES), 0);
    }
}

#[test]
fn the_allocator_reserves_in_every_bank() {
    for ttnn in wheels("the_allocator_reserves_in_every_bank") {
        let cluster = Cluster::n150();
        let mut harness = Harness::mock(&ttnn, &cluster);
        assert_eq!(
            harness.ask("stats dram"),
            "OK banks=12 allocatable=1072603072 allocated=0 free=1072603072 largest_free=1072603072"
        );
        assert_eq!(
            harness.ask("stats l1_small"),
            "OK banks=64 allocatable=32768 allocated=0 free=32768 largest_free=32768"
        );
        assert_eq!(harness.value("stats l1", "banks"), 64);
        assert_eq!(harness.value("stats trace", "allocatable"), 90_112);

        // One page takes a page in each bank.
        harness.value("alloc 1 2048 2048 dram", "per_bank");
        harness.value("alloc 2 2048 2048 dram", "per_bank");
        harness.value("alloc 3 2048 2048 l1_small", "per_bank");
        harness.ok("free 1");
        assert_eq!(
            harness.ask("stats dram"),
            "OK banks=12 allocatable=1072603072 allocated=2048 free=1072601024 largest_free=1072598976"
        );
        assert_eq!(harness.allocated("l1_small"), 2048);
        assert!(harness.ask("stats cb").starts_with("ERR "));
        harness.ok("quit");
    }
}

#[test]
fn the_region_misses_what_another_thread_allocates() {
    for ttnn in wheels("the_region_misses_what_another_thread_allocates") {
        let cluster = Cluster::n150();
        let mut harness = Harness::mock(&ttnn, &cluster);
        harness.value("thread alloc 1 2048 2048 l1", "address");
        assert_eq!(harness.allocated("l1"), 2048);
        assert_eq!(cluster.region().read().totals(), [0; 5]);

        harness.value("alloc 2 2048 2048 l1", "address");
        harness.ok("thread free 2");
        assert_eq!(harness.allocated("l1"), 2048);
        assert_eq!(cluster.region().read().totals(), [0, 2048, 0, 0, 0]);
        assert!(harness.ask("thread quit").starts_with("ERR "));
        harness.ok("quit");
    }
}

#[test]
fn many_buffers_are_held_or_passed_through() {
    for ttnn in wheels("many_buffers_are_held_or_passed_through") {
        let cluster = Cluster::n150();
        let mut harness = Harness::mock(&ttnn, &cluster);
        harness.ok("hold 10 2048 2048 dram");
        harness.ok("hold 10 2048 2048 dram");
        assert!(harness.value("churn 100 2048 2048 dram", "ns") > 0);
        assert_eq!(harness.allocated("dram"), 20 * 2048);
        harness.ok("free 1000019");
        assert_eq!(harness.ask("free 1000020"), "ERR there is no buffer 1000020");
        harness.ok("quit");
    }
}

#[test]
fn a_circular_buffer_is_counted_but_not_allocated() {
    for ttnn in wheels("a_circular_buffer_is_counted_but_not_allocated") {
        let cluster = Cluster::n150();
        let mut harness = Harness::mock(&ttnn, &cluster);
        assert_eq!(harness.ask("cb 4096"), "OK cores=64");
        assert_eq!(cluster.region().read().totals(), [0, 0, 0, 0, 64 * 4096]);
        assert_eq!(harness.allocated("l1"), 0);
        harness.ok("uncb");
        assert_eq!(harness.ask("uncb"), "ERR there is no program");
        assert!(harness.ask("cb 4095").starts_with("ERR "));
        harness.ok("quit");
    }
}
