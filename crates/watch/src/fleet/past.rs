//! What a service has measured before anybody looked, as snapshots for the charts; and what has happened.

use crate::events::{Event, Weight};
use model::{
    Bytes, BytesPerSecond, Celsius, Device, DeviceId, Host, Megahertz, Rpm, SCHEMA, Snapshot, Timestamp, Watts,
};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The figures that charts show.
const SERIES: &str = "asic_temp_celsius,power_watts,aiclk_megahertz,fan_rpm,dram_used_bytes,l1_used_bytes,\
                      host_to_device_bytes_per_second,device_to_host_bytes_per_second";
/// More points than this no chart shows.
const POINTS: u64 = 600;
/// No service is believed more than this, whatever it sends.
const MOST: usize = 2000;

/// A time before 1970 or beyond the year 9999 is none.
const TIMES: RangeInclusive<i64> = 0..=253_402_300_799_999;

/// The answer of `/api/v1/history`.
#[derive(Debug, Deserialize)]
pub struct Told {
    from_ms: i64,
    step_ms: i64,
    series: Vec<Series>,
}

#[derive(Debug, Deserialize)]
struct Series {
    device: String,
    name: String,
    /// Least, mean and greatest of each step; nothing where nothing was measured.
    points: Vec<Option<[Option<f64>; 3]>>,
}

/// The question for so much of the past. None for nothing.
pub fn query(past: Duration) -> Option<String> {
    let milliseconds = past.as_millis() as u64;
    let step = milliseconds.div_ceil(POINTS).max(1000);
    (milliseconds > 0).then(|| format!("history?series={SERIES}&from=-{milliseconds}&step={step}"))
}

/// The answer as moments, the oldest first. A moment at which nothing was measured is left out.
pub fn snapshots(told: Told) -> Vec<Snapshot> {
    let Told { from_ms, step_ms, series } = told;
    let mut moments: BTreeMap<usize, BTreeMap<DeviceId, Device>> = BTreeMap::new();
    for one in series {
        let Some(id) = device(&one.device) else { continue };
        for (at, point) in one.points.into_iter().enumerate().take(MOST) {
            let Some([_, Some(mean), _]) = point else { continue };
            let devices = moments.entry(at).or_default();
            let device = devices
                .entry(id.clone())
                .or_insert_with(|| Device { sample_age_seconds: Some(0.0), ..Device::new(id.clone()) });
            set(device, &one.name, mean);
        }
    }
    let moment = |(at, devices): (usize, BTreeMap<DeviceId, Device>)| Snapshot {
        schema: SCHEMA,
        taken_at: Timestamp(from_ms.saturating_add(step_ms.saturating_mul(at as i64))),
        host: Host::default(),
        devices: devices.into_values().collect(),
        processes: Vec::new(),
        faults: Vec::new(),
        alerts: Vec::new(),
    };
    moments.into_iter().map(moment).filter(|moment| TIMES.contains(&moment.taken_at.0)).collect()
}

/// The answer of `/api/v1/events`.
#[derive(Debug, Deserialize)]
pub struct Events {
    events: Vec<Happened>,
}

#[derive(Debug, Deserialize)]
struct Happened {
    time: Timestamp,
    weight: String,
    device: Option<String>,
    text: String,
}

/// The answer as events, the oldest first.
pub fn events(told: Events) -> Vec<Event> {
    let event = |one: Happened| Event {
        time: one.time,
        weight: match one.weight.as_str() {
            "good" => Weight::Good,
            "warning" => Weight::Warning,
            "bad" => Weight::Bad,
            _ => Weight::Note,
        },
        device: one.device.as_deref().and_then(device),
        text: one.text,
    };
    told.events.into_iter().map(event).collect()
}

fn device(name: &str) -> Option<DeviceId> {
    match name.strip_suffix('R') {
        Some(gateway) => gateway.parse().ok().map(DeviceId::Remote),
        None => name.parse().ok().map(DeviceId::Local),
    }
}

fn set(device: &mut Device, name: &str, value: f64) {
    let bytes = Bytes(value.max(0.0) as u64);
    match name {
        "asic_temp_celsius" => device.asic_temp = Some(Celsius(value)),
        "power_watts" => device.power = Some(Watts(value)),
        "aiclk_megahertz" => device.aiclk = Some(Megahertz(value.max(0.0) as u32)),
        "fan_rpm" => device.fan = Some(Rpm(value.max(0.0) as u32)),
        "dram_used_bytes" => device.memory.dram_used = Some(bytes),
        "l1_used_bytes" => device.memory.l1_used = Some(bytes),
        "host_to_device_bytes_per_second" => device.pcie.host_to_device = Some(BytesPerSecond(value)),
        "device_to_host_bytes_per_second" => device.pcie.device_to_host = Some(BytesPerSecond(value)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::History;
    use model::figure::device::{DRAM_USED, POWER};

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
        let values =
            |id, field| history.series(&id, field).iter().map(|(at, value)| (at.0, value)).collect::<Vec<_>>();
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
            let series = vec![Series { device, name: "dram_used_bytes".into(), points }];
            let mut history = History::new(10);
            snapshots(Told { from_ms, step_ms, series }).iter().for_each(|snapshot| history.push(snapshot));
        }
    }

    #[test]
    fn what_has_happened_before_stands_before_what_happens() {
        let text = r#"{"newest": 3, "events": [
            {"seq": 2, "time": "1970-01-01T00:00:01.000Z", "weight": "bad", "device": "2R", "text": "device 2R is hung"},
            {"seq": 3, "time": "1970-01-01T00:00:02.000Z", "weight": "of tomorrow", "device": null, "text": "x"}]}"#;
        let told = events(serde_json::from_str(text).unwrap());
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
