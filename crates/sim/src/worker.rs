//! One process of the machine at its job.

use crate::banks::ChipBanks;
use crate::child::WorkerProcess;
use crate::device::{SimDevice, SimState};
use crate::order::WorkerOrder;
use crate::plan::{self, PlannedJob};
use crate::region::Amounts;
use crate::tree::Chip;
use crate::umd_lock;
use crate::wave::TICKS_PER_SECOND;
use crate::work::{PAGE, Work};
use model::{Board, Capacity, Version};
use std::io;
use std::path::Path;

pub(crate) struct Worker {
    job: PlannedJob,
    /// None when it was killed.
    child: Option<WorkerProcess>,
    regions: Vec<WorkerMemory>,
    /// It has asked for more memory than there is, and ends at this tick.
    ends_at: Option<u64>,
}

/// What a process does with the memory of one chip apart from its job: from so many bytes on, since a tick.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Demand {
    /// It takes all that there is, and more.
    Fill(u64),
    /// It frees nothing any more.
    Leak(u64),
}

/// A chip that a worker has memory on.
struct WorkerMemory {
    /// The device through which it is reached.
    device: usize,
    /// Whose load its memory follows.
    wave: u64,
    amounts: Amounts,
    /// With what it had when that began.
    demand: Option<(Demand, u64)>,
}

impl Worker {
    /// Starts the process and waits until it holds its devices and is at work as its job is at this time.
    pub fn start(
        program: &Path,
        root: &Path,
        job: PlannedJob,
        devices: &[SimDevice],
        (seed, ticks): (u64, u64),
    ) -> io::Result<Worker> {
        let mut child = WorkerProcess::start(program, root, job.command, &visible(&job, devices))?;
        let mut worker = Worker { job, child: None, regions: Vec::new(), ends_at: None };
        let mut orders = worker.opening(devices);
        orders.extend(worker.allocations(devices, seed));
        orders.extend(worker.run(devices, seed, ticks));
        child.tell(&orders)?;
        worker.child = Some(child);
        Ok(worker)
    }

    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(WorkerProcess::pid)
    }

    /// The text of its cgroup file.
    pub fn cgroup(&self) -> String {
        format!("0::{}\n", self.job.cgroup.replace("CONTAINER", plan::CONTAINER_ID))
    }

    pub fn kill(&mut self) {
        self.child = None;
    }

    /// Lets it close its devices, and end.
    pub fn end(&mut self) {
        if let Some(mut child) = self.child.take() {
            // One that does not answer is killed.
            _ = child.tell(&[WorkerOrder::Detach]);
        }
    }

    /// The name that the kernel has for it.
    pub fn name(&self) -> &'static str {
        self.job.command[0]
    }

    pub fn is_tool(&self) -> bool {
        self.job.work == Work::Tool
    }

    /// Lets it take more memory of a device than its job needs.
    pub fn demand(&mut self, device: usize, demand: Demand) {
        for region in self.regions.iter_mut().filter(|region| region.device == device) {
            region.demand = Some((demand, region.amounts.dram));
        }
    }

    /// Lets it allocate and free. One that does not answer is as good as dead.
    pub fn work(&mut self, devices: &[SimDevice], seed: u64, ticks: u64) {
        let mut orders = self.allocations(devices, seed);
        if self.ends_at.is_some_and(|at| at <= ticks) {
            self.child = None;
        }
        orders.extend(self.run(devices, seed, ticks));
        self.child.take_if(|child| child.is_gone() || child.tell(&orders).is_err());
    }

    /// What it runs, where it has the agent that records it. Nothing runs on a chip that does not answer.
    fn run(&self, devices: &[SimDevice], seed: u64, ticks: u64) -> Option<WorkerOrder> {
        let load = |region: &WorkerMemory| match devices[region.device].state {
            SimState::Answering => (self.job.load(seed, region.wave, ticks) * 1000.0) as u16,
            _ => 0,
        };
        let hangs = self.regions.iter().any(|region| devices[region.device].state == SimState::Hung);
        let busy = self.regions.iter().map(load).collect();
        self.job.agent.then_some(WorkerOrder::Run { busy, hangs })
    }

    /// What it does on its devices.
    pub fn job(&self) -> &PlannedJob {
        &self.job
    }

    /// What it has on a device, apart from the chip behind it.
    pub fn amounts(&self, device: usize) -> Option<Amounts> {
        self.regions.iter().find(|region| region.device == device && region.wave == device as u64).map(|r| r.amounts)
    }

    /// Whether it is alive and has this device.
    pub fn holds(&self, device: usize) -> bool {
        self.child.is_some() && self.job.devices.contains(&device)
    }

    /// What a tt-metal process does at first. It numbers the chips from zero: those with PCIe by their addresses, then
    /// those without.
    fn opening(&mut self, devices: &[SimDevice]) -> Vec<WorkerOrder> {
        let library = |path: &&str| WorkerOrder::Lib { path: (*path).to_owned() };
        let mut orders: Vec<WorkerOrder> = self.job.libraries.iter().map(library).collect();
        if self.job.agent {
            orders.push(WorkerOrder::Keep { work: self.job.work });
        }
        let held = in_bus_order(devices).into_iter().filter(|i| self.job.devices.contains(i));
        let held: Vec<(usize, &Chip)> = held.map(|i| (i, &devices[i].chip)).collect();
        for (_, chip) in &held {
            orders.push(WorkerOrder::Open { path: chip.node() });
            if self.is_tool() {
                continue;
            }
            orders.push(WorkerOrder::Lock { path: umd_lock::path(chip.index) });
        }
        for place in [LOCAL, REMOTE].into_iter().filter(|_| self.job.work != Work::Tool) {
            for (device, chip) in &held {
                let Some(asic) = chip.unique_ids().get(place).copied() else { continue };
                let path = format!("dev/shm/tt_device_{asic}_memory");
                let (number, is_remote) = (self.regions.len() as u32, place == REMOTE);
                let banks = capacity(chip).map(|(_, banks)| banks);
                orders.push(WorkerOrder::Attach { path, asic, device: number, is_remote, banks });
                let wave = wave_of(*device, place, devices.len());
                self.regions.push(WorkerMemory { device: *device, wave, amounts: Amounts::default(), demand: None });
            }
        }
        orders
    }

    /// What it takes to have the memory that the job has now. Nothing moves on a chip that no longer works.
    fn allocations(&mut self, devices: &[SimDevice], seed: u64) -> Vec<WorkerOrder> {
        let mut orders = Vec::new();
        for (number, region) in self.regions.iter_mut().enumerate() {
            let device = &devices[region.device];
            let Some((capacity, banks)) = capacity(&device.chip) else { continue };
            let ticks = when_allocated(device.worked_until);
            let load = self.job.load(seed, region.wave, ticks);
            let mut amounts = plan::memory(self.job.work, capacity, banks, ticks, load);
            if let Some((demand, from)) = region.demand {
                let most = capacity.dram.0.saturating_sub(amounts.trace);
                let (wanted, is_failing) = demand.bytes(from, capacity.dram.0, ticks);
                let page = PAGE * u64::from(banks.dram);
                amounts.dram = wanted.min(most) / page * page;
                if is_failing {
                    self.ends_at.get_or_insert(ticks + ERROR_TICKS);
                }
            }
            if amounts != region.amounts {
                region.amounts = amounts;
                orders.push(WorkerOrder::Set { region: number, amounts });
            }
        }
        orders
    }
}

