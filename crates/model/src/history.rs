//! What was measured before: bounded series with gaps.

use crate::figure::Field;
use crate::figure::device::kept_in_history;
use crate::{Device, DeviceKey, KnownDevices, Snapshot, Timestamp};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// The last `limit` snapshots of every device: a column for each field of [`kept_in_history`]. A moment without a value is a gap.
#[derive(Debug, Clone)]
pub struct History {
    limit: usize,
    fields: Vec<Field<Device>>,
    // Ever later, so that a time can be looked up.
    times: VecDeque<Timestamp>,
    known: KnownDevices,
    /// By field.
    devices: BTreeMap<DeviceKey, Vec<Option<Trace>>>,
}

#[derive(Debug, Clone)]
struct Trace {
    // NaN is a gap: half the size of an Option, and it never leaves this file. Gaps at the end may be missing.
    values: VecDeque<f32>,
    /// How many of them are no gaps.
    known: usize,
}

/// One figure of one device over time, oldest first.
#[derive(Debug, Clone, Copy)]
pub struct Series<'a> {
    times: &'a VecDeque<Timestamp>,
    values: Option<&'a VecDeque<f32>>,
}

/// Some consecutive moments of a series in short. `None` is a gap.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Stretch {
    /// The value of its first moment.
    pub first: Option<f64>,
    /// The value of its last moment.
    pub last: Option<f64>,
    /// The least and the greatest of all that are there.
    pub extent: Option<(f64, f64)>,
}

/// No sample was taken for a while when a moment comes so many times later than the one before it did,
const LATE: i64 = 3;
/// and this many milliseconds on top.
const LATE_MS: i64 = 1000;

impl History {
    /// An empty history that keeps `limit` moments.
    pub fn new(limit: usize) -> History {
        History {
            limit: limit.max(1),
            fields: kept_in_history().collect(),
            times: VecDeque::new(),
            known: KnownDevices::default(),
            devices: BTreeMap::new(),
        }
    }

    /// Adds a moment and drops the oldest when full. A value that is out of date is a gap, and so is a time in which
    /// no sample was taken. When time goes back (a clock was set, a replay was rewound), what is no longer past is dropped.
    pub fn push(&mut self, snapshot: &Snapshot) {
        let time = snapshot.taken_at;
        let past = self.place(time);
        if past < self.times.len() {
            self.times.truncate(past);
            self.forget(|column| column.cut(past));
        }
        if let Some(gap) = self.gap_before(time) {
            self.begin(gap);
        }
        self.begin(time);
        let (limit, newest) = (self.limit, self.times.len() - 1);
        for (device, key) in snapshot.devices.iter().zip(self.known.meet(&snapshot.devices)) {
            if device.sample_age_seconds.is_none_or(|age| age >= 1.0) {
                continue;
            }
            let columns = self.devices.entry(key).or_insert_with(|| vec![None; self.fields.len()]);
            for (field, column) in self.fields.iter().zip(columns) {
                let value = field.number(device).map(|value| value as f32);
                let Some(value) = value.filter(|value| value.is_finite()) else { continue };
                column.get_or_insert_with(|| Trace::new(limit)).put(newest, value);
            }
        }
    }

    /// The time of the gap, if the last sample was long before this moment.
    fn gap_before(&self, time: Timestamp) -> Option<Timestamp> {
        let newest = self.times.back()?;
        let before = self.times.get(self.times.len().checked_sub(2)?)?;
        let usual = newest.0.saturating_sub(before.0);
        let late = time.0.saturating_sub(newest.0) > usual.saturating_mul(LATE).saturating_add(LATE_MS);
        late.then(|| Timestamp(newest.0 + usual))
    }

    /// Adds a moment of which nothing is known yet.
    fn begin(&mut self, time: Timestamp) {
        if self.times.len() == self.limit {
            self.times.pop_front();
            self.forget(Trace::drop_oldest);
        }
        self.times.push_back(time);
    }

    /// Drops values of every column, and the columns of which nothing is left.
    fn forget(&mut self, drop: impl Fn(&mut Trace)) {
        self.devices.retain(|_, columns| {
            for column in columns.iter_mut() {
                column.iter_mut().for_each(&drop);
                column.take_if(|column| column.known == 0);
            }
            columns.iter().any(Option::is_some)
        });
    }

