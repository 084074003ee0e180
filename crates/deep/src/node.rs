//! An open device: the parts of its memory that hold the telemetry table, mapped to be read.
//!
//! The node is opened so that nothing changes: read-only, and with `O_APPEND`, which tells the driver that this user asks for no
//! power. It is never waited for: `O_NONBLOCK`.
//!
//! - Wormhole: two parts of BAR 4. Nothing is configured.
//! - Blackhole: one of the driver's 2 MiB windows, pointed at the ARC processor. To point it is the only write, and the driver does it.

#![allow(unsafe_code)]

use crate::problem::Problem;
use crate::walk::{CSM, Memory};
use model::{Arch, DeepUnavailable};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::{CStr, c_void};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{NonNull, null_mut};

/// Requests of the driver that are used, and no others.
pub const REQUESTS: [u32; 5] = [GET_DEVICE_INFO, QUERY_MAPPINGS, ALLOCATE_TLB, FREE_TLB, CONFIGURE_TLB];
const GET_DEVICE_INFO: u32 = 0xfa00;
const QUERY_MAPPINGS: u32 = 0xfa02;
const ALLOCATE_TLB: u32 = 0xfa0b;
const FREE_TLB: u32 = 0xfa0c;
const CONFIGURE_TLB: u32 = 0xfa0d;

/// Where BAR 4 begins among what can be mapped. Not cached.
const BAR_4: u64 = 4 << 36;
/// Where Wormhole's BAR 4 has the registers and the memory of the ARC processor.
const WORMHOLE_REGISTERS: u64 = BAR_4 + 0x01f3_0000;
const WORMHOLE_CSM: u64 = BAR_4 + 0x01e8_0000;

/// The registers that have the table's address, by the ARC processor's own address.
const REGISTERS: u64 = 0x8003_0000;
const PAGE: usize = 4096;
const CSM_LENGTH: usize = (CSM.end - CSM.start) as usize;

/// Blackhole's window: its size, where it can begin, and the ARC processor's place in the network on the chip.
const WINDOW: u64 = 2 << 20;
const ARC_X: u16 = 8;
const ARC_Y: u16 = 0;
/// Reads are answered in order.
const STRICT: u8 = 1;

/// Opens a node as a user that asks for no power.
pub fn open(path: &CStr) -> Result<OwnedFd, Problem> {
    let flags = OFlags::RDONLY | OFlags::APPEND | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(Problem::open)
}

/// A device whose table can be read. When it is dropped, it is unmapped, its window is freed, and the node is closed, in this order.
pub enum Device {
    /// Two mappings.
    Wormhole {
        /// The page of registers.
        registers: Mapping,
        /// The memory that the table is in.
        memory: Mapping,
        /// The node.
        _node: OwnedFd,
    },
    /// One window, which shows the registers or the memory.
    Blackhole {
        /// What the window shows.
        view: Mapping,
        /// Where it begins.
        base: u64,
        /// The window itself, and the node.
        window: Window,
    },
}

impl Device {
    /// Maps what is to be read of an open node, if it is of this generation.
    pub fn map(node: OwnedFd, arch: Arch) -> Result<Device, Problem> {
        let mut info = [0_u32; 6];
        info[0] = 20;
        call(&node, GET_DEVICE_INFO, &mut info)
            .map_err(|error| Problem::call("ask the driver for the device", error))?;
        let expected = match arch {
            Arch::Wormhole => 0x401e_1e52,
            Arch::Blackhole => 0xb140_1e52,
        };
        if info[2] != expected {
            return Err(Problem::found(DeepUnavailable::NotReady, "the device is another one", info[2]));
        }
        // Refused while a reset is under way, when the driver would map a Wormhole all the same. Asks for no mapping.
        let ready = call(&node, QUERY_MAPPINGS, &mut [0_u64]);
        ready.map_err(|error| Problem::call("ask the driver for its mappings", error))?;
        match arch {
            Arch::Wormhole => {
                let registers = Mapping::new(&node, WORMHOLE_REGISTERS, PAGE)?;
                let memory = Mapping::new(&node, WORMHOLE_CSM, CSM_LENGTH)?;
                Ok(Device::Wormhole { registers, memory, _node: node })
            }
            Arch::Blackhole => {
                let (window, offset) = Window::allocate(node)?;
                // The registers, too, are in the first 512 KiB of the window.
                let view = Mapping::new(&window.node, offset, CSM_LENGTH)?;
                Ok(Device::Blackhole { view, base: 0, window })
            }
        }
    }
}

