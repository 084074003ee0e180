//! Lets the program end while one of its threads is stuck in the kernel.
//!
//! A read of a device in reset can block for ten seconds, and no signal ends it. A process is only over when its last thread is: the
//! shell would wait for all that time. So the program runs in a child. The process that the shell or systemd started only waits for
//! the child's main thread, ends with its exit code, and leaves the stuck thread behind. Until then, the two are one to the outside:
//! signals are passed on, a child that is stopped stops both, and neither survives the other.

#![allow(unsafe_code)]

use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

/// How often the child is looked at after a signal: its end is not announced while a thread is stuck.
const LOOK: Duration = Duration::from_millis(5);
/// For how long.
const LOOKS: Duration = Duration::from_secs(2);

/// The program is in a child now.
pub struct Child(());

impl Child {
    /// Goes on in a child process. To be called before there are threads. Without a child the program works as well, but may end
    /// late.
    pub fn fork() -> Option<Child> {
        let parent = std::process::id();
        let before = block_signals();
        // SAFETY: there is one thread, so the child may do everything that the parent might.
        let forked = unsafe { libc::fork() };
        match forked {
            0 => begin_child(parent),
            -1 => {}
            child => wait_for(child),
        }
        set_signals(&before);
        (forked == 0).then_some(Child(()))
    }

    /// Lets go of all files that a stuck thread would keep open, and has the parent look.
    pub fn end(self) {
        if !watch::machine::a_read_is_stuck() {
            return;
        }
        let _ = io::stdout().flush();
        let Ok(nothing) = std::fs::File::open("/dev/null") else { return };
        let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
        let open: Vec<i32> = open.filter_map(|file| file.file_name().to_str()?.parse().ok()).collect();
        // SAFETY: nothing is read or written from here on. The numbers stay open for threads that still have them.
        unsafe {
            for number in open {
                libc::dup2(nothing.as_raw_fd(), number);
            }
            libc::kill(libc::getppid(), libc::SIGCHLD);
        }
    }
}

fn begin_child(parent: u32) {
    // SAFETY: plain calls. There is no other thread yet that could read the environment or allocate.
    unsafe {
        // Threads that read allocate little: an arena for each would cost more than it saves.
        libc::mallopt(libc::M_ARENA_MAX, 1);
        // The heap grows in few steps.
        libc::mallopt(libc::M_TOP_PAD, 1 << 20);
        populate_heap();
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() as u32 != parent {
            libc::_exit(1);
        }
        // What systemd passes is for the process that it started: that is this one now.
        for name in ["LISTEN_PID", "WATCHDOG_PID"] {
            if std::env::var(name).is_ok_and(|pid| pid == parent.to_string()) {
                std::env::set_var(name, std::process::id().to_string());
            }
        }
    }
}

/// For a program that is over soon: threads allocate apart from each other, so that none waits for another. To be called before there
/// are threads.
pub fn allocate_apart() {
    // SAFETY: a plain call; nobody else allocates.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 3) };
}

/// How much of the heap every command uses.
const USED_HEAP: usize = 256 << 10;

/// Has the kernel provide the first part of the heap in one step, which is faster than a fault for each of its pages. Older kernels
/// than 5.14 cannot.
unsafe fn populate_heap() {
    // The largest block that comes from the heap: it makes the heap grow.
    const BLOCK: usize = 127 << 10;
    const PAGE: usize = 4096;
    // SAFETY: the block is given back as it was. Behind it is heap that nobody uses yet; where there is none, the call fails.
    unsafe {
        let block = libc::malloc(BLOCK);
        let page = block.addr().next_multiple_of(PAGE);
        libc::madvise(block.with_addr(page), USED_HEAP, libc::MADV_POPULATE_WRITE);
        libc::free(block);
    }
}

fn block_signals() -> libc::sigset_t {
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: both sets are filled by the calls that get them. A process that ignores SIGCHLD would not hear of its child; to stop
    // ignoring it later would discard one that has come.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        before.assume_init()
    }
}

fn set_signals(set: &libc::sigset_t) {
    // SAFETY: the set is one that the system gave.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, set, null_mut()) };
}

/// What the child is doing.
enum ChildState {
    Runs,
    Stopped(i32),
    Exited(i32),
    Killed(i32),
}

