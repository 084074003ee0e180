//! All that is used of `libtt_metal.so`, found once.

use crate::buffer::{Allocator, BufferReader};
use crate::device::{self, Object};
use crate::library::{self, function};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::AcqRel, Ordering::Acquire};

/// `Allocator::get_statistics`: allocatable, allocated, free and largest free bytes of a bank.
pub type Statistics = unsafe extern "C-unwind" fn(*mut [u64; 4], Allocator, &u32) -> *mut [u64; 4];

/// `Allocator::get_base_allocator_addr`: where the L1 (0) or the DRAM (1) of a bank begins that it hands out.
pub type Base = unsafe extern "C-unwind" fn(Allocator, &u32) -> u64;

/// `Device::get_total_cb_allocated`.
pub type TotalCb = unsafe extern "C-unwind" fn(Object) -> u64;

/// What the library offers, or why it cannot be used.
pub struct Metal {
    pub buffers: Result<BufferReader, &'static str>,
    pub devices: Result<device::DeviceFunctions, &'static str>,
    pub statistics: Option<Statistics>,
    pub base: Option<Base>,
    pub total_cb: Option<TotalCb>,
    /// `AllocatorImpl::view`: where the `Allocator` of an `AllocatorImpl` is kept.
    pub view: Option<unsafe extern "C-unwind" fn(*const c_void) -> *const *mut c_void>,
}

impl Metal {
    /// Looks the functions up at the first call for which the library is there.
    #[inline]
    pub fn get() -> Option<&'static Metal> {
        // SAFETY: what is stored here is never freed.
        unsafe { METAL.load(Acquire).as_ref() }.or_else(Metal::find)
    }

    /// The producer, for the book.
    pub fn producer(&self) -> String {
        let by = self.buffers.as_ref().map_or("that is not recognised", BufferReader::by);
        format!("ttmon-agent {}, libtt_metal {by}", env!("CARGO_PKG_VERSION"))
    }

    /// What is missing, if anything.
    pub fn problem(&self) -> Option<&'static str> {
        self.buffers.as_ref().err().or(self.devices.as_ref().err()).copied()
    }

    #[cold]
    fn find() -> Option<&'static Metal> {
        if !library::is_loaded() {
            return None;
        }
        // SAFETY: the types follow from the names, as declared in all releases from 0.66 to 0.81.
        let metal = unsafe {
            Metal {
                buffers: BufferReader::find(),
                devices: device::DeviceFunctions::find(),
                statistics: function(c"_ZNK2tt8tt_metal9Allocator14get_statisticsERKNS0_10BufferTypeE"),
                base: function(c"_ZNK2tt8tt_metal9Allocator23get_base_allocator_addrERKNS0_10HalMemTypeE"),
                total_cb: function(c"_ZNK2tt8tt_metal6Device22get_total_cb_allocatedEv"),
                view: function(c"_ZNK2tt8tt_metal13AllocatorImpl4viewEv"),
            }
        };
        let metal = Box::into_raw(Box::new(metal));
        let metal = match METAL.compare_exchange(ptr::null_mut(), metal, AcqRel, Acquire) {
            Ok(_) => metal,
            Err(first) => {
                // SAFETY: no other thread has seen ours.
                drop(unsafe { Box::from_raw(metal) });
                first
            }
        };
        // SAFETY: as in `get`.
        unsafe { metal.as_ref() }
    }
}

static METAL: AtomicPtr<Metal> = AtomicPtr::new(ptr::null_mut());
