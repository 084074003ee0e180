//! What the service has published, for all who ask: the last sample, written down when somebody wants it.

use crate::metrics::{self, Counts, Figures, Format};
use crate::text::Text;
use model::{Snapshot, Timestamp};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// Where the service publishes, and where whoever serves looks. Neither waits for the other.
#[derive(Debug)]
pub struct Board {
    shown: Mutex<Shown>,
    /// Counts up when there is something new.
    changes: watch::Sender<u64>,
    started_at: Timestamp,
    /// Tells the answers of this service from those of the one before it.
    pub(crate) run: u64,
    interval_ms: AtomicU64,
    /// Connections that are open.
    pub(crate) clients: AtomicUsize,
    /// Requests that were answered.
    pub(crate) requests: AtomicU64,
}

#[derive(Debug)]
struct Shown {
    sample: Arc<Sample>,
}

/// A sample, and what was written of it.
#[derive(Debug)]
pub struct Sample {
    /// Counted from 1.
    pub number: u64,
    /// Everything there was to know.
    pub snapshot: Arc<Snapshot>,
    taken: Instant,
    json: OnceLock<Text>,
    frame: OnceLock<Text>,
    metrics: [OnceLock<Text>; 2],
}

impl Board {
    /// With a first sample, of which more shall follow at this interval.
    pub fn new(first: Arc<Snapshot>, interval: Duration) -> Board {
        let started_at = now();
        Board {
            shown: Mutex::new(Shown { sample: Arc::new(Sample::new(1, first, Instant::now())) }),
            changes: watch::Sender::new(1),
            started_at,
            run: started_at.0.cast_unsigned(),
            interval_ms: AtomicU64::new(interval.as_millis() as u64),
            clients: AtomicUsize::new(0),
            requests: AtomicU64::new(0),
        }
    }

    /// Takes the place of the sample before. `taken` is when it was begun with.
    pub fn publish(&self, snapshot: Arc<Snapshot>, taken: Instant) {
        let mut shown = self.lock();
        shown.sample = Arc::new(Sample::new(shown.sample.number + 1, snapshot, taken));
        drop(shown);
        self.tell();
    }

    /// The last sample.
    pub fn sample(&self) -> Arc<Sample> {
        self.lock().sample.clone()
    }

    /// Other time from one sample to the next.
    pub fn set_interval(&self, interval: Duration) {
        self.interval_ms.store(interval.as_millis() as u64, Relaxed);
    }

    pub(crate) fn interval_ms(&self) -> u64 {
        self.interval_ms.load(Relaxed)
    }

    pub(crate) fn started_at(&self) -> Timestamp {
        self.started_at
    }

    /// Something to wait for news with.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// What the service can say of itself.
    pub(crate) fn counts(&self) -> Counts {
        Counts {
            samples: self.sample().number,
            requests: self.requests.load(Relaxed),
            clients: self.clients.load(Relaxed) as u64,
        }
    }

    /// The metrics of the last sample. What counts requests is as old as the sample.
    pub(crate) fn with_metrics<T>(&self, format: Format, then: impl FnOnce(&Sample, &Text) -> T) -> T {
        let sample = self.sample();
        let text = sample.metrics[format as usize].get_or_init(|| {
            let counts = self.counts();
            Text::new(metrics::write(&Figures { snapshot: &sample.snapshot, counts: &counts }, format))
        });
        then(&sample, text)
    }

    fn tell(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sample {
    fn new(number: u64, snapshot: Arc<Snapshot>, taken: Instant) -> Sample {
        Sample {
            number,
            snapshot,
            taken,
            json: OnceLock::new(),
            frame: OnceLock::new(),
            metrics: [OnceLock::new(), OnceLock::new()],
        }
    }

    /// How old it is.
    pub fn age(&self) -> Duration {
        self.taken.elapsed()
    }

    /// As `ttmon smi --json` prints it.
    pub(crate) fn json(&self) -> &Text {
        self.json.get_or_init(|| Text::new(serde_json::to_vec(&*self.snapshot).unwrap_or_default()))
    }

    /// As the stream has it: written once for all who listen.
    pub(crate) fn frame(&self) -> &Text {
        self.frame.get_or_init(|| {
            let mut frame = format!("event: snapshot\nid: {}\ndata: ", self.number).into_bytes();
            // JSON on one line has no line feeds, so it is one line of data.
            let _ = serde_json::to_writer(&mut frame, &*self.snapshot);
            frame.extend_from_slice(b"\n\n");
            Text::new(frame)
        })
    }
}

/// What the clock says.
pub(crate) fn now() -> Timestamp {
    Timestamp(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as i64))
}
