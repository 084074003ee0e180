//! The files that a holder of devices has open, and what the driver counts for each.
//!
//! Reads the links in `/proc/<pid>/fd/`, never what they lead to, and for those to `/dev/tenstorrent/<N>` the text in
//! `/proc/<pid>/fdinfo/<fd>`. Today's driver counts nothing: then each process is asked once, and one of them again after a minute.

use crate::dir::{Dir, Root, decimal};
use crate::fdinfo::{self, FdInfo};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Files come and go seldom: the list of them is used this long.
const LISTED_FOR: Duration = Duration::from_secs(5);

/// After this time a driver that counted nothing is asked again, and a process that might not be read.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// One process's open files of devices, remembered between samples.
pub(crate) struct DeviceFds {
    /// Its folder in `/proc`, which never becomes that of another process.
    process: Arc<Dir>,
    started: u64,
    texts: Option<Dir>,
    /// Descriptors, and the number of the device in the link.
    nodes: Vec<(String, u32)>,
    listed: Option<Instant>,
}

/// An open file of a device, as the driver describes it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DeviceFd {
    pub path: PathBuf,
    /// As its link says. In a container that may be another device of the host.
    pub n: u32,
    pub info: FdInfo,
    pub read: Instant,
}

/// What came of asking a process.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FdinfoReply {
    /// What the driver counts for its files.
    Files(Vec<DeviceFd>),
    /// The driver counts nothing.
    NotCounted,
    /// It has no such file open, or has ended meanwhile.
    Unclear,
    /// It may not be read.
    Forbidden,
}

impl DeviceFds {
    /// The files of a process that began then, with its folder in the real `/proc`.
    pub fn open(root: &Root, pid: u32, folder: Option<Arc<Dir>>, started: u64) -> Option<DeviceFds> {
        let elsewhere = || root.open(&root.proc.join(pid.to_string())).ok().map(Arc::new);
        let process = if root.is_machine() { folder } else { elsewhere() };
        Some(DeviceFds { process: process?, started, texts: None, nodes: Vec::new(), listed: None })
    }

    pub fn is_of(&self, started: u64) -> bool {
        self.started == started
    }

    /// Reads what the driver counts for each; when it counts nothing for the first, that is the answer.
    pub fn read(&mut self, nodes: &Path) -> FdinfoReply {
        match self.try_read(nodes) {
            Ok(reply) => reply,
            Err(Errno::ACCESS | Errno::PERM) => FdinfoReply::Forbidden,
            Err(_) => FdinfoReply::Unclear,
        }
    }

    fn try_read(&mut self, nodes: &Path) -> rustix::io::Result<FdinfoReply> {
        if self.listed.is_none_or(|when| when.elapsed() >= LISTED_FOR) {
            self.nodes = listed(&self.process, nodes)?;
            self.listed = Some(Instant::now());
        }
        if self.nodes.is_empty() {
            return Ok(FdinfoReply::Unclear);
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
                    Some(info) => files.push(DeviceFd { path: texts.path_of(fd), n: *n, info, read: Instant::now() }),
                    None => says_nothing = true,
                },
                Err(error @ (Errno::ACCESS | Errno::PERM)) => return Err(error),
                // It was closed since.
                Err(_) => self.listed = None,
            }
            if says_nothing && files.is_empty() {
                return Ok(FdinfoReply::NotCounted);
            }
        }
        if says_nothing {
            // A number that was given to another file since.
            self.listed = None;
        }
        Ok(if files.is_empty() { FdinfoReply::Unclear } else { FdinfoReply::Files(files) })
    }
}

/// The devices that a process has open itself, with its folder in the real `/proc`.
pub(crate) fn open_devices(root: &Root, pid: u32, folder: Option<Arc<Dir>>) -> BTreeSet<u32> {
    let files = DeviceFds::open(root, pid, folder, 0);
    let nodes = files.and_then(|files| listed(&files.process, &root.dev.join("tenstorrent")).ok());
    nodes.into_iter().flatten().map(|(_, n)| n).collect()
}

/// The descriptors that lead to a device.
fn listed(process: &Dir, nodes: &Path) -> rustix::io::Result<Vec<(String, u32)>> {
    let folder = process.open_dir("fd")?;
    let mut found = Vec::new();
    folder.list(|fd| {
        if let (Some(n), Some(name)) = (device_behind(&folder, fd, nodes), fd.to_str()) {
            found.push((name.to_owned(), n));
        }
    })?;
    Ok(found)
}

/// The number of the device in `nodes` that a descriptor leads to, by its link alone.
pub(crate) fn device_behind(folder: &Dir, fd: &OsStr, nodes: &Path) -> Option<u32> {
    let link = folder.read_link(fd).ok()?;
    let number = Path::new(OsStr::from_bytes(&link)).strip_prefix(nodes).ok()?;
    decimal(number.to_str()?)?.try_into().ok()
}

/// Which processes to ask, so that a driver that counts nothing costs nothing.
#[derive(Default)]
pub(crate) struct FdinfoPolicy {
    driver: Option<String>,
    /// Whether the driver counts, by which process that is known, and since when.
    counts: Option<(bool, u32, Instant)>,
    /// The processes that were asked without result, when, and whether they may not be read.
    failed: BTreeMap<u32, (Instant, bool)>,
}

