//! The functions of `libtt_metal.so` that say what is launched and waited for.
//!
//! Queues are told by their address. Recording and replaying of traces are virtual functions of a queue, and the loader fills the tables of
//! virtual functions by name as well: so all ways to a trace lead here. What is not there in a release is not called, and not recorded.

use super::launches::{self, Wait};
use super::profiler;
use crate::intercept::{in_front_of, nothing, zero_terminated};
use crate::library::Real;
use crate::switch::is_on;
use ledger::book::activity::monotonic;
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

type Pointer = *mut c_void;

in_front_of!(
    /// `EnqueueMeshWorkload(MeshCommandQueue&, MeshWorkload&, bool)`
    "_ZN2tt8tt_metal11distributed19EnqueueMeshWorkloadERNS1_16MeshCommandQueueERNS1_12MeshWorkloadEb",
    fn enqueue(queue: Pointer, workload: Pointer, blocking: bool),
    launches::launched(queue),
    nothing
);

in_front_of!(
    /// `Program::set_runtime_id(unsigned long)`
    "_ZN2tt8tt_metal7Program14set_runtime_idEm",
    fn set_runtime_id(program: Pointer, id: u64),
    launches::runtime_id(id),
    nothing
);

in_front_of!(
    /// `FDMeshCommandQueue::record_begin(MeshTraceId const&, std::shared_ptr<MeshTraceDescriptor> const&)`
    "_ZN2tt8tt_metal11distributed18FDMeshCommandQueue12record_beginERKN4ttsl10StrongTypeIjNS1_14MeshTraceIdTagEEERKSt10shared_ptrINS1_19MeshTraceDescriptorEE",
    fn record_begin(queue: Pointer, trace: *const u32, descriptor: Pointer),
    // SAFETY: a reference to a number.
    launches::recording_begins(queue, unsafe { *trace }),
    nothing
);

in_front_of!(
    /// `FDMeshCommandQueue::record_end()`
    "_ZN2tt8tt_metal11distributed18FDMeshCommandQueue10record_endEv",
    fn record_end(queue: Pointer),
    launches::recording_ends(queue),
    nothing
);

in_front_of!(
    /// `FDMeshCommandQueue::enqueue_trace(MeshTraceId const&, bool)`
    "_ZN2tt8tt_metal11distributed18FDMeshCommandQueue13enqueue_traceERKN4ttsl10StrongTypeIjNS1_14MeshTraceIdTagEEEb",
    fn enqueue_trace(queue: Pointer, trace: *const u32, blocking: bool),
    // SAFETY: a reference to a number.
    launches::replayed(queue, unsafe { *trace }),
    nothing
);

in_front_of!(
    /// `MeshDevice::release_mesh_trace(MeshTraceId const&)`
    "_ZN2tt8tt_metal11distributed10MeshDevice18release_mesh_traceERKN4ttsl10StrongTypeIjNS1_14MeshTraceIdTagEEE",
    fn release_trace(device: Pointer, trace: *const u32),
    // SAFETY: a reference to a number.
    launches::released(unsafe { *trace }),
    nothing
);

/// A wait for a queue is for all of it when no sub-devices are named.
fn whole(queue: Pointer, sub_devices: usize) -> Option<*const c_void> {
    (sub_devices == 0).then_some(queue.cast_const())
}

fn over(wait: Wait, _: &()) {
    wait.end();
}

in_front_of!(
    /// `Finish(MeshCommandQueue&, std::span<SubDeviceId const>)`
    "_ZN2tt8tt_metal11distributed6FinishERNS1_16MeshCommandQueueESt4spanIKN4ttsl10StrongTypeIhNS0_14SubDeviceIdTagEEELm18446744073709551615EE",
    fn finish(queue: Pointer, sub_devices: Pointer, count: usize),
    Wait::begin(whole(queue, count)),
    over
);

in_front_of!(
    /// `FDMeshCommandQueue::finish_nolock(std::span<SubDeviceId const>)`: all waits for a queue lead here.
    "_ZN2tt8tt_metal11distributed18FDMeshCommandQueue13finish_nolockESt4spanIKN4ttsl10StrongTypeIhNS0_14SubDeviceIdTagEEELm18446744073709551615EE",
    fn finish_queue(queue: Pointer, sub_devices: Pointer, count: usize),
    Wait::begin(whole(queue, count)),
    over
);

