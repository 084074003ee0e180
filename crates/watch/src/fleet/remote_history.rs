//! What a service recorded before its machine was shown, as snapshots for the charts.

use model::figure::Value;
use model::figure::device::{device_field, kept_in_history};
use model::{Device, DeviceId, Snapshot, Timestamp};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

/// More points than this no chart shows.
const POINTS: u64 = 600;
/// No more than this is taken from a service, whatever it sends.
const MOST: usize = 2000;

/// A time before 1970 or after the year 9999 is refused.
const TIMES: RangeInclusive<i64> = 0..=253_402_300_799_999;

/// The answer of `/api/v1/history`.
#[derive(Debug, Deserialize)]
pub struct HistoryReply {
    from_ms: i64,
    step_ms: i64,
    series: Vec<SeriesReply>,
}

#[derive(Debug, Deserialize)]
struct SeriesReply {
    device: String,
    name: String,
    /// Least, mean and greatest of each step; nothing where nothing was measured.
    points: Vec<Option<[Option<f64>; 3]>>,
}

/// The question for so much of the past. None for nothing.
pub fn query(past: Duration) -> Option<String> {
    let milliseconds = past.as_millis() as u64;
    let step = milliseconds.div_ceil(POINTS).max(1000);
    let series: Vec<_> = kept_in_history().map(|field| field.name()).collect();
    (milliseconds > 0).then(|| format!("history?series={}&from=-{milliseconds}&step={step}", series.join(",")))
}

/// The answer as moments, the oldest first. A moment at which nothing was measured is left out.
pub fn snapshots(reply: HistoryReply) -> Vec<Snapshot> {
    let HistoryReply { from_ms, step_ms, series } = reply;
    let mut moments: BTreeMap<usize, BTreeMap<DeviceId, Device>> = BTreeMap::new();
    for one in series {
        let (Some(field), id) = (device_field(&one.name), DeviceId::named(&one.device)) else { continue };
        if matches!(id, DeviceId::NoDriver(_)) {
            continue;
        }
        for (at, point) in one.points.into_iter().enumerate().take(MOST) {
            let Some([_, Some(mean), _]) = point else { continue };
            let devices = moments.entry(at).or_default();
            let device = devices
                .entry(id.clone())
                .or_insert_with(|| Device { sample_age_seconds: Some(0.0), ..Device::new(id.clone()) });
            (field.figure.set)(device, field.label, &Value::Real(mean));
        }
    }
    let moment = |(at, devices): (usize, BTreeMap<DeviceId, Device>)| Snapshot {
        taken_at: Timestamp(from_ms.saturating_add(step_ms.saturating_mul(at as i64))),
        devices: devices.into_values().collect(),
        ..Snapshot::empty()
    };
    moments.into_iter().map(moment).filter(|moment| TIMES.contains(&moment.taken_at.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::figure::device::{DRAM_USED, POWER};
    use model::{History, Weight};

    #[test]
    fn the_past_fills_the_charts_and_its_gaps_stay_gaps() {
        let text = r#"{"from_ms": 5000, "to_ms": 8000, "step_ms": 1000, "series": [
            {"device": "0", "name": "power_watts", "unit": "W", "points": [[1.0, 2.0, 3.0], null, [7.0, 8.0, 9.0]]},
            {"device": "2R", "name": "dram_used_bytes", "unit": "B", "points": [[0, 0, 0], [5, 6, 7], null]},
            {"device": "0", "name": "of_tomorrow", "unit": "?", "points": [[0, 0, 0]]},
            {"device": "nobody", "name": "power_watts", "unit": "W", "points": [[0, 0, 0]]}]}"#;
        let mut history = History::new(10);
        for snapshot in snapshots(serde_json::from_str(text).unwrap()) {
            history.push(&snapshot);
        }
        let values = |id, metric| {
            history.series(&Device::new(id), metric).iter().map(|(at, value)| (at.0, value)).collect::<Vec<_>>()
        };
        assert_eq!(values(DeviceId::Local(0), POWER.field()), [(5000, Some(2.0)), (6000, None), (7000, Some(8.0))]);
        let remote = values(DeviceId::Remote(2), DRAM_USED.field());
        assert_eq!(remote, [(5000, Some(0.0)), (6000, Some(6.0)), (7000, None)]);
    }

    proptest::proptest! {
        #[test]
        fn no_answer_makes_the_charts_fail(
            from_ms: i64,
            step_ms: i64,
            device in "[0-9]{0,12}R?",
            points in proptest::collection::vec(proptest::option::of(proptest::num::f64::ANY), 0..9)
        ) {
            let points = points.into_iter().map(|point| point.map(|value| [Some(value); 3])).collect();
            let series = vec![SeriesReply { device, name: "dram_used_bytes".into(), points }];
            let mut history = History::new(10);
            snapshots(HistoryReply { from_ms, step_ms, series }).iter().for_each(|snapshot| history.push(snapshot));
        }
    }

    #[test]
    fn earlier_events_come_before_new_ones() {
        let text = r#"{"newest": 3, "events": [
            {"seq": 2, "time": "1970-01-01T00:00:01.000Z", "weight": "bad", "device": "2R", "text": "device 2R is hung"},
            {"seq": 3, "time": "1970-01-01T00:00:02.000Z", "weight": "of tomorrow", "device": null, "text": "x"}]}"#;
        let mut reply: serde_json::Value = serde_json::from_str(text).unwrap();
        let told: Vec<model::Event> = serde_json::from_value(reply["events"].take()).unwrap();
        let mut all = crate::events::Events::default();
        all.begin_with(&told);
        let texts: Vec<&str> = all.latest(Timestamp(i64::MAX)).map(|event| event.text.as_str()).collect();
        assert_eq!(texts, ["x", "device 2R is hung"]);
        assert_eq!((told[0].weight, told[0].device.clone()), (Weight::Bad, Some(DeviceId::Remote(2))));
        assert_eq!((told[1].weight, told[1].device.clone()), (Weight::Note, None));
    }

    #[test]
    fn no_more_is_asked_for_than_a_chart_shows() {
        assert_eq!(query(Duration::ZERO), None);
        assert!(query(Duration::from_secs(60)).unwrap().ends_with("&from=-60000&step=1000"));
        assert!(query(Duration::from_secs(3600)).unwrap().ends_with("&from=-3600000&step=6000"));
    }
}
