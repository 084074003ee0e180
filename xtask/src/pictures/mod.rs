//! `cargo xtask pictures`: the pictures of the documentation, made from the simulator, so that they stay true.

mod top;

use crate::bench::build;
use std::path::PathBuf;

/// Writes docs/top.svg and docs/smi.svg, of this program or of a release build.
pub fn run(program: Option<&str>) -> anyhow::Result<()> {
    let program = program.map_or_else(build, |program| Ok(PathBuf::from(program).canonicalize()?))?;
    top::run(&program)
}
