//! A program with one circular buffer on all worker cores.

use std::ffi::c_void;

use anyhow::{Result, bail};

use super::functions::TwoWords;
use super::sharding::CoreRange;
use crate::cpp::{Storage, cpp_functions};

/// The program, whose circular buffer is given up when dropped.
pub struct Program {
    functions: ProgramFunctions,
    object: Box<Storage>,
    pub cores: u64,
}

impl Program {
    /// `device` must be an open mesh device.
    pub fn new(functions: ProgramFunctions, device: *mut c_void, bytes: u32) -> Result<Program> {
        // The library throws on these.
        if bytes == 0 || bytes % PAGE_BYTES != 0 {
            bail!("{bytes} bytes are not a whole number of pages of {PAGE_BYTES} bytes");
        }
        let mut object = Storage::new();
        let mut config = Storage::new();
        // SAFETY: The storage is larger than the objects in it; a program begins with the pointer to its
        // implementation. The config owns a few small sets, which we leak.
        unsafe {
            let TwoWords(columns, rows) = (functions.worker_grid)(device);
            let last = [usize::try_from(columns)? - 1, usize::try_from(rows)? - 1];
            let cores = Cores { range: CoreRange { first: [0, 0], last }, alternative: RANGE };
            (functions.construct)(object.as_ptr());
            (functions.construct_config)(config.as_ptr(), bytes);
            let builder = (functions.first_index)(config.as_ptr(), 0);
            (functions.set_data_format)(&builder, FLOAT16_B);
            (functions.set_page_size)(&builder, PAGE_BYTES);
            (functions.create)(object.as_ptr(), &cores, config.as_ptr());
            let implementation = *object.as_ptr().cast::<*mut c_void>();
            (functions.allocate)(implementation, device);
            Ok(Program { functions, object, cores: columns * rows })
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: The object was constructed in `new` and is not used again.
        unsafe { (self.functions.destroy)(self.object.as_ptr()) };
    }
}

const PAGE_BYTES: u32 = 32;
/// In `tt::DataFormat`.
const FLOAT16_B: u8 = 5;

/// `std::variant<CoreCoord, CoreRange, CoreRangeSet>`.
#[repr(C)]
pub struct Cores {
    range: CoreRange,
    alternative: u8,
}
const RANGE: u8 = 1;

cpp_functions! {
    ProgramFunctions {
        /// Columns and rows.
        worker_grid(device: *const c_void) -> TwoWords =
            "_ZNK2tt8tt_metal11distributed10MeshDevice30compute_with_storage_grid_sizeEv";
        construct(this: *mut c_void) = "_ZN2tt8tt_metal7ProgramC1Ev";
        destroy(this: *mut c_void) = "_ZN2tt8tt_metal7ProgramD1Ev";
        construct_config(this: *mut c_void, bytes: u32) = "_ZN2tt8tt_metal20CircularBufferConfigC1Ej";
        /// A builder for the circular buffer with this index.
        first_index(config: *mut c_void, index: u8) -> TwoWords = "_ZN2tt8tt_metal20CircularBufferConfig5indexEh";
        set_data_format(builder: *const TwoWords, format: u8) -> *const TwoWords =
            "_ZNK2tt8tt_metal20CircularBufferConfig7Builder15set_data_formatENS_10DataFormatE";
        set_page_size(builder: *const TwoWords, bytes: u32) -> *const TwoWords =
            "_ZNK2tt8tt_metal20CircularBufferConfig7Builder13set_page_sizeEj";
        create(program: *mut c_void, cores: *const Cores, config: *const c_void) -> usize = concat!(
            "_ZN2tt8tt_metal20CreateCircularBufferERNS0_7ProgramERKSt7variantIJNS_7xy_pairENS0_9CoreRangeE",
            "NS0_12CoreRangeSetEEERKNS0_20CircularBufferConfigE"
        );
        allocate(implementation: *mut c_void, device: *const c_void) =
            "_ZN2tt8tt_metal6detail11ProgramImpl25allocate_circular_buffersEPKNS0_7IDeviceE";
    }
}
