//! Writes the activity into the book: threads that launch have one lock, those that deliver records another.

use super::contents::{ActivitySource, Launches, NoRecords, RecordDelivery};
use super::layout::{
    HAS_SINGLES, HEAD, LAUNCH_WORDS, LAUNCHES, OF_DEVICE, OF_LAUNCHES, OPERATION, OPERATIONS, SINGLE, SINGLES,
};
use super::names::Names;
use super::recorder::{ChipRecorder, DeviceRecord, DispatchSample};
use super::singles::LaunchOf;
use super::state::{
    ActivityState, LaunchState, LaunchedOperation, NamingState, OperationRecords, RecordState, SingleRing,
};
use crate::book::Chips;
use crate::book::layout::{CHIPS, JOURNAL, WORDS, entry_at, pack, place};
use crate::book::writer::Writer;
use crate::book::writer::system::allocate_pages;
use crate::mapping::prefetch_value;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A program that was launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Launch {
    /// Its operation, by its number in the table.
    pub operation: Option<u16>,
    /// Its runtime id, if it is known.
    pub runtime_id: Option<u16>,
}

/// Operations that get memory at a time: 32 KiB.
const CHUNK: u16 = 64;
/// The one for all that found no room.
const LAST: u16 = OPERATIONS as u16 - 1;

/// Every method takes the monotonic clock as `now`, in ns, and allocates nothing once recording has begun.
impl Writer {
    /// Single records are kept from the beginning of activity on, which has not begun: every record, in a ring of 4 MiB.
    pub fn keep_single_records(&self) {
        self.keeps_singles.store(true, Relaxed);
    }

    /// Begins to record activity, if it has not begun. False when the book has no room for it, or is not of this process.
    pub fn record_activity(&self, now: u64) -> bool {
        self.is_mine() && self.has_room_for_activity() && {
            self.activity.get_or_init(|| self.begin_activity(now));
            true
        }
    }

    /// The number of an operation, given now if it has none. `None` when there is no memory for it.
    #[inline]
    pub fn operation(&self, name: &[u8]) -> Option<u16> {
        let activity = self.activity()?;
        activity.names.find(name).ok().or_else(|| self.new_operation(activity, name))
    }

    /// A program of this operation is launched soon: what that writes to is not in the processor's cache any more, since the
    /// workload has filled it. To wait for each line of it in turn takes longer than all the rest.
    #[inline]
    pub fn launches_soon(&self, operation: u16) {
        let Some(activity) = self.activity() else { return };
        prefetch_value(&activity.launches);
        self.map.prefetch(LAUNCHES, 2 * LAUNCH_WORDS * 8);
        self.map.prefetch(activity.table + usize::from(operation) * OPERATION + OF_LAUNCHES, 2 * WORDS * 8);
    }

    /// A program was launched.
    #[inline]
    pub fn launched(&self, launch: Launch, now: u64) {
        let Some(activity) = self.activity() else { return };
        let mut state = lock(&activity.launches);
        state.now.launches += 1;
        self.launch(&mut state, launch, 1, now);
        self.put_operation_launches(activity, &mut state, launch.operation, 1, 1, now);
    }

    /// A trace was replayed: each of its operations, with how often it is in there, and the last one of its programs.
    pub fn replayed(&self, operations: impl Iterator<Item = (Option<u16>, u64)>, last: Launch, now: u64) {
        let Some(activity) = self.activity() else { return };
        let mut state = lock(&activity.launches);
        let mut programs = 0u64;
        for (operation, count) in operations {
            programs = programs.saturating_add(count);
            self.put_operation_launches(activity, &mut state, operation, 0, count, now);
        }
        state.now.replays += 1;
        self.launch(&mut state, last, programs, now);
    }

    /// A program was recorded into a trace. It does not run.
    pub fn recorded_into_trace(&self) {
        let Some(activity) = self.activity() else { return };
        let mut state = lock(&activity.launches);
        state.now.recorded += 1;
        self.put_launches(&mut state);
    }

    /// Programs launched so far.
    pub fn programs_launched(&self) -> u64 {
        self.activity().map_or(0, |activity| lock(&activity.launches).now.programs)
    }

    /// This thread begins to wait for the device.
    pub fn wait_begins(&self, now: u64) {
        let Some(activity) = self.activity() else { return };
        let mut state = lock(&activity.launches);
        state.waiting += 1;
        if state.waiting == 1 {
            state.now.waiting_since = now.max(1);
            self.put_launches(&mut state);
        }
    }

