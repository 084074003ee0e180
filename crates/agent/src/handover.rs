//! Hands the book to a service that listens, once, without ever waiting for it.
//!
//! One message on a Unix seqpacket socket, `TTMONBOOK1 pid=<pid>\n`, with the book's file descriptor beside it. A service that is
//! not there, or busy, is tried again with a later event, at most once per second.

use crate::clock::millis;
use rustix::io::{self, Errno};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    connect, sendmsg, socket_with,
};
use std::ffi::OsStr;
use std::fs::File;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Where the book should go.
pub struct Handover {
    to: Option<SocketAddrUnix>,
    pending: AtomicBool,
    due: AtomicU64,
}

/// Milliseconds between two tries.
const PAUSE: u64 = 1_000;

impl Handover {
    /// `None` goes nowhere. A leading `@` means a name that is not in the file system.
    pub fn to(path: Option<&OsStr>) -> Handover {
        let address = path.map(OsStr::as_bytes).filter(|path| !path.is_empty()).and_then(|path| match path {
            [b'@', name @ ..] => SocketAddrUnix::new_abstract_name(name).ok(),
            path => SocketAddrUnix::new(path).ok(),
        });
        Handover { pending: AtomicBool::new(address.is_some()), to: address, due: AtomicU64::new(0) }
    }

    /// Tries, if it is still to be done and time to.
    #[inline]
    pub fn tend<'a>(&self, book: impl FnOnce() -> Option<&'a File>) {
        if self.pending.load(Relaxed) {
            self.attempt(book);
        }
    }

    #[cold]
    fn attempt<'a>(&self, book: impl FnOnce() -> Option<&'a File>) {
        let (now, due) = (millis(), self.due.load(Relaxed));
        let Some(to) = &self.to else { return };
        if now < due || self.due.compare_exchange(due, now + PAUSE, Relaxed, Relaxed).is_err() {
            return;
        }
        if book().is_some_and(|book| send(to, book).is_ok()) {
            self.pending.store(false, Relaxed);
        }
    }
}

fn send(to: &SocketAddrUnix, book: &File) -> io::Result<()> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    connect(&socket, to)?;
    let text = format!("TTMONBOOK1 pid={}\n", std::process::id());
    let files = [book.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !beside.push(SendAncillaryMessage::ScmRights(&files)) {
        return Err(Errno::NOBUFS);
    }
    sendmsg(&socket, &[IoSlice::new(text.as_bytes())], &mut beside, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, accept, bind, listen, recvmsg};
    use std::io::{IoSliceMut, Read, Seek, Write};
    use std::os::fd::OwnedFd;

    fn listener(address: &SocketAddrUnix) -> OwnedFd {
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        bind(&socket, address).unwrap();
        listen(&socket, 4).unwrap();
        socket
    }

    fn received(listener: &OwnedFd) -> (String, File) {
        let peer = accept(listener).unwrap();
        let mut bytes = [0; 64];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let got = recvmsg(&peer, &mut [IoSliceMut::new(&mut bytes)], &mut beside, RecvFlags::CMSG_CLOEXEC).unwrap();
        let file = beside.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        });
        (String::from_utf8(bytes[..got.bytes].to_vec()).unwrap(), File::from(file.unwrap()))
    }

    #[test]
    fn the_book_arrives_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("books");
        let service = listener(&SocketAddrUnix::new(&path).unwrap());
        let mut book = tempfile::tempfile().unwrap();
        book.write_all(b"a book").unwrap();
        let handover = Handover::to(Some(path.as_os_str()));
        handover.tend(|| Some(&book));
        let (text, mut file) = received(&service);
        assert_eq!(text, format!("TTMONBOOK1 pid={}\n", std::process::id()));
        let mut content = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut content).unwrap();
        assert_eq!(content, "a book");
        assert!(!handover.pending.load(Relaxed));
    }

    #[test]
    fn an_abstract_name_needs_no_file() {
        let name = format!("ttmon-test-{}", std::process::id());
        let service = listener(&SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap());
        let book = tempfile::tempfile().unwrap();
        Handover::to(Some(OsStr::new(&format!("@{name}")))).tend(|| Some(&book));
        assert!(received(&service).0.starts_with("TTMONBOOK1 "));
    }

    #[test]
    fn nobody_there_is_tried_again_later() {
        let book = tempfile::tempfile().unwrap();
        let handover = Handover::to(Some(OsStr::new("/nowhere/books")));
        handover.tend(|| Some(&book));
        assert!(handover.pending.load(Relaxed));
        let due = handover.due.load(Relaxed);
        assert!(due > millis());
        handover.tend(|| Some(&book));
        assert_eq!(handover.due.load(Relaxed), due, "not before it is time");
        assert!(!Handover::to(None).pending.load(Relaxed));
        assert!(!Handover::to(Some(OsStr::new(""))).pending.load(Relaxed));
    }
}
