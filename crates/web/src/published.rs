//! What the service has published: the last sample, serialized when it is first requested.

use crate::events::EventLog;
use crate::history::PastValues;
use crate::metrics::{self, MetricsFormat, MetricsInput, MetricsOptions, ServiceFigures};
use crate::text::SharedText;
use hyper::body::Bytes;
use model::{Event, Snapshot, Timestamp};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// What the service publishes and the web server reads. Neither waits for the other.
#[derive(Debug)]
pub struct Published {
    shown: Mutex<PublishedState>,
    /// Counts up when there is something new.
    pub(crate) changes: watch::Sender<u64>,
    pub(crate) started_at: Timestamp,
    /// Distinguishes the answers of this run from those of the one before it.
    pub(crate) run: u64,
    interval_ms: AtomicU64,
    pub(crate) clients: AtomicUsize,
    pub(crate) requests: AtomicU64,
    /// Faults in all samples.
    faults: AtomicU64,
    deaths: AtomicU64,
    /// Whether the service watches other machines.
    has_fleet: AtomicBool,
    has_black_box: AtomicBool,
    metrics: MetricsOptions,
}

#[derive(Debug)]
pub(crate) struct PublishedState {
    sample: Arc<Sample>,
    pub events: EventLog,
    /// Frames of the stream with events, by the number that they begin behind. Most streams need the same.
    cached_frame: Option<(u64, u64, Bytes)>,
    pub alerts: AlertsJson,
    history: PastValues,
}

#[derive(Debug, Clone)]
pub(crate) struct AlertsJson {
    /// Counts up with each change.
    pub version: u64,
    pub json: Bytes,
}

/// Memory for a day of history. Beyond it the past gets coarser.
const HISTORY: usize = 16 << 20;

/// A sample, and its serialized forms.
#[derive(Debug)]
pub struct Sample {
    /// Counted from 1.
    pub number: u64,
    /// The snapshot.
    pub snapshot: Arc<Snapshot>,
    taken: Instant,
    json: OnceLock<SharedText>,
    frame: OnceLock<SharedText>,
    metrics: [OnceLock<SharedText>; 2],
}

