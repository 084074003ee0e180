//! Asks every source and puts the answers together, within a deadline.

use crate::around::Around;
use crate::assembly::Assembly;
use crate::devices::{self, DeviceLink};
use crate::dir::{Dir, Inject, Root, Trouble, reason};
use crate::open_files::{Asking, OpenFiles, Told};
use crate::pids::{self, HolderList, Holders};
use crate::pool::Pool;
use crate::procs::{self, ProcessFacts};
use crate::shm::{self, Shelf, Shm};
use crate::telemetry::{DeviceReader, ReadMode, Reading};
use crate::users::Users;
use model::{Device, Fault, Host, Snapshot, State, Usage};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// ReadMode to sample.
#[derive(Debug, Clone)]
pub struct Options {
    /// ReadMode long a sample may take at the most.
    pub deadline: Duration,
    /// Whether to read the PCIe counters, of which a rate needs two samples.
    pub rates: bool,
    /// Whether what nobody watches closely may be some seconds old: voltage, current, the limit of power, whose lock a chip is
    /// under. Rates are then over two seconds, and over four where there are many devices.
    pub calm: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { deadline: Duration::from_millis(500), rates: false, calm: false }
    }
}

/// Takes snapshots of one machine and remembers what the next needs of the last.
pub struct Sampler {
    root: Root,
    options: Options,
    shared: Arc<Mutex<Shared>>,
    pool: Pool<Job>,
    assembly: Assembly,
    shelf: Shelf,
    asking: Asking,
    around: Option<Around>,
}

/// What is read in a thread of the pool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Job {
    Device(u32),
    Process(u32),
    /// A process that was read, once more with its map.
    Map(u32),
    /// What the driver counts for the open files of a process.
    Files(u32),
}

/// What the threads of the pool fill.
#[derive(Default)]
pub(crate) struct Shared {
    /// The devices that the driver has.
    links: BTreeMap<u32, DeviceLink>,
    how: ReadMode,
    /// The folders of the devices, and of the lists of their holders.
    class: Option<Arc<Dir>>,
    lists: Option<Arc<Dir>>,
    /// Out while a thread reads it.
    chips: HashMap<u32, Box<DeviceReader>>,
    pub readings: BTreeMap<u32, (Reading, Instant)>,
    pub holders: BTreeMap<u32, Holders>,
    pub processes: BTreeMap<u32, ProcessFacts>,
    /// Of the sample before.
    earlier: BTreeMap<u32, ProcessFacts>,
    /// What the driver counts for processes, by device.
    pub counted: BTreeMap<u32, BTreeMap<u32, Usage>>,
    /// The open files of holders, out while a thread reads them, and what they have told this time.
    files: BTreeMap<u32, OpenFiles>,
    pub told: BTreeMap<u32, Told>,
    pub shm: Shm,
    faults: Vec<Fault>,
}

/// One sample's circumstances.
pub(crate) struct Round<'a> {
    pub began: Instant,
    /// The devices that the driver has now.
    pub listed: BTreeMap<u32, DeviceLink>,
    pub unbound: Vec<Device>,
    /// What did not answer in time.
    pub late: HashSet<Job>,
    pub deadline: Duration,
    pub asking: &'a Asking,
    pub host: Host,
}

impl Sampler {
    /// A sampler of the machine at `root`.
    pub fn new(root: Root, options: Options) -> Sampler {
        let shared = Arc::new(Mutex::new(Shared::default()));
        let (state, users) = (shared.clone(), Users::default());
        let (inject, machine) = (root.inject.clone(), root.clone());
        let pool = Pool::new(move |job: &Job, add: &dyn Fn(Job)| match *job {
            Job::Device(n) => read_device(&state, n, add),
            Job::Process(pid) => read_process(&state, pid, false, &users, inject.clone()),
            Job::Map(pid) => read_process(&state, pid, true, &users, inject.clone()),
            Job::Files(pid) => read_files(&state, pid, &machine),
        });
        let (assembly, shelf, asking) = (Assembly::default(), Shelf::default(), Asking::default());
        Sampler { root, options, shared, pool, assembly, shelf, asking, around: None }
    }

    /// Whether the next samples may be calm ([`Options::calm`]).
    pub fn set_calm(&mut self, calm: bool) {
        self.options.calm = calm;
    }

    /// Whether the driver is loaded on this machine.
    pub fn driver_is_loaded(&self) -> bool {
        devices::driver_is_loaded(&self.root)
    }

    /// Whether a read has not come back. Its thread is in the kernel, beyond the reach of any signal.
    pub fn is_stuck(&self) -> bool {
        self.pool.is_stuck()
    }

