//! A real mesh device with real buffers, on a cluster that only a descriptor file describes.
//!
//! ```text
//! alloc ID BYTES PAGE KIND        OK address=<in each bank> per_bank=<aligned bytes>
//! tensor ID BYTES PAGE KIND       the same, in the way of ttnn's tensors: BYTES on each device of the mesh
//! free ID
//! hold COUNT BYTES PAGE KIND      allocates buffers with ids from 1000000 up
//! churn COUNT BYTES PAGE KIND     OK ns=<time of one allocation and its release>
//! stats KIND                      OK banks=… allocatable=… allocated=… free=… largest_free=…, bytes of each bank
//! cb BYTES                        OK cores=…; a program with a circular buffer on every worker core
//! uncb                            drops the program
//! thread alloc|tensor|free …      the same on a thread of its own
//! fork                            OK child=<pid>; the child sleeps until this process quits or is gone
//! fork alloc|tensor …             OK child=<pid> address=… per_bank=…; the child allocates before it sleeps
//! worker alloc|tensor|churn …     OK child=<pid> …; the child does that and ends by _exit(0), before the reply
//! close                           closes the device under the buffers
//! drop                            lets go of the device, unclosed, under the tensors
//! abandon                         no reply; the process exits with 0 and closes nothing itself
//! die                             no reply; the process is gone at once, with exit code 9
//! ```
//!
//! `KIND` is `dram`, `l1`, `l1_small` or `trace`. An id is a number of the caller's choice.
//!
//! What `GraphTracker` gets, as seen in 0.78.0 and 0.81.1: a buffer or tensor of a mesh is one event, with the
//! mesh as its device; a circular buffer is one event for each chip, with the chip's own device. A device that is
//! closed frees its buffers without `track_deallocate`, which does not come later either, when they are dropped; the
//! `track_deallocate_cb` of a program comes when it is dropped, even after. Both `close` and `drop` end in
//! `MeshDeviceImpl::close_impl`, but only `close` calls `MeshDevice::close`. On `abandon` the library closes its chips
//! by `Device::close` from a destructor of its own, with no other event; on `die` there is none at all.

mod buffers;
mod child;
mod functions;
mod program;
mod sharding;

use std::collections::BTreeMap;
use std::env;
use std::ffi::c_void;
use std::fs;
use std::path::Path;
use std::process;
use std::str::FromStr;
use std::thread;

use anyhow::{Context, Result, anyhow, bail};
use libloading::os::unix::RTLD_GLOBAL;

use self::buffers::MockBuffer;
use self::child::SleepingChild;
use self::functions::{MetalFunctions, TtnnFunctions};
use self::program::{Program, ProgramFunctions};
use crate::cpp::{Cpp, SharedPtr, Storage};
use crate::root::MetalRoot;
use crate::script::{self, number};

/// A mesh of devices and what is on it.
pub struct MockMesh {
    functions: MetalFunctions,
    ttnn: TtnnFunctions,
    programs: ProgramFunctions,
    /// Whether `BufferShardingArgs` is a pointer to its fields.
    sharding_behind_pointer: bool,
    children: Vec<SleepingChild>,
    // Programs and buffers go before the device they are on.
    program: Option<Program>,
    buffers: BTreeMap<u32, MockBuffer>,
    device: SharedPtr,
    closed: bool,
    // The device reads from it and leaves files in it.
    root: MetalRoot,
}

impl MockMesh {
    /// Opens device 0 alone, or as many devices as the shape has places.
    ///
    /// Changes the environment and the working directory, and so must come before any thread is started.
    pub fn open(root: MetalRoot, cluster: &Path, shape: Option<MeshShape>) -> Result<MockMesh> {
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
        let metal = Cpp::load(&libraries.join("libtt_metal.so"), RTLD_GLOBAL)?;
        let ttnn = Cpp::load(&libraries.join("_ttnncpp.so"), RTLD_GLOBAL)?;
        let (functions, ttnn) = (MetalFunctions::find(metal)?, TtnnFunctions::find(ttnn)?);
        // It has a constructor then.
        let constructor = ["_ZN2tt8tt_metal18BufferShardingArgsC1Ev"];
        // SAFETY: It is not called.
        let sharding_behind_pointer = unsafe { metal.function::<*const c_void>(&constructor) }.is_ok();
        let device = open_device(&functions, &ttnn, shape);
        if device.object().is_null() {
            bail!("the library opened no device");
        }
        Ok(MockMesh {
            functions,
            ttnn,
            programs: ProgramFunctions::find(metal)?,
            sharding_behind_pointer,
            children: Vec::new(),
            program: None,
            buffers: BTreeMap::new(),
            device,
            closed: false,
            root,
        })
    }

