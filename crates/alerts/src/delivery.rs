//! Notifies each receiver in a thread of its own: no receiver waits for another, and the service waits for none.

use crate::log::{LogLevel, log};
use crate::notice::Notice;
use crate::queue::NoticeQueue;
use crate::receiver::Notifier;
use crate::settings::{Channel, Receiver};
use model::Timestamp;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// All receivers, and the notices that wait for each.
#[derive(Default)]
pub struct Delivery {
    lines: Vec<ReceiverThread>,
    /// What fires, so that a receiver that is new hears of it.
    firing: HashMap<String, Notice>,
}

struct ReceiverThread {
    receiver: Receiver,
    shared: Arc<SharedQueue>,
    running: Arc<AtomicI32>,
}

struct SharedQueue {
    inside: Mutex<QueueState>,
    news: Condvar,
}

struct QueueState {
    queue: NoticeQueue,
    /// The receiver was removed from the settings.
    is_over: bool,
}

impl Delivery {
    /// Notifies these receivers from now on. Receivers that stay keep their waiting notices; new ones get what fires.
    pub fn set_receivers(&mut self, receivers: &[Receiver], host: &str) {
        self.lines.retain(|line| receivers.contains(&line.receiver));
        for receiver in receivers {
            if self.lines.iter().any(|line| line.receiver == *receiver) {
                continue;
            }
            let line = ReceiverThread::start(receiver, host);
            self.firing.values().for_each(|notice| line.push(notice));
            self.lines.push(line);
        }
    }

    /// Something has begun to fire, or is over.
    pub fn push(&mut self, notice: &Notice) {
        match notice.ended_at {
            None => drop(self.firing.insert(notice.fingerprint.clone(), notice.clone())),
            Some(_) => drop(self.firing.remove(&notice.fingerprint)),
        }
        self.lines.iter().for_each(|line| line.push(notice));
    }
}

impl ReceiverThread {
    fn start(receiver: &Receiver, host: &str) -> ReceiverThread {
        let queue = match receiver.way {
            Channel::Alertmanager { .. } => NoticeQueue::repeating(),
            Channel::Desktop => NoticeQueue::one_by_one(),
            Channel::Webhook { .. } | Channel::Command { .. } => NoticeQueue::default(),
        };
        let shared =
            Arc::new(SharedQueue { inside: Mutex::new(QueueState { queue, is_over: false }), news: Condvar::new() });
        let notifier = Notifier::new(receiver, host);
        let running = notifier.running.clone();
        let (inside, name) = (shared.clone(), receiver.name());
        let started =
            std::thread::Builder::new().name("ttmon-alerts".into()).spawn(move || work(&inside, notifier, &name));
        if let Err(error) = started {
            let reason = format!("no thread for it: {error}");
            log(LogLevel::Error, "not-delivered", &[("receiver", &receiver.name()), ("reason", &reason)]);
        }
        ReceiverThread { receiver: receiver.clone(), shared, running }
    }

    fn push(&self, notice: &Notice) {
        if notice.alert.severity < self.receiver.at_least {
            return;
        }
        self.shared.inside.lock().unwrap_or_else(PoisonError::into_inner).queue.push(notice.clone());
        self.shared.news.notify_one();
    }
}

impl Drop for ReceiverThread {
    fn drop(&mut self) {
        self.shared.inside.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
        self.shared.news.notify_one();
        // A command does not outlive the service; a thread that waits for an answer ends when that has come, or its time.
        if let Some(group) = Pid::from_raw(self.running.load(Relaxed)) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Notifies one receiver, and retries until it succeeds.
fn work(shared: &SharedQueue, mut notifier: Notifier, name: &str) {
    let (started, random) = (Instant::now(), RandomState::new());
    let mut inside = shared.inside.lock().unwrap_or_else(PoisonError::into_inner);
    let mut failed = false;
    while !inside.is_over {
        let batch = inside.queue.take(started.elapsed());
        if batch.is_empty() {
            let idle = inside.queue.idle(started.elapsed()).unwrap_or(Duration::from_secs(3600));
            inside = shared.news.wait_timeout(inside, idle).unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        drop(inside);
        let result = notifier.notify(&batch, wall(), false);
        inside = shared.inside.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(_) => {
                inside.queue.done();
                if std::mem::take(&mut failed) {
                    log(LogLevel::Info, "delivered-again", &[("receiver", &name), ("alerts", &batch.len())]);
                }
            }
            Err(error) => {
                failed = true;
                let now = started.elapsed();
                let jitter = random.hash_one(now) as f64 / u64::MAX as f64;
                let pause = inside.queue.failed(batch, now, jitter);
                let (reason, pause) = (format!("{error:#}"), format!("{:.1}", pause.as_secs_f64()));
                let fields: [(&str, &dyn std::fmt::Display); 4] = [
                    ("receiver", &name),
                    ("reason", &reason),
                    ("waiting", &inside.queue.len()),
                    ("again_in_seconds", &pause),
                ];
                log(LogLevel::Warning, "not-delivered", &fields);
            }
        }
    }
}

/// The time on the wall.
pub fn wall() -> Timestamp {
    Timestamp(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as i64))
}

/// Name of this machine.
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::notice;
    use model::{AlertState, Severity};

    #[test]
    fn later_alerts_reach_a_command_whose_child_left_the_session() {
        let folder = tempfile::tempdir().unwrap();
        let heard = folder.path().join("heard");
        let script = format!("cat >> {}; setsid sleep 60 & sleep 0.5", heard.display());
        let way = Channel::Command { run: ["sh", "-c", &script].map(str::to_owned).to_vec() };
        let mut delivery = Delivery::default();
        let receiver = Receiver { way, at_least: Severity::Info, timeout: Duration::from_secs(30) };
        delivery.set_receivers(&[receiver], "here");
        let until = Instant::now() + Duration::from_secs(50);
        for name in ["hot", "full"] {
            delivery.push(&notice(name, AlertState::Firing));
            while !std::fs::read_to_string(&heard).unwrap_or_default().contains(name) {
                assert!(Instant::now() < until, "{name} was not delivered");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}