    /// It has waited. `finished` programs have ended for certain, of all that were launched.
    pub fn wait_ends(&self, finished: Option<u64>, now: u64) {
        let Some(activity) = self.activity() else { return };
        let mut state = lock(&activity.launches);
        state.waiting = state.waiting.saturating_sub(1);
        if state.waiting == 0 && state.now.waiting_since != 0 {
            let waited = now.saturating_sub(state.now.waiting_since);
            state.now.waited = state.now.waited.saturating_add(waited);
            state.now.waiting_since = 0;
        }
        state.now.waits += 1;
        if let Some(finished) = finished.filter(|finished| *finished <= state.now.programs) {
            if finished >= state.now.finished {
                (state.now.finished, state.now.finished_at) = (finished, now);
            }
            if state.now.finished == state.now.programs {
                state.now.unfinished_since = 0;
            }
        }
        self.put_launches(&mut state);
    }

    /// Launches waited for room in a queue of the device.
    pub fn held_back(&self, ns: u64) {
        let Some(activity) = self.activity() else { return };
        let mut state = lock(&activity.launches);
        state.now.back_pressure = state.now.back_pressure.saturating_add(ns);
        self.put_launches(&mut state);
    }

    /// Whether the agent is registered for records, and why not.
    pub fn records_arrive(&self, is_registered: bool, reason: Option<NoRecords>) {
        let Some(activity) = self.activity() else { return };
        let mut state = lock(&activity.records);
        (state.delivery.is_registered, state.delivery.reason) = (is_registered, reason);
        self.put_delivery(&mut state);
    }

    /// Recording begins on a chip, or begins again after a close.
    pub fn chip_opened(&self, chip: u8, source: ActivitySource, now: u64) {
        let programs = self.programs_launched();
        self.with_chip(chip, |recorder| recorder.open(source, now, programs));
    }

    /// There are no records of a chip, for a reason. One that has a source keeps it.
    pub fn chip_unrecorded(&self, chip: u8, reason: NoRecords) {
        self.with_chip(chip, |recorder| recorder.refuse(reason));
    }

    /// The device was closed. Its totals stay.
    pub fn chip_closed(&self, chip: u8, now: u64) {
        self.with_chip(chip, |recorder| recorder.close(now));
    }

    /// A sample of the dispatch core of a chip.
    pub fn dispatch_sampled(&self, chip: u8, sample: DispatchSample) {
        self.with_chip(chip, |recorder| recorder.sampled(sample));
    }

    /// The dispatch core of a chip cannot be read, for a reason. Reading begins again with [`Writer::chip_opened`].
    pub fn dispatch_unknown(&self, chip: u8, reason: NoRecords) {
        self.with_chip(chip, |recorder| recorder.interrupt(reason));
    }

    /// Records arrived, and others were dropped by the library.
    pub fn records(&self, records: impl Iterator<Item = DeviceRecord> + Clone, dropped: u64, arrival: u64) {
        self.launched_records(records, dropped, arrival, |_, _| LaunchOf::default());
    }

    /// The same. `launch` says on which queue and when a record's program was launched, given its runtime id and the host time of its
    /// start. It is asked only where single records are kept.
    pub fn launched_records(
        &self,
        records: impl Iterator<Item = DeviceRecord> + Clone,
        dropped: u64,
        arrival: u64,
        launch: impl Fn(u16, u64) -> LaunchOf,
    ) {
        let Some(activity) = self.activity() else { return };
        let mut state = lock(&activity.records);
        let state = &mut *state;
        let (mut chips, mut operations, mut troubles) = (0u64, [0u64; OPERATIONS / 64], dropped > 0);
        for record in records.clone() {
            let Some(recorder) = state.chips.get_mut(usize::from(record.chip)).and_then(Option::as_mut) else {
                state.delivery.of_unknown_chips += 1;
                troubles = true;
                continue;
            };
            if !recorder.add(&record, arrival) {
                state.delivery.broken += 1;
                troubles = true;
                continue;
            }
            chips |= 1 << record.chip;
            let Some(number) = record.operation.map(usize::from) else { continue };
            if let (Some(operation), Some(changed)) =
                (state.operations.get_mut(number), operations.get_mut(number / 64))
            {
                let ns = ((record.end - record.start) as f64 / record.cycles_per_ns) as u64;
                operation.records += 1;
                operation.time = operation.time.saturating_add(ns);
                operation.longest = operation.longest.max(ns);
                operation.end = operation.end.max(recorder.host_time(record.end));
                *changed |= 1 << (number % 64);
            }
        }
        // The time of a chip is known best when all have arrived: the last ones had the least delay.
        if let Some(ring) = &mut state.singles {
            for record in records.filter(DeviceRecord::is_sound) {
                let Some(Some(recorder)) = state.chips.get(usize::from(record.chip)) else { continue };
                let [start, end] = [record.start, record.end].map(|tick| recorder.host_time(tick));
                self.put_single(ring, &record, (start, end), launch(record.runtime_id, start));
            }
        }
        if dropped > 0 {
            state.delivery.dropped = state.delivery.dropped.saturating_add(dropped);
            state.delivery.dropped_at = arrival;
        }
        for chip in Chips(chips).iter() {
            if let Some(recorder) = state.chips.get_mut(usize::from(chip)).and_then(Option::as_mut) {
                self.put_device(usize::from(chip), recorder);
            }
        }
        let groups = operations.iter().enumerate().filter(|(_, changed)| **changed != 0);
        let numbers = groups.flat_map(|(group, changed)| {
            (0..64).filter(move |bit| changed >> bit & 1 == 1).map(move |bit| group * 64 + bit)
        });
        for number in numbers {
            let Some(operation) = state.operations.get_mut(number) else { continue };
            operation.version += 1;
            let OperationRecords { records, time, longest, end, version } = *operation;
            let at = activity.table + number * OPERATION + OF_DEVICE;
            self.put(place(at, version), [records, time, longest, end, 0, 0, version]);
        }
        if troubles {
            self.put_delivery(state);
        }
    }

