//! The open devices that may be read, and the agreement between the thread that reads and those that close.
//!
//! A reader says that it reads, and then looks whether the device is still there. Whoever closes takes the device away, and then waits
//! while someone reads. So either sees the other: nothing is read from a device that has begun to close, and a close waits for one
//! read at most. No lock is held during a read, so that none is left behind when the process forks or exits.

use super::functions::{Addresses, Cluster};
use crate::device::{Member, Object};
use ledger::book::CHIPS;
use ledger::dispatch_telemetry::block::{QUEUES, QueueCores};
use rustix::thread::futex;
use rustix::time::Timespec;
use std::ptr::{self, NonNull};
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::SeqCst,
};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The devices of one process. Never freed: a forked child has its parent's, and leaves it alone.
pub struct Watched {
    pid: u32,
    slots: [WatchedSlot; CHIPS],
    is_reading: AtomicBool,
    /// Threads that fork.
    forking: AtomicU32,
    /// Changes with everything that the thread should look at now.
    bell: AtomicU32,
    /// Whether there is a thread.
    has_thread: AtomicBool,
}

struct WatchedSlot {
    /// The address of the device; 0 when there is none.
    device: AtomicUsize,
    cluster: AtomicUsize,
    /// Changes with every device and queue.
    generation: AtomicU64,
    /// Whether the profiler was active for it at any time: it knows better, and needs no reads.
    is_profiled: AtomicBool,
    /// Its number in the book + 1, once that has something of it.
    in_book: AtomicU32,
    chip: Mutex<Option<WatchedChip>>,
}

/// A device that may be read.
#[derive(Debug, Clone, Copy)]
pub struct WatchedChip {
    pub member: Member,
    pub cluster: Cluster,
    pub queues: [Option<WatchedQueue>; QUEUES],
}

/// A queue of a device.
#[derive(Debug, Clone, Copy)]
pub struct WatchedQueue {
    pub cores: QueueCores,
    pub addresses: Addresses,
}

// SAFETY: the pointer is only passed to tt-metal, whose function may be called by any thread.
unsafe impl Send for WatchedChip {}

/// A chip at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Visit {
    pub slot: usize,
    pub generation: u64,
    pub chip: WatchedChip,
}

static WATCHED: AtomicPtr<Watched> = AtomicPtr::new(ptr::null_mut());
/// Chips for which the profiler is active, one bit each.
static PROFILED: AtomicU64 = AtomicU64::new(0);

