//! Reports of device memory that tt-metal's memory reporter and the ttnn visualizer write.

mod detailed;
mod groups;
mod sqlite;
mod summary;
pub mod timeline;

use groups::ReportFiles;
use model::{Snapshot, Timestamp};
use show::memory::gather;
use show::memory::view::{Buffer, Chip, MemoryTimeline, View};
use std::cmp::Reverse;
use std::fmt;
use std::path::{Path, PathBuf};
use watch::exit::{Exit, Failure};

/// What is wrong with a file, and in which line.
fn broken(line: usize, what: &str) -> String {
    format!("line {line}: {what}")
}

/// What a database has.
#[derive(Default)]
struct DatabaseReport {
    /// The chips, and what is allocated on each.
    parts: Vec<(Chip, Vec<Buffer>)>,
    /// When that was, where it is known.
    taken_at: Option<Timestamp>,
    timeline: MemoryTimeline,
}

/// Reads all reports of a folder, or of one file, with so many of the largest buffers.
pub fn read(path: &Path, most: usize) -> anyhow::Result<View> {
    let files = files(path)?;
    let mut parts: Vec<(Chip, Vec<Buffer>)> = Vec::new();
    let (mut taken_at, mut timeline) = (None, None);
    for (file, _) in files.iter().filter(|(_, form)| *form == SQLITE) {
        let report = sqlite::read(file).map_err(|what| in_file(file, what))?;
        parts.extend(report.parts);
        taken_at = taken_at.max(report.taken_at);
        // Of several databases, the devices are not the same.
        timeline = timeline.or(Some(report.timeline).filter(|timeline| !timeline.steps.is_empty()));
    }
    for files in csv(&files)? {
        parts.extend(groups::chips(&files));
    }
    let (chips, buffers): (Vec<Chip>, Vec<Vec<Buffer>>) = parts.into_iter().unzip();
    let mut buffers: Vec<Buffer> = buffers.into_iter().flatten().collect();
    buffers.sort_by_key(|buffer| (Reverse(buffer.bytes.or(buffer.bank_bytes)), buffer.address));
    let unlisted_buffers = buffers.len().saturating_sub(most) as u64;
    buffers.truncate(most);
    let report = Some(path.display().to_string());
    let view = gather::view(&Snapshot::empty(), buffers, Vec::new());
    Ok(View { taken_at, report, chips, unlisted_buffers, timeline, ..view })
}

// What the names of reports end with, which says what is in them.
const SUMMARY: &str = "memory_usage_summary.csv";
const L1: &str = "l1_usage_summary.csv";
const DETAILED: &str = "detailed_memory_usage.csv";
const SQLITE: &str = ".sqlite";

/// What a file's name ends with, and what is before it. None for a file that is no report.
fn format_of(path: &Path) -> Option<(&'static str, String)> {
    let name = path.file_name()?.to_string_lossy();
    [SUMMARY, L1, DETAILED, SQLITE].into_iter().find_map(|end| Some((end, name.strip_suffix(end)?.to_owned())))
}

fn files(path: &Path) -> anyhow::Result<Vec<(PathBuf, &'static str)>> {
    let refused = |exit, why: &str| Failure::error(exit, format!("--report {}: {why}", path.display()));
    if path.is_file() {
        return match format_of(path) {
            Some((form, _)) => Ok(vec![(path.to_owned(), form)]),
            None => Err(refused(Exit::Usage, "a file of this name is no memory report")),
        };
    }
    let listed = std::fs::read_dir(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => refused(Exit::Permission, "it may not be read"),
        _ => refused(Exit::Usage, "is not a folder"),
    })?;
    let mut files: Vec<(PathBuf, &'static str)> = listed
        .flatten()
        .map(|entry| entry.path())
        .filter(|file| file.is_file())
        .filter_map(|file| format_of(&file).map(|(form, _)| (file, form)))
        .collect();
    files.sort();
    if files.is_empty() {
        let why = format!("there is no memory report: *{SUMMARY}, *{L1}, *{DETAILED} or db.sqlite");
        return Err(refused(Exit::Usage, &why));
    }
    Ok(files)
}

/// The CSV files, put together by what their names begin with.
fn csv(files: &[(PathBuf, &'static str)]) -> anyhow::Result<Vec<ReportFiles>> {
    let mut all: Vec<ReportFiles> = Vec::new();
    for (file, form) in files.iter().filter(|(_, form)| *form != SQLITE) {
        let prefix = format_of(file).map(|(_, prefix)| prefix).unwrap_or_default();
        let at = all.iter().position(|files| files.prefix == prefix).unwrap_or(all.len());
        if at == all.len() {
            all.push(ReportFiles { prefix, ..ReportFiles::default() });
        }
        let bytes = std::fs::read(file).map_err(|error| in_file(file, error))?;
        let text = String::from_utf8_lossy(&bytes);
        let place = &mut all[at];
        let read = match *form {
            SUMMARY => summary::parse(&text).map(|groups| place.summary = groups),
            L1 => summary::parse_l1(&text).map(|groups| place.l1 = groups),
            _ => detailed::parse(&text).map(|groups| place.detailed = groups),
        };
        read.map_err(|what| in_file(file, what))?;
    }
    Ok(all)
}

fn in_file(file: &Path, what: impl fmt::Display) -> anyhow::Error {
    Failure::error(Exit::Usage, format!("{}: {what}", file.display()))
}
