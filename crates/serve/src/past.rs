//! Answers about the past, from the black box. Runs in a thread of `background`: files are read and unpacked.

use model::{LogEntry, Timestamp, Weight};
use std::collections::VecDeque;
use std::path::Path;
use watch::past::Stretch;
use watch::record::Recording;
use web::past::{PastReply, PastSnapshotReply, PastWanted};

/// The latest events of an answer. Those that only are good to know make room first.
const MOST_EVENTS: usize = 1000;
/// A moment further away from its sample was not recorded.
const NEAR_MS: i64 = 120_000;
const NONE: &str = "this service keeps no black box: start it with --black-box DIR";

/// Values and events of a stretch.
pub fn values(folder: Option<&Path>, wanted: &PastWanted) -> PastReply {
    let recording = match open(folder) {
        Ok(recording) => recording,
        Err(reason) => return PastReply::nothing(wanted, reason),
    };
    let (first, last) = recording.span();
    let (from, to) = (Timestamp(wanted.from).max(first), Timestamp(wanted.to).min(last));
    let mut stretch = Stretch { recording, from, to };
    if from > to || stretch.indices().is_empty() {
        return PastReply::nothing(
            wanted,
            format!("nothing was recorded then: the black box is from {first} to {last}"),
        );
    }
    let is_meant = |id: &str| wanted.devices.is_empty() || wanted.devices.iter().any(|device| device == id);
    let values = stretch.values(&wanted.fields, wanted.step);
    let series = values.series.into_iter().filter(|series| is_meant(&series.device.to_string()));
    let steps = (to.0 - from.0) / values.step_ms + 1;
    PastReply {
        from: from.0,
        to: from.0 + steps * values.step_ms,
        step: values.step_ms,
        series: series.map(|series| (series.device, series.field, series.points)).collect(),
        events: events(&stretch),
        reason: None,
    }
}

fn events(stretch: &Stretch) -> Vec<model::Event> {
    let mut events = VecDeque::new();
    stretch.recording.each_entry(stretch.from, stretch.to, |entry| {
        let LogEntry::Event(event) = entry else { return };
        if events.len() == MOST_EVENTS {
            let note = events.iter().position(|event: &model::Event| event.weight == Weight::Note);
            events.remove(note.unwrap_or(0));
        }
        events.push_back(event);
    });
    events.into()
}

/// The machine as it was at a moment.
pub fn snapshot(folder: Option<&Path>, at: Timestamp) -> PastSnapshotReply {
    let found = open(folder).and_then(|mut recording| {
        let index = recording.index_at(at);
        let snapshot = recording.snapshot(index).map_err(|error| error.to_string())?;
        match (snapshot.taken_at.0 - at.0).abs() <= NEAR_MS {
            true => Ok(snapshot),
            false => Err(format!("nothing was recorded at {at}")),
        }
    });
    match found {
        Ok(snapshot) => PastSnapshotReply { snapshot: Some(snapshot), reason: None },
        Err(reason) => PastSnapshotReply { snapshot: None, reason: Some(reason) },
    }
}

fn open(folder: Option<&Path>) -> Result<Recording, String> {
    Recording::open(folder.ok_or(NONE)?).map_err(|error| format!("{error:#}"))
}
