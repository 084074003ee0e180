//! `cargo xtask pictures [--minutes N]`: the pictures of the documentation, from simulated machines, so that they stay true.

mod page;
mod top;

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Larger pictures make the repository heavy.
const MOST_BYTES: u64 = 300_000;

/// Makes all pictures. Machines run for some minutes before, so that charts have something in them.
pub fn run(minutes: u64) -> anyhow::Result<()> {
    let ttmon = build()?;
    top::run(&ttmon)?;
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("no workspace")?.join("docs");
    for path in page::take(&ttmon, &docs, Duration::from_secs(60 * minutes))? {
        let bytes = std::fs::metadata(&path)?.len();
        println!("{}: {bytes} bytes", path.display());
        if bytes > MOST_BYTES {
            bail!("{} is larger than {MOST_BYTES} bytes", path.display());
        }
    }
    Ok(())
}

fn build() -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    if !Command::new(cargo).args(["build", "-q", "-p", "ttmon"]).status()?.success() {
        bail!("ttmon does not build");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    Ok(target.join("debug/ttmon").canonicalize()?)
}
