//! A recording, played in a thread of its own: at the pace at which it was recorded, or faster, slower, or at a chosen place.

use model::{Event, ExitRecord, LogEntry, Snapshot, Timestamp};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use watch::moment::Moment;
use watch::past::Stretch;
use watch::record::Recording;

pub struct Player {
    /// Can be read when there is something new.
    pub ready: UnixStream,
    played: Receiver<Played>,
    pub wishes: Sender<PlayCommand>,
    thread: JoinHandle<()>,
    pub len: usize,
    /// How many of them are handed over for the charts.
    pub scanned: usize,
    pub span: (Timestamp, Timestamp),
}

pub enum Played {
    /// Snapshots in their order, from the first on, for charts; for events, too, where there is no log.
    Past(Vec<Snapshot>),
    /// What the log says, the earliest first. Comes before all snapshots.
    Log(Vec<Event>, Vec<ExitRecord>),
    /// This one is to be shown now.
    Now(usize, Box<Moment>),
    /// The file, or a part of it, is not whole.
    Broken(String),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PlayCommand {
    /// So many samples on, or back.
    Step(isize),
    /// So many milliseconds on, or back.
    Skip(i64),
    /// To this moment.
    Go(Timestamp),
    /// How many times faster than it was; zero is paused.
    Pace(f64),
}

/// A pause in the recording is not waited out.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// So many snapshots are handed over at once for the charts.
const BATCH: usize = 60;
/// More than this the charts do not need: of a longer stretch, some are left out.
const MOST_SCANNED: usize = 4000;
/// The latest entries of a log that are shown.
const MOST_ENTRIES: usize = 1000;

impl Player {
    /// Plays a stretch. The other one is the same once more, to read ahead for the charts: each remembers the part that it is in.
    pub fn open(mut playing: Stretch, scanning: Stretch, start: Option<Timestamp>) -> anyhow::Result<Player> {
        let (ready, notify) = UnixStream::pair()?;
        ready.set_nonblocking(true)?;
        notify.set_nonblocking(true)?;
        let (send, played) = channel();
        let (wishes, wished) = channel();
        let range = playing.indices();
        anyhow::ensure!(!range.is_empty(), "nothing was recorded at that time");
        let recording = &mut playing.recording;
        if let Some(remark) = recording.remark() {
            let _ = send.send(Played::Broken(remark.to_owned()));
        }
        if recording.has_log() {
            let _ = send.send(log(recording, playing.from, playing.to));
        }
        let at = start.map_or(range.start, |start| recording.index_at(start)).clamp(range.start, range.end - 1);
        let (len, stride) = (range.len(), range.len().div_ceil(MOST_SCANNED));
        let span = (playing.from, playing.to);
        let pace = if start.is_some() { 0.0 } else { 1.0 };
        let mut thread = Thread {
            playing: playing.recording,
            scanning: scanning.recording,
            scanned: range.start,
            stride,
            range,
            at,
            pace,
            next: None,
            send,
            notify,
        };
        let thread = std::thread::Builder::new().name("ttmon-player".into()).spawn(move || thread.run(&wished))?;
        Ok(Player { ready, played, wishes, thread, len, scanned: len.div_ceil(stride), span })
    }

    /// All that came since.
    pub fn take(&self) -> impl Iterator<Item = Played> + '_ {
        let mut ready = &self.ready;
        while matches!(ready.read(&mut [0; 64]), Ok(1..)) {}
        self.played.try_iter()
    }

    /// Whether the thread has come to an end by itself, which it never should.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }
}

struct Thread {
    playing: Recording,
    scanning: Recording,
    /// The next one for the charts, and how many are between two of them.
    scanned: usize,
    stride: usize,
    /// The part of the recording that is played.
    range: Range<usize>,
    at: usize,
    pace: f64,
    /// The next one, and how long after the one that is shown it was taken.
    next: Option<(Snapshot, Duration)>,
    send: Sender<Played>,
    notify: UnixStream,
}

