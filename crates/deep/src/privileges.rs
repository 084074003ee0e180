//! What the reader gives up before it reads anything.
//!
//! It keeps what opening a node needs and loses the rest: capabilities, inherited files, core files, and all system calls but a few.
//! The kernel ends it at any other call. Files can only be opened to be read, memory only be mapped to be read, and only the socket
//! be written to.

#![allow(unsafe_code)]

use crate::node::REQUESTS;
use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal};
use rustix::thread::{CapabilitySet, CapabilitySets};

/// The highest number of a file, and one more. A reader that forgot to close one would soon stop.
const FILES: u64 = 16;

/// Gives up what is not needed. Says whether system calls are filtered: some kernels cannot.
pub fn drop_all() -> bool {
    // SAFETY: nothing has been opened yet, so no one else's file is closed. 0 is the socket, 1 and 2 are /dev/null. What Rust does at
    // signals like these is to look whether a stack is too small: they are to end the process, and nothing else.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0);
        libc::signal(libc::SIGBUS, libc::SIG_DFL);
        libc::signal(libc::SIGSEGV, libc::SIG_DFL);
    }
    let _ = rustix::process::setrlimit(Resource::Core, limit(0));
    let _ = rustix::process::setrlimit(Resource::Nofile, limit(FILES));
    let none = CapabilitySet::empty();
    let _ = rustix::thread::clear_ambient_capability_set();
    let _ =
        rustix::thread::set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none });
    // A reset ends the reader with SIGBUS. That is no reason to write a core file, or to have one collected.
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    rustix::thread::set_no_new_privs(true).is_ok() && filter_calls()
}

const fn limit(most: u64) -> Rlimit {
    Rlimit { current: Some(most), maximum: Some(most) }
}

/// Ends the process, and nothing else: what a program does at its end needs other calls.
pub fn exit(code: i32) -> ! {
    // SAFETY: there is nothing to write and no other thread.
    unsafe { libc::_exit(code) }
}

#[cfg(target_arch = "x86_64")]
const MACHINE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const MACHINE: u32 = 0xc000_00b7;

/// Calls that are allowed whatever their arguments are.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const CALLS: [libc::c_long; 9] = [
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_munmap,
    libc::SYS_clock_gettime,
    libc::SYS_rt_sigreturn,
    libc::SYS_exit_group,
];

/// Has the kernel end this process at any call but those that it needs.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn filter_calls() -> bool {
    use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W};
    use libc::{SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS};

    /// Where the kernel's description of a call has its number, the machine, and the low half of an argument.
    const NUMBER: u32 = 0;
    const ARCH: u32 = 4;
    const fn argument(index: u32) -> u32 {
        16 + 8 * index
    }
    let step = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    let load = |from| step(BPF_LD | BPF_W | BPF_ABS, from, 0, 0);
    let end = |action| step(BPF_RET | BPF_K, action, 0, 0);
    let allow = end(SECCOMP_RET_ALLOW);
    let kill = end(SECCOMP_RET_KILL_PROCESS);
    // Goes on with the next step if the word is this one, and skips some otherwise.
    let is = |word: u32, otherwise_skip| step(BPF_JMP | BPF_JEQ | BPF_K, word, 0, otherwise_skip);
    let number = |call: libc::c_long| call as u32;

    let is_this_machine = step(BPF_JMP | BPF_JEQ | BPF_K, MACHINE, 1, 0);
    let mut steps = vec![load(ARCH), is_this_machine, kill, load(NUMBER)];
    for call in CALLS {
        steps.extend([is(number(call), 1), allow]);
    }
    // To be read only: no access mode but O_RDONLY, nothing created or cut.
    let writes = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC) as u32;
    let no_writes = step(BPF_JMP | BPF_JSET | BPF_K, writes, 1, 0);
    steps.extend([is(number(libc::SYS_openat), 4), load(argument(2)), no_writes, allow, kill]);
    steps.extend([is(number(libc::SYS_write), 4), load(argument(0)), is(0, 1), allow, kill]);
    // Rust looks at a file before it closes it, in builds for tests.
    steps.extend([is(number(libc::SYS_fcntl), 4), load(argument(1)), is(libc::F_GETFD as u32, 1), allow, kill]);
    let is_read_only = is(libc::PROT_READ as u32, 1);
    steps.extend([is(number(libc::SYS_mmap), 4), load(argument(2)), is_read_only, allow, kill]);
    steps.extend([is(number(libc::SYS_ioctl), 1 + 2 * REQUESTS.len() as u8), load(argument(1))]);
    for request in REQUESTS {
        steps.extend([is(request, 1), allow]);
    }
    steps.push(kill);

    // Kept: to free memory can need a call that is not allowed any more.
    let steps = steps.leak();
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the program is read during the call, and as long as it says.
    unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0 }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn filter_calls() -> bool {
    false
}
