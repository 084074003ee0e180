//! `--overlay`: results that tt-metal wrote during the run, aligned by the launches that are in both.

use crate::timeline::{Timeline, overlays};
use ledger::book::activity::SingleRecord;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use watch::overlay::launches::{RecordedRun, anchors};
use watch::overlay::{self, Alignment, KnownTimes, Overlay, OverlaySource};

/// The results that are wanted, and the programs that place them.
pub struct WantedResults {
    paths: Vec<PathBuf>,
    began: SystemTime,
    runs: Vec<RecordedRun>,
}

/// More programs are not remembered: 6 MiB of them.
const MOST_RUNS: usize = 1 << 18;
/// The times of files are this much behind the clock.
const COARSE: Duration = Duration::from_millis(20);

impl WantedResults {
    pub fn new(paths: Vec<PathBuf>) -> WantedResults {
        WantedResults { paths, began: SystemTime::now(), runs: Vec::new() }
    }

    /// Remembers a program of a chip. `offset` leads from the monotonic clock to ns since 1970.
    pub fn add(&mut self, chip: u32, record: &SingleRecord, offset: u64) {
        if !self.paths.is_empty() && self.runs.len() < MOST_RUNS {
            let time = |ns: u64| i64::try_from(ns.wrapping_add(offset)).unwrap_or(0);
            let (start_ns, end_ns) = (time(record.start), time(record.end));
            self.runs.push(RecordedRun { chip, runtime_id: record.runtime_id, start_ns, end_ns });
        }
    }

    /// Draws them within a stretch. Returns how each is aligned, and what went wrong.
    pub fn draw(&self, timeline: &mut Timeline, stretch: (u64, u64)) -> Vec<String> {
        let mut notes = Vec::new();
        for path in &self.paths {
            if let Err(error) = self.draw_path(path, timeline, stretch, &mut notes) {
                notes.push(format!("--overlay: {error:#}"));
            }
        }
        notes
    }

    fn draw_path(
        &self,
        path: &Path,
        timeline: &mut Timeline,
        stretch: (u64, u64),
        notes: &mut Vec<String>,
    ) -> anyhow::Result<()> {
        for file in overlay::files(path)? {
            let overlay = self.read(&file)?;
            notes.push(overlay.sentence());
            notes.extend(overlay.remarks.iter().map(|remark| format!("  {remark}")));
            notes.extend(overlays::draw(&overlay, timeline, stretch)?);
        }
        Ok(())
    }

    fn read(&self, file: &Path) -> anyhow::Result<Overlay> {
        // The launches of an earlier run of the same command have the same numbers.
        let written = std::fs::metadata(file).and_then(|metadata| metadata.modified());
        let is_earlier = written.is_ok_and(|written| written + COARSE < self.began);
        let anchors = if is_earlier { Vec::new() } else { anchors(file, &self.runs)? };
        let mut overlay = overlay::read(file, &KnownTimes { anchors, begins_at: None })?;
        match &mut overlay.alignment {
            _ if overlay.source == OverlaySource::Database => {}
            Alignment::Aligned { how, error_ns } => {
                let all = if error_ns.is_some() { "" } else { ", though not the first and the last of them" };
                *how = format!("launches of this run are in it{all}");
            }
            Alignment::Beside { why } => {
                let reason = match self.runs.is_empty() {
                    _ if is_earlier => "it was written before this run",
                    true => "this run recorded no programs",
                    false => "it has no launch on each chip that this run has exactly once",
                };
                *why = reason.into();
            }
        }
        Ok(overlay)
    }
}