in_front_of!(
    /// `Synchronize(MeshDevice*, std::optional<unsigned char>, std::span<SubDeviceId const>)`
    "_ZN2tt8tt_metal11distributed11SynchronizeEPNS1_10MeshDeviceESt8optionalIhESt4spanIKN4ttsl10StrongTypeIhNS0_14SubDeviceIdTagEEELm18446744073709551615EE",
    fn synchronize(device: Pointer, queue: usize, sub_devices: Pointer, count: usize),
    Wait::begin(None),
    over
);

in_front_of!(
    /// `Synchronize(MeshDevice&, optional_reference<MeshCommandQueue>, std::span<SubDeviceId const>)`, 0.78 and later.
    "_ZN2tt8tt_metal11distributed11SynchronizeERNS1_10MeshDeviceEN4ttsl18optional_referenceINS1_16MeshCommandQueueEEESt4spanIKNS4_10StrongTypeIhNS0_14SubDeviceIdTagEEELm18446744073709551615EE",
    fn synchronize_queue(device: Pointer, queue: usize, sub_devices: Pointer, count: usize),
    Wait::begin(None),
    over
);

in_front_of!(
    /// `EventSynchronize(MeshEvent const&)`
    "_ZN2tt8tt_metal11distributed16EventSynchronizeERKNS1_9MeshEventE",
    fn event_synchronize(event: Pointer),
    Wait::begin(None),
    over
);

in_front_of!(
    /// `SystemMemoryManager::fetch_queue_reserve_back(unsigned char)`: returns when the queue of the device has room.
    "_ZN2tt8tt_metal19SystemMemoryManager24fetch_queue_reserve_backEh",
    fn reserve_back(manager: Pointer, queue: u8),
    Stopwatch::start(),
    |watch: Stopwatch, _: &()| watch.stop()
);

in_front_of!(
    /// `NotifyProgramRealtimeProfilerActivated(unsigned int)`, up to 0.78.
    "_ZN2tt38NotifyProgramRealtimeProfilerActivatedEj",
    fn activated(chip: u32),
    (),
    |(), _: &()| profiler::activated(chip)
);

in_front_of!(
    /// `NotifyProgramRealtimeProfilerActivated(ContextId, unsigned int)`
    "_ZN2tt38NotifyProgramRealtimeProfilerActivatedEN4ttsl10StrongTypeIiNS_8tt_metal12ContextIdTagEEEj",
    fn activated_in_context(context: i32, chip: u32),
    (),
    // Registering is for the first context.
    |(), _: &()| {
        if context == 0 {
            profiler::activated(chip);
        }
    }
);

in_front_of!(
    /// `NotifyProgramRealtimeProfilerDeactivated(unsigned int)`, up to 0.78.
    "_ZN2tt40NotifyProgramRealtimeProfilerDeactivatedEj",
    fn deactivated(chip: u32),
    (),
    |(), _: &()| profiler::deactivated(chip)
);

in_front_of!(
    /// `NotifyProgramRealtimeProfilerDeactivated(ContextId, unsigned int)`
    "_ZN2tt40NotifyProgramRealtimeProfilerDeactivatedEN4ttsl10StrongTypeIiNS_8tt_metal12ContextIdTagEEEj",
    fn deactivated_in_context(context: i32, chip: u32),
    (),
    |(), _: &()| {
        if context == 0 {
            profiler::deactivated(chip);
        }
    }
);

thread_local! {
    /// Whether the inspector is off, and was said to be on for the name that comes next.
    static NAME_ONLY: Cell<bool> = const { Cell::new(false) };
}

/// `experimental::inspector::IsEnabled()`: whether the names of operations are reported.
///
/// They are by default. Who turned the inspector off keeps it off. On a mock cluster it is off by itself: there it is said to be on, and the
/// names are not passed on.
#[unsafe(export_name = "_ZN2tt8tt_metal12experimental9inspector9IsEnabledEv")]
#[unsafe(link_section = ".text.hot")]
unsafe extern "C-unwind" fn inspector_is_enabled() -> bool {
    static REAL: Real = Real::new(c"_ZN2tt8tt_metal12experimental9inspector9IsEnabledEv");
    let is_enabled = REAL.get().is_some_and(|real| {
        // SAFETY: this is the function of that name.
        unsafe { std::mem::transmute::<Pointer, unsafe extern "C-unwind" fn() -> bool>(real.as_ptr())() }
    });
    let name_only = !is_enabled && is_on() && names_are_free();
    let _ = NAME_ONLY.try_with(|it| it.set(name_only));
    is_enabled || name_only
}

