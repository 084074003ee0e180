//! Which processes hold a device.
//!
//! Reads `/proc/driver/tenstorrent/<N>/pids` (driver 2.5 and later): one decimal pid a line and open file, `0` for an
//! opener in a PID namespace that this one does not see. Older drivers have no list; then the open files of all processes
//! are searched for `/dev/tenstorrent/<N>` in `/proc/*/fd`, as far as permissions go.

use crate::device_fds::device_behind;
use crate::dir::{Dir, Root, Trouble, decimal, reason};
use rustix::io::Errno;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Who holds one device.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Holders {
    /// Processes, each once.
    pub pids: BTreeSet<u32>,
    /// Openers that cannot be named from this PID namespace.
    pub foreign: u32,
}

/// Decodes the driver's list. Lines that are no pid are counted in the second value.
pub fn parse(bytes: &[u8]) -> (Holders, usize) {
    let mut holders = Holders::default();
    let mut strange = 0;
    // A plain file that is cut while it is read ends in zeros.
    for line in bytes.split(|&b| b == b'\n' || b == 0).map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()) {
        match std::str::from_utf8(line).ok().and_then(decimal) {
            Some(0) => holders.foreign += 1,
            Some(pid) if pid <= i32::MAX as u64 => drop(holders.pids.insert(pid as u32)),
            _ => strange += 1,
        }
    }
    (holders, strange)
}

/// Opens the folder of the driver's lists. Absent when the driver keeps none.
pub(crate) fn lists(root: &Root) -> Option<Dir> {
    root.open(&root.proc_driver.join("tenstorrent")).ok()
}

/// The driver's list of the holders of one device. It stays open between samples.
#[derive(Default)]
pub(crate) struct HolderList(Option<Dir>);

impl HolderList {
    /// The holders of device `n`. `None` when the driver does not say.
    pub fn read(&mut self, lists: &Dir, n: u32, trouble: &mut Trouble) -> Option<Holders> {
        if !lists.keeps_files() {
            return listed(lists, &format!("{n}/pids"), trouble);
        }
        let mut quiet = Trouble::default();
        if let Some(list) = self.0.take() {
            if let Some(holders) = listed(&list, "pids", &mut quiet) {
                trouble.faults.append(&mut quiet.faults);
                self.0 = Some(list);
                return Some(holders);
            }
        }
        // A folder that does not answer may be that of a driver that was unloaded since.
        let name = n.to_string();
        let list = lists.open_dir(&name).map_err(|error| complain(lists, &name, error, trouble)).ok()?;
        let holders = listed(&list, "pids", trouble)?;
        self.0 = Some(list);
        Some(holders)
    }
}

thread_local! {
    /// What is read of the lists, one after the other.
    static BYTES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The holders in a list. `None` when the driver does not say.
fn listed(folder: &Dir, file: &str, trouble: &mut Trouble) -> Option<Holders> {
    let (mut holders, strange) = BYTES.with_borrow_mut(|bytes| {
        folder.read_records(file, bytes).map_err(|error| complain(folder, file, error, trouble)).ok()?;
        Some(parse(bytes))
    })?;
    holders.pids.remove(&deep::client::reader_pid());
    if strange > 0 {
        trouble.add(&folder.path_of(file), format_args!("{strange} lines are no process number"));
    }
    Some(holders)
}

fn complain(folder: &Dir, name: &str, error: Errno, trouble: &mut Trouble) {
    if error != Errno::NOENT {
        trouble.add(&folder.path_of(name), reason(error));
    }
}

/// The holders of every device, found by walking over all processes.
pub(crate) fn searched(root: &Root, trouble: &mut Trouble) -> BTreeMap<u32, Holders> {
    let mut found: BTreeMap<u32, Holders> = BTreeMap::new();
    let nodes = root.dev.join("tenstorrent");
    let mut closed = 0;
    let walked = Dir::open(Path::new("/proc"), None).and_then(|proc| {
        proc.list(|name| {
            let Some(pid) = name.to_str().and_then(decimal).and_then(|pid| u32::try_from(pid).ok()) else { return };
            let Ok(fds) = proc.open_dir(Path::new(name).join("fd")) else { return };
            let looked = fds.list(|fd| {
                if let Some(n) = device_behind(&fds, fd, &nodes) {
                    found.entry(n).or_default().pids.insert(pid);
                }
            });
            closed += usize::from(looked.is_err_and(|error| error == Errno::ACCESS));
        })
    });
    if let Err(error) = walked {
        trouble.add(Path::new("/proc"), reason(error));
    }
    if closed > 0 {
        let why = "this driver does not list who holds a device";
        trouble.add(Path::new("/proc"), format_args!("{why}, and {closed} processes may only be searched by root"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_counts_once_however_often_it_opens() {
        let (holders, strange) = parse(b"5120\n5120\n4711\n0\n0\n");
        assert_eq!(holders, Holders { pids: [4711, 5120].into(), foreign: 2 });
        assert_eq!(strange, 0);
    }

    #[test]
    fn no_holder_is_an_empty_file() {
        assert_eq!(parse(b""), (Holders::default(), 0));
    }

    #[test]
    fn what_is_no_pid_is_counted_and_left_out() {
        let (holders, strange) = parse(b"12\n-3\nabc\n99999999999999\n\xff\xfe\n");
        assert_eq!((holders.pids, strange), ([12].into(), 4));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_a_list(bytes: Vec<u8>) {
            let (holders, _) = parse(&bytes);
            assert!(holders.pids.iter().all(|&pid| pid > 0));
        }
    }
}
