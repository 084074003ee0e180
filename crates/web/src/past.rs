//! The past beyond the last day, as the service hands it over from its black box: plain data for `/api/v1/past`.

use crate::history::{self, MinMeanMax};
use model::figure::Field;
use model::{Device, DeviceId, Event, Snapshot};
use serde::Serialize;
use std::fmt::Write;

/// Which part of the past is asked for, in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq)]
pub struct PastWanted {
    /// Fields of devices.
    pub fields: Vec<Field<Device>>,
    /// Ids of devices; all when there are none.
    pub devices: Vec<String>,
    /// Begin.
    pub from: i64,
    /// End.
    pub to: i64,
    /// Time between two values.
    pub step: i64,
}

/// Values and events of a stretch of the past.
#[derive(Debug, Default)]
pub struct PastReply {
    /// Begin, in milliseconds since 1970.
    pub from: i64,
    /// End, in milliseconds since 1970.
    pub to: i64,
    /// Time between two values, in milliseconds.
    pub step: i64,
    /// Values of each field of each device; `None` is a gap.
    pub series: Vec<(DeviceId, Field<Device>, Vec<Option<f32>>)>,
    /// The earliest first.
    pub events: Vec<Event>,
    /// Why there is nothing.
    pub reason: Option<String>,
}

impl PastReply {
    /// There is nothing, and why.
    pub fn nothing(wanted: &PastWanted, reason: String) -> PastReply {
        let PastWanted { from, to, step, .. } = *wanted;
        PastReply { from, to, step, reason: Some(reason), ..PastReply::default() }
    }

    /// The answer as JSON.
    pub fn json(&self) -> Vec<u8> {
        let mut text = format!(r#"{{"from_ms":{},"to_ms":{},"step_ms":{},"series":["#, self.from, self.to, self.step);
        for (at, (id, field, points)) in self.series.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let points: Vec<Option<MinMeanMax>> = points.iter().map(|point| point.map(|value| [value; 3])).collect();
            history::write_series(comma, id, *field, &points, &mut text);
        }
        let reason = serde_json::to_string(&self.reason).unwrap_or_default();
        let events = serde_json::to_string(&self.events).unwrap_or_else(|_| "[]".into());
        let _ = write!(text, r#"],"events":{events},"reason":{reason}}}"#);
        text.into_bytes()
    }
}

/// The machine at one moment of the past.
#[derive(Debug, Serialize)]
pub struct PastSnapshotReply {
    /// The snapshot of that moment.
    pub snapshot: Option<Snapshot>,
    /// Why there is none.
    pub reason: Option<String>,
}
