//! What a buffer of tt-metal is: through the library's own functions, or, where they are inline, through its layout.

use crate::decode::{self, Layout};
use crate::device::Object;
use crate::library::{code, find, function};
use crate::unordered_map::UnorderedMap;
use ledger::book::MemoryKind;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// A `tt::tt_metal::Buffer`.
pub type Buffer = *const c_void;
/// A `tt::tt_metal::Allocator`.
pub type Allocator = NonNull<c_void>;

/// What is noted of a buffer on a device.
#[derive(Debug, Clone, Copy)]
pub struct BufferFacts {
    pub place: BufferPlace,
    pub logical: u64,
    pub per_bank: u64,
    pub banks: u32,
    pub address: u64,
    pub page: u64,
    pub layout: u8,
}

/// Where a buffer is.
#[derive(Debug, Clone, Copy)]
pub struct BufferPlace {
    pub id: u64,
    pub device: Object,
    pub kind: MemoryKind,
}

/// The result of reading a buffer.
pub enum Look<T> {
    At(T),
    /// It takes no memory of a device.
    Nowhere,
    /// The buffer is not of a known form.
    Odd(&'static str),
}

/// The functions that describe a buffer.
pub struct BufferReader {
    address: unsafe extern "C-unwind" fn(Buffer) -> u32,
    page_size: unsafe extern "C-unwind" fn(Buffer) -> u64,
    per_bank: unsafe extern "C-unwind" fn(Buffer) -> u64,
    allocator: unsafe extern "C-unwind" fn(Buffer) -> *mut c_void,
    num_banks: unsafe extern "C-unwind" fn(Allocator, &u32) -> u32,
    alignment: unsafe extern "C-unwind" fn(Allocator, u32) -> u32,
    /// Whether each core has an address of its own, and these addresses, an `unordered_map`.
    per_core: Option<(unsafe extern "C-unwind" fn(Buffer) -> bool, PerCoreAddresses)>,
    inner: Inner,
}

type PerCoreAddresses = unsafe extern "C-unwind" fn(Buffer) -> *const UnorderedMap;

enum Inner {
    /// 0.79 and later.
    Accessors {
        size: unsafe extern "C-unwind" fn(Buffer) -> u64,
        kind: unsafe extern "C-unwind" fn(Buffer) -> u32,
        layout: unsafe extern "C-unwind" fn(Buffer) -> u32,
        device: unsafe extern "C-unwind" fn(Buffer) -> *const c_void,
        id: unsafe extern "C-unwind" fn(Buffer) -> u64,
    },
    /// Before.
    Decoded {
        layout: Layout,
        is_l1: unsafe extern "C-unwind" fn(Buffer) -> bool,
        is_dram: unsafe extern "C-unwind" fn(Buffer) -> bool,
        num_pages: unsafe extern "C-unwind" fn(Buffer) -> u32,
        /// Buffers that are still to be checked against what the functions say.
        unchecked: AtomicU32,
        refuted: AtomicBool,
    },
}

const CHECKED: u32 = 256;

impl BufferReader {
    /// Finds the functions, or says what is missing.
    pub fn find() -> Result<BufferReader, &'static str> {
        // SAFETY: the types follow from the names, as declared in all releases from 0.66 to 0.81.
        unsafe {
            Ok(BufferReader {
                address: function(c"_ZNK2tt8tt_metal6Buffer7addressEv").ok_or(MISSING)?,
                page_size: function(c"_ZNK2tt8tt_metal6Buffer9page_sizeEv").ok_or(MISSING)?,
                per_bank: function(c"_ZNK2tt8tt_metal6Buffer21aligned_size_per_bankEv").ok_or(MISSING)?,
                allocator: function(c"_ZNK2tt8tt_metal6Buffer9allocatorEv").ok_or(MISSING)?,
                num_banks: function(c"_ZNK2tt8tt_metal9Allocator13get_num_banksERKNS0_10BufferTypeE").ok_or(MISSING)?,
                alignment: function(c"_ZNK2tt8tt_metal9Allocator13get_alignmentENS0_10BufferTypeE").ok_or(MISSING)?,
                per_core: function(PER_CORE).zip(function(PER_CORE_ADDRESSES)),
                inner: Inner::accessors().or_else(Inner::decoded).ok_or(UNKNOWN_LAYOUT)?,
            })
        }
    }