impl Demand {
    /// What it wants at a tick, and whether that is more than there is.
    fn bytes(self, from: u64, total: u64, ticks: u64) -> (u64, bool) {
        let after = |since: u64| ticks.saturating_sub(since) as f64 / TICKS_PER_SECOND as f64;
        match self {
            Demand::Fill(since) => {
                let wanted = from + (total as f64 * 0.3 * after(since)) as u64;
                (wanted, wanted > total)
            }
            Demand::Leak(since) => {
                let most = (total as f64 * 0.97) as u64;
                ((from + (total as f64 * 0.015 * after(since)) as u64).min(most), false)
            }
        }
    }
}

/// A process whose allocation fails takes so long to end.
const ERROR_TICKS: u64 = 2 * TICKS_PER_SECOND;

const ALLOCATION_TICKS: u64 = TICKS_PER_SECOND / 2;

/// Of the numbers of a chip: its own, and that of the chip behind it.
pub(crate) const LOCAL: usize = 0;
pub(crate) const REMOTE: usize = 1;

/// `TT_VISIBLE_DEVICES`, which counts in the order of PCI addresses.
fn visible(job: &PlannedJob, devices: &[SimDevice]) -> String {
    let order = in_bus_order(devices);
    let places = order.iter().enumerate().filter(|(_, device)| job.devices.contains(device));
    places.map(|(place, _)| place.to_string()).collect::<Vec<_>>().join(",")
}

fn in_bus_order(devices: &[SimDevice]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..devices.len()).collect();
    order.sort_by_key(|i| &devices[*i].chip.address);
    order
}

/// Which load a chip follows: that of its device, or one of its own behind it.
pub(crate) fn wave_of(device: usize, place: usize, devices: usize) -> u64 {
    (device + place * devices) as u64
}

pub(crate) fn capacity(chip: &Chip) -> Option<(Capacity, ChipBanks)> {
    let board = Board::named(chip.card_type.as_deref()?)?;
    let capacity = board.capacity(Version::parse(chip.fw_bundle.as_deref()?))?;
    Some((capacity, ChipBanks::of(board.arch(), capacity)))
}

/// Processes allocate twice a second at most.
pub(crate) fn when_allocated(ticks: u64) -> u64 {
    ticks / ALLOCATION_TICKS * ALLOCATION_TICKS
}
