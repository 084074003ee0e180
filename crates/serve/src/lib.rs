//! `ttmon serve`: device memory of all users' processes, and records of those that exited.
//!
//! One thread sees to all sockets and processes; another takes samples. `service_state.rs` has what is known, `poc.rs` and `native.rs`
//! what is said on the two sockets.

// Only the program uses this crate: what its own names say needs no comment.
#![allow(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod alerts;
mod args;
mod background;
mod buffer_row;
mod buffers;
mod busy;
mod endpoints;
mod exits;
mod live_processes;
mod merge;
mod native;
mod outbox;
mod poc;
mod poller;
mod service;
mod service_state;
mod socket;
mod status;
mod systemd;
mod view;
mod web;

use ::alerts::log::{LogLevel, log, set_log_options, summarize};
use ::alerts::settings::AlertSettings;
pub use args::{AFTER_HELP, Args, MetricOptions};
use background::Background;
use busy::Work;
use endpoints::MissingEndpoints;
use model::Snapshot;
use poller::{Poller, drain};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use service::Service;
use service_state::ServiceState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use systemd::Watchdog;
use watch::args::MachineArgs;
use watch::config::Config;
use watch::exit::Exit;
use watch::machine::Machine;
use watch::rules::RuleWatch;
use watch::sampling::Sampling;
use watch::selection::{keep_selected, selected};
use watch::service_limits::ServiceLimits;
use watch::wait::on;
use web::{HttpListeners, Web};

/// How often a socket or an address that another program has is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// By this sample the start is over.
const SETTLED: u64 = 5;

/// Serves until a signal ends it.
pub fn run(machine: &MachineArgs, args: &Args) -> anyhow::Result<Exit> {
    set_log_options(args.log_options());
    let mut running = RunningService::start(machine, args)?;
    systemd::notify("READY=1");
    log(LogLevel::Info, "ready", &[("version", &env!("CARGO_PKG_VERSION")), ("pid", &std::process::id())]);
    running.serve()?;
    systemd::notify("STOPPING=1");
    summarize();
    running.service.busy.report();
    log(LogLevel::Info, "stopping", &[]);
    running.stop();
    Ok(Exit::Success)
}

/// The service, and what it waits for.
struct RunningService<'a> {
    args: &'a Args,
    service: Service,
    web: Web,
    sampling: Sampling<Snapshot>,
    /// Whether the kernel's log is read.
    kernel_log: Arc<AtomicBool>,
    samples: u64,
    missing: MissingEndpoints,
    tried: Instant,
    /// Signals to end, and to read the configuration again.
    end: UnixStream,
    reload: UnixStream,
}

