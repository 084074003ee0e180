//! The machine: its devices, its processes and its clock.

use crate::BoardKind;
use crate::counted::{Count, Counted, Counting, Used};
use crate::device::{SimDevice, SimState};
use crate::inject::{Inject, InjectedFaults};
use crate::kernel_log::SimKernelLog;
use crate::plan;
use crate::spec::{Boards, FaultKind, ScriptedFault, Spec};
use crate::tree::{self, Chip, TreeWriter};
use crate::wave::{self, TICKS_PER_SECOND};
use crate::worker::Worker;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// A simulated machine whose time stops until it is advanced.
///
/// Dropped, it kills its processes and removes its folder.
pub struct SimMachine {
    // The processes go before the folder that they live in.
    workers: Vec<Worker>,
    devices: Vec<SimDevice>,
    /// Still to come.
    events: Vec<ScriptedFault>,
    seed: u64,
    elapsed: Duration,
    ticks: u64,
    /// Whether workloads run with ttmon's agent.
    agent: bool,
    counting: Counting,
    counted: Counted,
    troubles: Arc<InjectedFaults>,
    kernel_log: SimKernelLog,
    writer: TreeWriter,
    folder: TempDir,
}

impl SimMachine {
    /// Lays the machine's files in a new temporary folder and starts its processes, by running `program`, which has to
    /// call [`run_workload_if_asked`](crate::run_workload_if_asked) first of all.
    ///
    /// When it returns, the processes hold their devices and have made their first allocations.
    pub fn start(spec: &Spec, program: &Path) -> io::Result<SimMachine> {
        let folder = folder()?;
        let mut machine = SimMachine {
            workers: Vec::new(),
            devices: devices(spec),
            events: spec.events.clone(),
            seed: spec.seed,
            elapsed: Duration::ZERO,
            ticks: 0,
            agent: spec.agent,
            counting: spec.counting,
            counted: Counted::default(),
            troubles: Arc::default(),
            kernel_log: SimKernelLog::new(folder.path())?,
            writer: TreeWriter::new(folder.path())?,
            folder,
        };
        let chips: Vec<Chip> = machine.devices.iter().map(|device| device.chip.clone()).collect();
        fs::write(machine.root().join(MARK), "made up by ttmon\n")?;
        tree::lay_with(&mut machine.writer, &chips, DRIVER_VERSION)?;
        if !spec.idle {
            machine.start_workers(program)?;
        }
        machine.happen()?;
        machine.show()?;
        Ok(machine)
    }

    /// Moves the machine on: values, memory, and what the spec says is to happen until then.
    pub fn advance(&mut self, by: Duration) -> io::Result<()> {
        self.elapsed += by;
        while time_of(self.ticks + 1) <= self.elapsed {
            self.ticks += 1;
            self.happen()?;
            self.tick();
        }
        self.workers.iter_mut().for_each(|worker| worker.work(&self.devices, self.seed, self.ticks));
        self.show()
    }

    /// Simulated time since the start.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// The folder to take for `/`.
    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    /// What to ask before each read of a file.
    pub fn inject(&self) -> Inject {
        self.troubles.inject(self.root())
    }

    fn start_workers(&mut self, program: &Path) -> io::Result<()> {
        for library in [plan::LIBTT_METAL, plan::TTNNCPP] {
            self.lay(library, &[0; 4096])?;
        }
        for mut job in plan::jobs(self.devices.len()) {
            job.agent &= self.agent;
            let worker = Worker::start(program, self.folder.path(), job, &self.devices, self.seed)?;
            if let Some(pid) = worker.pid() {
                self.lay(&format!("proc/{pid}/cgroup"), worker.cgroup().as_bytes())?;
            }
            self.workers.push(worker);
        }
        let container = plan::CONTAINER_ID;
        let config = format!("run/containerd/io.containerd.runtime.v2.task/k8s.io/{container}/config.json");
        self.lay(&config, plan::CONTAINER_CONFIG.as_bytes())
    }

    fn lay(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.folder.path().join(path);
        path.parent().map(fs::create_dir_all).transpose()?;
        fs::write(path, bytes)
    }

