//! The functions of `libtt_metal.so` and `_ttnncpp.so` that make and drop devices and buffers, by mangled name.
//!
//! A returned `shared_ptr`, or an object larger than two words, is written through a pointer that comes first.

use std::ffi::c_void;

use crate::cpp::{SharedPtr, cpp_functions};

cpp_functions! {
    TtnnFunctions {
        /// Opens one device by its number.
        open(
            device: *mut SharedPtr, id: i32, l1_small: usize, trace: usize, queues: usize, dispatch: *const c_void,
            worker_l1: usize
        ) -> *mut SharedPtr =
            "_ZN4ttnn6device16open_mesh_deviceEimmmRKSt8optionalIN2tt8tt_metal18DispatchCoreConfigEEm";
        /// Opens as many devices as the shape has places, which the library chooses.
        open_shape(
            device: *mut SharedPtr, shape: *const c_void, l1_small: usize, trace: usize, queues: usize,
            dispatch: *const c_void, offset: *const c_void, ids: *const c_void, worker_l1: usize
        ) -> *mut SharedPtr = concat!(
            "_ZN4ttnn11distributed16open_mesh_deviceERKN2tt8tt_metal11distributed9MeshShapeEmmm",
            "RKNS2_18DispatchCoreConfigERKSt8optionalINS3_14MeshCoordinateEERKSt6vectorIiSaIiEEm"
        );
        /// What ttnn takes for the boards at hand: two words hold a `DispatchCoreConfig`.
        default_dispatch(core: u64, axis: u64, fabric: u32) -> TwoWords = concat!(
            "_ZN4ttnn6device36create_cluster_aware_dispatch_configESt8optionalIN2tt8tt_metal16DispatchCoreTypeEE",
            "S1_INS3_16DispatchCoreAxisEENS2_9tt_fabric18FabricTensixConfigE"
        );
        close(device: *mut c_void) = "_ZN4ttnn6device12close_deviceERN2tt8tt_metal11distributed10MeshDeviceE";
    }
}

cpp_functions! {
    MetalFunctions {
        shape(this: *mut c_void, rows: u32, columns: u32) = "_ZN2tt8tt_metal11distributed9MeshShapeC1Ejj";
        /// A pointer to the pointer to the allocator.
        allocator(device: *const c_void) -> *const *const c_void =
            "_ZNK2tt8tt_metal11distributed10MeshDevice9allocatorEv";
        banks(allocator: *const c_void, kind: *const u32) -> u32 =
            "_ZNK2tt8tt_metal9Allocator13get_num_banksERKNS0_10BufferTypeE";
        statistics(statistics: *mut Statistics, allocator: *const c_void, kind: *const u32) -> *mut Statistics =
            "_ZNK2tt8tt_metal9Allocator14get_statisticsERKNS0_10BufferTypeE";
        /// Up to 0.78 the class is `Buffer` itself.
        create(
            buffer: *mut SharedPtr, device: *mut c_void, bytes: u64, page: u64, kind: u32, sharding: *const c_void,
            bottom_up: u16, sub_device: u16
        ) -> *mut SharedPtr = concat!(
            "_ZN2tt8tt_metal10BufferImpl6createEPNS0_7IDeviceEmmNS0_10BufferTypeERKNS0_18BufferShardingArgsE",
            "St8optionalIbES8_IN4ttsl10StrongTypeIhNS0_14SubDeviceIdTagEEEE"
        ), concat!(
            "_ZN2tt8tt_metal6Buffer6createEPNS0_7IDeviceEmmNS0_10BufferTypeERKNS0_18BufferShardingArgsE",
            "St8optionalIbES8_IN4ttsl10StrongTypeIhNS0_14SubDeviceIdTagEEEE"
        );
        /// A `MeshBuffer`, as a tensor has it: the same on each device. The last two are an absent `std::optional`.
        create_replicated(
            mesh_buffer: *mut SharedPtr, size: *const c_void, each: *const c_void, device: *mut c_void, address: u64,
            has_address: u64
        ) -> *mut SharedPtr = concat!(
            "_ZN2tt8tt_metal11distributed10MeshBuffer6createERKSt7variantIJNS1_22ReplicatedBufferConfigE",
            "NS1_19ShardedBufferConfigEEERKNS1_23DeviceLocalBufferConfigEPNS1_10MeshDeviceESt8optionalImE"
        );
        /// The buffer behind a `MeshBuffer`.
        backing(mesh_buffer: *const c_void) -> *const c_void =
            "_ZNK2tt8tt_metal11distributed10MeshBuffer18get_backing_bufferEv";
        address(buffer: *const c_void) -> u32 = "_ZNK2tt8tt_metal6Buffer7addressEv";
        size_per_bank(buffer: *const c_void) -> u64 = "_ZNK2tt8tt_metal6Buffer21aligned_size_per_bankEv";
    }
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
