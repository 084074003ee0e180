//! The two sockets in the file system: where they are, and what is done when one of them cannot be opened.

use crate::args::Args;
use crate::service::Endpoint;
use crate::socket::UnixListenSocket;
use crate::systemd;
use ::alerts::log::{LogLevel, log};
use ledger::wire::{OF_THE_MACHINE, OF_THE_USER};
use rustix::process::geteuid;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use watch::exit::{Exit, Failure};

/// Where clients of the proof of concept look for their server.
const POC_SOCKET: &str = "/tmp/tt_allocation_server.sock";

type Listeners = Vec<(Endpoint, UnixListenSocket)>;

/// Those that could not be opened yet. Any user can be in the way of a socket in `/tmp`, and does not stop the service by that.
pub struct MissingEndpoints(Vec<(Endpoint, PathBuf)>);

/// The sockets to listen at: those that systemd has made, and the others. An error when none of them can be opened.
pub fn open(args: &Args) -> anyhow::Result<(Listeners, MissingEndpoints)> {
    let poc = args.poc_socket.clone().unwrap_or_else(|| POC_SOCKET.into());
    let handed = |(socket, path): (OwnedFd, PathBuf)| {
        let is_poc = path == poc || path.file_name() == Path::new(POC_SOCKET).file_name();
        (if is_poc { Endpoint::Poc } else { Endpoint::Native }, UnixListenSocket::handed(socket, path))
    };
    let mut listeners: Listeners = systemd::sockets().into_iter().map(handed).collect();
    let is_missing = |endpoint| !listeners.iter().any(|(other, _)| *other == endpoint);
    let mut wanted = Vec::new();
    if is_missing(Endpoint::Native) {
        wanted.push((Endpoint::Native, native_socket(args)?));
    }
    if is_missing(Endpoint::Poc) && poc != Path::new("off") {
        wanted.push((Endpoint::Poc, poc));
    }
    let (mut missing, mut failures) = (Vec::new(), Vec::new());
    for (endpoint, path) in wanted {
        match claim(endpoint, &path) {
            Ok(listener) => listeners.push((endpoint, listener)),
            Err(error) => {
                missing.push((endpoint, path));
                failures.push(error);
            }
        }
    }
    if listeners.is_empty() {
        return Err(failures.swap_remove(0));
    }
    for ((endpoint, _), error) in missing.iter().zip(failures) {
        let reason = format!("{error:#}; it is tried again");
        log(LogLevel::Warning, "not-listening", &[("protocol", &endpoint.name()), ("reason", &reason)]);
    }
    Ok((listeners, MissingEndpoints(missing)))
}

impl MissingEndpoints {
    /// Those that can be opened by now.
    pub fn try_again(&mut self) -> Listeners {
        let mut opened = Vec::new();
        self.0.retain(|(endpoint, path)| match claim(*endpoint, path) {
            Ok(listener) => {
                opened.push((*endpoint, listener));
                false
            }
            Err(_) => true,
        });
        opened
    }
}

fn claim(endpoint: Endpoint, path: &Path) -> anyhow::Result<UnixListenSocket> {
    if path == Path::new(OF_THE_MACHINE) {
        if let Some(folder) = path.parent() {
            if let Err(error) = std::fs::DirBuilder::new().mode(0o755).create(folder) {
                if error.kind() != io::ErrorKind::AlreadyExists {
                    return Err(Failure::of_io(&error, format!("{}: cannot be created: {error}", folder.display())));
                }
            }
        }
    }
    let is_for_all = endpoint == Endpoint::Poc || geteuid().is_root();
    UnixListenSocket::claim(path, if is_for_all { 0o666 } else { 0o600 })
}

fn native_socket(args: &Args) -> anyhow::Result<PathBuf> {
    if let Some(path) = &args.socket {
        return Ok(path.clone());
    }
    if geteuid().is_root() {
        return Ok(OF_THE_MACHINE.into());
    }
    let session = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let why = "XDG_RUNTIME_DIR is not set, so there is no folder for the socket: name a place with --socket PATH";
    session.map(|folder| folder.join(OF_THE_USER)).ok_or_else(|| Failure::error(Exit::Usage, why))
}
