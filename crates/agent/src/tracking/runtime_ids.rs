//! Which operation a runtime id stands for. The profiler's records have only its lowest 16 bits, so ids come round again.
//!
//! What a trace has recorded keeps its ids as long as the trace exists. An id that two operations have at a time stands for neither: then the
//! path of the kernel names the program.

use ledger::prefetch_value;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The operation's number + 1, in how many traces the id is, and whether two operations have it.
static IDS: [AtomicU32; 1 << 16] = [const { AtomicU32::new(0) }; 1 << 16];
/// The process whose operations these are.
static OWNER: AtomicU32 = AtomicU32::new(0);

const OPERATION: u32 = 0xffff;
const TRACE: u32 = 1 << 16;
const TRACES: u32 = 0xff * TRACE;
const BY_TWO: u32 = 1 << 24;

/// The operations of this process are numbered from here on. A forked child has its parent's.
#[cold]
pub fn begin() {
    let me = std::process::id();
    let owner = OWNER.swap(me, Relaxed);
    if owner != 0 && owner != me {
        IDS.iter().for_each(|id| id.store(0, Relaxed));
    }
}

/// A program with this id is launched soon.
#[inline]
pub fn launches_soon(id: u16) {
    IDS.get(usize::from(id)).into_iter().for_each(prefetch_value);
}

/// A program was launched.
#[inline]
pub fn launched(id: u16, operation: Option<u16>) {
    let Some(entry) = IDS.get(usize::from(id)) else { return };
    let (before, new) = (entry.load(Relaxed), number(operation));
    if before & TRACES == 0 {
        entry.store(new, Relaxed);
    } else if before & OPERATION != new {
        entry.fetch_or(BY_TWO, Relaxed);
    }
}

/// A program was recorded into a trace.
pub fn pinned(id: u16, operation: Option<u16>) {
    let new = number(operation);
    change(id, |before| match before & TRACES {
        0 => new | TRACE,
        TRACES => before | BY_TWO,
        _ if before & OPERATION == new => before + TRACE,
        _ => (before + TRACE) | BY_TWO,
    });
}

/// Its trace was released.
pub fn released(id: u16) {
    change(id, |before| match before & TRACES {
        0 => before,
        TRACE => before & OPERATION,
        _ => before - TRACE,
    });
}

/// The operation of a record.
#[inline]
pub fn operation(id: u16) -> Option<u16> {
    let entry = IDS.get(usize::from(id))?.load(Relaxed);
    let operation = ((entry & OPERATION) as u16).checked_sub(1)?;
    (entry & BY_TWO == 0).then_some(operation)
}

/// The operation that the path of a kernel names, for the next records of the same launch.
pub fn named_by_path(id: u16, operation: u16) {
    if let Some(entry) = IDS.get(usize::from(id)) {
        let _ = entry.compare_exchange(0, number(Some(operation)), Relaxed, Relaxed);
    }
}

fn number(operation: Option<u16>) -> u32 {
    operation.map_or(0, |operation| u32::from(operation) + 1)
}

fn change(id: u16, to: impl Fn(u32) -> u32) {
    if let Some(entry) = IDS.get(usize::from(id)) {
        let _ = entry.fetch_update(Relaxed, Relaxed, |before| Some(to(before)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_comes_round_again_is_that_of_the_later_launch() {
        launched(40_001, Some(3));
        assert_eq!(operation(40_001), Some(3));
        launched(40_001, Some(4));
        assert_eq!(operation(40_001), Some(4));
        launched(40_001, None);
        assert_eq!(operation(40_001), None, "a program without a name");
        named_by_path(40_001, 9);
        named_by_path(40_001, 10);
        assert_eq!(operation(40_001), Some(9));
    }

    #[test]
    fn what_a_trace_recorded_keeps_its_id() {
        pinned(40_002, Some(7));
        launched(40_002, Some(7));
        assert_eq!(operation(40_002), Some(7));
        launched(40_002, Some(8));
        assert_eq!(operation(40_002), None, "two operations have it");
        released(40_002);
        assert_eq!(operation(40_002), Some(7));
        launched(40_002, Some(8));
        assert_eq!(operation(40_002), Some(8));
    }

    #[test]
    fn two_traces_can_have_the_same_id() {
        pinned(40_003, Some(1));
        pinned(40_003, Some(2));
        assert_eq!(operation(40_003), None);
        released(40_003);
        assert_eq!(operation(40_003), None);
        released(40_003);
        launched(40_003, Some(5));
        assert_eq!(operation(40_003), Some(5));
        (0..300).for_each(|_| pinned(40_004, Some(1)));
        assert_eq!(operation(40_004), None, "more traces than can be counted");
    }
}
