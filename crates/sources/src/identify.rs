//! Who a process is, for the service that is called by one: from `/proc/<pid>/`, without a look into its memory.

use crate::books::{self, ProcessId};
use crate::cgroup::{self, CgroupOwner};
use crate::clock::Clock;
use crate::dir::Dir;
use crate::procs::{command_line_of, open_process, stat};
use crate::users::Users;
use model::Process;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// A running process.
#[derive(Debug, Clone)]
pub struct Identity {
    /// When it began, in clock ticks since boot. With the pid it identifies the process.
    pub start_ticks: u64,
    /// How it calls itself, in its own PID namespace.
    pub inner_pid: u32,
    /// Whose it is.
    pub uid: Option<u32>,
    /// What people want to know of it. It holds nothing yet.
    pub process: Process,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitStatus {
    /// In its own time, with this code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

static USERS: LazyLock<Users> = LazyLock::new(Users::default);

/// A user's login name, or the number until it is found: this does not wait for LDAP.
pub fn user_name(uid: u32) -> String {
    USERS.name_at_once(uid)
}

/// Reads who a process is, but for its command line, which may make the reader wait. `None` when it is gone, or exited and not yet waited for.
pub fn identify(pid: u32) -> Option<Identity> {
    let (dir, stat, status) = open_process(pid)?;
    let mut bytes = Vec::new();
    let cgroup = dir.read_all("cgroup", &mut bytes);
    // The names of pods are in files of the container runtime, which the sampler reads.
    let cgroup = cgroup.map(|()| cgroup::parse(&String::from_utf8_lossy(&bytes)));
    let CgroupOwner { container, owner, .. } = cgroup.unwrap_or_default();
    let process = Process {
        parent_pid: stat.parent,
        user: status.uid.map(user_name),
        name: Some(stat.name),
        container,
        owner,
        started_at: Some(Clock::now().timestamp(stat.start_ticks)),
        host_memory: status.resident,
        ..Process::new(pid)
    };
    Some(Identity {
        start_ticks: stat.start_ticks,
        inner_pid: status.inner_pid.unwrap_or(pid),
        uid: status.uid,
        process,
    })
}

/// The command line of a process. Whoever reads it waits while a thread of the process has its memory map locked.
pub fn command_of(pid: u32, start_ticks: u64) -> Option<String> {
    let (dir, stat, _) = open_process(pid)?;
    if stat.start_ticks == start_ticks { command_line_of(&dir) } else { None }
}

/// The book that a process keeps, opened, so that it can be read even after its end.
pub fn open_book(pid: u32, identity: &Identity) -> Option<Arc<File>> {
    let dir = Dir::open(Path::new(&format!("/proc/{pid}")), None).ok()?;
    books::open(&dir, ProcessId { pid: identity.inner_pid, start_ticks: identity.start_ticks })
}

/// How a process ended, as long as no process has waited for it and it may be read.
pub fn wait_status(pid: u32, start_ticks: u64) -> Option<WaitStatus> {
    let bytes = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let found = stat(&bytes).filter(|stat| stat.has_exited && stat.start_ticks == start_ticks);
    found.and_then(|_| ending(&bytes))
}

/// How a process ended that its parent has waited for already, by a pidfd from before. Only Linux 6.15 and later know.
pub fn reaped_status(pidfd: impl AsFd) -> Option<WaitStatus> {
    ledger::exit_status(pidfd).map(spelled)
}

fn spelled(status: i32) -> WaitStatus {
    match (status & 0x7f, status >> 8 & 0xff) {
        (0, code) => WaitStatus::Exited(code),
        (signal, _) => WaitStatus::Killed(signal),
    }
}

/// The last field of a `stat` file, as `waitpid` spells it. Without permission to read the process it is zero, as after a good end.
fn ending(stat: &[u8]) -> Option<WaitStatus> {
    let text = std::str::from_utf8(&stat[stat.iter().rposition(|&b| b == b')')?..]).ok()?;
    // Field 52 of the manual page, counted from the end of the name, which is field 2.
    let status: i32 = text.split_ascii_whitespace().nth(50)?.parse().ok()?;
    match spelled(status) {
        WaitStatus::Exited(0) if !rustix::process::geteuid().is_root() => None,
        status => Some(status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn this_very_process_has_a_name_and_a_user() {
        let identity = identify(std::process::id()).unwrap();
        assert_eq!(identity.inner_pid, std::process::id());
        assert!(identity.process.user.is_some());
        assert!(command_of(std::process::id(), identity.start_ticks).is_some());
        assert!(identify(u32::MAX).is_none());
    }

    #[test]
    fn an_exit_that_was_not_waited_for_can_be_known() {
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        let ticks = identify(child.id()).unwrap().start_ticks;
        assert_eq!(wait_status(child.id(), ticks), None, "it lives");
        child.kill().unwrap();
        let status = (0..1000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            wait_status(child.id(), ticks)
        });
        assert_eq!(status, Some(WaitStatus::Killed(9)));
        assert_eq!(wait_status(child.id(), ticks + 1), None, "another process of that pid");
        child.wait().unwrap();
        assert_eq!(wait_status(child.id(), ticks), None);
    }
}
