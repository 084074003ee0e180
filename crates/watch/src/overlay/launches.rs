//! Anchors from programs that both a recording and a file of tt-metal have: the same launch, on the host's clock and in cycles of the chip.

use super::{Anchor, Clock, OverlaySource, RawSlice, device_log, in_file, open, operations_report, source_of};
use std::collections::BTreeMap;
use std::path::Path;

/// A program that ran on a chip, as a recording has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedRun {
    /// As tt-metal counts chips.
    pub chip: u32,
    /// Of tt-metal's number of the launch, 16 bits are recorded.
    pub runtime_id: u16,
    /// Nanoseconds since 1970.
    pub start_ns: i64,
    /// End in nanoseconds since 1970.
    pub end_ns: i64,
}

/// tt-metal's number of a launch on a chip has the chip in its last bits.
const CHIP_BITS: u32 = 10;
/// More launches are not looked at.
const MOST_LAUNCHES: usize = 1 << 20;
/// Anchors of one chip that are kept: they are evenly spread.
const MOST_ANCHORS: usize = 1000;
/// How much the lengths of a launch may differ, as a part and in nanoseconds: a record is taken by the dispatcher, a zone by a core.
const ALIKE: (f64, f64) = (0.25, 10_000.0);

/// A launch, by its chip and the 16 bits of its number.
type Launch = (u32, u16);

/// The anchors that the programs of a recording give for a file; none where too few are the same.
pub fn anchors(path: &Path, runs: &[RecordedRun]) -> anyhow::Result<Vec<Anchor>> {
    let wrong = |what: String| in_file(path, what);
    let source = source_of(path).map_err(wrong)?;
    let mut cycles: BTreeMap<Launch, (u64, u64, u64)> = BTreeMap::new();
    let add = |slice: RawSlice<'_>| {
        let (Clock::Chip(chip), Some(run)) = (slice.clock, slice.run) else { return };
        let launch = (chip, (run >> CHIP_BITS) as u16);
        if cycles.len() < MOST_LAUNCHES || cycles.contains_key(&launch) {
            let span = cycles.entry(launch).or_insert((slice.start, slice.end, run));
            // Two launches whose numbers have the same 16 bits cannot be told apart: one that has no length is alike to none.
            let is_other = span.2 != run;
            *span = if is_other { (0, 0, span.2) } else { (span.0.min(slice.start), span.1.max(slice.end), run) };
        }
    };
    let gigahertz = match source {
        OverlaySource::DeviceLog => {
            let head = open(path).and_then(|from| device_log::decode(from, add)).map_err(wrong)?;
            Some(head.megahertz / 1000.0)
        }
        OverlaySource::OperationsReport => {
            open(path).and_then(|from| operations_report::decode(from, add)).map_err(wrong)?.gigahertz
        }
        OverlaySource::Database => None,
    };
    Ok(gigahertz.map(|gigahertz| matched(&cycles, &unique(runs), gigahertz)).unwrap_or_default())
}

/// The runs whose number occurs once on their chip. Replays of a trace have the same number.
fn unique(runs: &[RecordedRun]) -> Vec<RecordedRun> {
    let mut counts: BTreeMap<Launch, u32> = BTreeMap::new();
    for run in runs {
        *counts.entry((run.chip, run.runtime_id)).or_default() += 1;
    }
    runs.iter().filter(|run| counts[&(run.chip, run.runtime_id)] == 1).copied().collect()
}

