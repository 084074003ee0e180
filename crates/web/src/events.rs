//! Events, numbered, so that a client that has some of them can ask for the rest.

use model::Timestamp;
use serde::Serialize;
use std::collections::VecDeque;

/// An event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NumberedEvent {
    /// Counted from 1. Set when it is published.
    pub seq: u64,
    /// When.
    pub time: Timestamp,
    /// How much it matters: `note`, `good`, `warning` or `bad`.
    pub weight: &'static str,
    /// Which device it is about, where it is about one.
    pub device: Option<String>,
    /// What.
    pub text: String,
}

/// The latest events.
#[derive(Debug, Default)]
pub struct EventLog {
    all: VecDeque<NumberedEvent>,
    /// The number of the latest.
    pub newest: u64,
}

/// How many are kept.
const MOST: usize = 1000;

impl EventLog {
    /// Adds some, the oldest first.
    pub fn extend(&mut self, events: Vec<NumberedEvent>) {
        for event in events {
            self.newest += 1;
            self.all.push_back(NumberedEvent { seq: self.newest, ..event });
        }
        self.all.drain(..self.all.len().saturating_sub(MOST));
    }

    /// Those behind a number, the oldest first; as an answer.
    pub fn since(&self, seq: u64, limit: usize) -> Vec<u8> {
        #[derive(Serialize)]
        struct EventsSince<'a> {
            newest: u64,
            events: Vec<&'a NumberedEvent>,
        }
        // The oldest of those that are wanted, so that the next question can go on behind the last of them.
        let events = self.all.iter().filter(|event| event.seq > seq).take(limit).collect();
        serde_json::to_vec(&EventsSince { newest: self.newest, events }).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(text: &str) -> NumberedEvent {
        NumberedEvent { seq: 0, time: Timestamp(1000), weight: "note", device: Some("0".into()), text: text.into() }
    }

    #[test]
    fn events_are_numbered_and_the_rest_can_be_asked_for() {
        let mut log = EventLog::default();
        log.extend(vec![event("a"), event("b"), event("<script>")]);
        let text = |seq, limit| String::from_utf8(log.since(seq, limit)).unwrap();
        expect_test::expect![[r#"{"newest":3,"events":[{"seq":2,"time":"1970-01-01T00:00:01.000Z","weight":"note","device":"0","text":"b"}]}"#]]
            .assert_eq(&text(1, 1));
        assert_eq!(text(3, 10), r#"{"newest":3,"events":[]}"#);
    }

    #[test]
    fn the_oldest_go_first_and_numbers_go_on() {
        let mut log = EventLog::default();
        log.extend((0..1500).map(|n| event(&n.to_string())).collect());
        assert_eq!((log.all.len(), log.all[0].seq, log.newest), (1000, 501, 1500));
    }
}
