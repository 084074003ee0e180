//! How much was launched on each queue, and how much of it was waited for.

use ledger::prefetch_value;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};

/// More queues than this are not told apart, and count as never waited for.
const QUEUES: usize = 128;

/// The queues that were met, by their addresses.
pub struct Queues {
    queues: [LaunchQueue; QUEUES],
}

/// A queue of a device.
pub struct LaunchQueue {
    address: AtomicUsize,
    launched: AtomicU64,
    finished: AtomicU64,
    /// The trace + 1 that is being recorded on it.
    trace: AtomicU64,
}

impl Queues {
    pub const fn new() -> Queues {
        Queues { queues: [const { LaunchQueue::new() }; QUEUES] }
    }

    /// The queue at an address, which is never null.
    #[inline]
    pub fn get(&self, address: usize) -> Option<&LaunchQueue> {
        for queue in &self.queues {
            match queue.address.load(Acquire) {
                known if known == address => return Some(queue),
                0 => match queue.address.compare_exchange(0, address, AcqRel, Acquire) {
                    Ok(_) => return Some(queue),
                    Err(other) if other == address => return Some(queue),
                    Err(_) => {}
                },
                _ => {}
            }
        }
        None
    }

    /// How many queues were met before this one.
    pub fn number(&self, queue: &LaunchQueue) -> Option<u8> {
        self.queues.iter().position(|known| std::ptr::eq(known, queue)).and_then(|number| u8::try_from(number).ok())
    }

    /// A program is launched soon, on the first queue most of the time.
    #[inline]
    pub fn launches_soon(&self) {
        self.queues.first().into_iter().for_each(prefetch_value);
    }

    /// Programs of all queues that have ended for certain.
    pub fn finished(&self) -> u64 {
        self.queues.iter().map(|queue| queue.finished.load(Acquire)).sum()
    }
}

impl LaunchQueue {
    const fn new() -> LaunchQueue {
        LaunchQueue {
            address: AtomicUsize::new(0),
            launched: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            trace: AtomicU64::new(0),
        }
    }

    #[inline]
    pub fn launched(&self, programs: u64) {
        self.launched.fetch_add(programs, AcqRel);
    }

    /// Programs launched so far: when a wait that begins now has ended, these have.
    pub fn to_wait_for(&self) -> u64 {
        self.launched.load(Acquire)
    }

    pub fn has_finished(&self, programs: u64) {
        self.finished.fetch_max(programs, AcqRel);
    }

    /// The trace that is being recorded.
    #[inline]
    pub fn trace(&self) -> Option<u32> {
        self.trace.load(Relaxed).checked_sub(1).map(|trace| trace as u32)
    }

    pub fn records(&self, trace: Option<u32>) {
        self.trace.store(trace.map_or(0, |trace| u64::from(trace) + 1), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_covers_what_was_launched_on_its_queue_before() {
        let queues = Queues::new();
        let (a, b) = (queues.get(1000).unwrap(), queues.get(2000).unwrap());
        a.launched(3);
        b.launched(2);
        let before = a.to_wait_for();
        a.launched(1);
        a.has_finished(before);
        assert_eq!(queues.finished(), 3);
        b.has_finished(b.to_wait_for());
        assert_eq!(queues.get(1000).unwrap().to_wait_for(), 4);
        assert_eq!(queues.finished(), 5);
        (0..200).for_each(|queue| _ = queues.get(10_000 + queue));
        assert!(queues.get(99_999).is_none() && queues.get(2000).is_some());
    }
}
