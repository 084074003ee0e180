//! `ttmon serve`: device memory of all users' processes, and records of those that exited.
//!
//! One thread sees to all sockets and processes; another takes samples. `service_state.rs` has what is known, `poc.rs` and `native.rs`
//! what is said on the two sockets.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod alerts;
mod args;
mod background;
mod black_box;
mod buffer_row;
mod buffers;
mod busy;
mod endpoints;
mod exits;
mod fleet;
mod live_processes;
mod merge;
mod native;
mod outbox;
mod past;
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
use model::{ExitRecord, Snapshot};
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
use watch::black_box::BlackBox;
use watch::config::{self, Config};
use watch::exit::{Exit, Failure};
use watch::fleet::settings::FleetSettings;
use watch::fleet::watcher::FleetSource;
use watch::machine::Machine;
use watch::news::NewsFinder;
use watch::rules::RuleWatch;
use watch::sampling::Sampling;
use watch::selection::{keep_selected, selected};
use watch::service_limits::ServiceLimits;
use watch::wait::on;
use web::{HttpListeners, Web};

/// How often a socket or an address that another program has is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// How long a disk may take for the last seconds of the black box.
const LAST_WRITE: Duration = Duration::from_millis(500);

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
    /// What is new with each sample, and how many exits there were until then.
    news: (NewsFinder, u64),
    black_box: Option<BlackBox>,
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
        let Configuration { limits, rules, fleet } = configuration(args)?;
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
        let first = Arc::new(service.state.snapshot());
        let mut past = machine.past(&first);
        past.iter_mut().for_each(|past| keep_selected(past, &names));
        let (events, finder, news) = NewsFinder::after(&past, first.clone());
        let events = events.into_iter().chain(news.events.iter().cloned()).collect();
        let mut web = Web::start(http_listeners, first.clone(), events, interval)?;
        web.board.begin_with(&past);
        drop(past);
        service.state.board = web.is_on().then(|| web.board.clone());
        let mut black_box = black_box::start(args, &service.limits)?;
        web.watch_fleet(fleet);
        let folder = black_box.as_ref().map(|black_box| black_box.place().folder.clone());
        service.state.black_box = folder.clone();
        web.set_black_box(folder);
        if let Some(black_box) = &mut black_box {
            black_box.add(Some(first), news.entries());
        }
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
        let (news, tried) = ((finder, 0), Instant::now());
        Ok(RunningService {
            args,
            service,
            web,
            sampling,
            news,
            black_box,
            kernel_log,
            samples: 0,
            missing,
            tried,
            end,
            reload,
        })
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
        self.service.state.black_box_fault = self.black_box.as_ref().and_then(BlackBox::fault);
        let published = self.service.take_sample(&self.sampling);
        self.publish(published);
    }

    fn publish(&mut self, published: Option<(Instant, Arc<Snapshot>)>) {
        let Some((began, snapshot)) = published else { return };
        self.pass_on(began, &snapshot);
        self.web.show_alerts(&self.service.state.watch);
        self.samples += 1;
        if self.samples == SETTLED {
            ledger::forget_code();
        }
        if self.tried.elapsed() >= TRY_AGAIN {
            let black_box = self.black_box.as_ref().map(|black_box| black_box::status_text(&black_box.status()));
            systemd::notify(&format!("STATUS={}{}", status::text(&snapshot), black_box.unwrap_or_default()));
            self.open_missing();
        }
    }

    /// To the page and the black box, with what is new.
    fn pass_on(&mut self, began: Instant, snapshot: &Arc<Snapshot>) {
        if !self.web.is_on() && self.black_box.is_none() {
            return;
        }
        let exits = &self.service.state.exits;
        let (finder, known) = &mut self.news;
        let news = usize::try_from(exits.total - *known).unwrap_or(usize::MAX);
        let exited = exits.all.iter().take(news).map(|exit| ExitRecord::clone(exit)).collect();
        *known = exits.total;
        let news = finder.find(snapshot.clone(), exited);
        if self.web.is_on() {
            self.web.publish(began, snapshot.clone(), news.events.iter().cloned().collect(), exits);
        }
        if let Some(black_box) = &mut self.black_box {
            black_box.add(Some(snapshot.clone()), news.entries());
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
            Ok(Configuration { limits, rules, fleet }) => {
                self.web.board.set_interval(limits.interval());
                self.sampling.set_interval(limits.interval());
                self.kernel_log.store(self.args.kernel_log || limits.kernel_log, Relaxed);
                if let Some(black_box) = &mut self.black_box {
                    black_box.set_limit(limits.black_box_mib);
                }
                self.service.set_limits(limits);
                self.service.set_alerts(&rules);
                self.web.watch_fleet(fleet);
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
        if let Some(black_box) = self.black_box {
            black_box.finish(LAST_WRITE);
        }
        self.sampling.finish();
    }
}

/// What the file says that is named on the command line, or that of the machine.
struct Configuration {
    limits: ServiceLimits,
    rules: AlertSettings,
    fleet: (FleetSettings, Option<FleetSource>),
}

fn configuration(args: &Args) -> anyhow::Result<Configuration> {
    let file = args.config.as_deref();
    let Config { service: limits, alerts: rules, fleet, .. } = Config::of_service(file)?;
    let source = fleet.source().map_err(|problem| match config::place(file, true) {
        Ok(path) => Failure::error(Exit::Usage, config::said(&path, &problem)),
        Err(error) => error,
    })?;
    Ok(Configuration { limits, rules, fleet: (fleet, source) })
}

/// Each connection costs an open file, and each process another one or two.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