    /// Everything there is to know now.
    pub fn sample(&mut self) -> Snapshot {
        let began = Instant::now();
        self.pool.warm_up();
        let mut trouble = Trouble::default();
        let before = std::mem::take(&mut lock(&self.shared).links);
        let known = self.around.take().filter(|_| self.options.calm);
        let (mut around, listed) = Around::now(known, &self.root, &before, &mut trouble);
        let driver_lists_holders = around.lists.is_some();
        {
            let mut shared = lock(&self.shared);
            shared.links.clone_from(&listed);
            shared.how = ReadMode { rates: self.options.rates, relaxed: self.options.calm, devices: listed.len() };
            shared.class.clone_from(&around.class);
            shared.lists.clone_from(&around.lists);
            shared.faults.clear();
            shared.told.clear();
        }
        self.pool.begin(listed.keys().map(|&n| Job::Device(n)));
        // While the devices are read: the memory books, and whoever is named in them.
        let unbound = around.without_driver(&self.root, &listed, &mut trouble);
        let mut shm = shm::find(&self.root, &mut self.shelf, self.options.calm, &mut trouble);
        self.pool.add(shm.slots().map(|slot| Job::Process(slot.pid)));
        // Holders known before are read even if their device does not answer this time.
        let known: Vec<Job> = {
            let shared = lock(&self.shared);
            let holders = shared.holders.iter().filter(|(n, _)| listed.contains_key(n));
            holders.flat_map(|(_, holders)| &holders.pids).map(|&pid| Job::Process(pid)).collect()
        };
        self.pool.add(known);
        let mut late = self.pool.wait(began + self.options.deadline);
        // Only a driver that does not tell who holds its devices makes us look through all processes.
        if !listed.is_empty() && !driver_lists_holders {
            let found = pids::searched(&self.root, &mut trouble);
            let pids: BTreeSet<u32> = found.values().flat_map(|holders| &holders.pids).copied().collect();
            let holders = listed.keys().map(|&n| (n, found.get(&n).cloned().unwrap_or_default()));
            lock(&self.shared).holders = holders.collect();
            self.pool.begin(pids.into_iter().map(Job::Process));
            // A device that used up the time must not make its holders unknown.
            let deadline = (began + self.options.deadline).max(Instant::now() + Duration::from_millis(50));
            late.extend(self.pool.wait(deadline));
        }
        let holders = holders(&lock(&self.shared), &listed);
        let mut again = outdated(&shm, &lock(&self.shared).processes, began);
        again.extend(self.asking.whom(&holders, began).into_iter().map(Job::Files));
        if !again.is_empty() {
            self.pool.begin(again);
            let deadline = (began + self.options.deadline).max(Instant::now() + Duration::from_millis(50));
            for job in self.pool.wait(deadline) {
                match job {
                    // What an old map says is not enough to call anyone's bytes stale.
                    Job::Map(pid) => {
                        lock(&self.shared).processes.remove(&pid);
                        late.insert(Job::Process(pid));
                    }
                    job => drop(late.insert(job)),
                }
            }
        }
        let shared = self.shared.clone();
        let mut shared = lock(&shared);
        trouble.faults.append(&mut shared.faults);
        find_private_regions(&mut shm, &shared.processes, &mut trouble);
        shared.shm = shm;
        self.asking.learn(&shared.told, &holders, began);
        let deadline = self.options.deadline;
        let host = around.host.clone();
        let round = Round { began, listed, unbound, late, deadline, asking: &self.asking, host };
        let snapshot = self.assembly.snapshot(&shared, round, trouble);
        let is_well = |device: &Device| matches!(device.state, State::Ok | State::Remote | State::NoDriver);
        around.all_are_well = snapshot.faults.is_empty() && snapshot.devices.iter().all(is_well);
        self.around = Some(around).filter(|around| around.class.is_some());
        self.asking.driver_is(snapshot.host.driver_version.as_deref());
        shared.files.retain(|pid, _| holders.contains(pid));
        shared.earlier = std::mem::take(&mut shared.processes);
        snapshot
    }
}

