//! Other machines as a source of samples: a thread sums up what is new, as often as a screen needs it.

use super::hosts::Hosts;
use super::state::TopState;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use watch::args::MachineArgs;
use watch::fleet::remote::watch;
use watch::fleet::summary::Summary;
use watch::fleet::watcher::FleetWatcher;
use watch::fleet::{DetailRequest, Fleet};

/// Everything that is known of other machines, again and again.
pub struct RemoteFeed {
    /// Can be read when there is something new.
    pub ready: UnixStream,
    pub watch: Arc<FleetWatcher>,
    latest: Arc<Mutex<LatestFleet>>,
    thread: JoinHandle<()>,
}

/// All machines, with a summary of each.
type LatestFleet = Option<(Fleet, Vec<Summary>)>;

/// Ages are updated this often, with or without news.
const TICK: Duration = Duration::from_secs(1);
/// What comes within this time makes one picture; the more machines there are, the longer it is.
const TOGETHER: Duration = Duration::from_millis(30);
const TOGETHER_EACH: Duration = Duration::from_micros(400);

impl RemoteFeed {
    /// Begins with the machines that the command line names.
    pub fn open(machine: &MachineArgs, state: &mut TopState) -> anyhow::Result<RemoteFeed> {
        let watch = Arc::new(watch(machine, Duration::from_millis(state.settings.interval_ms))?);
        state.watch(watch.fleet(), !machine.is_fleet());
        let (ready, notify) = UnixStream::pair()?;
        ready.set_nonblocking(true)?;
        notify.set_nonblocking(true)?;
        let latest = Arc::default();
        let (watched, into) = (watch.clone(), Arc::clone(&latest));
        let run = move || gather(&watched, &into, &notify);
        let thread = std::thread::Builder::new().name("ttmon-fleet".into()).spawn(run)?;
        Ok(RemoteFeed { ready, watch, latest, thread })
    }

    /// What is new, if it was not taken yet.
    pub fn take(&self) -> LatestFleet {
        let mut ready = &self.ready;
        while matches!(ready.read(&mut [0; 64]), Ok(1..)) {}
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether the thread has come to an end by itself, which it never should.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Says what is looked at.
    pub fn wish(&self, state: &TopState, memory: bool, process: Option<u32>) {
        let past = Duration::from_secs(state.settings.history_seconds);
        let host = state.hosts.as_ref().and_then(Hosts::current).map(|host| host.name.clone());
        self.watch.request(host.map(|host| DetailRequest { host, memory, process, past }));
    }

    pub fn finish(self) {
        self.watch.end();
        let _ = self.thread.join();
    }
}

fn gather(watch: &FleetWatcher, into: &Mutex<LatestFleet>, mut notify: &UnixStream) {
    let (mut version, mut machines) = (0, 1);
    while let Some(now) = watch.await_news(version, TICK) {
        // Several machines answer at about the same time; a picture for each would be too many.
        std::thread::sleep(TOGETHER + TOGETHER_EACH * machines);
        version = now;
        let fleet = watch.fleet();
        machines = fleet.hosts.len() as u32;
        let summaries = fleet.hosts.iter().map(Summary::of).collect();
        *into.lock().unwrap_or_else(PoisonError::into_inner) = Some((fleet, summaries));
        let _: io::Result<usize> = notify.write(&[1]);
    }
}
