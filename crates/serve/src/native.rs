//! A connection to the service's own socket: a client that asks, or an agent with a book.

use super::background::{Lane, Outcome};
use super::live_processes::Key;
use super::outbox::Outbox;
use super::poc::AfterMessage;
use super::poller::Token;
use super::service_state::ServiceState;
use super::view::ServiceView;
use alerts::log::{LogLevel, log};
use ledger::wire::{Frames, Hello, LONGEST_REQUEST, Request, WireError, frame};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::Serialize;
use serde_json::json;
use std::borrow::Cow;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use watch::client::program;
use watch::handover::{Arrived, receive};
use watch::rules::RulesReply;

pub struct NativeConnection {
    pub socket: OwnedFd,
    token: Token,
    pub pid: u32,
    pub uid: u32,
    frames: Frames,
    /// Which version it speaks. Absent until it has greeted.
    version: Option<u32>,
    /// The last file that came and that no frame has taken yet.
    file: Option<File>,
    outbox: Outbox,
    subscription: Option<Subscription>,
    /// Fresh snapshots that it waits for, and since when.
    awaiting: u32,
    asked_at: Instant,
    /// Whose book came through it.
    pub owner: Option<Key>,
    /// Another thread makes its next answer. The questions behind it wait.
    is_waiting: bool,
    /// It is sent the reason, and then closed.
    is_leaving: bool,
    /// How much was sent when it was last looked at.
    sent_before: u64,
}

struct Subscription {
    interval: Duration,
    due: Instant,
    /// Snapshots in a row for which there was no room.
    missed: u32,
}

/// With so much unread nothing more is answered until some of it is taken.
const UNREAD: usize = 1 << 20;
const MISSED: u32 = 10;
/// A reader that takes nothing for so long is gone.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// A sample that is not older counts as fresh.
const FRESH: Duration = Duration::from_millis(100);
/// How many questions of one client are answered before the others have their turn.
const TURN: usize = 16;
/// So many records of exits are written at once.
const FEW_EXITS: usize = 50;
const CROWDED: &str = "the clients of your user have left too many answers unread";

impl NativeConnection {
    pub fn new(socket: OwnedFd, token: Token, pid: u32, uid: u32) -> NativeConnection {
        NativeConnection {
            socket,
            token,
            pid,
            uid,
            frames: Frames::up_to(LONGEST_REQUEST),
            version: None,
            file: None,
            outbox: Outbox::default(),
            subscription: None,
            awaiting: 0,
            asked_at: Instant::now(),
            owner: None,
            is_waiting: false,
            is_leaving: false,
            sent_before: 0,
        }
    }

    /// Whether it is waited for to speak, and whether to read.
    pub fn wants(&self) -> (bool, bool) {
        let has_more = self.may_be_answered() && self.frames.has_frame();
        (self.may_be_answered() && !has_more, has_more || !self.outbox.is_empty())
    }

    fn may_be_answered(&self) -> bool {
        !self.is_leaving && !self.is_waiting && self.outbox.waiting < UNREAD
    }

    /// How many bytes it has left unread.
    pub fn unread(&self) -> usize {
        self.outbox.waiting
    }

