//! What the jobs have answered, in this sample and in those before.
//!
//! What is kept of a device from one sample to the next is kept by its PCI address: its number may be another device's the next time.

use crate::device_fds::{DeviceFds, FdinfoReply};
use crate::devices::Links;
use crate::jobs::{Answer, DeviceAnswer, ReadJob, Task};
use crate::pids::Holders;
use crate::pool::Late;
use crate::procs::ProcessFacts;
use crate::shm::Shm;
use crate::telemetry::{DeviceReader, Reading};
use model::{DriverUsed, Fault, PciAddress, Usage, earlier_devices};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::slice::from_ref;
use std::sync::Arc;
use std::time::Instant;

#[derive(Default)]
pub(crate) struct Collected {
    /// The last reading of each device that was ever there.
    pub readings: BTreeMap<PciAddress, (Reading, Instant)>,
    /// The devices of this sample.
    links: Arc<Links>,
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
    pub readers: HashMap<PciAddress, Box<DeviceReader>>,
    /// Open files of processes, but for those that a thread has.
    pub files: BTreeMap<u32, Box<DeviceFds>>,
}

impl Collected {
    /// Begins a sample of a machine with these devices. Returns the processes of the one before.
    pub fn begin(&mut self, links: &Arc<Links>, late: impl Iterator<Item = Answer>) -> BTreeMap<u32, ProcessFacts> {
        late.for_each(|answer| self.add(answer));
        let before = std::mem::replace(&mut self.links, links.clone());
        let is_same = |n: &u32| links.get(n).zip(before.get(n)).is_some_and(|(now, then)| now.address == then.address);
        self.holders.retain(|n, _| is_same(n));
        self.counted.retain(|n, _| is_same(n));
        self.used.retain(|n, _| is_same(n));
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
        let DeviceAnswer { n, address, mut reader, mut reading, holders, counted, used, faults } = answer;
        if let (Some(reader), Some((reading, _))) = (&mut reader, &mut reading) {
            self.continue_moved(&address, reader, reading);
        }
        self.readers.extend(reader.map(|reader| (address.clone(), reader)));
        self.readings.extend(reading.map(|reading| (address.clone(), reading)));
        if self.links.get(&n).is_none_or(|link| link.address != address) {
            // It comes late, and the number is another device's now.
            return;
        }
        self.counted.insert(n, counted);
        self.used.insert(n, used);
        self.faults.extend(faults);
        match holders {
            Some(holders) => drop(self.holders.insert(n, holders)),
            None => drop(self.holders.remove(&n)),
        }
    }

    /// A chip that was lost at one address and is back at another one is the same, and its totals go on.
    fn continue_moved(&mut self, address: &PciAddress, reader: &mut DeviceReader, reading: &mut Reading) {
        let is_lost = |known: &PciAddress| known != address && !self.links.values().any(|link| link.address == *known);
        let same = |lost: &Reading| earlier_devices(from_ref(&lost.device), from_ref(&reading.device))[0].is_some();
        // The usual case: there is no reading of a device that was lost.
        if self.readings.len() + usize::from(!self.readings.contains_key(address)) <= self.links.len() {
            return;
        }
        let mut lost = self.readings.iter();
        let Some(at) = lost.find(|(known, (lost, _))| is_lost(known) && same(lost)).map(|(known, _)| known.clone())
        else {
            return;
        };
        self.readings.remove(&at);
        if let Some(before) = self.readers.remove(&at) {
            reader.continue_totals(&before, &mut reading.device);
        }
    }

    /// Adds jobs that did not answer in time.
    pub fn add_late(&mut self, late: Late<ReadJob, Task>) {
        for task in late.tasks {
            match task {
                Task::Device { address, reader, .. } => self.readers.extend(reader.map(|reader| (address, reader))),
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
        Some((ReadJob::Fdinfo(pid), Task::fdinfo(facts, self.files.remove(&pid))))
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
