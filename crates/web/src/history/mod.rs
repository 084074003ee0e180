//! What was measured in the last day, in steps that grow with age. A time of which nothing is known is a gap.

mod chunk;
mod level;

use level::HistoryLevel;
use model::figure::Field;
use model::figure::device::kept_in_history;
use model::{Device, DeviceId, KnownDevices, Snapshot};

/// The least, the mean and the greatest of what was measured in one step.
pub type MinMeanMax = [f32; 3];

/// The last day of every device.
#[derive(Debug)]
pub struct PastValues {
    /// What is kept of each device.
    fields: Vec<Field<Device>>,
    /// Finest first.
    levels: [HistoryLevel; 3],
    /// By their keys, so that values stay with a card when numbers change.
    devices: KnownDevices,
    budget: usize,
}

/// Which part is wanted, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub from: i64,
    /// Not included.
    pub to: i64,
    pub step: i64,
}

/// What is kept of it: a second for an hour, ten for six hours, a minute for a day.
const STEPS: [(i64, i64); 3] = [(1000, 3600), (10_000, 2160), (60_000, 1440)];
/// Points of one series in an answer,
const MOST_POINTS: i64 = 2000;
/// and of all series together.
const MOST_IN_ALL: i64 = 100_000;

impl PastValues {
    /// That takes so many bytes at the most.
    pub fn up_to(budget: usize) -> PastValues {
        PastValues {
            fields: kept_in_history().collect(),
            levels: STEPS.map(|(step, buckets)| HistoryLevel::new(step, buckets)),
            devices: KnownDevices::default(),
            budget,
        }
    }

    /// Adds a moment. A value that is out of date is a gap.
    pub fn push(&mut self, snapshot: &Snapshot) {
        let time = snapshot.taken_at.0;
        let is_fresh = |device: &Device| device.sample_age_seconds.is_some_and(|age| age < 1.0);
        let known = snapshot.devices.iter().zip(self.devices.meet(&snapshot.devices));
        for (device, key) in known.filter(|(device, _)| is_fresh(device)) {
            let first = key.number() * self.fields.len();
            for (at, field) in self.fields.iter().enumerate() {
                let value = field.number(device).map(|value| value as f32).filter(|value| value.is_finite());
                let Some(value) = value else { continue };
                self.levels.iter_mut().for_each(|level| level.push(time, first + at, value));
            }
        }
        // The finest goes first when there is no room, but some of it stays.
        for keep in [10, 2, 0] {
            for level in 0..self.levels.len() {
                while self.bytes() > self.budget && self.levels[level].slices.len() > keep {
                    self.levels[level].drop_oldest();
                }
            }
        }
    }

    /// What it takes, exactly.
    pub fn bytes(&self) -> usize {
        self.levels.iter().map(HistoryLevel::bytes).sum::<usize>() + self.devices.bytes()
    }

    pub fn oldest(&self) -> Option<i64> {
        self.levels.iter().filter_map(HistoryLevel::oldest).min()
    }

    /// The span that can be answered: not finer than what is kept of its beginning, nor in too many steps.
    pub fn fit(&self, wanted: Span, series: usize) -> Span {
        let begin = wanted.from.max(self.oldest().unwrap_or(wanted.from));
        // A level that dropped nothing has as much as the coarser ones.
        let covers = |level: &&HistoryLevel| level.oldest().is_some_and(|oldest| oldest <= begin) || !level.has_dropped;
        let finest = self.levels.iter().find(covers).map_or(STEPS[2].0, |level| level.step);
        let length = (wanted.to - wanted.from).max(1);
        let most = MOST_POINTS.min(MOST_IN_ALL / series.max(1) as i64).max(1);
        let least = wanted.step.max(finest).max(length / most + 1);
        // A whole number of the steps of the level that will be asked.
        let base = STEPS.iter().rev().map(|(step, _)| *step).find(|step| *step <= least).unwrap_or(finest).max(finest);
        let step = (least + base - 1) / base * base;
        let from = wanted.from.div_euclid(step) * step;
        let mut to = (wanted.to + step - 1).div_euclid(step) * step;
        to = to.min(from + most * step);
        Span { from, to, step }
    }

    /// What is known of a device in a span that fits, whatever number it had.
    pub fn series(&self, device: &Device, field: Field<Device>, span: Span) -> Vec<Option<MinMeanMax>> {
        let count = ((span.to - span.from) / span.step) as usize;
        let mut points = vec![None; count];
        let at = self.fields.iter().position(|kept| *kept == field);
        let (Some(key), Some(at)) = (self.devices.find(device), at) else { return points };
        let level = self.levels.iter().rev().find(|level| level.step <= span.step).unwrap_or(&self.levels[0]);
        level.gather(key.number() * self.fields.len() + at, span, &mut points);
        points
    }
}

/// One series as JSON, with what stands before it.
pub fn write_series(
    before: &str,
    id: &DeviceId,
    field: Field<Device>,
    points: &[Option<MinMeanMax>],
    into: &mut String,
) {
    use std::fmt::Write;
    let (name, unit) = (field.name(), field.figure.unit.symbol());
    let id = serde_json::Value::String(id.to_string());
    let _ = write!(into, r#"{before}{{"device":{id},"name":"{name}","unit":"{unit}","points":"#);
    write(field, points, into);
    into.push('}');
}

/// Points as JSON: `[[min,mean,max],null,…]`.
fn write(field: Field<Device>, points: &[Option<MinMeanMax>], into: &mut String) {
    use std::fmt::Write;
    let is_whole = field.figure.unit.decimals() == 0;
    into.push('[');
    for (at, point) in points.iter().enumerate() {
        into.push_str(if at > 0 { "," } else { "" });
        let _ = match (point, is_whole) {
            (None, _) => write!(into, "null"),
            (Some([least, mean, greatest]), false) => write!(into, "[{least},{mean},{greatest}]"),
            (Some(spread), true) => {
                let [least, mean, greatest] = spread.map(|value| f64::from(value).round());
                write!(into, "[{least},{mean},{greatest}]")
            }
        };
    }
    into.push(']');
}

#[cfg(test)]
mod tests;