/// `experimental::inspector::EmitMeshWorkloadDebugEntry(MeshWorkload&, unsigned long, std::string_view, std::vector<TensorSpec>,
/// std::optional<MeshTraceId>)`: the name of the operation that this thread launches next.
#[unsafe(export_name = "_ZN2tt8tt_metal12experimental9inspector26EmitMeshWorkloadDebugEntryERNS0_11distributed12MeshWorkloadEmSt17basic_string_viewIcSt11char_traitsIcEESt6vectorINS0_10TensorSpecESaISB_EESt8optionalIN4ttsl10StrongTypeIjNS3_14MeshTraceIdTagEEEE")]
#[unsafe(link_section = ".text.hot")]
unsafe extern "C-unwind" fn emit_name(
    workload: Pointer,
    id: u64,
    length: usize,
    text: *const u8,
    specs: Pointer,
    trace: u64,
) {
    type Function = unsafe extern "C-unwind" fn(Pointer, u64, usize, *const u8, Pointer, u64);
    static REAL: Real = Real::new(
        c"_ZN2tt8tt_metal12experimental9inspector26EmitMeshWorkloadDebugEntryERNS0_11distributed12MeshWorkloadEmSt17basic_string_viewIcSt11char_traitsIcEESt6vectorINS0_10TensorSpecESaISB_EESt8optionalIN4ttsl10StrongTypeIjNS3_14MeshTraceIdTagEEEE",
    );
    if is_on() && !text.is_null() && length <= isize::MAX as usize {
        // SAFETY: a `std::string_view` is its length and where its text begins.
        launches::operation(id, unsafe { std::slice::from_raw_parts(text, length) });
    }
    if NAME_ONLY.try_with(Cell::take).unwrap_or(false) {
        return;
    }
    if let Some(real) = REAL.get() {
        // SAFETY: this is the function of that name, with the arguments that it was called with.
        unsafe { std::mem::transmute::<Pointer, Function>(real.as_ptr())(workload, id, length, text, specs, trace) }
    }
}

/// Whether the cluster is a mock, and the user has not turned the inspector off.
fn names_are_free() -> bool {
    static STATE: AtomicU8 = AtomicU8::new(0);
    match STATE.load(Relaxed) {
        0 => ask(&STATE),
        state => state == 1,
    }
}

#[cold]
fn ask(state: &AtomicU8) -> bool {
    let is_mock = std::env::var_os("TT_METAL_MOCK_CLUSTER_DESC_PATH").is_some_and(|path| !path.is_empty());
    let is_off = std::env::var_os("TT_METAL_INSPECTOR").is_some_and(|value| value == "0");
    state.store(if is_mock && !is_off { 1 } else { 2 }, Relaxed);
    is_mock && !is_off
}

/// Measures a call that rarely takes any time, at the price of two reads of the processor's counter.
#[derive(Default)]
struct Stopwatch {
    cycles: u64,
    began: u64,
}

/// A call that takes fewer cycles has not waited.
const WAITED: u64 = 20_000;

impl Stopwatch {
    #[inline]
    fn start() -> Stopwatch {
        // Without a counter of cycles, the clock.
        let cycles = cycles();
        Stopwatch { cycles, began: if cycles == 0 { monotonic() } else { 0 } }
    }

    #[inline]
    fn stop(self) {
        let cycles = cycles().wrapping_sub(self.cycles);
        if self.cycles == 0 {
            held_back(monotonic().saturating_sub(self.began));
        } else if cycles > WAITED {
            held_back_for(cycles);
        }
    }
}

fn held_back(ns: u64) {
    const SHORTEST: u64 = 5_000;
    if ns > SHORTEST {
        launches::held_back(ns);
    }
}

/// The counter's rate is learnt from the clock, since activity began.
#[cold]
fn held_back_for(cycles: u64) {
    let (first_cycles, first_time) = calibrate();
    let (passed, time) = (self::cycles().wrapping_sub(first_cycles), monotonic().saturating_sub(first_time));
    // A call that was held back ended just now: time has passed.
    if passed > 0 {
        held_back((cycles as f64 * time as f64 / passed as f64) as u64);
    }
}

/// The counter and the clock when activity began.
pub fn calibrate() -> (u64, u64) {
    *FIRST.get_or_init(|| (cycles(), monotonic()))
}

static FIRST: std::sync::OnceLock<(u64, u64)> = std::sync::OnceLock::new();

#[cfg(target_arch = "x86_64")]
#[inline]
fn cycles() -> u64 {
    // SAFETY: every processor of this architecture has it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn cycles() -> u64 {
    0
}
