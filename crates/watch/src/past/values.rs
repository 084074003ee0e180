//! Values of devices over a stretch, a sample for each step: for charts of weeks.

use super::Stretch;
use model::figure::Field;
use model::{Device, DeviceId, KnownDevices, Snapshot, Timestamp};
use std::collections::BTreeMap;

/// What was measured in a stretch.
#[derive(Debug)]
pub struct SampledValues {
    /// Time of the first step.
    pub from: Timestamp,
    /// Time between two steps.
    pub step_ms: i64,
    /// Figures of the devices.
    pub series: Vec<ValueSeries>,
}

/// One figure of one device, a value for each step. A step without a sample is a gap.
#[derive(Debug, PartialEq)]
pub struct ValueSeries {
    /// As it was called last.
    pub device: DeviceId,
    /// The figure.
    pub field: Field<Device>,
    /// One value for each step.
    pub points: Vec<Option<f32>>,
}

/// A stretch is looked at so often at the most: each look unpacks a part of the recording.
const MOST_STEPS: i64 = 400;

impl Stretch {
    /// The fields of all devices over time, in steps of at least this many milliseconds. A value stays with its card when numbers change.
    pub fn values(&mut self, fields: &[Field<Device>], least_step_ms: i64) -> SampledValues {
        let length = (self.to.0 - self.from.0).max(1);
        let step_ms = least_step_ms.max(length.div_euclid(MOST_STEPS) + 1);
        let steps = (length / step_ms + 1) as usize;
        let (mut known, mut ids) = (KnownDevices::default(), BTreeMap::new());
        let mut series: BTreeMap<(usize, usize), Vec<Option<f32>>> = BTreeMap::new();
        for step in 0..steps {
            let Some(snapshot) = self.within(self.from.0 + step as i64 * step_ms, step_ms) else { continue };
            for (device, key) in snapshot.devices.iter().zip(known.meet(&snapshot.devices)) {
                ids.insert(key.number(), device.id.clone());
                // What is older than its sample was not measured then.
                if device.sample_age_seconds.is_none_or(|age| age >= 1.0) {
                    continue;
                }
                for (at, field) in fields.iter().enumerate() {
                    let points = series.entry((key.number(), at)).or_insert_with(|| vec![None; steps]);
                    points[step] = field.number(device).map(|value| value as f32).filter(|value| value.is_finite());
                }
            }
        }
        let named = |((key, at), points): ((usize, usize), _)| {
            Some(ValueSeries { device: ids.get(&key)?.clone(), field: fields[at], points })
        };
        SampledValues { from: self.from, step_ms, series: series.into_iter().filter_map(named).collect() }
    }

    /// The last snapshot of a step.
    fn within(&mut self, from: i64, step_ms: i64) -> Option<Snapshot> {
        let end = Timestamp((from + step_ms - 1).min(self.to.0));
        let index = self.recording.index_at(end);
        let snapshot = self.recording.snapshot(index).ok()?;
        (from..=end.0).contains(&snapshot.taken_at.0).then_some(snapshot)
    }
}

#[cfg(test)]
mod tests {
    use crate::args::MachineArgs;
    use crate::past::StretchArgs;
    use crate::record::Recorder;
    use model::figure::device::kept_in_history;
    use model::{Snapshot, Timestamp, Watts};
    use show::example;

    #[test]
    fn a_stretch_is_sampled_in_steps_and_a_pause_is_a_gap() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ttmon");
        let mut recorder = Recorder::create(&path).unwrap();
        for second in (0..100).chain(200..300) {
            let mut snapshot = Snapshot { taken_at: Timestamp(1000 + second * 1000), ..example::machine() };
            snapshot.devices[0].power = Some(Watts(second as f64));
            recorder.push(&snapshot).unwrap();
        }
        recorder.finish().unwrap();
        let mut stretch = StretchArgs::default().open(&MachineArgs::default(), Some(&path)).unwrap();
        let power = kept_in_history().find(|field| field.name() == model::figure::device::POWER.name).unwrap();
        let values = stretch.values(&[power], 10_000);
        assert_eq!((values.from, values.step_ms), (Timestamp(1000), 10_000));
        let points = &values.series[0].points;
        assert_eq!(points.len(), 30);
        assert_eq!(
            (points[0], points[9], points[10], points[19], points[20]),
            (Some(9.0), Some(99.0), None, None, Some(209.0))
        );
        // A long stretch has longer steps, whatever was asked for.
        assert!(stretch.values(&[power], 1).series[0].points.len() <= 400);
    }
}
