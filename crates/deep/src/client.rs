//! Asks the reader process, and starts it.

use crate::protocol::{Answer, Ask, Effort, LONGEST, LONGEST_PATH};
use crate::table::RawTable;
use model::{Arch, DeepUnavailable};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// The first argument of this program that makes it a reader.
pub const COMMAND: &str = "deep-reader";

/// The longest pause before a reader is started again.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How many readers may be stuck in the kernel before no other is started.
const MOST_STUCK: usize = 4;
/// How long after its last word the exit status of a reader is waited for.
const EXIT_STATUS: Duration = Duration::from_millis(200);

/// The reader that was started last. It opens devices for a moment, and is none of their users.
static READER_PID: AtomicU32 = AtomicU32::new(0);

/// The pid of the reader of this process; 0 where there is none.
pub fn reader_pid() -> u32 {
    READER_PID.load(Relaxed)
}

/// What to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The device's number.
    pub number: u32,
    /// Its generation. The reader compares it with what the driver says.
    pub arch: Arch,
    /// The driver's list of who has the device open (`…/pids`). It is read right before and right after opening: if no other process
    /// is in it, the table is not read. `None`: not checked.
    pub pids: Option<PathBuf>,
}

/// A table, and what reading it took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The table.
    pub table: RawTable,
    /// From the first look at the list of holders until the node was closed again.
    pub took: Duration,
    /// Registers read.
    pub reads: u32,
    /// Tags that are left for the next read, since one read takes no more than [`MOST_READS`](crate::walk::MOST_READS). Only large
    /// tables have some, and only the first read after the reader or the firmware has started.
    pub pending: u32,
    /// How often this reader process has opened a node.
    pub opens: u32,
    /// Whether the kernel filters the system calls of the reader. Kernels without seccomp do not.
    pub filtered: bool,
}

/// Why there is no table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The reason.
    pub why: DeepUnavailable,
    /// The path and what went wrong, for a fault.
    pub detail: String,
    /// Whether the node was opened. Also set if that is not known: the reader ended.
    pub opened: bool,
}

/// The reader process. It is started when it is first asked for something.
///
/// One that ends, or that does not answer in time, is replaced at the next request. If it had not answered once, only after a pause:
/// 1 s, 2 s, 4 s … 60 s.
pub struct Reader {
    program: PathBuf,
    nodes: PathBuf,
    running: Option<Running>,
    /// Processes in a row that have not answered once.
    failures: u32,
    pause_until: Option<Instant>,
    /// Held by each process that has not ended.
    started: Arc<()>,
}

struct Running {
    socket: OwnedFd,
    pid: u32,
    /// None on kernels without: the end of its socket ends a reader, too.
    pidfd: Option<OwnedFd>,
    ended: Receiver<ExitStatus>,
    has_answered: bool,
}

/// What came back on the socket.
enum Reply {
    Answer(Answer),
    /// The process has ended before, and nobody has heard of this request.
    NotHeard,
    Ended,
    Late,
    Garbage,
}

impl Reader {
    /// `program` is this program itself. `nodes` is the folder of the device nodes: `/dev/tenstorrent`, or `ROOT/dev/tenstorrent`.
    pub fn new(program: PathBuf, nodes: PathBuf) -> Reader {
        let nodes = std::path::absolute(&nodes).unwrap_or(nodes);
        Reader { program, nodes, running: None, failures: 0, pause_until: None, started: Arc::default() }
    }

    /// Reads the table of a device. Waits no longer than `deadline`: a reader that does not answer by then is killed and not waited
    /// for.
    pub fn read(&mut self, request: &Request, deadline: Duration) -> Result<Reading, Refused> {
        let pids = request.pids.as_ref().map(|path| path.as_os_str().as_bytes());
        let node = self.nodes.join(request.number.to_string());
        if pids.is_some_and(|path| path.is_empty() || path.len() > LONGEST_PATH) {
            return Err(failed(format!("{}: the path of the list of holders is too long", node.display()), false));
        }
        let ask = Ask::Read { number: request.number, arch: request.arch, pids };
        let Answer { effort: Effort { opened, filtered, opens, took }, outcome } = self.ask(&ask, deadline)?;
        match outcome {
            Ok((table, walked)) if table.arch == request.arch => {
                Ok(Reading { table, took, reads: walked.reads, pending: walked.pending, opens, filtered })
            }
            Ok(_) => Err(failed("the reader answered something else".to_owned(), opened)),
            Err((why, errno, what)) => {
                let words = match errno {
                    0 => String::new(),
                    errno => format!(": {}", io::Error::from_raw_os_error(errno)),
                };
                Err(Refused { why, detail: format!("{}: {what}{words}", node.display()), opened })
            }
        }
    }

    /// The process that reads, if there is one. The driver lists it among the holders of a device while it reads it.
    pub fn pid(&self) -> Option<u32> {
        self.running.as_ref().map(|running| running.pid)
    }

    /// Has the reader do what it may not, which ends it. For tests.
    #[doc(hidden)]
    pub fn break_its_rules(&mut self) -> Refused {
        let answer = self.ask(&Ask::ForbiddenCall, Duration::from_secs(10));
        answer.err().unwrap_or_else(|| failed("nothing ended the reader".to_owned(), false))
    }

