//! Events, numbered, so that a client that has some of them can ask for the rest.

use model::Event;
use serde::Serialize;
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub struct EventLog {
    all: VecDeque<Event>,
    /// The number of the last, counted from 1.
    pub newest: u64,
}

const MOST: usize = 1000;

impl EventLog {
    /// Adds some, the oldest first.
    pub fn extend(&mut self, events: Vec<Event>) {
        self.newest += events.len() as u64;
        self.all.extend(events);
        self.all.drain(..self.all.len().saturating_sub(MOST));
    }

    /// All that are kept, the oldest first.
    pub fn all(&self) -> Vec<Event> {
        self.all.iter().cloned().collect()
    }

    /// Those after a number, the oldest first; as an answer.
    pub fn since(&self, seq: u64, limit: usize) -> Vec<u8> {
        #[derive(Serialize)]
        struct EventsSince<'a> {
            newest: u64,
            events: Vec<NumberedEvent<'a>>,
        }
        #[derive(Serialize)]
        struct NumberedEvent<'a> {
            seq: u64,
            #[serde(flatten)]
            event: &'a Event,
        }
        // The oldest of those that are wanted, so that the next request can continue after the last of them.
        let first = self.newest - self.all.len() as u64 + 1;
        let numbered = (first..).zip(&self.all).map(|(seq, event)| NumberedEvent { seq, event });
        let events = numbered.filter(|event| event.seq > seq).take(limit).collect();
        serde_json::to_vec(&EventsSince { newest: self.newest, events }).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{DeviceId, Timestamp, Weight};

    fn event(text: &str) -> Event {
        let device = Some(DeviceId::Local(0));
        Event::new(Timestamp(1000), Weight::Note, device, text.into())
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
        assert_eq!((log.all.len(), log.newest), (1000, 1500));
        assert!(log.since(0, 1).starts_with(br#"{"newest":1500,"events":[{"seq":501,"#));
    }
}