/// Waits for the child and ends as it does.
fn wait_for(child: i32) -> ! {
    // SAFETY: this process needs no file any more. Called by its number, since glibc has a name for it since 2.34 only.
    unsafe { libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0) };
    // What it needed to start is over.
    ledger::forget_code();
    let mut look_until = None;
    loop {
        let signal = next_signal(look_until.map(|_| LOOK));
        if let Some(signal) = &signal {
            pass_on(signal, child);
            look_until = Some(Instant::now() + LOOKS);
        }
        match state(child, signal.is_none()) {
            ChildState::Runs => look_until = look_until.filter(|until| Instant::now() < *until),
            // Where both were stopped and this process goes on already, the child is to follow.
            ChildState::Stopped(_) if is_continued() => {}
            ChildState::Stopped(signal) => take(signal),
            // SAFETY: there is nothing to clean up.
            ChildState::Exited(code) => unsafe { libc::_exit(code) },
            ChildState::Killed(signal) => {
                // SAFETY: as above. The child's memory is worth a core file, and not that of this process.
                unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) };
                take(signal);
                // SAFETY: as above.
                unsafe { libc::_exit(128 + signal) }
            }
        }
    }
}

/// The next signal, or none if none comes in time.
fn next_signal(time: Option<Duration>) -> Option<libc::siginfo_t> {
    let (mut all, mut signal) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let time = time.map(|time| libc::timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the set is filled by the first call, and the signal by the second if it returns its number.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        (libc::sigtimedwait(all.as_ptr(), signal.as_mut_ptr(), time) > 0).then(|| signal.assume_init())
    }
}

/// Whether a signal to continue has come since this process was stopped. It is passed on next.
fn is_continued() -> bool {
    let mut pending = MaybeUninit::uninit();
    // SAFETY: the set is filled by the call.
    unsafe { libc::sigpending(pending.as_mut_ptr()) == 0 && libc::sigismember(pending.as_ptr(), libc::SIGCONT) == 1 }
}

/// Passes a signal on, unless the terminal has sent it to both.
fn pass_on(signal: &libc::siginfo_t, child: i32) {
    if signal.si_signo != libc::SIGCHLD && signal.si_code != libc::SI_KERNEL {
        // SAFETY: the child is not waited for before it has ended, so the number is still its own.
        unsafe { libc::kill(child, signal.si_signo) };
    }
}

/// How the child is, also if only its main thread has ended.
fn state(child: i32, in_detail: bool) -> ChildState {
    let mut status = 0;
    // SAFETY: `status` is a place for the answer.
    let mut wait = || unsafe { libc::waitpid(child, &mut status, libc::WNOHANG | libc::WUNTRACED) };
    match wait() {
        0 if !in_detail => ChildState::Runs,
        0 => main_thread_status(child).map_or(ChildState::Runs, |status| {
            // The threads that are not stuck end within a moment, and then the child can be waited for.
            std::thread::sleep(LOOK);
            wait();
            ended(status)
        }),
        pid if pid == child && libc::WIFSTOPPED(status) => ChildState::Stopped(libc::WSTOPSIG(status)),
        pid if pid == child => ended(status),
        _ => ChildState::Exited(1),
    }
}

fn ended(status: i32) -> ChildState {
    if libc::WIFSIGNALED(status) {
        ChildState::Killed(libc::WTERMSIG(status))
    } else {
        ChildState::Exited(libc::WEXITSTATUS(status))
    }
}

/// The status of a child whose main thread has ended while another is stuck: the last field of its `stat`.
fn main_thread_status(child: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let (_, status) = fields.trim_end().rsplit_once(' ')?;
    status.parse().ok().filter(|_| fields.starts_with('Z'))
}

/// Takes the signal that stopped or ended the child.
fn take(signal: i32) {
    let mut only = MaybeUninit::uninit();
    // SAFETY: the set is filled before it is used.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
        libc::sigemptyset(only.as_mut_ptr());
        libc::sigaddset(only.as_mut_ptr(), signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, only.as_ptr(), null_mut());
        libc::sigprocmask(libc::SIG_BLOCK, only.as_ptr(), null_mut());
    }
}
