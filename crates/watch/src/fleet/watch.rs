//! Keeps an eye on several machines, each in a thread of its own: one that hangs holds up nobody else.

use super::place::HttpPlace;
use super::{Alert, Closer, Fleet, HostView, Reach, Wish, http, prometheus, ssh};
use alerts::http::Http;
use model::Snapshot;
use std::io;
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Somebody who keeps an eye on machines until it is dropped.
pub struct Watch {
    board: Arc<Board>,
}

/// How machines are reached.
pub enum Ways {
    /// Their services are asked.
    Http(Vec<HttpPlace>, Http),
    /// A Prometheus that scrapes them is asked.
    Prometheus(prometheus::Source),
    /// `ttmon` is started there; the program itself is brought along when `push` is set.
    Ssh {
        /// Names that ssh knows.
        hosts: Vec<String>,
        /// For machines that have none.
        push: bool,
    },
}

/// Where all threads put what they learn.
pub struct Board {
    shared: Mutex<Shared>,
    /// There is something new to show.
    changed: Condvar,
    /// There is something to do for those who ask.
    wanted: Condvar,
}

struct Shared {
    hosts: Vec<Seen>,
    /// Counts everything that is new.
    version: u64,
    /// Counts the rounds in which everybody shall be asked at once.
    round: u64,
    interval: Duration,
    wish: Option<Wish>,
    is_over: bool,
}

/// What is known of one machine.
struct Seen {
    view: HostView,
    /// When its snapshot came.
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

impl Watch {
    /// Begins at once with all of them.
    pub fn start(ways: Ways, interval: Duration) -> io::Result<Watch> {
        let views: Vec<HostView> = match &ways {
            Ways::Http(places, _) => places.iter().map(|place| HostView::new(&place.name, &place.base)).collect(),
            // It tells which there are.
            Ways::Prometheus(source) => vec![source.placeholder()],
            Ways::Ssh { hosts, .. } => hosts.iter().map(|host| HostView::new(host, host)).collect(),
        };
        // A connection or a few pipes for each of them.
        sources::make_room_for_files();
        let board = Arc::new(Board::new(views, interval));
        // From here on a failure ends what was begun.
        let watch = Watch { board: board.clone() };
        match ways {
            Ways::Http(places, asking) => {
                for (at, place) in places.into_iter().enumerate() {
                    let asking = asking.clone();
                    watch.begin(move |board| http::follow(board, at, &asking, &place))?;
                }
            }
            Ways::Prometheus(source) => watch.begin(move |board| prometheus::follow(board, &source))?,
            Ways::Ssh { hosts, push } => {
                for (at, host) in hosts.into_iter().enumerate() {
                    watch.begin(move |board| ssh::follow(board, at, &host, push))?;
                }
            }
        }
        Ok(watch)
    }

    /// Runs something in a thread that puts what it learns on the board, until the board says that it is over.
    fn begin(&self, follow: impl FnOnce(&Board) + Send + 'static) -> io::Result<()> {
        let board = self.board.clone();
        let thread = std::thread::Builder::new().name("ttmon-host".into()).stack_size(STACK);
        let why = |error: io::Error| io::Error::new(error.kind(), format!("no thread for another machine: {error}"));
        thread.spawn(move || follow(&board)).map(drop).map_err(why)
    }

    /// What is known now.
    pub fn fleet(&self) -> Fleet {
        self.board.lock().fleet()
    }

    /// Asks everybody now, and waits until each has answered or failed, but not longer than this. Who did not answer the last
    /// time is not waited for.
    pub fn round(&self, patience: Duration) -> Fleet {
        let until = Instant::now() + patience;
        let mut shared = self.board.lock();
        shared.round += 1;
        self.board.wanted.notify_all();
        let is_awaited = |seen: &Seen, round: u64| seen.answered < round && seen.trouble.is_none();
        while shared.hosts.iter().any(|seen| is_awaited(seen, shared.round)) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            shared = wait(&self.board.changed, shared, left);
        }
        shared.fleet()
    }

