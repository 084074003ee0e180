//! The files that a holder of devices has open, and what the driver counts for each.
//!
//! Reads the links in `/proc/<pid>/fd/`, never what they lead to, and for those to `/dev/tenstorrent/<N>` the text in
//! `/proc/<pid>/fdinfo/<fd>`. Today's driver counts nothing: then a process is asked once, and one of them again after a minute.

use crate::dir::{Dir, Root, decimal};
use crate::fdinfo::{self, FdInfo};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Files come and go seldom: so long the same are read again.
const LISTED_FOR: Duration = Duration::from_secs(5);

/// So long it is believed that the driver counts nothing, and that a process may not be looked into.
const BELIEVED_FOR: Duration = Duration::from_secs(60);

/// One process's open files of devices, remembered between samples.
pub(crate) struct OpenFiles {
    /// Its folder in `/proc`, which is this process for good.
    process: Arc<Dir>,
    started: u64,
    texts: Option<Dir>,
    /// Descriptors, and the number of the device in the link.
    nodes: Vec<(String, u32)>,
    listed: Option<Instant>,
}

/// An open file of a device, as the driver tells of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OpenFile {
    pub path: PathBuf,
    /// As its link says. In a container that may be another device of the host.
    pub n: u32,
    pub info: FdInfo,
    pub read: Instant,
}

/// What came of asking a process.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Told {
    /// What the driver counts for its files.
    Files(Vec<OpenFile>),
    /// The driver counts nothing.
    Nothing,
    /// It has no such file open, or has ended meanwhile.
    Unclear,
    /// It may not be looked into.
    Closed,
}

impl OpenFiles {
    /// The files of a process that began then, with its folder in the real `/proc`.
    pub fn open(root: &Root, pid: u32, folder: Option<Arc<Dir>>, started: u64) -> Option<OpenFiles> {
        let elsewhere = || root.open(&root.proc.join(pid.to_string())).ok().map(Arc::new);
        let process = if root.is_machine() { folder } else { elsewhere() };
        Some(OpenFiles { process: process?, started, texts: None, nodes: Vec::new(), listed: None })
    }

    pub fn is_of(&self, started: u64) -> bool {
        self.started == started
    }

    /// Reads what the driver counts for each; when it counts nothing for the first, that is the answer.
    pub fn read(&mut self, nodes: &Path) -> Told {
        match self.try_read(nodes) {
            Ok(told) => told,
            Err(Errno::ACCESS | Errno::PERM) => Told::Closed,
            Err(_) => Told::Unclear,
        }
    }

    fn try_read(&mut self, nodes: &Path) -> rustix::io::Result<Told> {
        if self.listed.is_none_or(|when| when.elapsed() >= LISTED_FOR) {
            self.nodes = listed(&self.process, nodes)?;
            self.listed = Some(Instant::now());
        }
        if self.nodes.is_empty() {
            return Ok(Told::Unclear);
        }
        let texts = match self.texts.take() {
            Some(texts) => texts,
            None => self.process.open_dir("fdinfo")?,
        };
        let texts = self.texts.insert(texts);
        let mut files = Vec::new();
        let mut bytes = Vec::new();
        let mut says_nothing = false;
        for (fd, n) in &self.nodes {
            match texts.read_records(fd, &mut bytes) {
                Ok(()) => match fdinfo::parse(&bytes) {
                    Some(info) => files.push(OpenFile { path: texts.path_of(fd), n: *n, info, read: Instant::now() }),
                    None => says_nothing = true,
                },
                Err(error @ (Errno::ACCESS | Errno::PERM)) => return Err(error),
                // It was closed since.
                Err(_) => self.listed = None,
            }
            if says_nothing && files.is_empty() {
                return Ok(Told::Nothing);
            }
        }
        if says_nothing {
            // A number that was given to another file since.
            self.listed = None;
        }
        Ok(if files.is_empty() { Told::Unclear } else { Told::Files(files) })
    }
}

/// The descriptors that lead to a device.
fn listed(process: &Dir, nodes: &Path) -> rustix::io::Result<Vec<(String, u32)>> {
    let folder = process.open_dir("fd")?;
    let mut found = Vec::new();
    folder.list(|fd| {
        let link = folder.read_link(fd).unwrap_or_default();
        let number = Path::new(OsStr::from_bytes(&link)).strip_prefix(nodes).ok().and_then(Path::to_str);
        if let Some(n) = number.and_then(decimal).and_then(|n| n.try_into().ok())
            && let Some(fd) = fd.to_str()
        {
            found.push((fd.to_owned(), n));
        }
    })?;
    Ok(found)
}

/// Whom to ask, so that a driver that counts nothing costs nothing.
#[derive(Default)]
pub(crate) struct Asking {
    driver: Option<String>,
    /// Whether the driver counts, which process has told so, and when.
    answer: Option<(bool, u32, Instant)>,
    /// Those who were asked in vain, when, and whether they may not be looked into.
    in_vain: BTreeMap<u32, (Instant, bool)>,
}

