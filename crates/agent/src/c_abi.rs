//! What `libttmon_agent.so` offers to other runtimes, and to whoever asks: the functions of `include/ttmon.h`.
//!
//! The header is made from this file; `tests/agent/c_abi.rs` compares the two.

use crate::book::ProcessBook;
use crate::clock::millis;
use crate::switch::is_on;
use crate::{label, query};
use ledger::book::{AllocatorBanks, Chips, MemoryKind, NewBuffer};
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What device memory is used for.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub enum CMemoryKind {
    /// Buffers in DRAM.
    Dram = 0,
    /// Buffers in L1.
    L1 = 1,
    /// Buffers in the small L1 region.
    L1Small = 2,
    /// Recorded command traces, in DRAM.
    Trace = 3,
    /// Circular buffers, in L1.
    Cb = 4,
    /// Kernel code.
    Kernel = 5,
}

/// A buffer, the same on all of its chips. It takes `bytes_per_bank` × `banks` of each.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CBuffer {
    /// Id of the buffer, unique among the live buffers of this process.
    pub id: u64,
    /// The chips that have it: bit n for the chip that `ttmon_chip` numbered n.
    pub chips: u64,
    /// Bytes that were asked for, per chip.
    pub logical_bytes: u64,
    /// Bytes that are reserved in each bank.
    pub bytes_per_bank: u64,
    /// Address in each bank.
    pub address: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// What people call it: UTF-8, of which 56 bytes are kept. NULL for the innermost label of this thread.
    pub label: *const c_char,
    /// The banks in which memory is reserved.
    pub banks: u32,
    /// A `ttmon_kind`.
    pub kind: u8,
    /// As the runtime numbers its layouts.
    pub layout: u8,
}

/// What an allocator says of one bank; all banks of a kind are alike.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CBankFigures {
    /// Bytes that can be handed out at all.
    pub allocatable_bytes: u64,
    /// Bytes that are handed out.
    pub allocated_bytes: u64,
    /// Bytes that are left.
    pub free_bytes: u64,
    /// The largest piece of them.
    pub largest_free_bytes: u64,
    /// How many banks there are.
    pub banks: u32,
}

/// Begins the book of this process, if it has none yet; a forked child begins its own.
///
/// `producer` says who keeps it, such as "my-runtime 1.2". False when no book can be kept, or `TTMON_AGENT=off`: all
/// that follows is harmless then.
///
/// # Safety
/// `producer` must be NULL or end with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ttmon_open(producer: *const c_char) -> bool {
    // SAFETY: as promised.
    let producer = unsafe { text(producer) };
    guarded(false, || {
        let producer = producer.map_or(UNNAMED.into(), CStr::to_string_lossy);
        let book = if is_on() { ProcessBook::open_for(&producer) } else { None };
        book.inspect(|book| book.tend(millis())).is_some()
    })
}

/// The number in the book of the chip that this process calls `device_id`, or -1.
///
/// `unique_id` identifies the chip: the number that tt-umd gives it. 0 when it is not known.
#[unsafe(no_mangle)]
pub extern "C" fn ttmon_chip(device_id: u32, unique_id: u64) -> i32 {
    let unique_id = (unique_id != 0).then_some(unique_id);
    let chip = guarded(None, || current()?.write(|writer| writer.chip(device_id, unique_id)).flatten());
    chip.map_or(-1, i32::from)
}

/// A buffer was allocated. One with the same id is replaced. False when no book is kept, or there is no such kind.
///
/// # Safety
/// `buffer` must be NULL or point to one, whose label is NULL or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ttmon_allocate(buffer: *const CBuffer) -> bool {
    // SAFETY: as promised.
    let Some(buffer) = (unsafe { buffer.as_ref() }) else { return false };
    // SAFETY: as promised.
    let own_label = unsafe { text(buffer.label) };
    guarded(false, || {
        let Some(book) = current() else { return false };
        let Some(kind) = MemoryKind::from_number(buffer.kind) else {
            book.incomplete("a runtime reported a buffer of an unknown kind, which is not counted");
            return false;
        };
        let enter = |label: &[u8]| {
            let new = NewBuffer {
                id: buffer.id,
                chips: Chips(buffer.chips),
                kind,
                logical: buffer.logical_bytes,
                per_bank: buffer.bytes_per_bank,
                banks: buffer.banks,
                address: buffer.address,
                page: buffer.page_bytes,
                layout: buffer.layout,
                owner: 0,
                label,
            };
            book.write(|writer| writer.allocate(&new)).is_some()
        };
        let entered = match own_label {
            Some(own) => enter(label::fitting(own.to_bytes())),
            None => label::with_current(enter),
        };
        book.tend(millis());
        entered
    })
}

