//! Puts together what the sources have found: one snapshot out of readings, holders, processes and memory books.

use crate::attribution::{self, Baselines, Division, divide};
use crate::books;
use crate::chips::{chip_of_book, chips_of};
use crate::dir::Trouble;
use crate::kernel::{Figures, Kernel, Known};
use crate::open_files::Asking;
use crate::procs::{Clock, ProcessFacts};
use crate::sampler::{Job, Round, Shared};
use crate::shm::Kinds;
use ledger::book::BufferKind;
use model::{
    Board, Bytes, Device, DeviceId, Fault, Held, Process, SCHEMA, Snapshot, Source, State, Timestamp, Usage,
    chip_match, cpu_percent,
};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// What the next snapshot needs of the last.
#[derive(Default)]
pub(crate) struct Assembly {
    baselines: Baselines,
    kernel: Kernel,
    /// CPU time by pid and start, and when it was read.
    cpu: HashMap<(u32, u64), (u64, Instant)>,
}

/// Who holds one device.
#[derive(Default)]
struct Holding {
    living: BTreeSet<u32>,
    /// Openers that cannot be named: in other PID namespaces, or dead with the file passed on to a child.
    nameless: u32,
}

impl Assembly {
    pub fn snapshot(&mut self, shared: &Shared, round: Round, mut trouble: Trouble) -> Snapshot {
        let now = Instant::now();
        let clock = Clock::now();
        let waited = format!("no answer within {} ms", round.deadline.as_millis());
        trouble.faults.extend(round.late.iter().map(|job| match job {
            Job::Device(n) => Fault::new(format!("/dev/tenstorrent/{n}"), &waited),
            Job::Process(pid) | Job::Map(pid) => Fault::new(format!("/proc/{pid}"), &waited),
            Job::Files(pid) => Fault::new(format!("/proc/{pid}/fdinfo"), &waited),
        }));
        let mut devices = all_devices(shared, &round, &mut trouble);
        let mut holdings: BTreeMap<u32, Holding> = BTreeMap::new();
        let this = std::process::id();
        for device in &mut devices {
            let DeviceId::Local(n) = device.id else { continue };
            if let Some(holders) = shared.holders.get(&n).filter(|_| round.listed.contains_key(&n)) {
                let (living, gone) = living(this, n, &holders.pids, shared, &round, &mut trouble);
                device.foreign_holders = holders.foreign;
                device.in_use_by_pid =
                    shared.shm.locks.get(&n).and_then(|owner| called(*owner, &living, &shared.processes));
                // An opener is an open file, and tt-umd opens a device twice: how many processes it is cannot be told.
                let nameless = u32::from(holders.foreign > 0) + gone;
                holdings.insert(n, Holding { living, nameless });
            }
        }
        let mut held: BTreeMap<u32, Vec<Held>> = BTreeMap::new();
        for (n, holding) in &holdings {
            holding.living.iter().for_each(|pid| hold(&mut held, *pid, DeviceId::Local(*n), None));
        }
        open_books(shared, &devices, &holdings, &mut held, &mut trouble);
        self.count(shared, &devices, &holdings, &mut held, &mut trouble);
        name_the_closed(shared, round.asking, &held, &mut trouble);
        self.share_out(shared, &mut devices, &holdings, &mut held, &clock, &mut trouble);
        let processes = held.into_iter().map(|(pid, devices)| match shared.processes.get(&pid) {
            Some(facts) => self.process(facts, devices, &clock, now),
            // It did not let itself be read in time.
            None => Process { devices, ..Process::new(pid) },
        });
        let processes = processes.collect();
        self.cpu.retain(|(pid, _), _| shared.processes.contains_key(pid));
        trouble.faults.sort();
        trouble.faults.dedup();
        let (schema, taken_at, host) = (SCHEMA, now_on_the_wall(), round.host);
        Snapshot { schema, taken_at, host, devices, processes, faults: trouble.faults, alerts: Vec::new() }
    }

