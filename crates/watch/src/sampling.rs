//! A thread that takes samples and hands them over. A device that does not answer delays nothing else.

use crate::machine::Machine;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A sample, and when it was begun with.
type Latest<T> = Option<(Instant, T)>;

/// Samples, one after the other.
pub struct Sampling<T> {
    /// Can be read when there is a new one.
    pub ready: UnixStream,
    latest: Arc<Mutex<Latest<T>>>,
    interval_ms: Arc<AtomicU64>,
    /// Says that the next shall be taken now; dropped, that there shall be no more.
    wishes: Sender<()>,
    thread: JoinHandle<Machine>,
}

impl<T: Send + 'static> Sampling<T> {
    /// Begins, with the first sample after an interval. `take` gets whether the sample was requested.
    pub fn start(
        machine: Machine,
        interval: Duration,
        take: impl FnMut(&mut Machine, bool) -> T + Send + 'static,
    ) -> io::Result<Sampling<T>> {
        let (ready, wake) = UnixStream::pair()?;
        ready.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        let (wishes, wished) = channel();
        let latest = Arc::new(Mutex::new(None));
        let interval_ms = Arc::new(AtomicU64::new(interval.as_millis() as u64));
        let (into, pause) = (latest.clone(), interval_ms.clone());
        let run = move || sample(machine, take, &pause, &into, &wished, &wake);
        let thread = std::thread::Builder::new().name("ttmon-sampler".into()).spawn(run)?;
        Ok(Sampling { ready, latest, interval_ms, wishes, thread })
    }

    /// The newest sample, if it was not taken yet.
    pub fn take(&self) -> Latest<T> {
        let mut ready = &self.ready;
        while matches!(io::Read::read(&mut ready, &mut [0; 64]), Ok(1..)) {}
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether the thread has come to an end by itself, which it never should.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Takes the next one now.
    pub fn hurry(&self) {
        let _ = self.wishes.send(());
    }

    /// Waits so long between two from now on.
    pub fn set_interval(&self, interval: Duration) {
        self.interval_ms.store(interval.as_millis() as u64, Relaxed);
    }

    /// Ends, and takes leave of the machine.
    pub fn finish(self) {
        drop(self.wishes);
        if let Ok(machine) = self.thread.join() {
            machine.leave();
        }
    }
}

fn sample<T>(
    mut machine: Machine,
    mut take: impl FnMut(&mut Machine, bool) -> T,
    pause: &AtomicU64,
    into: &Mutex<Latest<T>>,
    wished: &Receiver<()>,
    mut wake: &UnixStream,
) -> Machine {
    loop {
        let mut is_wished = match wished.recv_timeout(Duration::from_millis(pause.load(Relaxed))) {
            Ok(()) => true,
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        // All wishes that came until now are one.
        is_wished |= wished.try_iter().count() > 0;
        let began = Instant::now();
        let snapshot = take(&mut machine, is_wished);
        *into.lock().unwrap_or_else(PoisonError::into_inner) = Some((began, snapshot));
        let _ = wake.write(&[1]);
    }
    machine
}