fn matched(cycles: &BTreeMap<Launch, (u64, u64, u64)>, runs: &[RecordedRun], gigahertz: f64) -> Vec<Anchor> {
    // Where launches began, and where the last of them ended, by chip.
    let mut of_chips: BTreeMap<u32, (Vec<Anchor>, Option<Anchor>)> = BTreeMap::new();
    for run in runs {
        let Some((start, end, _)) = cycles.get(&(run.chip, run.runtime_id)) else { continue };
        let here = run.end_ns.saturating_sub(run.start_ns) as f64;
        let there = end.saturating_sub(*start) as f64 / gigahertz;
        let differ = (here - there).abs();
        if there <= 0.0 || differ > ALIKE.0 * here.max(there) + ALIKE.1 {
            continue;
        }
        let anchor = |ticks, unix_ns| Anchor { chip: run.chip, ticks, unix_ns, gigahertz, error_ns: differ as u64 };
        let (starts, last) = of_chips.entry(run.chip).or_default();
        starts.push(anchor(*start, run.start_ns));
        *last = (*last).filter(|last| last.ticks >= *end).or(Some(anchor(*end, run.end_ns)));
    }
    let both = |(starts, last): (Vec<Anchor>, Option<Anchor>)| {
        let mut all = in_order(starts);
        let is_behind =
            |last: &Anchor| all.last().is_some_and(|start| start.ticks < last.ticks && start.unix_ns <= last.unix_ns);
        all.extend(last.filter(is_behind));
        all
    };
    of_chips.into_values().flat_map(both).collect()
}

/// Some of them, if they are in the same order on both clocks. Otherwise they are of another run of the program.
fn in_order(mut anchors: Vec<Anchor>) -> Vec<Anchor> {
    anchors.sort_by_key(|anchor| anchor.ticks);
    if !anchors.is_sorted_by_key(|anchor| anchor.unix_ns) {
        return Vec::new();
    }
    let last = anchors.last().copied();
    let step = anchors.len().div_ceil(MOST_ANCHORS).max(1);
    let mut kept: Vec<Anchor> = anchors.into_iter().step_by(step).collect();
    kept.extend(last.filter(|last| kept.last() != Some(last)));
    kept
}

#[cfg(test)]
mod tests {
    use super::super::operations_report::tests::REPORT;
    use super::super::{Alignment, KnownTimes, read};
    use super::*;

    fn run(runtime_id: u16, start_ns: i64, length: i64) -> RecordedRun {
        RecordedRun { chip: 0, runtime_id, start_ns, end_ns: start_ns + length }
    }

    #[test]
    fn the_same_launches_align_a_report_with_a_recording() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ops_perf_results.csv");
        std::fs::write(&path, REPORT).unwrap();
        // The second began 6000 ns behind the first, where the chip counted 3000 cycles.
        let runs = [run(1, 1_000_000, 2100), run(2, 1_006_000, 450), run(3, 5, 5), run(3, 9, 5)];
        let anchors = anchors(&path, &runs).unwrap();
        let found: Vec<_> = anchors.iter().map(|anchor| (anchor.ticks, anchor.unix_ns, anchor.error_ns)).collect();
        let ended = (7_003_500, 1_006_450, 50);
        assert_eq!(found, [(7_000_000, 1_000_000, 100), (7_003_000, 1_006_000, 50), ended]);
        let overlay = read(&path, &KnownTimes { anchors, begins_at: None }).unwrap();
        assert!(matches!(overlay.alignment, Alignment::Aligned { error_ns: Some(100), .. }), "{:?}", overlay.alignment);
        let mut starts = Vec::new();
        overlay.each(|slice| starts.push(slice.start_ns)).unwrap();
        assert_eq!(starts, [1_000_000, 1_006_000]);
    }

    #[test]
    fn launches_of_another_run_align_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ops_perf_results.csv");
        std::fs::write(&path, REPORT).unwrap();
        let found = |runs: &[RecordedRun]| anchors(&path, runs).unwrap().len();
        assert_eq!(found(&[run(1, 9_000_000, 2000), run(2, 1_000_000, 500)]), 0, "in another order");
        assert_eq!(found(&[run(1, 1_000_000, 90_000), run(2, 2_000_000, 500)]), 2, "one is of another length");
        assert_eq!(found(&[run(1, 0, 2000), run(1, 9000, 2000)]), 0, "a replay");
        assert_eq!(found(&[RecordedRun { chip: 1, ..run(1, 0, 2000) }]), 0, "on another chip");
    }
}