    #[inline]
    fn activity(&self) -> Option<&ActivityState> {
        self.activity.get().filter(|_| self.is_mine())
    }

    fn begin_activity(&self, now: u64) -> ActivityState {
        let table = entry_at(self.room, JOURNAL, 0) + JOURNAL as usize * 8;
        let ring = table + OPERATIONS * OPERATION;
        let operations = pack(OPERATIONS as u32, OPERATION as u32);
        let singles = pack(SINGLES as u32, SINGLE as u32);
        let wanted = self.keeps_singles.load(Relaxed);
        let allocate = |file| allocate_pages(file, ring, SINGLES * SINGLE).is_ok();
        let kept = (wanted && self.open_file().is_some_and(allocate)).then_some(SingleRing { at: ring, next: 0 });
        let flags = pack(if kept.is_some() { HAS_SINGLES } else { 0 }, 0);
        self.put(HEAD, [table as u64, operations, ring as u64, singles, flags, now, 0]);
        ActivityState {
            table,
            launches: Mutex::new(LaunchState {
                now: Launches::default(),
                waiting: 0,
                version: 0,
                operations: vec![LaunchedOperation::default(); OPERATIONS].into(),
            }),
            records: Mutex::new(RecordState {
                delivery: RecordDelivery::default(),
                version: 0,
                chips: (0..CHIPS).map(|_| None).collect(),
                operations: vec![OperationRecords::default(); OPERATIONS].into(),
                singles: kept,
            }),
            names: Names::new(),
            naming: Mutex::new(NamingState::default()),
        }
    }

    #[cold]
    fn new_operation(&self, activity: &ActivityState, name: &[u8]) -> Option<u16> {
        let mut naming = lock(&activity.naming);
        // Another thread may have named it meanwhile.
        let found = match activity.names.find(name) {
            Ok(number) => return Some(number),
            Err(place) => place,
        };
        let place_of_name = found.filter(|_| naming.in_use < LAST && !name.is_empty());
        if let Some(place_of_name) = place_of_name.filter(|_| self.grant(activity, &mut naming)) {
            let number = naming.in_use;
            self.put_name(activity, number, name);
            naming.in_use += 1;
            self.put_naming(&mut naming);
            activity.names.insert(name, number, place_of_name);
            return Some(number);
        }
        if !naming.has_last {
            let at = activity.table + usize::from(LAST) * OPERATION;
            allocate_pages(self.open_file()?, at, OPERATION).ok()?;
            self.put_name(activity, LAST, b"other");
            naming.has_last = true;
        }
        naming.unlisted += 1;
        self.put_naming(&mut naming);
        Some(LAST)
    }

    /// Whether there is memory for one more operation.
    fn grant(&self, activity: &ActivityState, naming: &mut NamingState) -> bool {
        if naming.in_use < naming.granted {
            return true;
        }
        let at = activity.table + usize::from(naming.granted) * OPERATION;
        let length = usize::from(CHUNK) * OPERATION;
        let is_granted = self.open_file().is_some_and(|file| allocate_pages(file, at, length).is_ok());
        naming.granted += if is_granted { CHUNK } else { 0 };
        is_granted
    }

    /// What a launch and a replay have in common.
    #[inline]
    fn launch(&self, state: &mut LaunchState, last: Launch, programs: u64, now: u64) {
        let known = &mut state.now;
        known.programs = known.programs.saturating_add(programs);
        known.last_launch = known.last_launch.max(now);
        known.last_runtime_id = last.runtime_id;
        known.last_operation = last.operation;
        if known.unfinished_since == 0 {
            known.unfinished_since = now;
        }
        self.put_launches(state);
    }

    fn with_chip(&self, chip: u8, change: impl FnOnce(&mut ChipRecorder)) {
        let Some(activity) = self.activity() else { return };
        // Its page has memory since the chip is in the book.
        if u32::from(chip) >= self.chips_in_use() {
            return;
        }
        let mut state = lock(&activity.records);
        let Some(slot) = state.chips.get_mut(usize::from(chip)) else { return };
        let recorder = slot.get_or_insert_default();
        change(recorder);
        self.put_device(usize::from(chip), recorder);
    }
}

#[inline]
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const _: () = assert!(WORDS == 8 && CHUNK as usize * 8 == OPERATIONS);