    /// Whether it has left unread what was sent to it.
    pub fn is_behind(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Reads what there is, and answers some of it. The rest waits until the others have had their turn.
    pub fn read(&mut self, buffer: &mut [u8], state: &mut ServiceState) -> AfterMessage {
        if self.is_waiting && has_hung_up(&self.socket) {
            return AfterMessage::Close;
        }
        if self.may_be_answered() && !self.frames.has_frame() {
            match receive(&self.socket, buffer) {
                Ok(Arrived { bytes: 0, .. }) => return AfterMessage::Close,
                Ok(Arrived { bytes, file, lost_a_file }) => {
                    if lost_a_file {
                        let reason = "this service has too many open files to take a book (see ulimit -n)";
                        log(LogLevel::Warning, "book-lost", &[("pid", &self.pid), ("reason", &reason)]);
                        self.refuse(reason);
                    }
                    self.file = file.map(File::from).or(self.file.take());
                    self.frames.feed(&buffer[..bytes]);
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return AfterMessage::Close,
            }
        }
        for _ in 0..TURN {
            match self.may_be_answered().then(|| self.frames.next_frame()).flatten() {
                None => break,
                Some(Ok(frame)) => match Request::decode(&frame) {
                    Ok(request) => self.answer(request, state),
                    Err(error) => self.refuse(error.to_string()),
                },
                Some(Err(error)) => self.dismiss(&error.to_string()),
            }
        }
        self.send()
    }

    pub fn send(&mut self) -> AfterMessage {
        match self.outbox.send(&self.socket) {
            Err(_) => AfterMessage::Close,
            Ok(()) if self.is_leaving && self.outbox.is_empty() => AfterMessage::Close,
            Ok(()) => AfterMessage::Stay,
        }
    }

    fn answer(&mut self, request: Request, state: &mut ServiceState) {
        match self.version {
            _ if matches!(request, Request::Hello(_) | Request::Book { .. }) => {}
            Some(version) if version == own_version() => {}
            Some(theirs) => return self.refuse(other_version(theirs)),
            None => {
                return self.refuse(format!(r#"say hello first: {{"hello": {{"version": {}}}}}"#, own_version()));
            }
        }
        match request {
            _ if state.is_crowded && !matches!(request, Request::Hello(_) | Request::Book { .. }) => {
                self.refuse(CROWDED);
            }
            Request::Hello(Hello { version, .. }) => {
                self.version = Some(version);
                match version == own_version() {
                    true => {
                        // A path that is no UTF-8 cannot be sent.
                        let black_box = state.black_box.clone().filter(|folder| folder.to_str().is_some());
                        self.say(&json!({ "hello": Hello { version, program: program(), black_box } }));
                    }
                    false => self.refuse(other_version(version)),
                }
            }
            Request::Devices {} => {
                self.make(state, false, |view| frame(&ServiceAnswer::Devices(view.snapshot().devices)))
            }
            Request::Processes {} => {
                self.make(state, false, |view| frame(&ServiceAnswer::Processes(view.snapshot().processes)))
            }
            Request::Snapshot { fresh: true } if state.sampled_at.elapsed() > FRESH => {
                self.awaiting += 1;
                self.asked_at = Instant::now();
                state.wants_sample = true;
            }
            Request::Snapshot { .. } => self.make(state, false, snapshot),
            Request::Buffers(wanted) => self.make(state, true, move |view| view.buffers(&wanted).frame()),
            Request::Deaths { limit } => {
                let exits: Vec<_> = state.exits.all.iter().take(limit.unwrap_or(usize::MAX)).cloned().collect();
                let is_long = exits.len() > FEW_EXITS;
                let write =
                    move |_: &ServiceView| frame(&ServiceAnswer::Deaths(exits.iter().map(|exit| &**exit).collect()));
                self.make(state, is_long, write);
            }
            Request::Events {} => {
                let board = state.board.clone();
                self.make(state, true, move |_| frame(&ServiceAnswer::Events(board.map(|board| board.events()))));
            }
            Request::Alerts {} => self.say(&ServiceAnswer::Alerts(RulesReply::of(Some(&state.watch)))),
            Request::Subscribe { interval_ms } => {
                let interval = Duration::from_millis(interval_ms.min(86_400_000));
                self.subscription = Some(Subscription { interval, due: Instant::now() + interval, missed: 0 });
                self.make(state, false, snapshot);
            }
            Request::Book { .. } => self.take_book(state),
        }
    }

    /// Answers at once, or has another thread make an answer that takes long.
    fn make(
        &mut self,
        state: &ServiceState,
        is_long: bool,
        write: impl FnOnce(&ServiceView) -> Result<Vec<u8>, WireError> + Send + 'static,
    ) {
        let view = state.view();
        if !is_long && !view.is_large() {
            return self.push(write(&view));
        }
        self.is_waiting = true;
        let token = self.token;
        state.background.add(Lane::Answers(self.uid), move || Some(Outcome::Answer(token, write(&view))));
    }

    /// Takes an answer that another thread has made, unless the clients of its user have left too much unread.
    pub fn take_answer(&mut self, answer: Result<Vec<u8>, WireError>, is_crowded: bool) {
        self.is_waiting = false;
        match is_crowded {
            true => self.refuse(CROWDED),
            false => self.push(answer),
        }
    }

    fn take_book(&mut self, state: &mut ServiceState) {
        let Some(file) = self.file.take() else {
            return self.refuse("a book is handed over as a file beside its frame, and there was none");
        };
        match state.take_book(self.pid, file) {
            Ok(owner) => self.owner = owner,
            Err(reason) => {
                log(LogLevel::Warning, "book-refused", &[("pid", &self.pid), ("reason", &reason)]);
                self.refuse(reason);
            }
        }
    }

    /// A new sample is there, written as a frame when a client wants it.
    pub fn publish(&mut self, now: Instant, began: Instant, written: &mut dyn FnMut() -> Option<Arc<Vec<u8>>>) {
        if self.awaiting > 0 && began >= self.asked_at {
            (0..std::mem::take(&mut self.awaiting)).filter_map(|_| written()).for_each(|frame| self.outbox.push(frame));
        }
        let Some(subscription) = &mut self.subscription else { return };
        // Samples come a little early or late.
        if self.is_leaving || now + Duration::from_millis(20) < subscription.due {
            return;
        }
        subscription.due = now + subscription.interval;
        if self.outbox.is_empty() {
            subscription.missed = 0;
            written().into_iter().for_each(|frame| self.outbox.push(frame));
            return;
        }
        subscription.missed += 1;
        if subscription.missed >= MISSED {
            self.dismiss("too slow: ten snapshots in a row found the one before them unread");
        }
    }

    /// Whether it has taken nothing since the last look, though something waits.
    pub fn is_stuck(&mut self) -> bool {
        let before = std::mem::replace(&mut self.sent_before, self.outbox.total);
        !self.outbox.is_empty() && before == self.outbox.total
    }

    /// Tells it why, and closes the connection when it has heard.
    pub fn dismiss(&mut self, reason: &str) {
        log(LogLevel::Warning, "dismissed", &[("pid", &self.pid), ("reason", &reason)]);
        self.outbox.cut();
        self.refuse(reason);
        self.is_leaving = true;
    }

    fn refuse(&mut self, reason: impl AsRef<str>) {
        self.say(&json!({ "error": { "reason": reason.as_ref() } }));
    }

    fn say(&mut self, message: &impl Serialize) {
        self.push(frame(message));
    }

    fn push(&mut self, frame: Result<Vec<u8>, WireError>) {
        match frame {
            Ok(frame) => self.outbox.push(frame),
            Err(error) => log(LogLevel::Error, "unsayable", &[("reason", &error)]),
        }
    }
}

fn snapshot(view: &ServiceView) -> Result<Vec<u8>, WireError> {
    frame(&ServiceAnswer::Snapshot(Cow::Owned(view.snapshot())))
}

/// Whether a client that is not listened to has closed its connection.
fn has_hung_up(socket: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut socket = [PollFd::new(socket, PollFlags::empty())];
    poll(&mut socket, Some(&now)).is_ok() && socket[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServiceAnswer<'a> {
    Devices(Vec<model::Device>),
    Processes(Vec<model::Process>),
    Snapshot(Cow<'a, model::Snapshot>),
    Deaths(Vec<&'a model::ExitRecord>),
    /// Null where nothing looks for them.
    Events(Option<Vec<model::Event>>),
    Alerts(RulesReply),
}

fn other_version(theirs: u32) -> String {
    let ours = own_version();
    format!("this service speaks version {ours} and you speak version {theirs}: use a ttmon of the same version")
}

/// The version of the protocol. Tests of upgrades run the debug build with another number in `TTMON_WIRE_VERSION`.
fn own_version() -> u32 {
    static OTHER: LazyLock<Option<u32>> = LazyLock::new(|| {
        let other = std::env::var("TTMON_WIRE_VERSION").ok().filter(|_| cfg!(debug_assertions));
        other?.parse().ok()
    });
    OTHER.unwrap_or(ledger::wire::VERSION)
}