    /// Lets happen what is due.
    fn happen(&mut self) -> io::Result<()> {
        let now = time_of(self.ticks);
        let due: Vec<ScriptedFault> = self.events.extract_if(.., |event| event.at <= now).collect();
        for ScriptedFault { what, device: index, .. } in due {
            let device = &mut self.devices[index as usize];
            // What is lost stays lost, though its processes may still be there.
            if device.state == SimState::Lost && what != FaultKind::Kill {
                continue;
            }
            self.kernel_log.write(what, &device.chip.address)?;
            match what {
                FaultKind::Hang => device.state = SimState::Hung,
                FaultKind::Reset => device.reset(self.ticks),
                FaultKind::Freeze => device.frozen = true,
                FaultKind::Stuck => device.stuck = true,
                FaultKind::Lose => {
                    device.state = SimState::Lost;
                    tree::remove(self.folder.path(), &device.chip)?;
                }
                FaultKind::Kill => {
                    let holders = self.workers.iter_mut().filter(|worker| worker.holds(index as usize));
                    holders.for_each(Worker::kill);
                }
            }
        }
        Ok(())
    }

    fn tick(&mut self) {
        for (i, device) in self.devices.iter_mut().enumerate() {
            let has_job = self.workers.iter().any(|worker| worker.holds(i));
            let load = if has_job { wave::load(self.seed, i as u64, self.ticks) } else { 0.0 };
            device.tick(self.ticks, load);
        }
    }

    /// Brings the files up to date.
    fn show(&mut self) -> io::Result<()> {
        for (i, device) in self.devices.iter_mut().enumerate() {
            let newest_first = self.workers.iter().rev().filter(|worker| worker.holds(i));
            let pids = newest_first.filter_map(Worker::pid);
            // tt-umd opens a device twice.
            device.chip.pids = device.chip.pids.as_ref().and(Some(pids.flat_map(|pid| [pid, pid]).collect()));
        }
        // Errors come before values: no reader may see a value of a device that can no longer be read.
        let troubles = self.devices.iter().filter_map(|device| device.trouble().map(|t| (device.chip.clone(), t)));
        self.troubles.set(troubles.collect());
        let there = self.devices.iter().filter(|device| device.state != SimState::Lost);
        let chips: Vec<Chip> = there.map(SimDevice::shown).collect();
        tree::refresh(&mut self.writer, &chips)?;
        self.count()
    }

    /// Brings up to date what the driver counts.
    fn count(&mut self) -> io::Result<()> {
        if self.counting == Counting::default() {
            return Ok(());
        }
        let (mut counts, mut used) = (Vec::new(), Vec::new());
        for (i, device) in self.devices.iter().enumerate().filter(|(_, device)| device.state != SimState::Lost) {
            let (mut dram, mut l1) = (0, 0);
            for (number, worker) in self.workers.iter().enumerate() {
                let held = worker.pid().filter(|_| worker.holds(i));
                if let Some((pid, amounts)) = held.zip(worker.amounts(i)) {
                    dram += amounts.dram + amounts.trace;
                    l1 += amounts.l1 + amounts.l1_small + amounts.cb;
                    counts.push(Count { pid, number, device, amounts });
                }
            }
            used.push(Used { device, dram, l1 });
        }
        self.counted.show_devices(self.counting, &used, &mut self.writer)?;
        self.counted.show(self.counting, &counts, self.folder.path(), &mut self.writer)
    }
}

const DRIVER_VERSION: &str = "2.10.0";
fn time_of(ticks: u64) -> Duration {
    Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND)
}

fn devices(spec: &Spec) -> Vec<SimDevice> {
    let kinds = match spec.boards {
        Boards::Alike(kind, _) | Boards::Galaxy(kind) => vec![kind; spec.devices() as usize],
        Boards::Mixed => vec![BoardKind::P150a, BoardKind::P150b, BoardKind::N300, BoardKind::N150],
    };
    let devices = kinds.into_iter().zip(0..).map(|(kind, index)| SimDevice::new(kind, index, spec.seed));
    if spec.deep { devices.map(SimDevice::with_table).collect() } else { devices.collect() }
}
const MARK: &str = ".simulated";

/// Whether a folder is that of a simulated machine.
pub fn is_simulated(root: &Path) -> bool {
    root.join(MARK).exists()
}

/// A new folder: where `TMPDIR` says, else in memory, where sysfs is too and where files can be written ten times a second
/// without a disk taking note.
fn folder() -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("ttmon-sim-");
    match std::env::var_os("TMPDIR") {
        Some(_) => builder.tempdir(),
        None => builder.tempdir_in("/dev/shm").or_else(|_| builder.tempdir()),
    }
}
