//! Machines for tests: a busy p150a with the agent, a hung p150b, an n300 without; and a Galaxy.

use super::gather::{Kept, buffers, view};
use super::view::{Death, LARGEST, View};
use model::*;

/// The machine of smi's tests, with the buffers of the process that runs with the agent.
pub fn machine() -> View {
    let mut snapshot = crate::example::machine();
    let memory = &mut snapshot.devices[0].memory;
    (memory.stale, memory.stale_l1) = (Some(Bytes((3 << 30) + (20 << 20))), Some(Bytes(20 << 20)));
    view(&snapshot, buffers(&snapshot, &snapshot, &[book(&snapshot)], LARGEST), vec![])
}

/// The same with an exited process.
pub fn with_a_death() -> View {
    let mut view = machine();
    view.deaths.push(Death {
        pid: 4242,
        user: Some("ttuser".into()),
        command: Some("python3 train.py".into()),
        died_at: Timestamp(1_767_322_985_678),
        how: Some("SIGKILL".into()),
        devices: vec!["0".into(), "1".into()],
        usage: Usage::measured(5 << 30, 1 << 20, 0, 0, 0),
    });
    view
}

/// 32 chips, and a process on all of them that runs with the agent.
pub fn galaxy() -> View {
    let mut snapshot = crate::example::galaxy();
    let mut process = crate::example::machine().processes[1].clone();
    for device in &mut snapshot.devices {
        let dram = device.memory.dram.map_or(0, |bytes| bytes.0);
        device.memory.count(Usage {
            trace: None,
            l1_small: None,
            ..Usage::measured(dram, dram / 200, 0, 0, 1_351_680)
        });
    }
    process.devices = snapshot.devices.iter().map(held_of).collect();
    snapshot.processes = vec![process];
    view(&snapshot, vec![], vec![])
}

fn held_of(device: &Device) -> Held {
    let figures = |bytes: Option<Bytes>, count: u32, allocatable: u64| {
        let bytes = bytes.unwrap_or_default().0;
        let free = allocatable.saturating_sub(bytes / u64::from(count));
        let banks = BankFigures {
            count,
            allocatable_bytes: Bytes(allocatable),
            allocated_bytes: Bytes(bytes / u64::from(count)),
            free_bytes: Bytes(free),
            largest_free_bytes: Some(Bytes(free / 8 * 7)),
            fragmentation: Some(0.125),
            age_seconds: None,
        };
        let peak_bytes = Bytes((bytes * 5 / 4).min(allocatable * u64::from(count)));
        Some(KindFigures { bytes: Bytes(bytes), peak_bytes, buffers: 9, banks: Some(banks), ..KindFigures::default() })
    };
    let memory = &device.memory;
    let exact = Exact {
        dram: figures(memory.dram, 12, 1_072_693_184),
        l1: figures(memory.l1, 72, 1_393_312),
        cb: Some(KindFigures { bytes: memory.cb_used.unwrap_or_default(), ..KindFigures::default() }),
        ..Exact::default()
    };
    let usage = exact.usage();
    Held { usage, source: Some(Source::Exact), exact: Some(Box::new(exact)), ..Held::new(device.id.clone()) }
}

fn book(snapshot: &Snapshot) -> Kept {
    let exact = snapshot.processes[1].devices[0].exact.as_deref().cloned().unwrap();
    let buffer = |id: u64, kind: &str, bank: u64, banks: u32, seconds: i64, label: Option<&str>| LiveBuffer {
        id,
        device_ids: vec![7],
        kind: kind.into(),
        bytes: Bytes(bank * u64::from(banks)),
        logical_bytes: Bytes(bank * u64::from(banks)),
        bank_bytes: Bytes(bank),
        banks,
        address: 1_048_704 + id * 4096,
        page_bytes: Bytes(2048),
        layout: 0,
        allocated_at: Timestamp(snapshot.taken_at.0 - seconds * 1000),
        thread: 4711,
        label: label.map(str::to_owned),
    };
    let memory = ProcessMemory {
        pid: 4711,
        agent: "ttmon-agent 0.1.0".into(),
        exact: true,
        remark: None,
        closed: false,
        began_at: snapshot.taken_at,
        changed_at: snapshot.taken_at,
        events: 7,
        chips: vec![ChipMemory {
            device_id: 7,
            unique_id: Some("8F3A6C21D4E5B790".into()),
            left_bytes: Bytes(0),
            kinds: exact,
        }],
        buffers: Some(vec![
            buffer(1, "dram", 1 << 27, 8, 5025, Some("model.layers.0.weight")),
            buffer(2, "dram", 1 << 26, 8, 5000, Some("evil\x1b[2J label")),
            buffer(3, "dram", 1 << 26, 8, 301, None),
            buffer(4, "l1", 40_960, 110, 2, Some("activations")),
            buffer(5, "cb", 12_288, 110, 0, None),
        ]),
        unlisted_buffers: 0,
    };
    Kept { pid: 4711, memory }
}
