//! The functions of tt-metal that lead from a device to the L1 of its dispatch cores.

use super::guard::Guard;
use crate::device::Object;
use crate::library::function;
use ledger::dispatch_telemetry::block::{CoreAt, LONGEST_READ};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::OnceLock;

/// A `tt::Cluster`.
pub type Cluster = NonNull<c_void>;

/// What is needed to read. All of it is called through the guard.
pub struct DispatchFunctions {
    guard: Guard,
    read_core: unsafe extern "C-unwind" fn(Cluster, *mut c_void, u32, CoreOfChip, u64),
    is_mmio_capable: unsafe extern "C-unwind" fn(Object) -> bool,
    context_id: Option<unsafe extern "C-unwind" fn(Object) -> i32>,
    context: unsafe extern "C-unwind" fn(i32) -> *mut c_void,
    cluster: unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void,
    address: Option<AddressFunctions>,
}

/// Where the blocks are, if the control block does not say so.
struct AddressFunctions {
    map: unsafe extern "C-unwind" fn(*mut c_void) -> *const c_void,
    address: unsafe extern "C-unwind" fn(*const c_void, &u8, u8) -> u32,
}

/// `tt::cxy_pair`, which is passed by value.
#[repr(C)]
#[derive(Clone, Copy)]
struct CoreOfChip {
    x: u64,
    y: u64,
    chip: u64,
}

/// Numbers that `CommandQueueDeviceAddrType::DISPATCH_TELEMETRY` has: 11 up to 0.78, and 10 in 0.81. All releases answer to both. A number
/// that a release does not expect is an error, which it prints.
const TELEMETRY_TYPES: [u8; 2] = [10, 11];

/// Addresses at which the block of a queue may be. The right one has a signature.
pub type Addresses = [Option<u32>; TELEMETRY_TYPES.len() + 1];

impl DispatchFunctions {
    /// Finds them, once. `None` when something is missing.
    pub fn get() -> Option<&'static DispatchFunctions> {
        static FOUND: OnceLock<Option<DispatchFunctions>> = OnceLock::new();
        FOUND.get_or_init(DispatchFunctions::find).as_ref()
    }

    fn find() -> Option<DispatchFunctions> {
        // SAFETY: the types follow from the names; references are pointers.
        unsafe {
            let map = function(c"_ZNK2tt8tt_metal12MetalContext16dispatch_mem_mapEv");
            let address = function(
                c"_ZNK2tt8tt_metal14DispatchMemMap29get_device_command_queue_addrERKNS0_26CommandQueueDeviceAddrTypeEh",
            );
            Some(DispatchFunctions {
                guard: Guard::find()?,
                read_core: function(c"_ZNK2tt7Cluster9read_coreEPvjNS_8cxy_pairEm")?,
                is_mmio_capable: function(c"_ZNK2tt8tt_metal6Device15is_mmio_capableEv")?,
                context_id: function(c"_ZN2tt8tt_metal18extract_context_idEPKNS0_7IDeviceE"),
                context: function(c"_ZN2tt8tt_metal12MetalContext8instanceEN4ttsl10StrongTypeIiNS0_12ContextIdTagEEE")?,
                cluster: function(c"_ZN2tt8tt_metal12MetalContext11get_clusterEv")?,
                address: map.zip(address).map(|(map, address)| AddressFunctions { map, address }),
            })
        }
    }

    /// Whether a device is on PCIe, and not behind another one. `None` when that is not known.
    ///
    /// # Safety
    /// It must be an open `Device`.
    pub unsafe fn is_local(&self, device: Object) -> Option<bool> {
        // SAFETY: as promised.
        self.guard.call(|| unsafe { (self.is_mmio_capable)(device) })
    }

    /// The cluster of a device, and where the block of one of its queues may be: first where its control block says.
    ///
    /// # Safety
    /// It must be an open `Device`.
    pub unsafe fn way_to(&self, device: Object, queue: u8, control: Option<u32>) -> Option<(Cluster, Addresses)> {
        // SAFETY: an open device has a context, and that has a cluster.
        let (context, cluster) = self.guard.call(|| unsafe {
            let context = (self.context)(self.context_id.map_or(0, |context_id| context_id(device)));
            (context, (self.cluster)(context))
        })?;
        let mut addresses = Addresses::default();
        addresses[0] = control;
        // The control block has the address of the first queue. Others may have one of their own.
        if control.is_none() || queue != 0 {
            for (address, kind) in addresses.iter_mut().skip(1).zip(TELEMETRY_TYPES) {
                *address = self.address.as_ref().and_then(|functions| {
                    // SAFETY: as above, and the context has a map.
                    let find = || unsafe { (functions.address)((functions.map)(context), &kind, queue) };
                    self.guard.call(find).filter(|address| *address != 0)
                });
            }
        }
        Some((Cluster::new(cluster)?, addresses))
    }

    /// Reads from the L1 of a core. False when that threw an exception.
    ///
    /// # Safety
    /// The cluster must be open, and the chip must be on PCIe.
    pub unsafe fn read(&self, cluster: Cluster, chip: u32, core: CoreAt, address: u64, into: &mut [u8]) -> bool {
        debug_assert!(into.len() <= LONGEST_READ);
        let length = into.len().min(LONGEST_READ);
        let (core, to) = (CoreOfChip { x: core.x.into(), y: core.y.into(), chip: chip.into() }, into.as_mut_ptr());
        // SAFETY: as promised, and there is room for so many bytes.
        self.guard.call(|| unsafe { (self.read_core)(cluster, to.cast(), length as u32, core, address) }).is_some()
    }
}
