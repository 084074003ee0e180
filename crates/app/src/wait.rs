//! Waiting for the next sample, and for Ctrl-C.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Becomes ready when the user or the system asks the program to end.
pub struct Interrupt {
    pipe: UnixStream,
}

impl Interrupt {
    /// From now on Ctrl-C, SIGTERM and a closed terminal end the program through this.
    pub fn new() -> io::Result<Interrupt> {
        let (pipe, write) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
        }
        Ok(Interrupt { pipe })
    }

    /// Waits. Returns early with `true` when it is time to end.
    pub fn came_within(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
            match poll(&mut [PollFd::new(&self.pipe, PollFlags::IN)], Some(&timeout)) {
                Ok(0) => return false,
                Ok(_) => return true,
                Err(_) if left.is_zero() => return false,
                Err(_) => {}
            }
        }
    }

    /// The pipe, for somebody who waits for more than this.
    pub fn came(&self) -> bool {
        self.came_within(Duration::ZERO)
    }
}
