//! What the threads of the pool do: read one device, one process, or what the driver counts for the open files of a process.
//!
//! A [`Task`] has all that its thread needs and an [`Answer`] all that it found: the threads share nothing that changes.

use crate::container_names::ContainerNames;
use crate::device_fds::{DeviceFds, FdinfoReply, open_devices};
use crate::devices::Links;
use crate::dir::{Dir, Root, Trouble, reason};
use crate::pids::{HolderList, Holders};
use crate::procs::{self, ProcessFacts};
use crate::telemetry::{DeviceReader, ReadMode, Reading};
use crate::users::Users;
use model::{Arch, DriverUsed, Fault, PciAddress, State, Usage};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum ReadJob {
    /// By its address: while it is stuck, its number may become another device's.
    Device(PciAddress),
    Process(u32),
    /// A process that was read, again with its map.
    Map(u32),
    /// What the driver counts for the open files of a process.
    Fdinfo(u32),
}

/// What a thread needs to do a job.
pub(crate) enum Task {
    Device {
        n: u32,
        address: PciAddress,
        reader: Option<Box<DeviceReader>>,
        context: Arc<Context>,
    },
    Process {
        pid: u32,
        context: Arc<Context>,
    },
    Map {
        facts: Box<ProcessFacts>,
    },
    /// A process that may keep a book, though the driver does not list it.
    BookOwner {
        pid: u32,
        context: Arc<Context>,
    },
    Fdinfo {
        pid: u32,
        folder: Option<Arc<Dir>>,
        start_ticks: u64,
        files: Option<Box<DeviceFds>>,
    },
}

impl Task {
    /// Reads what the driver counts for the open files of a process, some of which may be open already.
    pub fn fdinfo(facts: &ProcessFacts, files: Option<Box<DeviceFds>>) -> Task {
        Task::Fdinfo { pid: facts.pid, folder: facts.folder.clone(), start_ticks: facts.stat.start_ticks, files }
    }
}

/// What all tasks of one sample have in common.
pub(crate) struct Context {
    pub mode: ReadMode,
    /// The devices that the driver has.
    pub links: Arc<Links>,
    /// The folder of the devices, and that of the lists of their holders.
    pub class: Option<Arc<Dir>>,
    pub lists: Option<Arc<Dir>>,
    /// The processes of the sample before.
    pub earlier: BTreeMap<u32, ProcessFacts>,
    /// Chips for which the driver counts no memory. Only noted where there is no next sample.
    pub uncounted: Mutex<Vec<Arch>>,
}

impl Context {
    /// Whether there is no next sample.
    fn is_single(&self) -> bool {
        self.class.as_ref().is_some_and(|class| !class.keeps_files())
    }
}

pub(crate) enum Answer {
    Device(Box<DeviceAnswer>),
    /// Without facts: the process is gone.
    Process {
        pid: u32,
        facts: Option<Box<ProcessFacts>>,
    },
    /// Without facts: it keeps no book.
    BookOwner {
        pid: u32,
        facts: Option<Box<ProcessFacts>>,
        /// What it has open.
        devices: BTreeSet<u32>,
    },
    /// With the open files, where they are worth keeping open.
    Fdinfo {
        pid: u32,
        reply: FdinfoReply,
        files: Option<Box<DeviceFds>>,
    },
}

pub(crate) struct DeviceAnswer {
    pub n: u32,
    pub address: PciAddress,
    /// Absent when its folders could not be opened, or there is no next sample.
    pub reader: Option<Box<DeviceReader>>,
    /// With the moment of the reading.
    pub reading: Option<(Reading, Instant)>,
    /// Absent when the driver does not say.
    pub holders: Option<Holders>,
    /// What the driver counts for the holders.
    pub counted: BTreeMap<u32, Usage>,
    /// What the driver counts for the whole device.
    pub used: DriverUsed,
    pub faults: Vec<Fault>,
}

pub(crate) struct Jobs {
    root: Root,
    users: Users,
    names: ContainerNames,
}

impl Jobs {
    pub fn new(root: Root) -> Jobs {
        let names = ContainerNames::new(&root);
        Jobs { root, users: Users::default(), names }
    }

    /// Does a job, which may add others.
    pub fn run(&self, task: Task, add: &dyn Fn(ReadJob, Task)) -> Answer {
        match task {
            Task::Device { n, address, reader, context } => {
                Answer::Device(Box::new(read_device(n, address, reader, &context, add)))
            }
            Task::Process { pid, context } => self.read_process(pid, &context, add),
            Task::Map { facts } => self.read_map(facts),
            Task::BookOwner { pid, context } => self.read_book_owner(pid, context.earlier.get(&pid)),
            Task::Fdinfo { pid, folder, start_ticks, files } => self.read_fdinfo(pid, folder, start_ticks, files),
        }
    }

    fn read_process(&self, pid: u32, context: &Context, add: &dyn Fn(ReadJob, Task)) -> Answer {
        let earlier = context.earlier.get(&pid);
        let facts = procs::read(pid, earlier, false, &self.users, &self.names, self.root.inject.clone());
        // Where nothing is known of the driver, every holder is asked what it counts. In a single sample that needs no other round.
        if let Some(facts) = facts.as_ref().filter(|_| context.is_single()) {
            add(ReadJob::Fdinfo(pid), Task::fdinfo(facts, None));
        }
        Answer::Process { pid, facts: facts.map(Box::new) }
    }

