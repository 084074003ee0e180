//! A server under test: a process with sockets of its own, whose processor time and memory can be read.

use crate::book::this_program;
use crate::processes::{inner, memory};
use anyhow::{Context, bail};
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;
use sim::tree::Chip;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// The number of the first chip of the machine that the service runs on.
pub const CHIP: u64 = 0xbe_9c4d;
const CHIPS: u32 = 8;

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Ttmon,
    ReferenceToFile,
    ReferenceToNull,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Ttmon, Kind::ReferenceToFile, Kind::ReferenceToNull];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Ttmon => "ttmon serve",
            Kind::ReferenceToFile => "reference, its lines to a file",
            Kind::ReferenceToNull => "reference, its lines to /dev/null",
        }
    }
}

/// One that runs, and is ended when dropped.
pub struct Server {
    child: Child,
    folder: TempDir,
}

impl Server {
    pub fn start(kind: Kind) -> anyhow::Result<Server> {
        let folder = tempfile::tempdir()?;
        let place = |name: &str| folder.path().join(name);
        let mut command;
        match kind {
            Kind::Ttmon => {
                let chips: Vec<Chip> = (0..CHIPS)
                    .map(|index| Chip { asic_id: Some(CHIP + u64::from(index)), ..Chip::p150a(index) })
                    .collect();
                sim::tree::lay(&place("root"), &chips, "2.10.0")?;
                command = Command::new(program()?);
                command.args(["serve", "--listen", "off", "--root"]).arg(place("root"));
                command.arg("--socket").arg(place("native")).arg("--poc-socket").arg(place("poc"));
            }
            Kind::ReferenceToFile | Kind::ReferenceToNull => {
                command = this_program()?;
                command.arg("reference-server").arg(place("poc"));
            }
        }
        match kind {
            Kind::ReferenceToFile => command.stdout(File::create(place("lines"))?),
            _ => command.stdout(Stdio::null()),
        };
        let child = command.env_remove("JOURNAL_STREAM").stdin(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let server = Server { child, folder };
        let last = if kind == Kind::Ttmon { server.native() } else { server.poc() };
        for _ in 0..1000 {
            if last.exists() && server.poc().exists() {
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        bail!("{} does not start", kind.name());
    }

    pub fn poc(&self) -> PathBuf {
        self.folder.path().join("poc")
    }

    pub fn native(&self) -> PathBuf {
        self.folder.path().join("native")
    }

    /// Has the driver name these as the holders of the first device.
    pub fn set_holders(&self, pids: &[u32]) -> anyhow::Result<()> {
        let path = self.folder.path().join("root/proc/driver/tenstorrent/0/pids");
        Ok(std::fs::write(path, pids.iter().map(|pid| format!("{pid}\n{pid}\n")).collect::<String>())?)
    }

    /// What it has had of the processor, in seconds.
    pub fn cpu(&self) -> anyhow::Result<f64> {
        let time = clock_getcpuclockid(Pid::from_raw(inner(self.child.id()) as i32))?.now()?;
        Ok(time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9)
    }

    /// A line of its status, in MiB.
    pub fn memory(&self, name: &str) -> anyhow::Result<f64> {
        memory(self.child.id(), name)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program() -> anyhow::Result<PathBuf> {
    Ok(std::env::current_exe()?.parent().map(Path::to_owned).context("no folder")?.join("ttmon"))
}