/// A buffer is about to be given back. False when the book does not know it.
#[unsafe(no_mangle)]
pub extern "C" fn ttmon_free(id: u64) -> bool {
    guarded(false, || current().and_then(|book| book.write(|writer| writer.free(id))).unwrap_or(false))
}

/// What the allocator says of the banks of a `ttmon_kind` on a chip, as of the last buffer that was reported. Only DRAM,
/// L1, L1_SMALL and TRACE have banks.
///
/// # Safety
/// `figures` must be NULL or point to some.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ttmon_banks(chip: i32, kind: u8, figures: *const CBankFigures) {
    // SAFETY: as promised.
    let Some(figures) = (unsafe { figures.as_ref() }) else { return };
    let (Ok(chip), Some(kind)) = (u8::try_from(chip), MemoryKind::from_number(kind)) else { return };
    let figures = AllocatorBanks {
        banks: figures.banks,
        allocatable: figures.allocatable_bytes,
        allocated: figures.allocated_bytes,
        free: figures.free_bytes,
        largest_free: figures.largest_free_bytes,
    };
    guarded((), || _ = current().map(|book| book.write(|writer| writer.banks(chip, kind, figures))));
}

/// Labels the buffers that this thread allocates from now on, until `ttmon_label_pop`. The innermost label counts.
///
/// # Safety
/// `text` must be NULL or end with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ttmon_label_push(text: *const c_char) {
    // SAFETY: as promised.
    let label = unsafe { self::text(text) }.map_or(&b""[..], CStr::to_bytes);
    guarded((), || label::push(label));
}

/// Goes back to the label before the last `ttmon_label_push`.
#[unsafe(no_mangle)]
pub extern "C" fn ttmon_label_pop() {
    guarded((), label::pop);
}

/// Notes in the book that this process is done. What is still allocated counts as left behind. The end of the process
/// does the same, if it comes by `exit`.
#[unsafe(no_mangle)]
pub extern "C" fn ttmon_close() {
    guarded((), || _ = current().map(|book| book.write(|writer| writer.close())));
}

/// The book of this process with its live buffers, as JSON.
///
/// The answer of each query goes back with `ttmon_text_free`. When there is none, it is `{"error":"why"}`.
#[unsafe(no_mangle)]
pub extern "C" fn ttmon_memory() -> *mut c_char {
    answer(query::memory)
}

/// The book of a process with its live buffers, as JSON. A process may look into those of its own user; root into all.
#[unsafe(no_mangle)]
pub extern "C" fn ttmon_process(pid: i32) -> *mut c_char {
    answer(|| query::process(pid))
}

/// The device with this index and the processes that use it, as JSON, in the form of `ttmon smi --json`. -1 for all.
#[unsafe(no_mangle)]
pub extern "C" fn ttmon_system(device: i32) -> *mut c_char {
    answer(|| query::system(device))
}

/// The same, and in each process its `book` with its live buffers, where it keeps one that may be read.
#[unsafe(no_mangle)]
pub extern "C" fn ttmon_detailed(device: i32) -> *mut c_char {
    answer(|| query::detailed(device))
}

/// The operations that a process has launched, and their time on the devices, as JSON. 0 for this process.
#[unsafe(no_mangle)]
pub extern "C" fn ttmon_ops(pid: i32) -> *mut c_char {
    answer(|| query::operations(pid))
}

/// Gives the answer of a query back. NULL is fine.
///
/// # Safety
/// `text` must be NULL or the answer of a query, once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ttmon_text_free(text: *mut c_char) {
    // SAFETY: `answer` made it, with `malloc`.
    unsafe { libc::free(text.cast()) };
}

/// For who does not say who it is.
const UNNAMED: &str = "a program that reports its buffers by ttmon.h";

/// The book, if there is one and it is to be kept.
fn current() -> Option<&'static ProcessBook> {
    if is_on() { ProcessBook::current() } else { None }
}

/// A panic, though there should be none, ends here and not in C.
fn guarded<T>(otherwise: T, what: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(what)).unwrap_or(otherwise)
}

/// # Safety
/// The pointer must be null or lead to a text that ends with a zero, and stays.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: as promised.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

/// Makes a text for C, of memory from `malloc`, as C gives it back.
fn answer(query: impl FnOnce() -> String) -> *mut c_char {
    let json = guarded(query::failed("the query failed"), query);
    // JSON writes a zero as \u0000.
    let json = CString::new(json).unwrap_or_default();
    // SAFETY: it ends with a zero.
    unsafe { libc::strdup(json.as_ptr()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_are_those_of_the_book() {
        use CMemoryKind::{Cb, Dram, Kernel, L1, L1Small, Trace};
        for (ours, theirs) in [Dram, L1, L1Small, Trace, Cb, Kernel].into_iter().zip(MemoryKind::ALL) {
            assert_eq!(ours as u8, theirs as u8, "{ours:?}");
        }
    }
}
