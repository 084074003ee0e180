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
use std::fs;
use std::path::Path;
use std::process;
use std::str::FromStr;
use std::thread;

use anyhow::{Context, Result, anyhow, bail};

use self::buffers::MockBuffer;
use self::child::SleepingChild;
use self::functions::MetalFunctions;
use self::program::Program;
use crate::cpp::{Cpp, SharedPtr, Storage};
use crate::root::MetalRoot;
use crate::script::number;

/// A mesh of devices and what is on it.
pub struct MockMesh {
    functions: MetalFunctions,
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
        let metal = Cpp::load_global(&libraries.join("libtt_metal.so"))?;
        let ttnn = Cpp::load_global(&libraries.join("_ttnncpp.so"))?;
        let functions = MetalFunctions::find(metal, ttnn)?;
        let device = open_device(&functions, shape);
        if device.object().is_null() {
            bail!("the library opened no device");
        }
        Ok(MockMesh {
            functions,
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
            ["alloc", id, bytes, page, kind] => {
                self.alloc(number("ID", id)?, number("BYTES", bytes)?, number("PAGE", page)?, kind.parse()?)
            }
            ["tensor", id, bytes, page, kind] => {
                self.tensor(number("ID", id)?, number("BYTES", bytes)?, number("PAGE", page)?, kind.parse()?)
            }
            ["hold", count, bytes, page, kind] => {
                self.hold(number("COUNT", count)?, number("BYTES", bytes)?, number("PAGE", page)?, kind.parse()?)
            }
            ["churn", count, bytes, page, kind] => {
                self.churn(number("COUNT", count)?, number("BYTES", bytes)?, number("PAGE", page)?, kind.parse()?)
            }
            ["stats", kind] => self.stats(kind.parse()?),
            ["cb", bytes] => {
                // Only one at a time; the old one goes before the new one comes.
                self.program = None;
                let program = Program::new(self.functions.program, self.device.object(), number("BYTES", bytes)?)?;
                let cores = program.cores;
                self.program = Some(program);
                Ok(format!("cores={cores}"))
            }
            ["close"] => {
                self.close();
                Ok(String::new())
            }
            ["drop"] => {
                if self.buffers.values().any(|buffer| !buffer.is_tensor) {
                    bail!("only tensors may outlive their device");
                }
                self.closed = true;
                self.device = SharedPtr::null();
                Ok(String::new())
            }
            _ => bail!("unknown command {:?}", words.join(" ")),
        }
    }

    fn close(&mut self) {
        if !self.closed {
            self.closed = true;
            // SAFETY: The device was opened in `open`, and is closed once.
            unsafe { (self.functions.close)(self.device.object()) };
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

fn open_device(functions: &MetalFunctions, shape: Option<MeshShape>) -> SharedPtr {
    let mut device = SharedPtr::null();
    // An absent `std::optional` is zero where its flag is, and so is an empty `std::vector`.
    let mut absent = Storage::new();
    let absent = absent.as_ptr();
    // SAFETY: The storage is larger than the objects in it, and a null pointer may be overwritten.
    unsafe {
        if let Some(MeshShape(rows, columns)) = shape {
            let mut shape = Storage::new();
            let shape = shape.as_ptr();
            (functions.shape)(shape, rows, columns);
            let dispatch = (functions.default_dispatch)(0, 0, 0);
            let dispatch = (&raw const dispatch).cast();
            (functions.open_shape)(&mut device, shape, L1_SMALL_BYTES, TRACE_BYTES, 1, dispatch, absent, absent, 0);
        } else {
            (functions.open)(&mut device, 0, L1_SMALL_BYTES, TRACE_BYTES, 1, absent, 0);
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