impl Published {
    /// With a first sample; more follow at this interval.
    pub fn new(first: Arc<Snapshot>, interval: Duration, metrics: MetricsOptions, news: Vec<Event>) -> Published {
        let started_at = now();
        let faults = AtomicU64::new(first.faults.len() as u64);
        let (mut events, mut history) = (EventLog::default(), PastValues::up_to(HISTORY));
        events.extend(news);
        history.push(&first);
        let sample = Arc::new(Sample::new(1, first, Instant::now()));
        let alerts = AlertsJson { version: 0, json: Bytes::from_static(br#"{"alerts":[]}"#) };
        Published {
            shown: Mutex::new(PublishedState { sample, events, cached_frame: None, alerts, history }),
            changes: watch::Sender::new(1),
            started_at,
            run: started_at.0 as u64,
            interval_ms: AtomicU64::new(interval.as_millis() as u64),
            clients: AtomicUsize::new(0),
            requests: AtomicU64::new(0),
            faults,
            deaths: AtomicU64::new(0),
            has_fleet: AtomicBool::new(false),
            has_black_box: AtomicBool::new(false),
            metrics,
        }
    }

    /// Puts what was before the first sample into the history. To be called before anything else is published.
    pub fn begin_with(&self, past: &[Snapshot]) {
        let mut shown = self.lock();
        let first = shown.sample.snapshot.clone();
        let mut history = PastValues::up_to(HISTORY);
        past.iter().chain([&*first]).for_each(|snapshot| history.push(snapshot));
        shown.history = history;
    }

    /// Replaces the sample before. `taken` is when sampling began, `news` what has happened since.
    pub fn publish(&self, snapshot: Arc<Snapshot>, taken: Instant, news: Vec<Event>) {
        self.faults.fetch_add(snapshot.faults.len() as u64, Relaxed);
        let mut shown = self.lock();
        shown.history.push(&snapshot);
        shown.events.extend(news);
        shown.sample = Arc::new(Sample::new(shown.sample.number + 1, snapshot, taken));
        drop(shown);
        self.notify();
    }

    /// The last sample.
    pub fn sample(&self) -> Arc<Sample> {
        self.lock().sample.clone()
    }

    /// Replaces the alerts: a list of objects as the API has them. Streams are notified when they differ.
    pub fn set_alerts(&self, alerts: &[serde_json::Value]) {
        let json = Bytes::from(serde_json::json!({ "alerts": alerts }).to_string());
        let mut shown = self.lock();
        if shown.alerts.json == json {
            return;
        }
        shown.alerts = AlertsJson { version: shown.alerts.version + 1, json };
        drop(shown);
        self.notify();
    }

    /// The events that are kept, the oldest first.
    pub fn events(&self) -> Vec<Event> {
        self.lock().events.all()
    }

    /// The frame of the stream with all events since, and the number of the last.
    pub(crate) fn events_frame(&self, since: u64) -> (Bytes, u64) {
        let mut shown = self.lock();
        let newest = shown.events.newest;
        if let Some((from, to, frame)) = &shown.cached_frame {
            if (*from, *to) == (since, newest) {
                return (frame.clone(), newest);
            }
        }
        let events = shown.events.since(since, usize::MAX);
        let frame = Bytes::from([&b"event: events\ndata: "[..], &events, b"\n\n"].concat());
        shown.cached_frame = Some((since, newest, frame.clone()));
        (frame, newest)
    }

    /// Reads the history. Publishing waits for it, so it has to be short.
    pub(crate) fn with_history<T>(&self, look: impl FnOnce(&PastValues) -> T) -> T {
        look(&self.lock().history)
    }

    /// Sets the time between two samples.
    pub fn set_interval(&self, interval: Duration) {
        self.interval_ms.store(interval.as_millis() as u64, Relaxed);
    }

    /// Sets the number of processes that exited with device memory.
    pub fn set_deaths(&self, deaths: u64) {
        self.deaths.store(deaths, Relaxed);
    }

    /// Sets whether a black box is kept.
    pub fn set_black_box(&self, is_kept: bool) {
        self.has_black_box.store(is_kept, Relaxed);
    }

    pub(crate) fn has_black_box(&self) -> bool {
        self.has_black_box.load(Relaxed)
    }

    /// Sets whether other machines are watched.
    pub fn set_fleet(&self, is_watched: bool) {
        self.has_fleet.store(is_watched, Relaxed);
    }

    pub(crate) fn has_fleet(&self) -> bool {
        self.has_fleet.load(Relaxed)
    }

    pub(crate) fn interval_ms(&self) -> u64 {
        self.interval_ms.load(Relaxed)
    }

    /// What the service knows of itself.
    fn service(&self, sample: &Sample) -> ServiceFigures {
        ServiceFigures {
            version: env!("CARGO_PKG_VERSION"),
            sample_age_seconds: Some((sample.age().as_secs_f64() * 1e3).round() / 1e3),
            samples: Some(sample.number),
            faults: Some(self.faults.load(Relaxed)),
            deaths: Some(self.deaths.load(Relaxed)),
            requests: Some(self.requests.load(Relaxed)),
            clients: Some(self.clients.load(Relaxed) as u64),
        }
    }

    /// The metrics of the last sample, written once for all requests while it is not late. What counts requests is as
    /// old as the sample.
    pub(crate) fn with_metrics<T>(&self, format: MetricsFormat, then: impl FnOnce(&Sample, &SharedText) -> T) -> T {
        let sample = self.sample();
        let age = sample.age();
        let write = || {
            let service = self.service(&sample);
            let input = MetricsInput { snapshot: &sample.snapshot, service, options: &self.metrics };
            SharedText::new(metrics::write(&input, format))
        };
        // The age of a late sample is current at each request.
        match age > 2 * Duration::from_millis(self.interval_ms()) {
            true => then(&sample, &write()),
            false => then(&sample, sample.metrics[format as usize].get_or_init(write)),
        }
    }

    fn notify(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, PublishedState> {
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

    /// Time since it was taken.
    pub fn age(&self) -> Duration {
        self.taken.elapsed()
    }

    /// As `ttmon smi --json` prints it.
    pub(crate) fn json(&self) -> &SharedText {
        self.json.get_or_init(|| SharedText::new(serde_json::to_vec(&*self.snapshot).unwrap_or_default()))
    }

    /// As the stream has it: written once for all streams.
    pub(crate) fn frame(&self) -> &SharedText {
        self.frame.get_or_init(|| {
            let mut frame = format!("event: snapshot\nid: {}\ndata: ", self.number).into_bytes();
            // JSON on one line has no line feeds, so it is one line of data.
            let _ = serde_json::to_writer(&mut frame, &*self.snapshot);
            frame.extend_from_slice(b"\n\n");
            SharedText::new(frame)
        })
    }
}

pub(crate) fn now() -> Timestamp {
    Timestamp(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as i64))
}
