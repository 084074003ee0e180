//! How a process leaves its device, and what a forked one has of it.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::cluster::Cluster;
use super::harness::Harness;
use super::region::PROCESSES;
use super::wheel::wheels;

#[test]
fn a_device_may_be_closed_under_its_buffers() {
    for ttnn in wheels("a_device_may_be_closed_under_its_buffers") {
        let cluster = Cluster::n150();
        let mut harness = Harness::mock(&ttnn, &cluster);
        harness.value("alloc 1 2048 2048 dram", "address");
        harness.value("alloc 2 2048 2048 l1", "address");
        harness.value("cb 4096", "cores");
        harness.ok("close");
        assert_eq!(cluster.region().read().totals(), [0; 5]);
        assert_eq!(harness.ask("alloc 3 2048 2048 dram"), "ERR the device is closed");
        harness.ok("free 1");
        harness.ok("quit");
        assert!(harness.wait().success());
    }
}

#[test]
fn a_device_that_was_not_closed_goes_before_its_tensors() {
    for ttnn in wheels("a_device_that_was_not_closed_goes_before_its_tensors") {
        let cluster = Cluster::n150();
        let mut harness = Harness::mock(&ttnn, &cluster);
        harness.value("tensor 1 2048 2048 dram", "address");
        harness.value("alloc 2 2048 2048 dram", "address");
        assert_eq!(harness.ask("drop"), "ERR only tensors may outlive their device");
        harness.ok("free 2");
        harness.ok("drop");
        assert_eq!(cluster.region().read().totals(), [0; 5]);
        assert_eq!(harness.ask("stats dram"), "ERR the device is closed");
        harness.ok("free 1");
        harness.ok("quit");
        assert!(harness.wait().success());
    }
}

#[test]
fn a_process_that_exits_closes_its_device_late() {
    for ttnn in wheels("a_process_that_exits_closes_its_device_late") {
        let cluster = Cluster::n150();
        let mut harness = Harness::mock(&ttnn, &cluster);
        harness.value("alloc 1 2048 2048 dram", "address");
        assert_eq!(harness.ask("abandon"), "", "no reply");
        assert_eq!(harness.wait().code(), Some(0));
        assert_eq!(cluster.region().read().totals(), [0; 5]);
    }
}

#[test]
fn a_process_that_dies_leaves_its_bytes_behind() {
    for ttnn in wheels("a_process_that_dies_leaves_its_bytes_behind") {
        let cluster = Cluster::n150();
        let mut harness = Harness::mock(&ttnn, &cluster);
        harness.value("alloc 1 2048 2048 dram", "address");
        assert_eq!(harness.ask("die"), "", "no reply");
        assert_eq!(harness.wait().code(), Some(9));
        let bytes = cluster.region().read();
        assert_eq!(bytes.totals(), [2048, 0, 0, 0, 0]);
        assert_eq!(bytes.u32(PROCESSES), harness.pid());
    }
}

#[test]
fn a_forked_child_sleeps_while_its_parent_lives() {
    for ttnn in wheels("a_forked_child_sleeps_while_its_parent_lives") {
        let cluster = Cluster::n150();
        let mut harness = Harness::mock(&ttnn, &cluster);
        harness.value("alloc 1 2048 2048 dram", "address");
        let idle = harness.value("fork", "child");
        let reply = harness.ask("fork alloc 2 4096 4096 l1");
        assert!(reply.contains(" address=") && reply.ends_with(" per_bank=4096"), "{reply}");
        assert!(harness.ask("fork alloc 1 2048 2048 dram").starts_with("ERR there is a buffer 1 already"));
        assert!(harness.ask("fork free 1").starts_with("ERR "));

        assert!(is_running(idle));
        assert_eq!(harness.allocated("l1"), 0, "the child has a copy");
        let bytes = cluster.region().read();
        assert_eq!(bytes.totals(), [2048, 4096, 0, 0, 0]);
        assert_eq!(bytes.u32(PROCESSES), harness.pid());
        let child: u32 = reply.split(['=', ' ']).nth(2).unwrap().parse().unwrap();
        assert_eq!(bytes.u32(PROCESSES + 120), child, "a slot of its own");

        harness.ok("quit");
        assert!(!is_running(idle));
    }
}

#[test]
fn a_forked_child_ends_with_a_parent_that_dies() {
    for ttnn in wheels("a_forked_child_ends_with_a_parent_that_dies") {
        let cluster = Cluster::n150();
        let mut harness = Harness::mock(&ttnn, &cluster);
        let child = harness.value("fork", "child");
        harness.ask("die");
        harness.wait();
        let start = Instant::now();
        while is_running(child) {
            assert!(start.elapsed() < Duration::from_secs(10));
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A zombie does not run, but is there until its parent asks for it.
fn is_running(pid: u64) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}
