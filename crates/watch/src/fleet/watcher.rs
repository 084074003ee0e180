//! Watches several machines, each in a thread of its own: one that hangs does not delay the others.

use super::http::RemoteService;
use super::place::HttpPlace;
use super::{DetailRequest, Fleet, HostDetail, HostView, Reach, http, prometheus, ssh};
use alerts::http::Http;
use model::{Alert, Snapshot};
use std::io;
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Watches machines until it is dropped.
pub struct FleetWatcher {
    state: Arc<FleetState>,
}

/// Ways to reach other machines.
pub enum FleetSource {
    /// Their services are asked.
    Http(Vec<HttpPlace>, Http),
    /// A Prometheus that scrapes them is asked.
    Prometheus(prometheus::Prometheus),
    /// `ttmon` is started there; the program itself is copied there when `push` is set.
    Ssh {
        /// Names that ssh knows.
        hosts: Vec<String>,
        /// True to copy the program there.
        push: bool,
    },
}

/// What all threads know of the machines.
pub struct FleetState {
    shared: Mutex<WatchedHosts>,
    /// There is something new to show.
    changed: Condvar,
    /// There is something to ask for.
    wanted: Condvar,
}

struct WatchedHosts {
    hosts: Vec<WatchedHost>,
    /// Counts everything that is new.
    version: u64,
    /// Counts the rounds in which all machines are asked at once.
    round: u64,
    interval: Duration,
    request: Option<DetailRequest>,
    is_over: bool,
}

struct WatchedHost {
    view: HostView,
    came: Option<Instant>,
    /// Since when and why it does not answer.
    trouble: Option<(Instant, String)>,
    /// The last round in which it has answered or failed.
    answered: u64,
    /// What was started to reach it.
    child: Option<Child>,
}

/// A thread that asks one machine needs no more.
const STACK: usize = 512 << 10;
/// So much time between two questions for each machine that is watched: a thousand are asked every five seconds.
const SPREAD: Duration = Duration::from_millis(5);
/// The longest time until a machine that does not answer is tried again.
const LONGEST_REST: Duration = Duration::from_secs(10);

impl FleetWatcher {
    /// Begins at once with all of them.
    pub fn start(source: FleetSource, interval: Duration) -> io::Result<FleetWatcher> {
        type Follow = Box<dyn FnOnce(&FleetState) + Send>;
        let followed: Vec<(HostView, Follow)> = match source {
            FleetSource::Http(places, http) => {
                let follow = |(at, place): (usize, HttpPlace)| -> (HostView, Follow) {
                    let service = RemoteService::at(&http, &place.base);
                    let follow = move |state: &FleetState| http::follow(state, at, &service);
                    (HostView::new(place.name, place.base), Box::new(follow))
                };
                places.into_iter().enumerate().map(follow).collect()
            }
            // It knows which machines there are.
            FleetSource::Prometheus(source) => {
                let view = source.placeholder();
                vec![(view, Box::new(move |state: &FleetState| prometheus::follow(state, &source)))]
            }
            FleetSource::Ssh { hosts, push } => {
                let follow = |(at, host): (usize, String)| -> (HostView, Follow) {
                    (HostView::new(&host, &host), Box::new(move |state| ssh::follow(state, at, &host, push)))
                };
                hosts.into_iter().enumerate().map(follow).collect()
            }
        };
        // A connection or a few pipes for each of them.
        sources::make_room_for_files();
        let (views, threads): (Vec<HostView>, Vec<Follow>) = followed.into_iter().unzip();
        // From here on a failure ends what was begun.
        let watch = FleetWatcher { state: Arc::new(FleetState::new(views, interval)) };
        threads.into_iter().try_for_each(|follow| watch.begin(follow))?;
        Ok(watch)
    }

    /// Runs something in a thread that updates the state, until the watcher ends.
    fn begin(&self, follow: impl FnOnce(&FleetState) + Send + 'static) -> io::Result<()> {
        let state = self.state.clone();
        let thread = std::thread::Builder::new().name("ttmon-host".into()).stack_size(STACK);
        let why = |error: io::Error| io::Error::new(error.kind(), format!("no thread for another machine: {error}"));
        thread.spawn(move || follow(&state)).map(drop).map_err(why)
    }

