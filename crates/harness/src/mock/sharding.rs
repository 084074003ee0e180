//! `tt::tt_metal::BufferShardingArgs`: how a buffer is spread over cores.
//!
//! The library only reads and copies it, so it is laid out here. The fields lie alike in 0.78.0 and 0.81.1, but from
//! 0.79 on they are behind a pointer.

use std::ffi::c_void;
use std::ptr;

pub struct Sharding {
    fields: ShardingFields,
    pointer: *const ShardingFields,
    core: CoreRange,
}

impl Sharding {
    /// Page by page over all banks.
    pub fn interleaved() -> Box<Sharding> {
        Box::new(Sharding {
            fields: ShardingFields {
                distribution: [0; 35],
                cores: [ptr::null(); 3],
                shard: [0; 2],
                orientation: 0,
                page: [0; 2],
                tensor: [0; 2],
                sharded: 0,
                layout: 0,
                flags: 0,
            },
            pointer: ptr::null(),
            core: CoreRange::default(),
        })
    }

    /// All pages on the first core.
    pub fn on_one_core(pages: u32) -> Box<Sharding> {
        let mut sharding = Sharding::interleaved();
        let core = &raw const sharding.core;
        let fields = &mut sharding.fields;
        fields.cores = [core, core.wrapping_add(1), core.wrapping_add(1)];
        fields.shard = [pages, 1];
        fields.page = [1, 1];
        fields.tensor = [pages, 1];
        fields.sharded = 1;
        fields.layout = HEIGHT_SHARDED;
        sharding
    }

    pub fn as_ptr(self: &mut Box<Sharding>, behind_pointer: bool) -> *const c_void {
        self.pointer = &raw const self.fields;
        if behind_pointer { (&raw const self.pointer).cast() } else { self.pointer.cast() }
    }

    /// Puts it into a larger object.
    ///
    /// # Safety
    /// There must be room for it.
    pub unsafe fn copy_to(self: &mut Box<Sharding>, place: *mut c_void, behind_pointer: bool) {
        let size = if behind_pointer { size_of::<*const ShardingFields>() } else { size_of::<ShardingFields>() };
        // SAFETY: The caller vouches for the place, and the sizes are those of what `as_ptr` points to.
        unsafe { ptr::copy_nonoverlapping(self.as_ptr(behind_pointer).cast::<u8>(), place.cast(), size) };
    }
}

const _: () = assert!(size_of::<ShardingFields>() == 0x160);

/// In `TensorMemoryLayout`, where 0 is interleaved.
const HEIGHT_SHARDED: u32 = 2;

#[repr(C)]
struct ShardingFields {
    /// An absent `std::optional<BufferDistributionSpec>`.
    distribution: [u64; 35],
    /// A `std::optional<ShardSpecBuffer>`, which begins with a vector of ranges of cores.
    cores: [*const CoreRange; 3],
    shard: [u32; 2],
    orientation: u64,
    page: [u32; 2],
    tensor: [u32; 2],
    sharded: u64,
    layout: u32,
    flags: u32,
}

/// First and last core, both inclusive, each as x and y.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct CoreRange {
    pub first: [usize; 2],
    pub last: [usize; 2],
}
