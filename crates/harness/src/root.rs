//! A tt-metal root folder around an unpacked wheel.
//!
//! tt-metal wants the sfpi compiler below its root and the wheel has none, so the root is a temporary
//! folder of links into the wheel, plus a stub compiler. It is run for its `--version` only: that line
//! is part of the key under which the wheel's pre-compiled firmware is looked up.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;

/// The folder. It is removed when dropped.
pub struct MetalRoot(TempDir);

impl MetalRoot {
    /// `ttnn` is the folder of that name in the unpacked wheel.
    pub fn build(ttnn: &Path) -> Result<MetalRoot> {
        let ttnn = ttnn.canonicalize().with_context(|| format!("cannot find {}", ttnn.display()))?;
        let root = tempfile::Builder::new().prefix("ttmetal-harness-").tempdir()?;
        link_all(&ttnn, root.path(), "runtime")?;
        link_all(&ttnn.join("runtime"), &root.path().join("runtime"), "sfpi")?;

        let compiler = root.path().join("runtime/sfpi/compiler/bin");
        fs::create_dir_all(&compiler)?;
        let compiler = compiler.join("riscv-tt-elf-g++");
        fs::write(&compiler, stub_compiler(&firmware_compiler(&ttnn)?))?;
        fs::set_permissions(&compiler, Permissions::from_mode(0o755))?;
        fs::create_dir(root.path().join("scratch"))?;
        Ok(MetalRoot(root))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A folder for what tt-metal leaves behind.
    pub fn scratch(&self) -> PathBuf {
        self.path().join("scratch")
    }
}

/// Links each entry of `from` but one into the folder `to`.
fn link_all(from: &Path, to: &Path, except: &str) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
        let entry = entry?;
        if entry.file_name() != except {
            symlink(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Name and version of the compiler that built the firmware in the wheel.
fn firmware_compiler(ttnn: &Path) -> Result<String> {
    let builds = ttnn.join("tt_metal/pre-compiled");
    for build in fs::read_dir(&builds).with_context(|| format!("cannot list {}", builds.display()))? {
        let firmware = build?.path().join("brisc/brisc.elf");
        if let Some(compiler) = fs::read(firmware).ok().as_deref().and_then(compiler_in) {
            return Ok(compiler);
        }
    }
    anyhow::bail!("no firmware in {} names its compiler", builds.display())
}

/// Finds `(tenstorrent/sfpi:<release>) <version>` in an ELF file's `.comment` section.
fn compiler_in(elf: &[u8]) -> Option<String> {
    let start = b"(tenstorrent/sfpi";
    let at = elf.windows(start.len()).position(|window| window == start)?;
    let text = elf[at..].split(|byte| *byte == 0).next()?;
    let text = str::from_utf8(text).ok()?;
    // The debug information repeats it with the options behind it.
    let (release, rest) = text.split_once(") ")?;
    let version = rest.split(|c: char| c != '.' && !c.is_ascii_digit()).next()?;
    Some(format!("{release}) {version}"))
}

fn stub_compiler(version: &str) -> String {
    format!(
        "#!/bin/sh\n\
         [ \"$1\" = --version ] && echo 'riscv-tt-elf-g++ {version}' && exit\n\
         echo 'This stub cannot compile.' >&2\n\
         exit 1\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_is_found_in_the_bytes_of_the_firmware() {
        let elf = b"\x7fELF\0\xffGCC: (tenstorrent/sfpi:1.2.0[34]) 15.1.0\0rest";
        assert_eq!(compiler_in(elf).as_deref(), Some("(tenstorrent/sfpi:1.2.0[34]) 15.1.0"));
        assert_eq!(compiler_in(b"\x7fELF\0GCC: (GNU) 15.1.0\0"), None);
    }
}
