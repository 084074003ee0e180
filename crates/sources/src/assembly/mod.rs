//! Puts together what the sources have found: one snapshot out of readings, holders, processes and memory.
//!
//! In reading order: this file, `devices` (which devices there are and how they are), `holders` (who holds them), `memory` (how much of
//! their memory each process has), `activity` (how busy they are).

mod activity;
mod devices;
mod holders;
mod memory;

use activity::Activities;

use crate::accounting::Accounting;
use crate::attribution::Baselines;
use crate::clock::Clock;
use crate::collected::Collected;
use crate::device_fds::FdinfoPolicy;
use crate::devices::Links;
use crate::dir::Trouble;
use crate::jobs::ReadJob;
use crate::procs::ProcessFacts;
use model::{ChipNumbers, Device, Fault, Held, Host, PciAddress, Process, Snapshot, Timestamp, cpu_percent};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What the next snapshot needs of the last.
#[derive(Default)]
pub(crate) struct Assembly {
    baselines: Baselines,
    accounting: Accounting,
    activities: Activities,
    /// CPU time by pid and start, and when it was read.
    cpu: HashMap<(u32, u64), (u64, Instant)>,
}

/// One sample's circumstances.
pub(crate) struct Round<'a> {
    pub began: Instant,
    pub deadline: Duration,
    /// The devices that the driver has now.
    pub links: &'a Links,
    /// Whether the driver lists who holds them.
    pub has_lists: bool,
    /// Devices without a driver.
    pub unbound: Vec<Device>,
    pub fdinfo: &'a FdinfoPolicy,
    pub host: Host,
}

/// A snapshot in the making.
struct Draft<'a> {
    collected: &'a Collected,
    round: Round<'a>,
    clock: Clock,
    devices: Vec<Device>,
    /// What the numbers of these devices are made of.
    numbers: Vec<ChipNumbers>,
    /// The living holders of each device.
    holders: BTreeMap<u32, BTreeSet<u32>>,
    /// How many holders of each device cannot be named: in other PID namespaces, or exited with the file passed on to a child.
    nameless: BTreeMap<u32, u32>,
    /// What each process holds.
    held: BTreeMap<u32, Vec<Held>>,
    activities: Activities,
    trouble: Trouble,
}

impl Assembly {
    /// The snapshot of all that was collected.
    pub fn snapshot(&mut self, collected: &Collected, round: Round, trouble: Trouble) -> Snapshot {
        let mut draft = Draft {
            collected,
            round,
            clock: Clock::now(),
            devices: Vec::new(),
            numbers: Vec::new(),
            holders: BTreeMap::new(),
            nameless: BTreeMap::new(),
            held: BTreeMap::new(),
            activities: std::mem::take(&mut self.activities),
            trouble,
        };
        draft.report_late_jobs();
        draft.add_devices();
        draft.add_holders();
        draft.add_books();
        draft.add_counts(&mut self.accounting);
        draft.report_forbidden_processes();
        draft.add_regions(&mut self.baselines);
        draft.add_activity();
        self.finish(draft)
    }

    fn finish(&mut self, draft: Draft) -> Snapshot {
        let Draft { collected, round, clock, devices, held, mut activities, mut trouble, .. } = draft;
        let now = Instant::now();
        let processes = held.into_iter().map(|(pid, devices)| match collected.processes.get(&pid) {
            Some(facts) => self.process(facts, devices, &activities, &clock, now),
            // It could not be read in time.
            None => Process { devices, ..Process::new(pid) },
        });
        let processes = processes.collect();
        self.cpu.retain(|(pid, _), _| collected.processes.contains_key(pid));
        let read = collected
            .processes
            .values()
            .filter_map(|facts| Some(((facts.pid, facts.stat.start_ticks), activity::of_book(facts)?.clone())));
        activities.earlier = read.collect();
        self.activities = activities;
        trouble.faults.sort();
        trouble.faults.dedup();
        let (taken_at, host, faults) = (wall_clock(), round.host, trouble.faults);
        Snapshot { taken_at, host, devices, processes, faults, ..Snapshot::empty() }
    }

    fn process(
        &mut self,
        facts: &ProcessFacts,
        devices: Vec<Held>,
        activities: &Activities,
        clock: &Clock,
        now: Instant,
    ) -> Process {
        let ProcessFacts { pid, stat, status, .. } = facts;
        let earlier = self.cpu.insert((*pid, stat.start_ticks), (stat.cpu_ticks, now));
        let cpu = earlier.and_then(|(ticks, then)| {
            cpu_percent(clock.seconds(ticks), clock.seconds(stat.cpu_ticks), (now - then).as_secs_f64())
        });
        let book = facts.book.as_ref().ok().and_then(|found| found.as_ref()?.book.as_ref().ok());
        let mut process = Process {
            pid: *pid,
            parent_pid: stat.parent,
            user: facts.user.clone(),
            name: Some(stat.name.clone()),
            command: facts.command.0.clone(),
            container: facts.container.clone(),
            owner: facts.owner.clone(),
            runtime: facts.maps.as_ref().ok().and_then(|maps| maps.runtime),
            started_at: Some(clock.timestamp(stat.start_ticks)),
            host_memory: status.resident,
            host_cpu_percent: cpu,
            agent: book.map(|book| book.producer.clone()),
            devices,
            ..Process::new(*pid)
        };
        if let Some(activity) = activity::of_book(facts) {
            activity.add_to(&mut process, activities.earlier.get(&(*pid, stat.start_ticks)));
        }
        process
    }
}

impl Draft<'_> {
    fn report_late_jobs(&mut self) {
        let reason = format!("no answer within {} ms", self.round.deadline.as_millis());
        let number =
            |address: &PciAddress| self.round.links.iter().find(|(_, link)| link.address == *address).map(|(n, _)| n);
        self.trouble.faults.extend(self.collected.late.iter().map(|job| match job {
            ReadJob::Device(address) => match number(address) {
                Some(n) => Fault::new(format!("/dev/tenstorrent/{n}"), &reason),
                None => Fault::new(address.to_string(), &reason),
            },
            ReadJob::Process(pid) | ReadJob::Map(pid) => Fault::new(format!("/proc/{pid}"), &reason),
            ReadJob::Fdinfo(pid) => Fault::new(format!("/proc/{pid}/fdinfo"), &reason),
        }));
    }
}

fn wall_clock() -> Timestamp {
    Timestamp(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64))
}
