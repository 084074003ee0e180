//! The functions of `libtt_metal.so` and `_ttnncpp.so` that make and drop devices and buffers, by mangled name.

use std::ffi::c_void;

use anyhow::Result;

use super::program;
use crate::cpp::{Cpp, SharedPtr};

/// A returned `shared_ptr`, or an object larger than two words, is written through a pointer that comes first.
#[derive(Clone, Copy)]
pub struct MetalFunctions {
    /// Opens one device by its number.
    pub open: unsafe extern "C-unwind" fn(
        device: *mut SharedPtr,
        id: i32,
        l1_small: usize,
        trace: usize,
        queues: usize,
        dispatch: *const c_void,
        worker_l1: usize,
    ) -> *mut SharedPtr,
    /// Opens as many devices as the shape has places, which the library chooses.
    pub open_shape: unsafe extern "C-unwind" fn(
        device: *mut SharedPtr,
        shape: *const c_void,
        l1_small: usize,
        trace: usize,
        queues: usize,
        dispatch: *const c_void,
        offset: *const c_void,
        ids: *const c_void,
        worker_l1: usize,
    ) -> *mut SharedPtr,
    /// What ttnn takes for the boards at hand: two words hold a `DispatchCoreConfig`.
    pub default_dispatch: unsafe extern "C-unwind" fn(core: u64, axis: u64, fabric: u32) -> TwoWords,
    pub shape: unsafe extern "C-unwind" fn(this: *mut c_void, rows: u32, columns: u32),
    pub close: unsafe extern "C-unwind" fn(device: *mut c_void),
    /// A pointer to the pointer to the allocator.
    pub allocator: unsafe extern "C-unwind" fn(device: *const c_void) -> *const *const c_void,
    pub banks: unsafe extern "C-unwind" fn(allocator: *const c_void, kind: *const u32) -> u32,
    pub statistics: unsafe extern "C-unwind" fn(
        statistics: *mut Statistics,
        allocator: *const c_void,
        kind: *const u32,
    ) -> *mut Statistics,
    /// Whether `BufferShardingArgs` is a pointer to its fields.
    pub sharding_behind_pointer: bool,
    pub create: unsafe extern "C-unwind" fn(
        buffer: *mut SharedPtr,
        device: *mut c_void,
        bytes: u64,
        page: u64,
        kind: u32,
        sharding: *const c_void,
        bottom_up: u16,
        sub_device: u16,
    ) -> *mut SharedPtr,
    /// A `MeshBuffer`, as a tensor has it: the same on each device. The last two are an absent
    /// `std::optional` of the address.
    pub create_replicated: unsafe extern "C-unwind" fn(
        mesh_buffer: *mut SharedPtr,
        size: *const c_void,
        each: *const c_void,
        device: *mut c_void,
        address: u64,
        has_address: u64,
    ) -> *mut SharedPtr,
    /// The buffer behind a `MeshBuffer`.
    pub backing: unsafe extern "C-unwind" fn(mesh_buffer: *const c_void) -> *const c_void,
    pub address: unsafe extern "C-unwind" fn(buffer: *const c_void) -> u32,
    pub size_per_bank: unsafe extern "C-unwind" fn(buffer: *const c_void) -> u64,
    pub program: program::ProgramFunctions,
}

/// A small object, which C++ returns in two registers.
#[repr(C)]
pub struct TwoWords(pub u64, pub u64);

/// `tt::tt_metal::Statistics`, in bytes per bank.
#[repr(C)]
#[derive(Default)]
pub struct Statistics {
    pub allocatable: u64,
    pub allocated: u64,
    pub free: u64,
    pub largest_free: u64,
}

impl MetalFunctions {
    pub fn find(metal: Cpp, ttnn: Cpp) -> Result<MetalFunctions> {
        let create_arguments = concat!(
            "6createEPNS0_7IDeviceEmmNS0_10BufferTypeERKNS0_18BufferShardingArgsE",
            "St8optionalIbES8_IN4ttsl10StrongTypeIhNS0_14SubDeviceIdTagEEEE"
        );
        // SAFETY: The types follow from the mangled names.
        unsafe {
            Ok(MetalFunctions {
                open: ttnn.function(
                    "_ZN4ttnn6device16open_mesh_deviceEimmmRKSt8optionalIN2tt8tt_metal18DispatchCoreConfigEEm",
                )?,
                open_shape: ttnn.function(concat!(
                    "_ZN4ttnn11distributed16open_mesh_deviceERKN2tt8tt_metal11distributed9MeshShapeEmmm",
                    "RKNS2_18DispatchCoreConfigERKSt8optionalINS3_14MeshCoordinateEERKSt6vectorIiSaIiEEm"
                ))?,
                default_dispatch: ttnn.function(concat!(
                    "_ZN4ttnn6device36create_cluster_aware_dispatch_configESt8optionalIN2tt8tt_metal16DispatchCoreTypeEE",
                    "S1_INS3_16DispatchCoreAxisEENS2_9tt_fabric18FabricTensixConfigE"
                ))?,
                shape: metal.function("_ZN2tt8tt_metal11distributed9MeshShapeC1Ejj")?,
                close: ttnn.function("_ZN4ttnn6device12close_deviceERN2tt8tt_metal11distributed10MeshDeviceE")?,
                allocator: metal.function("_ZNK2tt8tt_metal11distributed10MeshDevice9allocatorEv")?,
                banks: metal.function("_ZNK2tt8tt_metal9Allocator13get_num_banksERKNS0_10BufferTypeE")?,
                statistics: metal.function("_ZNK2tt8tt_metal9Allocator14get_statisticsERKNS0_10BufferTypeE")?,
                // It has a constructor then.
                sharding_behind_pointer: metal
                    .function::<*const c_void>("_ZN2tt8tt_metal18BufferShardingArgsC1Ev")
                    .is_ok(),
                // Up to 0.78 the class is `Buffer` itself.
                create: metal
                    .function(&format!("_ZN2tt8tt_metal10BufferImpl{create_arguments}"))
                    .or_else(|_| metal.function(&format!("_ZN2tt8tt_metal6Buffer{create_arguments}")))?,
                create_replicated: metal.function(concat!(
                    "_ZN2tt8tt_metal11distributed10MeshBuffer6createERKSt7variantIJNS1_22ReplicatedBufferConfigE",
                    "NS1_19ShardedBufferConfigEEERKNS1_23DeviceLocalBufferConfigEPNS1_10MeshDeviceESt8optionalImE"
                ))?,
                backing: metal.function("_ZNK2tt8tt_metal11distributed10MeshBuffer18get_backing_bufferEv")?,
                address: metal.function("_ZNK2tt8tt_metal6Buffer7addressEv")?,
                size_per_bank: metal.function("_ZNK2tt8tt_metal6Buffer21aligned_size_per_bankEv")?,
                program: program::ProgramFunctions::find(metal)?,
            })
        }
    }
}
