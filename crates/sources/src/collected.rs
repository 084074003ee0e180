//! What the jobs have answered, in this sample and in those before.

use crate::device_fds::{DeviceFds, FdinfoReply};
use crate::devices::Links;
use crate::jobs::{Answer, DeviceAnswer, ReadJob, Task};
use crate::pids::Holders;
use crate::pool::Late;
use crate::procs::ProcessFacts;
use crate::shm::Shm;
use crate::telemetry::{DeviceReader, Reading};
use model::{DriverUsed, Fault, Usage};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Instant;

#[derive(Default)]
pub(crate) struct Collected {
    /// The last reading of each device that was ever there.
    pub readings: BTreeMap<u32, (Reading, Instant)>,
    /// The last known holders of each device.
    pub holders: BTreeMap<u32, Holders>,
    /// What the driver counts for processes, by device.
    pub counted: BTreeMap<u32, BTreeMap<u32, Usage>>,
    /// What the driver counts for whole devices.
    pub used: BTreeMap<u32, DriverUsed>,
    /// The processes of this sample.
    pub processes: BTreeMap<u32, ProcessFacts>,
    /// What the driver counts for the open files of processes.
    pub fdinfo: BTreeMap<u32, FdinfoReply>,
    /// What did not answer in time.
    pub late: HashSet<ReadJob>,
    pub faults: Vec<Fault>,
    /// tt-metal's memory regions and tt-umd's locks, which need no job.
    pub shm: Shm,
    /// The readers of the devices, but for those that a thread has.
    pub readers: HashMap<u32, Box<DeviceReader>>,
    /// Open files of processes, but for those that a thread has.
    pub files: BTreeMap<u32, Box<DeviceFds>>,
}

impl Collected {
    /// Begins a sample of a machine with these devices. Returns the processes of the one before.
    pub fn begin(&mut self, links: &Links, late: impl Iterator<Item = Answer>) -> BTreeMap<u32, ProcessFacts> {
        late.for_each(|answer| self.add(answer));
        self.counted.retain(|n, _| links.contains_key(n));
        self.used.retain(|n, _| links.contains_key(n));
        self.fdinfo.clear();
        self.late.clear();
        self.faults.clear();
        std::mem::take(&mut self.processes)
    }

    /// Adds an answer.
    pub fn add(&mut self, answer: Answer) {
        match answer {
            Answer::Device(answer) => self.add_device(*answer),
            Answer::Process { pid, facts } => self.processes.extend(facts.map(|facts| (pid, *facts))),
            Answer::BookOwner { pid, facts, devices } => {
                // A child that inherited a device holds it as its parent does.
                for n in devices.iter().filter(|_| facts.is_some()) {
                    self.holders.entry(*n).and_modify(|holders| _ = holders.pids.insert(pid));
                }
                self.processes.extend(facts.map(|facts| (pid, *facts)));
            }
            Answer::Fdinfo { pid, reply, files } => {
                self.fdinfo.insert(pid, reply);
                self.files.extend(files.map(|files| (pid, files)));
            }
        }
    }

    fn add_device(&mut self, answer: DeviceAnswer) {
        let DeviceAnswer { n, reader, reading, holders, counted, used, faults } = answer;
        self.readers.extend(reader.map(|reader| (n, reader)));
        self.readings.extend(reading.map(|reading| (n, reading)));
        self.counted.insert(n, counted);
        self.used.insert(n, used);
        self.faults.extend(faults);
        match holders {
            Some(holders) => drop(self.holders.insert(n, holders)),
            None => drop(self.holders.remove(&n)),
        }
    }

    /// Adds jobs that did not answer in time.
    pub fn add_late(&mut self, late: Late<ReadJob, Task>) {
        for task in late.tasks {
            match task {
                Task::Device { n, reader, .. } => self.readers.extend(reader.map(|reader| (n, reader))),
                Task::Fdinfo { pid, files, .. } => self.files.extend(files.map(|files| (pid, files))),
                Task::Process { .. } | Task::Map { .. } | Task::BookOwner { .. } => {}
            }
        }
        self.late.extend(late.keys.into_iter().map(|key| match key {
            // What an old map says is not enough to call bytes stale: the process counts as not read.
            ReadJob::Map(pid) => ReadJob::Process(pid),
            key => key,
        }));
    }

    /// The task that reads the map of a process again.
    pub fn map_task(&mut self, pid: u32) -> Option<(ReadJob, Task)> {
        let facts = Box::new(self.processes.remove(&pid)?);
        Some((ReadJob::Map(pid), Task::Map { facts }))
    }

    /// The task that reads what the driver counts for the open files of a process.
    pub fn fdinfo_task(&mut self, pid: u32) -> Option<(ReadJob, Task)> {
        let facts = self.processes.get(&pid)?;
        let (folder, start_ticks) = (facts.folder.clone(), facts.stat.start_ticks);
        Some((ReadJob::Fdinfo(pid), Task::Fdinfo { pid, folder, start_ticks, files: self.files.remove(&pid) }))
    }

    /// All processes that are known to hold one of these devices.
    pub fn known_holders(&self, links: &Links) -> impl Iterator<Item = u32> {
        let lists = self.holders.iter().filter(|(n, _)| links.contains_key(n));
        lists.flat_map(|(_, holders)| &holders.pids).copied()
    }

    /// Those of them that were read.
    pub fn live_holders(&self, links: &Links) -> BTreeSet<u32> {
        self.known_holders(links).filter(|pid| self.processes.contains_key(pid)).collect()
    }
}
