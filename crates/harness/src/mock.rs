//! A real mesh device with real buffers, on a cluster that only a descriptor file tells about.
//!
//! ```text
//! alloc ID BYTES PAGE dram|l1|trace     OK address=<in each bank> per_bank=<aligned bytes>
//! free ID
//! ```
//!
//! An id is a number of the caller's choice.

use std::collections::BTreeMap;
use std::env;
use std::ffi::c_void;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::cpp::{Cpp, SharedPtr, Storage};
use crate::root::Root;
use crate::script::{Kind, number};

/// Device 0 and the buffers on it, by id.
pub struct Mesh {
    functions: Functions,
    // Buffers go before the device they are on.
    buffers: BTreeMap<u32, SharedPtr>,
    device: SharedPtr,
    /// How a buffer is spread over cores: not at all, it is interleaved over the banks.
    interleaved: Box<Storage>,
}

impl Mesh {
    /// Changes the environment and the working directory, and so must come before any thread is started.
    pub fn open(root: &Root, cluster: &Path) -> Result<Mesh> {
        let cluster = cluster.canonicalize().with_context(|| format!("cannot find {}", cluster.display()))?;
        for (name, value) in [
            ("TT_METAL_MOCK_CLUSTER_DESC_PATH", cluster.as_path()),
            ("TT_METAL_RUNTIME_ROOT", root.path()),
            ("TT_METAL_HOME", root.path()),
            ("TT_METAL_CACHE", &root.scratch()),
            // Open MPI leaves a session folder behind, and a segment, in /dev/shm unless told otherwise.
            ("TMPDIR", &root.scratch()),
            ("OMPI_MCA_btl_sm_backing_directory", &root.scratch()),
        ] {
            // SAFETY: This process has one thread still.
            unsafe { env::set_var(name, value) };
        }
        // Reports appear in the working directory.
        env::set_current_dir(root.scratch())?;

        let libraries = root.path().join("build/lib");
        let metal = Cpp::load_global(&libraries.join("libtt_metal.so"))?;
        let ttnn = Cpp::load_global(&libraries.join("_ttnncpp.so"))?;
        let functions = Functions::find(metal, ttnn)?;

        let mut interleaved = Storage::new();
        let mut device = SharedPtr::null();
        // An absent `std::optional` is zero where its flag is.
        let mut default_dispatch = Storage::new();
        // SAFETY: The storage is larger than the objects in it, and a null pointer may be overwritten.
        unsafe {
            (functions.interleaved)(interleaved.as_ptr());
            (functions.open)(&mut device, 0, L1_SMALL_BYTES, TRACE_BYTES, 1, default_dispatch.as_ptr(), 0);
        }
        if device.object().is_null() {
            bail!("the library opened no device");
        }
        Ok(Mesh { functions, buffers: BTreeMap::new(), device, interleaved })
    }

    pub fn answer(&mut self, words: &[&str]) -> Result<String> {
        match *words {
            ["alloc", id, bytes, page, kind] => {
                self.alloc(number("ID", id)?, number("BYTES", bytes)?, number("PAGE", page)?, kind.parse()?)
            }
            ["free", id] => {
                let id: u32 = number("ID", id)?;
                self.buffers.remove(&id).with_context(|| format!("there is no buffer {id}"))?;
                Ok(String::new())
            }
            _ => bail!("unknown command {:?}", words.join(" ")),
        }
    }

    fn alloc(&mut self, id: u32, bytes: u64, page: u64, kind: Kind) -> Result<String> {
        if self.buffers.contains_key(&id) {
            bail!("there is a buffer {id} already");
        }
        // The library throws on these.
        if bytes == 0 || page == 0 || !bytes.is_multiple_of(page) {
            bail!("{bytes} bytes are not a whole number of pages of {page} bytes");
        }
        if !matches!(kind, Kind::Dram | Kind::L1 | Kind::Trace) {
            bail!("a buffer of this kind cannot be interleaved");
        }

        let mut buffer = SharedPtr::null();
        let device = self.device.object();
        let interleaved = self.interleaved.as_ptr();
        // SAFETY: Device and arguments were made in `open`; 0 is an absent `std::optional` of a byte.
        unsafe {
            (self.functions.create)(&mut buffer, device, bytes, page, kind.code().into(), interleaved, 0, 0);
            let address = (self.functions.address)(buffer.object());
            let per_bank = (self.functions.size_per_bank)(buffer.object());
            self.buffers.insert(id, buffer);
            Ok(format!("address={address} per_bank={per_bank}"))
        }
    }
}

impl Drop for Mesh {
    fn drop(&mut self) {
        self.buffers.clear();
        // SAFETY: The device was opened in `open`, and nothing is on it any more.
        unsafe { (self.functions.close)(self.device.object()) };
    }
}

const L1_SMALL_BYTES: usize = 32 << 10;
const TRACE_BYTES: usize = 1 << 20;

type Open = unsafe extern "C-unwind" fn(
    device: *mut SharedPtr,
    id: i32,
    l1_small: usize,
    trace: usize,
    queues: usize,
    dispatch: *const c_void,
    worker_l1: usize,
) -> *mut SharedPtr;
type Create = unsafe extern "C-unwind" fn(
    buffer: *mut SharedPtr,
    device: *mut c_void,
    bytes: u64,
    page: u64,
    kind: u32,
    sharding: *const c_void,
    bottom_up: u16,
    sub_device: u16,
) -> *mut SharedPtr;

struct Functions {
    open: Open,
    close: unsafe extern "C-unwind" fn(device: *mut c_void),
    interleaved: unsafe extern "C-unwind" fn(this: *mut c_void),
    create: Create,
    address: unsafe extern "C-unwind" fn(buffer: *const c_void) -> u32,
    size_per_bank: unsafe extern "C-unwind" fn(buffer: *const c_void) -> u64,
}

impl Functions {
    fn find(metal: Cpp, ttnn: Cpp) -> Result<Functions> {
        // SAFETY: The types follow from the mangled names; a returned `shared_ptr` is written through
        // a pointer that comes first.
        unsafe {
            Ok(Functions {
                open: ttnn.function(
                    "_ZN4ttnn6device16open_mesh_deviceEimmmRKSt8optionalIN2tt8tt_metal18DispatchCoreConfigEEm",
                )?,
                close: ttnn.function("_ZN4ttnn6device12close_deviceERN2tt8tt_metal11distributed10MeshDeviceE")?,
                interleaved: metal.function("_ZN2tt8tt_metal18BufferShardingArgsC1Ev")?,
                create: metal.function(concat!(
                    "_ZN2tt8tt_metal10BufferImpl6createEPNS0_7IDeviceEmmNS0_10BufferTypeERKNS0_18BufferShardingArgsE",
                    "St8optionalIbES8_IN4ttsl10StrongTypeIhNS0_14SubDeviceIdTagEEEE"
                ))?,
                address: metal.function("_ZNK2tt8tt_metal6Buffer7addressEv")?,
                size_per_bank: metal.function("_ZNK2tt8tt_metal6Buffer21aligned_size_per_bankEv")?,
            })
        }
    }
}
