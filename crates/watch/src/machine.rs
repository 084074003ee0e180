//! The machine to look at: this one, a folder that looks like one, a simulated one, or another one that is asked over the network.

use crate::args::MachineArgs;
use crate::client::{Buffers, Client, Death, MemoryService};
use crate::exit::{Exit, Failure};
use crate::fleet::HostView;
use crate::fleet::far::Far;
use crate::fleet::http::Service;
use crate::rules::Watch;
use alerts::settings::AlertSettings;
use anyhow::Context;
use ledger::wire::Wanted;
use model::{Fault, Snapshot};
use sources::{Options, Root, Sampler};
use std::time::Duration;

/// A machine that can be sampled.
pub struct Machine {
    seen: Seen,
}

enum Seen {
    Here(Box<Here>),
    Far(Box<Far>),
}

/// One whose files can be read here.
struct Here {
    sampler: Sampler,
    /// Kept for as long as it is looked at; dropping it removes its folder and its processes.
    running: Option<sim::Running>,
    simulated: bool,
    /// Asked first.
    service: Option<Client>,
    /// Whether the last sample is the service's.
    is_served: bool,
    /// Rules for when there is no service, which has its own.
    watch: Option<Watch>,
}

/// The service that has given a sample: that of this machine, or that of another one.
pub enum Teller<'a> {
    /// Asked through its socket.
    Here(&'a mut Client),
    /// Asked over HTTP.
    Far(Service<'a>),
}

impl MemoryService for Teller<'_> {
    fn buffers(&mut self, wanted: Wanted) -> Option<Buffers> {
        match self {
            Teller::Here(client) => client.buffers(wanted),
            Teller::Far(service) => service.buffers(wanted),
        }
    }

    fn deaths(&mut self, limit: usize) -> Option<Vec<Death>> {
        match self {
            Teller::Here(client) => client.deaths(limit),
            Teller::Far(service) => service.deaths(limit),
        }
    }
}

impl Machine {
    /// Opens the machine that the command line names. `rates` if there will be more than one sample.
    pub fn open(args: &MachineArgs, rates: bool) -> anyhow::Result<Machine> {
        Machine::sampled(args, rates, false)
    }

    /// The same for somebody who does not watch voltage, current and the limit of power closely.
    pub fn open_calm(args: &MachineArgs) -> anyhow::Result<Machine> {
        Machine::sampled(args, true, true)
    }

    fn sampled(args: &MachineArgs, rates: bool, calm: bool) -> anyhow::Result<Machine> {
        if args.is_far() {
            return Ok(Machine { seen: Seen::Far(Box::new(Far::open(args)?)) });
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
        if rates {
            sources::make_room_for_files();
        }
        let options = Options { deadline: Duration::from_millis(args.deadline_ms), rates, calm };
        let simulated = running.is_some() || args.root.as_deref().is_some_and(sim::is_simulated);
        let sampler = Sampler::new(root, options);
        let here = Here { sampler, running, simulated, service: None, is_served: false, watch: None };
        Ok(Machine { seen: Seen::Here(Box::new(here)) })
    }

    /// The same, seen with the eyes of the service when there is one. A machine that is not this one has none, unless it is named.
    pub fn through_service(mut self, args: &MachineArgs) -> Machine {
        if let Seen::Here(here) = &mut self.seen
            && (args.service.is_some() || (args.sim.is_none() && args.root.is_none()))
        {
            here.service = Client::new(args.service.as_deref());
        }
        self
    }

    /// The same, with the rules of a configuration at work where no service has its own.
    pub fn watched(mut self, settings: &AlertSettings) -> Machine {
        if let Seen::Here(here) = &mut self.seen {
            here.watch = Some(Watch::new(settings));
        }
        self
    }

    /// The rules that are at work here.
    pub fn watch(&self) -> Option<&Watch> {
        match &self.seen {
            Seen::Here(here) => here.watch.as_ref(),
            Seen::Far(_) => None,
        }
    }

    /// The service that has given the last sample.
    pub fn teller(&mut self) -> Option<Teller<'_>> {
        match &mut self.seen {
            Seen::Here(here) => here.service.as_mut().filter(|_| here.is_served).map(Teller::Here),
            Seen::Far(far) => far.service().map(Teller::Far),
        }
    }

    /// Whether it is another machine, whose processes are none of this one.
    pub fn is_far(&self) -> bool {
        matches!(self.seen, Seen::Far(_))
    }

    /// What is known of another machine beyond its snapshot.
    pub fn far(&self) -> Option<&HostView> {
        match &self.seen {
            Seen::Here(_) => None,
            Seen::Far(far) => far.host(),
        }
    }

    /// Whether what nobody watches closely may be some seconds old in the next samples.
    pub fn set_calm(&mut self, calm: bool) {
        if let Seen::Here(here) = &mut self.seen {
            here.sampler.set_calm(calm);
        }
    }

    /// Everything there is to know now.
    pub fn sample(&mut self) -> Snapshot {
        match &mut self.seen {
            Seen::Here(here) => here.sample(),
            Seen::Far(far) => far.sample(),
        }
    }

    /// Takes leave at the end of the program. Only a simulated machine has anything to clean up; all else the kernel does
    /// faster.
    pub fn leave(self) {
        let Seen::Here(here) = self.seen else { return };
        if here.sampler.is_stuck() {
            // The process lingers until the read comes back; nobody shall wait for the end of its output meanwhile.
            if let Ok(null) = std::fs::File::options().read(true).write(true).open("/dev/null") {
                let _ = rustix::stdio::dup2_stdout(&null);
                let _ = rustix::stdio::dup2_stderr(&null);
            }
        }
        drop(here.running);
        std::mem::forget(here.sampler);
    }

    /// Whether the driver is loaded there.
    pub fn driver_is_loaded(&self) -> bool {
        match &self.seen {
            Seen::Here(here) => here.sampler.driver_is_loaded(),
            // A snapshot that names no version is of a machine that has none.
            Seen::Far(_) => false,
        }
    }
}

impl Here {
    fn sample(&mut self) -> Snapshot {
        let served = self.service.as_mut().and_then(Client::snapshot);
        self.is_served = served.is_some();
        if let Some(snapshot) = served {
            return snapshot;
        }
        let mut snapshot = self.sampler.sample();
        snapshot.faults.extend(self.service.as_ref().and_then(Client::complaint));
        snapshot.host.simulated = self.simulated;
        if let Some((running, failure)) = self.running.as_ref().and_then(|running| Some((running, running.failure()?)))
        {
            let reason = format!("the simulated machine stands still: {failure}");
            snapshot.faults.insert(0, Fault::new(running.root().to_string_lossy(), reason));
        }
        if let Some(watch) = &mut self.watch {
            watch.observe(&snapshot, &[]);
            snapshot.alerts = watch.firing().to_vec();
        }
        snapshot
    }
}

/// Starts a simulated machine whose clock stands still.
pub fn simulate(spec: &str) -> anyhow::Result<sim::SimMachine> {
    let spec: sim::Spec = spec.parse().map_err(|error| Failure::error(Exit::Usage, format!("--sim: {error}")))?;
    let program = std::env::current_exe()?;
    sim::SimMachine::start(&spec, &program).context("--sim: the simulated machine could not be started")
}
