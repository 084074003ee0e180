//! Takes snapshots of one machine, each within a deadline.
//!
//! A sample has four steps: list what the machine has, start a job for each device and process, collect the answers until the
//! deadline, and assemble the snapshot. What does not answer in time keeps what is known of it, and is neither started again nor
//! waited for until it does.

use crate::assembly::{Assembly, Round};
use crate::book_owners;
use crate::collected::Collected;
use crate::deep::{DeepOptions, DeepReads};
use crate::device_fds::FdinfoPolicy;
use crate::devices;
use crate::dir::{Root, Trouble};
use crate::inventory::{Inventory, LISTED_FOR};
use crate::jobs::{Answer, Context, Jobs, ReadJob, Task};
use crate::pids::{self, Holders};
use crate::pool::Pool;
use crate::procs::ProcessFacts;
use crate::setup::{self, MachineSetup};
use crate::shm::{self, Shm, ShmFiles};
use crate::telemetry::{FigureFilter, ReadMode};
use model::{Device, Snapshot, State};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How to sample.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long a sample may take at the most.
    pub deadline: Duration,
    /// Whether to read the PCIe counters. A rate needs two samples.
    pub rates: bool,
    /// Relaxed sampling: what is seldom watched may be some seconds old, such as voltage, current, power limit, fan, and who holds
    /// a chip's lock. Rates are then over two seconds. Where there are many devices they are over four, or over ten while nobody looks
    /// at them, and the clock and the heartbeat may be two seconds old.
    pub relaxed: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { deadline: Duration::from_millis(500), rates: false, relaxed: false }
    }
}

/// Takes snapshots of one machine and remembers what the next needs of the last.
pub struct Sampler {
    root: Root,
    options: Options,
    pool: Pool<ReadJob, Task, Answer>,
    /// Whether rates are not looked at now.
    unwatched_rates: bool,
    /// Which figures are read. All, where that is not said.
    wanted: Option<FigureFilter>,
    inventory: Option<Inventory>,
    shm_files: ShmFiles,
    fdinfo: FdinfoPolicy,
    collected: Collected,
    inherited: Option<InheritedFiles>,
    /// The processes that keep a book, and when these were looked for.
    book_owners: Option<(BTreeSet<u32>, Instant)>,
    assembly: Assembly,
}

/// Who has a device open, for lists that name processes that have exited.
struct InheritedFiles {
    exited: BTreeSet<u32>,
    searched: Instant,
    found: BTreeMap<u32, Holders>,
}

/// How long that is trusted. To find out takes a walk over all processes.
const INHERITED_FOR: Duration = Duration::from_secs(5);

struct Sample {
    began: Instant,
    deadline: Instant,
    inventory: Inventory,
    unbound: Vec<Device>,
    context: Arc<Context>,
    /// Processes that hold a device and were read.
    holders: BTreeSet<u32>,
    trouble: Trouble,
}

impl Sampler {
    /// A sampler of the machine at `root`.
    pub fn new(root: Root, options: Options) -> Sampler {
        let jobs = Jobs::new(root.clone());
        Sampler {
            root,
            options,
            pool: Pool::new(move |task, add: &dyn Fn(ReadJob, Task)| jobs.run(task, add)),
            unwatched_rates: false,
            wanted: None,
            inventory: None,
            shm_files: ShmFiles::default(),
            fdinfo: FdinfoPolicy::default(),
            collected: Collected::default(),
            inherited: None,
            book_owners: None,
            assembly: Assembly::default(),
        }
    }

    /// Whether the next samples are relaxed ([`Options::relaxed`]).
    pub fn set_relaxed(&mut self, relaxed: bool) {
        self.options.relaxed = relaxed;
    }

    /// Whether someone looks at rates in the next samples. In relaxed sampling of many devices they are over a longer time otherwise.
    pub fn set_rates_watched(&mut self, watched: bool) {
        self.unwatched_rates = !watched;
    }

    /// How long the next samples may take at the most.
    pub fn set_deadline(&mut self, deadline: Duration) {
        self.options.deadline = deadline;
    }

    /// One sample will be taken, of which only these figures of devices are shown: others are not read, and no file is kept open.
    pub fn set_once(&mut self, wanted: FigureFilter) {
        self.wanted = Some(wanted);
        self.root.keeps_files = false;
        self.pool.end_threads_early();
    }

    /// Whether the driver is loaded on this machine.
    pub fn driver_is_loaded(&self) -> bool {
        devices::driver_is_loaded(&self.root)
    }

    /// How this machine is set up for its devices.
    pub fn setup(&self) -> MachineSetup {
        setup::read(&self.root)
    }

    /// Deep reads of this machine's devices, which need a process of their own.
    pub fn deep_reads(&self, options: DeepOptions) -> std::io::Result<DeepReads> {
        DeepReads::start(&self.root, options)
    }

    /// Whether a read has not come back. Its thread is in the kernel, and no signal ends it.
    pub fn is_stuck(&self) -> bool {
        self.pool.is_stuck()
    }

