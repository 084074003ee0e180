//! The memory of single processes: as many series as are allowed, the largest ones, and the sum of the others.

use super::Figures;
use super::text::{Family, label};
use model::{Bytes, DeviceId, Held, Process, Usage};
use std::cmp::Reverse;

const KINDS: [&str; 5] = ["dram", "l1", "l1_small", "trace", "cb"];

/// One series: what a process has of a kind on a device.
struct One<'a> {
    bytes: u64,
    /// Where it stands among all.
    order: usize,
    process: &'a Process,
    held: &'a Held,
    /// Which of the devices.
    device: usize,
    kind: usize,
}

pub fn write(family: &mut Family<'_>, now: &Figures<'_>) {
    let mut devices: Vec<&DeviceId> = now.snapshot.devices.iter().map(|device| &device.id).collect();
    let mut all = Vec::with_capacity(now.snapshot.processes.len() * KINDS.len());
    for process in &now.snapshot.processes {
        for held in &process.devices {
            let device = devices.iter().position(|id| **id == held.id).unwrap_or_else(|| {
                devices.push(&held.id);
                devices.len() - 1
            });
            for (kind, bytes) in by_kind(held.usage).into_iter().enumerate() {
                let order = all.len();
                all.extend(bytes.map(|bytes| One { bytes: bytes.0, order, process, held, device, kind }));
            }
        }
    }
    let most = now.options.max_process_series.min(all.len());
    if most < all.len() {
        all.select_nth_unstable_by_key(most, |one| (Reverse(one.bytes), one.order));
    }
    let (kept, others) = all.split_at_mut(most);
    kept.sort_unstable_by_key(|one| one.order);
    write_single(family, kept);
    write_sums(family, others, &devices);
}

fn write_single(family: &mut Family<'_>, kept: &[One<'_>]) {
    let mut labels = String::new();
    for alike in kept.chunk_by(|a, b| std::ptr::eq(a.held, b.held)) {
        let One { process, held, .. } = alike[0];
        labels.clear();
        label(&mut labels, "device", &held.id.to_string());
        label(&mut labels, "pid", &process.pid.to_string());
        let facts = [("user", &process.user), ("container", &process.container), ("name", &process.name)];
        for (name, value) in facts.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?))) {
            label(&mut labels, name, value);
        }
        if let Some(source) = held.source {
            label(&mut labels, "source", source.name());
        }
        for one in alike {
            family.line(&labels, Some(("kind", KINDS[one.kind])), Some(one.bytes.into()));
        }
    }
}

/// What is left, by device and kind, so that sums over all processes stay right.
fn write_sums(family: &mut Family<'_>, others: &[One<'_>], devices: &[&DeviceId]) {
    let mut sums = vec![[None::<u64>; KINDS.len()]; devices.len()];
    for one in others {
        let sum = &mut sums[one.device][one.kind];
        *sum = Some(sum.unwrap_or(0).saturating_add(one.bytes));
    }
    let mut labels = String::new();
    for (device, sums) in devices.iter().zip(sums) {
        labels.clear();
        label(&mut labels, "device", &device.to_string());
        ["pid", "user", "container", "name", "source"].iter().for_each(|name| label(&mut labels, name, "other"));
        for (kind, sum) in KINDS.iter().zip(sums) {
            family.line(&labels, Some(("kind", kind)), sum.map(Into::into));
        }
    }
}

fn by_kind(usage: Usage) -> [Option<Bytes>; 5] {
    [usage.dram, usage.l1, usage.l1_small, usage.trace, usage.cb]
}
