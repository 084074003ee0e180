//! Whose bytes the counts in a region are.
//!
//! A slot names a pid that may have exited, may have been given to another process, or may count in another PID namespace. Its
//! owner is the process that has the region mapped and calls itself by that pid. Bytes without an owner are stale.

use crate::clock::Clock;
use crate::maps::Inode;
use crate::procs::ProcessFacts;
use crate::shm::{Kinds, Region, Slot};
use model::{Bytes, Usage};
use std::collections::{BTreeMap, HashMap};

/// One region's bytes, divided.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Division {
    /// What each attached process holds. `None` when it is not known how much each has.
    pub by_process: BTreeMap<u32, Option<Usage>>,
    /// What several processes hold together in one slot, where it is not known how much each has.
    pub shared: Vec<(Vec<u32>, Kinds)>,
    /// What no living process owns. `None` when a holder that may not be read could be its owner.
    pub stale: Option<Bytes>,
    /// How much of that is L1.
    pub stale_l1: Bytes,
    /// Why a figure is missing.
    pub reasons: Vec<String>,
}

/// What a slot held when its owner had exited, remembered so that a successor with the same pid does not inherit
/// it.
#[derive(Debug, Default)]
pub(crate) struct Baselines(HashMap<(Inode, usize), Remembered>);

#[derive(Debug, Clone, Copy)]
struct Remembered {
    pid: u32,
    /// Start of the last owner, in clock ticks.
    owner: Option<u64>,
    /// What was in the slot when it was last seen without an owner.
    left: Option<Kinds>,
    /// What the present owner found there and did not allocate.
    inherited: Kinds,
}

/// What is known of a slot's owner.
#[derive(Debug, Clone, Copy)]
enum Owner {
    /// It is running, and began then.
    Alive(u64),
    /// No living process can be it.
    Exited,
    /// It may be a process that could not be read this time.
    Unclear,
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
    let mut division = Division::default();
    // Attached and no slot yet: nothing allocated, unless the region has no slot left to give.
    for process in processes.values().filter(|process| process.has_mapped(inode)) {
        let nothing = (!region.is_full()).then(|| Usage::measured(0, 0, 0, 0, 0));
        division.by_process.insert(process.pid, nothing);
    }
    if region.is_full() {
        division.reasons.push("all 64 slots are taken: processes without a slot are not counted".into());
    }
    baselines.forget_free_slots(inode, region);
    let mut stale: Kinds = [0; 5];
    let mut unclear: u64 = 0;
    for slot in &region.slots {
        let owners = possible_owners(inode, slot, processes, closed);
        let owner = match owners[..] {
            // One that began after the last write does not own it: an exited one had its pid.
            [pid] => match processes[&pid].stat.start_ticks {
                start if slot.updated >= clock.nanoseconds(start) => Owner::Alive(start),
                _ => Owner::Exited,
            },
            [] if !nameless => Owner::Exited,
            _ => Owner::Unclear,
        };
        let bytes = baselines.own_bytes(inode, slot, owner);
        match (owner, &owners[..]) {
            (Owner::Alive(_), [pid, ..]) => {
                division.by_process.insert(*pid, Some(usage(bytes)));
                add(&mut stale, std::array::from_fn(|kind| slot.bytes[kind].saturating_sub(bytes[kind])));
            }
            (Owner::Unclear, [_, _, ..]) => {
                division.reasons.push(format!("{} processes share the slot of pid {}", owners.len(), slot.pid));
                division.by_process.extend(owners.iter().map(|&pid| (pid, None)));
                division.shared.push((owners, slot.bytes));
            }
            (Owner::Unclear, _) => unclear = unclear.saturating_add(total(slot.bytes)),
            _ => add(&mut stale, slot.bytes),
        }
    }
    if unclear > 0 {
        division.reasons.push(format!("{unclear} bytes may belong to a process that cannot be seen from here"));
    }
    add(&mut stale, beyond_slots(region));
    division.stale = (unclear == 0 && !region.is_full()).then_some(Bytes(total(stale)));
    let [_, l1, l1_small, _, cb] = stale;
    division.stale_l1 = Bytes(total([0, l1, l1_small, 0, cb]));
    division
}

/// The processes that have the region mapped and the pid of a slot, or else the holders with that pid that may not be read.
fn possible_owners(inode: Inode, slot: &Slot, processes: &BTreeMap<u32, ProcessFacts>, closed: &[u32]) -> Vec<u32> {
    let has_pid = |process: &&ProcessFacts| process.status.inner_pid == Some(slot.pid);
    let attached = processes.values().filter(|process| process.has_mapped(inode)).filter(has_pid);
    let owners: Vec<u32> = attached.map(|process| process.pid).collect();
    if !owners.is_empty() {
        return owners;
    }
    closed.iter().filter_map(|pid| processes.get(pid)).filter(has_pid).map(|process| process.pid).collect()
}

