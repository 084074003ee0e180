//! What was measured before: bounded series with gaps.

use crate::{Device, DeviceId, Snapshot, Timestamp};
use std::collections::{BTreeMap, VecDeque};

/// A figure that is kept over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Chip temperature in °C.
    AsicTemp,
    /// Power in watts.
    Power,
    /// Tensix clock in MHz.
    Aiclk,
    /// Fan speed in rpm.
    Fan,
    /// DRAM of living processes in bytes.
    DramUsed,
    /// L1 of living processes in bytes.
    L1Used,
    /// PCIe in bytes per second.
    HostToDevice,
    /// PCIe in bytes per second.
    DeviceToHost,
}

impl Metric {
    /// All of them, in the order of their slots.
    pub const ALL: [Metric; 8] = [
        Metric::AsicTemp,
        Metric::Power,
        Metric::Aiclk,
        Metric::Fan,
        Metric::DramUsed,
        Metric::L1Used,
        Metric::HostToDevice,
        Metric::DeviceToHost,
    ];

    fn of(self, device: &Device) -> Option<f64> {
        match self {
            Metric::AsicTemp => device.asic_temp.map(|v| v.0),
            Metric::Power => device.power.map(|v| v.0),
            Metric::Aiclk => device.aiclk.map(|v| f64::from(v.0)),
            Metric::Fan => device.fan.map(|v| f64::from(v.0)),
            Metric::DramUsed => device.memory.dram_used.map(|v| v.0 as f64),
            Metric::L1Used => device.memory.l1_used.map(|v| v.0 as f64),
            Metric::HostToDevice => device.pcie.host_to_device.map(|v| v.0),
            Metric::DeviceToHost => device.pcie.device_to_host.map(|v| v.0),
        }
    }
}

/// The last `limit` snapshots of every device, one column per metric. A moment without a value is a gap.
#[derive(Debug, Clone)]
pub struct History {
    limit: usize,
    times: VecDeque<Timestamp>,
    // NaN is a gap: half the size of an Option, and it never leaves this file.
    columns: BTreeMap<(DeviceId, Metric), VecDeque<f32>>,
}

/// One figure of one device over time, oldest first.
#[derive(Debug, Clone, Copy)]
pub struct Series<'a> {
    times: &'a VecDeque<Timestamp>,
    values: Option<&'a VecDeque<f32>>,
}

impl History {
    /// An empty history that keeps `limit` moments.
    pub fn new(limit: usize) -> History {
        History { limit: limit.max(1), times: VecDeque::new(), columns: BTreeMap::new() }
    }

    /// Adds a moment and drops the oldest when full. A value that is out of date is a gap.
    pub fn push(&mut self, snapshot: &Snapshot) {
        if self.times.len() == self.limit {
            self.times.pop_front();
            for column in self.columns.values_mut() {
                column.pop_front();
            }
            self.columns.retain(|_, column| column.iter().any(|value| !value.is_nan()));
        }
        let already = self.times.len();
        self.times.push_back(snapshot.taken_at);
        for device in &snapshot.devices {
            let fresh = device.sample_age_seconds.is_some_and(|age| age < 1.0);
            for metric in Metric::ALL {
                let Some(value) = metric.of(device).filter(|_| fresh) else { continue };
                let column = self.columns.entry((device.id.clone(), metric)).or_default();
                column.resize(already, f32::NAN);
                column.push_back(value as f32);
            }
        }
        self.columns.values_mut().for_each(|column| column.resize(already + 1, f32::NAN));
    }

    /// How many moments there are.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether nothing was added yet.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// One figure of one device.
    pub fn series(&self, id: &DeviceId, metric: Metric) -> Series<'_> {
        Series { times: &self.times, values: self.columns.get(&(id.clone(), metric)) }
    }
}

impl Series<'_> {
    /// Moments and values, oldest first; `None` is a gap.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Timestamp, Option<f64>)> + '_ {
        self.times.iter().enumerate().map(|(i, time)| {
            let value = self.values.and_then(|values| values.get(i)).copied().filter(|value| !value.is_nan());
            (*time, value.map(f64::from))
        })
    }

    /// The newest value, where the newest moment has one.
    pub fn last(&self) -> Option<f64> {
        self.iter().next_back()?.1
    }

    /// Least, mean and greatest value.
    pub fn range(&self) -> Option<(f64, f64, f64)> {
        let values: Vec<f64> = self.iter().filter_map(|(_, value)| value).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let least = values.iter().copied().reduce(f64::min)?;
        Some((least, mean, values.iter().copied().reduce(f64::max)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Host, SCHEMA, Watts};

    fn snapshot(time: i64, powers: &[(u32, Option<f64>)]) -> Snapshot {
        let devices = powers.iter().map(|(n, power)| Device {
            power: power.map(Watts),
            sample_age_seconds: Some(0.0),
            ..Device::new(DeviceId::Local(*n))
        });
        let (devices, host) = (devices.collect(), Host::default());
        Snapshot { schema: SCHEMA, taken_at: Timestamp(time), host, devices, processes: vec![], faults: vec![] }
    }

    fn powers(history: &History, n: u32) -> Vec<Option<f64>> {
        history.series(&DeviceId::Local(n), Metric::Power).iter().map(|(_, value)| value).collect()
    }

    #[test]
    fn a_missing_value_is_a_gap_and_old_ones_leave() {
        let mut history = History::new(3);
        for (time, power) in [(1, Some(10.0)), (2, None), (3, Some(30.0)), (4, Some(40.0))] {
            history.push(&snapshot(time, &[(0, power)]));
        }
        assert_eq!(powers(&history, 0), [None, Some(30.0), Some(40.0)]);
        let series = history.series(&DeviceId::Local(0), Metric::Power);
        assert_eq!((series.last(), series.range()), (Some(40.0), Some((30.0, 35.0, 40.0))));
        assert_eq!(history.series(&DeviceId::Local(0), Metric::Fan).range(), None);
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
    fn a_device_that_left_long_ago_takes_no_room() {
        let mut history = History::new(2);
        history.push(&snapshot(0, &[(0, Some(1.0))]));
        (1..10).for_each(|time| history.push(&snapshot(time, &[])));
        assert_eq!((history.len(), history.columns.len()), (2, 0));
    }

    #[test]
    fn an_old_value_is_not_drawn_as_a_new_one() {
        let mut history = History::new(4);
        let mut old = snapshot(1, &[(0, Some(9.0))]);
        old.devices[0].sample_age_seconds = Some(4.0);
        history.push(&old);
        assert_eq!(powers(&history, 0), [None]);
    }
}