    /// Everything there is to know now.
    pub fn sample(&mut self) -> Snapshot {
        let mut sample = self.list();
        self.start_jobs(&mut sample);
        self.collect_answers(&mut sample);
        self.assemble(sample)
    }

    /// Lists the devices of the machine.
    fn list(&mut self) -> Sample {
        let began = Instant::now();
        self.pool.warm_up();
        let mut trouble = Trouble::default();
        let Options { deadline, rates, relaxed } = self.options;
        let inventory = Inventory::take(self.inventory.take(), relaxed, &self.root, &mut trouble);
        let unwatched_rates = self.unwatched_rates;
        let mode = ReadMode { rates, relaxed, unwatched_rates, devices: inventory.links.len(), unwanted: 0 };
        let context = Context {
            mode: self.wanted.as_ref().map_or(mode, |wanted| mode.only(wanted)),
            links: inventory.links.clone(),
            class: inventory.class.clone(),
            lists: inventory.lists.clone(),
            earlier: self.collected.begin(&inventory.links, self.pool.answers()),
            uncounted: Mutex::default(),
        };
        let (context, deadline) = (Arc::new(context), began + deadline);
        Sample { began, deadline, inventory, unbound: Vec::new(), context, holders: BTreeSet::new(), trouble }
    }

    /// Starts the jobs of the devices and, while these are read, those of the processes that are known to use them.
    fn start_jobs(&mut self, sample: &mut Sample) {
        let Sample { inventory, context, trouble, .. } = sample;
        let (pool, collected) = (&self.pool, &mut self.collected);
        pool.begin(context.links.iter().map(|(&n, link)| {
            let address = link.address.clone();
            // A job that was stuck may have answered since, and its reader is to be used again. While jobs are added none can end.
            let reader = collected.readers.remove(&address).or_else(|| {
                pool.answers().for_each(|answer| collected.add(answer));
                collected.readers.remove(&address)
            });
            (ReadJob::Device(address.clone()), Task::Device { n, address, reader, context: context.clone() })
        }));
        sample.unbound = inventory.without_driver(&self.root, trouble);
        collected.shm = shm::find(&self.root, &mut self.shm_files, self.options.relaxed, trouble);
        pool.add(collected.shm.slots().map(|slot| process_task(slot.pid, context)));
        // Holders known before are read even if their device does not answer this time.
        pool.add(collected.known_holders(&context.links).map(|pid| process_task(pid, context)));
    }

    /// Collects the answers until the deadline, and asks again where they call for more.
    fn collect_answers(&mut self, sample: &mut Sample) {
        self.wait(sample.deadline);
        // Only with a driver that does not list who holds its devices all processes are searched.
        if !sample.context.links.is_empty() && sample.context.lists.is_none() {
            self.search_holders(sample);
        }
        self.find_heirs(sample);
        self.read_book_owners(sample);
        sample.holders = self.collected.live_holders(&sample.context.links);
        let maps = outdated_maps(&self.collected.shm, &self.collected.processes, sample.began);
        self.collected.fdinfo.retain(|pid, _| sample.holders.contains(pid));
        let mut asked = self.fdinfo.processes_to_ask(&sample.holders, sample.began);
        asked.retain(|pid| !self.collected.fdinfo.contains_key(pid));
        let mut again: Vec<_> = asked.into_iter().filter_map(|pid| self.collected.fdinfo_task(pid)).collect();
        again.extend(maps.into_iter().filter_map(|pid| self.collected.map_task(pid)));
        if !again.is_empty() {
            self.pool.begin(again);
            self.wait(at_least_a_moment(sample.deadline));
        }
    }

    /// Reads the processes that keep a book and that the driver does not list, such as children that inherited a device.
    fn read_book_owners(&mut self, sample: &Sample) {
        if sample.context.links.is_empty() {
            return;
        }
        // The driver's lists name most of them in every sample.
        let is_kept = |when: Instant| self.options.relaxed && when.elapsed() < LISTED_FOR;
        let kept = self.book_owners.take().filter(|(_, when)| is_kept(*when));
        let (all, when) = kept.unwrap_or_else(|| (book_owners::find(&self.root), Instant::now()));
        let is_new = |pid: &u32| !self.collected.processes.contains_key(pid);
        let owners: Vec<u32> = all.iter().copied().filter(is_new).collect();
        self.book_owners = Some((all, when));
        if !owners.is_empty() {
            let task = |pid| (ReadJob::Process(pid), Task::BookOwner { pid, context: sample.context.clone() });
            self.pool.begin(owners.into_iter().map(task));
            self.wait(at_least_a_moment(sample.deadline));
        }
    }

    fn wait(&mut self, deadline: Instant) {
        let late = self.pool.wait(deadline);
        self.pool.answers().for_each(|answer| self.collected.add(answer));
        self.collected.add_late(late);
    }