    /// A process that keeps no book is none of ours.
    fn read_book_owner(&self, pid: u32, earlier: Option<&ProcessFacts>) -> Answer {
        let facts = procs::read(pid, earlier, false, &self.users, &self.names, self.root.inject.clone());
        let keeper = facts.filter(|facts| matches!(facts.book, Ok(Some(_))));
        let devices = keeper.as_ref().map(|facts| open_devices(&self.root, pid, facts.folder.clone()));
        Answer::BookOwner { pid, facts: keeper.map(Box::new), devices: devices.unwrap_or_default() }
    }

    /// A process that has ended since it was read stays as it was read.
    fn read_map(&self, facts: Box<ProcessFacts>) -> Answer {
        let again = procs::read(facts.pid, Some(&facts), true, &self.users, &self.names, self.root.inject.clone());
        Answer::Process { pid: facts.pid, facts: Some(again.map_or(facts, Box::new)) }
    }

    /// A reset may block this read: only the figures that it would give wait for it.
    fn read_fdinfo(
        &self,
        pid: u32,
        folder: Option<Arc<Dir>>,
        start_ticks: u64,
        files: Option<Box<DeviceFds>>,
    ) -> Answer {
        let known = files.filter(|files| files.is_of(start_ticks));
        let opened = known.or_else(|| DeviceFds::open(&self.root, pid, folder, start_ticks).map(Box::new));
        let Some(mut files) = opened else {
            return Answer::Fdinfo { pid, reply: FdinfoReply::Unclear, files: None };
        };
        let reply = files.read(&self.root.dev.join("tenstorrent"));
        // A process without counts is not asked again soon, and need not be kept open.
        let is_kept = !matches!(reply, FdinfoReply::NotCounted | FdinfoReply::Forbidden);
        Answer::Fdinfo { pid, reply, files: is_kept.then_some(files) }
    }
}

/// Reads one device and then its holders, whose details become jobs of their own.
fn read_device(
    n: u32,
    address: PciAddress,
    mut reader: Option<Box<DeviceReader>>,
    context: &Arc<Context>,
    add: &dyn Fn(ReadJob, Task),
) -> DeviceAnswer {
    let mut trouble = Trouble::default();
    let reading = read_attributes(n, &mut reader, context, &mut trouble);
    let holders = context.lists.as_ref().and_then(|lists| match &mut reader {
        Some(reader) => reader.holders.read(lists, n, &mut trouble),
        None => HolderList::default().read(lists, n, &mut trouble),
    });
    for &pid in holders.iter().flat_map(|holders| &holders.pids) {
        add(ReadJob::Process(pid), Task::Process { pid, context: context.clone() });
    }
    let counts = reader.as_mut().map(|reader| read_counts(reader, holders.as_ref(), context, &mut trouble));
    let (counted, used) = counts.unwrap_or_default();
    // Without a next sample, its folders need not stay open.
    reader.take_if(|_| context.is_single());
    DeviceAnswer { n, address, reader, reading, holders, counted, used, faults: trouble.faults }
}

/// What the driver counts for each holder, and for the whole device. It is one driver for all: in a single sample, only the first
/// device with a kind of chip is asked where it counts nothing.
fn read_counts(
    reader: &mut DeviceReader,
    holders: Option<&Holders>,
    context: &Context,
    trouble: &mut Trouble,
) -> (BTreeMap<u32, Usage>, DriverUsed) {
    let arch = reader.arch().filter(|_| context.is_single());
    let uncounted = || context.uncounted.lock().unwrap_or_else(PoisonError::into_inner);
    if arch.is_some_and(|arch| uncounted().contains(&arch)) {
        return Default::default();
    }
    let counted = holders.map(|holders| reader.processes.read(&reader.class, &holders.pids, trouble));
    let used = reader.used(trouble);
    if reader.is_uncounted() {
        uncounted().extend(arch);
    }
    (counted.unwrap_or_default(), used)
}

/// Reads a device, with a new reader where the old one has lost it.
fn read_attributes(
    n: u32,
    reader: &mut Option<Box<DeviceReader>>,
    context: &Context,
    trouble: &mut Trouble,
) -> Option<(Reading, Instant)> {
    let Context { mode, links, class, .. } = context;
    let (link, class) = (links.get(&n)?, class.as_ref()?);
    let same = reader.as_mut().filter(|reader| reader.is_for(n, link, *mode));
    let reading = same.map(|reader| reader.read(*mode)).filter(|reading| reading.device.state != State::Lost);
    // The folders of a device that was removed stay empty, though it may be back under its name.
    let reading = reading.map_or_else(
        || {
            let opened = DeviceReader::open(class, n, link, reader.as_deref())?;
            Ok(reader.insert(Box::new(opened)).read(*mode))
        },
        Ok,
    );
    let failed = |error| trouble.add(Path::new(&format!("/dev/tenstorrent/{n}")), reason(error));
    reading.map_err(failed).ok().map(|reading| (reading, Instant::now()))
}
