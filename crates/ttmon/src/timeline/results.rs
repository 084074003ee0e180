//! Tracks for results of other tools: a group for each of their files and chips, with lanes where slices overlap.

use super::lanes::Lanes;
use super::trace::{TraceWriter, TrackId};
use std::collections::HashMap;
use std::io;

/// A slice of another tool's result. Times are ns since 1970.
#[derive(Debug, Clone, Copy)]
pub struct ResultSlice<'a> {
    pub group: &'a str,
    pub track: &'a str,
    pub name: &'a str,
    pub start: u64,
    pub end: u64,
    /// Whether slices of its track are one inside of the other where they overlap.
    pub is_nested: bool,
}

/// The tracks that were declared.
#[derive(Default)]
pub struct ResultTracks {
    groups: HashMap<String, ResultGroup>,
}

struct ResultGroup {
    id: TrackId,
    tracks: HashMap<String, (Lanes, Vec<TrackId>)>,
}

impl ResultTracks {
    /// The track of a slice, and when it begins there.
    pub fn place<W: TraceWriter>(
        &mut self,
        writer: &mut W,
        next: &mut TrackId,
        slice: &ResultSlice<'_>,
    ) -> io::Result<(TrackId, u64)> {
        let mut take = || std::mem::replace(next, *next + 1);
        if !self.groups.contains_key(slice.group) {
            let group = ResultGroup { id: take(), tracks: HashMap::new() };
            writer.group(group.id, slice.group)?;
            self.groups.insert(slice.group.to_owned(), group);
        }
        let Some(group) = self.groups.get_mut(slice.group) else { return Err(io::ErrorKind::NotFound.into()) };
        if !group.tracks.contains_key(slice.track) {
            group.tracks.insert(slice.track.to_owned(), Default::default());
        }
        let Some((lanes, tracks)) = group.tracks.get_mut(slice.track) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let (lane, start) = if slice.is_nested { (0, slice.start) } else { lanes.place(slice.start, slice.end) };
        while tracks.len() <= lane {
            let id = take();
            writer.track(id, group.id, slice.track)?;
            tracks.push(id);
        }
        Ok((tracks[lane], start))
    }
}
