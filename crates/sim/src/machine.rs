//! The machine: its devices, its processes and its clock.

use crate::BoardKind;
use crate::counted::{Count, Counted, Counting, Used};
use crate::device::{SimDevice, SimState};
use crate::folder::MachineFolder;
use crate::inject::{Inject, InjectedFaults};
use crate::kernel_log::SimKernelLog;
use crate::past::{self, PAST_TICKS, PastMoment};
use crate::plan::{self, PlannedJob};
use crate::spec::{Boards, FaultKind, ScriptedFault, Spec};
use crate::tree::{self, Chip, TreeWriter};
use crate::wave::TICKS_PER_SECOND;
use crate::worker::{Demand, Worker};
use model::Snapshot;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A simulated machine whose time stops until it is advanced. When it starts, its devices have been at work for some minutes.
///
/// Dropped, it kills its processes and removes its folder.
pub struct SimMachine {
    // The processes go before the folder that they live in.
    workers: Vec<Worker>,
    devices: Vec<SimDevice>,
    /// Still to come.
    events: Vec<ScriptedFault>,
    seed: u64,
    /// Since the start.
    elapsed: Duration,
    /// Since the beginning of the past.
    ticks: u64,
    past: Vec<PastMoment>,
    /// Whether workloads run with ttmon's agent.
    agent: bool,
    counting: Counting,
    counted: Counted,
    troubles: Arc<InjectedFaults>,
    kernel_log: SimKernelLog,
    writer: TreeWriter,
    /// What processes run.
    program: PathBuf,
    /// Whether the driver was unloaded.
    is_unloaded: bool,
    folder: MachineFolder,
}

impl SimMachine {
    /// Lays the machine's files in a new temporary folder and starts its processes, by running `program`, which has to
    /// call [`run_workload_if_asked`](crate::run_workload_if_asked) first of all.
    ///
    /// When it returns, the processes hold their devices and have made their first allocations.
    pub fn start(spec: &Spec, program: &Path) -> io::Result<SimMachine> {
        let folder = MachineFolder::new()?;
        let mut machine = SimMachine {
            workers: Vec::new(),
            devices: devices(spec),
            events: spec.events.clone(),
            seed: spec.seed,
            elapsed: Duration::ZERO,
            ticks: 0,
            past: Vec::new(),
            agent: spec.agent,
            counting: spec.counting,
            counted: Counted::default(),
            troubles: Arc::default(),
            kernel_log: SimKernelLog::new(folder.path())?,
            writer: TreeWriter::new(folder.path())?,
            program: program.to_owned(),
            is_unloaded: false,
            folder,
        };
        let chips: Vec<Chip> = machine.devices.iter().map(|device| device.chip.clone()).collect();
        tree::lay_with(&mut machine.writer, &chips, DRIVER_VERSION)?;
        let jobs = jobs(spec);
        machine.live_through_the_past(&jobs)?;
        if !jobs.is_empty() {
            machine.start_workers(jobs)?;
        }
        machine.happen()?;
        machine.show()?;
        Ok(machine)
    }

