//! What the service knows: running processes, what they reported, their books, the last sample, and exits.

use super::buffers::{self, BufferPage};
use super::exits::{self, Exits, held_by_book};
use super::live_processes::{Key, LiveProcess, Processes, lives};
use super::merge;
use super::poller::Poller;
use alerts::log::{LogLevel, log};
use ledger::book::BookError;
use ledger::poc::{Accounts, DeviceInfo, Kinds, MostBuffers};
use ledger::wire::Wanted;
use model::figure::process::HELD_BYTES;
use model::{Arch, Device, Fault, Held, Process, Snapshot, Source};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use watch::handover::book_in;
use watch::rules::RuleWatch;
use watch::service_limits::ServiceLimits;

/// Everything that the service knows. Sockets are elsewhere.
pub struct ServiceState {
    pub poller: Poller,
    pub processes: Processes,
    pub accounts: Accounts<Key>,
    pub exits: Exits,
    pub watch: RuleWatch,
    /// The last sample, without the processes that exited since.
    sample: Snapshot,
    pub sampled_at: Instant,
    /// The clients of the user who asks have left much unread.
    pub is_crowded: bool,
    /// A client wants a fresh sample.
    pub wants_sample: bool,
    /// When what remains was last printed, and when the kernels were.
    printed: HashMap<&'static str, Instant>,
    /// What is known of processes without their reports, and when it was read. Questions come in quick succession, and reading all
    /// books takes longer than asking for the sum.
    others: Cell<Option<(Instant, Snapshot)>>,
}

impl ServiceState {
    pub fn new(poller: Poller, limits: &ServiceLimits, watch: RuleWatch, sample: Snapshot) -> ServiceState {
        let accounts = Accounts::new(most_buffers(limits));
        let exits = Exits::up_to(limits.deaths);
        let empty = Snapshot { processes: Vec::new(), ..sample.clone() };
        let mut state = ServiceState {
            poller,
            processes: Processes::default(),
            accounts,
            exits,
            watch,
            sample: empty,
            sampled_at: Instant::now(),
            is_crowded: false,
            wants_sample: false,
            printed: HashMap::new(),
            others: Cell::new(None),
        };
        state.take_sample(state.sampled_at, sample);
        state
    }

    /// The process that has this pid now.
    pub fn know(&mut self, pid: u32) -> Option<Key> {
        self.processes.know(pid, &self.poller)
    }

    /// Takes a new sample: the processes in it are watched from now on.
    pub fn take_sample(&mut self, began: Instant, mut sample: Snapshot) {
        self.sampled_at = began;
        self.others.set(None);
        for live in self.processes.all.values_mut() {
            live.sampled = None;
            // A name that was not at hand may have been found.
            live.identity.process.user = live.identity.uid.map(sources::user_name);
        }
        let mut exited = Vec::new();
        for process in &sample.processes {
            let key = self.processes.know(process.pid, &self.poller);
            let Some(live) = key.and_then(|key| self.processes.all.get_mut(&key)) else {
                exited.push(process.pid);
                continue;
            };
            let began = |process: &Process| process.started_at.map_or(0, |time| time.0);
            // The pid belongs to another process by now.
            if process.started_at.is_some() && began(process).abs_diff(began(&live.identity.process)) > 1000 {
                exited.push(process.pid);
                continue;
            }
            live.sampled = Some(process.devices.clone());
            if process.agent.is_some() && live.book.is_none() {
                live.book = sources::open_book(process.pid, &live.identity);
            }
        }
        exited.into_iter().for_each(|pid| merge::remove(&mut sample, pid));
        self.sample = sample;
        let idle: Vec<Key> = self.processes.all.keys().copied().filter(|key| self.is_idle(*key)).collect();
        idle.into_iter().for_each(|key| drop(self.processes.remove(key)));
    }

    /// Forgets a process without memory, devices and connections.
    pub fn forget_if_idle(&mut self, key: Key) {
        if self.is_idle(key) {
            self.processes.remove(key);
        }
    }

    fn is_idle(&self, key: Key) -> bool {
        let Some(live) = self.processes.all.get(&key) else { return false };
        live.connections == 0
            && live.book.is_none()
            && live.sampled.is_none()
            && self.accounts.get(key).is_none()
            && lives(&live.end)
    }

    /// A process has exited: its bytes are not counted from now on.
    pub fn on_exit(&mut self, key: Key) {
        self.others.set(None);
        let account = self.accounts.end(key);
        let Some(live) = self.processes.remove(key) else { return };
        let holds = |device: &Device| self.holds(&live, device);
        if let Some(exit) = exits::exit_record(key, &live, account.as_ref(), &self.sample.devices, holds, now()) {
            let bytes = exit.usage().total().map_or(0, |bytes| bytes.0);
            log(LogLevel::Info, "death", &[("pid", &key.0), ("bytes", &bytes)]);
            self.exits.add(exit);
        }
        if live.sampled.is_some() {
            merge::remove(&mut self.sample, key.0);
        }
    }

