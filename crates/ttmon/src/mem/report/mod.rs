//! Reports of device memory that tt-metal's memory reporter and the ttnn visualizer write.

mod detailed;
mod groups;
mod sqlite;
mod summary;

use groups::ReportFiles;
use model::{Host, Timestamp};
use show::memory::view::{Buffer, Chip, SCHEMA, View};
use std::cmp::Reverse;
use std::fmt;
use std::path::{Path, PathBuf};
use watch::exit::{Exit, Failure};

/// What is wrong with a file, and in which line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    line: usize,
    what: String,
}

impl Broken {
    fn new(line: usize, what: &str) -> Broken {
        Broken { line, what: what.to_owned() }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// The chips of a report, what is allocated on each, and when that was, where it is known.
type Parts = (Vec<(Chip, Vec<Buffer>)>, Option<Timestamp>);

/// Reads all reports of a folder, or of one file, with so many of the largest buffers.
pub fn read(path: &Path, most: usize) -> anyhow::Result<View> {
    let files = files(path)?;
    let mut parts: Vec<(Chip, Vec<Buffer>)> = Vec::new();
    let mut taken_at = None;
    for (file, _) in files.iter().filter(|(_, form)| *form == ReportFormat::Sqlite) {
        let (chips, time): Parts = sqlite::read(file).map_err(|what| broken(file, &what))?;
        parts.extend(chips);
        taken_at = taken_at.max(time);
    }
    for files in csv(&files)? {
        parts.extend(groups::chips(&files));
    }
    let (chips, buffers): (Vec<Chip>, Vec<Vec<Buffer>>) = parts.into_iter().unzip();
    let mut buffers: Vec<Buffer> = buffers.into_iter().flatten().collect();
    buffers.sort_by_key(|buffer| (Reverse(buffer.bytes.or(buffer.bank_bytes)), buffer.address));
    let unlisted_buffers = buffers.len().saturating_sub(most) as u64;
    buffers.truncate(most);
    Ok(View {
        schema: SCHEMA,
        taken_at,
        host: Host::default(),
        report: Some(path.display().to_string()),
        chips,
        processes: Vec::new(),
        buffers,
        unlisted_buffers,
        deaths: Vec::new(),
        faults: Vec::new(),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ReportFormat {
    Summary,
    L1,
    Detailed,
    Sqlite,
}

impl ReportFormat {
    const NAMES: [(ReportFormat, &str); 4] = [
        (ReportFormat::Summary, "memory_usage_summary.csv"),
        (ReportFormat::L1, "l1_usage_summary.csv"),
        (ReportFormat::Detailed, "detailed_memory_usage.csv"),
        (ReportFormat::Sqlite, ".sqlite"),
    ];

    /// The format that follows from a file's name, and what is before it.
    fn of(path: &Path) -> Option<(ReportFormat, String)> {
        let name = path.file_name()?.to_string_lossy().into_owned();
        ReportFormat::NAMES.iter().find_map(|(form, end)| Some((*form, name.strip_suffix(end)?.to_owned())))
    }
}

fn files(path: &Path) -> anyhow::Result<Vec<(PathBuf, ReportFormat)>> {
    let refused = |message: String| Failure::error(Exit::Usage, format!("--report {}: {message}", path.display()));
    if path.is_file() {
        return match ReportFormat::of(path) {
            Some((form, _)) => Ok(vec![(path.to_owned(), form)]),
            None => Err(refused("a file of this name is no memory report".into())),
        };
    }
    let listed = std::fs::read_dir(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            Failure::error(Exit::Permission, format!("--report {}: it may not be read", path.display()))
        }
        _ => refused("is not a folder".into()),
    })?;
    let mut files: Vec<(PathBuf, ReportFormat)> = listed
        .flatten()
        .map(|entry| entry.path())
        .filter(|file| file.is_file())
        .filter_map(|file| ReportFormat::of(&file).map(|(form, _)| (file, form)))
        .collect();
    files.sort();
    match files.is_empty() {
        false => Ok(files),
        true => Err(refused(
            "there is no memory report: *memory_usage_summary.csv, *l1_usage_summary.csv, *detailed_memory_usage.csv or db.sqlite".into(),
        )),
    }
}

/// The CSV files, put together by what their names begin with.
fn csv(files: &[(PathBuf, ReportFormat)]) -> anyhow::Result<Vec<ReportFiles>> {
    let mut all: Vec<ReportFiles> = Vec::new();
    for (file, form) in files.iter().filter(|(_, form)| *form != ReportFormat::Sqlite) {
        let prefix = ReportFormat::of(file).map(|(_, prefix)| prefix).unwrap_or_default();
        let at = all.iter().position(|files| files.prefix == prefix).unwrap_or(all.len());
        if at == all.len() {
            all.push(ReportFiles { prefix, ..ReportFiles::default() });
        }
        let bytes = std::fs::read(file).map_err(|error| broken(file, &error))?;
        let text = String::from_utf8_lossy(&bytes);
        let place = &mut all[at];
        let read = match form {
            ReportFormat::Summary => summary::parse(&text).map(|groups| place.summary = groups),
            ReportFormat::L1 => summary::parse_l1(&text).map(|groups| place.l1 = groups),
            _ => detailed::parse(&text).map(|groups| place.detailed = groups),
        };
        read.map_err(|what| broken(file, &what))?;
    }
    Ok(all)
}

fn broken(file: &Path, what: &dyn fmt::Display) -> anyhow::Error {
    Failure::error(Exit::Usage, format!("{}: {what}", file.display()))
}