/// What the header claims beyond its slots: left over from processes that exited or never had a slot. Kind by kind: the last writer
/// overwrites the total of circular buffers, which must not hide what is left of another kind.
fn beyond_slots(region: &Region) -> Kinds {
    let mut in_slots = [0; 5];
    region.slots.iter().for_each(|slot| add(&mut in_slots, slot.bytes));
    std::array::from_fn(|kind| region.totals[kind].saturating_sub(in_slots[kind]))
}

impl Baselines {
    /// The slot's bytes less what its owner inherited from an exited one.
    fn own_bytes(&mut self, inode: Inode, slot: &Slot, owner: Owner) -> Kinds {
        let fresh = Remembered { pid: slot.pid, owner: None, left: None, inherited: [0; 5] };
        let entry = self.0.entry((inode, slot.index)).or_insert(fresh);
        if entry.pid != slot.pid {
            *entry = fresh;
        }
        match owner {
            Owner::Alive(start) if entry.owner == Some(start) => entry.left = None,
            // Whether a predecessor left its bytes behind is only known if its exit was seen.
            Owner::Alive(start) => {
                *entry = Remembered { owner: Some(start), inherited: entry.left.unwrap_or([0; 5]), ..fresh };
            }
            Owner::Exited => entry.left = Some(slot.bytes),
            Owner::Unclear => {}
        }
        // When a count falls below what was found, the region was started again.
        if slot.bytes.iter().zip(entry.inherited).any(|(now, inherited)| *now < inherited) {
            entry.inherited = [0; 5];
        }
        std::array::from_fn(|kind| slot.bytes[kind] - entry.inherited[kind])
    }

    /// A slot that was given back leaves nothing to inherit.
    fn forget_free_slots(&mut self, inode: Inode, region: &Region) {
        let taken = |index: usize| region.slots.iter().any(|slot| slot.index == index);
        self.0.retain(|(of, index), _| *of != inode || taken(*index));
    }

    /// Forgets regions that are no more.
    pub fn keep(&mut self, exists: impl Fn(&Inode) -> bool) {
        self.0.retain(|(inode, _), _| exists(inode));
    }
}

pub(crate) fn usage([dram, l1, l1_small, trace, cb]: Kinds) -> Usage {
    Usage::measured(dram, l1, l1_small, trace, cb)
}

fn total(kinds: Kinds) -> u64 {
    kinds.into_iter().fold(0, u64::saturating_add)
}