    /// Takes what the driver counts for processes that keep no book.
    fn count(
        &mut self,
        shared: &Shared,
        devices: &[Device],
        holdings: &BTreeMap<u32, Holding>,
        held: &mut BTreeMap<u32, Vec<Held>>,
        trouble: &mut Trouble,
    ) {
        let holders = holdings.iter().map(|(n, holding)| (*n, &holding.living)).collect();
        let known = Known { devices, holders: &holders, processes: &shared.processes };
        for ((pid, n), Figures { usage, percent }) in
            self.kernel.figures(&shared.told, &shared.counted, &known, trouble)
        {
            let entry = entry(held, pid, DeviceId::Local(n));
            entry.utilization_percent = percent;
            if usage.total().is_some() && entry.source != Some(Source::Exact) {
                (entry.usage, entry.source) = (usage, Some(Source::Kernel));
            }
        }
    }

    /// Divides every region among its processes and adds up what each device has in use.
    fn share_out(
        &mut self,
        shared: &Shared,
        devices: &mut [Device],
        holdings: &BTreeMap<u32, Holding>,
        held: &mut BTreeMap<u32, Vec<Held>>,
        clock: &Clock,
        trouble: &mut Trouble,
    ) {
        let holders: BTreeMap<u32, &BTreeSet<u32>> =
            holdings.iter().map(|(n, holding)| (*n, &holding.living)).collect();
        let mut books: BTreeMap<DeviceId, Vec<Option<Division>>> = BTreeMap::new();
        self.baselines.keep(|inode| shared.shm.regions.contains_key(inode));
        let chips = chips_of(&shared.shm.regions, devices, &holders, &shared.processes);
        for (inode, found) in &shared.shm.regions {
            let chip = chips.get(inode).cloned();
            let Some((chip, n)) = chip.and_then(|chip| Some((chip.clone(), chip.gateway()?))) else {
                let nameless = devices.iter().any(|device| device.serial.is_none());
                trouble.add(
                    &found.path,
                    match devices.iter().any(|device| chip_match(device, found.number).is_some()) {
                        true => "belongs to one of several chips, and nothing tells to which",
                        false if nameless => "belongs to no device that tells its serial now",
                        false => "belongs to no device of this machine",
                    },
                );
                continue;
            };
            let division = found.region.as_ref().map(|region| {
                let of_device = holders.get(&n).into_iter().copied().flatten().copied();
                let closed = |pid: &u32| shared.processes.get(pid).is_some_and(|process| process.maps.is_err());
                let closed: Vec<u32> = of_device.filter(closed).collect();
                let unread = |holding: &Holding| holding.living.iter().any(|pid| !shared.processes.contains_key(pid));
                let nameless = holdings.get(&n).is_some_and(|holding| holding.nameless > 0 || unread(holding));
                divide(*inode, region, &shared.processes, &closed, nameless, clock, &mut self.baselines)
            });
            for reason in division.iter().flat_map(|division| &division.reasons) {
                trouble.add(&found.path, reason);
            }
            for (pid, usage) in division.iter().flat_map(|division| &division.by_process) {
                hold(held, *pid, chip.clone(), *usage);
            }
            books.entry(chip).or_default().push(division);
        }
        for device in devices {
            let books = books.get(&device.id).map_or(&[][..], Vec::as_slice);
            let holding = device.id.gateway().and_then(|n| holdings.get(&n)).filter(|_| shared.shm.listed);
            add_up(device, books, holding, held);
        }
    }

    fn process(&mut self, facts: &ProcessFacts, devices: Vec<Held>, clock: &Clock, now: Instant) -> Process {
        let ProcessFacts { pid, stat, status, .. } = facts;
        let earlier = self.cpu.insert((*pid, stat.start_ticks), (stat.cpu_ticks, now));
        let cpu = earlier.and_then(|(ticks, then)| {
            cpu_percent(clock.seconds(ticks), clock.seconds(stat.cpu_ticks), (now - then).as_secs_f64())
        });
        Process {
            pid: *pid,
            parent_pid: stat.parent,
            user: facts.user.clone(),
            name: Some(stat.name.clone()),
            command: facts.command.0.clone(),
            container: facts.container.clone(),
            runtime: facts.maps.as_ref().ok().and_then(|maps| maps.runtime),
            started_at: Some(clock.timestamp(stat.start_ticks)),
            host_memory: status.resident,
            host_cpu_percent: cpu,
            agent: facts
                .book
                .as_ref()
                .ok()
                .and_then(Option::as_ref)
                .and_then(|found| found.book.as_ref().ok())
                .map(|book| book.producer.clone()),
            devices,
        }
    }
}