    /// Searches the open files of all processes for devices.
    fn search_holders(&mut self, sample: &mut Sample) {
        let mut found = pids::searched(&self.root, &mut sample.trouble);
        let pids: BTreeSet<u32> = found.values().flat_map(|holders| &holders.pids).copied().collect();
        let holders = sample.context.links.keys().map(|n| (*n, found.remove(n).unwrap_or_default()));
        self.collected.holders = holders.collect();
        self.pool.begin(pids.into_iter().map(|pid| process_task(pid, &sample.context)));
        self.wait(at_least_a_moment(sample.deadline));
    }

    /// The driver lists who has opened a device. Where that process has exited, a child has inherited the open file: it is found
    /// among all processes, as far as these may be read.
    fn find_heirs(&mut self, sample: &Sample) {
        let Collected { processes, late, .. } = &self.collected;
        let this = std::process::id();
        let has_exited =
            |pid: &u32| *pid != this && !processes.contains_key(pid) && !late.contains(&ReadJob::Process(*pid));
        let exited: BTreeSet<u32> = self.collected.known_holders(&sample.context.links).filter(has_exited).collect();
        if exited.is_empty() {
            return self.inherited = None;
        }
        let is_known = |known: &InheritedFiles| known.exited == exited && known.searched.elapsed() < INHERITED_FOR;
        let found = self.inherited.take().filter(is_known).unwrap_or_else(|| InheritedFiles {
            found: pids::searched(&self.root, &mut Trouble::default()),
            searched: Instant::now(),
            exited,
        });
        let mut heirs = BTreeSet::new();
        for (n, holders) in &mut self.collected.holders {
            let open = found.found.get(n).into_iter().flat_map(|found| &found.pids);
            let new: Vec<u32> = open.filter(|pid| !holders.pids.contains(pid)).copied().collect();
            if !new.is_empty() && holders.pids.iter().any(|pid| found.exited.contains(pid)) {
                holders.pids.retain(|pid| !found.exited.contains(pid));
                holders.pids.extend(&new);
                heirs.extend(new);
            }
        }
        self.inherited = Some(found);
        if !heirs.is_empty() {
            self.pool.begin(heirs.into_iter().map(|pid| process_task(pid, &sample.context)));
            self.wait(at_least_a_moment(sample.deadline));
        }
    }

    /// Puts the snapshot together, and keeps what the next sample needs.
    fn assemble(&mut self, sample: Sample) -> Snapshot {
        let Sample { began, mut inventory, unbound, context, holders, mut trouble, .. } = sample;
        let Collected { shm, processes, faults, .. } = &mut self.collected;
        trouble.faults.append(faults);
        find_private_regions(shm, processes, &mut trouble);
        self.fdinfo.record(&self.collected.fdinfo, &holders, began);
        let round = Round {
            began,
            deadline: self.options.deadline,
            links: &context.links,
            has_lists: context.lists.is_some(),
            unbound,
            fdinfo: &self.fdinfo,
            host: inventory.host.clone(),
        };
        let snapshot = self.assembly.snapshot(&self.collected, round, trouble);
        let is_well = |device: &Device| matches!(device.state, State::Ok | State::Remote | State::NoDriver);
        inventory.all_are_well = snapshot.faults.is_empty() && snapshot.devices.iter().all(is_well);
        self.inventory = Some(inventory).filter(|inventory| inventory.class.is_some());
        self.fdinfo.set_driver(snapshot.host.driver_version.as_deref());
        self.collected.files.retain(|pid, _| holders.contains(pid));
        snapshot
    }
}

fn process_task(pid: u32, context: &Arc<Context>) -> (ReadJob, Task) {
    (ReadJob::Process(pid), Task::Process { pid, context: context.clone() })
}

/// A device that used up the time must not make its holders unknown.
fn at_least_a_moment(deadline: Instant) -> Instant {
    deadline.max(Instant::now() + Duration::from_millis(50))
}

/// The processes that a region names and whose map, which was not read this time, does not show it.
fn outdated_maps(shm: &Shm, processes: &BTreeMap<u32, ProcessFacts>, began: Instant) -> Vec<u32> {
    let is_named = |facts: &ProcessFacts| {
        shm.regions.iter().any(|(inode, found)| {
            let mut slots = found.region.iter().flat_map(|region| &region.slots);
            slots.any(|slot| facts.status.inner_pid == Some(slot.pid)) && !facts.has_mapped(*inode)
        })
    };
    let old = processes.values().filter(|facts| facts.map_is_older_than(began));
    old.filter(|facts| is_named(facts)).map(|facts| facts.pid).collect()
}

/// The regions that only their processes can show: those of a container, and those that were removed.
fn find_private_regions(shm: &mut Shm, processes: &BTreeMap<u32, ProcessFacts>, trouble: &mut Trouble) {
    for (pid, facts) in processes {
        for (inode, number) in facts.maps.iter().flat_map(|maps| &maps.regions).take(shm::MOST_REGIONS) {
            if !shm.regions.contains_key(inode) {
                let found = shm::find_of_process(*pid, *inode, *number, trouble);
                shm.regions.extend(found.map(|found| (*inode, found)));
            }
        }
    }
}
