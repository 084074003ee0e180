//! The functions of tt-metal that say where dispatch telemetry is, 0.75 and later, and when a device closes.

use super::functions::DispatchFunctions;
use super::reader;
use super::watched::{Watched, WatchedQueue};
use crate::book::ProcessBook;
use crate::device::Object;
use crate::intercept::{in_front_of, nothing, zero_terminated};
use crate::library::{self, Real};
use crate::metal::Metal;
use crate::switch::{is_on, may_read};
use ledger::book::activity::{NoRecords, monotonic};
use ledger::dispatch_telemetry::Unknown;
use ledger::dispatch_telemetry::block::{CONTROL_BYTES, Control, QUEUE_BYTES, QueueCores};
use std::cell::Cell;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Pointer = *mut c_void;

in_front_of!(
    /// `write_smc_dispatch_telemetry_control(TTDevice&, SMCDispatchTelemetryControl const&)`: the control block of a device.
    "_ZN2tt8tt_metal36write_smc_dispatch_telemetry_controlERNS_3umd8TTDeviceERKNS0_24dispatch_telemetry_types27SMCDispatchTelemetryControlE",
    fn write_control(tt_device: Pointer, control: *const [u8; CONTROL_BYTES]) -> bool,
    // SAFETY: it is such a block, of at least so many bytes.
    unsafe { control.as_ref() }.into_iter().for_each(heard),
    nothing
);

in_front_of!(
    /// `Device::update_smc_dispatch_telemetry_for_fast_dispatch(unsigned char, SMCDispatchCoreCoords const&)`: a queue is opened.
    "_ZN2tt8tt_metal6Device47update_smc_dispatch_telemetry_for_fast_dispatchEhRKNS0_24dispatch_telemetry_types21SMCDispatchCoreCoordsE",
    fn update_control(device: Pointer, queue: u8, cores: *const [u8; QUEUE_BYTES]),
    // What is written from here on belongs to this device.
    HEARD.with(|heard| heard.set(None)),
    // SAFETY: it is a `Device` that is open, and these are its cores.
    |(), _: &()| unsafe { opened(device, queue, cores) }
);

in_front_of!(
    /// `Device::invalidate_smc_dispatch_telemetry_control()`: the device is closing.
    "_ZN2tt8tt_metal6Device41invalidate_smc_dispatch_telemetry_controlEv",
    fn invalidate_control(device: Pointer),
    closing(device),
    nothing
);

in_front_of!(
    /// `Device::set_smc_dispatch_telemetry_slow_dispatch_enabled(bool)`: the queues are closing, or fast dispatch ends.
    "_ZN2tt8tt_metal6Device48set_smc_dispatch_telemetry_slow_dispatch_enabledEb",
    fn slow_dispatch(device: Pointer, enabled: bool),
    if enabled {
        closing(device);
    },
    nothing
);

in_front_of!(
    /// `tt::Cluster::~Cluster()`
    "_ZN2tt7ClusterD1Ev",
    fn cluster_gone(cluster: Pointer),
    if let (Some(watched), Some(cluster)) = (Watched::current(), Object::new(cluster)) {
        watched.leave_cluster(cluster);
    },
    nothing
);

// The control block that this thread wrote last, for the device whose hook is under way.
thread_local!(static HEARD: Cell<Option<Result<Control, Unknown>>> = const { Cell::new(None) });

fn heard(control: &[u8; CONTROL_BYTES]) {
    let _ = HEARD.try_with(|heard| heard.set(Some(Control::decode(control))));
}

/// A device begins to close, or is gone: nothing is read from it any more.
pub fn closing(device: *const c_void) {
    let (Some(watched), Some(device)) = (Watched::current(), Object::new(device.cast_mut())) else { return };
    if let (Some(chip), Some(book)) = (watched.leave(device), ProcessBook::current()) {
        book.write(|writer| writer.chip_closed(chip, monotonic()));
    }
}

/// The profiler is active for a chip, or no longer: from here on, the agent does not read it.
pub fn profiled(device_id: u32, active: bool) {
    Watched::profiled(device_id, active);
}

/// A queue of a device was opened.
///
/// # Safety
/// It must be an open `Device`, with the cores of that queue.
#[cold]
unsafe fn opened(device: Pointer, queue: u8, cores: *const [u8; QUEUE_BYTES]) {
    let heard = HEARD.try_with(Cell::take).ok().flatten();
    if may_read() && says_what_is_profiled() {
        // SAFETY: as promised.
        let watch = || unsafe { watch(device, queue, cores.as_ref(), heard) };
        let _ = catch_unwind(AssertUnwindSafe(watch));
    }
}

unsafe fn watch(
    device: Pointer,
    queue: u8,
    cores: Option<&[u8; QUEUE_BYTES]>,
    control: Option<Result<Control, Unknown>>,
) -> Option<()> {
    let device = Object::new(device)?;
    let devices = Metal::get()?.devices.as_ref().ok()?;
    // SAFETY: as promised.
    let member = *unsafe { devices.members(device, false) }.ok()?.iter().next()?;
    let unknown = |reason| _ = reader::enter(&member, false, |writer, chip| writer.dispatch_unknown(chip, reason));
    let Some(functions) = DispatchFunctions::get() else {
        unknown(NoRecords::NoTelemetry);
        return None;
    };
    // SAFETY: as promised.
    let is_local = unsafe { functions.is_local(device) };
    if is_local != Some(true) {
        unknown(if is_local.is_some() { NoRecords::Remote } else { NoRecords::Refused });
        return None;
    }
    if control == Some(Err(Unknown::SlowDispatch)) {
        unknown(NoRecords::SlowDispatch);
        return None;
    }
    let cores = cores.copied().and_then(QueueCores::decode)?;
    let address = control.and_then(Result::ok).map(|control| control.address);
    // SAFETY: as promised.
    let (cluster, addresses) = unsafe { functions.way_to(device, queue, address) }?;
    let watched = Watched::open();
    watched.enter(device, member, cluster, usize::from(queue), WatchedQueue { cores, addresses });
    reader::start(watched, functions);
    Some(())
}

/// Whether tt-metal says for which chips its profiler is active, or has no profiler. Otherwise nothing is read.
fn says_what_is_profiled() -> bool {
    const ACTIVATED: [&std::ffi::CStr; 2] = [
        c"_ZN2tt38NotifyProgramRealtimeProfilerActivatedEj",
        c"_ZN2tt38NotifyProgramRealtimeProfilerActivatedEN4ttsl10StrongTypeIiNS_8tt_metal12ContextIdTagEEEj",
    ];
    let has = |name| library::find(name).is_some();
    ACTIVATED.into_iter().any(has) || !has(c"_ZN2tt8tt_metal12experimental31IsProgramRealtimeProfilerActiveEv")
}
