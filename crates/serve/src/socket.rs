//! A place in the file system to listen at. Whoever serves there already is left alone.

use rustix::fs::{AtFlags, CWD, FileType, Mode, RenameFlags, Stat, chmod, renameat_with, statat, unlink};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with, sockopt,
};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use watch::exit::{Exit, Failure};

/// A socket that listens. Its file goes with it, unless another file has taken its place.
pub struct UnixListenSocket {
    pub socket: OwnedFd,
    pub path: PathBuf,
    /// The file that is ours to remove.
    file: Option<(u64, u64)>,
}

/// Connections that wait to be accepted. The kernel has a limit of its own.
const BACKLOG: i32 = 4096;

impl UnixListenSocket {
    /// Listens at a path where no service listens.
    pub fn claim(path: &Path, mode: u32) -> anyhow::Result<UnixListenSocket> {
        let failure = |exit, why: String| Failure::error(exit, format!("{}: {why}", path.display()));
        let socket = new_socket()?;
        // Made beside it and moved there whole, so that no client finds a socket that does not answer.
        let beside = beside(path, "new");
        let _ = std::fs::remove_file(&beside);
        let address = SocketAddrUnix::new(&beside)
            .map_err(|_| failure(Exit::Usage, "the path is too long for a socket: choose a shorter one".into()))?;
        let made = bind(&socket, &address)
            .and_then(|()| chmod(&beside, Mode::from_raw_mode(mode)))
            .and_then(|()| listen(&socket, BACKLOG))
            .and_then(|()| place_of(&beside));
        let moved = made.map_err(|error| cannot(path, error)).and_then(|file| {
            move_to(&beside, path)?;
            Ok(file)
        });
        if moved.is_err() {
            let _ = std::fs::remove_file(&beside);
        }
        Ok(UnixListenSocket { socket, path: path.to_owned(), file: Some(moved?) })
    }

    /// One that systemd has made, and keeps.
    pub fn handed(socket: OwnedFd, path: PathBuf) -> UnixListenSocket {
        let _ = rustix::io::ioctl_fionbio(&socket, true);
        UnixListenSocket { socket, path, file: None }
    }
}

impl Drop for UnixListenSocket {
    fn drop(&mut self) {
        if self.file.is_some() && place_of(&self.path).ok() == self.file {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn new_socket() -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)
}

fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{what}{}", std::process::id()));
    name.into()
}

fn stat(path: &Path) -> Result<Stat, Errno> {
    statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)
}

fn place_of(path: &Path) -> Result<(u64, u64), Errno> {
    stat(path).map(|stat| (stat.st_dev, stat.st_ino))
}

fn cannot(path: &Path, error: Errno) -> anyhow::Error {
    let exit = if matches!(error, Errno::ACCESS | Errno::PERM) { Exit::Permission } else { Exit::Usage };
    let why = match error {
        Errno::NOENT => "there is no such folder: make it, or name another place".to_owned(),
        error => format!("cannot listen there: {}", std::io::Error::from(error)),
    };
    Failure::error(exit, format!("{}: {why}", path.display()))
}

/// Moves a socket to its place, if no service listens there.
fn move_to(from: &Path, path: &Path) -> anyhow::Result<()> {
    for _ in 0..10 {
        match renameat_with(CWD, from, CWD, path, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(()),
            Err(Errno::EXIST) => take_away_if_stale(path)?,
            Err(error) => return Err(cannot(path, error)),
        }
    }
    Err(Failure::error(Exit::Usage, format!("{}: another process keeps taking this path", path.display())))
}

/// Removes the socket of a server that is gone, and nothing else.
fn take_away_if_stale(path: &Path) -> anyhow::Result<()> {
    let failure = |exit, why: String| Err(Failure::error(exit, format!("{}: {why}", path.display())));
    let stat = match stat(path) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(cannot(path, error)),
    };
    if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
        return failure(Exit::Usage, "is there already and is no socket: remove it, or name another place".into());
    }
    let connection = new_socket()?;
    match connect(&connection, &SocketAddrUnix::new(path)?) {
        Err(Errno::CONNREFUSED) => {}
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ACCESS) => {
            return failure(Exit::Permission, "belongs to another user: choose another path".into());
        }
        Ok(()) => return failure(Exit::Usage, served_by(&connection)),
        // It has another type, or its backlog is full.
        Err(_) => return failure(Exit::Usage, "another program serves there: end it, or name another place".into()),
    }
    let me = rustix::process::geteuid();
    if stat.st_uid != me.as_raw() && !me.is_root() {
        let why = "is a socket that another user has left behind: ask that user or root to remove it";
        return failure(Exit::Permission, why.into());
    }
    // There may be a new one meanwhile; moving shows which one it was, as removing would not.
    let aside = beside(path, "old");
    match renameat_with(CWD, path, CWD, &aside, RenameFlags::NOREPLACE) {
        Ok(()) if place_of(&aside).ok() == Some((stat.st_dev, stat.st_ino)) => {
            unlink(&aside).map_err(|error| cannot(&aside, error))
        }
        Ok(()) => {
            let _ = renameat_with(CWD, &aside, CWD, path, RenameFlags::NOREPLACE);
            failure(Exit::Usage, "another process has just taken this path".into())
        }
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(cannot(path, error)),
    }
}

fn served_by(connection: &OwnedFd) -> String {
    let advice = "end it, or name another place with --socket or --poc-socket";
    let Ok(peer) = sockopt::socket_peercred(connection) else {
        return format!("another program serves there: {advice}");
    };
    let pid = peer.pid.as_raw_nonzero().get() as u32;
    let name = sources::identify(pid).and_then(|identity| identity.process.name);
    let name = show::text::clean(&name.unwrap_or_else(|| "a program that does not show itself".into())).into_owned();
    format!("is served by pid {pid} ({name}): {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::{UnixListener, UnixStream};

    fn error(path: &Path) -> String {
        UnixListenSocket::claim(path, 0o600).err().unwrap().to_string()
    }

    #[test]
    fn a_socket_is_there_with_its_mode_and_gone_with_its_listener() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sock");
        let listener = UnixListenSocket::claim(&path, 0o666).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o666);
        UnixStream::connect(&path).unwrap();
        drop(listener);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_socket_that_somebody_serves_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sock");
        let other = UnixListener::bind(&path).unwrap();
        let why = error(&path);
        assert!(why.contains(&format!("is served by pid {} (", std::process::id())), "{why}");
        UnixStream::connect(&path).unwrap();
        drop(other);
        UnixListenSocket::claim(&path, 0o600).unwrap();
    }

    #[test]
    fn what_is_no_socket_is_never_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sock");
        std::fs::write(&path, "precious").unwrap();
        assert!(error(&path).ends_with("is there already and is no socket: remove it, or name another place"));
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(error(&link).contains("is no socket"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        assert!(error(&folder.path().join("no/folder")).contains("there is no such folder"));
    }

    #[test]
    fn a_socket_that_was_replaced_is_not_ours_to_remove() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sock");
        let listener = UnixListenSocket::claim(&path, 0o600).unwrap();
        std::fs::remove_file(&path).unwrap();
        let _other = UnixListener::bind(&path).unwrap();
        drop(listener);
        assert!(path.exists());
    }
}