    /// How it learns the facts, in a few words.
    pub fn by(&self) -> &'static str {
        match self.inner {
            Inner::Accessors { .. } => "with accessors",
            Inner::Decoded { .. } => "by decoded layout",
        }
    }

    /// Whether pointers in a buffer have to be looked at with care.
    pub fn is_decoded(&self) -> bool {
        matches!(self.inner, Inner::Decoded { .. })
    }

    /// Looks at a buffer that was just allocated.
    ///
    /// # Safety
    /// The library must have handed it over as such, in a call that has not returned.
    pub unsafe fn look(&self, buffer: Buffer) -> Look<BufferFacts> {
        // SAFETY: the buffer is alive and allocated, which is what these functions ask for.
        unsafe {
            // A graph capture took the allocation over: nothing was reserved.
            let address = (self.address)(buffer);
            if address == 0 {
                return Look::Nowhere;
            }
            let place = match self.place(buffer) {
                Look::At(place) => place,
                Look::Nowhere => return Look::Nowhere,
                Look::Odd(reason) => return Look::Odd(reason),
            };
            let Some(allocator) = self.allocator(buffer) else { return Look::Odd("a buffer has no allocator") };
            let (logical, layout) = self.size_and_layout(buffer);
            let banks = match self.per_core {
                // Only the cores of its shards have a part of it, each at an address of its own.
                Some((is_per_core, addresses)) if is_per_core(buffer) => (*addresses(buffer)).count as u32,
                _ => self.banks(allocator, place.kind),
            };
            // Blocks of all kinds are whole multiples of what DRAM is aligned to.
            let block = (self.alignment)(allocator, number(MemoryKind::Dram));
            let per_bank = whole_blocks((self.per_bank)(buffer), block.into());
            let page = (self.page_size)(buffer);
            Look::At(BufferFacts { place, logical, per_bank, banks, address: address.into(), page, layout })
        }
    }

    /// Where a buffer is.
    ///
    /// # Safety
    /// The buffer must be alive.
    pub unsafe fn place(&self, buffer: Buffer) -> Look<BufferPlace> {
        // SAFETY: the buffer is alive.
        unsafe {
            let (number, device, id) = match &self.inner {
                Inner::Accessors { kind, device, id, .. } => (kind(buffer), device(buffer), id(buffer)),
                Inner::Decoded { layout, .. } => {
                    if !self.still_true(buffer) {
                        return Look::Odd(REFUTED);
                    }
                    (field::<u32>(buffer, layout.kind), field(buffer, layout.device), buffer.addr() as u64)
                }
            };
            let kind = match number {
                0 => MemoryKind::Dram,
                1 => MemoryKind::L1,
                // The host's.
                2 => return Look::Nowhere,
                3 => MemoryKind::L1Small,
                4 => MemoryKind::Trace,
                _ => return Look::Odd("a buffer is of a type that is not known"),
            };
            let Some(device) = NonNull::new(device.cast_mut()) else {
                return Look::Odd("a buffer has no device");
            };
            Look::At(BufferPlace { id, device, kind })
        }
    }

    /// The number by which the book knows a buffer.
    ///
    /// # Safety
    /// The buffer must be alive.
    pub unsafe fn id(&self, buffer: Buffer) -> u64 {
        match &self.inner {
            // SAFETY: as promised.
            Inner::Accessors { id, .. } => unsafe { id(buffer) },
            Inner::Decoded { .. } => buffer.addr() as u64,
        }
    }

    /// Whose banks a buffer is in.
    ///
    /// # Safety
    /// The buffer must be alive.
    #[inline]
    pub unsafe fn allocator(&self, buffer: Buffer) -> Option<Allocator> {
        // SAFETY: as promised.
        NonNull::new(unsafe { (self.allocator)(buffer) })
    }

    /// How many banks an allocator has for a kind.
    ///
    /// # Safety
    /// The allocator must be alive, and have banks for the kind.
    pub unsafe fn banks(&self, allocator: Allocator, kind: MemoryKind) -> u32 {
        // SAFETY: as promised.
        unsafe { (self.num_banks)(allocator, &number(kind)) }
    }

    unsafe fn size_and_layout(&self, buffer: Buffer) -> (u64, u8) {
        const UNKNOWN: u8 = u8::MAX;
        // SAFETY: the caller vouches for the buffer.
        unsafe {
            let (size, layout) = match &self.inner {
                Inner::Accessors { size, layout, .. } => (size(buffer), Some(layout(buffer))),
                Inner::Decoded { layout, .. } => {
                    (field(buffer, layout.size), layout.layout.map(|at| field::<u32>(buffer, at)))
                }
            };
            (size, layout.and_then(|layout| u8::try_from(layout).ok()).unwrap_or(UNKNOWN))
        }
    }

    /// Compares what the decoded layout says of the first buffers with what the functions say.
    unsafe fn still_true(&self, buffer: Buffer) -> bool {
        let Inner::Decoded { layout, is_l1, is_dram, num_pages, unchecked, refuted } = &self.inner else { return true };
        if refuted.load(Relaxed) {
            return false;
        }
        let left = unchecked.load(Relaxed);
        if left == 0 {
            return true;
        }
        unchecked.store(left - 1, Relaxed);
        // SAFETY: the caller vouches for the buffer, and the fields are inside of it.
        let agree = unsafe {
            let (kind, size) = (field::<u32>(buffer, layout.kind), field::<u64>(buffer, layout.size));
            let pages = size.checked_div((self.page_size)(buffer)).unwrap_or(0);
            kind <= 4
                && is_l1(buffer) == matches!(kind, 1 | 3)
                && is_dram(buffer) == matches!(kind, 0 | 4)
                && num_pages(buffer) == pages as u32
        };
        if !agree {
            refuted.store(true, Relaxed);
        }
        agree
    }
}