impl Watched {
    /// Those of this process, if there are any.
    pub fn current() -> Option<&'static Watched> {
        // SAFETY: what is stored here is never freed.
        unsafe { WATCHED.load(Acquire).as_ref() }.filter(|watched| watched.pid == std::process::id())
    }

    /// Those of this process.
    pub fn open() -> &'static Watched {
        loop {
            if let Some(watched) = Watched::current() {
                return watched;
            }
            let before = WATCHED.load(Acquire);
            let new = Box::into_raw(Box::new(Watched::new()));
            if WATCHED.compare_exchange(before, new, AcqRel, Acquire).is_err() {
                // SAFETY: no other thread has seen it.
                drop(unsafe { Box::from_raw(new) });
            }
        }
    }

    fn new() -> Watched {
        Watched {
            pid: std::process::id(),
            slots: [const { WatchedSlot::new() }; CHIPS],
            is_reading: AtomicBool::new(false),
            forking: AtomicU32::new(0),
            bell: AtomicU32::new(0),
            has_thread: AtomicBool::new(false),
        }
    }

    /// Enters a device with one of its queues, or one more queue of a device.
    pub fn enter(&self, device: Object, member: Member, cluster: Cluster, number: usize, queue: WatchedQueue) {
        let address = device.addr().get();
        let known = self.slots.iter().find(|slot| slot.device.load(SeqCst) == address);
        let Some(slot) = known.or_else(|| self.slots.iter().find(|slot| slot.claim())) else { return };
        let mut kept = slot.chip.lock().unwrap_or_else(PoisonError::into_inner);
        let mut queues = kept.filter(|_| known.is_some()).map_or([None; QUEUES], |kept| kept.queues);
        if let Some(place) = queues.get_mut(number) {
            *place = Some(queue);
        }
        *kept = Some(WatchedChip { member, cluster, queues });
        slot.cluster.store(cluster.addr().get(), SeqCst);
        if known.is_none() {
            slot.in_book.store(0, SeqCst);
        }
        let is_profiled = PROFILED.load(SeqCst) & bit(member.device_id) != 0;
        slot.is_profiled.store(is_profiled, SeqCst);
        slot.generation.fetch_add(1, SeqCst);
        drop(kept);
        slot.device.store(address, SeqCst);
        self.ring();
    }

    /// Takes a device away. Nothing is read from it any more when this returns. Answers its number in the book, if that has something
    /// of it.
    pub fn leave(&self, device: Object) -> Option<u8> {
        let is_it = |slot: &&WatchedSlot| slot.device.load(SeqCst) == device.addr().get();
        let slot = self.slots.iter().find(is_it)?;
        self.leave_if(|other| ptr::eq(slot, other), None);
        slot.in_book.load(SeqCst).checked_sub(1).and_then(|chip| u8::try_from(chip).ok())
    }

    /// The book has something of a device now, under this number.
    pub fn is_in_book(&self, visit: &Visit, chip: u8) {
        if let Some(slot) = self.slots.get(visit.slot) {
            slot.in_book.store(u32::from(chip) + 1, SeqCst);
        }
    }

    /// Takes all devices of a cluster away.
    pub fn leave_cluster(&self, cluster: NonNull<std::ffi::c_void>) {
        self.leave_if(|slot| slot.cluster.load(SeqCst) == cluster.addr().get(), None);
    }

    /// Takes all devices away, and waits for no longer than that.
    pub fn leave_all(&self, limit: Duration) {
        self.leave_if(|_| true, Some(limit));
    }

    fn leave_if(&self, is_it: impl Fn(&WatchedSlot) -> bool, limit: Option<Duration>) {
        let mut any = false;
        for slot in self.slots.iter().filter(|slot| slot.is_open() && is_it(slot)) {
            slot.device.store(0, SeqCst);
            any = true;
        }
        if any {
            self.wait_for_read(limit);
            self.ring();
        }
    }

    fn wait_for_read(&self, limit: Option<Duration>) {
        let began = Instant::now();
        let mut times = 0;
        while self.is_reading.load(SeqCst) && limit.is_none_or(|limit| began.elapsed() < limit) {
            times += 1;
            if times < 100 { std::hint::spin_loop() } else { std::thread::sleep(Duration::from_micros(20)) }
        }
    }

    /// The profiler is active for a chip, or no longer. Nothing is read from it, or entered, when this returns.
    pub fn profiled(device_id: u32, active: bool) {
        if !active {
            PROFILED.fetch_and(!bit(device_id), SeqCst);
            return;
        }
        PROFILED.fetch_or(bit(device_id), SeqCst);
        let slots = Watched::current().map_or(&[][..], |watched| &watched.slots);
        for slot in slots.iter().filter(|slot| slot.is_open()) {
            let chip = *slot.chip.lock().unwrap_or_else(PoisonError::into_inner);
            if chip.is_some_and(|chip| chip.member.device_id == device_id) {
                slot.is_profiled.store(true, SeqCst);
            }
        }
        if let Some(watched) = Watched::current() {
            watched.wait_for_read(None);
            watched.ring();
        }
    }

    /// The devices that are open now and that the profiler does not report.
    pub fn visits(&self) -> impl Iterator<Item = Visit> {
        self.slots.iter().enumerate().filter(|(_, slot)| slot.is_to_be_read()).filter_map(|(at, slot)| {
            let chip = slot.chip.lock().unwrap_or_else(PoisonError::into_inner);
            Some(Visit { slot: at, generation: slot.generation.load(SeqCst), chip: (*chip)? })
        })
    }

    /// Does something with a device that is still open, and stays open meanwhile. Only the thread may call this. `None` when the device
    /// has begun to close, or the process is forking.
    pub fn while_open<T>(&self, visit: &Visit, what: impl FnOnce() -> T) -> Option<T> {
        let slot = self.slots.get(visit.slot)?;
        let _reading = ReadUnderWay::begin(&self.is_reading);
        let is_open = slot.is_to_be_read() && slot.generation.load(SeqCst) == visit.generation;
        (is_open && self.forking.load(SeqCst) == 0).then(what)
    }

    /// The process is about to fork: waits until nothing is read, but not for long. The child would have half of it.
    pub fn fork_begins(&self) {
        self.forking.fetch_add(1, SeqCst);
        self.wait_for_read(Some(Duration::from_millis(100)));
    }

    /// The process has forked; this is the parent.
    pub fn forked(&self) {
        self.forking.fetch_sub(1, SeqCst);
    }

    /// Whether a thread is to be started.
    pub fn claim_thread(&self) -> bool {
        self.has_work() && self.has_thread.compare_exchange(false, true, SeqCst, SeqCst).is_ok()
    }

    /// Whether the thread may end: there is nothing to read. A device that comes now gets another thread.
    pub fn may_end(&self) -> bool {
        if self.has_work() {
            return false;
        }
        self.has_thread.store(false, SeqCst);
        !self.claim_thread()
    }

    fn has_work(&self) -> bool {
        self.slots.iter().any(WatchedSlot::is_to_be_read)
    }

    /// The thread could not be started.
    pub fn has_no_thread(&self) {
        self.has_thread.store(false, SeqCst);
    }

    /// The number that changes with everything that the thread should look at now.
    pub fn bell(&self) -> u32 {
        self.bell.load(SeqCst)
    }

    /// Sleeps until the number changes, and no longer than that.
    pub fn sleep(&self, bell: u32, limit: Duration) {
        let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
        let _ = futex::wait(&self.bell, futex::Flags::PRIVATE, bell, Some(&limit));
    }

    fn ring(&self) {
        self.bell.fetch_add(1, SeqCst);
        let _ = futex::wake(&self.bell, futex::Flags::PRIVATE, 1);
    }
}

