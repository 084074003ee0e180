//! What the driver counts, made into figures of processes on chips.
//!
//! One opening of a device is one client, however many descriptors lead to it and in however many processes: it counts once, for the
//! process that the driver names as a holder, and of several for the eldest.

use crate::device_fds::{DeviceFd, FdinfoReply};
use crate::dir::Trouble;
use crate::procs::ProcessFacts;
use model::{Device, DeviceId, EngineCounters, Usage, engine_percent};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What the driver counts for one process on one chip.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Accounted {
    pub usage: Usage,
    /// How busy it keeps the busiest engine.
    pub percent: Option<f64>,
}

/// What the next sample needs of the last: the engines' counters of each client.
#[derive(Default)]
pub(crate) struct Accounting {
    engines: HashMap<(u32, Client, String), (EngineCounters, Instant)>,
}

/// An opening of a device, on that device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Client {
    /// As the driver numbers it.
    Number(u64),
    /// The only one of its process.
    Of(u32),
}

/// A counter that fell is expected to catch up within this time; later it has restarted.
const CATCHES_UP: Duration = Duration::from_secs(10);

/// The devices, their holders and the processes.
pub(crate) struct Facts<'a> {
    pub devices: &'a [Device],
    pub holders: &'a BTreeMap<u32, BTreeSet<u32>>,
    pub processes: &'a BTreeMap<u32, ProcessFacts>,
}

impl Accounting {
    /// The figures by process and device: of open files where they count, else of the folders of processes, by device.
    pub fn figures(
        &mut self,
        replies: &BTreeMap<u32, FdinfoReply>,
        folders: &BTreeMap<u32, BTreeMap<u32, Usage>>,
        known: &Facts,
        trouble: &mut Trouble,
    ) -> BTreeMap<(u32, u32), Accounted> {
        let mut figures: BTreeMap<(u32, u32), Accounted> = BTreeMap::new();
        let clients = clients(replies, known, trouble);
        for ((n, _), (pid, file)) in &clients {
            let entry = figures.entry((*pid, *n)).or_default();
            entry.usage = entry.usage.plus(file.info.usage);
        }
        for ((pid, n, _), percent) in self.utilization(&clients) {
            let entry = figures.entry((pid, n)).or_default();
            entry.percent = entry.percent.into_iter().chain(percent.map(|percent| percent.min(100.0))).reduce(f64::max);
        }
        for (n, processes) in folders {
            for (pid, usage) in processes {
                let entry = figures.entry((*pid, *n)).or_default();
                if entry.usage.total().is_none() {
                    entry.usage = *usage;
                }
            }
        }
        for ((pid, n), entry) in &mut figures {
            if let Some(kind) = too_much(*n, entry.usage, known.devices) {
                let why = format!("the driver counts more {kind} for it than device {n} has");
                trouble.add(Path::new(&format!("/proc/{pid}")), why);
                entry.usage = Usage::default();
            }
        }
        figures
    }

    /// How busy each process keeps each engine of a device, by the sum of its clients.
    fn utilization(&mut self, clients: &Clients) -> BTreeMap<(u32, u32, String), Option<f64>> {
        let mut percents: BTreeMap<(u32, u32, String), Option<f64>> = BTreeMap::new();
        let mut earlier = std::mem::take(&mut self.engines);
        for ((n, client), (pid, file)) in clients {
            for (name, counters) in &file.info.engines {
                let key = (*n, *client, name.clone());
                let (percent, kept) = busy(earlier.remove(&key), *counters, file.read);
                self.engines.insert(key, kept);
                let sum = percents.entry((*pid, *n, name.clone())).or_default();
                *sum = sum.map_or(percent, |sum| Some(sum + percent.unwrap_or(0.0)));
            }
        }
        percents
    }
}

/// By device and client, the process that it counts for and one of its files there.
type Clients<'a> = BTreeMap<(u32, Client), (u32, &'a DeviceFd)>;