    /// The machines as they are known now.
    pub fn fleet(&self) -> Fleet {
        self.state.lock().fleet()
    }

    /// Asks all machines now, and waits until each has answered or failed, but not longer than this. A machine that did not
    /// answer the last time is not waited for.
    pub fn round(&self, patience: Duration) -> Fleet {
        let mut shared = self.state.lock();
        shared.round += 1;
        let round = shared.round;
        self.state.wanted.notify_all();
        let is_awaited = |host: &WatchedHost| host.answered < round && host.trouble.is_none();
        let shared =
            self.state.changed.wait_timeout_while(shared, patience, |shared| shared.hosts.iter().any(is_awaited));
        shared.unwrap_or_else(PoisonError::into_inner).0.fleet()
    }

    /// Waits until there is something new since a version, but not longer than this, and says up to which version it is now. None
    /// when it is over.
    pub fn await_news(&self, since: u64, time: Duration) -> Option<u64> {
        let is_nothing_new = |shared: &mut WatchedHosts| !shared.is_over && shared.version == since;
        let shared = self.state.changed.wait_timeout_while(self.state.lock(), time, is_nothing_new);
        let shared = shared.unwrap_or_else(PoisonError::into_inner).0;
        (!shared.is_over).then_some(shared.version)
    }

    /// Sets the time between two samples.
    pub fn set_interval(&self, interval: Duration) {
        self.state.lock().interval = interval;
        self.state.wanted.notify_all();
    }

    /// Requests details of the machine that is shown. They are asked for at once.
    pub fn request(&self, request: Option<DetailRequest>) {
        let mut shared = self.state.lock();
        if shared.request != request {
            shared.request = request;
            self.state.wanted.notify_all();
        }
    }

    /// Ends everything that was begun.
    pub fn end(&self) {
        let mut shared = self.state.lock();
        shared.is_over = true;
        for mut child in shared.hosts.iter_mut().filter_map(|host| host.child.take()) {
            let _ = child.kill();
            let _ = child.wait();
        }
        drop(shared);
        self.state.wanted.notify_all();
        self.state.changed.notify_all();
    }
}

impl Drop for FleetWatcher {
    fn drop(&mut self) {
        self.end();
    }
}

/// What a thread that asks a machine does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextStep {
    /// Ask, with the details that are requested.
    Ask(Option<DetailRequest>),
    /// End: the watcher has ended.
    End,
}

