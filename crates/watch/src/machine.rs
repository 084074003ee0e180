//! The machine to look at: this one, a folder that looks like one, a simulated one, or another one that is asked over the network.

use crate::args::{DeepWhen, MachineArgs};
use crate::client::{MemoryService, ServiceClient};
use crate::exit::{Exit, Failure};
use crate::fleet::HostView;
use crate::fleet::remote::RemoteMachine;
use crate::memory::{self, MemoryReply};
use crate::rules::{RuleWatch, RulesReply};
use alerts::settings::AlertSettings;
use anyhow::Context;
use model::{Device, Fault, Snapshot, State};
use show::memory::view::{Buffer, View};
use sources::{DeepOptions, DeepReads, KernelLog, Options, Root, Sampler};
pub use sources::{FigureFilter, a_read_is_stuck};
use std::time::{Duration, Instant};

/// From one reading of a heartbeat to the next. It counts up ten times a second.
pub const SECOND_READING: Duration = Duration::from_millis(250);

/// The machine that a command looks at.
pub enum Machine {
    /// This machine, a simulated one or a folder.
    Local(Box<LocalMachine>),
    /// Another machine.
    Remote(Box<RemoteMachine>),
}

/// One whose files can be read here.
pub struct LocalMachine {
    sampler: Sampler,
    /// Kept for as long as it is looked at; dropping it removes its folder and its processes.
    running: Option<sim::Running>,
    simulated: bool,
    /// Asked first.
    service: Option<ServiceClient>,
    /// Whether the last sample is the service's.
    is_served: bool,
    /// Rules for when there is no service, which has its own.
    watch: Option<RuleWatch>,
    root: Root,
    /// Read only where that was asked for.
    kernel_log: Option<KernelLog>,
    /// What the firmware's telemetry says, where that was asked for.
    deep: Option<DeepReads>,
    /// How long the first of them are waited for, while that is to come.
    first_deep: Option<Duration>,
    /// Whether there will be more than one sample.
    repeats: bool,
}

impl Machine {
    /// Opens the machine that the command line names. `rates` if there will be more than one sample.
    pub fn open(args: &MachineArgs, rates: bool) -> anyhow::Result<Machine> {
        if args.is_remote() {
            return Ok(Machine::Remote(Box::new(RemoteMachine::open(args)?)));
        }
        let (root, running) = match (&args.sim, &args.root) {
            (Some(spec), _) => {
                let running = simulate(spec)?.run();
                (Root::under(running.root()).with_faults(running.inject()), Some(running))
            }
            (None, Some(folder)) if !folder.is_dir() => {
                let message = format!("--root {} is not a folder", folder.display());
                return Err(Failure::error(Exit::Usage, message));
            }
            (None, Some(folder)) => (Root::under(folder), None),
            (None, None) => (Root::machine(), None),
        };
        sources::make_room_for_files();
        let options = Options { deadline: Duration::from_millis(args.deadline_ms), rates, relaxed: false };
        let simulated = running.is_some() || args.root.as_deref().is_some_and(sim::is_simulated);
        let sampler = Sampler::new(root.clone(), options.clone());
        let local = LocalMachine {
            sampler,
            running,
            simulated,
            service: None,
            is_served: false,
            watch: None,
            root,
            kernel_log: None,
            deep: None,
            first_deep: Some(options.deadline),
            repeats: rates,
        };
        Ok(Machine::Local(Box::new(local)))
    }

    /// The same for views that do not show voltage, current, the power limit and the fan in every sample.
    pub fn open_relaxed(args: &MachineArgs) -> anyhow::Result<Machine> {
        let mut machine = Machine::open(args, true)?;
        machine.set_relaxed(true);
        Ok(machine)
    }

    /// The same, through the service when there is one. A simulated machine or a folder has none, unless it is named.
    pub fn through_service(mut self, args: &MachineArgs) -> Machine {
        if let Machine::Local(local) = &mut self {
            if args.service.is_some() || (args.sim.is_none() && args.root.is_none()) {
                local.service = ServiceClient::new(args.service.as_deref());
            }
        }
        self
    }

    /// The same, with the rules of a configuration where no service has its own.
    pub fn watched(mut self, settings: &AlertSettings) -> Machine {
        if let Machine::Local(local) = &mut self {
            local.watch = Some(RuleWatch::new(settings));
        }
        self
    }

    /// The same, with deep reads where they are asked for. Another machine's service decides itself what it reads.
    pub fn with_deep(mut self, when: Option<DeepWhen>) -> anyhow::Result<Machine> {
        if let (Machine::Local(local), Some(when)) = (&mut self, when) {
            // The program may have been replaced since it was started.
            let options = DeepOptions { program: "/proc/self/exe".into(), idle: when == DeepWhen::Idle };
            local.deep = Some(local.sampler.deep_reads(options).context("--deep")?);
        }
        Ok(self)
    }

