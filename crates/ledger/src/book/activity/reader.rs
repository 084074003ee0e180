//! Copies the activity out of a book.

use super::contents::{
    ActivitySource, Checkpoint, ChipActivity, Launches, NoRecords, RecordDelivery, RecordedActivity, RecordedOperation,
};
use super::layout::{
    DEVICE_PAIR, DEVICE_WORDS, FIRST, FIRST_END, HAS_RUNTIME_ID, HEAD, IN_USE, IS_REGISTERED, LAUNCH_WORDS, LAUNCHES,
    NAME_WORDS, OF_DEVICE, OF_LAUNCHES, OPERATION, OPERATIONS, RECORDS, SINGLE, SINGLES, device_at,
};
use crate::book::contents::{Book, BookError};
use crate::book::layout::{LINE, PAIR, WORDS, entry_at, unpack};
use crate::book::reader::fill;
use crate::book::reader::records::{is_whole, text, words};
use std::io;

/// How often a record is looked at again before it is called broken.
const LOOKS: u32 = 64;

/// Copies the activity of a book that was read just now. `None` when its agent does not record any. `now` is the monotonic clock, in ns.
pub fn activity(
    source: impl Fn(usize, &mut [u8]) -> io::Result<usize>,
    book: &Book,
    now: u64,
) -> Result<Option<RecordedActivity>, BookError> {
    let mut first = [0; FIRST_END - FIRST];
    let length = fill(&source, FIRST, &mut first)?;
    let copy = Copied { source: &source, at: FIRST, bytes: first.get(..length).unwrap_or_default() };
    let head: [u64; WORDS] = words(copy.get(HEAD, LINE).unwrap_or_default());
    if head == [0; WORDS] {
        return Ok(None);
    }
    if !is_whole(&head, HEAD) {
        return Err(BookError::Broken(HEAD));
    }
    let (room, length) = unpack(head[1]);
    let (singles, single) = unpack(head[3]);
    let table = entry_at(book.capacity, book.journal, 0) + book.journal as usize * 8;
    let is_ours = (room as usize, length as usize) == (OPERATIONS, OPERATION) && head[0] == table as u64;
    if !is_ours || (singles as usize, single as usize) != (SINGLES, SINGLE) {
        return Err(BookError::Impossible(HEAD, "another layout of activity under the same version"));
    }
    let launches = launches(copy.pair::<LAUNCH_WORDS>(LAUNCHES)?);
    launches.check(now).map_err(|why| BookError::Impossible(LAUNCHES, why))?;
    if launches.last_operation.is_some_and(|operation| usize::from(operation) >= OPERATIONS) {
        return Err(BookError::Impossible(LAUNCHES, "an operation that is not in the table"));
    }
    let delivery = delivery(copy.pair::<WORDS>(RECORDS)?, now)?;
    let [operations, unlisted_operations, ..] = copy.pair::<WORDS>(IN_USE)?;
    let operations = usize::try_from(operations).ok().filter(|operations| *operations < OPERATIONS);
    let Some(operations) = operations else {
        return Err(BookError::Impossible(IN_USE, "more operations than there is room for"));
    };
    let mut chips = Vec::with_capacity(book.chips.len());
    for chip in 0..book.chips.len() {
        let at = device_at(chip);
        let mut bytes = [0; DEVICE_PAIR];
        let length = fill(&source, at, &mut bytes)?;
        let copy = Copied { source: &source, at, bytes: bytes.get(..length).unwrap_or_default() };
        let chip = chip_activity(copy.pair::<DEVICE_WORDS>(at)?, launches, &delivery);
        chip.check(now).map_err(|why| BookError::Impossible(at, why))?;
        chips.push(chip);
    }
    Ok(Some(RecordedActivity { since: head[5], launches, delivery, chips, operations, unlisted_operations, table }))
}

/// Copies the operations of a process, with the activity that was read just now. The one for all that found no room comes last, if it has
/// any. `now` is the monotonic clock, in ns.
pub fn operations(
    source: impl Fn(usize, &mut [u8]) -> io::Result<usize>,
    activity: &RecordedActivity,
    now: u64,
) -> Result<Vec<RecordedOperation>, BookError> {
    let mut found = Vec::with_capacity(activity.operations + 1);
    let others = (activity.unlisted_operations > 0).then_some(OPERATIONS - 1);
    let mut bytes = vec![0; activity.operations * OPERATION];
    let length = fill(&source, activity.table, &mut bytes)?;
    // The one for all others is not among them, and is looked at by itself.
    let copy = Copied { source: &source, at: activity.table, bytes: bytes.get(..length).unwrap_or_default() };
    for number in (0..activity.operations).chain(others) {
        let at = activity.table + number * OPERATION;
        let name: [u64; NAME_WORDS] = copy.record(at)?;
        let name = text(name.get(..NAME_WORDS - 1).unwrap_or_default());
        let [launches, programs, last_launch, ..] = copy.pair::<WORDS>(at + OF_LAUNCHES)?;
        let [records, device_time, longest, last_end, ..] = copy.pair::<WORDS>(at + OF_DEVICE)?;
        let name = model::text::clean(&name).into_owned();
        let number = number as u16;
        let operation = RecordedOperation {
            number,
            name,
            launches,
            programs,
            last_launch,
            records,
            device_time,
            longest,
            last_end,
        };
        operation.check(now).map_err(|why| BookError::Impossible(at, why))?;
        found.push(operation);
    }
    Ok(found)
}

