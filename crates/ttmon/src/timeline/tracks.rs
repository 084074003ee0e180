//! The tracks that a timeline has so far: of each device, of each process and its queues, and the last value of each counter.

use super::ProcessKey;
use super::lanes::Lanes;
use super::trace::{Number, TraceWriter, TrackId};
use model::DeviceId;
use std::collections::HashMap;
use std::io;

pub struct DeviceTracks {
    pub group: TrackId,
    /// What happens to it.
    pub events: TrackId,
    pub counters: Vec<Counter>,
    pub is_seen: bool,
}

pub struct ProcessTracks {
    pub name: String,
    pub group: TrackId,
    pub counters: Vec<(DeviceId, [Counter; 3])>,
    pub queues: Vec<QueueTracks>,
    /// Sums of its operations, and where the last ones end.
    pub totals: Option<(TrackId, u64)>,
    pub exits: Option<TrackId>,
    pub is_seen: bool,
}

/// One queue of a process on one device.
pub struct QueueTracks {
    pub device: String,
    pub queue: Option<u8>,
    pub lanes: Lanes,
    pub tracks: Vec<TrackId>,
    pub launches: Option<TrackId>,
}

#[derive(Default)]
pub struct Counter {
    pub track: Option<TrackId>,
    pub last: Option<Number>,
    pub at: u64,
}

impl Counter {
    pub fn put<W: TraceWriter>(
        &mut self,
        writer: &mut W,
        next: &mut TrackId,
        number: Option<Number>,
        time: u64,
        declare: impl FnOnce(TrackId, &mut W) -> io::Result<()>,
    ) -> io::Result<()> {
        let before = std::mem::replace(&mut self.last, number);
        let Some(number) = number.filter(|number| before != Some(*number)) else { return Ok(()) };
        let track = match self.track {
            Some(track) => track,
            None => {
                let id = take(next);
                declare(id, writer)?;
                *self.track.insert(id)
            }
        };
        self.at = time;
        writer.counter(track, time, number)
    }
}

/// The tracks of a process, made when it is first met.
pub fn tracks_of<'a, W: TraceWriter>(
    writer: &mut W,
    processes: &'a mut HashMap<u32, Vec<ProcessTracks>>,
    next: &mut TrackId,
    key: ProcessKey<'_>,
) -> io::Result<&'a mut ProcessTracks> {
    let same = processes.entry(key.pid).or_default();
    let at = match same.iter().position(|tracks| tracks.name == key.name) {
        Some(at) => at,
        None => {
            let group = take(next);
            let pid = format!("pid {}", key.pid);
            let label = [key.label, key.name, &pid].into_iter().find(|label| !label.is_empty());
            writer.process(group, key.pid, label.unwrap_or(&pid))?;
            same.push(ProcessTracks {
                name: key.name.to_owned(),
                group,
                counters: Vec::new(),
                queues: Vec::new(),
                totals: None,
                exits: None,
                is_seen: false,
            });
            same.len() - 1
        }
    };
    Ok(&mut same[at])
}

pub fn queue_name(queue: Option<u8>, device: &str) -> String {
    match queue {
        Some(queue) => format!("{device}, queue {queue}"),
        None => format!("{device}, queue unknown"),
    }
}

pub fn take(next: &mut TrackId) -> TrackId {
    *next += 1;
    *next - 1
}
