//! Whose bytes the counts in a region are.
//!
//! A slot names a pid that may be dead, may have been given to another process, or may count in another PID namespace. Its
//! owner is the process that has the region mapped and calls itself by that pid. Bytes without an owner are stale.

use crate::maps::Inode;
use crate::procs::{Clock, ProcessFacts};
use crate::shm::{Kinds, Region, Slot};
use model::{Bytes, Usage};
use std::collections::{BTreeMap, HashMap};

/// One region's bytes, divided.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Division {
    /// What each attached process holds. `None` when that cannot be told apart.
    pub by_process: BTreeMap<u32, Option<Usage>>,
    /// What the living hold together.
    pub used: Kinds,
    /// What nobody alive owns. `None` when a holder that we may not look into could be its owner.
    pub stale: Option<Bytes>,
    /// Why a figure is missing.
    pub reasons: Vec<String>,
}

/// What a slot held when its last owner died, remembered so that a successor with the same pid does not inherit it.
#[derive(Debug, Default)]
pub(crate) struct Baselines(HashMap<(Inode, usize), Remembered>);

#[derive(Debug, Clone, Copy)]
struct Remembered {
    pid: u32,
    /// Start of the owner, in clock ticks; `None` while it has none.
    owner: Option<u64>,
    /// The bytes last seen.
    seen: Kinds,
    /// What the present owner found there and did not allocate.
    inherited: Kinds,
}

/// Divides a region among the processes. `closed` are the holders of its chip that we may not look into; `nameless` is whether
/// it has holders that cannot even be named.
pub(crate) fn divide(
    inode: Inode,
    region: &Region,
    processes: &BTreeMap<u32, ProcessFacts>,
    closed: &[u32],
    nameless: bool,
    clock: &Clock,
    baselines: &mut Baselines,
) -> Division {
    let attached = |process: &&ProcessFacts| {
        process.maps.as_ref().is_ok_and(|maps| maps.regions.iter().any(|(mapped, _)| *mapped == inode))
    };
    let mut division = Division::default();
    // Attached and no slot yet: nothing allocated, unless the region has no slot left to give.
    for process in processes.values().filter(attached) {
        let nothing = (!region.is_full()).then(|| Usage::measured(0, 0, 0, 0, 0));
        division.by_process.insert(process.pid, nothing);
    }
    if region.is_full() {
        division.reasons.push("all 64 slots are taken: processes without one cannot be told".into());
    }
    let mut stale: u64 = 0;
    let mut unclear: u64 = 0;
    for slot in &region.slots {
        let calls_itself_so = |process: &&ProcessFacts| process.status.inner_pid == Some(slot.pid);
        let mut owners: Vec<u32> =
            processes.values().filter(attached).filter(calls_itself_so).map(|process| process.pid).collect();
        if owners.is_empty() {
            // A holder that we may not look into is the owner if it alone calls itself so.
            let closed = closed.iter().filter_map(|pid| processes.get(pid)).filter(calls_itself_so);
            owners = closed.map(|process| process.pid).collect();
        }
        let started = |pid: &u32| processes[pid].stat.start_ticks;
        let written_since_start = |pid: &u32| slot.updated >= clock.nanoseconds(started(pid));
        let owner = match owners[..] {
            [pid] if written_since_start(&pid) => Some(pid),
            _ => None,
        };
        let bytes = baselines.own_bytes(inode, slot, owner.as_ref().map(started));
        match (owner, owners.len()) {
            (Some(pid), _) => {
                division.by_process.insert(pid, Some(usage(bytes)));
                add(&mut division.used, bytes);
                stale += total(slot.bytes) - total(bytes);
            }
            (None, 2..) => {
                division.reasons.push(format!("{} processes share the slot of pid {}", owners.len(), slot.pid));
                division.by_process.extend(owners.iter().map(|&pid| (pid, None)));
                add(&mut division.used, slot.bytes);
            }
            _ if nameless => unclear += total(slot.bytes),
            _ => stale = stale.saturating_add(total(slot.bytes)),
        }
    }
    if unclear > 0 {
        division.reasons.push(format!("{unclear} bytes may belong to a process that cannot be seen from here"));
    }
    // What the header claims beyond its slots is left over from processes that died or never had a slot.
    let slots: u64 = region.slots.iter().map(|slot| total(slot.bytes)).fold(0, u64::saturating_add);
    let beyond = total(region.totals).saturating_sub(slots);
    division.stale = (unclear == 0 && !region.is_full()).then_some(Bytes(stale.saturating_add(beyond)));
    division
}

impl Baselines {
    /// The slot's bytes less what its owner inherited from a dead one.
    fn own_bytes(&mut self, inode: Inode, slot: &Slot, owner: Option<u64>) -> Kinds {
        let fresh = Remembered { pid: slot.pid, owner, seen: slot.bytes, inherited: [0; 5] };
        let entry = self.0.entry((inode, slot.index)).or_insert(fresh);
        if entry.pid != slot.pid {
            *entry = fresh;
        } else if entry.owner != owner {
            let inherited = if owner.is_some() { entry.seen } else { [0; 5] };
            *entry = Remembered { owner, inherited, ..*entry };
        }
        // When a count falls below what was found, the region was begun anew.
        if slot.bytes.iter().zip(entry.inherited).any(|(now, inherited)| *now < inherited) {
            entry.inherited = [0; 5];
        }
        entry.seen = slot.bytes;
        std::array::from_fn(|kind| slot.bytes[kind] - entry.inherited[kind])
    }
}

fn usage([dram, l1, l1_small, trace, cb]: Kinds) -> Usage {
    Usage::measured(dram, l1, l1_small, trace, cb)
}

fn total(kinds: Kinds) -> u64 {
    kinds.into_iter().fold(0, u64::saturating_add)
}

fn add(sum: &mut Kinds, more: Kinds) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(more));
}