/// The devices as they are known now: read, stale, lost, remote or without a driver.
fn all_devices(shared: &Shared, round: &Round, trouble: &mut Trouble) -> Vec<Device> {
    let Round { began, listed, unbound, .. } = round;
    let mut devices = Vec::new();
    for (n, (reading, when)) in &shared.readings {
        let mut device = reading.device.clone();
        let fresh = when >= began;
        let age = if fresh { 0.0 } else { when.elapsed().as_secs_f64() };
        device.sample_age_seconds = Some((age * 1000.0).round() / 1000.0);
        if !fresh {
            // A rate is of its moment.
            device.pcie.host_to_device = None;
            device.pcie.device_to_host = None;
        }
        match listed.contains_key(n) {
            true if fresh => trouble.faults.extend(reading.trouble.faults.iter().cloned()),
            true => device.state = State::Silent,
            false => device.state = State::Lost,
        }
        devices.push(device);
    }
    for (n, link) in listed.iter().filter(|(n, _)| !shared.readings.contains_key(n)) {
        let mut device = Device::new(DeviceId::Local(*n));
        device.pci_address = Some(link.address.clone());
        device.state = State::Silent;
        devices.push(device);
    }
    let remote: Vec<Device> = devices.iter().filter_map(remote_chip).collect();
    devices.extend(remote);
    devices.extend(unbound.iter().cloned());
    devices.sort_by(|a, b| a.id.cmp(&b.id));
    devices
}

/// The chip behind this one, of which only the board's knowledge and the memory books tell.
fn remote_chip(device: &Device) -> Option<Device> {
    let (DeviceId::Local(n), board) = (&device.id, Board::named(device.board.as_deref()?)?) else { return None };
    let mut remote = Device::new(DeviceId::Remote(*n));
    remote.pci_address.clone_from(&device.pci_address);
    remote.arch = device.arch;
    remote.board.clone_from(&device.board);
    remote.serial.clone_from(&device.serial);
    remote.state = if device.state == State::Lost { State::Lost } else { State::Remote };
    remote.sample_age_seconds = device.sample_age_seconds;
    remote.numa_node = device.numa_node;
    remote.memory.dram_total = device.memory.dram_total;
    remote.memory.l1_total = device.memory.l1_total;
    board.has_remote_chip().then_some(remote)
}

/// The holders that live, and how many do not: a dead one means that a child inherited its file.
fn living(
    this: u32,
    n: u32,
    pids: &BTreeSet<u32>,
    shared: &Shared,
    round: &Round,
    trouble: &mut Trouble,
) -> (BTreeSet<u32>, u32) {
    let others = pids.iter().copied().filter(|pid| *pid != this);
    let lives = |pid: &u32| shared.processes.contains_key(pid) || round.late.contains(&Job::Process(*pid));
    let (living, gone): (BTreeSet<u32>, BTreeSet<u32>) = others.partition(lives);
    for pid in &gone {
        let reason = format!("pid {pid} is gone, but a process that inherited its open file still holds the device");
        trouble.faults.push(Fault::new(format!("/proc/driver/tenstorrent/{n}/pids"), reason));
    }
    (living, gone.len() as u32)
}

/// The process that calls itself by this number in its own PID namespace, if just one does.
fn called(inner: u32, holders: &BTreeSet<u32>, processes: &BTreeMap<u32, ProcessFacts>) -> Option<u32> {
    let calls_itself_so =
        |pid: &&u32| processes.get(pid).is_some_and(|process| process.status.inner_pid == Some(inner));
    let mut found = holders.iter().filter(calls_itself_so);
    found.next().filter(|_| found.next().is_none()).copied()
}

/// The entry of a process on a chip, made if need be.
fn entry(held: &mut BTreeMap<u32, Vec<Held>>, pid: u32, id: DeviceId) -> &mut Held {
    let devices = held.entry(pid).or_default();
    let at = match devices.binary_search_by(|held| held.id.cmp(&id)) {
        Ok(at) => at,
        Err(at) => {
            devices.insert(at, Held::new(id));
            at
        }
    };
    &mut devices[at]
}