    fn ask(&mut self, ask: &Ask<'_>, deadline: Duration) -> Result<Answer, Refused> {
        let until = Instant::now() + deadline;
        let mut reply = self.exchange(ask, until)?;
        if matches!(reply, Reply::NotHeard) {
            self.replace();
            reply = self.exchange(ask, until)?;
        }
        let refused = match reply {
            Reply::Answer(answer) => {
                self.failures = 0;
                return Ok(answer);
            }
            Reply::NotHeard => failed("the reader ended before it was asked".to_owned(), false),
            Reply::Ended => self.how_it_ended(),
            Reply::Late => failed(format!("no answer within {} ms", deadline.as_millis()), true),
            Reply::Garbage => failed("the reader answered something else".to_owned(), true),
        };
        self.replace();
        Err(refused)
    }

    fn exchange(&mut self, ask: &Ask<'_>, until: Instant) -> Result<Reply, Refused> {
        if self.running.is_none() {
            self.running = Some(self.start().map_err(|why| failed(why, false))?);
        }
        let Some(running) = &mut self.running else { return Ok(Reply::NotHeard) };
        let mut packet = [0; LONGEST];
        let length = ask.encode(&mut packet);
        if send(&running.socket, &packet[..length], SendFlags::NOSIGNAL | SendFlags::DONTWAIT).is_err() {
            return Ok(Reply::NotHeard);
        }
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(left) = left.try_into() else { return Ok(Reply::Late) };
            match poll(&mut [PollFd::new(&running.socket, PollFlags::IN)], Some(&left)) {
                Ok(0) => return Ok(Reply::Late),
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(_) => return Ok(Reply::Ended),
            }
        }
        let length = recv(&running.socket, &mut packet, RecvFlags::DONTWAIT).map_or(0, |(_, length)| length);
        if length == 0 {
            return Ok(Reply::Ended);
        }
        let answer = packet.get(..length).and_then(Answer::decode);
        running.has_answered |= answer.is_some();
        Ok(answer.map_or(Reply::Garbage, Reply::Answer))
    }

    /// Ends the process, and sees to a pause if it was of no use.
    fn replace(&mut self) {
        let Some(running) = self.running.take() else { return };
        // It may have ended by itself.
        let _ = running.pidfd.map(|pidfd| pidfd_send_signal(pidfd, Signal::KILL));
        if !running.has_answered {
            self.fail();
        }
    }

    fn fail(&mut self) {
        let pause = Duration::from_secs(1 << self.failures.min(6)).min(LONGEST_PAUSE);
        self.failures += 1;
        self.pause_until = Some(Instant::now() + pause);
    }

    fn how_it_ended(&self) -> Refused {
        let ended = self.running.as_ref().and_then(|running| running.ended.recv_timeout(EXIT_STATUS).ok());
        match ended {
            Some(status) if status.signal() == Some(Signal::BUS.as_raw()) => Refused {
                why: DeepUnavailable::NotReady,
                detail: "the device was reset or removed while it was read".to_owned(),
                opened: true,
            },
            Some(status) => failed(format!("the reader ended: {status}"), true),
            None => failed("the reader ended".to_owned(), true),
        }
    }

    fn start(&mut self) -> Result<Running, String> {
        if let Some(left) = self.pause_until.and_then(|until| until.checked_duration_since(Instant::now())) {
            return Err(format!("the reader ended and is started again in {:.0} s", left.as_secs_f64().ceil()));
        }
        if Arc::strong_count(&self.started) > MOST_STUCK {
            return Err(format!("{MOST_STUCK} readers are stuck: no other is started"));
        }
        self.start_now().inspect_err(|_| self.fail()).map_err(|error| format!("{}: {error}", self.program.display()))
    }

    fn start_now(&self) -> io::Result<Running> {
        let (socket, its_end) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let mut command = Command::new(&self.program);
        command.arg(COMMAND).arg(&self.nodes).env_clear().current_dir("/");
        command.stdin(its_end).stdout(Stdio::null()).stderr(Stdio::null());
        let (started, process) = channel();
        let (sender, ended) = channel();
        let counted = Arc::clone(&self.started);
        // The reader is killed when the thread that started it ends. So that one does nothing else than to wait for it.
        std::thread::Builder::new().name(COMMAND.to_owned()).stack_size(256 << 10).spawn(move || {
            run(command, &started, &sender);
            drop(counted);
        })?;
        let (pid, pidfd) = process.recv().map_err(io::Error::other)??;
        Ok(Running { socket, pid, pidfd, ended, has_answered: false })
    }
}

/// The pid of a reader, and what it can be killed with.
type Process = (u32, Option<OwnedFd>);

/// Starts the reader, says which process it is, and waits for its end.
fn run(mut command: Command, started: &Sender<io::Result<Process>>, ended: &Sender<ExitStatus>) {
    let child = command.spawn();
    // Holds the reader's end of the socket, which the reader alone may have.
    drop(command);
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return drop(started.send(Err(error))),
    };
    READER_PID.store(child.id(), Relaxed);
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pidfd = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let _ = started.send(Ok((child.id(), pidfd)));
    if let Ok(status) = child.wait() {
        let _ = ended.send(status);
    }
}

fn failed(detail: String, opened: bool) -> Refused {
    Refused { why: DeepUnavailable::ReaderFailed, detail, opened }
}
