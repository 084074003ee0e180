//! Who holds each device, and the entries of processes on devices.

use super::Draft;
use crate::jobs::ReadJob;
use crate::procs::ProcessFacts;
use model::{DeviceId, Fault, Held};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

impl Draft<'_> {
    /// Adds the holders of each device that the driver has.
    pub(super) fn add_holders(&mut self) {
        let this = std::process::id();
        for n in self.round.links.keys().copied() {
            let Some(holders) = self.collected.holders.get(&n) else { continue };
            let (living, exited) = self.living(n, &holders.pids, this);
            let owner = self.collected.shm.locks.get(&n);
            let in_use_by = owner.and_then(|owner| called(*owner, &living, &self.collected.processes));
            if let Some(device) = self.devices.iter_mut().find(|device| device.id == DeviceId::Local(n)) {
                device.foreign_holders = holders.foreign;
                device.names_all_holders = self.round.has_lists && holders.foreign == 0 && exited == 0;
                device.in_use_by_pid = in_use_by;
            }
            // An opener is an open file, and tt-umd opens a device twice: how many processes these are is not known.
            self.nameless.insert(n, u32::from(holders.foreign > 0) + exited);
            for pid in &living {
                self.entry(*pid, DeviceId::Local(n));
            }
            self.holders.insert(n, living);
        }
    }

    /// The holders that live, but for this process, and how many do not: then a child inherited the open file.
    fn living(&mut self, n: u32, pids: &BTreeSet<u32>, this: u32) -> (BTreeSet<u32>, u32) {
        let others = pids.iter().copied().filter(|pid| *pid != this);
        let is_alive = |pid: &u32| {
            self.collected.processes.contains_key(pid) || self.collected.late.contains(&ReadJob::Process(*pid))
        };
        let (living, exited): (BTreeSet<u32>, BTreeSet<u32>) = others.partition(is_alive);
        for pid in &exited {
            let reason = format!("pid {pid} has exited, but a process that inherited its open file holds the device");
            self.trouble.faults.push(Fault::new(format!("/proc/driver/tenstorrent/{n}/pids"), reason));
        }
        (living, exited.len() as u32)
    }

    /// The entry of a process on a chip, added if need be.
    pub(super) fn entry(&mut self, pid: u32, id: DeviceId) -> &mut Held {
        let devices = self.held.entry(pid).or_default();
        let at = match devices.binary_search_by(|held| held.id.cmp(&id)) {
            Ok(at) => at,
            Err(at) => {
                devices.insert(at, Held::new(id));
                at
            }
        };
        &mut devices[at]
    }

    /// Reports whose processes may not be read, one line for each user.
    pub(super) fn report_forbidden_processes(&mut self) {
        let mut forbidden: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (pid, facts) in self.collected.processes.iter().filter(|(pid, _)| self.held.contains_key(pid)) {
            if matches!(facts.book, Err(Errno::ACCESS | Errno::PERM)) || self.round.fdinfo.is_forbidden(*pid) {
                forbidden.entry(facts.user.as_deref().unwrap_or("another user")).or_default().push(*pid);
            }
        }
        for (user, pids) in forbidden {
            let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
            let reason = format!("belongs to {user}: run as that user or as root to see its device memory");
            self.trouble.add(Path::new(&format!("/proc/{}", pids.join(","))), reason);
        }
    }
}

/// The process with this pid in its own PID namespace, if just one has it.
fn called(inner: u32, holders: &BTreeSet<u32>, processes: &BTreeMap<u32, ProcessFacts>) -> Option<u32> {
    let has_it = |pid: &&u32| processes.get(pid).is_some_and(|process| process.status.inner_pid == Some(inner));
    let mut found = holders.iter().filter(has_it);
    found.next().filter(|_| found.next().is_none()).copied()
}
