//! Machines that are made up, for tests.

use super::{Fleet, HostView, Reach};
use model::{Celsius, DeviceId, Snapshot, State, Watts};
use show::example;
use std::sync::Arc;
use std::time::Duration;

/// A machine with so many healthy chips.
pub fn calm(devices: u32) -> Snapshot {
    let mut snapshot = example::galaxy();
    snapshot.devices.truncate(devices as usize);
    for (n, device) in snapshot.devices.iter_mut().enumerate() {
        device.id = DeviceId::Local(n as u32);
        device.state = State::Ok;
        device.sample_age_seconds = Some(0.0);
        device.asic_temp = Some(Celsius(40.0 + n as f64));
        device.asic_temp_max = Some(Celsius(90.0));
        device.power = Some(Watts(20.0));
        device.memory.untracked_processes = 0;
    }
    snapshot.processes.clear();
    snapshot.faults.clear();
    snapshot
}

/// A machine that answers with this snapshot.
pub fn reached(name: &str, snapshot: Snapshot) -> HostView {
    HostView {
        state: Reach::Reached,
        snapshot: Some(Arc::new(snapshot)),
        age: Some(Duration::from_millis(400)),
        ..HostView::new(name, format!("http://{name}:9746"))
    }
}

/// One that has not answered for so long.
pub fn unreachable(name: &str, why: &str, seconds: u64) -> HostView {
    let state = Reach::Unreachable { why: why.into(), since: Duration::from_secs(seconds) };
    HostView { state, ..HostView::new(name, format!("http://{name}:9746")) }
}

/// One of each kind: well, sick, gone since a while, never seen, hard to draw.
pub fn several() -> Fleet {
    let mut old = unreachable("lab-9", "no answer within 5 s", 75);
    old.snapshot = Some(Arc::new(calm(2)));
    old.age = Some(Duration::from_secs(75));
    let mut wide = calm(1);
    wide.processes = example::machine().processes;
    wide.processes.truncate(1);
    Fleet {
        hosts: vec![
            reached("lab-1", calm(4)),
            reached("lab-7", example::machine()),
            unreachable("lab-8", "connection refused: `ttmon serve` does not run there", 12),
            old,
            reached("日本語-のとても長い名前のホスト.example.org", wide),
            HostView::new("lab-10", "http://lab-10:9746"),
        ],
    }
}

/// So many machines of eight chips, of which a few are not well.
pub fn many(count: usize) -> Fleet {
    let host = |n: usize| {
        let name = format!("node-{n:04}");
        match n % 97 {
            13 => unreachable(&name, "no answer within 5 s", 30 + n as u64),
            29 => {
                let mut sick = calm(8);
                sick.devices[5].state = State::Hung;
                reached(&name, sick)
            }
            _ => {
                let mut snapshot = calm(8);
                for device in &mut snapshot.devices {
                    device.power = Some(Watts(20.0 + (n % 50) as f64));
                    device.asic_temp = Some(Celsius(35.0 + (n % 37) as f64));
                }
                reached(&name, snapshot)
            }
        }
    };
    Fleet { hosts: (0..count).map(host).collect() }
}