fn launches(record: [u64; LAUNCH_WORDS]) -> Launches {
    let [programs, launches, replays, last, last_launch, unfinished_since, finished, finished_at, ..] = record;
    let [.., waited, waiting_since, back_pressure, waits, recorded, _, _, _] = record;
    let (id, operation) = unpack(last);
    Launches {
        programs,
        launches,
        replays,
        recorded,
        last_runtime_id: (id & HAS_RUNTIME_ID != 0).then_some(id as u16),
        last_operation: operation.checked_sub(1).map(|operation| operation.try_into().unwrap_or(u16::MAX)),
        last_launch,
        unfinished_since,
        finished,
        finished_at,
        waits,
        waited,
        waiting_since,
        back_pressure,
    }
}

fn delivery(record: [u64; WORDS], now: u64) -> Result<RecordDelivery, BookError> {
    let [dropped, dropped_at, state, of_unknown_chips, broken, ..] = record;
    if dropped_at > now.saturating_add(1_000_000_000) {
        return Err(BookError::Impossible(RECORDS, "records dropped in the future"));
    }
    let (reason, flags) = unpack(state);
    Ok(RecordDelivery {
        dropped,
        dropped_at,
        is_registered: flags & IS_REGISTERED != 0,
        reason: NoRecords::from_number(reason),
        of_unknown_chips,
        broken,
    })
}

fn chip_activity(record: [u64; DEVICE_WORDS], launches: Launches, delivery: &RecordDelivery) -> ChipActivity {
    let [busy_ticks, busy, until, records, late_and_id, since, end_tick, cycles_per_ns, origin, ..] = record;
    let [_, _, _, _, _, _, _, _, _, a_busy, a_at, b_busy, b_at, closed_at, late_at, programs_before, ..] = record;
    let ((late, last_runtime_id), (source, reason)) = (unpack(late_and_id), unpack(origin));
    ChipActivity {
        busy_ticks,
        busy,
        until,
        records,
        late,
        late_at,
        last_runtime_id: last_runtime_id as u16,
        since,
        closed_at,
        end_tick,
        cycles_per_ns: f64::from_bits(cycles_per_ns),
        source: ActivitySource::from_number(source),
        reason: NoRecords::from_number(reason),
        checkpoints: [Checkpoint { busy: a_busy, at: a_at }, Checkpoint { busy: b_busy, at: b_at }],
        programs_before,
        launches,
        dropped: delivery.dropped,
        dropped_at: delivery.dropped_at,
    }
}

/// A part of a book that has been copied.
struct Copied<'a, S> {
    source: &'a S,
    at: usize,
    bytes: &'a [u8],
}

impl<S: Fn(usize, &mut [u8]) -> io::Result<usize>> Copied<'_, S> {
    fn get(&self, at: usize, length: usize) -> Option<&[u8]> {
        let start = at.checked_sub(self.at)?;
        self.bytes.get(start..start + length)
    }

    /// A record that was written once.
    fn record<const N: usize>(&self, at: usize) -> Result<[u64; N], BookError> {
        self.look(at, N * 8, |bytes| Some(words(bytes)).filter(|record| is_whole(record, at)))
    }

    /// The later one of the places of a pair; zeros when it was never written. One that is being written, or was when the process was
    /// killed, leaves the other.
    fn pair<const N: usize>(&self, at: usize) -> Result<[u64; N], BookError> {
        self.look(at, 2 * N * 8, |bytes| {
            let (first, second) = bytes.split_at(N * 8);
            let places: [[u64; N]; 2] = [words(first), words(second)];
            let version = |record: &[u64; N]| record.get(N - 2).copied().unwrap_or(0);
            match (is_whole(&places[0], at), is_whole(&places[1], at + N * 8)) {
                (true, true) if version(&places[1]) > version(&places[0]) => Some(places[1]),
                (true, _) => Some(places[0]),
                (false, true) => Some(places[1]),
                (false, false) if places == [[0; N]; 2] => Some([0; N]),
                (false, false) => None,
            }
        })
    }

    fn look<T>(&self, at: usize, length: usize, right: impl Fn(&[u8]) -> Option<T>) -> Result<T, BookError> {
        const LONGEST: usize = 512;
        if let Some(found) = self.get(at, length).and_then(&right) {
            return Ok(found);
        }
        let mut buffer = [0; LONGEST];
        let Some(bytes) = buffer.get_mut(..length) else { return Err(BookError::Broken(at)) };
        for _ in 0..LOOKS {
            if fill(self.source, at, bytes)? < length {
                return Err(BookError::Impossible(at, "the book ends before it"));
            }
            if let Some(found) = right(bytes) {
                return Ok(found);
            }
        }
        Err(BookError::Broken(at))
    }
}

const _: () = assert!(PAIR <= 512 && DEVICE_PAIR <= 512);
