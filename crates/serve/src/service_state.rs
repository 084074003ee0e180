//! What the service knows: running processes, what they reported, their books, the last sample, and exits.

use super::background::{Background, Lane, Outcome};
use super::exits::{self, Exits};
use super::live_processes::{Key, LiveProcess, Processes, lives};
use super::merge;
use super::poller::Poller;
use super::view::{BookMemory, ServiceView, holds, now};
use alerts::log::{LogLevel, log};
use ledger::poc::{Accounts, DeviceInfo, Kinds, MostBuffers};
use model::figure::process::HELD_BYTES;
use model::{Arch, Device, DeviceId, ExitRecord, Fault, Held, Process, Snapshot};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use watch::handover::book_in;
use watch::rules::RuleWatch;
use watch::service_limits::ServiceLimits;
use web::Published;

/// Everything that the service knows. Sockets are elsewhere.
pub struct ServiceState {
    pub poller: Poller,
    pub processes: Processes,
    pub accounts: Accounts<Key>,
    pub exits: Exits,
    pub watch: RuleWatch,
    /// Where events are kept, while something is served over HTTP.
    pub board: Option<Arc<Published>>,
    /// The last sample, without the processes that exited since.
    sample: Arc<Snapshot>,
    pub sampled_at: Instant,
    devices: Arc<[Device]>,
    /// The clients of the user who asks have left much unread.
    pub is_crowded: bool,
    /// A client wants a fresh sample.
    pub wants_sample: bool,
    /// The folder of the black box, where one is kept.
    pub black_box: Option<PathBuf>,
    /// Why nothing is written to the black box.
    pub black_box_fault: Option<Fault>,
    /// When what remains was last printed, and when the kernels were.
    printed: HashMap<&'static str, Instant>,
    pub background: Background,
    /// What books say that the sampler does not see, as they were last read.
    books: BookMemory,
    is_reading_books: bool,
    reads_books_again: bool,
    /// What processes have without their reports. Absent when it has changed.
    others: Option<Others>,
}

/// What is known of processes without their reports.
struct Others {
    /// By device and pid, and whether it is better than a report.
    by_device: HashMap<DeviceId, BTreeMap<u32, (bool, Kinds)>>,
    has_loose_books: bool,
}

/// Books that were read so long ago are read again when a client asks for a sum.
const CURRENT: Duration = Duration::from_millis(5);
/// As many lines as are printed of what is allocated.
const MOST_PRINTED: usize = 100;

impl Others {
    fn of(sample: &Snapshot, processes: &Processes, books: &BookMemory) -> Others {
        let mut by_device: HashMap<DeviceId, BTreeMap<u32, &Held>> = HashMap::new();
        for process in &sample.processes {
            for held in &process.devices {
                by_device.entry(held.id.clone()).or_default().insert(process.pid, held);
            }
        }
        for (key, _, all) in books.all.iter().filter(|(key, ..)| processes.all.contains_key(key)) {
            for held in all {
                let known = by_device.entry(held.id.clone()).or_default().entry(key.0).or_insert(held);
                if merge::is_better(held, known) {
                    *known = held;
                }
            }
        }
        let entry = |held: &Held| (merge::is_better_than_reported(held), kinds(held));
        let of_device = |all: BTreeMap<u32, &Held>| all.into_iter().map(|(pid, held)| (pid, entry(held))).collect();
        Others {
            by_device: by_device.into_iter().map(|(id, all)| (id, of_device(all))).collect(),
            has_loose_books: processes.all.values().any(|live| live.has_loose_book()),
        }
    }
}

impl ServiceState {
    pub fn new(
        poller: Poller,
        background: Background,
        limits: &ServiceLimits,
        watch: RuleWatch,
        sample: Snapshot,
    ) -> ServiceState {
        let accounts = Accounts::new(most_buffers(limits));
        let exits = Exits::up_to(limits.deaths);
        let empty = Snapshot { processes: Vec::new(), ..sample.clone() };
        let mut state = ServiceState {
            poller,
            processes: Processes::default(),
            accounts,
            exits,
            watch,
            board: None,
            sample: Arc::new(empty),
            sampled_at: Instant::now(),
            devices: Arc::default(),
            is_crowded: false,
            wants_sample: false,
            black_box: None,
            black_box_fault: None,
            printed: HashMap::new(),
            background,
            books: BookMemory::none(),
            is_reading_books: false,
            reads_books_again: false,
            others: None,
        };
        state.take_sample(state.sampled_at, sample);
        state
    }

