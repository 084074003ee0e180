//! Lines about processes that the kernel killed because memory was used up. Ours are those about processes that held a device.

use super::meaning::Meaning;
use super::record::Record;
use model::{KernelMessageKind, Snapshot, Timestamp, Weight};

/// Processes that hold a device, or did a short while ago.
#[derive(Debug, Default)]
pub struct KnownHolders(Vec<KnownHolder>);

#[derive(Debug)]
struct KnownHolder {
    pid: u32,
    name: Option<String>,
    seen: Timestamp,
}

/// How long a process that exited is known, in milliseconds.
const KNOWN_FOR: i64 = 60_000;
/// The kernel cuts the name of a process to so many bytes.
const NAME: usize = 15;

const OF_HOST: &str = "Out of memory: Killed process ";
const OF_CONTAINER: &str = "Memory cgroup out of memory: Killed process ";

impl KnownHolders {
    /// Remembers the processes of a snapshot.
    pub fn know(&mut self, snapshot: &Snapshot) {
        let now = snapshot.taken_at;
        self.0.retain(|known| {
            let is_there = snapshot.processes.iter().any(|process| process.pid == known.pid);
            !is_there && (0..KNOWN_FOR).contains(&(now.0 - known.seen.0))
        });
        let here = snapshot.processes.iter();
        self.0.extend(here.map(|process| KnownHolder { pid: process.pid, name: process.name.clone(), seen: now }));
    }

    /// What a record means, if it is about one of them. A pid alone says little: the name has to be the same.
    pub fn meaning(&self, record: &Record) -> Option<Meaning> {
        let text = record.text.as_str();
        let of_host = text.strip_prefix(OF_HOST);
        let rest = of_host.or_else(|| text.strip_prefix(OF_CONTAINER)).filter(|_| record.is_kernel)?;
        let (pid, rest) = rest.split_once(" (")?;
        let pid: u32 = pid.parse().ok()?;
        let is_it = |known: &&KnownHolder| {
            let name = known.name.as_deref().unwrap_or_default();
            let name = name.get(..NAME).unwrap_or(name);
            known.pid == pid && rest.strip_prefix(name).is_some_and(|rest| rest.starts_with(')'))
        };
        self.0.iter().find(is_it)?;
        let sentence = match of_host {
            Some(_) => "a process that held a device was killed: the host was out of memory",
            None => "a process that held a device was killed: its container had reached its memory limit",
        };
        Some(Meaning {
            kind: KernelMessageKind::OutOfMemory,
            weight: Weight::Bad,
            device: None,
            pci_address: None,
            sentence: Some(sentence),
            is_detail: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel_log::record;
    use model::Process;

    #[test]
    fn only_processes_that_held_a_device_are_ours() {
        let named = |pid, name: &str| Process { name: Some(name.into()), ..Process::new(pid) };
        let at =
            |seconds: i64, processes| Snapshot { taken_at: Timestamp(seconds * 1000), processes, ..Snapshot::empty() };
        let mut holders = KnownHolders::default();
        holders.know(&at(1, vec![named(7, "python3"), named(8, "a_long_name_that_the_kernel_cuts")]));
        holders.know(&at(2, vec![named(9, "serve")]));
        let sentence = |holders: &KnownHolders, text: &str| {
            let record = record::parse(format!("3,1,2,-;{text}").as_bytes()).unwrap();
            holders.meaning(&record).map(|meaning| meaning.sentence.unwrap())
        };
        let host = "a process that held a device was killed: the host was out of memory";
        let container = "a process that held a device was killed: its container had reached its memory limit";
        let line = "Out of memory: Killed process 7 (python3) total-vm:1kB, anon-rss:1kB";
        assert_eq!(sentence(&holders, line), Some(host));
        assert_eq!(sentence(&holders, &format!("Memory cgroup o{}", &line[1..])), Some(container));
        assert_eq!(sentence(&holders, "Out of memory: Killed process 8 (a_long_name_tha) total-vm:1kB"), Some(host));
        assert_eq!(sentence(&holders, "Out of memory: Killed process 7 (bash) total-vm:1kB"), None, "another one");
        assert_eq!(sentence(&holders, "Out of memory: Killed process 70 (python3) total-vm:1kB"), None);
        assert_eq!(sentence(&holders, "Out of memory: Killed process seven"), None);
        let lie = record::parse(format!("12,1,2,-;{line}").as_bytes()).unwrap();
        assert_eq!(holders.meaning(&lie), None, "a program has written it");
        holders.know(&at(62, vec![]));
        assert_eq!(sentence(&holders, line), None, "it is long gone");
    }
}
