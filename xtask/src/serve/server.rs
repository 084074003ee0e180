//! A server under test: a process with sockets of its own, whose processor time and memory can be read.

use crate::book::this_program;
use crate::processes::{inner, memory, processes};
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
                lay_machine(folder.path())?;
                command = ttmon(folder.path(), "off")?;
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
        let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn()?;
        Server { child, folder }.when_ready(kind)
    }

    /// Of ttmon, which listens for HTTP, too, on a machine with so many files that look like regions.
    pub fn start_among(regions: usize) -> anyhow::Result<Server> {
        let folder = tempfile::tempdir()?;
        lay_machine(folder.path())?;
        let shm = folder.path().join("root/dev/shm");
        std::fs::create_dir_all(&shm)?;
        for number in 0..regions {
            std::fs::write(shm.join(format!("tt_device_{number}_memory")), "")?;
        }
        let log = File::create(folder.path().join("log"))?;
        let mut command = ttmon(folder.path(), "127.0.0.1:0")?;
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()?;
        let server = Server { child, folder }.when_ready(Kind::Ttmon)?;
        while !server.log()?.contains("event=ready") {
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    fn when_ready(self, kind: Kind) -> anyhow::Result<Server> {
        let last = if kind == Kind::Ttmon { self.native() } else { self.poc() };
        for _ in 0..1000 {
            if last.exists() && self.poc().exists() {
                return Ok(self);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        bail!("{} does not start", kind.name());
    }

    fn log(&self) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(self.folder.path().join("log"))?)
    }

    /// Where it listens for HTTP.
    pub fn address(&self) -> anyhow::Result<String> {
        for _ in 0..1000 {
            if let Some((_, address)) = self.log()?.split_once("protocol=http address=") {
                return Ok(address.split_whitespace().next().unwrap_or_default().to_owned());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        bail!("it does not listen");
    }

    /// Ends it, and returns what it says of its loop.
    pub fn stop(&mut self) -> anyhow::Result<String> {
        nix::sys::signal::kill(Pid::from_raw(self.child.id() as i32), nix::sys::signal::Signal::SIGTERM)?;
        self.child.wait()?;
        let log = self.log()?;
        let line = log.lines().find(|line| line.contains("event=longest"));
        Ok(line.unwrap_or("level=info event=longest: it does not say").replace("level=info event=longest ", ""))
    }

    /// How many files its processes have open.
    pub fn descriptors(&self) -> anyhow::Result<usize> {
        let count = |pid: u32| Ok(std::fs::read_dir(format!("/proc/{pid}/fd"))?.count());
        processes(self.child.id()).into_iter().map(count).sum()
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

fn lay_machine(folder: &Path) -> anyhow::Result<()> {
    let chip = |index| Chip { asic_id: Some(CHIP + u64::from(index)), ..Chip::p150a(index) };
    let chips: Vec<Chip> = (0..CHIPS).map(chip).collect();
    sim::tree::lay(&folder.join("root"), &chips, "2.10.0")?;
    Ok(())
}

fn ttmon(folder: &Path, listen: &str) -> anyhow::Result<Command> {
    let mut command = Command::new(program()?);
    command.args(["serve", "--listen", listen, "--root"]).arg(folder.join("root"));
    command.arg("--socket").arg(folder.join("native")).arg("--poc-socket").arg(folder.join("poc"));
    command.env_remove("JOURNAL_STREAM");
    Ok(command)
}

fn program() -> anyhow::Result<PathBuf> {
    Ok(std::env::current_exe()?.parent().map(Path::to_owned).context("no folder")?.join("ttmon"))
}