    /// The process that has this pid now.
    pub fn know(&mut self, pid: u32) -> Option<Key> {
        let key = self.processes.know(pid, &self.poller)?;
        let live = self.processes.all.get_mut(&key)?;
        if !std::mem::replace(&mut live.asked_command, true) {
            // Whoever reads it may have to wait for the process.
            let command = move || Some(Outcome::Command(key, sources::command_of(key.0, key.1)?));
            self.background.add(Lane::Files(live.identity.uid), command);
        }
        Some(key)
    }

    pub fn take_command(&mut self, key: Key, command: String) {
        if let Some(live) = self.processes.all.get_mut(&key) {
            live.change().identity.process.command = Some(command);
        }
    }

    /// Takes the book that a process keeps, if it could be opened.
    pub fn take_opened(&mut self, key: Key, book: Option<Arc<File>>) {
        let Some(live) = self.processes.all.get_mut(&key) else { return };
        live.asked_book = false;
        if live.book.is_none() && book.is_some() {
            live.change().book = book;
            self.others = None;
        }
    }

    /// Takes a new sample: the processes in it are watched from now on.
    pub fn take_sample(&mut self, began: Instant, mut sample: Snapshot) {
        self.sampled_at = began;
        self.devices = sample.devices.clone().into();
        self.others = None;
        for live in self.processes.all.values_mut() {
            let known = live.change();
            known.sampled = None;
            // A name that was not at hand may have been found.
            known.identity.process.user = known.identity.uid.map(sources::user_name);
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
            let known = live.change();
            known.sampled = Some(process.devices.clone());
            // The sampler reads the names of pods, which may take its time.
            known.identity.process.owner.clone_from(&process.owner);
            if process.command.is_some() {
                known.identity.process.command.clone_from(&process.command);
                live.asked_command = true;
            }
            if process.agent.is_some() && live.book.is_none() && !live.asked_book {
                live.asked_book = true;
                let (pid, known) = (process.pid, live.share());
                let open = move || {
                    Some(Outcome::Book((pid, known.identity.start_ticks), sources::open_book(pid, &known.identity)))
                };
                self.background.add(Lane::Files(live.identity.uid), open);
            }
        }
        exited.into_iter().for_each(|pid| merge::remove(&mut sample, pid));
        self.sample = Arc::new(sample);
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
        self.others = None;
        let account = self.accounts.end(key);
        let Some(live) = self.processes.remove(key) else { return };
        if live.sampled.is_some() {
            merge::remove(Arc::make_mut(&mut self.sample), key.0);
        }
        if live.book.is_none() && live.sampled.is_none() && account.is_none() {
            return;
        }
        let (ended, devices, known, now) = (live.ended(key), self.devices.clone(), live.share(), now());
        let parent = known.identity.process.parent_pid.and_then(|pid| self.processes.by_pid.get(&pid));
        let parent = parent.and_then(|key| self.processes.all.get(key)).map(LiveProcess::share);
        let sampled_at = self.sampled_at;
        // Its buffers are looked through for the largest.
        self.background.add(Lane::Exits, move || {
            let holds = |device: &Device| holds(&devices, sampled_at, &known, parent.as_deref(), device);
            let exit = exits::exit_record(key, &known, account.as_deref(), ended, &devices, holds, now);
            Some(Outcome::Exit(Box::new(exit)))
        });
    }

    pub fn take_exit(&mut self, exit: ExitRecord) {
        let bytes = exit.usage().total().map_or(0, |bytes| bytes.0);
        log(LogLevel::Info, "death", &[("pid", &exit.pid), ("bytes", &bytes)]);
        self.exits.add(exit);
    }

