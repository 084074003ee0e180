//! The machine: its devices, its processes and its clock.

use crate::child::Child;
use crate::inject::{Inject, Trouble, Troubles};
use crate::motion::Motion;
use crate::order::Order;
use crate::plan::{self, Job};
use crate::region::Amounts;
use crate::running::Running;
use crate::spec::{Boards, Event, Spec, What};
use crate::tree::{self, Chip, Writer};
use crate::wave::{self, TICKS_PER_SECOND};
use crate::{Kind, umd_lock};
use model::{Board, Version};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// A simulated machine whose time stands still until it is advanced.
///
/// Dropped, it kills its processes and removes its folder.
pub struct Machine {
    // The processes go before the folder that they live in.
    workers: Vec<Worker>,
    devices: Vec<Device>,
    /// Still to come.
    events: Vec<Event>,
    seed: u64,
    elapsed: Duration,
    ticks: u64,
    troubles: Arc<Troubles>,
    writer: Writer,
    folder: TempDir,
}

struct Device {
    chip: Chip,
    motion: Motion,
    state: State,
    frozen: bool,
    stuck: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Answering,
    Hung,
    /// Until this tick.
    Resetting(u64),
    Lost,
}

struct Worker {
    job: Job,
    /// None when it was killed.
    child: Option<Child>,
    regions: Vec<Region>,
}

/// A chip that a worker has memory on.
struct Region {
    /// The device through which it is reached.
    device: usize,
    amounts: Amounts,
}

impl Machine {
    /// Lays the machine's files in a new temporary folder and starts its processes, by running `program`, which has to
    /// call [`run_workload_if_asked`](crate::run_workload_if_asked) first of all.
    ///
    /// When it returns, the processes hold their devices and have made their first allocations.
    pub fn start(spec: &Spec, program: &Path) -> io::Result<Machine> {
        let folder = tempfile::Builder::new().prefix("ttmon-sim-").tempdir()?;
        let mut machine = Machine {
            workers: Vec::new(),
            devices: devices(spec),
            events: spec.events.clone(),
            seed: spec.seed,
            elapsed: Duration::ZERO,
            ticks: 0,
            troubles: Arc::default(),
            writer: Writer::new(folder.path())?,
            folder,
        };
        for device in &mut machine.devices {
            device.motion.show(&mut device.chip);
        }
        let chips: Vec<Chip> = machine.devices.iter().map(|device| device.chip.clone()).collect();
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
        while TICK.saturating_mul((self.ticks + 1) as u32) <= self.elapsed {
            self.ticks += 1;
            self.happen()?;
            self.tick();
        }
        self.work();
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

    /// Lets the machine move with real time, until the answer is dropped.
    pub fn run(self) -> Running {
        Running::new(self)
    }

    fn start_workers(&mut self, program: &Path) -> io::Result<()> {
        for library in [plan::LIBTT_METAL, plan::TTNNCPP] {
            let path = self.folder.path().join(library);
            path.parent().map(fs::create_dir_all).transpose()?;
            fs::write(path, [0; 4096])?;
        }
        for job in plan::jobs(self.devices.len()) {
            let visible: Vec<String> = job.devices.clone().map(|device| device.to_string()).collect();
            let child = Child::start(program, self.folder.path(), job.command, &visible.join(","))?;
            let mut worker = Worker { job, child: Some(child), regions: Vec::new() };
            let mut orders = worker.opening(&self.devices);
            orders.extend(worker.allocations(&self.devices, self.seed, self.ticks));
            worker.child.iter_mut().try_for_each(|child| child.tell(&orders))?;
            self.workers.push(worker);
        }
        Ok(())
    }

    /// Lets happen what is due.
    fn happen(&mut self) -> io::Result<()> {
        let now = TICK.saturating_mul(self.ticks as u32);
        let due: Vec<Event> = self.events.extract_if(.., |event| event.at <= now).collect();
        for Event { what, device: index, .. } in due {
            let device = &mut self.devices[index as usize];
            if device.state == State::Lost {
                continue;
            }
            match what {
                What::Hang => device.state = State::Hung,
                What::Reset => device.state = State::Resetting(self.ticks + RESET_TICKS),
                What::Freeze => device.frozen = true,
                What::Stuck => device.stuck = true,
                What::Lose => {
                    device.state = State::Lost;
                    tree::remove(self.folder.path(), &device.chip)?;
                }
                What::Kill => {
                    let holders = self.workers.iter_mut().filter(|w| w.job.devices.contains(&(index as usize)));
                    holders.for_each(|worker| worker.child = None);
                }
            }
        }
        Ok(())
    }

    fn tick(&mut self) {
        for (i, device) in self.devices.iter_mut().enumerate() {
            if let State::Resetting(until) = device.state
                && until <= self.ticks
            {
                device.state = State::Answering;
                device.frozen = false;
                device.motion.restart();
            }
            let busy = device.state == State::Answering && self.workers.iter().any(|worker| worker.holds(i));
            let load = if busy { wave::load(self.seed, i as u64, self.ticks) } else { 0.0 };
            device.motion.tick(load, device.frozen);
            device.motion.show(&mut device.chip);
        }
    }

    /// Lets the processes allocate and free. One that does not answer is as good as dead.
    fn work(&mut self) {
        for worker in &mut self.workers {
            let orders = worker.allocations(&self.devices, self.seed, self.ticks);
            let Some(child) = &mut worker.child else { continue };
            if child.is_gone() || !orders.is_empty() && child.tell(&orders).is_err() {
                worker.child = None;
            }
        }
    }

    /// Brings the files up to date.
    fn show(&mut self) -> io::Result<()> {
        for (i, device) in self.devices.iter_mut().enumerate() {
            let newest_first = self.workers.iter().rev().filter(|worker| worker.holds(i));
            let pids = newest_first.flat_map(|worker| &worker.child).map(Child::pid);
            // tt-umd opens a device twice.
            device.chip.pids = device.chip.pids.as_ref().and(Some(pids.flat_map(|pid| [pid, pid]).collect()));
        }
        // Whoever sees the first file of a reset has to get the error with the next, so the error comes first.
        let troubles = self.devices.iter().filter_map(|device| device.trouble().map(|t| (device.chip.clone(), t)));
        self.troubles.set(troubles.collect());
        let there = self.devices.iter().filter(|device| device.state != State::Lost);
        let chips: Vec<Chip> = there.map(Device::shown).collect();
        tree::refresh(&mut self.writer, &chips)
    }
}

const DRIVER_VERSION: &str = "2.10.0";
const TICK: Duration = Duration::from_millis(1000 / TICKS_PER_SECOND);
const RESET_TICKS: u64 = 3 * TICKS_PER_SECOND;

impl Device {
    fn new(kind: Kind, index: u32, seed: u64) -> Device {
        let motion = Motion::new(kind, index.into(), seed);
        Device { chip: Chip::of(kind, index), motion, state: State::Answering, frozen: false, stuck: false }
    }