/// Notes that a process holds a chip, and what its region says unless something better is known.
fn hold(held: &mut BTreeMap<u32, Vec<Held>>, pid: u32, id: DeviceId, usage: Option<Usage>) {
    let entry = entry(held, pid, id);
    // What the driver counts of one kind may be another's in a region: they are not mixed.
    if let Some(usage) = usage.filter(|_| entry.source.is_none_or(|source| source == Source::Shm)) {
        entry.usage = entry.usage.plus(usage);
        entry.source = Some(Source::Shm);
    }
}

/// Takes the figures of the processes that keep a book out of it.
fn open_books(
    shared: &Shared,
    devices: &[Device],
    holdings: &BTreeMap<u32, Holding>,
    held: &mut BTreeMap<u32, Vec<Held>>,
    trouble: &mut Trouble,
) {
    let holders: BTreeMap<u32, &BTreeSet<u32>> = holdings.iter().map(|(n, holding)| (*n, &holding.living)).collect();
    let now = now_on_the_wall().0.max(0) as u64 * 1_000_000;
    for (pid, facts) in &shared.processes {
        let Ok(Some(found)) = &facts.book else { continue };
        let book = match &found.book {
            Ok(book) => book,
            Err(why) => {
                trouble.add(&found.path, why);
                continue;
            }
        };
        if let Some(remark) = &book.remark {
            trouble.add(&found.path, remark);
        }
        let mut all_known = book.remark.is_none();
        for chip in &book.chips {
            let id = chip_of_book(chip, facts, devices, &holders);
            let impossible = id.as_ref().and_then(|id| impossible(chip, id, facts, devices, shared, &holders));
            match id {
                Some(_) if impossible.is_some() => {
                    all_known = false;
                    trouble.add(&found.path, impossible.unwrap_or_default());
                }
                Some(id) => {
                    let exact = books::exact(chip, now);
                    let entry = entry(held, *pid, id);
                    (entry.usage, entry.source) = (exact.usage(), Some(Source::Exact));
                    entry.exact = Some(Box::new(exact));
                }
                None => {
                    all_known = false;
                    trouble.add(&found.path, unknown_chip(chip));
                }
            }
        }
        // It has told of everything that it has, so it has nothing on the chips of which it does not tell.
        for entry in held.get_mut(pid).into_iter().flatten().filter(|entry| all_known && entry.source.is_none()) {
            (entry.usage, entry.source) = (Usage::measured(0, 0, 0, 0, 0), Some(Source::Exact));
        }
    }
}

/// Why a process cannot have on a chip what its book says. Somebody else's figures must not suffer from it.
fn impossible(
    chip: &ledger::book::BookChip,
    id: &DeviceId,
    process: &ProcessFacts,
    devices: &[Device],
    shared: &Shared,
    holders: &BTreeMap<u32, &BTreeSet<u32>>,
) -> Option<String> {
    let memory = &devices.iter().find(|device| device.id == *id)?.memory;
    let bytes = |kinds: &[BufferKind]| {
        kinds.iter().fold(0u64, |sum, kind| sum.saturating_add(chip.counters[*kind as usize].bytes))
    };
    let most = |total: Option<Bytes>| total.map_or(u64::MAX, |total| total.0);
    // Where the driver does not list who holds a device, nobody is known to hold it.
    let is_held = id.gateway().and_then(|n| holders.get(&n)).is_none_or(|holders| holders.contains(&process.pid));
    // A child that inherited the device is not listed, but has the chip's region.
    let mut regions = process.maps.iter().flat_map(|maps| &maps.regions);
    let is_heir = regions.any(|(inode, n)| Some(*n) == chip.unique_id && shared.shm.regions.contains_key(inode));
    let has_any = bytes(&BufferKind::ALL) > 0;
    if has_any && !is_held && !is_heir {
        Some(format!("it tells of device {id}, which the process does not hold"))
    } else if bytes(&[BufferKind::Dram, BufferKind::Trace]) > most(memory.dram_total) {
        Some(format!("it tells of more DRAM than device {id} has"))
    } else if bytes(&[BufferKind::L1, BufferKind::L1Small]) > most(memory.l1_total) {
        Some(format!("it tells of more L1 than device {id} has"))
    } else {
        None
    }
}

