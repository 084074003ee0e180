//! What systemd and a service say to each other: sockets that it has made already, and how the service is.

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType, getsockname, sendto, socket_with,
};
use std::ffi::OsStr;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The first descriptor that systemd passes.
const FIRST: i32 = 3;

/// The sockets that were made for this process, with their paths. To be called once: the sockets are the caller's.
pub fn sockets() -> Vec<(OwnedFd, PathBuf)> {
    let is_for_us = number("LISTEN_PID") == Some(std::process::id().into());
    let count = number("LISTEN_FDS").filter(|_| is_for_us).unwrap_or(0).min(16);
    (FIRST..FIRST + count as i32).filter_map(passed_socket).collect()
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[allow(unsafe_code)]
fn passed_socket(number: i32) -> Option<(OwnedFd, PathBuf)> {
    std::fs::symlink_metadata(format!("/proc/self/fd/{number}")).ok()?;
    // SAFETY: it is open, and whoever set LISTEN_PID to this process made it for this place: nothing else here has it.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl_setfd(&socket, FdFlags::CLOEXEC).ok()?;
    let address: SocketAddrAny = getsockname(&socket).ok()?;
    let address: SocketAddrUnix = address.try_into().ok()?;
    let path = PathBuf::from(OsStr::from_bytes(address.path()?.to_bytes()));
    Some((socket, path))
}

pub fn notify(text: &str) {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let address = match path.as_bytes() {
        [b'@', name @ ..] => SocketAddrUnix::new_abstract_name(name),
        path => SocketAddrUnix::new(path),
    };
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    if let (Ok(address), Ok(socket)) = (address, socket) {
        let _ = sendto(&socket, text.as_bytes(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT, &address);
    }
}

/// Tells systemd that the loop turns, where the unit has `WatchdogSec=`: a service that does not is started again.
#[derive(Debug)]
pub struct Watchdog {
    /// How often: twice as often as necessary. Absent where nobody waits for it.
    every: Option<Duration>,
    last: Instant,
}

impl Watchdog {
    /// As systemd wants it of this process.
    pub fn of_environment() -> Watchdog {
        let is_for_us = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let wanted = number("WATCHDOG_USEC").filter(|time| is_for_us && *time > 0);
        Watchdog { every: wanted.map(|time| Duration::from_micros(time / 2)), last: Instant::now() }
    }

    /// When the loop must turn again.
    pub fn next(&self) -> Option<Instant> {
        self.every.map(|every| self.last + every)
    }

    /// To be called with every turn of the loop.
    pub fn turn(&mut self, now: Instant) {
        if self.next().is_some_and(|next| next <= now) {
            self.last = now;
            notify("WATCHDOG=1");
        }
    }
}

/// Says that the configuration is being read again; to be followed by `READY=1`.
pub fn reloading() -> String {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    format!("RELOADING=1\nMONOTONIC_USEC={}", time.tv_sec as i128 * 1_000_000 + time.tv_nsec as i128 / 1000)
}
