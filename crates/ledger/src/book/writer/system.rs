//! What the writer asks of the kernel: memory for the book, the time, and the names of process and thread.

use crate::book::activity::layout::LENGTH;
use crate::book::layout::{FIRST_CHIP, JOURNAL, slot_at};
use crate::mapping::Mapping;
use rustix::fs::FallocateFlags;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::fs::File;
use std::io;

/// Maps a new book with as much room as the process may have, and returns how many slots that is.
pub(super) fn map_table(file: &File, slots: u32) -> io::Result<(Mapping, u32)> {
    // Beyond this limit the kernel sends a signal that would end the process.
    let allowed = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
    let mut error =
        io::Error::new(io::ErrorKind::StorageFull, "the limit on the size of files leaves no room for a book");
    let few = slots / 256;
    for (capacity, activity) in [(slots, LENGTH), (slots / 16, LENGTH), (few, LENGTH), (few, 0), (0, 0)] {
        let journal = slot_at(capacity as usize);
        let journal_end = journal + JOURNAL as usize * 8;
        let length = journal_end + activity;
        if length as u64 > allowed {
            continue;
        }
        let mapped = file
            .set_len(length as u64)
            .and_then(|()| allocate_pages(file, 0, FIRST_CHIP))
            .and_then(|()| allocate_pages(file, journal, journal_end - journal))
            .and_then(|()| Mapping::of(file, length));
        match mapped {
            Ok(map) => return Ok((map, capacity)),
            Err(why) => error = why,
        }
    }
    Err(error)
}

/// The length of a book with so much room for slots that also has room for activity.
pub(in crate::book) fn length_with_activity(capacity: u32) -> usize {
    slot_at(capacity as usize) + JOURNAL as usize * 8 + LENGTH
}

/// File system and number of a file.
pub(super) fn identity(file: &File) -> io::Result<(u64, u64)> {
    let stat = rustix::fs::fstat(file)?;
    Ok((stat.st_dev, stat.st_ino))
}

pub(in crate::book) fn allocate_pages(file: &File, offset: usize, length: usize) -> io::Result<()> {
    let flags = FallocateFlags::empty();
    Ok(rustix::io::retry_on_intr(|| rustix::fs::fallocate(file, flags, offset as u64, length as u64))?)
}

/// Nanoseconds since 1970, as of the last tick of the kernel: a few milliseconds old, and a fifth of the price.
#[inline]
pub(super) fn now() -> u64 {
    let time = clock_gettime(ClockId::RealtimeCoarse);
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// When this process began, in clock ticks since boot.
pub(super) fn start_ticks() -> Option<u64> {
    let stat = std::fs::read("/proc/self/stat").ok()?;
    let name_ends = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(stat.get(name_ends + 1..)?).ok()?;
    // Field 22 of the manual page; the first one after the name is 3.
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// The number of this thread, remembered with the process that it is of.
#[inline]
pub(super) fn this_thread(pid: u32) -> u32 {
    thread_local!(static KNOWN: Cell<(u32, u32)> = const { Cell::new((0, 0)) });
    KNOWN
        .try_with(|known| match known.get() {
            (of, thread) if of == pid => thread,
            _ => {
                let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
                known.set((pid, thread));
                thread
            }
        })
        .unwrap_or(0)
}