impl Memory for Device {
    fn read32(&mut self, address: u64) -> Result<u32, Problem> {
        let is_csm = CSM.contains(&address);
        let word = match self {
            Device::Wormhole { memory, .. } if is_csm => memory.read(address - CSM.start),
            Device::Wormhole { registers, .. } => {
                address.checked_sub(REGISTERS).and_then(|offset| registers.read(offset))
            }
            Device::Blackhole { view, base, window } => {
                let wanted = address & !(WINDOW - 1);
                if !is_csm && wanted != REGISTERS & !(WINDOW - 1) {
                    return Err(Problem::found(DeepUnavailable::BadTable, "no such address", address as u32));
                }
                if *base != wanted {
                    window.point_at(wanted)?;
                    *base = wanted;
                }
                view.read(address - wanted)
            }
        };
        word.ok_or(Problem::found(DeepUnavailable::BadTable, "no such address", address as u32))
    }
}

/// A window that the driver lends to this open node.
pub struct Window {
    id: u32,
    node: OwnedFd,
}

impl Window {
    /// A window, and where it can be mapped.
    fn allocate(node: OwnedFd) -> Result<(Window, u64), Problem> {
        // Size and a reserve; then number, and where to map it uncached and write-combined.
        let mut request = [0_u64; 6];
        request[0] = WINDOW;
        call(&node, ALLOCATE_TLB, &mut request).map_err(|error| Problem::call("allocate a window", error))?;
        Ok((Window { id: request[2] as u32, node }, request[3]))
    }

    fn point_at(&self, address: u64) -> Result<(), Problem> {
        let mut request = [0_u64; 6];
        request[0] = self.id.into();
        request[1] = address;
        request[2] = u64::from(ARC_X) | u64::from(ARC_Y) << 16;
        request[3] = u64::from(STRICT) << 16;
        call(&self.node, CONFIGURE_TLB, &mut request).map_err(|error| Problem::call("configure the window", error))
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // To close the node would free it as well.
        let _ = call(&self.node, FREE_TLB, &mut [self.id]);
    }
}

/// Asks the driver. All its structures are smaller than `argument`'s six words, or as long.
fn call<T: Copy>(node: &OwnedFd, request: u32, argument: &mut [T]) -> Result<(), Errno> {
    // SAFETY: the driver reads and writes what the request's structure has, and the callers have made room for it.
    let result = unsafe { libc::ioctl(node.as_raw_fd(), request as _, argument.as_mut_ptr()) };
    if result == -1 { Err(last_error()) } else { Ok(()) }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Memory of a device, to be read. It can go away at any time: to read it then is a SIGBUS, which ends the process.
pub struct Mapping {
    start: NonNull<c_void>,
    length: usize,
}

impl Mapping {
    fn new(node: &OwnedFd, offset: u64, length: usize) -> Result<Mapping, Problem> {
        // SAFETY: a new mapping at a place of the kernel's choice changes no memory that is in use.
        let start = unsafe { mmap(null_mut(), length, ProtFlags::READ, MapFlags::SHARED, node, offset) };
        let start = start.map_err(|error| Problem::call("map", error))?;
        NonNull::new(start).map(|start| Mapping { start, length }).ok_or(Problem::call("map", Errno::NOMEM))
    }

    /// The word at an offset. One access of 32 bits.
    fn read(&self, offset: u64) -> Option<u32> {
        let offset = usize::try_from(offset).ok().filter(|offset| offset % 4 == 0)?;
        if offset >= self.length {
            return None;
        }
        // SAFETY: the word is inside of the mapping, which begins at a page, and aligned.
        Some(unsafe { self.start.as_ptr().byte_add(offset).cast::<u32>().read_volatile() })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nothing refers to it.
        let _ = unsafe { munmap(self.start.as_ptr(), self.length) };
    }
}
