//! The one book of this process: made when there is something to enter, and made again in a forked child.

use crate::buffer::Allocator;
use crate::clock::millis;
use crate::device::Object;
use crate::due::{AskLimit, Programs, Refresh};
use crate::handover::Handover;
use crate::library;
use crate::metal::Metal;
use crate::switch::{is_on, wants_timeline};
use crate::tracking::{Tracking, launch_times};
use ledger::book::{Chips, MemoryKind, Writer};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release,
};

/// A book and what belongs to it. Never freed: another thread may be in it, and a child has its parent's.
pub struct ProcessBook {
    writer: Writer,
    handover: Handover,
    remarked: AtomicBool,
    pub devices: Devices,
    pub circular: AskLimit,
    pub activity: Tracking,
}

impl ProcessBook {
    /// The book of this process, if there is one.
    #[inline]
    pub fn current() -> Option<&'static ProcessBook> {
        // SAFETY: what is stored here is never freed.
        let book = unsafe { BOOK.load(Acquire).as_ref() }?;
        book.writer.is_mine().then_some(book)
    }

    /// The book of this process, made if there is none.
    #[inline]
    pub fn open(metal: &Metal) -> Option<&'static ProcessBook> {
        ProcessBook::current().or_else(|| ProcessBook::make(|| metal.producer(), metal.problem()))
    }

    /// Opens the book for a program that reports its buffers itself. The first producer is named in the book.
    pub fn open_for(producer: &str) -> Option<&'static ProcessBook> {
        ProcessBook::current().or_else(|| ProcessBook::make(|| producer.to_owned(), None))
    }

    /// The book of a process that has a tt-metal whose functions are not those that the agent intercepts.
    #[cold]
    fn of_unknown_library() -> Option<&'static ProcessBook> {
        let is_unknown = is_on() && library::path().is_some() && !library::is_loaded();
        let producer = || format!("ttmon-agent {}, libtt_metal that is not recognised", env!("CARGO_PKG_VERSION"));
        is_unknown.then(|| ProcessBook::make(producer, Some(UNKNOWN))).flatten()
    }

    /// Writes. A panic, though there should be none, ends here and not in C++.
    #[inline]
    pub fn write<T>(&self, write: impl FnOnce(&Writer) -> T) -> Option<T> {
        catch_unwind(AssertUnwindSafe(|| write(&self.writer))).ok()
    }

    /// Says once what was not recognised, and that the book is incomplete for it.
    #[cold]
    pub fn incomplete(&self, text: &str) {
        if !self.remarked.swap(true, Relaxed) {
            self.write(|writer| writer.give_up(text));
        }
    }

    /// Reads from the pages themselves, whatever became of the file.
    pub fn read_at(&self, offset: usize, into: &mut [u8]) -> usize {
        self.writer.read_at(offset, into)
    }

    /// Marks the book as closed, without waiting for anything.
    pub fn close_at_once(&self) {
        self.write(Writer::close_at_once);
    }

    /// What is to be done with any event.
    #[inline]
    pub fn tend(&self, now: u64) {
        self.handover.tend(now, || self.writer.open_file());
    }

    #[cold]
    fn make(producer: impl Fn() -> String, problem: Option<&str>) -> Option<&'static ProcessBook> {
        let me = std::process::id();
        loop {
            if let Some(book) = ProcessBook::current() {
                return Some(book);
            }
            if GIVEN_UP.load(Acquire) == me {
                return None;
            }
            // A parent that was at it when it forked does not count.
            let at_it = MAKING.load(Acquire);
            if at_it != me && MAKING.compare_exchange(at_it, me, AcqRel, Acquire).is_ok() {
                break;
            }
            std::thread::yield_now();
        }
        // Another thread may have finished just before.
        let book = ProcessBook::current().or_else(|| {
            let made = catch_unwind(AssertUnwindSafe(|| Writer::create(&producer()))).ok().and_then(Result::ok);
            let Some(writer) = made else {
                GIVEN_UP.store(me, Release);
                return None;
            };
            if wants_timeline() {
                writer.keep_single_records();
                launch_times::keep();
            }
            let book = Box::leak(Box::new(ProcessBook {
                writer,
                handover: Handover::to(std::env::var_os("TTMON_BOOK_SOCKET").as_deref()),
                remarked: AtomicBool::new(false),
                devices: Devices::new(),
                circular: AskLimit::new(),
                activity: Tracking::new(),
            }));
            if let Some(problem) = problem {
                let path = library::path().map_or(String::new(), |path| format!(" ({path})"));
                book.incomplete(&format!("{problem}{path}"));
            }
            BOOK.store(book, Release);
            Some(&*book)
        });
        MAKING.store(0, Release);
        book
    }
}

const UNKNOWN: &str = "libtt_metal.so has none of the functions that report a buffer; nothing is counted";

static BOOK: AtomicPtr<ProcessBook> = AtomicPtr::new(ptr::null_mut());
/// The process that is making its book.
static MAKING: AtomicU32 = AtomicU32::new(0);
/// The process that could not make one. A book that begins late would be wrong.
static GIVEN_UP: AtomicU32 = AtomicU32::new(0);

/// The loader calls this at the end of the process, after what was to be done at exit.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = {
    extern "C" fn close() {
        // Also for a tt-metal of which nothing was recognised, so that whoever reads the receipt knows.
        if let Some(book) = ProcessBook::current().or_else(ProcessBook::of_unknown_library) {
            book.write(Writer::close);
            book.tend(millis());
        }
    }
    close
};

/// The devices that were met, by their addresses.
pub struct Devices {
    slots: [DeviceSlot; DEVICES],
    used: AtomicUsize,
}