    pub fn answer(&mut self, words: &[&str]) -> Result<String> {
        match *words {
            ["free", id] => return self.free(number("ID", id)?),
            ["uncb"] => return self.program.take().map(|_| String::new()).context("there is no program"),
            ["abandon"] => {
                self.remove_root();
                process::exit(0);
            }
            ["die"] => {
                self.remove_root();
                child::exit_at_once(9);
            }
            ["fork", ref command @ ..] => return child::fork(self, command),
            ["worker", ref command @ ..] => return child::work(self, command),
            ["thread", "alloc" | "tensor" | "free", ..] => {
                let elsewhere = |mesh: &mut MockMesh| mesh.answer(&words[1..]);
                return thread::scope(|scope| scope.spawn(|| elsewhere(self)).join())
                    .unwrap_or_else(|_| Err(anyhow!("the thread panicked")));
            }
            _ if self.closed => bail!("the device is closed"),
            _ => {}
        }
        match *words {
            ["alloc" | "tensor", id, bytes, page, kind] => {
                let allocate = if words[0] == "alloc" { MockMesh::alloc } else { MockMesh::tensor };
                allocate(self, number("ID", id)?, number("BYTES", bytes)?, number("PAGE", page)?, script::kind(kind)?)
            }
            ["hold" | "churn", count, bytes, page, kind] => {
                let many = if words[0] == "hold" { MockMesh::hold } else { MockMesh::churn };
                many(self, number("COUNT", count)?, number("BYTES", bytes)?, number("PAGE", page)?, script::kind(kind)?)
            }
            ["stats", kind] => self.stats(script::kind(kind)?),
            ["cb", bytes] => self.run_program(number("BYTES", bytes)?),
            ["close"] => {
                self.close();
                Ok(String::new())
            }
            ["drop"] => self.drop_device(),
            _ => bail!("unknown command {:?}", words.join(" ")),
        }
    }

    /// Only one at a time; the old one goes before the new one comes.
    fn run_program(&mut self, bytes: u32) -> Result<String> {
        self.program = None;
        let program = Program::new(self.programs, self.device.object(), bytes)?;
        let cores = self.program.insert(program).cores;
        Ok(format!("cores={cores}"))
    }

    fn drop_device(&mut self) -> Result<String> {
        if self.buffers.values().any(|buffer| !buffer.is_tensor) {
            bail!("only tensors may outlive their device");
        }
        self.closed = true;
        self.device = SharedPtr::null();
        Ok(String::new())
    }

    fn close(&mut self) {
        if !self.closed {
            self.closed = true;
            // SAFETY: The device was opened in `open`, and is closed once.
            unsafe { (self.ttnn.close)(self.device.object()) };
        }
    }

    /// Nothing else does where a process ends without dropping what it has.
    fn remove_root(&self) {
        let _ = fs::remove_dir_all(self.root.path());
    }
}

impl Drop for MockMesh {
    fn drop(&mut self) {
        self.children.clear();
        self.program = None;
        self.buffers.clear();
        self.close();
    }
}

const L1_SMALL_BYTES: usize = 32 << 10;
const TRACE_BYTES: usize = 1 << 20;

fn open_device(metal: &MetalFunctions, ttnn: &TtnnFunctions, shape: Option<MeshShape>) -> SharedPtr {
    let mut device = SharedPtr::null();
    // An absent `std::optional` is zero where its flag is, and so is an empty `std::vector`.
    let mut absent = Storage::new();
    let absent = absent.as_ptr();
    // SAFETY: The storage is larger than the objects in it, and a null pointer may be overwritten.
    unsafe {
        if let Some(MeshShape(rows, columns)) = shape {
            let mut shape = Storage::new();
            let shape = shape.as_ptr();
            (metal.shape)(shape, rows, columns);
            let dispatch = (ttnn.default_dispatch)(0, 0, 0);
            let dispatch = (&raw const dispatch).cast();
            (ttnn.open_shape)(&mut device, shape, L1_SMALL_BYTES, TRACE_BYTES, 1, dispatch, absent, absent, 0);
        } else {
            (ttnn.open)(&mut device, 0, L1_SMALL_BYTES, TRACE_BYTES, 1, absent, 0);
        }
    }
    device
}

/// Rows and columns of a mesh, as in `2x4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeshShape(u32, u32);

impl FromStr for MeshShape {
    type Err = anyhow::Error;

    fn from_str(word: &str) -> Result<MeshShape> {
        let (rows, columns) = word.split_once('x').with_context(|| format!("{word:?} is not ROWSxCOLUMNS"))?;
        Ok(MeshShape(number("ROWS", rows)?, number("COLUMNS", columns)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_rows_and_columns() {
        assert_eq!("2x4".parse::<MeshShape>().unwrap(), MeshShape(2, 4));
        assert_eq!("8".parse::<MeshShape>().unwrap_err().to_string(), "\"8\" is not ROWSxCOLUMNS");
    }
}
