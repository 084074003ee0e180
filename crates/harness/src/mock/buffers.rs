//! Buffers: made, dropped and counted by the allocator.

use std::ffi::c_void;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use ledger::book::MemoryKind;

use super::MockMesh;
use super::functions::Statistics;
use super::sharding::Sharding;
use crate::cpp::{SharedPtr, Storage};
use crate::script::code;

/// A buffer, or the `MeshBuffer` of a tensor. It is freed when dropped.
pub struct MockBuffer {
    /// A tensor knows whether its device is still there.
    pub is_tensor: bool,
    _owner: SharedPtr,
}

/// Ids from here on are for `hold`.
const FIRST_HELD: u32 = 1_000_000;

impl MockMesh {
    pub fn alloc(&mut self, id: u32, bytes: u64, page: u64, kind: MemoryKind) -> Result<String> {
        self.must_be_new(id)?;
        let buffer = self.create(bytes, page, kind)?;
        let place = self.place(buffer.object());
        self.buffers.insert(id, MockBuffer { is_tensor: false, _owner: buffer });
        Ok(place)
    }

    /// Allocates as a tensor does: a buffer of the mesh, and one at the same address on each device of it.
    pub fn tensor(&mut self, id: u32, bytes: u64, page: u64, kind: MemoryKind) -> Result<String> {
        self.must_be_new(id)?;
        let mut sharding = sharding(bytes, page, kind)?;
        let mut buffer = SharedPtr::null();
        let device = self.device.object();
        // A `std::variant` whose first alternative has the size only.
        let mut size = Storage::new();
        let mut each = Storage::new();
        // SAFETY: The device is open, the storage is larger than the objects in it, and the library copies them.
        let backing = unsafe {
            size.as_ptr().cast::<u64>().write(bytes);
            each.as_ptr().cast::<u64>().write(page);
            each.as_ptr().byte_add(8).cast::<u32>().write(code(kind).into());
            sharding.copy_to(each.as_ptr().byte_add(16), self.sharding_behind_pointer);
            (self.functions.create_replicated)(&mut buffer, size.as_ptr(), each.as_ptr(), device, 0, 0);
            (self.functions.backing)(buffer.object())
        };
        let place = self.place(backing);
        self.buffers.insert(id, MockBuffer { is_tensor: true, _owner: buffer });
        Ok(place)
    }

    pub fn free(&mut self, id: u32) -> Result<String> {
        self.buffers.remove(&id).with_context(|| format!("there is no buffer {id}"))?;
        Ok(String::new())
    }

    pub fn hold(&mut self, count: u32, bytes: u64, page: u64, kind: MemoryKind) -> Result<String> {
        let last = self.buffers.range(FIRST_HELD..).next_back();
        let first = last.map_or(FIRST_HELD, |(id, _)| id + 1);
        for id in (first..).take(count as usize) {
            let buffer = self.create(bytes, page, kind)?;
            self.buffers.insert(id, MockBuffer { is_tensor: false, _owner: buffer });
        }
        Ok(String::new())
    }

    pub fn churn(&mut self, count: u32, bytes: u64, page: u64, kind: MemoryKind) -> Result<String> {
        if count == 0 {
            bail!("COUNT is zero");
        }
        let start = Instant::now();
        for _ in 0..count {
            drop(self.create(bytes, page, kind)?);
        }
        Ok(format!("ns={}", start.elapsed().as_nanos() / u128::from(count)))
    }

    pub fn stats(&self, kind: MemoryKind) -> Result<String> {
        if kind == MemoryKind::Cb {
            bail!("circular buffers have no allocator");
        }
        let number = u32::from(code(kind));
        let mut statistics = Statistics::default();
        // SAFETY: The device is open, and its allocator lives as long.
        let banks = unsafe {
            let allocator = *(self.functions.allocator)(self.device.object());
            (self.functions.statistics)(&mut statistics, allocator, &number);
            (self.functions.banks)(allocator, &number)
        };
        let Statistics { allocatable, allocated, free, largest_free } = statistics;
        Ok(format!(
            "banks={banks} allocatable={allocatable} allocated={allocated} free={free} largest_free={largest_free}"
        ))
    }

    fn create(&mut self, bytes: u64, page: u64, kind: MemoryKind) -> Result<SharedPtr> {
        let mut sharding = sharding(bytes, page, kind)?;
        let sharding = sharding.as_ptr(self.sharding_behind_pointer);
        let mut buffer = SharedPtr::null();
        let device = self.device.object();
        // SAFETY: The device is open, the library copies the sharding, and 0 is an absent `std::optional` of a byte.
        unsafe {
            (self.functions.create)(&mut buffer, device, bytes, page, code(kind).into(), sharding, 0, 0);
        }
        Ok(buffer)
    }

    fn must_be_new(&self, id: u32) -> Result<()> {
        if self.buffers.contains_key(&id) {
            bail!("there is a buffer {id} already");
        }
        Ok(())
    }

    /// `buffer` must be alive.
    fn place(&self, buffer: *const c_void) -> String {
        // SAFETY: The caller vouches for the buffer.
        let (address, per_bank) = unsafe { ((self.functions.address)(buffer), (self.functions.size_per_bank)(buffer)) };
        format!("address={address} per_bank={per_bank}")
    }
}

fn sharding(bytes: u64, page: u64, kind: MemoryKind) -> Result<Box<Sharding>> {
    // The library throws on these.
    if bytes == 0 || page == 0 || bytes % page != 0 {
        bail!("{bytes} bytes are not a whole number of pages of {page} bytes");
    }
    Ok(match kind {
        MemoryKind::Dram | MemoryKind::L1 | MemoryKind::Trace => Sharding::interleaved(),
        // The library does not spread these over the cores.
        MemoryKind::L1Small => Sharding::on_one_core(u32::try_from(bytes / page)?),
        MemoryKind::Cb | MemoryKind::Kernel => bail!("a circular buffer belongs to a program: cb BYTES"),
    })
}