    /// Waits until there is something new since a version, but not longer than this, and says up to which version it is now. None
    /// when it is over.
    pub fn await_news(&self, since: u64, time: Duration) -> Option<u64> {
        let until = Instant::now() + time;
        let mut shared = self.board.lock();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match () {
                () if shared.is_over => return None,
                () if shared.version != since || left.is_zero() => return Some(shared.version),
                () => shared = wait(&self.board.changed, shared, left),
            }
        }
    }

    /// Waits so long between two from now on.
    pub fn set_interval(&self, interval: Duration) {
        self.board.lock().interval = interval;
        self.board.wanted.notify_all();
    }

    /// Says what somebody looks at. It is asked for at once.
    pub fn wish(&self, wish: Option<Wish>) {
        let mut shared = self.board.lock();
        if shared.wish != wish {
            shared.wish = wish;
            self.board.wanted.notify_all();
        }
    }

    /// Ends everything that was begun.
    pub fn end(&self) {
        let mut shared = self.board.lock();
        shared.is_over = true;
        for mut child in shared.hosts.iter_mut().filter_map(|seen| seen.child.take()) {
            let _ = child.kill();
            let _ = child.wait();
        }
        drop(shared);
        self.board.wanted.notify_all();
        self.board.changed.notify_all();
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end();
    }
}

/// Why somebody who follows a machine goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// It is to be asked, for this besides.
    Ask(Option<Wish>),
    /// There is nobody who wants to know.
    Over,
}

