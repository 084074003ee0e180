//! Parts a stream into messages, of whichever length the sender's are.
//!
//! All that follows a request's first 40 bytes is zero, and a type never is. So the byte where a second message would begin
//! gives the length of the first, as soon as it is there. A sender that stops after 72 or 112 bytes and waits, or closes, has sent
//! a whole message. Zeros where a message should begin are the end of the one before.

use super::frame::{FrameError, HEADER, Length, PocRequest};

/// The state of one connection.
#[derive(Debug, Default)]
pub struct Splitter {
    length: Option<Length>,
    /// How many bytes the last message has had so far.
    last: usize,
    rest: Vec<u8>,
}

impl Splitter {
    /// Takes what arrived, and calls `each` with every message that is whole.
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(Result<PocRequest, FrameError>, Length)) {
        if self.rest.is_empty() {
            let used = self.part(bytes, &mut each);
            self.rest.extend_from_slice(&bytes[used..]);
        } else {
            let mut all = std::mem::take(&mut self.rest);
            all.extend_from_slice(bytes);
            let used = self.part(&all, &mut each);
            all.drain(..used);
            self.rest = all;
        }
    }

    /// The sender has paused, or closed: what looks like a whole message is one.
    pub fn pause(&mut self, mut each: impl FnMut(Result<PocRequest, FrameError>, Length)) {
        if let Some(length) = self.whole() {
            self.length = Some(length);
            self.feed(&[], &mut each);
        }
    }

    /// Whether a message may be whole already, which a pause would show.
    pub fn is_waiting(&self) -> bool {
        self.whole().is_some()
    }

    /// How long the first message is, if it has ended.
    fn whole(&self) -> Option<Length> {
        let has_type = |length| length != Length::Oldest || matches!(self.rest.first(), Some(1..=5));
        let ends = |length: &Length| length.bytes() == self.rest.len() && has_type(*length);
        Length::ALL.into_iter().filter(|_| self.length.is_none()).find(ends)
    }

    /// How long the sender's messages are, once that is known.
    pub fn length(&self) -> Option<Length> {
        self.length
    }

    /// Handles the whole messages at the start of `bytes`, and says how many bytes they were.
    fn part(&mut self, bytes: &[u8], each: &mut impl FnMut(Result<PocRequest, FrameError>, Length)) -> usize {
        let mut used = 0;
        loop {
            let zeros = bytes[used..].iter().take_while(|byte| **byte == 0).count();
            used += zeros;
            if zeros > 0 && self.last > 0 {
                self.last = self.last.saturating_add(zeros);
                self.length = Length::ALL.into_iter().find(|length| length.bytes() == self.last).or(self.length);
            }
            let rest = &bytes[used..];
            let Some(length) = self.length.or_else(|| first_length(rest)) else { return used };
            self.length = Some(length);
            let Some(message) = rest.get(..length.bytes()) else { return used };
            if let Some(header) = message.first_chunk::<HEADER>() {
                each(PocRequest::decode(header, length), length);
            }
            used += length.bytes();
            self.last = length.bytes();
        }
    }
}

