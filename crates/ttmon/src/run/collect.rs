//! The books of the command's processes, handed over by the agent through a socket in a folder of our own.
//!
//! The agent speaks as to the service (`ledger::wire`): a hello and a book's frame, with the book's file beside it. Whose it is says
//! the kernel, not the frame. The file stays here, so that the last state of a process can be read whatever ended it.

use ledger::book::BookError;
use ledger::wire::{Frames, LONGEST_REQUEST, Request};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with, sockopt,
};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, getrlimit, pidfd_open, setrlimit, test_kill_process};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use watch::handover::{self, Arrived, book_in};

/// Takes books until it is stopped.
pub struct Collector {
    folder: Folder,
    stop: UnixStream,
    thread: JoinHandle<Collected>,
}

#[derive(Default)]
pub struct Collected {
    /// In the order in which they came.
    pub books: Vec<Received>,
    pub remarks: Vec<String>,
}

/// A book and whose it is.
pub struct Received {
    pub pid: u32,
    /// As `/proc` calls the process, if it was still there.
    pub name: Option<String>,
    pub file: File,
    /// When it was seen to be gone, ns since 1970. Absent while it runs.
    pub died: Option<u64>,
    process: Option<OwnedFd>,
    /// Which file the book is.
    pub inode: (u64, u64),
    /// Open for as long as we want the book: the agent would hand it over again.
    connection: Option<OwnedFd>,
}

/// A process that has called, but not yet handed over a book.
struct BookSender {
    socket: OwnedFd,
    frames: Frames,
    file: Option<File>,
}

/// Reads books every 20 ms while their processes run, and for the last time at the end.
pub type BookReader = Box<dyn FnMut(&[Received], bool) + Send>;

/// Processes that wait to be accepted. The kernel has a limit of its own.
const BACKLOG: i32 = 4096;
/// How often books are read while their processes run.
const BETWEEN_READS: Duration = Duration::from_millis(20);
/// How long a process that has called, but not yet spoken, is waited for at the end.
const GRACE: Duration = Duration::from_millis(100);

impl Collector {
    /// With a reader, books are also read as their processes run.
    pub fn start(reader: Option<BookReader>) -> io::Result<Collector> {
        let (folder, listener) = listener()?;
        let (stop, stopped) = UnixStream::pair()?;
        let (callers, collected) = (Vec::new(), Collected::default());
        let collect = move || BookReceiver { listener, stopped, callers, collected, reader }.run();
        let thread = std::thread::Builder::new().name("ttmon-books".into()).spawn(collect)?;
        Ok(Collector { folder, stop, thread })
    }

    /// Where the agent shall hand books over.
    pub fn socket(&self) -> PathBuf {
        self.folder.0.join(SOCKET)
    }

    /// Takes what has been sent until now, and ends.
    pub fn finish(self) -> Collected {
        drop(self.stop);
        self.thread.join().unwrap_or_default()
    }
}

/// Each living process costs three open files. To be called when the command runs, which shall have the limit that it was given.
pub fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

const SOCKET: &str = "books";

/// A folder that only we can enter, removed when it is no longer needed.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0.join(SOCKET));
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// A socket in a fresh folder: of the session, or else among the temporary files.
fn listener() -> io::Result<(Folder, OwnedFd)> {
    let session = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let in_session = session.map_or(Err(io::ErrorKind::NotFound.into()), |place| listener_in(&place));
    in_session.or_else(|_| listener_in(&std::env::temp_dir())).or_else(|_| listener_in(Path::new("/tmp")))
}

fn listener_in(place: &Path) -> io::Result<(Folder, OwnedFd)> {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().subsec_nanos();
    let folder = place.join(format!("ttmon-run-{}-{nanos:x}", std::process::id()));
    DirBuilder::new().mode(0o700).create(&folder)?;
    let folder = Folder(folder);
    // Too long a path is refused here.
    let address = SocketAddrUnix::new(folder.0.join(SOCKET))?;
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    Ok((folder, socket))
}

/// Where books are handed over.
struct BookReceiver {
    listener: OwnedFd,
    stopped: UnixStream,
    /// Processes that have called, but not yet spoken.
    callers: Vec<BookSender>,
    collected: Collected,
    reader: Option<BookReader>,
}

