//! Parts a stream into messages, of whichever length the sender's are.
//!
//! All that follows a request's first 40 bytes is zero, and a type never is. So the byte where a second short message would
//! begin gives the length of the first, as soon as it is there. A sender that stops after 112 bytes and waits has sent a short one.

use super::frame::{FrameError, HEADER, Length, PocRequest};

/// The state of one connection.
#[derive(Debug, Default)]
pub struct Splitter {
    length: Option<Length>,
    /// Whether the length was concluded from a pause, and may have been a message cut in two.
    by_pause: bool,
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

    /// The sender has paused: what looks like a short message is one.
    pub fn pause(&mut self, mut each: impl FnMut(Result<PocRequest, FrameError>, Length)) {
        if self.length.is_none() && self.rest.len() == Length::Short.bytes() {
            self.length = Some(Length::Short);
            self.by_pause = true;
            self.feed(&[], &mut each);
        }
    }

    /// Whether a message may be whole already, which a pause would show.
    pub fn is_waiting(&self) -> bool {
        self.length.is_none() && self.rest.len() == Length::Short.bytes()
    }

    /// How long the sender's messages are, once that is known.
    pub fn length(&self) -> Option<Length> {
        self.length
    }

    /// Handles the whole messages at the start of `bytes`, and says how many bytes they were.
    fn part(&mut self, bytes: &[u8], each: &mut impl FnMut(Result<PocRequest, FrameError>, Length)) -> usize {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            let Some(length) = self.length.or_else(|| first_length(rest)) else { return used };
            // A long message whose end came late was taken for a short one: its end is zeros, and no type is.
            if self.by_pause && length == Length::Short && rest.first() == Some(&0) {
                let tail = Length::Long.bytes() - Length::Short.bytes();
                if rest.len() < tail {
                    return used;
                }
                self.length = Some(Length::Long);
                self.by_pause = false;
                used += tail;
                continue;
            }
            self.length = Some(length);
            let Some(message) = rest.get(..length.bytes()) else { return used };
            if let Some(header) = message.first_chunk::<HEADER>() {
                each(PocRequest::decode(header, length), length);
            }
            used += length.bytes();
        }
    }
}

/// The length of the first message, when what has arrived is enough.
fn first_length(bytes: &[u8]) -> Option<Length> {
    match (bytes.first(), bytes.get(Length::Short.bytes())) {
        // Only long messages have these.
        (Some(8..=12), _) => Some(Length::Long),
        (_, Some(0)) => Some(Length::Long),
        (_, Some(_)) => Some(Length::Short),
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
        for length in [Length::Short, Length::Long] {
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
        let mut splitter = Splitter::default();
        assert_eq!(fed(&mut splitter, &message(3, 5, Length::Short)), []);
        assert!(splitter.is_waiting());
        assert_eq!(paused(&mut splitter), [(5, Length::Short)]);
        assert!(!splitter.is_waiting());
        assert_eq!(fed(&mut splitter, &message(3, 6, Length::Short)), [(6, Length::Short)]);
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
    fn half_a_message_is_not_ended_by_a_pause() {
        let mut splitter = Splitter::default();
        assert_eq!(fed(&mut splitter, &message(1, 5, Length::Short)[..70]), []);
        assert_eq!(paused(&mut splitter), []);
    }

    proptest! {
        #[test]
        fn however_a_stream_is_cut_its_messages_are_the_same(
            long: bool, buffers in prop::collection::vec(any::<u64>(), 2..20), cuts in prop::collection::vec(1usize..200, 0..60),
        ) {
            let length = if long { Length::Long } else { Length::Short };
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