/// The length of the first message, when what has arrived is enough.
fn first_length(bytes: &[u8]) -> Option<Length> {
    let at = |length: Length| bytes.get(length.bytes()..);
    match (bytes.first()?, at(Length::Oldest), at(Length::Short)) {
        // Only the longest messages have these.
        (8..=12, ..) => Some(Length::Long),
        (1..=5, Some([1..=5, 0, 0, 0, ..]), _) => Some(Length::Oldest),
        (_, _, Some([0, ..])) => Some(Length::Long),
        (_, _, Some([_, ..])) => Some(Length::Short),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(number: u8, buffer: u64, length: Length) -> Vec<u8> {
        let mut message = vec![0; length.bytes()];
        message[0] = number;
        message[24..32].copy_from_slice(&buffer.to_le_bytes());
        message
    }

    fn fed(splitter: &mut Splitter, bytes: &[u8]) -> Vec<(u64, Length)> {
        let mut seen = Vec::new();
        splitter.feed(bytes, |request, length| seen.push((request.unwrap().buffer, length)));
        seen
    }

    fn paused(splitter: &mut Splitter) -> Vec<(u64, Length)> {
        let mut seen = Vec::new();
        splitter.pause(|request, length| seen.push((request.unwrap().buffer, length)));
        seen
    }

    #[test]
    fn the_second_message_gives_the_length_of_the_first() {
        for length in Length::ALL {
            let mut splitter = Splitter::default();
            let both = [message(1, 5, length), message(2, 6, length)].concat();
            assert_eq!(fed(&mut splitter, &both), [(5, length), (6, length)]);
        }
    }

    #[test]
    fn a_lone_long_message_is_known_by_its_length() {
        assert_eq!(fed(&mut Splitter::default(), &message(3, 5, Length::Long)), [(5, Length::Long)]);
    }

    #[test]
    fn a_lone_short_message_is_known_by_the_pause_after_it() {
        for length in [Length::Oldest, Length::Short] {
            let mut splitter = Splitter::default();
            assert_eq!(fed(&mut splitter, &message(3, 5, length)), []);
            assert!(splitter.is_waiting());
            assert_eq!(paused(&mut splitter), [(5, length)]);
            assert!(!splitter.is_waiting());
            assert_eq!(fed(&mut splitter, &message(3, 6, length)), [(6, length)]);
        }
    }

    #[test]
    fn a_long_message_that_was_cut_where_a_short_one_ends_is_still_one() {
        let mut splitter = Splitter::default();
        let long = message(1, 5, Length::Long);
        assert_eq!(fed(&mut splitter, &long[..112]), []);
        assert_eq!(paused(&mut splitter), [(5, Length::Short)], "it looked like it");
        assert_eq!(fed(&mut splitter, &long[112..]), []);
        assert_eq!(fed(&mut splitter, &message(1, 6, Length::Long)), [(6, Length::Long)]);
    }

    #[test]
    fn a_message_that_was_cut_where_an_oldest_one_ends_is_still_one() {
        for length in [Length::Short, Length::Long] {
            let (mut splitter, all) = (Splitter::default(), message(1, 5, length));
            assert_eq!(fed(&mut splitter, &all[..72]), []);
            assert_eq!(paused(&mut splitter), [(5, Length::Oldest)], "it looked like it");
            assert_eq!(fed(&mut splitter, &all[72..100]), []);
            assert_eq!(fed(&mut splitter, &all[100..]), []);
            assert_eq!(fed(&mut splitter, &message(1, 6, length)), [(6, length)]);
        }
        let mut splitter = Splitter::default();
        assert_eq!(fed(&mut splitter, &message(6, 5, Length::Short)[..72]), []);
        assert_eq!(paused(&mut splitter), [], "the oldest messages have no such type");
    }

    #[test]
    fn half_a_message_is_not_ended_by_a_pause() {
        let mut splitter = Splitter::default();
        assert_eq!(fed(&mut splitter, &message(1, 5, Length::Short)[..70]), []);
        assert_eq!(paused(&mut splitter), []);
    }

    proptest! {
        #[test]
        fn however_a_stream_is_cut_its_messages_are_the_same(
            length in 0usize..3, buffers in prop::collection::vec(any::<u64>(), 2..20), cuts in prop::collection::vec(1usize..200, 0..60),
        ) {
            let length = Length::ALL[length];
            let all: Vec<u8> = buffers.iter().flat_map(|buffer| message(1, *buffer, length)).collect();
            let mut splitter = Splitter::default();
            let (mut seen, mut rest) = (Vec::new(), &all[..]);
            for cut in cuts {
                let (now, later) = rest.split_at(cut.min(rest.len()));
                seen.extend(fed(&mut splitter, now));
                rest = later;
            }
            seen.extend(fed(&mut splitter, rest));
            assert_eq!(seen, buffers.iter().map(|buffer| (*buffer, length)).collect::<Vec<_>>());
        }

        #[test]
        fn any_bytes_are_messages_or_errors(chunks: Vec<Vec<u8>>) {
            let mut splitter = Splitter::default();
            for chunk in chunks {
                splitter.feed(&chunk, |_, _| {});
                splitter.pause(|_, _| {});
                assert!(splitter.rest.len() < Length::Long.bytes());
            }
        }
    }
}
