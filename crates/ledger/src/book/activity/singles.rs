//! Reads single records out of the ring in a book, where they are kept, before they are overwritten.

use super::layout::{HAS_SINGLES, HEAD, SINGLE, SINGLES};
use crate::book::contents::BookError;
use crate::book::layout::{LINE, WORDS, unpack};
use crate::book::reader::fill;
use crate::book::reader::records::{is_whole, words};
use std::io;

/// What is known of the launch of a program that ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaunchOf {
    /// The queue, by the order in which the process first used them.
    pub queue: Option<u8>,
    /// When, ns of the monotonic clock.
    pub time: Option<u64>,
}

/// A program that ran on a chip. Times are ns of the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SingleRecord {
    /// How many were before it in this process.
    pub number: u64,
    /// When it began.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// The chip, by its number in the book.
    pub chip: u8,
    /// Its operation, by its number in the table.
    pub operation: Option<u16>,
    /// Its runtime id, of which 16 bits are known.
    pub runtime_id: u16,
    /// What is known of its launch.
    pub launch: LaunchOf,
}

/// How far the ring of one book was read.
#[derive(Debug, Default)]
pub struct SingleReader {
    next: u64,
    lost: u64,
    /// Where the ring begins, once that is known.
    ring: Option<usize>,
    is_kept: bool,
    bytes: Vec<u8>,
}

/// Records that are read at a time.
const BATCH: usize = 1024;
/// How often a record is looked at again that is being written.
const LOOKS: u32 = 64;
/// Batches that are read at a time, at most: the ring twice. A writer that never pauses is read on the next time.
const BATCHES: u32 = 128;

impl SingleReader {
    /// Records that were overwritten before they were read, or are broken.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether the book keeps single records. False as long as it has no activity.
    pub fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Hands over the records that were written since the last time, in order. With `is_last`, a record that stays half-written counts as
    /// lost: its writer is gone.
    pub fn read(
        &mut self,
        source: impl Fn(usize, &mut [u8]) -> io::Result<usize>,
        is_last: bool,
        mut each: impl FnMut(SingleRecord),
    ) -> Result<(), BookError> {
        let Some(ring) = self.find(&source)? else { return Ok(()) };
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.resize(BATCH * SINGLE, 0);
        // After the end of the process nobody completes a record.
        let most_looks = if is_last { 0 } else { LOOKS };
        let mut looks = most_looks;
        let mut result = Ok(());
        for _ in 0..BATCHES {
            let place = (self.next % SINGLES as u64) as usize;
            let wanted = BATCH.min(SINGLES - place) * SINGLE;
            let length = match fill(&source, ring + place * SINGLE, &mut bytes[..wanted]) {
                Ok(length) => length,
                Err(error) => {
                    result = Err(error.into());
                    break;
                }
            };
            match self.take(ring, bytes.get(..length).unwrap_or_default(), &mut each) {
                Stopped::Batch => looks = most_looks,
                Stopped::Overtaken => {
                    // What is a round behind the latest is gone. While it is written, the next ones will be soon, too.
                    let round = if is_last { SINGLES - 1 } else { SINGLES - SINGLES / 8 } as u64;
                    let oldest =
                        latest(&source, ring, &mut bytes).saturating_sub(round).max(self.next.saturating_add(1));
                    self.lost = self.lost.saturating_add(oldest - self.next);
                    self.next = oldest;
                }
                Stopped::End => break,
                Stopped::Torn if looks > 0 => looks -= 1,
                Stopped::Torn if is_last => {
                    (self.next, self.lost) = (self.next.saturating_add(1), self.lost + 1);
                }
                Stopped::Torn => break,
            }
        }
        self.bytes = bytes;
        result
    }

    /// Where the ring is. None when there is none, or no activity yet.
    fn find(&mut self, source: &impl Fn(usize, &mut [u8]) -> io::Result<usize>) -> Result<Option<usize>, BookError> {
        if self.ring.is_some() {
            return Ok(self.ring.filter(|_| self.is_kept));
        }
        let mut line = [0; LINE];
        if fill(source, HEAD, &mut line)? < LINE {
            return Ok(None);
        }
        let head: [u64; WORDS] = words(&line);
        if !is_whole(&head, HEAD) || unpack(head[3]) != (SINGLES as u32, SINGLE as u32) {
            return Ok(None);
        }
        self.is_kept = unpack(head[4]).0 & HAS_SINGLES != 0;
        self.ring = usize::try_from(head[2]).ok().filter(|ring| *ring < 1 << 40);
        Ok(self.ring.filter(|_| self.is_kept))
    }

    /// Hands over what is whole, up to the first record that is not the next one.
    fn take(&mut self, ring: usize, bytes: &[u8], each: &mut impl FnMut(SingleRecord)) -> Stopped {
        for bytes in bytes.chunks_exact(SINGLE) {
            let at = ring + (self.next % SINGLES as u64) as usize * SINGLE;
            let record: [u64; WORDS] = words(bytes);
            if record == [0; WORDS] {
                return Stopped::End;
            }
            if !is_whole(&record, at) {
                return Stopped::Torn;
            }
            let Some(number) = record[4].checked_sub(1) else { return Stopped::Torn };
            if number < self.next {
                return Stopped::End;
            }
            if number > self.next {
                return Stopped::Overtaken;
            }
            each(single(number, &record));
            self.next += 1;
        }
        Stopped::Batch
    }
}

/// Why a batch of records ended.
enum Stopped {
    Batch,
    /// There are no more.
    End,
    /// The next one is being written.
    Torn,
    /// The next one was overwritten.
    Overtaken,
}

/// The number of the latest record in the ring.
fn latest(source: &impl Fn(usize, &mut [u8]) -> io::Result<usize>, ring: usize, bytes: &mut [u8]) -> u64 {
    let mut latest = 0;
    for first in (0..SINGLES).step_by(BATCH) {
        let Ok(length) = fill(source, ring + first * SINGLE, bytes) else { break };
        for (place, bytes) in (first..).zip(bytes.get(..length).unwrap_or_default().chunks_exact(SINGLE)) {
            let record: [u64; WORDS] = words(bytes);
            if is_whole(&record, ring + place * SINGLE) {
                latest = latest.max(record[4].saturating_sub(1));
            }
        }
    }
    latest
}

fn single(number: u64, record: &[u64; WORDS]) -> SingleRecord {
    let [start, end, what, which, _, launched, ..] = *record;
    let ((chip, operation), (runtime_id, queue)) = (unpack(what), unpack(which));
    let operation = operation.checked_sub(1).and_then(|operation| u16::try_from(operation).ok());
    let queue = queue.checked_sub(1).and_then(|queue| u8::try_from(queue).ok());
    SingleRecord {
        number,
        start,
        end: end.max(start),
        chip: u8::try_from(chip).unwrap_or(u8::MAX),
        operation,
        runtime_id: runtime_id as u16,
        launch: LaunchOf { queue, time: Some(launched).filter(|time| *time > 0) },
    }
}