    /// The rules that are evaluated here, and their alerts: those of the service where it has given the last sample.
    pub fn rules(&mut self) -> RulesReply {
        let Machine::Local(local) = self else { return RulesReply::default() };
        let served = local.service.as_mut().filter(|_| local.is_served).and_then(ServiceClient::alerts);
        served.unwrap_or_else(|| RulesReply::of(local.watch.as_ref()))
    }

    /// The minutes before the first snapshot, the earliest first. Only a simulated machine knows them.
    pub fn past(&self, first: &Snapshot) -> Vec<Snapshot> {
        match self {
            Machine::Local(local) => local.running.as_ref().map(|running| running.past(first)).unwrap_or_default(),
            Machine::Remote(_) => Vec::new(),
        }
    }

    /// The service that has given the last sample.
    pub fn service(&mut self) -> Option<&mut dyn MemoryService> {
        match self {
            Machine::Local(local) => local.service.as_mut().filter(|_| local.is_served).map(|service| service as _),
            Machine::Remote(remote) => remote.service().map(|service| service as _),
        }
    }

    /// Where memory went at the moment of a snapshot that was taken just now, with so many of the largest buffers. `all` has the
    /// other devices, where some were chosen.
    pub fn memory_view(&mut self, snapshot: &mut Snapshot, all: Option<&Snapshot>, most: usize) -> View {
        let served = self.service().and_then(|service| memory::ask(service, snapshot, all.is_none(), most));
        let reply = match served {
            Some(reply) => reply,
            // The processes of another machine cannot be read here.
            None if self.is_remote() => MemoryReply::default(),
            None => memory::from_books(snapshot, all, most),
        };
        memory::view(snapshot, reply)
    }

    /// So many of the largest buffers of one process.
    pub fn buffers_of(&mut self, snapshot: &Snapshot, pid: u32, most: usize) -> Vec<Buffer> {
        let served = self.service().and_then(|service| memory::of_process(service, snapshot, pid, most));
        match served {
            Some(buffers) => buffers,
            None if self.is_remote() => Vec::new(),
            None => memory::buffers_in_book(snapshot, pid, most),
        }
    }

    /// Whether it is another machine, whose processes are none of this one.
    pub fn is_remote(&self) -> bool {
        matches!(self, Machine::Remote(_))
    }

    /// What is known of another machine beyond its snapshot.
    pub fn remote(&self) -> Option<&HostView> {
        match self {
            Machine::Local(_) => None,
            Machine::Remote(remote) => remote.host(),
        }
    }

    /// Whether what is not shown closely may be some seconds old in the next samples.
    pub fn set_relaxed(&mut self, relaxed: bool) {
        if let Machine::Local(local) = self {
            local.sampler.set_relaxed(relaxed);
        }
    }

    /// Whether someone looks at rates in the next samples.
    pub fn set_rates_watched(&mut self, watched: bool) {
        if let Machine::Local(local) = self {
            local.sampler.set_rates_watched(watched);
        }
    }

    /// Whether the kernel's log is read from now on. Another machine's is read by the service there.
    pub fn set_kernel_log(&mut self, wanted: bool) {
        if let Machine::Local(local) = self {
            if wanted != local.kernel_log.is_some() {
                local.kernel_log = wanted.then(|| KernelLog::new(local.root.clone()));
            }
        }
    }

    /// There will be one sample, of which only these figures of devices are shown. Others are not read.
    pub fn set_once(&mut self, wanted: FigureFilter) {
        if let Machine::Local(local) = self {
            local.sampler.set_once(wanted);
            local.watch.iter_mut().for_each(RuleWatch::set_once);
        }
    }

    /// Everything there is to know now.
    pub fn sample(&mut self) -> Snapshot {
        match self {
            Machine::Local(local) => local.sample(),
            Machine::Remote(remote) => remote.sample(),
        }
    }

    /// A second sample proves that heartbeats count up. One that does not is read until it counts as stopped.
    pub fn verified_sample(&mut self) -> Snapshot {
        let snapshot = self.sample();
        let snapshot = self.sample_again(snapshot, SECOND_READING);
        self.sample_again(snapshot, Duration::from_millis(2850))
    }

