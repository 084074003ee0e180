//! The notices that wait for a receiver. The newest state of each alert waits until it is delivered, however often that fails.

use crate::notice::Notice;
use model::AlertState;
use std::collections::BTreeMap;
use std::time::Duration;

/// The queue of one receiver. Times are of a clock that only goes forward.
#[derive(Debug, Default)]
pub struct NoticeQueue {
    /// By fingerprint: a newer state takes the place of an older one. A resolved one has its start time, so that an alert that
    /// began and ended before any delivery is still reported.
    waiting: BTreeMap<String, Notice>,
    /// What fires, to be repeated; only where the receiver needs that.
    firing: Option<BTreeMap<String, Notice>>,
    repeat_at: Duration,
    /// Delivered one at a time, so that a failure repeats nothing that was delivered.
    one_by_one: bool,
    /// Failures in a row.
    failures: u32,
    not_before: Duration,
}

/// The first pause after a failure; each following one is twice as long.
const PAUSE: Duration = Duration::from_secs(1);
/// But not longer than this.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How often a firing alert is repeated: Alertmanager resolves it after five minutes.
pub const REPEAT: Duration = Duration::from_secs(60);
const MOST: usize = 200;

impl NoticeQueue {
    /// The queue of a receiver that needs firing alerts repeated.
    pub fn repeating() -> NoticeQueue {
        NoticeQueue { firing: Some(BTreeMap::new()), ..NoticeQueue::default() }
    }

    /// The queue of a receiver that takes one notice at a time.
    pub fn one_by_one() -> NoticeQueue {
        NoticeQueue { one_by_one: true, ..NoticeQueue::default() }
    }

    pub fn push(&mut self, notice: Notice) {
        if let Some(firing) = &mut self.firing {
            match notice.alert.state {
                AlertState::Firing => drop(firing.insert(notice.fingerprint.clone(), notice.clone())),
                _ => drop(firing.remove(&notice.fingerprint)),
            }
        }
        self.waiting.insert(notice.fingerprint.clone(), notice);
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The notices to deliver now. The caller reports later whether that worked.
    pub fn take(&mut self, now: Duration) -> Vec<Notice> {
        if let Some(firing) = self.firing.as_ref().filter(|_| now >= self.repeat_at) {
            self.repeat_at = now + REPEAT;
            for (fingerprint, notice) in firing {
                self.waiting.entry(fingerprint.clone()).or_insert_with(|| notice.clone());
            }
        }
        if now < self.not_before {
            return Vec::new();
        }
        let (mut batch, most) = (Vec::new(), if self.one_by_one { 1 } else { MOST });
        while batch.len() < most {
            let Some((_, notice)) = self.waiting.pop_first() else { break };
            batch.push(notice);
        }
        batch
    }

    /// How long there is nothing to do, unless something comes.
    pub fn idle(&self, now: Duration) -> Option<Duration> {
        let repeat = self.firing.as_ref().filter(|firing| !firing.is_empty()).map(|_| self.repeat_at);
        let next = if self.waiting.is_empty() { repeat } else { Some(self.not_before) };
        next.map(|next| next.saturating_sub(now))
    }

    pub fn done(&mut self) {
        self.failures = 0;
    }

    /// It was not: it waits on, unless there is something newer. `jitter` from 0 to 1 keeps many from calling at the same time. Returns
    /// the pause.
    pub fn failed(&mut self, batch: Vec<Notice>, now: Duration, jitter: f64) -> Duration {
        for notice in batch {
            self.waiting.entry(notice.fingerprint.clone()).or_insert(notice);
        }
        self.failures = self.failures.saturating_add(1);
        let pause = PAUSE.saturating_mul(1 << (self.failures - 1).min(10)).min(LONGEST_PAUSE);
        let pause = pause.mul_f64(1.0 + jitter.clamp(0.0, 1.0) / 4.0);
        self.not_before = now + pause;
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::notice;

    fn states(batch: &[Notice]) -> Vec<String> {
        batch.iter().map(|one| format!("{} {}", one.fingerprint, one.alert.state.name())).collect()
    }

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn what_fails_waits_twice_as_long_each_time_and_is_never_lost() {
        let mut queue = NoticeQueue::default();
        queue.push(notice("hot", AlertState::Firing));
        let (mut now, mut pauses) = (at(0), Vec::new());
        for _ in 0..9 {
            let batch = queue.take(now);
            assert_eq!(states(&batch), ["hot firing"]);
            let pause = queue.failed(batch, now, 0.0);
            pauses.push(pause.as_secs());
            assert!(queue.take(now + pause - at(1)).is_empty());
            assert_eq!(queue.idle(now), Some(pause));
            now += pause;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(queue.failed(Vec::new(), now, 1.0), at(75));
        assert_eq!(states(&queue.take(now + at(75))), ["hot firing"]);
        queue.done();
        assert_eq!(queue.idle(now), None);
    }

    #[test]
    fn the_newest_state_wins_even_over_one_that_is_on_its_way() {
        let mut queue = NoticeQueue::default();
        queue.push(notice("hot", AlertState::Firing));
        let batch = queue.take(at(0));
        queue.push(notice("hot", AlertState::Resolved));
        queue.push(notice("lost", AlertState::Firing));
        queue.failed(batch, at(0), 0.0);
        let batch = queue.take(at(1));
        assert_eq!(states(&batch), ["hot resolved", "lost firing"]);
        // What began and ended before any delivery is reported with both times.
        assert!(batch[0].started_at < batch[0].ended_at.unwrap());
    }

    #[test]
    fn a_receiver_that_takes_one_at_a_time_gets_nothing_twice() {
        let mut queue = NoticeQueue::one_by_one();
        queue.push(notice("a", AlertState::Firing));
        queue.push(notice("b", AlertState::Firing));
        assert_eq!(states(&queue.take(at(0))), ["a firing"]);
        let batch = queue.take(at(0));
        assert_eq!(states(&batch), ["b firing"]);
        queue.failed(batch, at(0), 0.0);
        assert_eq!(states(&queue.take(at(1))), ["b firing"]);
    }

    #[test]
    fn a_firing_alert_is_repeated_until_it_is_resolved() {
        let mut queue = NoticeQueue::repeating();
        queue.push(notice("hot", AlertState::Firing));
        assert_eq!(states(&queue.take(at(0))), ["hot firing"]);
        queue.done();
        assert_eq!((queue.take(at(59)), queue.idle(at(59))), (vec![], Some(at(1))));
        assert_eq!(states(&queue.take(at(60))), ["hot firing"]);
        queue.push(notice("hot", AlertState::Resolved));
        assert_eq!(states(&queue.take(at(61))), ["hot resolved"]);
        assert_eq!((queue.take(at(200)), queue.idle(at(200))), (vec![], None));
    }
}