/// More devices than this at a time are still counted, but looked at again for each event.
const DEVICES: usize = 128;

impl Devices {
    fn new() -> Devices {
        Devices { slots: [const { DeviceSlot::new() }; DEVICES], used: AtomicUsize::new(0) }
    }

    pub fn iter(&self) -> impl Iterator<Item = &DeviceSlot> {
        self.slots.iter().take(self.used.load(Acquire)).filter(|slot| slot.object().is_some())
    }

    #[inline]
    pub fn get(&self, device: Object) -> Option<&DeviceSlot> {
        let used = self.slots.iter().take(self.used.load(Acquire));
        used.into_iter().find(|slot| slot.object.load(Acquire) == device.addr().get())
    }

    /// Enters a device. Threads that race may enter it twice, which is no harm.
    pub fn insert(&self, device: Object, chips: Chips) -> Option<&DeviceSlot> {
        let claim = |slot: &&DeviceSlot| slot.object.compare_exchange(0, CLAIMED, AcqRel, Relaxed).is_ok();
        let (at, slot) = self.slots.iter().enumerate().find(|(_, slot)| claim(slot))?;
        slot.chips.store(chips.0, Relaxed);
        slot.reset();
        slot.object.store(device.addr().get(), Release);
        self.used.fetch_max(at + 1, AcqRel);
        Some(slot)
    }

    /// Forgets a device: the next one may have its address.
    pub fn remove(&self, device: Object, mut last: impl FnMut(&DeviceSlot)) {
        for slot in self.slots.iter().filter(|slot| slot.object.load(Acquire) == device.addr().get()) {
            last(slot);
            slot.object.store(0, Release);
        }
    }

    /// Whether all buffers of a kind on the chips of a device are the device's own.
    ///
    /// A mesh, its submeshes and its single devices have allocators of their own for the same chips.
    pub fn is_alone(&self, device: &DeviceSlot, kind: MemoryKind) -> bool {
        let others = self.iter().filter(|slot| !ptr::eq(*slot, device));
        !others.into_iter().any(|slot| slot.chips().0 & device.chips().0 != 0 && slot.has_any(kind))
    }
}

/// A device that was met.
pub struct DeviceSlot {
    object: AtomicUsize,
    chips: AtomicU64,
    allocator: AtomicUsize,
    events: [AtomicU64; BANKED],
    banks: [Refresh; BANKED],
    pub programs: Programs,
}

/// Kinds that have banks come first.
const BANKED: usize = 4;
/// In one number: the events, round and round, the live buffers, and the events under way.
const EVENT: u64 = 1 << 40;
const LIVE: u64 = 1 << 16;
const UNDER_WAY: u64 = 1;
/// In place of an address while a slot is filled.
const CLAIMED: usize = 1;

impl DeviceSlot {
    const fn new() -> DeviceSlot {
        DeviceSlot {
            object: AtomicUsize::new(0),
            chips: AtomicU64::new(0),
            allocator: AtomicUsize::new(0),
            events: [const { AtomicU64::new(0) }; BANKED],
            banks: [const { Refresh::new() }; BANKED],
            programs: Programs::new(),
        }
    }

    pub fn object(&self) -> Option<Object> {
        let address = self.object.load(Acquire);
        if address == CLAIMED { None } else { NonNull::new(ptr::with_exposed_provenance_mut(address)) }
    }

    pub fn chips(&self) -> Chips {
        Chips(self.chips.load(Relaxed))
    }

    /// A buffer was allocated, and comes into the book now.
    #[inline]
    pub fn gains(&self, kind: MemoryKind) {
        self.change(kind, EVENT + LIVE);
    }

    /// A buffer goes out of the book now, and is given back after that: they disagree from here on.
    #[inline]
    pub fn begins_to_lose(&self, kind: MemoryKind) {
        self.change(kind, EVENT + UNDER_WAY);
    }

    /// They agree again. The book may not have known the buffer.
    #[inline]
    pub fn has_lost(&self, kind: MemoryKind, known: bool) {
        self.change(kind, UNDER_WAY.wrapping_neg().wrapping_sub(if known { LIVE } else { 0 }));
    }

    #[inline]
    fn change(&self, kind: MemoryKind, by: u64) {
        if let Some(events) = self.events.get(kind as usize) {
            events.fetch_add(by, AcqRel);
        }
    }

    /// A number that stays the same while book and allocator agree and nothing happens. `None` while they do not.
    pub fn at_rest(&self, kind: MemoryKind) -> Option<u64> {
        let events = self.events.get(kind as usize)?.load(Acquire);
        (events % LIVE == 0).then_some(events)
    }

    /// Whether there are buffers of a kind on this device.
    fn has_any(&self, kind: MemoryKind) -> bool {
        self.events.get(kind as usize).is_some_and(|events| events.load(Acquire) % EVENT / LIVE != 0)
    }

    pub fn refresh(&self, kind: MemoryKind) -> Option<&Refresh> {
        self.banks.get(kind as usize)
    }

    /// The allocator that has all banks of the device.
    pub fn set_allocator(&self, allocator: Allocator) {
        self.allocator.store(allocator.addr().get(), Relaxed);
    }

    pub fn has_allocator(&self, allocator: Allocator) -> bool {
        self.allocator.load(Relaxed) == allocator.addr().get()
    }

    /// There are no buffers on this device any more.
    pub fn emptied(&self) {
        self.events.iter().for_each(|events| _ = events.fetch_and(!(EVENT - LIVE), AcqRel));
    }

    fn reset(&self) {
        self.allocator.store(0, Relaxed);
        self.events.iter().for_each(|events| events.store(0, Relaxed));
        self.banks.iter().for_each(Refresh::reset);
        self.programs.reset();
    }
}