/// Every client once, with the process that it counts for and one of its files there.
fn clients<'a>(replies: &'a BTreeMap<u32, FdinfoReply>, known: &Facts, trouble: &mut Trouble) -> Clients<'a> {
    let mut clients = Clients::new();
    let mut remarks: BTreeMap<String, PathBuf> = BTreeMap::new();
    for (pid, file) in files(replies) {
        let mut remark = |why: String| {
            remarks.entry(why).or_insert_with(|| file.path.clone());
        };
        file.info
            .strange
            .iter()
            .for_each(|line| remark(format!("not in the form of the kernel's DRM usage stats: {line:?}")));
        for region in &file.info.unknown_regions {
            remark(format!("memory region {region:?} is an unknown kind of device memory: ignored"));
        }
        let Some(n) = device_of(file, known.devices) else {
            let address = file.info.pci_address.as_deref().unwrap_or_default();
            remark(format!("names {address:?}, which is no device of this machine"));
            continue;
        };
        let client = match file.info.client {
            Some(number) => Client::Number(number),
            None => {
                let of_process = files(replies).filter(|(owner, _)| *owner == pid);
                if of_process.filter(|(_, other)| device_of(other, known.devices) == Some(n)).count() > 1 {
                    remark("has no drm-client-id: it is not known whether its files are one client or several".into());
                    continue;
                }
                Client::Of(pid)
            }
        };
        let rank = |pid: u32| {
            let is_holder = known.holders.get(&n).is_some_and(|holders| holders.contains(&pid));
            (!is_holder, known.processes.get(&pid).map_or(u64::MAX, |facts| facts.stat.start_ticks), pid)
        };
        match clients.get(&(n, client)) {
            Some((owner, _)) if rank(*owner) <= rank(pid) => {}
            _ => drop(clients.insert((n, client), (pid, file))),
        }
    }
    remarks.into_iter().for_each(|(why, path)| trouble.add(&path, why));
    clients
}

fn files(replies: &BTreeMap<u32, FdinfoReply>) -> impl Iterator<Item = (u32, &DeviceFd)> {
    let files = replies.iter().filter_map(|(pid, reply)| match reply {
        FdinfoReply::Files(files) => Some((pid, files)),
        _ => None,
    });
    files.flat_map(|(pid, files)| files.iter().map(|file| (*pid, file)))
}

/// The device of a file: the one with its address, or the one of its name.
fn device_of(file: &DeviceFd, devices: &[Device]) -> Option<u32> {
    let is_it = |device: &&Device| match (&file.info.pci_address, &device.pci_address) {
        (Some(given), Some(address)) => given.eq_ignore_ascii_case(&address.0),
        (Some(_), None) => false,
        (None, _) => device.id == DeviceId::Local(file.n),
    };
    let mut local = devices.iter().filter(|device| matches!(device.id, DeviceId::Local(_)));
    local.find(is_it).and_then(|device| device.id.index())
}

/// How busy an engine was since it was last read, and what to remember of it.
fn busy(
    earlier: Option<(EngineCounters, Instant)>,
    counters: EngineCounters,
    now: Instant,
) -> (Option<f64>, (EngineCounters, Instant)) {
    match earlier {
        // The rules ask to stay with the larger value until it is reached again.
        Some((before, then)) if counters.fell_since(&before) && now - then < CATCHES_UP => (None, (before, then)),
        Some((before, then)) => (engine_percent(&before, &counters, (now - then).as_secs_f64()), (counters, now)),
        None => (None, (counters, now)),
    }
}

