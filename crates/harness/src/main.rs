//! `ttmetal-harness` drives the real `libtt_metal.so` for tests, without a device, Python or headers.
//!
//! ```text
//! ttmetal-harness shm LIBTT_METAL_SO                            the library's shared memory statistics alone
//! ttmetal-harness mock TTNN_DIR CLUSTER_YAML [ROWSxCOLUMNS]     a mesh device with real buffers on a mock cluster
//! ttmetal-harness book CHIP SEED                                no tt-metal: a book that changes at random
//! ttmetal-harness root TTNN_DIR FOLDER                          lays a tt-metal root in an empty folder, and ends
//! ```
//!
//! The first line on stdout is `READY <pid>`. Then each line on stdin is a command, answered by
//! exactly one line: `OK`, `OK <values>` or `ERR <reason>`. `quit` and the end of input close
//! everything that is open; only `quit` is answered. What the library prints goes to stderr.
//!
//! An exception thrown by the library, such as for lack of memory, ends the process.

// The library has a C++ interface only: its functions are found by mangled name and called through
// pointers, which the compiler cannot check.
#![allow(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod cpp;
mod keeper;
mod mock;
mod root;
mod script;
mod shm;

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

const USAGE: &str = "usage: ttmetal-harness shm LIBTT_METAL_SO | mock TTNN_DIR CLUSTER_YAML [ROWSxCOLUMNS] | book CHIP SEED | root TTNN_DIR FOLDER";

fn main() -> ExitCode {
    match run(&env::args_os().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[OsString]) -> Result<()> {
    let replies = keep_stdout_for_replies().context("cannot move stdout")?;
    match arguments {
        [mode, library] if mode == "shm" => {
            let providers = shm::Providers::load(Path::new(library))?;
            script::serve(providers, replies, shm::Providers::answer)
        }
        [mode, ttnn, cluster, shape @ ..] if mode == "mock" && shape.len() <= 1 => {
            let shape = shape.first().map(|shape| shape.to_string_lossy().parse()).transpose()?;
            let root = root::MetalRoot::build(Path::new(ttnn))?;
            let mesh = mock::MockMesh::open(root, Path::new(cluster), shape)?;
            script::serve(mesh, replies, mock::MockMesh::answer)
        }
        [mode, ttnn, folder] if mode == "root" => root::lay(Path::new(ttnn), Path::new(folder)),
        [mode, chip, seed] if mode == "book" => {
            let number = |name, word: &OsString| script::number(name, &word.to_string_lossy());
            let keeper = keeper::Keeper::new(number("CHIP", chip)?, number("SEED", seed)?)?;
            script::serve(keeper, replies, keeper::Keeper::answer)
        }
        _ => bail!(USAGE),
    }
}

/// The library logs to stdout. From here on that is stderr, and the replies have a file of their own.
fn keep_stdout_for_replies() -> Result<File> {
    let replies = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok(File::from(replies))
}
