//! Waiting for the next sample, and for Ctrl-C.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Becomes ready when the user or the system asks the program to end, or to stop for a while.
pub struct Interrupt {
    end: UnixStream,
    stop: Option<UnixStream>,
}

/// Reason why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// The time is over.
    Time,
    /// Ctrl-C and the like: it is time to end.
    End,
    /// Ctrl-Z: the terminal is wanted back for a while.
    Stop,
}

impl Interrupt {
    /// From now on Ctrl-C, Ctrl-\\, SIGTERM and a closed terminal end the program through this.
    pub fn new() -> io::Result<Interrupt> {
        Ok(Interrupt { end: on(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT])?, stop: None })
    }

    /// From now on Ctrl-Z goes through this, too.
    pub fn and_stop(&mut self) -> io::Result<()> {
        let stop = on(&[SIGTSTP])?;
        stop.set_nonblocking(true)?;
        self.stop = Some(stop);
        Ok(())
    }

    /// What can be read when it is time to end, and when to stop for a while.
    pub fn pipes(&self) -> (&UnixStream, Option<&UnixStream>) {
        (&self.end, self.stop.as_ref())
    }

    /// Waits so long, or until a signal comes.
    pub fn wait(&self, time: Duration) -> Woken {
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
            let mut pipes = vec![PollFd::new(&self.end, PollFlags::IN)];
            pipes.extend(self.stop.as_ref().map(|stop| PollFd::new(stop, PollFlags::IN)));
            let ready = poll(&mut pipes, Some(&timeout));
            let came = |at: usize| pipes.get(at).is_some_and(|pipe| !pipe.revents().is_empty());
            match ready {
                Ok(0) => return Woken::Time,
                Ok(_) if came(0) => return Woken::End,
                Ok(_) if came(1) => return Woken::Stop,
                _ if left.is_zero() => return Woken::Time,
                _ => {}
            }
        }
    }

    /// Stops the program as Ctrl-Z does, and comes back when it is continued.
    pub fn stop(&self) -> io::Result<()> {
        if let Some(mut stop) = self.stop.as_ref() {
            // However many came in the meantime, they count as one.
            let _ = stop.read(&mut [0; 64]);
        }
        signal_hook::low_level::emulate_default_handler(SIGTSTP)
    }

    /// Whether it is time to end.
    pub fn came(&self) -> bool {
        self.wait(Duration::ZERO) == Woken::End
    }
}

/// A pipe that can be read when one of the signals comes.
pub fn on(signals: &[i32]) -> io::Result<UnixStream> {
    let (read, write) = UnixStream::pair()?;
    for &signal in signals {
        signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
    }
    Ok(read)
}
