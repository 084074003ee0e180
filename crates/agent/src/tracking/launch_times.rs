//! When and on which queue a program was launched, for each runtime id: only where single records are kept, since a record of the profiler
//! says neither. Ids have 16 bits, so they come round again.

use ledger::book::activity::LaunchOf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The last launch of each id: its time, its queue + 1 or zero, and the flags below. Has no memory behind it until it is used.
static LAUNCHES: [AtomicU64; 1 << 16] = [const { AtomicU64::new(0) }; 1 << 16];
static ARE_KEPT: AtomicBool = AtomicBool::new(false);

const TIME: u32 = 8;
const QUEUE: u64 = 0x3f;
/// The launch before it was on another queue,
const CHANGED: u64 = 0x40;
/// and a moment ago: a record may be of either.
const AMBIGUOUS: u64 = 0x80;
/// ns after which a program that was launched has run.
const MOMENT: u64 = 1_000_000_000;

/// Launches are kept from now on. A forked child has its parent's, which do not count.
#[cold]
pub fn keep() {
    LAUNCHES.iter().filter(|entry| entry.load(Relaxed) != 0).for_each(|entry| entry.store(0, Relaxed));
    ARE_KEPT.store(true, Relaxed);
}

#[inline]
pub fn are_kept() -> bool {
    ARE_KEPT.load(Relaxed)
}

/// A program with this id was launched.
pub fn launched(id: u16, queue: Option<u8>, now: u64) {
    let Some(entry) = LAUNCHES.get(usize::from(id)) else { return };
    let queue = queue.map_or(0, |queue| u64::from(queue) + 1);
    let queue = if queue > QUEUE { 0 } else { queue };
    let before = entry.load(Relaxed);
    let mut new = now << TIME | queue;
    if before != 0 && before & QUEUE != queue {
        let is_recent = now.saturating_sub(before >> TIME) < MOMENT;
        new |= if is_recent { CHANGED | AMBIGUOUS } else { CHANGED };
    }
    entry.store(new, Relaxed);
}

/// The launch of a program that began to run at this time. One that was launched later is another one with the same id.
pub fn of(id: u16, start: u64) -> LaunchOf {
    let entry = LAUNCHES.get(usize::from(id)).map_or(0, |entry| entry.load(Relaxed));
    let time = entry >> TIME;
    let is_of_it = entry != 0 && time <= start;
    let is_unclear = entry & if is_of_it { AMBIGUOUS } else { CHANGED } != 0;
    let queue = ((entry & QUEUE) as u8).checked_sub(1).filter(|_| !is_unclear);
    LaunchOf { queue, time: is_of_it.then_some(time) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn found(id: u16, start: u64) -> (Option<u8>, Option<u64>) {
        let LaunchOf { queue, time } = of(id, start);
        (queue, time)
    }

    #[test]
    fn a_record_is_of_the_launch_before_it() {
        assert_eq!(found(50_000, S), (None, None), "never launched");
        launched(50_000, Some(1), S);
        assert_eq!(found(50_000, S + 5), (Some(1), Some(S)));
        launched(50_000, Some(1), 2 * S);
        assert_eq!(found(50_000, S + 5), (Some(1), None), "the launch before it is not known any more, the queue is");
        launched(50_001, None, S);
        assert_eq!(found(50_001, S), (None, Some(S)));
        launched(50_002, Some(200), S);
        assert_eq!(found(50_002, S), (None, Some(S)), "more queues than are told apart");
    }

    #[test]
    fn where_two_queues_have_an_id_at_a_time_the_queue_is_not_known() {
        launched(50_010, Some(0), 5 * S);
        launched(50_010, Some(1), 5 * S + 1000);
        assert_eq!(found(50_010, 5 * S + 2000), (None, Some(5 * S + 1000)));
        assert_eq!(found(50_010, 5 * S + 500), (None, None));
        launched(50_010, Some(0), 9 * S);
        assert_eq!(found(50_010, 9 * S + 1), (Some(0), Some(9 * S)), "all that was launched before has run");
        assert_eq!(found(50_010, 9 * S - 1), (None, None));
    }
}
