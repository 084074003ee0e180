//! A thread that takes samples and hands them over. A device that does not answer holds up nobody else.

use crate::machine::Machine;
use model::Snapshot;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Samples, one after the other.
pub struct Sampling {
    /// Can be read when there is a new one.
    pub ready: UnixStream,
    latest: Arc<Mutex<Option<Snapshot>>>,
    interval_ms: Arc<AtomicU64>,
    stop: Sender<()>,
    thread: JoinHandle<Machine>,
}

impl Sampling {
    /// Begins.
    pub fn start(machine: Machine, interval: Duration) -> io::Result<Sampling> {
        let (ready, tell) = UnixStream::pair()?;
        ready.set_nonblocking(true)?;
        tell.set_nonblocking(true)?;
        let (stop, stopped) = channel();
        let latest = Arc::new(Mutex::new(None));
        let interval_ms = Arc::new(AtomicU64::new(interval.as_millis() as u64));
        let (into, pause) = (latest.clone(), interval_ms.clone());
        let take = move || sample(machine, &pause, &into, &stopped, &tell);
        let thread = std::thread::Builder::new().name("ttmon-sampler".into()).spawn(take)?;
        Ok(Sampling { ready, latest, interval_ms, stop, thread })
    }

    /// The newest sample, if it was not taken yet.
    pub fn take(&self) -> Option<Snapshot> {
        let mut ready = &self.ready;
        while matches!(io::Read::read(&mut ready, &mut [0; 64]), Ok(1..)) {}
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub fn set_interval(&self, interval: Duration) {
        self.interval_ms.store(interval.as_millis() as u64, Relaxed);
    }

    /// Ends, and takes leave of the machine.
    pub fn finish(self) {
        drop(self.stop);
        if let Ok(machine) = self.thread.join() {
            machine.leave();
        }
    }
}

fn sample(
    mut machine: Machine,
    pause: &AtomicU64,
    into: &Mutex<Option<Snapshot>>,
    stopped: &Receiver<()>,
    mut tell: &UnixStream,
) -> Machine {
    while stopped.recv_timeout(Duration::from_millis(pause.load(Relaxed))) == Err(RecvTimeoutError::Timeout) {
        let snapshot = machine.sample();
        *into.lock().unwrap_or_else(PoisonError::into_inner) = Some(snapshot);
        let _ = tell.write(&[1]);
    }
    machine
}
