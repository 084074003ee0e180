//! Keys and the mouse, read in a thread of their own: a terminal that is closed in the middle makes a reader of its input go
//! round in circles, and must not take the program with it.

use super::terminal;
#[cfg(debug_assertions)]
use super::test_panic;
use crossterm::event::{Event, read};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

pub struct Input {
    /// Can be read when there is something.
    pub ready: UnixStream,
    events: Receiver<Event>,
    thread: JoinHandle<()>,
}

impl Input {
    pub fn listen() -> io::Result<Input> {
        let (ready, mut notify) = UnixStream::pair()?;
        ready.set_nonblocking(true)?;
        notify.set_nonblocking(true)?;
        let (send, events) = channel();
        let thread = std::thread::Builder::new().name("ttmon-input".into()).spawn(move || {
            while let Ok(event) = read() {
                #[cfg(debug_assertions)]
                test_panic::maybe("input");
                if send.send(event).is_err() {
                    return;
                }
                // A pipe that is full says so already.
                let _ = notify.write(&[1]);
                // The reader gets a notice of keys once, and forgets the rest of them after a new size or more than a thousand.
                if matches!(crossterm::event::poll(Duration::ZERO), Ok(false)) && terminal::has_keys() {
                    terminal::tell_again();
                }
            }
        })?;
        Ok(Input { ready, events, thread })
    }

    /// Whether nothing can be typed any more.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// All that was typed since.
    pub fn take(&self) -> impl Iterator<Item = Event> + '_ {
        let mut ready = &self.ready;
        while matches!(ready.read(&mut [0; 64]), Ok(1..)) {}
        self.events.try_iter()
    }
}