    pub fn take_book(&mut self, pid: u32, file: File) -> Result<Option<Key>, String> {
        let book = book_in(&file).map_err(|error| format!("the book of pid {pid} was refused: {error}"))?;
        let Some(key) = self.know(pid) else {
            let (devices, now) = (self.devices.clone(), now());
            let record = move || Some(Outcome::Exit(Box::new(exits::record_of_book(pid, &file, &devices, now))));
            self.background.add(Lane::Exits, record);
            return Ok(None);
        };
        let Some(live) = self.processes.all.get_mut(&key) else { return Ok(None) };
        let identity = &live.identity;
        if book.pid != identity.inner_pid || book.start_ticks.is_some_and(|ticks| ticks != identity.start_ticks) {
            return Err(format!("pid {pid} handed over the book of another process, which was refused"));
        }
        live.change().book = Some(Arc::new(file));
        self.others = None;
        self.read_books();
        Ok(Some(key))
    }

    pub fn view(&self) -> ServiceView {
        ServiceView {
            sample: self.sample.clone(),
            sampled_at: self.sampled_at,
            processes: self.processes.all.iter().map(|(key, live)| (*key, live.share())).collect(),
            accounts: self.accounts.iter().map(|(key, account)| (*key, account.clone())).collect(),
            alerts: self.watch.firing().to_vec(),
            black_box_fault: self.black_box_fault.clone(),
        }
    }

    /// What is known now, with the books as they were last read.
    pub fn snapshot(&self) -> Snapshot {
        self.view().snapshot_with(&self.books)
    }

    /// Has the books read that the sampler does not see, or read again if that is being done.
    pub fn read_books(&mut self) {
        if self.is_reading_books {
            self.reads_books_again = true;
            return;
        }
        self.is_reading_books = true;
        let view = self.view();
        self.background.add(Lane::Sums, move || Some(Outcome::Books(view.read_books())));
    }

    pub fn take_books(&mut self, books: BookMemory) {
        self.is_reading_books = false;
        if std::mem::take(&mut self.reads_books_again) {
            self.read_books();
        }
        self.books = books;
        self.others = None;
    }

    /// Whether there are books that the sampler does not see.
    pub fn has_loose_books(&mut self) -> bool {
        self.others().has_loose_books
    }

    fn others(&mut self) -> &Others {
        let (sample, processes, books) = (&self.sample, &self.processes, &self.books);
        self.others.get_or_insert_with(|| Others::of(sample, processes, books))
    }

    /// Allocated bytes by kind on a device, as clients of the proof of concept number them.
    pub fn allocated(&mut self, number: i32) -> Kinds {
        let id = merge::chip_of_number(&self.sample.devices, number).map(|device| device.id.clone());
        let Some(id) = id else { return self.accounts.total(number) };
        if self.has_loose_books() && !self.is_reading_books && self.books.read.elapsed() > CURRENT {
            self.read_books();
        }
        let mut sum = self.accounts.sum(number);
        let Some(others) = &self.others else { return self.accounts.total(number) };
        for (pid, (is_better, kinds)) in others.by_device.get(&id).into_iter().flatten() {
            let account = self.processes.by_pid.get(pid).and_then(|key| self.accounts.get(*key));
            let reported = account.and_then(|account| account.sum(number));
            if *is_better || reported.is_none() {
                let reported = reported.unwrap_or_default();
                for ((sum, bytes), reported) in sum.iter_mut().zip(kinds).zip(reported) {
                    *sum = (*sum - reported).saturating_add(u128::from(*bytes));
                }
            }
        }
        sum.map(|bytes| u64::try_from(bytes).unwrap_or(u64::MAX))
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

    /// Prints what is still allocated, one line for each process and device. Repeated requests do not fill the log.
    pub fn print_remaining(&mut self, only_kernels: bool) {
        let event = if only_kernels { "kernels" } else { "remaining" };
        if self.printed.get(event).is_some_and(|last| last.elapsed() < Duration::from_secs(1)) {
            return;
        }
        self.printed.insert(event, Instant::now());
        let accounts = self.accounts.iter();
        let mut all = accounts
            .flat_map(|(key, account)| account.totals().map(move |(device, bytes)| (key, account, device, bytes)));
        for (key, account, device, bytes) in all.by_ref().take(MOST_PRINTED) {
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
        let more = all.count();
        if more > 0 {
            log(LogLevel::Info, "left-out", &[("of", &event), ("lines", &more)]);
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
