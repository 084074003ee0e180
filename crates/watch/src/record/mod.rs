//! Recordings: what a machine did, kept in a file that can be looked at later.
//!
//! # The file
//! Numbers are little-endian. A file is a head, chunks, and, when it was finished, an index and a tail.
//!
//! | at | bytes | head |
//! |---|---|---|
//! | 0 | 8 | `ttmonrec` |
//! | 8 | 4 | version of the form, 3; 2 has no logs |
//! | 12 | 4 | length of what follows, at most 64 KiB |
//! | 16 | | one line of JSON: `{"ttmon":"0.1.0","schema":1,"host":{…}}`, for people; nothing depends on it |
//!
//! | at | bytes | chunk |
//! |---|---|---|
//! | 0 | 4 | `chnk` for snapshots, `logs` for entries of the log |
//! | 4 | 4 | length of the frame, at most 16 MiB |
//! | 8 | 4 | length of the text in it, at most 64 MiB |
//! | 12 | 4 | how many lines these are, 1 to 60 |
//! | 16 | 8 | time of the first, in milliseconds since 1970 |
//! | 24 | 8 | time of the last; never before the first |
//! | 32 | 4 | FNV-1a of these 32 bytes |
//! | 36 | | a frame of zstd with its checksum, a line each: snapshots as of `ttmon smi --json`, or [`LogEntry`](model::LogEntry) as JSON, by time |
//!
//! The index is `indx`, and the first 36 bytes of every chunk once more, in order. Between chunks there is nothing, so that
//! their places follow from their lengths.
//!
//! | at | bytes | tail, at the very end |
//! |---|---|---|
//! | 0 | 4 | how many chunks there are, at most 2²⁰ |
//! | 4 | 4 | FNV-1a of the index |
//! | 8 | 8 | `ttmonend` |
//!
//! A chunk ends after 60 lines, 1 MiB of text or ten seconds, and where the clock went back. It is written at once, so
//! that a recording that was cut off lacks its last chunk at the most. Without a tail, chunks are found one after the other.
//!
//! Snapshots are written whole. Differences between them, compressed, are only 1.1 times smaller and take more than three
//! times as long to write: on 32 devices a snapshot is 38 KB of text and 1.5 KB in the file.

pub(crate) mod chunk_file;
pub(crate) mod disk;
pub(crate) mod format;
mod logged;
pub(crate) mod reader;
pub(crate) mod segment_name;
#[cfg(test)]
mod tests;
pub(crate) mod writer;

pub use logged::LoggedRecorder;
pub use reader::{EXTENSION, Recording, cannot_be_read};
pub use writer::{Recorder, STANDARD_OUTPUT};