impl RunningService<'_> {
    fn start<'a>(machine: &MachineArgs, args: &'a Args) -> anyhow::Result<RunningService<'a>> {
        let (limits, rules) = configuration(args)?;
        let (end, reload) = (on(&[SIGTERM, SIGINT])?, on(&[SIGHUP])?);
        reload.set_nonblocking(true)?;
        let ((listeners, missing), http_listeners) = (endpoints::open(args)?, HttpListeners::open(args)?);
        allow_many_files();
        let mut machine = Machine::open(machine, true)?.with_deep(limits.deep)?;
        let kernel_log = Arc::new(AtomicBool::new(args.kernel_log || limits.kernel_log));
        machine.set_kernel_log(kernel_log.load(Relaxed));
        let names = args.devices.id.clone();
        let first = selected(machine.sample(), &names)?;
        let state = ServiceState::new(Poller::new()?, Background::start()?, &limits, RuleWatch::new(&rules), first);
        let interval = limits.interval();
        let mut service = Service::new(state, limits);
        service.set_alerts(&rules);
        for (endpoint, listener) in listeners {
            service.open(endpoint, listener)?;
        }
        let web = Web::start(http_listeners, Arc::new(service.state.snapshot()), interval)?;
        // A client that asks gets current figures; otherwise a voltage may be five seconds old.
        let reads_kernel_log = kernel_log.clone();
        let take = move |machine: &mut Machine, is_wished: bool| {
            machine.set_relaxed(!is_wished);
            machine.set_kernel_log(reads_kernel_log.load(Relaxed));
            let mut snapshot = machine.sample();
            keep_selected(&mut snapshot, &names);
            snapshot
        };
        let sampling = Sampling::start(machine, interval, take)?;
        let tried = Instant::now();
        Ok(RunningService { args, service, web, sampling, kernel_log, samples: 0, missing, tried, end, reload })
    }

    fn serve(&mut self) -> anyhow::Result<()> {
        let poller = &self.service.state.poller;
        let (ended, reloaded) = (poller.watch(&self.end)?, poller.watch(&self.reload)?);
        let (sampled, asked) = (poller.watch(&self.sampling.ready)?, poller.watch(&self.web.questions)?);
        let prepared = poller.watch(&self.service.state.background.ready)?;
        let (mut ready, mut watchdog) = (Vec::new(), Watchdog::of_environment());
        loop {
            self.service.wait(&mut ready, watchdog.next())?;
            let began = Instant::now();
            watchdog.turn(began);
            self.service.busy.begin_turn();
            self.service.turn(&ready);
            if ready.contains(&ended) {
                return Ok(());
            }
            if ready.contains(&sampled) {
                let began = Instant::now();
                self.take_sample();
                self.service.busy.note(Work::Sample, began);
            }
            if ready.contains(&prepared) {
                let began = Instant::now();
                let published = self.service.take_outcomes();
                self.publish(published);
                self.service.busy.note(Work::Prepared, began);
            }
            if ready.contains(&asked) {
                let began = Instant::now();
                self.web.answer(&self.service.state);
                self.service.busy.note(Work::Http, began);
            }
            if std::mem::take(&mut self.service.state.wants_sample) {
                self.sampling.hurry();
            }
            self.service.busy.note(Work::Turn, began);
            if ready.contains(&reloaded) {
                self.reload();
            }
        }
    }

    fn take_sample(&mut self) {
        summarize();
        let published = self.service.take_sample(&self.sampling);
        self.publish(published);
    }

    fn publish(&mut self, published: Option<(Instant, Arc<Snapshot>)>) {
        let Some((began, snapshot)) = published else { return };
        self.web.publish(began, snapshot.clone(), &self.service.state.exits);
        self.web.show_alerts(&self.service.state.watch);
        self.samples += 1;
        if self.samples == SETTLED {
            ledger::forget_code();
        }
        if self.tried.elapsed() >= TRY_AGAIN {
            systemd::notify(&format!("STATUS={}", status::text(&snapshot)));
            self.open_missing();
        }
    }

    /// Listens where another program was in the way.
    fn open_missing(&mut self) {
        self.tried = Instant::now();
        for (endpoint, listener) in self.missing.try_again() {
            if let Err(error) = self.service.open(endpoint, listener) {
                log(LogLevel::Error, "not-listening", &[("reason", &error)]);
            }
        }
        self.web.open_missing();
    }

    fn reload(&mut self) {
        drain(&self.reload);
        systemd::notify(&systemd::reloading());
        match configuration(self.args) {
            Ok((limits, rules)) => {
                self.web.board.set_interval(limits.interval());
                self.sampling.set_interval(limits.interval());
                self.kernel_log.store(self.args.kernel_log || limits.kernel_log, Relaxed);
                self.service.set_limits(limits);
                self.service.set_alerts(&rules);
                log(LogLevel::Info, "reloaded", &[]);
            }
            Err(error) => log(LogLevel::Error, "not-reloaded", &[("reason", &format!("{error:#}"))]),
        }
        self.web.read_credentials();
        self.open_missing();
        systemd::notify("READY=1");
    }

    /// The sockets go first, so that no client connects that is not served.
    fn stop(self) {
        drop(self.web);
        drop(self.service);
        self.sampling.finish();
    }
}

fn configuration(args: &Args) -> anyhow::Result<(ServiceLimits, AlertSettings)> {
    let Config { service, alerts, .. } = Config::of_service(args.config.as_deref())?;
    Ok((service, alerts))
}

/// Each connection costs an open file, and each process another one or two.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
