//! A book that a process hands over through a socket: taken from the kernel, and checked before it is trusted.

use ledger::book::{self, Book, BookError};
use rustix::fs::fcntl_get_seals;
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};
use std::fs::File;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

/// What came at once.
pub struct Arrived {
    /// Bytes; none when the other side has closed.
    pub bytes: usize,
    /// File that came along.
    pub file: Option<OwnedFd>,
    /// Whether a file came for which there was no room.
    pub lost_a_file: bool,
}

/// Receives bytes and at most one file, without waiting.
pub fn receive(socket: impl AsFd, into: &mut [u8]) -> Result<Arrived, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let message = recvmsg(socket, &mut [IoSliceMut::new(into)], &mut beside, flags)?;
    let file = beside.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    let lost_a_file = file.is_none() && message.flags.contains(ReturnFlags::CTRUNC);
    Ok(Arrived { bytes: message.bytes, file, lost_a_file })
}

/// What a file says that was handed over as a book. Only memory has seals; looking at that never blocks, while
/// another file system may block even a question for the file's size.
pub fn book_in(file: &File) -> Result<Book, BookError> {
    let is_memory = fcntl_get_seals(file).is_ok() && file.metadata().is_ok_and(|metadata| metadata.is_file());
    if is_memory { book::read(book::of_file(file)) } else { Err(BookError::NotABook) }
}
