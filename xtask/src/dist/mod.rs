//! `cargo xtask dist [--out DIR] [--source DIR] [--former VERSION]`: the program and its packages, from one build that runs on any distribution with
//! glibc 2.17 or later.
//!
//! The same source gives the same bytes, in whatever folder it is built: paths are mapped, times are those of the last commit, and
//! archives are sorted.

mod build;
mod packages;

use anyhow::{Context, bail, ensure};
use build::Built;
use packages::Package;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Limits of what users download.
const PROGRAM_BYTES: u64 = 12_700_000;
const WHEEL_BYTES: u64 = 6_700_000;

/// Builds everything into a folder: `dist` in cargo's target folder, if not given.
pub fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask is in the workspace")?;
    let (mut source, mut out, mut former) = (top.to_owned(), None, None);
    let mut rest = arguments.iter();
    while let Some(option) = rest.next() {
        let value = rest.next().with_context(|| format!("{option} needs a value"))?;
        match *option {
            "--out" => out = Some(PathBuf::from(value)),
            // Another folder with the same source, to compare what comes of it.
            "--source" => source = PathBuf::from(value),
            "--former" => former = Some((*value).to_owned()),
            other => bail!(
                "dist has no option {other}: usage: cargo xtask dist [--out DIR] [--source DIR] [--former VERSION]"
            ),
        }
    }
    let folder = std::env::var_os("CARGO_TARGET_DIR").filter(|_| source == top);
    let top = &std::path::absolute(source)?;
    let built = Built::new(top, folder.map_or_else(|| top.join("target"), PathBuf::from))?;
    let out = std::path::absolute(out.unwrap_or_else(|| built.target.join("packages")))?;
    // What an earlier version made must not be taken for this one.
    let _ = std::fs::remove_dir_all(&out);
    std::fs::create_dir_all(&out)?;

    for (name, file) in [("ttmon", &built.program), ("libttmon_agent.so", &built.agent)] {
        let (major, minor) = build::needed_glibc(&std::fs::read(file)?).context("it needs no glibc at all?")?;
        println!("{name}: {} bytes, needs glibc {major}.{minor}", size(file)?);
        ensure!((major, minor) <= build::GLIBC, "{name} needs glibc {major}.{minor}, which is newer than intended");
    }
    ensure!(size(&built.program)? <= PROGRAM_BYTES, "the program has outgrown {PROGRAM_BYTES} bytes");

    let mut files = packages::write(&Package::new(top, &built, &built.version)?, &out)?;
    let wheel = wheel(top, &built, &out)?;
    ensure!(size(&wheel)? <= WHEEL_BYTES, "the wheel has outgrown {WHEEL_BYTES} bytes");
    files.push(wheel);
    packages::write_sums(&files, &out)?;
    for file in &files {
        println!("{}: {} bytes", file.display(), size(file)?);
    }
    if let Some(version) = former {
        // For the test of upgrades: the same program in a package of another version.
        let folder = out.join("former");
        std::fs::create_dir_all(&folder)?;
        let deb = packages::write_deb(&Package::new(top, &built, &version)?, &folder)?;
        println!("{}: {} bytes", deb.display(), size(&deb)?);
    }
    Ok(())
}

fn size(file: &Path) -> anyhow::Result<u64> {
    Ok(std::fs::metadata(file).with_context(|| file.display().to_string())?.len())
}

fn wheel(top: &Path, built: &Built, out: &Path) -> anyhow::Result<PathBuf> {
    let mut command = Command::new(top.join("scripts/build-wheel"));
    command.arg("--program").arg(&built.program).arg(out);
    Ok(PathBuf::from(output(&mut command)?.trim()))
}

/// What a command prints. An error has the command and what it said.
fn output(command: &mut Command) -> anyhow::Result<String> {
    let done = command.output().with_context(|| format!("cannot run {:?}", command.get_program()))?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "{command:?}: {}\n{said}", done.status);
    Ok(String::from_utf8(done.stdout)?)
}