impl Inner {
    fn accessors() -> Option<Inner> {
        // SAFETY: as in `BufferReader::find`.
        unsafe {
            Some(Inner::Accessors {
                size: function(c"_ZNK2tt8tt_metal6Buffer4sizeEv")?,
                kind: function(c"_ZNK2tt8tt_metal6Buffer11buffer_typeEv")?,
                layout: function(c"_ZNK2tt8tt_metal6Buffer13buffer_layoutEv")?,
                device: function(c"_ZNK2tt8tt_metal6Buffer6deviceEv")?,
                id: function(c"_ZNK2tt8tt_metal6Buffer9unique_idEv")?,
            })
        }
    }

    fn decoded() -> Option<Inner> {
        let code_of = |name| Some(code(find(name)?, 64));
        let layout = Layout::of(decode::BufferCode {
            page_size: code_of(c"_ZNK2tt8tt_metal6Buffer9page_sizeEv")?,
            num_pages: code_of(c"_ZNK2tt8tt_metal6Buffer9num_pagesEv")?,
            is_l1: code_of(c"_ZNK2tt8tt_metal6Buffer5is_l1Ev")?,
            is_dram: code_of(c"_ZNK2tt8tt_metal6Buffer7is_dramEv")?,
            aligned_size_per_bank: code_of(c"_ZNK2tt8tt_metal6Buffer21aligned_size_per_bankEv")?,
        })?;
        // SAFETY: as in `BufferReader::find`.
        unsafe {
            Some(Inner::Decoded {
                layout,
                is_l1: function(c"_ZNK2tt8tt_metal6Buffer5is_l1Ev")?,
                is_dram: function(c"_ZNK2tt8tt_metal6Buffer7is_dramEv")?,
                num_pages: function(c"_ZNK2tt8tt_metal6Buffer9num_pagesEv")?,
                unchecked: AtomicU32::new(CHECKED),
                refuted: AtomicBool::new(false),
            })
        }
    }
}

/// Bytes rounded up to whole blocks. Blocks are powers of two, which saves a division.
fn whole_blocks(bytes: u64, block: u64) -> u64 {
    if block.is_power_of_two() {
        bytes.saturating_add(block - 1) & !(block - 1)
    } else {
        bytes.checked_next_multiple_of(block).unwrap_or(bytes)
    }
}

/// As tt-metal numbers its types of buffers.
pub fn number(kind: MemoryKind) -> u32 {
    match kind {
        MemoryKind::Dram => 0,
        MemoryKind::L1 => 1,
        MemoryKind::L1Small => 3,
        MemoryKind::Trace => 4,
        // They are no buffers.
        MemoryKind::Cb | MemoryKind::Kernel => 2,
    }
}

/// # Safety
/// The object must have a field of this type there.
unsafe fn field<T: Copy>(object: *const c_void, offset: usize) -> T {
    // SAFETY: as promised.
    unsafe { object.byte_add(offset).cast::<T>().read_unaligned() }
}

const MISSING: &str = "libtt_metal.so lacks functions that describe a buffer; nothing is counted";
const UNKNOWN_LAYOUT: &str = "the layout of buffers in libtt_metal.so is not known; nothing is counted";
const REFUTED: &str = "buffers in libtt_metal.so are not laid out as they seemed to be; the book is incomplete";
const PER_CORE: &std::ffi::CStr =
    c"_ZN2tt8tt_metal12experimental19per_core_allocation22is_per_core_allocationERKNS0_6BufferE";
const PER_CORE_ADDRESSES: &std::ffi::CStr =
    c"_ZN2tt8tt_metal12experimental19per_core_allocation22get_per_core_addressesERKNS0_6BufferE";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_whole() {
        let blocks = |bytes, block| whole_blocks(bytes, block);
        assert_eq!([blocks(288, 64), blocks(320, 64), blocks(0, 64), blocks(1, 1)], [320, 320, 0, 1]);
        assert_eq!([blocks(10, 12), blocks(10, 0)], [12, 10]);
    }
}
