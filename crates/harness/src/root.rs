//! A tt-metal root folder around an unpacked wheel.
//!
//! tt-metal wants the sfpi compiler below its root and the wheel has none, so the root is a folder of links
//! into the wheel, plus a stand-in. Its `--version` is part of the key under which the wheel's pre-compiled
//! firmware is looked up. Kernels of operations become empty ones (`scripts/stand-in-gxx`), which needs Debian's
//! binutils-riscv64-unknown-elf; without an operation nothing is compiled.

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
        let root = tempfile::Builder::new().prefix("ttmetal-harness-").tempdir()?;
        lay(ttnn, root.path())?;
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

/// Makes a root of an empty folder, which stays.
pub fn lay(ttnn: &Path, root: &Path) -> Result<()> {
    let ttnn = ttnn.canonicalize().with_context(|| format!("cannot find {}", ttnn.display()))?;
    link_all(&ttnn, root, "runtime")?;
    link_all(&ttnn.join("runtime"), &root.join("runtime"), "sfpi")?;

    let tools = root.join("runtime/sfpi/compiler/bin");
    fs::create_dir_all(&tools)?;
    let compiler = tools.join("riscv-tt-elf-g++");
    fs::write(&compiler, stand_in(&firmware_compiler(&ttnn)?))?;
    fs::set_permissions(&compiler, Permissions::from_mode(0o755))?;
    for tool in ["nm", "objcopy", "objdump", "readelf"] {
        let theirs = Path::new("/usr/bin").join(format!("riscv64-unknown-elf-{tool}"));
        symlink(theirs, tools.join(format!("riscv-tt-elf-{tool}")))?;
    }
    fs::create_dir(root.join("scratch"))?;
    Ok(())
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
    let text = std::str::from_utf8(text).ok()?;
    // The debug information repeats it with the options behind it.
    let (release, rest) = text.split_once(") ")?;
    let version = rest.split(|c: char| c != '.' && !c.is_ascii_digit()).next()?;
    Some(format!("{release}) {version}"))
}

fn stand_in(version: &str) -> String {
    let kernels = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/stand-in-gxx");
    format!(
        "#!/bin/sh\n\
         [ \"$1\" = --version ] && echo 'riscv-tt-elf-g++ {version}' && exit\n\
         exec '{kernels}' \"$@\"\n"
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
