//! What is still to be sent to one client. A client that does not read costs memory up to a limit, and delays no other client.

use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Frames in their order.
#[derive(Default)]
pub struct Outbox {
    frames: VecDeque<Arc<Vec<u8>>>,
    /// How much of the first one is sent.
    sent: usize,
    /// How many bytes are not sent yet.
    pub waiting: usize,
    /// All that was ever sent.
    pub total: u64,
}

impl Outbox {
    /// A frame of its own, or one that others are sent as well. Neither is copied.
    pub fn push(&mut self, frame: impl Into<Arc<Vec<u8>>>) {
        let frame = frame.into();
        self.waiting += frame.len();
        self.frames.push_back(frame);
    }

    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Forgets what was not begun with.
    pub fn cut(&mut self) {
        self.frames.truncate(usize::from(self.sent > 0));
        self.waiting = self.frames.front().map_or(0, |frame| frame.len() - self.sent);
    }

    /// Sends what can be sent without waiting. An error is the end of the connection.
    pub fn send(&mut self, socket: impl AsFd) -> Result<(), Errno> {
        while let Some(frame) = self.frames.front() {
            match send(&socket, &frame[self.sent..], SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(bytes) => {
                    self.sent += bytes;
                    self.waiting -= bytes;
                    self.total += bytes as u64;
                    if self.sent == frame.len() {
                        self.frames.pop_front();
                        self.sent = 0;
                    }
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn what_was_begun_with_is_finished_and_the_rest_can_be_cut() {
        let (us, mut them) = UnixStream::pair().unwrap();
        us.set_nonblocking(true).unwrap();
        let mut outbox = Outbox::default();
        (0..3).for_each(|_| outbox.push(vec![7; 1 << 20]));
        outbox.send(&us).unwrap();
        assert!(!outbox.is_empty() && outbox.waiting < 3 << 20);
        outbox.cut();
        outbox.push(b"end".to_vec());
        let mut received = Vec::new();
        while !outbox.is_empty() {
            let mut some = vec![0; 1 << 16];
            let bytes = them.read(&mut some).unwrap();
            received.extend_from_slice(&some[..bytes]);
            outbox.send(&us).unwrap();
        }
        drop(us);
        them.read_to_end(&mut received).unwrap();
        assert_eq!((received.len(), &received[1 << 20..]), ((1 << 20) + 3, &b"end"[..]));
        assert_eq!(outbox.waiting, 0);
    }
}
