//! Where the activity of a process is in its book, byte by byte. It is beside the memory: it has no part in the events, the journal or
//! the totals of the book, and has locks of its own. A reader that does not know it reads the book as before; in a book without it, all
//! of this is zero.
//!
//! Times are ns of `CLOCK_MONOTONIC`, which all processes of a machine share. Zero stands for never.
//!
//! A *wide pair* is a pair (see the layout of the book) whose places are longer than 64 bytes. The word before the sum is its version.
//!
//! ```text
//! offset    length  what
//! 768       64      head: a record, written once, last of all. Without it the agent does not record activity
//!             0       where the table of operations begins
//!             8       u32 room for operations (512), u32 length of one (512)
//!             16      where the ring of single records begins
//!             24      u32 room for single records (65536), u32 length of one (64)
//!             32      u32 flags: 1 the ring is filled; u32 zero
//!             40      when recording began
//!             48      zero
//!             56      sum
//! 896       256     launches: a wide pair of 128 bytes, written by the threads that launch programs
//!             0       programs launched: launches, and for each replay the programs of its trace
//!             8       launches
//!             16      replays of traces
//!             24      u32 runtime id of the last launched program, its lowest 16 bits, and 65536 when there is one; u32 its operation + 1
//!             32      time of the last launch
//!             40      time of the first launch that no completed wait has covered, 0 when there is none
//!             48      programs that were launched before a wait for the device began that has ended
//!             56      when the last such wait ended
//!             64      ns during which at least one thread waited for the device
//!             72      since when a thread waits, 0 when none does
//!             80      ns during which launches waited for room in a queue of the device
//!             88      waits that have ended
//!             96      programs recorded into traces
//!             104     zero
//! 1152      128     records: a pair, written by the threads that deliver the device's records
//!             0       records that the library dropped before the agent had them
//!             8       when that was last
//!             16      u32 why no records arrive, 0 when they do; u32 flags: 1 the agent is registered for records
//!             24      records of a chip that the book does not have
//!             32      records that contradict themselves
//!             40      zero
//! 1280      128     operations: a pair
//!             0       operations in use, without the last one
//!             8       operations that found no room
//! 4096      2048    chip 0; then chip 1 and so on
//!             1408    384    device: a wide pair of 192 bytes
//!                       0      busy ticks: the length of the union of all records
//!                       8      busy ns, the same by the frequency that the records have
//!                       16     until: host time of the latest end. Busy is complete up to there, late records apart
//!                       24     records
//!                       32     u32 late records, which began before the time that is kept in detail: of these only the part after it
//!                              counts, so that busy is a lower limit; u32 runtime id of the record that ended latest
//!                       40     since: when recording began on this chip
//!                       48     tick of the latest end
//!                       56     cycles per ns, an f64
//!                       64     u32 source: 1 the profiler, 2 dispatch telemetry, 0 none; u32 why there is none
//!                       72     busy ns at the earlier checkpoint
//!                       80     time of the earlier checkpoint
//!                       88     busy ns at the later checkpoint
//!                       96     time of the later checkpoint, 0.5 to 1 s after the earlier one
//!                       104    when the device was closed, 0 while it is open
//!                       112    time of the last late record
//!                       120    programs that the process had launched when recording began on this chip
//!                       128…168 zero
//! after the journal  the table of operations, then the ring
//!
//! an operation, 512 bytes; the last one is for all that found no room
//!             0       128    name: a record of 120 bytes of UTF-8, padded with zeros, and the sum; written once
//!             128     128    launches: a pair
//!                       0      launches
//!                       8      programs: launches, and replays of those that were recorded into a trace
//!                       16     time of the last launch
//!             256     128    device: a pair
//!                       0      records
//!                       8      ns on the device, all records added up
//!                       16     ns of the longest one
//!                       24     host time of the latest end
//!
//! a single record, 64 bytes, number n at place n mod room; only where the flag says so: `ttmon run --timeline` asks for it
//!             0       host time of the start
//!             8       host time of the end
//!             16      u32 chip, u32 operation + 1, 0 where it is not known
//!             24      u32 runtime id, u32 queue + 1, by the order in which the process first used them, 0 where it is not known
//!             32      n + 1
//!             40      time of the launch, 0 where it is not known
//!             48      zero
//!             56      sum
//! ```
//!
//! **Time of the device.** A record has ticks of the chip. Host time of a tick = (tick − anchor tick) / frequency + anchor time. The
//! anchor is moved so that no record ends after it arrived: the smallest delay of the last seconds counts as none. So the time of an end
//! is at most the delivery delay too late, and never later than its arrival.
//!
//! **Checkpoints.** One copy has the busy time at `until` and at the checkpoints, so it gives the utilization of the last 0.5 to 1 s of
//! completed time without an earlier copy.

use crate::book::layout::{PAIR, identity_at};

pub(super) const HEAD: usize = 768;
pub(super) const LAUNCHES: usize = 896;
pub(super) const LAUNCH_WORDS: usize = 16;
pub(super) const RECORDS: usize = 1152;
pub(super) const IN_USE: usize = 1280;
/// What is copied of the first page.
pub(super) const FIRST: usize = HEAD;
pub(super) const FIRST_END: usize = IN_USE + PAIR;

pub(super) const DEVICE_WORDS: usize = 24;
pub(super) const DEVICE_PAIR: usize = 2 * DEVICE_WORDS * 8;

/// The most operations, with the last one, which is for all that found no room.
pub const OPERATIONS: usize = 512;
pub(super) const OPERATION: usize = 512;
/// Bytes of the longest name of an operation.
pub const OPERATION_NAME: usize = 120;
pub(super) const NAME_WORDS: usize = OPERATION_NAME / 8 + 1;
pub(super) const OF_LAUNCHES: usize = 128;
pub(super) const OF_DEVICE: usize = 256;

pub(super) const SINGLES: usize = 1 << 16;
pub(super) const SINGLE: usize = 64;

/// Bytes of the table and the ring.
pub(in crate::book) const LENGTH: usize = OPERATIONS * OPERATION + SINGLES * SINGLE;

/// Flag of the head.
pub(super) const HAS_SINGLES: u32 = 1;
/// Flag of `records`.
pub(super) const IS_REGISTERED: u32 = 1;
/// With a runtime id.
pub(super) const HAS_RUNTIME_ID: u32 = 1 << 16;

pub(super) fn device_at(chip: usize) -> usize {
    identity_at(chip) + 11 * PAIR
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::layout::{FIRST_CHIP, REMARK, TEXT_WORDS};

    #[test]
    fn activity_lies_where_books_were_zero() {
        const { assert!(HEAD >= REMARK + TEXT_WORDS * 8) };
        const { assert!(LAUNCHES >= HEAD + 64 && RECORDS >= LAUNCHES + 2 * LAUNCH_WORDS * 8) };
        const { assert!(IN_USE >= RECORDS + PAIR && FIRST_END <= FIRST_CHIP) };
        assert_eq!(device_at(0), FIRST_CHIP + 1408);
        assert!(device_at(0) + DEVICE_PAIR <= identity_at(1));
    }
}
