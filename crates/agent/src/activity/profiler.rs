//! tt-metal's real-time profiler: it delivers the start and end of every program to whoever is registered.
//!
//! It is active when the library says so for a chip, after it has opened it. The agent registers with the next launch, from a thread that
//! holds none of the library's locks, and unregisters when the last chip has been deactivated: the library has joined its threads by
//! then, so that all records have been delivered, and has not yet dropped the list of who is registered.

use super::{begun, kernel_path};
use crate::book::ProcessBook;
use crate::dispatch_telemetry;
use crate::library::{self, function};
use crate::tracking::{Registration, launch_times, runtime_ids};
use ledger::book::activity::{ActivitySource, DeviceRecord, NoRecords, monotonic};
use ledger::book::{CHIPS, Chips};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// Registers, if that is to be done, before a program is launched.
#[inline]
pub fn prepare(book: &'static ProcessBook) {
    if book.activity.profiler.state.load(Acquire) == Registration::TO_DO {
        register(book);
    }
}

/// The profiler is active on a chip from now on.
#[cold]
pub fn activated(device_id: u32) {
    dispatch_telemetry::profiled(device_id, true);
    let Some(book) = begun() else { return };
    let Some(chip) = book.write(|writer| writer.chip(device_id, None)).flatten() else { return };
    let registration = &book.activity.profiler;
    book.activity.set_chip(device_id, chip);
    registration.active.fetch_or(Chips::one(chip).0, AcqRel);
    book.write(|writer| writer.chip_opened(chip, ActivitySource::Profiler, monotonic()));
    if registration.handle.load(Acquire) == 0 {
        registration.state.store(Registration::TO_DO, Release);
    }
}

/// It is not any more: the device is being closed, and its threads have ended.
#[cold]
pub fn deactivated(device_id: u32) {
    dispatch_telemetry::profiled(device_id, false);
    let Some(book) = begun() else { return };
    let Some(chip) = book.activity.chip(device_id) else { return };
    super::closed(book, Chips::one(chip));
    let registration = &book.activity.profiler;
    let left = registration.active.fetch_and(!Chips::one(chip).0, AcqRel) & !Chips::one(chip).0;
    let handle = if left == 0 { registration.handle.swap(0, AcqRel) } else { 0 };
    if handle != 0 {
        registration.state.store(Registration::TO_DO, Release);
        // SAFETY: the type follows from the name.
        if let Some(unregister) = unsafe { function::<unsafe extern "C-unwind" fn(u64)>(UNREGISTER) } {
            // SAFETY: we registered with this handle, and are not in a callback.
            unsafe { unregister(handle) };
        }
        book.write(|writer| writer.records_arrive(false, None));
    }
}

/// A chip came into the book.
pub fn chip_met(book: &ProcessBook, chip: u8) {
    let registration = &book.activity.profiler;
    let is_active = registration.active.load(Acquire) & Chips::one(chip).0 != 0;
    let reason = NoRecords::from_number(registration.reason.load(Relaxed).into());
    if let Some(reason) = reason.filter(|_| !is_active) {
        book.write(|writer| writer.chip_unrecorded(chip, reason));
    }
}

#[cold]
fn register(book: &'static ProcessBook) {
    let registration = &book.activity.profiler;
    if registration.state.compare_exchange(Registration::TO_DO, Registration::UNDER_WAY, AcqRel, Acquire).is_err() {
        return;
    }
    let reason = match (registration.active.load(Acquire), Register::find()) {
        (_, None) => Some(NoRecords::NoProfiler),
        (0, Some(_)) => Some(NoRecords::Inactive),
        (_, Some(register)) => {
            let handle = register.call();
            registration.handle.store(handle, Release);
            (handle == 0).then_some(NoRecords::Refused)
        }
    };
    let active = registration.active.load(Acquire);
    book.write(|writer| {
        writer.records_arrive(reason.is_none(), reason);
        // Where the profiler is active on another chip, this one is behind it.
        let reason = reason.unwrap_or(NoRecords::Remote);
        let chips = (0..CHIPS as u8).filter(|chip| active & Chips::one(*chip).0 == 0);
        chips.for_each(|chip| writer.chip_unrecorded(chip, reason));
    });
    registration.reason.store(reason.unwrap_or(NoRecords::Remote) as u8, Relaxed);
    registration.state.store(Registration::DONE, Release);
}

const UNREGISTER: &std::ffi::CStr = c"_ZN2tt8tt_metal12experimental41UnregisterProgramRealtimeProfilerCallbackEm";

/// `RegisterProgramRealtimeProfilerCallback`, which takes a `std::function` by reference and answers a handle.
struct Register {
    function: unsafe extern "C-unwind" fn(*mut StdFunction) -> u64,
    invoke: *const c_void,
}