impl Asking {
    /// The holders to ask this time.
    pub fn whom(&self, holders: &BTreeSet<u32>, now: Instant) -> Vec<u32> {
        // Where the driver counts, a process that has no device open just now may open one at any time.
        let counts = matches!(self.answer, Some((true, ..)));
        let in_vain = |pid: &&u32| {
            self.in_vain.get(pid).is_some_and(|(when, closed)| now - *when < BELIEVED_FOR && (*closed || !counts))
        };
        match self.answer {
            Some((false, _, when)) if now - when < BELIEVED_FOR => Vec::new(),
            Some((false, pid, _)) if holders.contains(&pid) => vec![pid],
            _ => holders.iter().filter(|pid| !in_vain(pid)).copied().collect(),
        }
    }

    /// Takes note of the answers of those who were asked.
    pub fn learn(&mut self, told: &BTreeMap<u32, Told>, holders: &BTreeSet<u32>, now: Instant) {
        self.in_vain.retain(|pid, _| holders.contains(pid));
        for (pid, told) in told {
            match told {
                Told::Files(_) | Told::Nothing => drop(self.in_vain.remove(pid)),
                Told::Unclear | Told::Closed => drop(self.in_vain.insert(*pid, (now, *told == Told::Closed))),
            }
        }
        let counted = told.iter().find(|(_, told)| matches!(told, Told::Files(_)));
        let uncounted = || told.iter().find(|(_, told)| **told == Told::Nothing);
        if let Some((pid, told)) = counted.or_else(uncounted) {
            self.answer = Some((matches!(told, Told::Files(_)), *pid, now));
        }
    }

    /// Forgets everything when there is another driver.
    pub fn driver_is(&mut self, version: Option<&str>) {
        if self.driver.as_deref() != version {
            let had_one = self.driver.is_some();
            self.driver = version.map(str::to_owned);
            if had_one {
                (self.answer, self.in_vain) = (None, BTreeMap::new());
            }
        }
    }

    /// Whether a process may not be looked into.
    pub fn is_closed(&self, pid: u32) -> bool {
        self.in_vain.get(&pid).is_some_and(|(_, closed)| *closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(told: &[(u32, Told)]) -> BTreeMap<u32, Told> {
        told.iter().cloned().collect()
    }

    #[test]
    fn a_driver_that_counts_nothing_is_asked_once_and_then_through_one_process_a_minute() {
        let (mut asking, holders) = (Asking::default(), BTreeSet::from([7, 9]));
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        asking.driver_is(Some("2.10.0"));
        assert_eq!(asking.whom(&holders, start), [7, 9]);
        asking.learn(&told(&[(7, Told::Unclear), (9, Told::Nothing)]), &holders, start);
        assert!(asking.whom(&holders, after(59)).is_empty());
        assert!(asking.whom(&BTreeSet::from([1, 2, 3]), after(59)).is_empty(), "whoever comes meanwhile");
        assert_eq!(asking.whom(&holders, after(60)), [9]);
        assert_eq!(asking.whom(&BTreeSet::from([1, 2]), after(60)), [1, 2], "that one is gone");
        asking.driver_is(Some("2.10.0"));
        assert!(asking.whom(&holders, after(59)).is_empty());
        asking.driver_is(Some("3.0.0"));
        assert_eq!(asking.whom(&holders, after(59)), [7, 9], "another driver");
    }

    #[test]
    fn a_driver_that_counts_is_asked_for_everybody_every_time() {
        let (mut asking, holders) = (Asking::default(), BTreeSet::from([7, 8, 9]));
        let now = Instant::now();
        asking.learn(&told(&[(7, Told::Files(vec![])), (8, Told::Unclear), (9, Told::Closed)]), &holders, now);
        assert_eq!(asking.whom(&holders, now), [7, 8], "but not for whom it may not be asked");
        assert!(asking.is_closed(9) && !asking.is_closed(7));
        assert_eq!(asking.whom(&holders, now + BELIEVED_FOR), [7, 8, 9]);
        asking.learn(&told(&[(7, Told::Nothing)]), &holders, now);
        assert!(asking.whom(&holders, now).is_empty(), "it was replaced by one that does not");
    }

    #[test]
    fn whoever_may_not_be_looked_into_is_not_asked_every_time() {
        let (mut asking, holders) = (Asking::default(), BTreeSet::from([7, 9]));
        let now = Instant::now();
        asking.learn(&told(&[(7, Told::Closed), (9, Told::Closed)]), &holders, now);
        assert!(asking.whom(&holders, now).is_empty());
        assert_eq!(asking.whom(&BTreeSet::from([7, 9, 11]), now), [11]);
    }
}