    /// The same within a deadline, and the pause between two readings.
    pub fn quickly_verified_sample(&mut self, deadline: Duration) -> Snapshot {
        if let Machine::Local(local) = self {
            // What does not answer the first time is not waited for the second time.
            local.sampler.set_deadline(deadline / 2);
        }
        let snapshot = self.sample();
        if snapshot.devices.iter().any(|device| device.state == State::Silent) {
            std::thread::sleep(SECOND_READING);
            return self.sample();
        }
        self.sample_again(snapshot, SECOND_READING)
    }

    /// Another sample after a while, unless every heartbeat is known to count up, or to have stopped.
    fn sample_again(&mut self, snapshot: Snapshot, wait: Duration) -> Snapshot {
        let is_open = |device: &Device| device.heartbeat_verified == Some(false) && device.state != State::Hung;
        if !snapshot.devices.iter().any(is_open) {
            return snapshot;
        }
        std::thread::sleep(wait);
        self.sample()
    }

    /// Cleans up at the end of the program. Only a simulated machine needs that; the kernel does the rest faster.
    pub fn leave(self) {
        let Machine::Local(local) = self else { return };
        if local.sampler.is_stuck() {
            // The process lingers until the read comes back; its output ends now, so that no reader waits for it.
            if let Ok(null) = std::fs::File::options().read(true).write(true).open("/dev/null") {
                let _ = rustix::stdio::dup2_stdout(&null);
                let _ = rustix::stdio::dup2_stderr(&null);
            }
        }
        drop(local.running);
        std::mem::forget(local.sampler);
    }

    /// How it is set up for its devices. Absent where it is another machine.
    pub fn setup(&self) -> Option<sources::MachineSetup> {
        match self {
            Machine::Local(local) => Some(local.sampler.setup()),
            Machine::Remote(_) => None,
        }
    }

    /// True if the driver's module is loaded.
    pub fn driver_is_loaded(&self) -> bool {
        match self {
            Machine::Local(local) => local.sampler.driver_is_loaded(),
            // A snapshot without a driver version is of a machine without the driver.
            Machine::Remote(_) => false,
        }
    }
}

impl LocalMachine {
    fn sample(&mut self) -> Snapshot {
        let mut snapshot = match self.deep.take() {
            None => self.plain_sample(),
            Some(mut deep) => {
                let snapshot = self.deep_sample(&mut deep);
                self.deep = Some(deep);
                snapshot
            }
        };
        if let Some(watch) = self.watch.as_mut().filter(|_| !self.is_served) {
            watch.observe(&snapshot, &[]);
            snapshot.alerts = watch.firing().to_vec();
        }
        snapshot
    }

    /// A sample with what the firmware's telemetry says. The first one waits for that; where it is the only one, also until nobody
    /// has had the devices open for long enough.
    fn deep_sample(&mut self, deep: &mut DeepReads) -> Snapshot {
        let mut snapshot = self.plain_sample();
        deep.ask(&snapshot, Instant::now());
        if let Some(deadline) = self.first_deep.take() {
            while !self.repeats && deep.watches_holders(Instant::now()) {
                std::thread::sleep(SECOND_READING);
                snapshot = self.plain_sample();
                deep.ask(&snapshot, Instant::now());
            }
            let until = Instant::now() + deadline;
            deep.wait(until);
            // A large table takes two reads.
            deep.ask(&snapshot, Instant::now());
            deep.wait(until);
        }
        deep.add_to(&mut snapshot, Instant::now());
        snapshot
    }

    fn plain_sample(&mut self) -> Snapshot {
        let served = self.service.as_mut().and_then(ServiceClient::snapshot);
        self.is_served = served.is_some();
        let mut snapshot = served.unwrap_or_else(|| self.own_sample());
        // The service may read it already.
        if let Some(log) = self.kernel_log.as_mut().filter(|_| snapshot.kernel_log.is_none()) {
            log.read(&mut snapshot);
        }
        snapshot
    }

    fn own_sample(&mut self) -> Snapshot {
        let mut snapshot = self.sampler.sample();
        snapshot.faults.extend(self.service.as_ref().and_then(ServiceClient::complaint));
        snapshot.host.simulated = self.simulated;
        if let Some((running, failure)) = self.running.as_ref().and_then(|running| Some((running, running.failure()?)))
        {
            let reason = format!("the simulated machine has stopped: {failure}");
            snapshot.faults.insert(0, Fault::new(running.root().to_string_lossy(), reason));
        }
        snapshot
    }
}

/// Starts a simulated machine whose clock does not run.
pub fn simulate(spec: &str) -> anyhow::Result<sim::SimMachine> {
    let spec: sim::Spec = spec.parse().map_err(|error| Failure::error(Exit::Usage, format!("--sim: {error}")))?;
    let program = std::env::current_exe()?;
    sim::SimMachine::start(&spec, &program).context("--sim: the simulated machine could not be started")
}