/// Someone reads, as long as this lives.
struct ReadUnderWay<'a>(&'a AtomicBool);

impl ReadUnderWay<'_> {
    fn begin(is_reading: &AtomicBool) -> ReadUnderWay<'_> {
        is_reading.store(true, SeqCst);
        ReadUnderWay(is_reading)
    }
}

impl Drop for ReadUnderWay<'_> {
    fn drop(&mut self) {
        self.0.store(false, SeqCst);
    }
}

impl WatchedSlot {
    const fn new() -> WatchedSlot {
        WatchedSlot {
            device: AtomicUsize::new(0),
            cluster: AtomicUsize::new(0),
            generation: AtomicU64::new(0),
            is_profiled: AtomicBool::new(false),
            in_book: AtomicU32::new(0),
            chip: Mutex::new(None),
        }
    }

    /// In place of an address while a slot is filled.
    const CLAIMED: usize = 1;

    fn claim(&self) -> bool {
        self.device.compare_exchange(0, WatchedSlot::CLAIMED, SeqCst, SeqCst).is_ok()
    }

    fn is_open(&self) -> bool {
        self.device.load(SeqCst) > WatchedSlot::CLAIMED
    }

    fn is_to_be_read(&self) -> bool {
        self.is_open() && !self.is_profiled.load(SeqCst)
    }
}

/// One bit for each chip of a process.
fn bit(device_id: u32) -> u64 {
    1u64.checked_shl(device_id).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::dispatch_telemetry::block::CoreAt;
    use std::sync::atomic::Ordering::Relaxed;

    fn enter(watched: &Watched, device: Object, queue: usize) {
        let core = CoreAt { x: 1, y: 2 };
        let cores = QueueCores { prefetch: core, dispatch: core };
        let queue_of_it = WatchedQueue { cores, addresses: Addresses::default() };
        watched.enter(device, Member::default(), NonNull::dangling(), queue, queue_of_it);
    }

    fn device(at: usize) -> Object {
        NonNull::new(ptr::without_provenance_mut(at)).unwrap()
    }

    #[test]
    fn a_device_is_read_only_while_it_is_open() {
        let watched = &Watched::new();
        assert!(!watched.claim_thread(), "nothing to read, no thread");
        enter(watched, device(64), 0);
        assert!(watched.claim_thread() && !watched.claim_thread() && !watched.may_end());
        let visit = watched.visits().next().unwrap();
        assert_eq!(watched.while_open(&visit, || 7), Some(7));
        watched.fork_begins();
        assert_eq!(watched.while_open(&visit, || 7), None, "not while the process forks");
        watched.forked();
        enter(watched, device(64), 1);
        assert_eq!(watched.while_open(&visit, || 7), None, "it has another queue now");
        let visit = watched.visits().next().unwrap();
        assert_eq!(watched.leave(device(128)), None);
        assert_eq!(watched.while_open(&visit, || 7), Some(7));
        watched.is_in_book(&visit, 3);
        assert_eq!(watched.leave(device(64)), Some(3));
        assert_eq!(watched.while_open(&visit, || 7), None);
        enter(watched, device(64), 0);
        assert_eq!(watched.while_open(&visit, || 7), None, "another device at the same address");
        watched.leave_cluster(NonNull::dangling());
        assert!(watched.may_end() && watched.visits().next().is_none());
    }

    #[test]
    fn however_threads_race_nothing_is_read_after_a_close() {
        let watched = &Watched::new();
        let (is_open, done, reads) = (&AtomicBool::new(false), &AtomicBool::new(false), &AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(move || {
                while !done.load(Relaxed) {
                    for visit in watched.visits() {
                        let read = || {
                            assert!(is_open.load(SeqCst), "closed before a read");
                            (0..200).for_each(|_| std::hint::spin_loop());
                            std::thread::yield_now();
                            assert!(is_open.load(SeqCst), "closed during a read");
                            reads.fetch_add(1, Relaxed);
                        };
                        watched.while_open(&visit, read);
                    }
                }
            });
            for turn in 0.. {
                is_open.store(true, SeqCst);
                enter(watched, device(64 * (1 + turn % 3)), 0);
                (0..turn % 50).for_each(|_| std::hint::spin_loop());
                watched.leave(device(64 * (1 + turn % 3)));
                is_open.store(false, SeqCst);
                if turn % 100 == 0 {
                    std::thread::yield_now();
                }
                if turn > 2_000 && reads.load(Relaxed) > 100 || turn > 50_000 {
                    break;
                }
            }
            done.store(true, Relaxed);
        });
        assert!(reads.load(Relaxed) > 0);
    }
}