impl Register {
    fn find() -> Option<Register> {
        const OF_BATCHES: &std::ffi::CStr = c"_ZN2tt8tt_metal12experimental39RegisterProgramRealtimeProfilerCallbackESt8functionIFvRKNS1_26ProgramRealtimeRecordBatchEEE";
        const OF_RECORDS: &std::ffi::CStr = c"_ZN2tt8tt_metal12experimental39RegisterProgramRealtimeProfilerCallbackESt8functionIFvRKNS1_21ProgramRealtimeRecordEEE";
        library::find(c"_ZN2tt8tt_metal12experimental41UnregisterProgramRealtimeProfilerCallbackEm")?;
        // SAFETY: the type follows from the names: what has a destructor is passed by reference.
        unsafe {
            let batches = function(OF_BATCHES).map(|function| Register { function, invoke: on_batch as *const c_void });
            batches.or_else(|| {
                function(OF_RECORDS).map(|function| Register { function, invoke: on_record as *const c_void })
            })
        }
    }

    fn call(&self) -> u64 {
        let mut callback = StdFunction { storage: [0; 2], manager: manage as *const c_void, invoker: self.invoke };
        // SAFETY: the library moves the function out, and calls its manager and its invoker as libstdc++ does.
        unsafe { (self.function)(&mut callback) }
    }
}

/// libstdc++'s `std::function`, whose layout is part of its ABI.
#[repr(C)]
struct StdFunction {
    storage: [usize; 2],
    manager: *const c_void,
    invoker: *const c_void,
}

/// What a `std::function` does with its target: there is nothing to copy and nothing to destroy.
extern "C" fn manage(to: *mut *const c_void, _from: *const c_void, what: u32) -> bool {
    const TYPE_OF: u32 = 0;
    const POINTER_TO: u32 = 1;
    if matches!(what, TYPE_OF | POINTER_TO) && !to.is_null() {
        // SAFETY: for these the caller wants a pointer.
        unsafe { *to = ptr::null() };
    }
    false
}

/// `ProgramRealtimeRecordBatch`.
#[repr(C)]
struct Batch {
    records: *const Record,
    count: usize,
    dropped: u64,
}

/// `ProgramRealtimeRecord`.
#[repr(C)]
struct Record {
    runtime_id: u32,
    chip_id: u32,
    start: u64,
    end: u64,
    cycles_per_ns: f64,
    sources: *const StringView,
    source_count: usize,
}

/// libstdc++'s `std::string_view`.
#[repr(C)]
struct StringView {
    length: usize,
    text: *const u8,
}

const _: () = assert!(size_of::<Record>() == 48 && size_of::<StdFunction>() == 32);

/// Records that arrive at a time, at most. More are a mistake of ours about the layout.
const MOST: usize = 1 << 24;

extern "C" fn on_batch(_storage: *const c_void, batch: *const Batch) {
    // SAFETY: the library hands over a batch that stays until we return.
    let Some(batch) = (unsafe { batch.as_ref() }) else { return };
    let is_list = !batch.records.is_null() && batch.records.is_aligned() && batch.count <= MOST;
    // SAFETY: as above.
    let records = if is_list { unsafe { std::slice::from_raw_parts(batch.records, batch.count) } } else { &[] };
    arrived(records, batch.dropped, true);
}

/// Up to 0.75, one record at a time, from the thread that receives them.
extern "C" fn on_record(_storage: *const c_void, record: *const Record) {
    // SAFETY: the library hands over a record that stays until we return.
    if let Some(record) = unsafe { record.as_ref() } {
        arrived(std::slice::from_ref(record), 0, false);
    }
}

fn arrived(records: &[Record], dropped: u64, has_sources: bool) {
    // A panic, though there should be none, ends here and not in C++.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let Some(book) = ProcessBook::current() else { return };
        let arrival = monotonic();
        book.write(|writer| {
            let record = |record: &Record| {
                let runtime_id = record.runtime_id as u16;
                let named_by_path = || {
                    let operation = writer.operation(record.operation(has_sources)?)?;
                    runtime_ids::named_by_path(runtime_id, operation);
                    Some(operation)
                };
                DeviceRecord {
                    chip: book.activity.chip(record.chip_id).unwrap_or(u8::MAX),
                    runtime_id,
                    operation: runtime_ids::operation(runtime_id).or_else(named_by_path),
                    start: record.start,
                    end: record.end,
                    cycles_per_ns: record.cycles_per_ns,
                }
            };
            writer.launched_records(records.iter().map(record), dropped, arrival, launch_times::of);
        });
    }));
}

impl Record {
    /// The operation that the first path among its kernels names.
    fn operation(&self, has_sources: bool) -> Option<&[u8]> {
        const KERNELS: usize = 64;
        const PATH: usize = 4096;
        let is_list = has_sources && !self.sources.is_null() && self.sources.is_aligned();
        if !is_list || self.source_count > KERNELS {
            return None;
        }
        // SAFETY: the library keeps the list and its texts until it is torn down, after its threads have ended.
        let sources = unsafe { std::slice::from_raw_parts(self.sources, self.source_count) };
        let paths = sources.iter().filter(|path| !path.text.is_null() && path.length <= PATH);
        // SAFETY: as above.
        paths.map(|path| unsafe { std::slice::from_raw_parts(path.text, path.length) }).find_map(kernel_path::operation)
    }
}
