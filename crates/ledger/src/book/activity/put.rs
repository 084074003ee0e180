//! Puts records of activity into the book, each with its checksum.

use super::contents::RecordDelivery;
use super::layout::{
    DEVICE_WORDS, HAS_RUNTIME_ID, IN_USE, IS_REGISTERED, LAUNCH_WORDS, LAUNCHES, NAME_WORDS, OF_LAUNCHES, OPERATION,
    RECORDS, SINGLE, SINGLES, device_at,
};
use super::recorder::{ChipRecorder, DeviceRecord};
use super::singles::LaunchOf;
use super::state::{ActivityState, LaunchState, LaunchedOperation, NamingState, RecordState, SingleRing};
use crate::book::layout::{pack, place, sum, text_words};
use crate::book::writer::Writer;
use std::sync::atomic::{Ordering, fence};

impl Writer {
    #[inline]
    pub(super) fn put_launches(&self, state: &mut LaunchState) {
        state.version += 1;
        let now = &state.now;
        let id = now.last_runtime_id.map_or(0, |id| u32::from(id) | HAS_RUNTIME_ID);
        let operation = now.last_operation.map_or(0, |operation| u32::from(operation) + 1);
        self.put_wide::<LAUNCH_WORDS>(
            LAUNCHES,
            [
                now.programs,
                now.launches,
                now.replays,
                pack(id, operation),
                now.last_launch,
                now.unfinished_since,
                now.finished,
                now.finished_at,
                now.waited,
                now.waiting_since,
                now.back_pressure,
                now.waits,
                now.recorded,
                0,
                state.version,
                0,
            ],
        );
    }

    #[inline]
    pub(super) fn put_operation_launches(
        &self,
        activity: &ActivityState,
        state: &mut LaunchState,
        number: Option<u16>,
        launches: u64,
        programs: u64,
        now: u64,
    ) {
        let Some(number) = number.map(usize::from) else { return };
        let Some(operation) = state.operations.get_mut(number) else { return };
        operation.launches += launches;
        operation.programs = operation.programs.saturating_add(programs);
        operation.last = operation.last.max(now);
        operation.version += 1;
        let LaunchedOperation { launches, programs, last, version } = *operation;
        let at = activity.table + number * OPERATION + OF_LAUNCHES;
        self.put(place(at, version), [launches, programs, last, 0, 0, 0, version]);
    }

    pub(super) fn put_delivery(&self, state: &mut RecordState) {
        state.version += 1;
        let RecordDelivery { dropped, dropped_at, is_registered, reason, of_unknown_chips, broken } = state.delivery;
        let flags = if is_registered { IS_REGISTERED } else { 0 };
        let state_of_records = pack(reason.map_or(0, |reason| reason as u32), flags);
        let line = [dropped, dropped_at, state_of_records, of_unknown_chips, broken, 0, state.version];
        self.put(place(RECORDS, state.version), line);
    }

    pub(super) fn put_single(
        &self,
        ring: &mut SingleRing,
        record: &DeviceRecord,
        (start, end): (u64, u64),
        launch: LaunchOf,
    ) {
        let at = ring.at + (ring.next % SINGLES as u64) as usize * SINGLE;
        ring.next += 1;
        let operation = record.operation.map_or(0, |operation| u32::from(operation) + 1);
        let queue = launch.queue.map_or(0, |queue| u32::from(queue) + 1);
        let what = pack(record.chip.into(), operation);
        let which = pack(record.runtime_id.into(), queue);
        self.put(at, [start, end, what, which, ring.next, launch.time.unwrap_or(0), 0]);
    }

    pub(super) fn put_naming(&self, naming: &mut NamingState) {
        naming.version += 1;
        // The name must be there before it is counted.
        fence(Ordering::Release);
        let line = [u64::from(naming.in_use), naming.unlisted, 0, 0, 0, 0, naming.version];
        self.put(place(IN_USE, naming.version), line);
    }

    pub(super) fn put_name(&self, activity: &ActivityState, number: u16, name: &[u8]) {
        let at = activity.table + usize::from(number) * OPERATION;
        let mut words = [0; NAME_WORDS];
        words[..NAME_WORDS - 1].copy_from_slice(&text_words::<{ NAME_WORDS - 1 }>(name));
        words[NAME_WORDS - 1] = sum(&words[..NAME_WORDS - 1], at);
        self.map.store_words(at, &words);
    }

    pub(super) fn put_device(&self, chip: usize, recorder: &mut ChipRecorder) {
        let mut words = [0; DEVICE_WORDS];
        words[..DEVICE_WORDS - 1].copy_from_slice(&recorder.line());
        debug_assert_eq!(words[DEVICE_WORDS - 2], recorder.version());
        self.put_wide::<DEVICE_WORDS>(device_at(chip), words);
    }

    /// Writes the next version of a wide pair, which is the word before the sum.
    #[inline]
    pub(super) fn put_wide<const N: usize>(&self, at: usize, mut words: [u64; N]) {
        let at = at + (words[N - 2] & 1) as usize * N * 8;
        words[N - 1] = sum(&words[..N - 1], at);
        self.map.store_words(at, &words);
    }
}