    /// How many moments there are.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether nothing was added yet.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// The place of the first moment that is not before this time; where there is none, how many moments there are.
    pub fn place(&self, time: Timestamp) -> usize {
        self.times.partition_point(|moment| *moment < time)
    }

    /// The moment at a place.
    pub fn time(&self, place: usize) -> Option<Timestamp> {
        self.times.get(place).copied()
    }

    /// Whether a field is known of any device at any moment.
    pub fn knows(&self, field: Field<Device>) -> bool {
        let place = self.fields.iter().position(|kept| *kept == field);
        place.is_some_and(|place| self.devices.values().any(|columns| matches!(columns.get(place), Some(Some(_)))))
    }

    /// One field of one device, whatever number it had. What history does not keep is a gap everywhere.
    pub fn series(&self, device: &Device, field: Field<Device>) -> Series<'_> {
        let place = self.fields.iter().position(|kept| *kept == field);
        let column = place.and_then(|place| self.devices.get(&self.known.find(device)?)?.get(place)?.as_ref());
        Series { times: &self.times, values: column.map(|column| &column.values) }
    }
}

impl Trace {
    /// With room for all that will ever be in it: what is not written yet takes no memory, and growing would leave holes.
    fn new(limit: usize) -> Trace {
        Trace { values: VecDeque::with_capacity(limit), known: 0 }
    }

    /// Sets the newest value, which is at this place.
    fn put(&mut self, newest: usize, value: f32) {
        if self.values.len() > newest {
            self.values[newest] = value;
            return;
        }
        self.values.resize(newest, f32::NAN);
        self.values.push_back(value);
        self.known += 1;
    }

    fn drop_oldest(&mut self) {
        self.known -= usize::from(self.values.pop_front().is_some_and(|value| !value.is_nan()));
    }

    /// Keeps the oldest values alone.
    fn cut(&mut self, kept: usize) {
        self.known -= self.values.range(kept.min(self.values.len())..).filter(|value| !value.is_nan()).count();
        self.values.truncate(kept);
    }
}

impl Series<'_> {
    /// Moments and values, oldest first; `None` is a gap.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Timestamp, Option<f64>)> + '_ {
        self.times.iter().enumerate().map(|(place, time)| (*time, self.get(place)))
    }

    /// The value at a place.
    pub fn get(&self, place: usize) -> Option<f64> {
        self.values?.get(place).copied().and_then(known)
    }

    /// The newest value, where the newest moment has one.
    pub fn last(&self) -> Option<f64> {
        self.get(self.times.len().checked_sub(1)?)
    }

    /// Least, mean and greatest value.
    pub fn range(&self) -> Option<(f64, f64, f64)> {
        let (least, greatest) = self.stretch(0..self.times.len()).extent?;
        let (count, sum) =
            self.iter().filter_map(|(_, value)| value).fold((0.0, 0.0), |(n, sum), v| (n + 1.0, sum + v));
        Some((least, sum / count, greatest))
    }

    /// The moments at these places in short. Places that are not there are left out.
    pub fn stretch(&self, places: Range<usize>) -> Stretch {
        let Some(values) = self.values else { return Stretch::default() };
        let end = places.end.min(self.times.len());
        let start = places.start.min(end);
        if start == end {
            return Stretch::default();
        }
        let some = values.range(start.min(values.len())..end.min(values.len()));
        // The lesser of a number and NaN is the number.
        let extent = |low: f32, high: f32, value: &f32| (low.min(*value), high.max(*value));
        let (least, greatest) = some.fold((f32::NAN, f32::NAN), |(low, high), value| extent(low, high, value));
        Stretch { first: self.get(start), last: self.get(end - 1), extent: known(least).zip(known(greatest)) }
    }
}