impl BookReceiver {
    fn run(mut self) -> Collected {
        let mut wait = None;
        while !self.turn(true, wait) {
            // Without a free file descriptor no connection can be accepted for a while.
            wait = self.accept().err().map(|_| Duration::from_millis(50));
        }
        let until = Instant::now() + GRACE;
        loop {
            let _ = self.accept();
            self.hear();
            let left = until.saturating_duration_since(Instant::now());
            if self.callers.is_empty() || left.is_zero() {
                break;
            }
            self.turn(false, Some(left));
        }
        // Who has died until now, and those that could not be watched.
        self.turn(false, Some(Duration::ZERO));
        for book in self.collected.books.iter_mut().filter(|book| book.process.is_none() && book.died.is_none()) {
            let pid = Pid::from_raw(book.pid as i32);
            book.died = pid.is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH)).then(now);
        }
        self.read(true);
        self.collected
    }

    /// Waits until something happens, hears the callers, and notes who has died. Returns whether it is time to end.
    fn turn(&mut self, open: bool, wait: Option<Duration>) -> bool {
        let timeout = wait
            .or(self.reader.as_ref().map(|_| BETWEEN_READS))
            .map(|left| Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() });
        let mut sources: Vec<PollFd> = Vec::new();
        sources.extend(open.then(|| PollFd::new(&self.stopped, PollFlags::IN)));
        sources.extend((open && wait.is_none()).then(|| PollFd::new(&self.listener, PollFlags::IN)));
        sources.extend(self.callers.iter().map(|caller| PollFd::new(&caller.socket, PollFlags::IN)));
        let first = sources.len();
        let processes = self.collected.books.iter().filter_map(|book| book.process.as_ref());
        sources.extend(processes.map(|process| PollFd::new(process, PollFlags::IN)));
        let _ = poll(&mut sources, timeout.as_ref());
        let ready: Vec<bool> = sources.iter().map(|source| !source.revents().is_empty()).collect();
        let stop = open && ready[0];
        let watched = self.collected.books.iter_mut().filter(|book| book.process.is_some());
        for (book, _) in watched.zip(&ready[first..]).filter(|(_, ready)| **ready) {
            book.process = None;
            book.connection = None;
            book.died = Some(now());
        }
        self.hear();
        self.read(false);
        stop
    }

    fn read(&mut self, is_last: bool) {
        if let Some(read) = &mut self.reader {
            read(&self.collected.books, is_last);
        }
    }

    fn accept(&mut self) -> Result<(), Errno> {
        loop {
            match accept_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(socket) => {
                    self.callers.push(BookSender { socket, frames: Frames::up_to(LONGEST_REQUEST), file: None });
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn hear(&mut self) {
        for mut caller in std::mem::take(&mut self.callers) {
            match receive(&mut caller) {
                Ok(Some(received)) => self.keep(Received { connection: Some(caller.socket), ..received }),
                Ok(None) => {}
                Err(Waiting::Silent) => self.callers.push(caller),
                Err(Waiting::Refused(remark)) => self.collected.remarks.push(remark),
            }
        }
    }

    /// One that is there already is not counted twice.
    fn keep(&mut self, received: Received) {
        match self.collected.books.iter_mut().find(|book| book.inode == received.inode) {
            Some(book) if book.process.is_some() => book.connection = received.connection,
            Some(_) => {}
            None => self.collected.books.push(received),
        }
    }
}

enum Waiting {
    /// It has not spoken yet.
    Silent,
    /// It had a book that cannot be taken.
    Refused(String),
}

/// The book that a caller hands over. Whatever else it sends is of no interest.
fn receive(caller: &mut BookSender) -> Result<Option<Received>, Waiting> {
    let mut bytes = [0; 512];
    let Some(pid) = sockopt::socket_peercred(&caller.socket).ok().map(|peer| peer.pid) else { return Ok(None) };
    let number = pid.as_raw_nonzero().get() as u32;
    loop {
        match handover::receive(&caller.socket, &mut bytes) {
            Err(Errno::AGAIN | Errno::INTR) => return Err(Waiting::Silent),
            Err(_) | Ok(Arrived { bytes: 0, .. }) => return Ok(None),
            Ok(Arrived { lost_a_file: true, .. }) => {
                let why = "too many open files (see ulimit -n)";
                return Err(Waiting::Refused(format!("the book of pid {number} could not be taken: {why}")));
            }
            Ok(Arrived { bytes: length, file, .. }) => {
                caller.file = file.map(File::from).or(caller.file.take());
                caller.frames.feed(&bytes[..length]);
            }
        }
        while let Some(frame) = caller.frames.next_frame() {
            match frame.and_then(|frame| Request::decode(&frame)) {
                Ok(Request::Book { .. }) => return caller.file.take().map_or(Ok(None), |file| look(pid, number, file)),
                // Books are the same in all versions.
                Ok(_) => {}
                Err(_) => return Ok(None),
            }
        }
    }
}

/// Looks at a file that was handed over as a book.
fn look(pid: Pid, number: u32, file: File) -> Result<Option<Received>, Waiting> {
    let Ok(stat) = fstat(&file) else { return Ok(None) };
    match book_in(&file) {
        Ok(_) => {}
        Err(BookError::NotABook | BookError::NotYetWritten) => return Ok(None),
        Err(error) => return Err(Waiting::Refused(format!("the book of pid {number} was not taken: {error}"))),
    }
    let process = pidfd_open(pid, PidfdFlags::empty());
    let died = matches!(process, Err(Errno::SRCH)).then(now);
    // The name of a process that is gone by now may be another's.
    let name = died.is_none().then(|| name(pid)).flatten();
    let inode = (stat.st_dev, stat.st_ino);
    Ok(Some(Received { pid: number, name, file, died, process: process.ok(), inode, connection: None }))
}

fn name(pid: Pid) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end().to_owned()).filter(|name| !name.is_empty())
}

/// Nanoseconds since 1970, as books count.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}