/// Reads one device and then its holders, whose details become jobs of their own.
fn read_device(shared: &Mutex<Shared>, n: u32, add: &dyn Fn(Job)) {
    let (mut chip, link, class, lists, how) = {
        let mut shared = lock(shared);
        let (Some(link), Some(class)) = (shared.links.get(&n).cloned(), shared.class.clone()) else { return };
        (shared.chips.remove(&n), link, class, shared.lists.clone(), shared.how)
    };
    let mut trouble = Trouble::default();
    let same = chip.as_mut().filter(|chip| chip.is_for(&link, how));
    let remembered = same.map(|chip| chip.read(how)).filter(|reading| reading.device.state != State::Lost);
    let reading = match remembered {
        Some(reading) => Ok(reading),
        // The folders of a device that was removed stay empty for good, though it may be back under its name.
        None => {
            DeviceReader::open(&class, n, &link, chip.as_deref()).map(|opened| chip.insert(Box::new(opened)).read(how))
        }
    };
    match reading {
        Ok(reading) => drop(lock(shared).readings.insert(n, (reading, Instant::now()))),
        Err(error) => trouble.add(Path::new(&format!("/dev/tenstorrent/{n}")), reason(error)),
    }
    let holders = lists.and_then(|lists| match &mut chip {
        Some(chip) => chip.holders(&lists, &mut trouble),
        None => HolderList::default().read(&lists, n, &mut trouble),
    });
    for &pid in holders.iter().flat_map(|holders| &holders.pids) {
        add(Job::Process(pid));
    }
    let counted = chip.as_mut().zip(holders.as_ref()).map(|(chip, holders)| chip.counted(holders, &mut trouble));
    let mut shared = lock(shared);
    shared.chips.extend(chip.map(|chip| (n, chip)));
    shared.faults.append(&mut trouble.faults);
    shared.counted.insert(n, counted.unwrap_or_default());
    match holders {
        Some(holders) => drop(shared.holders.insert(n, holders)),
        None => drop(shared.holders.remove(&n)),
    }
}

fn read_process(shared: &Mutex<Shared>, pid: u32, map_anew: bool, users: &Users, inject: Option<Inject>) {
    let earlier = {
        let mut shared = lock(shared);
        if map_anew { shared.processes.get(&pid).cloned() } else { shared.earlier.remove(&pid) }
    };
    if let Some(facts) = procs::read(pid, earlier.as_ref(), map_anew, users, inject) {
        lock(shared).processes.insert(pid, facts);
    }
}

/// Reads what the driver counts for the files of a process that was read before. A reset may hold it up: nobody waits for it
/// but the figures that it would give.
fn read_files(shared: &Mutex<Shared>, pid: u32, root: &Root) {
    let (known, folder, started) = {
        let mut shared = lock(shared);
        let known = shared.files.remove(&pid);
        let Some(facts) = shared.processes.get(&pid) else { return };
        (known, facts.folder.clone(), facts.stat.start_ticks)
    };
    let known = known.filter(|known| known.is_of(started));
    let opened = known.or_else(|| OpenFiles::open(root, pid, folder, started));
    let told = opened.map(|mut files| (files.read(&root.dev.join("tenstorrent")), files));
    let mut shared = lock(shared);
    let Some((told, files)) = told else { return drop(shared.told.insert(pid, Told::Unclear)) };
    // Who tells nothing is not asked again soon, and need not be kept open.
    if !matches!(told, Told::Nothing | Told::Closed) {
        shared.files.insert(pid, files);
    }
    shared.told.insert(pid, told);
}

/// The living processes that hold one of these devices.
fn holders(shared: &Shared, listed: &BTreeMap<u32, DeviceLink>) -> BTreeSet<u32> {
    let lists = shared.holders.iter().filter(|(n, _)| listed.contains_key(n));
    let pids = lists.flat_map(|(_, holders)| &holders.pids).copied();
    pids.filter(|pid| shared.processes.contains_key(pid)).collect()
}

/// The processes that a region names and whose map, which was not read this time, does not show it.
fn outdated(shm: &Shm, processes: &BTreeMap<u32, ProcessFacts>, began: Instant) -> Vec<Job> {
    let is_named = |facts: &ProcessFacts| {
        shm.regions.iter().any(|(inode, found)| {
            let mut slots = found.region.iter().flat_map(|region| &region.slots);
            slots.any(|slot| facts.status.inner_pid == Some(slot.pid)) && !facts.has_mapped(*inode)
        })
    };
    let old = processes.values().filter(|facts| facts.map_is_older_than(began));
    old.filter(|facts| is_named(facts)).map(|facts| Job::Map(facts.pid)).collect()
}

/// The regions that only their processes can show: those of a container, and those that were removed.
fn find_private_regions(shm: &mut Shm, processes: &BTreeMap<u32, ProcessFacts>, trouble: &mut Trouble) {
    for (pid, facts) in processes {
        for (inode, number) in facts.maps.iter().flat_map(|maps| &maps.regions) {
            if !shm.regions.contains_key(inode) {
                let found = shm::find_of_process(*pid, *inode, *number, trouble);
                shm.regions.extend(found.map(|found| (*inode, found)));
            }
        }
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
