//! Running the real `ttmon`.

#![allow(dead_code, clippy::unwrap_used)]

pub mod browser;
pub mod harness;
pub mod needs;
pub mod page;
pub mod pretend;
pub mod service;
pub mod terminal;
pub mod trace;

pub use needs::not_run;
use serde_json::Value;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

pub const TTMON: &str = env!("CARGO_BIN_EXE_ttmon");

/// How a run ended.
pub struct Run {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

pub fn ttmon(arguments: &[&str]) -> Run {
    // What the user's own terminal is like does not matter.
    run(Command::new(TTMON).args(arguments).env_remove("COLUMNS"))
}

pub fn run(command: &mut Command) -> Run {
    let Output { status, stdout, stderr } = command.env("TZ", "UTC").output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Run { code: status.code(), out: text(stdout), err: text(stderr) }
}

/// A folder that looks like a machine with these chips.
pub struct Machine(pub TempDir);

impl Machine {
    pub fn with(chips: &[sim::tree::Chip]) -> Machine {
        let folder = tempfile::tempdir().unwrap();
        sim::tree::lay(folder.path(), chips, "2.10.0").unwrap();
        Machine(folder)
    }

    /// The same, with the real `/dev/shm` in the place of its own.
    pub fn with_real_shm(chips: &[sim::tree::Chip]) -> Machine {
        let machine = Machine::with(chips);
        let shm = machine.0.path().join("dev/shm");
        if shm.exists() {
            std::fs::remove_dir(&shm).unwrap();
        }
        std::os::unix::fs::symlink("/dev/shm", shm).unwrap();
        machine
    }

    pub fn root(&self) -> &str {
        self.0.path().to_str().unwrap()
    }

    pub fn set_pids(&self, n: u32, pids: &[u32]) {
        let path = self.0.path().join(format!("proc/driver/tenstorrent/{n}/pids"));
        // In place, as the driver's list changes: whoever has it open sees it.
        if path.exists() {
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        }
        // Twice each, as tt-umd opens a device twice.
        let lines: String = pids.iter().map(|pid| format!("{pid}\n{pid}\n")).collect();
        std::fs::write(path, lines).unwrap();
    }

    /// Lets a process have device `n` open under a descriptor, for which a driver that counts says this: lines of `key: value`.
    pub fn open(&self, pid: u32, fd: u32, n: u32, lines: &[&str]) {
        let folder = self.0.path().join(format!("proc/{pid}"));
        std::fs::create_dir_all(folder.join("fd")).unwrap();
        std::fs::create_dir_all(folder.join("fdinfo")).unwrap();
        let node = self.0.path().join(format!("dev/tenstorrent/{n}"));
        std::os::unix::fs::symlink(node, folder.join(format!("fd/{fd}"))).unwrap();
        let text = format!("pos:\t0\nflags:\t02\ndrm-driver:\ttenstorrent\n{}\n", lines.join("\n"));
        std::fs::write(folder.join(format!("fdinfo/{fd}")), text).unwrap();
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        let run = ttmon(&[&["smi", "--json", "--root", self.root()], arguments].concat());
        serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {} {}", run.out, run.err))
    }
}

/// Numbers at random, the same with every run.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % most
    }

    pub fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    /// Small and large ones alike.
    pub fn any(&mut self) -> u64 {
        let bits = self.below(65) as u32;
        let number = self.below(1 << 32) << 32 | self.below(1 << 32);
        number.checked_shr(64 - bits).unwrap_or(0)
    }

    pub fn bytes(&mut self, count: u64) -> Vec<u8> {
        (0..count).map(|_| self.below(256) as u8).collect()
    }
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Writes a program that any user may run.
///
/// Another process writes it: a file that this one has open for writing may be inherited by the child that another
/// test is starting, and cannot be run for as long ("Text file busy").
pub fn install_program(content: Stdio, path: &Path) {
    let install = Command::new("install").args(["-m", "755", "/dev/stdin"]).arg(path).stdin(content).status();
    assert!(install.unwrap().success(), "cannot write {}", path.display());
}

pub fn copy_program(from: &Path, to: &Path) {
    install_program(std::fs::File::open(from).unwrap().into(), to);
}

pub fn write_script(text: &str, path: &Path) {
    let mut content = tempfile::tempfile().unwrap();
    content.write_all(text.as_bytes()).unwrap();
    content.rewind().unwrap();
    install_program(content.into(), path);
}

/// A copy of ttmon that any user may run.
pub fn program_for_all(folder: &Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let program = folder.join("ttmon");
    copy_program(Path::new(TTMON), &program);
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}