/// A value, unless it stands for a gap.
fn known(value: f32) -> Option<f64> {
    (!value.is_nan()).then_some(f64::from(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::device::{FAN, POWER};
    use crate::{DeviceId, Host, PciAddress, SCHEMA, Watts};

    fn snapshot(time: i64, powers: &[(u32, Option<f64>)]) -> Snapshot {
        let devices = powers.iter().map(|(n, power)| Device {
            power: power.map(Watts),
            sample_age_seconds: Some(0.0),
            ..Device::new(DeviceId::Local(*n))
        });
        let (devices, host) = (devices.collect(), Host::default());
        Snapshot {
            schema: SCHEMA,
            taken_at: Timestamp(time),
            host,
            devices,
            processes: vec![],
            faults: vec![],
            alerts: vec![],
            kernel_log: None,
        }
    }

    fn columns(history: &History) -> impl Iterator<Item = &Trace> {
        history.devices.values().flatten().flatten()
    }

    fn powers(history: &History, n: u32) -> Vec<Option<f64>> {
        history.series(&Device::new(DeviceId::Local(n)), POWER.field()).iter().map(|(_, value)| value).collect()
    }

    #[test]
    fn a_missing_value_is_a_gap_and_old_ones_leave() {
        let mut history = History::new(3);
        for (time, power) in [(1, Some(10.0)), (2, None), (3, Some(30.0)), (4, Some(40.0))] {
            history.push(&snapshot(time, &[(0, power)]));
        }
        assert_eq!(powers(&history, 0), [None, Some(30.0), Some(40.0)]);
        let series = history.series(&Device::default(), POWER.field());
        assert_eq!((series.last(), series.range()), (Some(40.0), Some((30.0, 35.0, 40.0))));
        assert_eq!(history.series(&Device::default(), FAN.field()).range(), None);
    }

    #[test]
    fn a_device_may_come_late_and_leave_early() {
        let mut history = History::new(8);
        history.push(&snapshot(1, &[(0, Some(1.0))]));
        history.push(&snapshot(2, &[(0, Some(2.0)), (1, Some(5.0))]));
        history.push(&snapshot(3, &[(1, Some(6.0))]));
        assert_eq!(powers(&history, 0), [Some(1.0), Some(2.0), None]);
        assert_eq!(powers(&history, 1), [None, Some(5.0), Some(6.0)]);
    }

    #[test]
    fn a_history_stays_with_its_card_when_numbers_swap() {
        let slots = ["0000:01:00.0", "0000:02:00.0"].map(|slot| Some(PciAddress(slot.into())));
        let mut history = History::new(8);
        let mut push = |time, order: [usize; 2]| {
            let mut snapshot = snapshot(time, &[(0, Some(100.0)), (1, Some(200.0))]);
            for (device, slot) in snapshot.devices.iter_mut().zip(order) {
                device.pci_address.clone_from(&slots[slot]);
                device.power = Some(Watts(10.0 * (slot + 1) as f64));
            }
            history.push(&snapshot);
            snapshot.devices
        };
        let before = push(1, [0, 1]);
        let after = push(2, [1, 0]);
        let powers = |device: &Device| history.series(device, POWER.field()).iter().map(|at| at.1).collect::<Vec<_>>();
        assert_eq!(powers(&after[0]), [Some(20.0); 2]);
        assert_eq!(powers(&after[1]), [Some(10.0); 2]);
        assert_eq!(powers(&before[0]), [Some(10.0); 2], "which a replay shows by its number of then");
    }

    #[test]
    fn a_device_that_left_long_ago_takes_no_room() {
        let mut history = History::new(2);
        history.push(&snapshot(0, &[(0, Some(1.0))]));
        (1..10).for_each(|time| history.push(&snapshot(time, &[])));
        assert_eq!((history.len(), history.devices.len()), (2, 0));
    }

    #[test]
    fn an_old_value_is_not_drawn_as_a_new_one() {
        let mut history = History::new(4);
        let mut old = snapshot(1, &[(0, Some(9.0))]);
        old.devices[0].sample_age_seconds = Some(4.0);
        history.push(&old);
        assert_eq!(powers(&history, 0), [None]);
    }

    #[test]
    fn a_time_without_samples_is_a_gap() {
        let mut history = History::new(8);
        for time in [0, 1000, 2000, 60_000, 61_000] {
            history.push(&snapshot(time, &[(0, Some(1.0))]));
        }
        assert_eq!(powers(&history, 0), [Some(1.0), Some(1.0), Some(1.0), None, Some(1.0), Some(1.0)]);
        assert_eq!(history.time(3), Some(Timestamp(3000)));
    }

    #[test]
    fn what_lies_in_the_future_is_forgotten_when_time_goes_back() {
        let mut history = History::new(8);
        for time in [1000, 2000, 3000, 4000, 2500] {
            history.push(&snapshot(time, &[(0, Some(time as f64))]));
        }
        assert_eq!(powers(&history, 0), [Some(1000.0), Some(2000.0), Some(2500.0)]);
    }

    #[test]
    fn what_is_no_number_is_a_gap() {
        let mut history = History::new(8);
        for (time, power) in [f64::NAN, f64::INFINITY, 1e300, 7.0].into_iter().enumerate() {
            history.push(&snapshot(time as i64, &[(0, Some(power))]));
        }
        assert_eq!(powers(&history, 0)[3], Some(7.0));
        assert_eq!(history.series(&Device::default(), POWER.field()).range(), Some((7.0, 7.0, 7.0)));
    }

    #[test]
    fn a_stretch_has_its_ends_and_its_extent() {
        let mut history = History::new(8);
        for (time, power) in [Some(3.0), Some(9.0), None, Some(1.0), None].into_iter().enumerate() {
            history.push(&snapshot(time as i64 * 10, &[(0, power)]));
        }
        let series = history.series(&Device::default(), POWER.field());
        let stretch = |places| series.stretch(places);
        let (first, last) = (Some(3.0), None);
        assert_eq!(stretch(0..5), Stretch { first, last, extent: Some((1.0, 9.0)) });
        assert_eq!(stretch(3..4), Stretch { first: Some(1.0), last: Some(1.0), extent: Some((1.0, 1.0)) });
        assert_eq!([stretch(2..3), stretch(4..99), stretch(70..99), stretch(1..1)], [Stretch::default(); 4]);
        assert_eq!([-5, 0, 5, 10, 40, 41].map(|time| history.place(Timestamp(time))), [0, 0, 1, 1, 4, 5]);
    }

    #[test]
    fn an_hour_of_a_galaxy_takes_less_than_four_megabytes() {
        let mut history = History::new(3600);
        let mut galaxy = snapshot(0, &(0..32).map(|n| (n, Some(1.0))).collect::<Vec<_>>());
        for device in &mut galaxy.devices {
            device.asic_temp = Some(crate::Celsius(50.0));
            device.aiclk = Some(crate::Megahertz(1000));
            device.fan = Some(crate::Rpm(2000));
            device.memory.dram_used = Some(crate::Bytes(1));
            device.memory.l1_used = Some(crate::Bytes(1));
            device.pcie.host_to_device = Some(crate::BytesPerSecond(1.0));
            device.pcie.device_to_host = Some(crate::BytesPerSecond(1.0));
        }
        for second in 0..4000 {
            galaxy.taken_at = Timestamp(second * 1000);
            history.push(&galaxy);
        }
        let values: usize = columns(&history).map(|column| column.values.capacity() * size_of::<f32>()).sum();
        let times = history.times.capacity() * size_of::<Timestamp>();
        assert_eq!((history.len(), columns(&history).count()), (3600, 256));
        assert!(values + times < 4_000_000, "{values} + {times}");
    }

    proptest::proptest! {
        #[test]
        fn the_count_of_known_values_is_right(
            moments in proptest::collection::vec((0i64..9000, proptest::option::of(0.0..9.0f64)), 0..60),
        ) {
            let mut history = History::new(7);
            for (time, power) in moments {
                history.push(&snapshot(time, &[(0, power), (1, None)]));
                let times: Vec<_> = history.times.iter().collect();
                assert!(times.is_sorted() && times.len() <= 7);
                for column in columns(&history) {
                    assert!(column.values.len() <= history.len());
                    assert_eq!(column.known, column.values.iter().filter(|value| !value.is_nan()).count());
                }
            }
        }
    }
}
