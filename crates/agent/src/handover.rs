//! Hands the book to the services that listen, without ever waiting for them.
//!
//! A hello and a book's frame (`ledger::wire`) in one message on a Unix stream, with the book's file descriptor beside it. The
//! connection stays open, which costs nothing: when it breaks, the service is gone, and the next one is handed the book again. That
//! is looked for with an event, at most once per second.

use ledger::wire::{Hello, OF_THE_MACHINE, OF_THE_USER, Request, frame};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::fstat;
use rustix::io::{self, Errno};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    connect, sendmsg, socket_with,
};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Where the book should go.
pub struct Handover {
    services: Vec<ServiceAddress>,
    due: AtomicU64,
}

/// A place where a service may be.
struct ServiceAddress {
    address: SocketAddrUnix,
    connection: Mutex<Option<Connection>>,
}

/// A service that has the book.
struct Connection {
    socket: OwnedFd,
    inode: (u64, u64),
}

/// Milliseconds between two tries.
const PAUSE: u64 = 1_000;

impl Handover {
    /// To this path, to the service of the machine, and to that of the user. An empty path goes nowhere at all. A leading `@` means
    /// a name that is not in the file system.
    pub fn to(path: Option<&OsStr>) -> Handover {
        if path.is_some_and(OsStr::is_empty) {
            return Handover::among(&[]);
        }
        let of_the_user = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| folder.as_bytes().starts_with(b"/"));
        let of_the_user = of_the_user.map(|mut folder| {
            folder.push("/");
            folder.push(OF_THE_USER);
            folder
        });
        let paths = path.map(OsStr::to_owned).into_iter().chain([OF_THE_MACHINE.into()]).chain(of_the_user);
        Handover::among(&paths.collect::<Vec<OsString>>())
    }

    fn among(paths: &[OsString]) -> Handover {
        let service = |path: &OsString| {
            let address = match path.as_bytes() {
                [b'@', name @ ..] => SocketAddrUnix::new_abstract_name(name),
                path => SocketAddrUnix::new(path),
            };
            Some(ServiceAddress { address: address.ok()?, connection: Mutex::new(None) })
        };
        Handover { services: paths.iter().filter_map(service).collect(), due: AtomicU64::new(0) }
    }

    /// Tries, if it is time to: `now` is in milliseconds of the coarse clock.
    #[inline]
    pub fn tend<'a>(&self, now: u64, book: impl FnOnce() -> Option<&'a File>) {
        if !self.services.is_empty() && now >= self.due.load(Relaxed) {
            self.attempt(now, book);
        }
    }

    #[cold]
    fn attempt<'a>(&self, now: u64, book: impl FnOnce() -> Option<&'a File>) {
        let due = self.due.load(Relaxed);
        if now < due || self.due.compare_exchange(due, now + PAUSE, Relaxed, Relaxed).is_err() {
            return;
        }
        // Unless the program has closed it.
        let Some(book) = book() else { return };
        for service in &self.services {
            let Ok(mut connection) = service.connection.try_lock() else { continue };
            if !connection.as_ref().is_some_and(Connection::is_open) {
                if let Some(broken) = connection.take() {
                    broken.leave();
                }
                *connection = send(&service.address, book).ok();
            }
        }
    }
}

impl Connection {
    /// Whether the descriptor is still ours. A program that closes all that it does not know may have another file there.
    fn is_ours(&self) -> bool {
        fstat(&self.socket).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == self.inode)
    }

    fn is_open(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut socket = [PollFd::new(&self.socket, PollFlags::RDHUP)];
        self.is_ours() && poll(&mut socket, Some(&now)) == Ok(0)
    }

    /// Closes it, unless that would close another file of the program.
    fn leave(self) {
        if !self.is_ours() {
            let _ = self.socket.into_raw_fd();
        }
    }
}