impl FleetState {
    fn new(views: Vec<HostView>, interval: Duration) -> FleetState {
        let host = |view| WatchedHost { view, came: None, trouble: None, answered: 0, child: None };
        let hosts = views.into_iter().map(host).collect();
        let shared = WatchedHosts { hosts, version: 0, round: 0, interval, request: None, is_over: false };
        FleetState { shared: Mutex::new(shared), changed: Condvar::new(), wanted: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, WatchedHosts> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is known of one machine, and wakes those who wait for that.
    fn change(&self, at: usize, change: impl FnOnce(&mut WatchedHost)) {
        let mut shared = self.lock();
        let round = shared.round;
        if let Some(host) = shared.hosts.get_mut(at) {
            change(host);
            host.answered = round;
        }
        shared.version += 1;
        drop(shared);
        self.changed.notify_all();
    }

    /// A machine has answered. What is not new stays as it is.
    pub fn answered(&self, at: usize, snapshot: Option<Snapshot>, alerts: Option<Vec<Alert>>) {
        self.change(at, |host| {
            if let Some(snapshot) = snapshot {
                host.view.snapshot = Some(Arc::new(snapshot));
                host.came = Some(Instant::now());
            }
            if let Some(alerts) = alerts {
                host.view.alerts = alerts;
            }
            host.trouble = None;
        });
    }

    /// Notes that a machine did not answer.
    pub fn failed(&self, at: usize, why: String) {
        self.change(at, |host| {
            let since = host.trouble.as_ref().map_or_else(Instant::now, |(since, _)| *since);
            host.trouble = Some((since, why));
            host.view.detail = None;
        });
    }

    /// Sets what is only asked of the machine that is shown.
    pub fn detail(&self, at: usize, detail: Option<HostDetail>) {
        self.change(at, |host| host.view.detail = detail.map(Arc::new));
    }

    /// All machines at once, from a source that knows all of them.
    pub fn all(&self, views: Vec<HostView>) {
        let mut shared = self.lock();
        let round = shared.round;
        let host = |view: HostView| {
            let came = view.age.and_then(|age| Instant::now().checked_sub(age));
            let trouble = match &view.state {
                Reach::Unreachable { why, since } => Some((Instant::now().checked_sub(*since), why.clone())),
                Reach::Waiting | Reach::Reached => None,
            };
            let trouble = trouble.map(|(since, why)| (since.unwrap_or_else(Instant::now), why));
            WatchedHost { view, came, trouble, answered: round, child: None }
        };
        shared.hosts = views.into_iter().map(host).collect();
        shared.version += 1;
        drop(shared);
        self.changed.notify_all();
    }

    /// Keeps what was started to reach a machine, so that it ends with us. Returns it when it is over already.
    pub fn keep_child(&self, at: usize, child: Child) -> Result<(), Child> {
        let mut shared = self.lock();
        let is_over = shared.is_over;
        match shared.hosts.get_mut(at).filter(|_| !is_over) {
            Some(host) => {
                host.child = Some(child);
                Ok(())
            }
            None => Err(child),
        }
    }

    /// Takes it back.
    pub fn take_child(&self, at: usize) -> Option<Child> {
        self.lock().hosts.get_mut(at)?.child.take()
    }

    /// Time between two samples.
    pub fn interval(&self) -> Duration {
        self.lock().interval
    }

    /// The machines as they are known now.
    pub fn hosts(&self) -> Vec<HostView> {
        self.lock().fleet().hosts
    }

    /// The last snapshot of a machine.
    pub fn snapshot(&self, at: usize) -> Option<Arc<Snapshot>> {
        self.lock().hosts.get(at)?.view.snapshot.clone()
    }

    /// Waits until it is time to ask again, after it has answered or has failed so many times in a row: one machine, or a source that
    /// knows all of them. A machine that is shown is asked at the full rate.
    pub fn rest(&self, at: Option<usize>, failures: u32) -> NextStep {
        let began = Instant::now();
        let mut shared = self.lock();
        let (request, interval) = (shared.request_for(at), shared.interval);
        loop {
            let now = shared.request_for(at);
            let pause = shared.pause(at.is_some() && now.is_some(), failures);
            let left = (began + pause).saturating_duration_since(Instant::now());
            let is_asked_for = shared.asked(at).iter().any(|host| host.answered < shared.round);
            let is_new = now.is_some() && now != request;
            if shared.is_over {
                return NextStep::End;
            }
            let is_interval_shorter = interval != shared.interval && left > shared.interval;
            if left.is_zero() || (failures == 0 && (is_asked_for || is_new || is_interval_shorter)) {
                return NextStep::Ask(now);
            }
            shared = self.wanted.wait_timeout(shared, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl WatchedHosts {
    fn fleet(&self) -> Fleet {
        let view = |host: &WatchedHost| HostView {
            state: match &host.trouble {
                Some((since, why)) => Reach::Unreachable { why: why.clone(), since: since.elapsed() },
                None if host.view.snapshot.is_some() => Reach::Reached,
                None => Reach::Waiting,
            },
            age: host.came.map(|came| came.elapsed()),
            ..host.view.clone()
        };
        Fleet { hosts: self.hosts.iter().map(view).collect() }
    }

    /// One machine, or all.
    fn asked(&self, at: Option<usize>) -> &[WatchedHost] {
        at.map_or(&self.hosts, |at| self.hosts.get(at..=at).unwrap_or_default())
    }

    fn request_for(&self, at: Option<usize>) -> Option<DetailRequest> {
        let is_of = |request: &DetailRequest| self.asked(at).iter().any(|host| host.view.name == request.host);
        self.request.clone().filter(|request| at.is_none() || is_of(request))
    }

    fn pause(&self, is_looked_at: bool, failures: u32) -> Duration {
        let usual = if is_looked_at { self.interval } else { self.interval.max(SPREAD * self.hosts.len() as u32) };
        match failures {
            0 => usual,
            n => (usual * 2u32.saturating_pow(n.min(10) - 1)).min(LONGEST_REST.max(usual)),
        }
    }
}
