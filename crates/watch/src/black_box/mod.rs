//! The black box: what this machine did in the last days, in a folder of recordings that has a size and keeps it.
//!
//! The newest snapshots are kept every second. Older ones are thinned: to one in 10 seconds, then to one a minute, and then removed.
//! The log (events, exits, operations, starts) stays whole for as long as there are snapshots around it.
//!
//! # Files
//! Each file is a recording as `record` describes it, a *segment*. Only the last one grows: a chunk every seven seconds at the
//! latest, followed by `fdatasync`. `record/segment_name.rs` describes the names.
//!
//! To thin segments, or to join small ones, another one is written under a temporary name, synced, and renamed; then those that it
//! replaces are removed. Its name says which these are, so readers leave them out from the moment of the renaming. A cut at any
//! moment leaves each stretch there exactly once, and what is left over is removed at the next start.
//!
//! # Size
//! All files of the folder count, also temporary ones, those of other versions, and the index that an unfinished segment will get.
//! Room is made before anything is written. Files that are not ours are never removed.

mod folder;
mod keeper;
mod rewrite;
#[cfg(test)]
mod tests;
mod tidy;
mod writer_thread;

pub use keeper::Keeper;
pub use writer_thread::{BlackBox, BlackBoxPlace, BlackBoxStatus};

use std::time::Duration;

/// How large a black box is by default, in MiB, and how small it may be.
pub const DEFAULT_MIB: u64 = 256;
/// The smallest black box, in MiB.
pub const SMALLEST_MIB: u64 = 8;

/// How many seconds lie between two snapshots of a level, and which share of the folder it has, in 64ths. What is left is for the
/// segment that grows and for temporary files. At 32 devices, 256 MiB keep a day of seconds, two days of ten seconds, and two weeks of
/// minutes.
const LEVELS: [Level; 3] = [Level { step: 1, share: 42 }, Level { step: 10, share: 8 }, Level { step: 60, share: 10 }];
/// The share of a segment, in 64ths.
const SEGMENT_SHARE: u64 = 1;
/// So many small segments that follow each other are joined.
const JOINED: usize = 8;

/// No snapshot waits longer to be written: with the time that the disk takes, a power cut costs less than ten seconds.
const LONGEST_WAIT: Duration = Duration::from_secs(7);
/// Snapshots that follow each other faster are left out.
const SHORTEST_STEP: Duration = Duration::from_millis(900);
/// A chunk's text ends there, unless a single line is longer. Twice as much would save a tenth of the folder, and cost memory.
const ENOUGH_TEXT: usize = 256 << 10;
/// After a failure the disk is tried again after so long, then after twice as long, and so on up to the other one.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// How fine snapshots of an age are.
struct Level {
    step: u32,
    share: u64,
}

/// A share of the folder in 64ths.
fn share(limit: u64, share: u64) -> u64 {
    limit / 64 * share
}
