//! Which segments are thinned, joined and removed, so that each level has its share.

use super::folder::{BoxFolder, Segment};
use super::rewrite::rewrite;
use super::{JOINED, LEVELS, SEGMENT_SHARE, share};
use crate::record::chunk_file::Packer;
use std::io;

/// What is to be done next.
#[derive(Debug, PartialEq, Eq)]
enum Task {
    /// Replace these by one of this step.
    Rewrite(std::ops::Range<usize>, u32),
    RemoveOldest,
}

/// Brings a folder into shape. To be called after a segment was finished. `limit` of it may have changed.
pub fn tidy(folder: &mut BoxFolder, packer: &mut Packer) -> io::Result<()> {
    folder.scan()?;
    folder.make_room(0)?;
    while let Some(task) = next(folder) {
        match task {
            Task::Rewrite(range, step) => {
                let inputs = folder.segments[range].to_vec();
                // Without it the size is kept, too: the oldest is removed earlier.
                if !rewrite(folder, packer, &inputs, step)? {
                    return Ok(());
                }
            }
            Task::RemoveOldest => {
                folder.remove_oldest()?;
            }
        }
    }
    Ok(())
}

fn next(folder: &BoxFolder) -> Option<Task> {
    let (segments, full) = (&folder.segments, share(folder.limit, SEGMENT_SHARE));
    for (at, level) in LEVELS.iter().enumerate() {
        let is_of = |segment: &&Segment| segment.is_readable && level_of(segment) == at;
        let bytes: u64 = segments.iter().filter(is_of).map(|segment| segment.bytes).sum();
        if bytes > share(folder.limit, level.share) {
            let oldest = segments.iter().position(|segment| is_of(&segment))?;
            return Some(match LEVELS.get(at + 1) {
                Some(coarser) => Task::Rewrite(oldest..oldest + 1, coarser.step),
                None => Task::RemoveOldest,
            });
        }
    }
    small_neighbours(segments, full).map(|range| {
        let step = segments[range.start].name.step;
        Task::Rewrite(range, step)
    })
}

/// The level that a segment counts for.
fn level_of(segment: &Segment) -> usize {
    LEVELS.iter().rposition(|level| level.step <= segment.name.step).unwrap_or(0)
}

/// Segments of one step that follow each other and are small together.
fn small_neighbours(segments: &[Segment], full: u64) -> Option<std::ops::Range<usize>> {
    let mut start = 0;
    while start < segments.len() {
        let (mut end, mut bytes) = (start, 0);
        while let Some(segment) = segments.get(end) {
            let is_alike = segment.is_readable && segment.name.step == segments[start].name.step;
            if !is_alike || bytes + segment.bytes > full {
                break;
            }
            (end, bytes) = (end + 1, bytes + segment.bytes);
        }
        if end - start >= JOINED {
            return Some(start..end);
        }
        start += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::segment_name::SegmentName;

    fn segment(order: u64, step: u32, bytes: u64) -> Segment {
        Segment { name: SegmentName { step, ..SegmentName::new(order) }, bytes, is_readable: true }
    }

    #[test]
    fn small_segments_that_follow_each_other_are_joined() {
        let mut segments: Vec<Segment> = (0..20).map(|order| segment(order, 10, 100)).collect();
        assert_eq!(small_neighbours(&segments, 10_000), Some(0..20));
        assert_eq!(small_neighbours(&segments, 900), Some(0..9));
        assert_eq!(small_neighbours(&segments, 700), None, "too few have room");
        segments[6].is_readable = false;
        assert_eq!(small_neighbours(&segments, 900), Some(7..16), "one of a later version stays where it is");
        segments[13].name.step = 1;
        assert_eq!(small_neighbours(&segments, 900), None);
    }
}
