//! What systemd and a service say to each other: sockets that it has made already, and how the service is.

use rustix::net::{
    AddressFamily, SendFlags, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType, getsockname, sendto, socket_with,
};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The sockets that were made for this process, with their paths.
pub fn sockets() -> Vec<(OwnedFd, PathBuf)> {
    let number = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    let is_for_us = number("LISTEN_PID") == Some(std::process::id());
    let count = number("LISTEN_FDS").filter(|_| is_for_us).unwrap_or(0);
    let Ok(this) = pidfd_open(getpid(), PidfdFlags::empty()) else { return Vec::new() };
    // They begin at 3. Copies of them are as good, and are ours by the kernel's word.
    let copies = (0..count.min(16)).filter_map(|at| {
        let socket = pidfd_getfd(&this, 3 + at.cast_signed(), PidfdGetfdFlags::empty()).ok()?;
        let address: SocketAddrUnix =
            getsockname(&socket).ok().and_then(|address: SocketAddrAny| address.try_into().ok())?;
        let path = PathBuf::from(OsStr::from_bytes(address.path()?.to_bytes()));
        Some((socket, path))
    });
    copies.collect()
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

/// Says that the configuration is being read again; to be followed by `READY=1`.
pub fn reloading() -> String {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    format!("RELOADING=1\nMONOTONIC_USEC={}", time.tv_sec as i128 * 1_000_000 + time.tv_nsec as i128 / 1000)
}
