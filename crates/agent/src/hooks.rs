//! The functions of `libtt_metal.so` that the agent intercepts.
//!
//! All of them are exported, and called through the tables of the loader, in every release from 0.66 to 0.81. Ours come first
//! when this library is loaded before, and pass every call on. C++ exceptions pass through them.

use crate::device;
use crate::dispatch_telemetry;
use crate::events;
use crate::intercept::{in_front_of, nothing, zero_terminated};
use crate::library::Real;
use crate::switch::is_on;
use std::ffi::c_void;

type Pointer = *mut c_void;

in_front_of!(
    /// `GraphTracker::track_allocate(Buffer const*)`: after the allocation.
    "_ZN2tt8tt_metal12GraphTracker14track_allocateEPKNS0_6BufferE",
    fn track_allocate(tracker: Pointer, buffer: Pointer),
    // SAFETY: the library has reported it.
    unsafe { events::allocated(buffer) },
    nothing
);

in_front_of!(
    /// `GraphTracker::track_deallocate(Buffer*)`: before the allocator takes the buffer back, if at all.
    "_ZN2tt8tt_metal12GraphTracker16track_deallocateEPNS0_6BufferE",
    fn track_deallocate(tracker: Pointer, buffer: Pointer),
    // SAFETY: the library has reported it.
    unsafe { events::announced(buffer) },
    nothing
);

in_front_of!(
    /// `GraphTracker::hook_deallocate(Buffer*)`: whether a graph capture keeps the buffer from being taken back.
    "_ZN2tt8tt_metal12GraphTracker15hook_deallocateEPNS0_6BufferE",
    fn hook_deallocate(tracker: Pointer, buffer: Pointer) -> bool,
    (),
    |(), kept: &bool| {
        if *kept {
            events::kept();
        }
    }
);

in_front_of!(
    /// `AllocatorImpl::deallocate_buffer(Buffer*)`: takes a buffer back, under the allocator's lock.
    "_ZN2tt8tt_metal13AllocatorImpl17deallocate_bufferEPNS0_6BufferE",
    fn deallocate_buffer(allocator: Pointer, buffer: Pointer),
    // SAFETY: the library hands over a buffer that is alive.
    unsafe { events::freeing(buffer) },
    |freeing: Option<events::Freeing>, _: &()| {
        if let Some(freeing) = freeing {
            // SAFETY: whoever gave it back still holds it, and the lock was released at the end of the call.
            unsafe { events::freed(freeing, buffer) };
        }
    }
);

in_front_of!(
    /// `AllocatorImpl::deallocate_buffers()`: takes all buffers back, without a word about each.
    "_ZN2tt8tt_metal13AllocatorImpl18deallocate_buffersEv",
    fn deallocate_buffers(allocator: Pointer),
    (),
    // SAFETY: the name says so.
    |(), _: &()| unsafe { events::emptied(allocator) }
);

in_front_of!(
    /// `Device::register_program(ProgramImpl*)`, 0.70 and later: the program has its circular buffers.
    "_ZN2tt8tt_metal6Device16register_programEPNS0_6detail11ProgramImplE",
    fn register_program(device: Pointer, program: Pointer),
    (),
    // SAFETY: it is a `Device`, and open.
    |(), _: &()| unsafe { events::program(device, true) }
);

in_front_of!(
    /// `Device::unregister_program(ProgramImpl*)`, 0.70 and later.
    "_ZN2tt8tt_metal6Device18unregister_programEPNS0_6detail11ProgramImplE",
    fn unregister_program(device: Pointer, program: Pointer),
    (),
    // SAFETY: it is a `Device`.
    |(), _: &()| unsafe { events::program(device, false) }
);

in_front_of!(
    /// `MeshDevice::close()`
    "_ZN2tt8tt_metal11distributed10MeshDevice5closeEv",
    fn mesh_close(device: Pointer) -> bool,
    (),
    |(), _: &bool| events::closed(device)
);

in_front_of!(
    /// `MeshDevice::~MeshDevice()`
    "_ZN2tt8tt_metal11distributed10MeshDeviceD1Ev",
    fn mesh_gone(device: Pointer),
    (),
    |(), _: &()| events::closed(device)
);

in_front_of!(
    /// `MeshDevice::~MeshDevice()`, for a class that inherits from it.
    "_ZN2tt8tt_metal11distributed10MeshDeviceD2Ev",
    fn mesh_base_gone(device: Pointer),
    (),
    |(), _: &()| events::closed(device)
);

in_front_of!(
    /// `Device::close()`
    "_ZN2tt8tt_metal6Device5closeEv",
    fn device_close(device: Pointer) -> bool,
    dispatch_telemetry::closing(device),
    |(), _: &bool| events::closed(device)
);

in_front_of!(
    /// `Device::~Device()`
    "_ZN2tt8tt_metal6DeviceD1Ev",
    fn device_gone(device: Pointer),
    dispatch_telemetry::closing(device),
    |(), _: &()| events::closed(device)
);

in_front_of!(
    /// `Device::~Device()`, for a class that inherits from it.
    "_ZN2tt8tt_metal6DeviceD2Ev",
    fn device_base_gone(device: Pointer),
    dispatch_telemetry::closing(device),
    |(), _: &()| events::closed(device)
);

in_front_of!(
    /// `umd::Cluster::get_cluster_description()`: tt-metal asks for it when it opens its cluster.
    "_ZN2tt3umd7Cluster23get_cluster_descriptionEv",
    fn cluster_description(cluster: Pointer) -> usize,
    (),
    |(), descriptor: &usize| device::described(*descriptor)
);

in_front_of!(
    /// `SharedMemoryStatsProvider(unsigned long, int, bool, bool)`, 0.72 and later: a chip is opened.
    "_ZN2tt8tt_metal25SharedMemoryStatsProviderC1Emibb",
    fn provider(this: Pointer, unique_id: u64, device_id: i32, disabled: bool, verbose: bool),
    events::opened(unique_id, device_id),
    nothing
);

in_front_of!(
    /// The same for a class that inherits from it.
    "_ZN2tt8tt_metal25SharedMemoryStatsProviderC2Emibb",
    fn provider_base(this: Pointer, unique_id: u64, device_id: i32, disabled: bool, verbose: bool),
    events::opened(unique_id, device_id),
    nothing
);

in_front_of!(
    /// `SharedMemoryStatsProvider(unsigned long, int)`, 0.70.
    "_ZN2tt8tt_metal25SharedMemoryStatsProviderC1Emi",
    fn provider_070(this: Pointer, unique_id: u64, device_id: i32),
    events::opened(unique_id, device_id),
    nothing
);

in_front_of!(
    /// The same for a class that inherits from it.
    "_ZN2tt8tt_metal25SharedMemoryStatsProviderC2Emi",
    fn provider_base_070(this: Pointer, unique_id: u64, device_id: i32),
    events::opened(unique_id, device_id),
    nothing
);
