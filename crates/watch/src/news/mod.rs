//! What is new with a sample: events, processes that exited, operations that ran. The log of a recording has all of it.

mod operation_sums;

use crate::events::{Events, Observation};
use model::{Event, ExitRecord, LogEntry, Snapshot, Timestamp};
use operation_sums::OperationSums;
use std::collections::VecDeque;
use std::sync::Arc;

/// How many of the latest exits a service is asked for with each sample.
pub const EXITS: usize = 20;

/// Finds out what is new.
#[derive(Debug)]
pub struct NewsFinder {
    events: Events,
    operations: OperationSums,
    before: Arc<Snapshot>,
    /// The last exit that is no news.
    exited_until: Timestamp,
}

/// What is new.
#[derive(Debug, Default)]
pub struct News {
    /// Events since the last sample.
    pub events: VecDeque<Event>,
    /// Processes that exited since the last sample.
    pub exits: Vec<ExitRecord>,
    operations: Vec<LogEntry>,
}

impl NewsFinder {
    /// Begins with a sample. What is wrong already is news, too; processes that exited before are none.
    pub fn new(first: Arc<Snapshot>) -> (NewsFinder, News) {
        let mut finder = NewsFinder {
            events: Events::default(),
            operations: OperationSums::default(),
            before: Arc::new(Snapshot::empty()),
            exited_until: first.taken_at,
        };
        let news = finder.find(first, Vec::new());
        (finder, news)
    }

    /// Begins with a sample that has a past. The events of that come first, and are no news.
    pub fn after(past: &[Snapshot], first: Arc<Snapshot>) -> (Vec<Event>, NewsFinder, News) {
        let mut moments = past.iter().cloned().map(Arc::new).chain([first.clone()]);
        let (mut finder, mut news) = NewsFinder::new(moments.next().unwrap_or(first));
        let mut events = Vec::new();
        for moment in moments {
            events.extend(news.events);
            news = finder.find(moment, Vec::new());
        }
        (events, finder, news)
    }

    /// What is new with a sample. `exits` are those since the one before.
    pub fn find(&mut self, now: Arc<Snapshot>, exits: Vec<ExitRecord>) -> News {
        let before = Observation { snapshot: &self.before, exits: &[] };
        self.events.notice(before, Observation { snapshot: &now, exits: &exits });
        let operations = self.operations.notice(&now, &exits);
        self.before = now;
        News { events: self.events.take(), exits, operations }
    }

    /// The same where the latest exits are known, new or not.
    pub fn find_among(&mut self, now: Arc<Snapshot>, mut latest: Vec<ExitRecord>) -> News {
        latest.retain(|exit| exit.died_at > self.exited_until);
        self.exited_until = latest.iter().map(|exit| exit.died_at).fold(self.exited_until, Ord::max);
        self.find(now, latest)
    }
}

impl News {
    /// For the log of a recording.
    pub fn entries(self) -> Vec<LogEntry> {
        if self.events.is_empty() && self.exits.is_empty() {
            return self.operations;
        }
        let events = self.events.into_iter().map(LogEntry::Event);
        let exits = self.exits.into_iter().map(|exit| LogEntry::Exit(Box::new(exit)));
        events.chain(exits).chain(self.operations).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::State;
    use show::example;

    #[test]
    fn what_is_new_is_said_once() {
        let at = |time: i64| Snapshot { taken_at: Timestamp(time), ..example::machine() };
        let (mut finder, first) = NewsFinder::new(Arc::new(at(1000)));
        assert!(first.events.iter().any(|event| event.text.contains("hung")), "{first:?}");
        let exit = |pid, time| ExitRecord { pid, died_at: Timestamp(time), ..ExitRecord::default() };
        let latest = || vec![exit(8, 1500), exit(7, 500)];
        let news = finder.find_among(Arc::new(at(2000)), latest());
        assert_eq!(news.exits.iter().map(|exit| exit.pid).collect::<Vec<_>>(), [8]);
        let mut next = at(3000);
        next.devices[0].state = State::Hung;
        let entries = finder.find_among(Arc::new(next), latest()).entries();
        let LogEntry::Event(event) = &entries[0] else { panic!("{entries:?}") };
        assert!(entries.len() == 1 && event.text.contains("ok → hung"), "{entries:?}");
    }
}
