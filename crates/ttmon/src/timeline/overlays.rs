//! tt-metal's own results in a timeline.

use super::{ResultSlice, Timeline};
use model::{Event, Timestamp, Weight};
use watch::overlay::{Alignment, Overlay, OverlaySource, Slice};

/// Draws what is in a stretch of time, in ns since 1970. What is not aligned begins where the stretch does. An event says how it is
/// aligned. Returns what is to be said of slices that were left out.
pub fn draw(overlay: &Overlay, timeline: &mut Timeline, (began, ended): (u64, u64)) -> anyhow::Result<Option<String>> {
    let at = Timestamp((began / 1_000_000) as i64);
    timeline.event(&Event::new(at, Weight::Note, None, overlay.sentence()))?;
    let is_aligned = matches!(overlay.alignment, Alignment::Aligned { .. });
    let file = overlay.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let beside = if is_aligned { "" } else { " (not aligned)" };
    let offset = if is_aligned { 0 } else { began };
    let (mut left_out, mut result) = (0, Ok(()));
    overlay.each(|slice: Slice<'_>| {
        let time = |ns: i64| u64::try_from(ns).ok().map(|ns| ns.saturating_add(offset));
        let (Some(start), Some(end)) = (time(slice.start_ns), time(slice.end_ns)) else {
            left_out += 1;
            return;
        };
        if result.is_err() || is_aligned && (end < began || start > ended) {
            left_out += 1;
            return;
        }
        let chip = slice.chip.map_or_else(String::new, |chip| format!(" chip {chip}"));
        let core = slice.core.map_or_else(String::new, |(x, y)| format!("core {x},{y} "));
        result = timeline.result(&ResultSlice {
            group: &format!("{file}{chip}{beside}"),
            track: &format!("{core}{}", slice.track),
            name: slice.name,
            start: start.max(began),
            end,
            is_nested: overlay.source == OverlaySource::DeviceLog,
        });
    })?;
    result?;
    let path = overlay.path.display();
    Ok(match left_out {
        0 => None,
        1 => Some(format!("{path}: 1 slice is outside of the stretch: left out")),
        count => Some(format!("{path}: {count} slices are outside of the stretch: left out")),
    })
}