pub(crate) fn add(sum: &mut Kinds, more: Kinds) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(more));
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    const HERE: Inode = Inode { device: (0, 25), inode: 7 };

    fn attached(pid: u32, inner: u32, start: u64) -> ProcessFacts {
        ProcessFacts::made_up(pid, inner, start, &[(HERE, 1)])
    }

    fn slot(index: usize, pid: u32, dram: u64, updated: u64) -> Slot {
        Slot { index, pid, bytes: [dram, 0, 0, 0, 0], updated }
    }

    fn region(slots: &[Slot]) -> Region {
        let dram = slots.iter().map(|slot| slot.bytes[0]).sum();
        Region { asic_id: 1, device_id: 0, totals: [dram, 0, 0, 0, 0], slots: slots.to_vec() }
    }

    fn by_pid(processes: &[ProcessFacts]) -> BTreeMap<u32, ProcessFacts> {
        processes.iter().map(|process| (process.pid, process.clone())).collect()
    }

    /// What each process holds, what is stale, and why something is missing.
    fn divided(region: &Region, processes: &[ProcessFacts], closed: &[u32], nameless: bool) -> String {
        words(divide(HERE, region, &by_pid(processes), closed, nameless, &Clock::made_up(), &mut Baselines::default()))
    }

    /// What the living hold together.
    fn used(division: &Division) -> Kinds {
        let mut used = [0; 5];
        for usage in division.by_process.values().flatten() {
            let kinds = [usage.dram, usage.l1, usage.l1_small, usage.trace, usage.cb];
            add(&mut used, kinds.map(|bytes| bytes.unwrap().0));
        }
        division.shared.iter().for_each(|(_, bytes)| add(&mut used, *bytes));
        used
    }

    fn words(division: Division) -> String {
        let dram = |usage: Option<Usage>| usage.map_or("?".into(), |usage| usage.dram.unwrap().0.to_string());
        let mut words: Vec<String> =
            division.by_process.iter().map(|(pid, usage)| format!("{pid}={}", dram(*usage))).collect();
        words.push(format!("used={}", used(&division)[0]));
        words.push(division.stale.map_or("stale=?".into(), |stale| format!("stale={}", stale.0)));
        words.extend((division.stale_l1.0 > 0).then(|| format!("in_l1={}", division.stale_l1.0)));
        words.extend(division.reasons);
        words.join(" ")
    }

    #[test]
    fn each_process_has_its_slot() {
        let processes = [attached(100, 100, 1), attached(200, 200, 1), attached(300, 300, 1)];
        let region = region(&[slot(0, 100, 10, 5), slot(1, 200, 20, 5)]);
        assert_eq!(divided(&region, &processes, &[], false), "100=10 200=20 300=0 used=30 stale=0");
    }

    #[test]
    fn the_bytes_of_exited_processes_are_stale() {
        let region = region(&[slot(0, 100, 10, 5), slot(1, 200, 20, 5)]);
        assert_eq!(divided(&region, &[attached(100, 100, 1)], &[], false), "100=10 used=10 stale=20");
    }

    #[test]
    fn a_living_process_that_has_not_mapped_the_region_is_not_its_owner() {
        let stranger = ProcessFacts::made_up(100, 100, 1, &[]);
        assert_eq!(divided(&region(&[slot(0, 100, 10, 5)]), &[stranger], &[], false), "used=0 stale=10");
    }

    #[test]
    fn a_process_in_a_container_is_known_by_its_inner_pid() {
        let region = region(&[slot(0, 1, 10, 5)]);
        assert_eq!(
            divided(&region, &[attached(4711, 1, 1), attached(1, 1, 1)][..1], &[], false),
            "4711=10 used=10 stale=0"
        );
    }

    #[test]
    fn two_containers_whose_pids_collide_share_a_slot() {
        let region = region(&[slot(0, 1, 10, 5)]);
        assert_eq!(
            divided(&region, &[attached(4711, 1, 1), attached(4712, 1, 1)], &[], false),
            "4711=? 4712=? used=10 stale=0 2 processes share the slot of pid 1"
        );
    }

    #[test]
    fn a_slot_last_written_before_its_process_began_is_an_exited_one_s() {
        let region = region(&[slot(0, 100, 10, 5)]);
        assert_eq!(divided(&region, &[attached(100, 100, 6)], &[], false), "100=0 used=0 stale=10");
    }

    #[test]
    fn a_process_with_the_pid_of_an_exited_one_does_not_inherit_its_bytes() {
        let mut baselines = Baselines::default();
        let mut divided = |slots: &[Slot], processes: &[ProcessFacts]| {
            words(divide(HERE, &region(slots), &by_pid(processes), &[], false, &Clock::made_up(), &mut baselines))
        };
        assert_eq!(divided(&[slot(0, 100, 1000, 5)], &[attached(100, 100, 1)]), "100=1000 used=1000 stale=0");
        assert_eq!(divided(&[slot(0, 100, 1000, 5)], &[]), "used=0 stale=1000");
        assert_eq!(divided(&[slot(0, 100, 1007, 9)], &[attached(100, 100, 8)]), "100=7 used=7 stale=1000");
        assert_eq!(divided(&[slot(0, 100, 1000, 9)], &[attached(100, 100, 8)]), "100=0 used=0 stale=1000");
        // The count has fallen below what was found: the region was started again.
        assert_eq!(divided(&[slot(0, 100, 30, 9)], &[attached(100, 100, 8)]), "100=30 used=30 stale=0");
        // Another pid in the same place has nothing to do with it.
        assert_eq!(divided(&[slot(0, 200, 5000, 20)], &[attached(200, 200, 10)]), "200=5000 used=5000 stale=0");
    }

    #[test]
    fn a_process_that_was_unseen_for_a_moment_has_lost_nothing() {
        let mut baselines = Baselines::default();
        let mut divided = |bytes, processes: &[ProcessFacts], nameless| {
            let region = region(&[slot(0, 50, bytes, 5)]);
            words(divide(HERE, &region, &by_pid(processes), &[], nameless, &Clock::made_up(), &mut baselines))
        };
        let process = [attached(50, 50, 1)];
        assert_eq!(divided(1000, &process, false), "50=1000 used=1000 stale=0");
        assert_eq!(
            divided(1000, &[], true),
            "used=0 stale=? 1000 bytes may belong to a process that cannot be seen from here"
        );
        assert_eq!(divided(1500, &process, false), "50=1500 used=1500 stale=0");
        // Even if it was taken for exited in between.
        assert_eq!(divided(1500, &[], false), "used=0 stale=1500");
        assert_eq!(divided(1600, &process, false), "50=1600 used=1600 stale=0");
    }

    #[test]
    fn a_slot_that_was_given_back_leaves_nothing_to_inherit() {
        let mut baselines = Baselines::default();
        let mut divided = |slots: &[Slot], processes: &[ProcessFacts]| {
            words(divide(HERE, &region(slots), &by_pid(processes), &[], false, &Clock::made_up(), &mut baselines))
        };
        assert_eq!(divided(&[slot(0, 1, 1000, 5)], &[]), "used=0 stale=1000");
        assert_eq!(divided(&[], &[]), "used=0 stale=0");
        assert_eq!(divided(&[slot(0, 1, 1000, 9)], &[attached(60, 1, 8)]), "60=1000 used=1000 stale=0");
    }

    #[test]
    fn where_the_exit_was_not_seen_the_slot_counts_as_it_is() {
        let mut baselines = Baselines::default();
        let mut divided = |slots: &[Slot], processes: &[ProcessFacts]| {
            words(divide(HERE, &region(slots), &by_pid(processes), &[], false, &Clock::made_up(), &mut baselines))
        };
        assert_eq!(divided(&[slot(0, 1, 1000, 5)], &[attached(50, 1, 1)]), "50=1000 used=1000 stale=0");
        assert_eq!(divided(&[slot(0, 1, 1000, 9)], &[attached(60, 1, 8)]), "60=1000 used=1000 stale=0");
    }

    #[test]
    fn one_kind_does_not_hide_what_is_left_of_another() {
        let of = |pid, index| Slot { index, pid, bytes: [20, 0, 0, 0, 60], updated: 5 };
        let region = Region { asic_id: 1, device_id: 0, totals: [100, 0, 0, 0, 60], slots: vec![of(1, 0), of(2, 1)] };
        assert_eq!(divided(&region, &[attached(1, 1, 1), attached(2, 2, 1)], &[], false), "1=20 2=20 used=40 stale=60");
    }

    #[test]
    fn a_holder_that_may_not_be_looked_into_owns_the_slot_that_bears_its_pid() {
        let closed = ProcessFacts { maps: Err(Errno::ACCESS), ..attached(100, 100, 1) };
        assert_eq!(divided(&region(&[slot(0, 100, 10, 5)]), &[closed], &[100], false), "100=10 used=10 stale=0");
    }

    #[test]
    fn bytes_that_an_unseen_process_may_own_are_not_called_stale() {
        assert_eq!(
            divided(&region(&[slot(0, 100, 10, 5)]), &[], &[], true),
            "used=0 stale=? 10 bytes may belong to a process that cannot be seen from here"
        );
    }

    #[test]
    fn a_full_region_has_no_count_of_those_without_a_slot() {
        let slots: Vec<Slot> = (0..64).map(|i| slot(i, 1000 + i as u32, 10, 5)).collect();
        let seen = divided(&region(&slots), &[attached(1000, 1000, 1), attached(9, 9, 1)], &[], false);
        assert_eq!(
            seen,
            "9=? 1000=10 used=10 stale=? all 64 slots are taken: processes without a slot are not counted"
        );
    }

    #[test]
    fn what_the_header_claims_beyond_its_slots_is_stale() {
        let mut region = region(&[slot(0, 100, 10, 5)]);
        region.totals[1] = 99;
        assert_eq!(divided(&region, &[attached(100, 100, 1)], &[], false), "100=10 used=10 stale=99 in_l1=99");
        region.totals = [3, 0, 0, 0, 0];
        assert_eq!(divided(&region, &[attached(100, 100, 1)], &[], false), "100=10 used=10 stale=0");
    }

    #[test]
    fn stale_bytes_are_divided_into_dram_and_l1() {
        let left = Slot { bytes: [10, 1, 2, 20, 4], ..slot(0, 100, 0, 5) };
        assert_eq!(divided(&region(&[left]), &[], &[], false), "used=0 stale=37 in_l1=7");
    }

    proptest::proptest! {
        #[test]
        fn no_counts_overflow_and_nothing_is_both_used_and_stale(counts: [u64; 5], totals: [u64; 5], alive: bool) {
            let region = Region { asic_id: 1, device_id: 0, totals, slots: vec![Slot { index: 0, pid: 100, bytes: counts, updated: 5 }] };
            let processes = if alive { by_pid(&[attached(100, 100, 1)]) } else { BTreeMap::new() };
            let division = divide(HERE, &region, &processes, &[], false, &Clock::made_up(), &mut Baselines::default());
            assert_eq!(used(&division), if alive { counts } else { [0; 5] });
        }
    }
}