    fn shown(&self) -> Chip {
        match self.state {
            State::Hung => self.chip.hung(),
            // The counters are the only files of a resetting chip that can be read, and nobody is there to answer.
            State::Resetting(_) => Chip { counters: Some([u32::MAX; 12]), ..self.chip.clone() },
            State::Answering | State::Lost => self.chip.clone(),
        }
    }

    fn trouble(&self) -> Option<Trouble> {
        match self.state {
            State::Lost => None,
            _ if self.stuck => Some(Trouble::Stuck),
            State::Resetting(_) => Some(Trouble::Resetting),
            _ => None,
        }
    }
}

impl Worker {
    fn holds(&self, device: usize) -> bool {
        self.child.is_some() && self.job.devices.contains(&device)
    }

    /// What a tt-metal process does at first. Its own numbers for the chips begin at zero, those with PCIe first.
    fn opening(&mut self, devices: &[Device]) -> Vec<Order> {
        let library = |path: &&str| Order::Lib { path: (*path).to_owned() };
        let mut orders: Vec<Order> = self.job.libraries.iter().map(library).collect();
        let held = || self.job.devices.clone().map(|i| (i, &devices[i].chip));
        for (_, chip) in held() {
            orders.push(Order::Open { path: chip.node() });
            orders.push(Order::Lock { path: umd_lock::path(chip.index) });
        }
        let local = held().filter_map(|(i, chip)| Some((i, *chip.unique_ids().first()?)));
        let remote = held().filter_map(|(i, chip)| Some((i, *chip.unique_ids().get(1)?)));
        let chips: Vec<(usize, u64)> = local.chain(remote).collect();
        for (number, (device, asic)) in chips.into_iter().enumerate() {
            let path = format!("dev/shm/tt_device_{asic}_memory");
            orders.push(Order::Attach { path, asic, device: number as u32 });
            self.regions.push(Region { device, amounts: Amounts::default() });
        }
        orders
    }

    /// What it takes to have the memory that the job has at this time. Nothing moves on a chip that does not answer.
    fn allocations(&mut self, devices: &[Device], seed: u64, ticks: u64) -> Vec<Order> {
        let ticks = ticks / ALLOCATION_TICKS * ALLOCATION_TICKS;
        let mut orders = Vec::new();
        for (number, region) in self.regions.iter_mut().enumerate() {
            let device = &devices[region.device];
            let Some(capacity) = capacity(&device.chip).filter(|_| device.state == State::Answering) else { continue };
            // Regions of remote chips follow those of the devices; they have waves of their own.
            let load = wave::load(seed, (region.device + number * 64) as u64, ticks);
            let amounts = plan::memory(self.job.work, capacity, ticks, load);
            if amounts != region.amounts {
                region.amounts = amounts;
                orders.push(Order::Set { region: number, amounts });
            }
        }
        orders
    }
}

/// Processes allocate twice a second at most.
const ALLOCATION_TICKS: u64 = TICKS_PER_SECOND / 2;

fn capacity(chip: &Chip) -> Option<model::Capacity> {
    Board::named(chip.card_type.as_deref()?)?.capacity(Version::parse(chip.fw_bundle.as_deref()?))
}

fn devices(spec: &Spec) -> Vec<Device> {
    let kinds = match spec.boards {
        Boards::Alike(kind, _) | Boards::Galaxy(kind) => vec![kind; spec.devices() as usize],
        Boards::Mixed => vec![Kind::P150a, Kind::P150b, Kind::N300, Kind::N150],
    };
    kinds.into_iter().zip(0..).map(|(kind, index)| Device::new(kind, index, spec.seed)).collect()
}