fn send(to: &SocketAddrUnix, book: &File) -> io::Result<Connection> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, to)?;
    let hello = Request::Hello(Hello::from(concat!("ttmon-agent ", env!("CARGO_PKG_VERSION"))));
    let mut text = frame(&hello).map_err(|_| Errno::INVAL)?;
    text.extend(frame(&Request::Book { pid: std::process::id() }).map_err(|_| Errno::INVAL)?);
    let files = [book.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !beside.push(SendAncillaryMessage::ScmRights(&files)) {
        return Err(Errno::NOBUFS);
    }
    let sent = sendmsg(&socket, &[IoSlice::new(&text)], &mut beside, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
    let stat = fstat(&socket)?;
    if sent == text.len() { Ok(Connection { socket, inode: (stat.st_dev, stat.st_ino) }) } else { Err(Errno::AGAIN) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::millis;
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, accept, bind, listen, recvmsg};
    use std::io::{IoSliceMut, Read, Seek, Write};

    fn listener(address: &SocketAddrUnix) -> OwnedFd {
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        bind(&socket, address).unwrap();
        listen(&socket, 4).unwrap();
        socket
    }

    /// The connection, what was said, and the file that came with it.
    fn received(listener: &OwnedFd) -> (OwnedFd, Vec<Request>, File) {
        let peer = accept(listener).unwrap();
        let mut bytes = [0; 512];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let got = recvmsg(&peer, &mut [IoSliceMut::new(&mut bytes)], &mut beside, RecvFlags::CMSG_CLOEXEC).unwrap();
        let file = beside.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        });
        let mut frames = ledger::wire::Frames::up_to(512);
        frames.feed(&bytes[..got.bytes]);
        let requests =
            std::iter::from_fn(|| frames.next_frame()).map(|frame| Request::decode(&frame.unwrap()).unwrap());
        (peer, requests.collect(), File::from(file.unwrap()))
    }

    fn has_the_book(handover: &Handover) -> bool {
        handover.services[0].connection.lock().unwrap().is_some()
    }

    #[test]
    fn the_book_arrives_once_and_again_when_the_service_does() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("books");
        let service = listener(&SocketAddrUnix::new(&path).unwrap());
        let mut book = tempfile::tempfile().unwrap();
        book.write_all(b"a book").unwrap();
        let handover = Handover::among(&[path.clone().into()]);
        handover.tend(millis(), || Some(&book));
        let (peer, said, mut file) = received(&service);
        let hello = Hello::from(concat!("ttmon-agent ", env!("CARGO_PKG_VERSION")));
        assert_eq!(said, [Request::Hello(hello), Request::Book { pid: std::process::id() }]);
        let mut content = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut content).unwrap();
        assert_eq!(content, "a book");

        let later = || handover.due.store(0, Relaxed);
        let inode = handover.services[0].connection.lock().unwrap().as_ref().unwrap().inode;
        later();
        handover.tend(millis(), || Some(&book));
        assert_eq!(handover.services[0].connection.lock().unwrap().as_ref().unwrap().inode, inode, "it has it already");

        drop((peer, service));
        std::fs::remove_file(&path).unwrap();
        later();
        handover.tend(millis(), || Some(&book));
        assert!(!has_the_book(&handover));
        let service = listener(&SocketAddrUnix::new(&path).unwrap());
        handover.tend(millis(), || Some(&book));
        assert!(!has_the_book(&handover), "not before it is time");
        later();
        handover.tend(millis(), || Some(&book));
        assert_eq!(received(&service).1.len(), 2);
    }

    #[test]
    fn an_abstract_name_needs_no_file() {
        let name = format!("ttmon-test-{}", std::process::id());
        let service = listener(&SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap());
        let book = tempfile::tempfile().unwrap();
        Handover::among(&[format!("@{name}").into()]).tend(millis(), || Some(&book));
        assert_eq!(received(&service).1.len(), 2);
    }

    #[test]
    fn a_descriptor_that_has_become_anothers_is_left_alone() {
        let other = tempfile::tempfile().unwrap();
        let copy = OwnedFd::from(other.try_clone().unwrap());
        let connection = Connection { socket: copy, inode: (0, 0) };
        assert!(!connection.is_open());
        let number = std::os::fd::AsRawFd::as_raw_fd(&connection.socket);
        connection.leave();
        assert!(std::fs::exists(format!("/proc/self/fd/{number}")).unwrap());
    }

    #[test]
    fn a_missing_service_is_tried_again_later() {
        let book = tempfile::tempfile().unwrap();
        let handover = Handover::among(&["/nowhere/books".into()]);
        handover.tend(millis(), || Some(&book));
        assert!(!has_the_book(&handover));
        let due = handover.due.load(Relaxed);
        assert!(due > millis());
        handover.tend(millis(), || Some(&book));
        assert_eq!(handover.due.load(Relaxed), due, "not before it is time");
        assert!(Handover::to(Some(OsStr::new(""))).services.is_empty());
        assert!(!Handover::to(None).services.is_empty());
    }
}