    /// Moves the machine on: values, memory, and what the spec says is to happen until then.
    pub fn advance(&mut self, by: Duration) -> io::Result<()> {
        self.elapsed += by;
        while milliseconds(self.ticks + 1) <= self.elapsed.as_millis() as i64 {
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

    /// The minutes before the start, a second each, the earliest first: the machine as it was then, by its first snapshot.
    pub fn past(&self, first: &Snapshot) -> Vec<Snapshot> {
        past::snapshots(&self.past, first)
    }

    pub(crate) fn take_past(&mut self) -> Vec<PastMoment> {
        std::mem::take(&mut self.past)
    }

    /// Lets the devices work until the start. No process is there yet: what they do is what the jobs will go on with.
    fn live_through_the_past(&mut self, jobs: &[PlannedJob]) -> io::Result<()> {
        while self.ticks < PAST_TICKS {
            if self.ticks % TICKS_PER_SECOND == 0 {
                self.past.push(PastMoment::of(&self.devices, jobs, self.seed, self.ticks));
            }
            self.ticks += 1;
            if self.ticks < PAST_TICKS {
                self.happen()?;
            }
            for (i, device) in self.devices.iter_mut().enumerate() {
                tick(device, i, jobs.iter().find(|job| job.devices.contains(&i)), self.seed, self.ticks);
            }
        }
        // That is counted for processes, which begin now.
        self.devices.iter_mut().for_each(|device| device.busy = Duration::ZERO);
        Ok(())
    }

    fn start_workers(&mut self, jobs: Vec<PlannedJob>) -> io::Result<()> {
        for library in [plan::LIBTT_METAL, plan::TTNNCPP] {
            self.lay(library, &[0; 4096])?;
        }
        for mut job in jobs {
            job.agent &= self.agent;
            self.start_worker(job)?;
        }
        let container = plan::CONTAINER_ID;
        let config = format!("run/containerd/io.containerd.runtime.v2.task/k8s.io/{container}/config.json");
        self.lay(&config, plan::CONTAINER_CONFIG.as_bytes())
    }

    fn start_worker(&mut self, job: PlannedJob) -> io::Result<()> {
        let worker = Worker::start(&self.program, self.folder.path(), job, &self.devices, (self.seed, self.ticks))?;
        if let Some(pid) = worker.pid() {
            self.lay(&format!("proc/{pid}/cgroup"), worker.cgroup().as_bytes())?;
        }
        self.workers.push(worker);
        Ok(())
    }

    fn lay(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.folder.path().join(path);
        path.parent().map(fs::create_dir_all).transpose()?;
        fs::write(path, bytes)
    }

    /// Lets happen what is due.
    fn happen(&mut self) -> io::Result<()> {
        let now = milliseconds(self.ticks);
        let (due, later): (Vec<ScriptedFault>, Vec<_>) = self.events.drain(..).partition(|event| event.at <= now);
        self.events = later;
        for ScriptedFault { what, device: index, .. } in due {
            if matches!(what, FaultKind::Unload | FaultKind::HostOom) {
                self.happen_to_machine(what)?;
                continue;
            }
            let device = &mut self.devices[index as usize];
            // What is lost stays lost, though its processes may still be there.
            if device.state == SimState::Lost && !matches!(what, FaultKind::Kill | FaultKind::EndTool) {
                continue;
            }
            if now >= 0 {
                self.kernel_log.write(what, &device.chip.address)?;
            }
            match what {
                FaultKind::Hang => device.state = SimState::Hung,
                FaultKind::Reset => device.reset(self.ticks),
                FaultKind::Freeze => device.frozen = true,
                FaultKind::Stuck => device.stuck = true,
                FaultKind::Lose => {
                    device.state = SimState::Lost;
                    tree::remove(self.folder.path(), &device.chip)?;
                }
                FaultKind::Heat => device.heat(),
                FaultKind::LinkDown => device.chip.links_down = true,
                FaultKind::ForeignReset => {
                    // The tool has the device open for a second before it resets it, and until that is done.
                    let later = |what, seconds: i64| ScriptedFault { what, device: index, at: now + seconds * 1000 };
                    self.events.extend([later(FaultKind::Reset, 2), later(FaultKind::EndTool, 4)]);
                    self.start_worker(plan::reset_tool(index as usize))?;
                }
                _ => self.happen_to_processes(what, index as usize),
            }
        }
        Ok(())
    }

    /// Lets something happen to the processes of a device.
    fn happen_to_processes(&mut self, what: FaultKind, index: usize) {
        let ticks = self.ticks;
        for worker in self.workers.iter_mut().filter(|worker| worker.holds(index)) {
            match what {
                FaultKind::Kill => worker.kill(),
                FaultKind::Fill => worker.demand(index, Demand::Fill(ticks)),
                FaultKind::Leak => worker.demand(index, Demand::Leak(ticks)),
                FaultKind::EndTool if worker.is_tool() => worker.end(),
                _ => {}
            }
        }
    }

    fn happen_to_machine(&mut self, what: FaultKind) -> io::Result<()> {
        if what == FaultKind::HostOom {
            let Some(victim) = self.workers.iter_mut().find(|worker| worker.pid().is_some()) else { return Ok(()) };
            if let Some(pid) = victim.pid() {
                self.kernel_log.write_out_of_memory(pid, victim.name())?;
            }
            victim.kill();
            return Ok(());
        }
        // The kernel unloads no driver whose devices are open.
        self.workers.iter_mut().for_each(Worker::end);
        let there = self.devices.iter().filter(|device| device.state != SimState::Lost);
        let chips: Vec<Chip> = there.map(|device| device.chip.clone()).collect();
        self.writer = tree::unload(self.folder.path(), &chips)?;
        self.devices.iter_mut().for_each(|device| device.state = SimState::Lost);
        self.is_unloaded = true;
        Ok(())
    }

    fn tick(&mut self) {
        for (i, device) in self.devices.iter_mut().enumerate() {
            let worker = self.workers.iter().find(|worker| worker.holds(i) && !worker.is_tool());
            tick(device, i, worker.map(Worker::job), self.seed, self.ticks);
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
        if self.is_unloaded {
            return Ok(());
        }
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

/// The time of a tick: milliseconds since the start, less than zero before it.
fn milliseconds(ticks: u64) -> i64 {
    (ticks as i64 - PAST_TICKS as i64) * (1000 / TICKS_PER_SECOND as i64)
}

/// One tick of a device, with its job.
fn tick(device: &mut SimDevice, index: usize, job: Option<&PlannedJob>, seed: u64, ticks: u64) {
    let load = job.map_or(0.0, |job| job.load(seed, index as u64, ticks));
    device.tick(ticks, load, job.map_or(0.0, |job| job.effort(load)));
}

fn jobs(spec: &Spec) -> Vec<PlannedJob> {
    match spec.devices() as usize {
        _ if spec.idle => Vec::new(),
        devices if spec.full => plan::full(devices),
        devices => plan::jobs(devices),
    }
}

fn devices(spec: &Spec) -> Vec<SimDevice> {
    let kinds = match spec.boards {
        Boards::Alike(kind, _) | Boards::Galaxy(kind) => vec![kind; spec.devices() as usize],
        Boards::Mixed => vec![BoardKind::P150a, BoardKind::P150b, BoardKind::N300, BoardKind::N150],
    };
    let devices = kinds.into_iter().zip(0..).map(|(kind, index)| SimDevice::new(kind, index, spec.seed));
    if spec.deep { devices.map(SimDevice::with_table).collect() } else { devices.collect() }
}