    pub fn take_book(&mut self, pid: u32, file: File) -> Result<Option<Key>, String> {
        let book = book_in(&file).map_err(|error| format!("the book of pid {pid} was refused: {error}"))?;
        let Some(key) = self.know(pid) else {
            self.exits.add(exits::record_of_book(pid, &file, &self.sample.devices, now()));
            return Ok(None);
        };
        let Some(live) = self.processes.all.get_mut(&key) else { return Ok(None) };
        let identity = &live.identity;
        if book.pid != identity.inner_pid || book.start_ticks.is_some_and(|ticks| ticks != identity.start_ticks) {
            return Err(format!("pid {pid} handed over the book of another process, which was refused"));
        }
        live.book = Some(Arc::new(file));
        self.others.set(None);
        Ok(Some(key))
    }

    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = self.with_books();
        for (key, account) in self.accounts.iter() {
            let Some(live) = self.processes.all.get(key) else { continue };
            let (accepted, mut why) = merge::accepted(account, &snapshot.devices, |device| self.holds(live, device));
            let known = snapshot.processes.iter().find(|process| process.pid == key.0);
            let mut all = Vec::new();
            for (_, held) in accepted {
                let before = known.and_then(|process| process.devices.iter().find(|known| known.id == held.id));
                match merge::exceeds(&held, before, &snapshot.devices) {
                    None => all.push(held),
                    Some(reason) => why.push(reason),
                }
            }
            snapshot.faults.extend(why.into_iter().map(|why| Fault::new(format!("/proc/{}", key.0), why)));
            if !all.is_empty() {
                merge::overlay(&mut snapshot, &live.identity.process, all);
            }
        }
        snapshot.alerts = self.watch.firing().to_vec();
        snapshot
    }

    /// The sample, and the books that were handed over and that the sampler does not see.
    fn with_books(&self) -> Snapshot {
        let mut snapshot = self.sample.clone();
        for (key, live) in &self.processes.all {
            let sampled = live.sampled.as_deref().unwrap_or_default();
            let is_exact = sampled.iter().any(|held| held.source == Some(Source::Exact));
            let book = live.book.as_ref().filter(|_| !is_exact).and_then(|file| book_in(file).ok());
            let Some(book) = book.filter(|book| !book.is_inexact) else { continue };
            let mut all = Vec::new();
            for held in held_by_book(&book, &snapshot.devices) {
                match merge::impossible(&held, sampled, &snapshot.devices) {
                    None => all.push(held),
                    Some(why) => snapshot.faults.push(Fault::new(format!("/proc/{}", key.0), why)),
                }
            }
            if !all.is_empty() {
                let process = Process { agent: Some(book.producer.clone()), ..live.identity.process.clone() };
                merge::overlay(&mut snapshot, &process, all);
            }
        }
        snapshot
    }

    /// Whether a process holds a chip. `None` where that cannot be known: the driver does not list it, the process came after the
    /// sample, or has inherited an open file.
    pub fn holds(&self, live: &LiveProcess, device: &Device) -> Option<bool> {
        let gateway = device.id.gateway();
        let is_held = |live: &LiveProcess| live.sampled.iter().flatten().any(|held| held.id.gateway() == gateway);
        let parent = live.identity.process.parent_pid.and_then(|pid| self.processes.by_pid.get(&pid));
        let parent = parent.and_then(|key| self.processes.all.get(key));
        let names_all = |other: &Device| other.id.index() == gateway && other.names_all_holders;
        if is_held(live) {
            return Some(true);
        }
        let is_known = live.since < self.sampled_at && self.sample.devices.iter().any(names_all);
        (is_known && !parent.is_some_and(is_held)).then_some(false)
    }

    /// Allocated bytes by kind on a device, as clients of the proof of concept number them.
    pub fn allocated(&self, number: i32) -> Kinds {
        let has_no_other =
            self.sample.processes.is_empty() && self.processes.all.values().all(|one| one.book.is_none());
        let id = merge::chip_of_number(&self.sample.devices, number).map(|device| device.id.clone());
        let (Some(id), false) = (id, has_no_other) else { return self.accounts.total(number) };
        let fresh = self.others.take().filter(|(read, _)| read.elapsed() < Duration::from_millis(5));
        let others = fresh.unwrap_or_else(|| (Instant::now(), self.with_books()));
        let mut sum = Kinds::default();
        let mut add =
            |kinds: Kinds| sum.iter_mut().zip(kinds).for_each(|(sum, bytes)| *sum = sum.saturating_add(bytes));
        let mut known = HashSet::new();
        for process in &others.1.processes {
            let reported = |pid: u32| self.accounts.get(*self.processes.by_pid.get(&pid)?)?.total(number);
            for held in process.devices.iter().filter(|held| held.id == id) {
                if merge::is_better_than_reported(held) || reported(process.pid).is_none() {
                    known.insert(process.pid);
                    add(kinds(held));
                }
            }
        }
        let reported = self.accounts.iter().filter(|(key, _)| !known.contains(&key.0));
        reported.filter_map(|(_, account)| account.total(number)).for_each(add);
        self.others.set(Some(others));
        sum
    }

    /// What a device is, as clients of the proof of concept number them.
    pub fn device_info(&self, number: i32) -> DeviceInfo {
        let devices = merge::number_of_chips(&self.sample.devices);
        let Some(device) = merge::chip_of_number(&self.sample.devices, number) else {
            // What all of them are is known, if there are any.
            return DeviceInfo { devices, is_available: number == -1 && devices > 0, ..DeviceInfo::default() };
        };
        let bytes = |bytes: Option<model::Bytes>| bytes.map_or(0, |bytes| bytes.0);
        let (total_dram, total_l1) = (bytes(device.memory.dram_total), bytes(device.memory.l1_total));
        // Channels of 1 GiB on Wormhole, of 4 GiB on Blackhole.
        let (architecture, per_channel, l1_per_core) = match device.arch {
            None => (0, 0, 0),
            Some(Arch::Wormhole) => (2, 1u64 << 30, 1_499_136),
            Some(Arch::Blackhole) => (3, 1u64 << 32, 1_572_864),
        };
        DeviceInfo {
            total_dram,
            total_l1,
            architecture,
            dram_channels: total_dram.checked_div(per_channel).unwrap_or(0) as u32,
            dram_per_channel: u32::try_from(per_channel).unwrap_or(u32::MAX),
            l1_per_core,
            is_available: true,
            devices,
        }
    }

    /// Live buffers of all processes.
    pub fn buffers(&self, wanted: &Wanted) -> BufferPage {
        let mut page = BufferPage::new(wanted, now());
        let devices = &self.sample.devices;
        for (key, live) in self.processes.all.iter().filter(|(key, _)| wanted.pid.is_none_or(|pid| key.0 == pid)) {
            let from_book = live.book.as_ref().map(|file| {
                let book = book_in(file)?;
                buffers::add_book(&mut page, key.0, file, &book, devices)?;
                page.unlisted = book.untabled.saturating_add(page.unlisted);
                Ok::<(), BookError>(())
            });
            // A book is better than reports.
            match from_book {
                Some(Ok(())) => continue,
                Some(Err(error)) => page.faults.push(format!("the book of pid {}: {error}", key.0)),
                None => {}
            }
            if let Some(account) = self.accounts.get(*key) {
                buffers::add_account(&mut page, key.0, account, devices, |_| true);
                page.unlisted = account.refused.saturating_add(page.unlisted);
            }
        }
        page
    }

    /// Prints what is still allocated, one line for each process and device. Repeated requests do not fill the log.
    pub fn print_remaining(&mut self, only_kernels: bool) {
        let event = if only_kernels { "kernels" } else { "remaining" };
        if self.printed.get(event).is_some_and(|last| last.elapsed() < Duration::from_secs(1)) {
            return;
        }
        self.printed.insert(event, Instant::now());
        for (key, account) in self.accounts.iter() {
            for (device, bytes) in account.totals() {
                let kinds: Vec<_> = HELD_BYTES.fields().map(|field| field.name()).zip(bytes).collect();
                let mut fields: Vec<(&str, &dyn Display)> = vec![("pid", &key.0), ("device", &device)];
                let shown = if only_kernels { &kinds[kinds.len() - 1..] } else { &kinds[..] };
                fields.extend(shown.iter().map(|(name, bytes)| (&**name, bytes as &dyn Display)));
                let buffers = account.buffers_on(device);
                if !only_kernels {
                    fields.push(("buffers", &buffers));
                }
                log(LogLevel::Info, event, &fields);
            }
        }
    }
}

pub fn most_buffers(limits: &ServiceLimits) -> MostBuffers {
    MostBuffers { process: limits.buffers_per_process, user: limits.buffers_per_user }
}

fn kinds(held: &Held) -> Kinds {
    let usage = held.usage;
    // What the driver counts has no parts: there it is all of what is in use.
    let (dram, l1) = (usage.dram.or(usage.dram_used), usage.l1.or(usage.l1_used));
    let bytes = [dram, l1, usage.l1_small, usage.trace, usage.cb];
    let [dram, l1, l1_small, trace, cb] = bytes.map(|bytes| bytes.map_or(0, |bytes| bytes.0));
    let kernel = held.exact.as_ref().and_then(|exact| exact.kernel).map_or(0, |kernel| kernel.bytes.0);
    [dram, l1, l1_small, trace, cb, kernel]
}

/// Nanoseconds since 1970, as books count.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}