impl FdinfoPolicy {
    /// The holders to ask this time.
    pub fn processes_to_ask(&self, holders: &BTreeSet<u32>, now: Instant) -> Vec<u32> {
        // Where the driver counts, a process that has no device open just now may open one at any time.
        let counts = matches!(self.counts, Some((true, ..)));
        let has_failed = |pid: &&u32| {
            self.failed.get(pid).is_some_and(|(when, forbidden)| now - *when < RETRY_AFTER && (*forbidden || !counts))
        };
        match self.counts {
            Some((false, _, when)) if now - when < RETRY_AFTER => Vec::new(),
            Some((false, pid, _)) if holders.contains(&pid) => vec![pid],
            _ => holders.iter().filter(|pid| !has_failed(pid)).copied().collect(),
        }
    }

    /// Takes note of the replies.
    pub fn record(&mut self, replies: &BTreeMap<u32, FdinfoReply>, holders: &BTreeSet<u32>, now: Instant) {
        self.failed.retain(|pid, _| holders.contains(pid));
        for (pid, reply) in replies {
            if matches!(reply, FdinfoReply::Files(_) | FdinfoReply::NotCounted) {
                self.failed.remove(pid);
            } else {
                self.failed.insert(*pid, (now, *reply == FdinfoReply::Forbidden));
            }
        }
        let counted = replies.iter().find(|(_, reply)| matches!(reply, FdinfoReply::Files(_)));
        let uncounted = || replies.iter().find(|(_, reply)| **reply == FdinfoReply::NotCounted);
        if let Some((pid, reply)) = counted.or_else(uncounted) {
            self.counts = Some((matches!(reply, FdinfoReply::Files(_)), *pid, now));
        }
    }

    /// Forgets everything when there is another driver.
    pub fn set_driver(&mut self, version: Option<&str>) {
        if self.driver.as_deref() != version {
            let had_one = self.driver.is_some();
            self.driver = version.map(str::to_owned);
            if had_one {
                (self.counts, self.failed) = (None, BTreeMap::new());
            }
        }
    }

    /// Whether a process may not be read.
    pub fn is_forbidden(&self, pid: u32) -> bool {
        self.failed.get(&pid).is_some_and(|(_, forbidden)| *forbidden)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replies(replies: &[(u32, FdinfoReply)]) -> BTreeMap<u32, FdinfoReply> {
        replies.iter().cloned().collect()
    }

    #[test]
    fn a_driver_that_counts_nothing_is_asked_once_and_then_through_one_process_a_minute() {
        let (mut policy, holders) = (FdinfoPolicy::default(), BTreeSet::from([7, 9]));
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        policy.set_driver(Some("2.10.0"));
        assert_eq!(policy.processes_to_ask(&holders, start), [7, 9]);
        policy.record(&replies(&[(7, FdinfoReply::Unclear), (9, FdinfoReply::NotCounted)]), &holders, start);
        assert!(policy.processes_to_ask(&holders, after(59)).is_empty());
        assert!(
            policy.processes_to_ask(&BTreeSet::from([1, 2, 3]), after(59)).is_empty(),
            "processes that come meanwhile"
        );
        assert_eq!(policy.processes_to_ask(&holders, after(60)), [9]);
        assert_eq!(policy.processes_to_ask(&BTreeSet::from([1, 2]), after(60)), [1, 2], "that one is gone");
        policy.set_driver(Some("2.10.0"));
        assert!(policy.processes_to_ask(&holders, after(59)).is_empty());
        policy.set_driver(Some("3.0.0"));
        assert_eq!(policy.processes_to_ask(&holders, after(59)), [7, 9], "another driver");
    }

    #[test]
    fn a_driver_that_counts_is_asked_for_every_process_every_time() {
        let (mut policy, holders) = (FdinfoPolicy::default(), BTreeSet::from([7, 8, 9]));
        let now = Instant::now();
        policy.record(
            &replies(&[(7, FdinfoReply::Files(vec![])), (8, FdinfoReply::Unclear), (9, FdinfoReply::Forbidden)]),
            &holders,
            now,
        );
        assert_eq!(policy.processes_to_ask(&holders, now), [7, 8], "but not for those that may not be read");
        assert!(policy.is_forbidden(9) && !policy.is_forbidden(7));
        assert_eq!(policy.processes_to_ask(&holders, now + RETRY_AFTER), [7, 8, 9]);
        policy.record(&replies(&[(7, FdinfoReply::NotCounted)]), &holders, now);
        assert!(policy.processes_to_ask(&holders, now).is_empty(), "it was replaced by one that does not");
    }

    #[test]
    fn a_process_that_may_not_be_read_is_not_asked_every_time() {
        let (mut policy, holders) = (FdinfoPolicy::default(), BTreeSet::from([7, 9]));
        let now = Instant::now();
        policy.record(&replies(&[(7, FdinfoReply::Forbidden), (9, FdinfoReply::Forbidden)]), &holders, now);
        assert!(policy.processes_to_ask(&holders, now).is_empty());
        assert_eq!(policy.processes_to_ask(&BTreeSet::from([7, 9, 11]), now), [11]);
    }
}