impl Board {
    fn new(views: Vec<HostView>, interval: Duration) -> Board {
        let seen = |view| Seen { view, came: None, trouble: None, answered: 0, child: None };
        let hosts = views.into_iter().map(seen).collect();
        let shared = Shared { hosts, version: 0, round: 0, interval, wish: None, is_over: false };
        Board { shared: Mutex::new(shared), changed: Condvar::new(), wanted: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is known of one machine, and tells everybody.
    fn change(&self, at: usize, change: impl FnOnce(&mut Seen)) {
        let mut shared = self.lock();
        let round = shared.round;
        if let Some(seen) = shared.hosts.get_mut(at) {
            change(seen);
            seen.answered = round;
        }
        shared.version += 1;
        drop(shared);
        self.changed.notify_all();
    }

    /// A machine has answered. What it has told before stays where it has nothing new to tell.
    pub fn answered(&self, at: usize, snapshot: Option<Snapshot>, alerts: Option<Vec<Alert>>) {
        self.change(at, |seen| {
            if let Some(snapshot) = snapshot {
                seen.view.snapshot = Some(Arc::new(snapshot));
                seen.came = Some(Instant::now());
            }
            if let Some(alerts) = alerts {
                seen.view.alerts = alerts;
            }
            seen.trouble = None;
        });
    }

    /// A machine does not answer.
    pub fn failed(&self, at: usize, why: String) {
        self.change(at, |seen| {
            let since = seen.trouble.as_ref().map_or_else(Instant::now, |(since, _)| *since);
            seen.trouble = Some((since, why));
            seen.view.closer = None;
        });
    }

    /// Puts in what is only asked of the machine that somebody looks at.
    pub fn closer(&self, at: usize, closer: Option<Closer>) {
        self.change(at, |seen| seen.view.closer = closer.map(Arc::new));
    }

    /// All machines at once, from somebody who knows of all of them.
    pub fn all(&self, views: Vec<HostView>) {
        let mut shared = self.lock();
        let round = shared.round;
        let seen = |view: HostView| {
            let came = view.age.and_then(|age| Instant::now().checked_sub(age));
            let trouble = match &view.state {
                Reach::Unreachable { why, since } => Some((Instant::now().checked_sub(*since), why.clone())),
                Reach::Waiting | Reach::Reached => None,
            };
            let trouble = trouble.map(|(since, why)| (since.unwrap_or_else(Instant::now), why));
            Seen { view, came, trouble, answered: round, child: None }
        };
        shared.hosts = views.into_iter().map(seen).collect();
        shared.version += 1;
        drop(shared);
        self.changed.notify_all();
    }

    /// Keeps what was started to reach a machine, so that it ends with us. Returns it when it is over already.
    pub fn keep_child(&self, at: usize, child: Child) -> Result<(), Child> {
        let mut shared = self.lock();
        if shared.is_over {
            return Err(child);
        }
        match shared.hosts.get_mut(at) {
            Some(seen) => {
                seen.child = Some(child);
                Ok(())
            }
            None => Err(child),
        }
    }

    /// Takes it back.
    pub fn take_child(&self, at: usize) -> Option<Child> {
        self.lock().hosts.get_mut(at)?.child.take()
    }

    /// How often a machine is asked.
    pub fn interval(&self) -> Duration {
        self.lock().interval
    }

    /// What a machine told last.
    pub fn snapshot(&self, at: usize) -> Option<Arc<Snapshot>> {
        self.lock().hosts.get(at)?.view.snapshot.clone()
    }

    /// Waits until it is time to ask a machine again, after it has answered or has failed so many times in a row.
    pub fn rest(&self, at: usize, failures: u32) -> Next {
        let is_asked_for = |shared: &Shared| shared.hosts.get(at).is_some_and(|seen| seen.answered < shared.round);
        self.rest_until(failures, true, |shared| shared.wish_for(at), is_asked_for)
    }

    /// The same for somebody who knows of all machines at once.
    pub fn rest_for_all(&self, failures: u32) -> Next {
        let is_asked_for = |shared: &Shared| shared.hosts.iter().any(|seen| seen.answered < shared.round);
        self.rest_until(failures, false, |shared| shared.wish.clone(), is_asked_for)
    }

    /// Whoever is alone with a machine that somebody looks at hurries.
    fn rest_until(
        &self,
        failures: u32,
        hurries: bool,
        wished: impl Fn(&Shared) -> Option<Wish>,
        is_asked_for: impl Fn(&Shared) -> bool,
    ) -> Next {
        let began = Instant::now();
        let mut shared = self.lock();
        let (wish, interval) = (wished(&shared), shared.interval);
        loop {
            let now = wished(&shared);
            let pause = shared.pause(hurries && now.is_some(), failures);
            let left = (began + pause).saturating_duration_since(Instant::now());
            let is_asked_for = is_asked_for(&shared);
            let is_new = now.is_some() && now != wish;
            match () {
                () if shared.is_over => return Next::Over,
                () if left.is_zero() || (failures == 0 && (is_asked_for || is_new)) => return Next::Ask(now),
                () if failures == 0 && interval != shared.interval && left > shared.interval => return Next::Ask(now),
                () => shared = wait(&self.wanted, shared, left),
            }
        }
    }
}

impl Shared {
    fn fleet(&self) -> Fleet {
        let view = |seen: &Seen| HostView {
            state: match &seen.trouble {
                Some((since, why)) => Reach::Unreachable { why: why.clone(), since: since.elapsed() },
                None if seen.view.snapshot.is_some() => Reach::Reached,
                None => Reach::Waiting,
            },
            age: seen.came.map(|came| came.elapsed()),
            ..seen.view.clone()
        };
        Fleet { hosts: self.hosts.iter().map(view).collect() }
    }

    fn wish_for(&self, at: usize) -> Option<Wish> {
        let name = &self.hosts.get(at)?.view.name;
        self.wish.clone().filter(|wish| wish.host == *name)
    }

    fn pause(&self, is_looked_at: bool, failures: u32) -> Duration {
        let usual = if is_looked_at { self.interval } else { self.interval.max(SPREAD * self.hosts.len() as u32) };
        match failures {
            0 => usual,
            n => (usual * 2u32.saturating_pow(n.min(10) - 1)).min(LONGEST_REST.max(usual)),
        }
    }
}

fn wait<'a>(condition: &Condvar, shared: MutexGuard<'a, Shared>, time: Duration) -> MutexGuard<'a, Shared> {
    condition.wait_timeout(shared, time).unwrap_or_else(PoisonError::into_inner).0
}