/// The kind of which the chip does not have so much.
fn too_much(n: u32, usage: Usage, devices: &[Device]) -> Option<&'static str> {
    let memory = &devices.iter().find(|device| device.id == DeviceId::Local(n))?.memory;
    let exceeds = |bytes: Option<model::Bytes>, total: Option<model::Bytes>| matches!((bytes, total), (Some(b), Some(t)) if b > t);
    if exceeds(usage.dram_used, memory.dram_total) {
        Some("DRAM")
    } else if exceeds(usage.l1_used, memory.l1_total) {
        Some("L1")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fdinfo;
    use model::{Bytes, PciAddress};

    /// A machine with devices 0 and 1, and processes by pid and start.
    struct Scene {
        devices: Vec<Device>,
        holders: BTreeMap<u32, BTreeSet<u32>>,
        processes: BTreeMap<u32, ProcessFacts>,
        accounting: Accounting,
        start: Instant,
    }

    fn scene(holders: &[(u32, &[u32])], starts: &[(u32, u64)]) -> Scene {
        let device = |n: u32| {
            let mut device = Device::new(DeviceId::Local(n));
            device.pci_address = Some(PciAddress(format!("0000:0{}:00.0", n + 1).into()));
            device.memory.dram_total = Some(Bytes(1 << 30));
            device
        };
        Scene {
            devices: vec![device(0), device(1)],
            holders: holders.iter().map(|(n, pids)| (*n, pids.iter().copied().collect())).collect(),
            processes: starts.iter().map(|(pid, at)| (*pid, ProcessFacts::made_up(*pid, *pid, *at, &[]))).collect(),
            accounting: Accounting::default(),
            start: Instant::now(),
        }
    }

    impl Scene {
        /// What is made of files, each `pid n: key value; key value`, read so many milliseconds after the start.
        fn seen(&mut self, milliseconds: u64, files: &[&str]) -> String {
            let mut replies: BTreeMap<u32, FdinfoReply> = BTreeMap::new();
            for (fd, line) in files.iter().enumerate() {
                let (whose, text) = line.split_once(": ").unwrap();
                let (pid, n) = whose.split_once(' ').unwrap();
                let lines: String =
                    text.split("; ").map(|line| format!("drm-{}\n", line.replacen(' ', ": ", 1))).collect();
                let file = DeviceFd {
                    path: PathBuf::from(format!("/proc/{pid}/fdinfo/{fd}")),
                    n: n.parse().unwrap(),
                    info: fdinfo::parse(format!("drm-driver: tenstorrent\n{lines}").as_bytes()).unwrap(),
                    read: self.start + Duration::from_millis(milliseconds),
                };
                match replies.entry(pid.parse().unwrap()).or_insert(FdinfoReply::Files(Vec::new())) {
                    FdinfoReply::Files(files) => files.push(file),
                    _ => unreachable!(),
                }
            }
            let mut trouble = Trouble::default();
            let known = Facts { devices: &self.devices, holders: &self.holders, processes: &self.processes };
            let figures = self.accounting.figures(&replies, &BTreeMap::new(), &known, &mut trouble);
            let mut words = Vec::new();
            for ((pid, n), Accounted { usage, percent }) in figures {
                let dram = usage.dram_used.map_or("?".into(), |bytes| bytes.0.to_string());
                words.push(format!("{pid}@{n}={dram}{}", percent.map(|p| format!(" {p}%")).unwrap_or_default()));
            }
            words.extend(trouble.faults.iter().map(|fault| format!("{}: {}", fault.path, fault.reason)));
            words.join(", ")
        }
    }

    #[test]
    fn descriptors_of_one_client_count_once() {
        let mut scene = scene(&[(0, &[7])], &[(7, 1)]);
        let file = "7 0: pdev 0000:01:00.0; client-id 5; memory-dram 100";
        assert_eq!(scene.seen(0, &[file, file, file]), "7@0=100");
        let second = "7 0: pdev 0000:01:00.0; client-id 6; memory-dram 20";
        assert_eq!(scene.seen(0, &[file, second, file]), "7@0=120", "two openings are two clients");
        let elsewhere = "7 1: pdev 0000:02:00.0; client-id 5; memory-dram 3";
        assert_eq!(scene.seen(0, &[file, elsewhere]), "7@0=100, 7@1=3", "numbers are of one device");
    }

    #[test]
    fn a_descriptor_that_was_passed_on_counts_for_the_holder_and_of_two_for_the_elder() {
        let (mine, theirs) = ("9 0: client-id 5; memory-dram 100", "7 0: client-id 5; memory-dram 100");
        assert_eq!(scene(&[(0, &[7, 9])], &[(7, 2), (9, 1)]).seen(0, &[theirs, mine]), "9@0=100");
        assert_eq!(scene(&[(0, &[7, 9])], &[(7, 1), (9, 2)]).seen(0, &[theirs, mine]), "7@0=100");
        assert_eq!(scene(&[(0, &[7])], &[(7, 2), (9, 1)]).seen(0, &[theirs, mine]), "7@0=100");
        assert_eq!(scene(&[(0, &[7])], &[(7, 2), (9, 1)]).seen(0, &[mine]), "9@0=100", "the holder has closed it");
    }

    #[test]
    fn the_address_says_which_device_and_without_one_the_name() {
        let mut scene = scene(&[(0, &[7]), (1, &[7])], &[(7, 1)]);
        assert_eq!(scene.seen(0, &["7 0: pdev 0000:02:00.0; client-id 1; memory-dram 5"]), "7@1=5");
        assert_eq!(scene.seen(0, &["7 1: client-id 1; memory-dram 5"]), "7@1=5");
        assert_eq!(
            scene.seen(0, &["7 1: pdev 0000:99:00.0; client-id 1; memory-dram 5"]),
            r#"/proc/7/fdinfo/0: names "0000:99:00.0", which is no device of this machine"#
        );
    }

    #[test]
    fn files_without_a_number_count_when_there_is_one() {
        let mut scene = scene(&[(0, &[7])], &[(7, 1)]);
        assert_eq!(scene.seen(0, &["7 0: memory-dram 5"]), "7@0=5");
        assert_eq!(
            scene.seen(0, &["7 0: memory-dram 5", "7 0: memory-dram 5"]),
            "/proc/7/fdinfo/0: has no drm-client-id: it is not known whether its files are one client or several"
        );
    }

    #[test]
    fn what_is_not_known_is_named_once_and_not_guessed() {
        let mut scene = scene(&[(0, &[7, 9])], &[(7, 1), (9, 1)]);
        assert_eq!(
            scene.seen(0, &["7 0: client-id 1; total-sram 5", "9 0: client-id 2; total-sram 5; memory-dram 1 GB"]),
            "7@0=?, 9@0=?, /proc/7/fdinfo/0: memory region \"sram\" is an unknown kind of device memory: ignored, \
             /proc/9/fdinfo/1: not in the form of the kernel's DRM usage stats: \"drm-memory-dram: 1 GB\""
        );
        assert_eq!(
            scene.seen(0, &["7 0: client-id 1; memory-dram 1025 MiB"]),
            "7@0=?, /proc/7: the driver counts more DRAM for it than device 0 has"
        );
    }

    #[test]
    fn engine_time_is_utilisation_from_the_second_sample_on() {
        let mut scene = scene(&[(0, &[7])], &[(7, 1)]);
        assert_eq!(scene.seen(0, &["7 0: client-id 1; engine-compute 0 ns"]), "7@0=?");
        assert_eq!(scene.seen(1000, &["7 0: client-id 1; engine-compute 250000000 ns"]), "7@0=? 25%");
        let two = ["7 0: client-id 1; engine-compute 750000000 ns", "7 0: client-id 2; engine-compute 100 ns"];
        assert_eq!(scene.seen(2000, &two), "7@0=? 50%", "of the new client nothing is known yet");
        let two = ["7 0: client-id 1; engine-compute 850000000 ns", "7 0: client-id 2; engine-compute 300000100 ns"];
        assert_eq!(scene.seen(3000, &two), "7@0=? 40%", "clients share an engine");
        assert_eq!(scene.seen(4000, &["9 0: client-id 2; engine-compute 300000100 ns"]), "9@0=? 0%", "passed on");
    }

    #[test]
    fn the_busiest_engine_counts() {
        let mut scene = scene(&[(0, &[7])], &[(7, 1)]);
        let at =
            |compute: u64, copy: u64| format!("7 0: client-id 1; engine-compute {compute} ns; engine-copy {copy} ns");
        scene.seen(0, &[&at(0, 0)]);
        assert_eq!(scene.seen(1000, &[&at(200_000_000, 900_000_000)]), "7@0=? 90%");
    }

    #[test]
    fn a_counter_that_goes_back_stays_where_it_was_until_it_is_reached_again() {
        let mut scene = scene(&[(0, &[7])], &[(7, 1)]);
        let at = |ms: u64| format!("7 0: client-id 1; engine-compute {} ns", ms * 1_000_000);
        scene.seen(0, &[&at(1000)]);
        assert_eq!(scene.seen(1000, &[&at(900)]), "7@0=?");
        assert_eq!(scene.seen(2000, &[&at(2000)]), "7@0=? 50%", "over both seconds");
        assert_eq!(scene.seen(3000, &[&at(0)]), "7@0=?");
        assert_eq!(scene.seen(13_000, &[&at(100)]), "7@0=?", "it has restarted");
        assert_eq!(scene.seen(14_000, &[&at(200)]), "7@0=? 10%");
    }
}
