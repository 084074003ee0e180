//! The protocol of the service's own socket: frames of JSON over a Unix stream.
//!
//! A frame is a little-endian u32, the number of bytes that follow, and so many bytes of UTF-8: one JSON object with one member,
//! whose name says what it is. Both sides greet; a service that speaks another version says so and answers nothing but books.
//!
//! ```text
//! → {"hello": {"version": 2, "program": "ttmon 0.1.0"}}
//! ← {"hello": {"version": 2, "program": "ttmon 0.1.0", "black_box": "/srv/box"}}
//! → {"devices": {}}                      ← {"devices": […]}      as in a snapshot
//! → {"processes": {}}                    ← {"processes": […]}    as in a snapshot
//! → {"snapshot": {"fresh": true}}        ← {"snapshot": {…}}     what `ttmon smi --json` prints; fresh: not older than 100 ms
//! → {"buffers": {"pid": 7, "device": "0", "kind": "dram", "label": "kv", "sort": "bytes", "offset": 0, "limit": 100}}
//!                                        ← {"buffers": {"total": 3, "offset": 0, "buffers": […], "unlisted": 0, "faults": []}}
//! → {"deaths": {"limit": 10}}            ← {"deaths": […]}       the latest first
//! → {"events": {}}                       ← {"events": […]}       the last 1,000, the oldest first; null with `--listen off`
//! → {"alerts": {}}                       ← {"alerts": {"rules": [{"name", "severity", "when", "text"}], "alerts": […]}}
//! → {"subscribe": {"interval_ms": 1000}} ← {"snapshot": {…}}     now, and again and again
//! → {"book": {"pid": 7}}                 with the book's file beside it (SCM_RIGHTS); not answered when all is well
//!                                        ← {"error": {"reason": "…"}}
//! ```
//!
//! A buffer is sent as `{"pid": 7, "devices": ["0"], "kind": "dram", "id": 4096, "address": 4096, "bytes": 98304, "bank_bytes": 8192,
//! "banks": 12, "logical_bytes": 90000, "allocated_at": "2026-01-02T03:04:05.678Z", "age_seconds": 1.5, "label": "kv", "source": "exact"}`:
//! `bytes` are reserved on each of its devices, `bank_bytes` in each of `banks` banks there. What is not known is `null`.
//!
//! Members that a request leaves out have the value that asks for everything. Answers gain members without a new version.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The version of all this.
pub const VERSION: u32 = 2;
/// Where the service of the machine listens.
pub const OF_THE_MACHINE: &str = "/run/ttmon/ttmon.sock";
/// What the socket of a user's service is called, in `$XDG_RUNTIME_DIR`.
pub const OF_THE_USER: &str = "ttmon.sock";
/// The longest request, in bytes.
pub const LONGEST_REQUEST: usize = 64 << 10;

/// The greeting of a client or of the service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Which [`VERSION`].
    pub version: u32,
    /// Which program, for people.
    #[serde(default)]
    pub program: String,
    /// The folder of the service's black box, where it keeps one. Clients leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub black_box: Option<PathBuf>,
}

impl Hello {
    /// The greeting of this version.
    pub fn from(program: &str) -> Hello {
        Hello { version: VERSION, program: program.to_owned(), black_box: None }
    }
}

/// A request of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The greeting, before anything else.
    Hello(Hello),
    /// The chips.
    Devices {},
    /// The processes that use them.
    Processes {},
    /// Live buffers.
    Buffers(Wanted),
    /// The processes that have exited.
    Deaths {
        /// The most entries in the reply.
        #[serde(default)]
        limit: Option<usize>,
    },
    /// What happened since the service began, as far as it is kept.
    Events {},
    /// The rules of alerts, and what they say.
    Alerts {},
    /// Everything.
    Snapshot {
        /// As it is now, not as it was when the service last looked.
        #[serde(default)]
        fresh: bool,
    },
    /// Everything, again and again.
    Subscribe {
        /// Not more often than this.
        #[serde(default = "a_second")]
        interval_ms: u64,
    },
    /// The sender's book is in the file beside this frame.
    Book {
        /// As the sender calls itself. Whose it is says the kernel.
        pid: u32,
    },
}

/// Which buffers, in which order, and which part of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wanted {
    /// Only of this process.
    pub pid: Option<u32>,
    /// Only on this device, by the name that snapshots have for it.
    pub device: Option<String>,
    /// Only `dram`, `l1`, `l1_small`, `trace`, `cb` or `kernel`.
    pub kind: Option<String>,
    /// Only those whose label has this in it.
    pub label: Option<String>,
    /// In which order.
    pub sort: BufferOrder,
    /// Leaving out so many.
    pub offset: usize,
    /// And not more than so many.
    pub limit: Option<usize>,
}

/// The order of buffers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BufferOrder {
    /// The largest first.
    #[default]
    Bytes,
    /// The oldest first.
    Age,
    /// By device, there the largest first.
    Device,
}

/// Why something was not understood.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// Longer than a request may be.
    #[error("a frame of {0} bytes is too long: a request has {LONGEST_REQUEST} at the most")]
    TooLong(usize),
    /// Not what it should be.
    #[error("a request that is not understood: {0}")]
    Json(#[from] serde_json::Error),
}

impl Request {
    /// Decodes the inside of a frame.
    pub fn decode(frame: &[u8]) -> Result<Request, WireError> {
        Ok(serde_json::from_slice(frame)?)
    }
}