/// The latest events and exits of a stretch.
fn log(recording: &Recording, from: Timestamp, to: Timestamp) -> Played {
    let (mut events, mut exits) = (VecDeque::new(), VecDeque::new());
    recording.each_entry(from, to, |entry| match entry {
        LogEntry::Event(event) => keep(&mut events, event),
        LogEntry::Exit(exit) => keep(&mut exits, *exit),
        LogEntry::Operations(_) | LogEntry::Start(_) => {}
    });
    Played::Log(events.into(), exits.into())
}

fn keep<T>(entries: &mut VecDeque<T>, entry: T) {
    if entries.len() == MOST_ENTRIES {
        entries.pop_front();
    }
    entries.push_back(entry);
}

impl Thread {
    fn run(&mut self, wished: &Receiver<PlayCommand>) {
        let mut shown = Instant::now();
        self.show(self.at);
        loop {
            let is_scanning = self.scanned < self.range.end;
            let wait = match self.due(shown) {
                _ if is_scanning => Duration::ZERO,
                Some(due) => due.saturating_duration_since(Instant::now()),
                None => Duration::from_secs(3600),
            };
            match wished.recv_timeout(wait) {
                Err(RecvTimeoutError::Disconnected) => return,
                Ok(PlayCommand::Pace(pace)) => self.pace = pace,
                Ok(PlayCommand::Step(by)) => {
                    self.show(self.at.saturating_add_signed(by));
                    shown = Instant::now();
                }
                Ok(PlayCommand::Skip(milliseconds)) => {
                    let here = self.playing.snapshot(self.at).map_or(0, |snapshot| snapshot.taken_at.0);
                    let to = self.playing.index_at(Timestamp(here.saturating_add(milliseconds)));
                    self.show(to);
                    shown = Instant::now();
                }
                Ok(PlayCommand::Go(moment)) => {
                    let to = self.playing.index_at(moment);
                    self.show(to);
                    shown = Instant::now();
                }
                Err(RecvTimeoutError::Timeout) => {
                    if self.due(shown).is_some_and(|due| due <= Instant::now()) {
                        self.show(self.at + 1);
                        shown = Instant::now();
                    } else if is_scanning {
                        self.scan();
                    }
                }
            }
        }
    }

    /// When the next one is to be shown. None at the end, and when it is paused.
    fn due(&self, shown: Instant) -> Option<Instant> {
        let (_, after) = self.next.as_ref()?;
        (self.pace > 0.0).then(|| shown + after.div_f64(self.pace).min(LONGEST_WAIT))
    }

    fn show(&mut self, to: usize) {
        let to = to.clamp(self.range.start, self.range.end - 1);
        let snapshot = match self.next.take().filter(|_| to == self.at + 1) {
            Some((snapshot, _)) => Ok(snapshot),
            None => self.playing.snapshot(to),
        };
        self.at = to;
        let snapshot = match snapshot {
            Ok(snapshot) => snapshot,
            Err(error) => return self.broken(to, &error),
        };
        if to + 1 < self.range.end {
            if let Ok(next) = self.playing.snapshot(to + 1) {
                let after = Duration::from_millis((next.taken_at.0 - snapshot.taken_at.0).max(0).unsigned_abs());
                self.next = Some((next, after));
            }
        }
        self.say(Played::Now(to - self.range.start, Box::new(Moment::of(snapshot))));
    }

    fn scan(&mut self) {
        let until = (self.scanned + BATCH * self.stride).min(self.range.end);
        let mut batch = Vec::with_capacity(BATCH);
        for index in (self.scanned..until).step_by(self.stride) {
            match self.scanning.snapshot(index) {
                Ok(snapshot) => batch.push(snapshot),
                Err(error) => {
                    self.broken(index, &error);
                    break;
                }
            }
        }
        self.scanned = until;
        self.say(Played::Past(batch));
    }

    fn broken(&mut self, index: usize, error: &io::Error) {
        self.say(Played::Broken(format!(
            "sample {} of the recording cannot be read: {error}",
            index - self.range.start + 1
        )));
    }

    fn say(&mut self, played: Played) {
        if self.send.send(played).is_ok() {
            let _ = self.notify.write(&[1]);
        }
    }
}