fn unknown_chip(chip: &ledger::book::BookChip) -> String {
    let logical = chip.device_id;
    match chip.unique_id {
        Some(number) => {
            format!("its device {logical} (chip {number}) cannot be matched with one device of this machine")
        }
        None => format!("nothing tells which device of this machine its device {logical} is"),
    }
}

/// Says whose processes may not be looked into, one line for each user.
fn name_the_closed(shared: &Shared, asking: &Asking, held: &BTreeMap<u32, Vec<Held>>, trouble: &mut Trouble) {
    let mut closed: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for (pid, facts) in shared.processes.iter().filter(|(pid, _)| held.contains_key(pid)) {
        if matches!(facts.book, Err(Errno::ACCESS | Errno::PERM)) || asking.is_closed(*pid) {
            closed.entry(facts.user.as_deref().unwrap_or("another user")).or_default().push(*pid);
        }
    }
    for (user, pids) in closed {
        let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
        let reason = format!("belongs to {user}: run as that user or as root to see its device memory");
        trouble.add(Path::new(&format!("/proc/{}", pids.join(","))), reason);
    }
}

/// Adds up one chip's books. Without a holding it is not known who holds the chip.
fn add_up(device: &mut Device, books: &[Option<Division>], holding: Option<&Holding>, held: &BTreeMap<u32, Vec<Held>>) {
    let remote = device.id.index().is_none();
    // A process that keeps books of its other chips says by that that it has nothing on a remote one.
    let tells = |pid: &&u32| {
        let mut chips = held.get(pid).into_iter().flatten();
        // The driver counts for the chips that it drives, and for no other.
        let tells_of_all = |source: Source| remote && source != Source::Kernel;
        chips.any(|held| held.source.is_some_and(|source| held.id == device.id || tells_of_all(source)))
    };
    let readable: Vec<&Division> = books.iter().flatten().collect();
    let living = holding.map(|holding| &holding.living);
    let untold = living.into_iter().flatten().filter(|pid| !tells(pid)).count() as u32;
    // A child that inherited a device from a dead process keeps books of its own.
    let attached = readable.iter().flat_map(|division| division.by_process.keys());
    let heirs = attached.filter(|pid| living.is_none_or(|living| !living.contains(pid))).count() as u32;
    let nameless = holding.map_or(0, |holding| holding.nameless).saturating_sub(heirs);
    let memory = &mut device.memory;
    memory.untracked_processes = untold + nameless;
    let somebody_tells = readable.iter().any(|division| !division.by_process.is_empty())
        || living.into_iter().flatten().any(|pid| tells(&pid));
    if somebody_tells || (holding.is_some() && memory.untracked_processes == 0) {
        memory.count(used(&device.id, &readable, held));
    }
    let all_known = books.len() == readable.len() && holding.is_some();
    memory.stale = readable.iter().map(|division| division.stale).sum::<Option<Bytes>>().filter(|_| all_known);
}

/// What all processes have on a chip, each by the best that is known of it.
fn used(id: &DeviceId, divisions: &[&Division], held: &BTreeMap<u32, Vec<Held>>) -> Usage {
    let here = |pid: &u32| held.get(pid).into_iter().flatten().find(|held| held.id == *id);
    let holders = || held.keys().filter_map(here);
    let mut used = holders().map(|held| held.usage).fold(Usage::default(), Usage::plus);
    for (owners, bytes) in divisions.iter().flat_map(|division| &division.shared) {
        let is_counted = |source: Source| source != Source::Shm;
        if owners.iter().any(|pid| !here(pid).and_then(|held| held.source).is_some_and(is_counted)) {
            used = used.plus(attribution::usage(*bytes));
        }
    }
    // Where no process reports, nothing is used; where only the driver counts, a kind that it leaves out is not known.
    let nobody_reports = holders().all(|held| held.source.is_none());
    if nobody_reports { used.plus(attribution::usage(Kinds::default())) } else { used }
}

fn now_on_the_wall() -> Timestamp {
    Timestamp(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64))
}