/// A message with its length before it.
pub fn frame(message: &impl Serialize) -> Result<Vec<u8>, WireError> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    framed(bytes)
}

/// A text that has room for its length before it: the first four bytes.
pub fn framed(mut bytes: Vec<u8>) -> Result<Vec<u8>, WireError> {
    let length = u32::try_from(bytes.len().saturating_sub(4)).map_err(|_| WireError::TooLong(bytes.len()))?;
    bytes.iter_mut().zip(length.to_le_bytes()).for_each(|(byte, length)| *byte = length);
    Ok(bytes)
}

/// Parts a stream into frames.
#[derive(Debug)]
pub struct Frames {
    bytes: Vec<u8>,
    /// Where the next frame begins.
    at: usize,
    longest: usize,
}

impl Frames {
    /// Frames of at most so many bytes.
    pub fn up_to(longest: usize) -> Frames {
        Frames { bytes: Vec::new(), at: 0, longest }
    }

    /// Takes what arrived.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether there is a whole frame, or a mistake.
    pub fn has_frame(&self) -> bool {
        self.length().is_some_and(|length| length > self.longest || self.bytes.len() - self.at >= 4 + length)
    }

    /// The inside of the next whole frame. After an error the stream makes no sense any more.
    pub fn next_frame(&mut self) -> Option<Result<Vec<u8>, WireError>> {
        let length = self.length()?;
        if length > self.longest {
            return Some(Err(WireError::TooLong(length)));
        }
        let frame = self.bytes.get(self.at + 4..self.at + 4 + length)?.to_vec();
        self.at += 4 + length;
        Some(Ok(frame))
    }

    fn length(&self) -> Option<usize> {
        self.bytes[self.at..].first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes) as usize)
    }
}

fn a_second() -> u64 {
    1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(text: &str) -> Request {
        Request::decode(text.as_bytes()).unwrap()
    }

    #[test]
    fn requests_are_what_the_documentation_says() {
        let hello = Hello { version: 2, program: "x".into(), black_box: None };
        assert_eq!(decoded(r#"{"hello": {"version": 2, "program": "x"}}"#), Request::Hello(hello));
        assert_eq!(decoded(r#"{"devices": {}}"#), Request::Devices {});
        assert_eq!(decoded(r#"{"subscribe": {}}"#), Request::Subscribe { interval_ms: 1000 });
        assert_eq!(decoded(r#"{"buffers": {}}"#), Request::Buffers(Wanted::default()));
        let wanted = Wanted { sort: BufferOrder::Age, limit: Some(5), ..Wanted::default() };
        assert_eq!(decoded(r#"{"buffers": {"sort": "age", "limit": 5}}"#), Request::Buffers(wanted));
        assert_eq!(decoded(r#"{"book": {"pid": 7}}"#), Request::Book { pid: 7 });
    }

    #[test]
    fn what_is_wrong_is_named() {
        let why = |text: &str| Request::decode(text.as_bytes()).unwrap_err().to_string();
        assert!(why(r#"{"divices": {}}"#).contains("unknown variant `divices`, expected one of `hello`, `devices`"));
        assert!(why(r#"{"buffers": {"pit": 7}}"#).contains("unknown field `pit`"));
        assert!(why("").starts_with("a request that is not understood: EOF"));
    }

    #[test]
    fn a_frame_is_its_length_and_its_text() {
        assert_eq!(frame(&Request::Devices {}).unwrap(), b"\x0e\0\0\0{\"devices\":{}}");
    }

    #[test]
    fn a_frame_that_is_too_long_is_refused_before_it_is_there() {
        let mut frames = Frames::up_to(100);
        frames.feed(&101u32.to_le_bytes());
        assert!(matches!(frames.next_frame(), Some(Err(WireError::TooLong(101)))));
    }

    proptest! {
        #[test]
        fn however_a_stream_is_cut_its_frames_are_the_same(pids: Vec<u32>, cuts in prop::collection::vec(1usize..40, 0..60)) {
            let all: Vec<u8> = pids.iter().flat_map(|pid| frame(&Request::Book { pid: *pid }).unwrap()).collect();
            let (mut frames, mut seen, mut rest) = (Frames::up_to(LONGEST_REQUEST), Vec::new(), &all[..]);
            for cut in cuts.into_iter().chain([usize::MAX]) {
                let (now, later) = rest.split_at(cut.min(rest.len()));
                frames.feed(now);
                rest = later;
                while frames.has_frame() {
                    let Some(frame) = frames.next_frame() else { break };
                    seen.push(Request::decode(&frame.unwrap()).unwrap());
                }
            }
            assert!(frames.next_frame().is_none());
            assert_eq!(seen, pids.iter().map(|pid| Request::Book { pid: *pid }).collect::<Vec<_>>());
        }

        #[test]
        fn any_bytes_are_frames_or_errors(chunks: Vec<Vec<u8>>) {
            let mut frames = Frames::up_to(LONGEST_REQUEST);
            for chunk in chunks {
                frames.feed(&chunk);
                while let Some(Ok(frame)) = frames.next_frame() {
                    let _ = Request::decode(&frame);
                }
            }
        }

        #[test]
        fn any_text_is_a_request_or_an_error(text in "\\PC*") {
            let _ = Request::decode(text.as_bytes());
        }
    }
}
