//! Files that stay open between samples.
//!
//! Of the three system calls that a small file costs, opening and closing are the dear ones. A file that is read a second
//! time will be read a third time: from then on it stays open and one `pread` from its start is enough, for which sysfs and
//! procfs make the text anew. Who reads once keeps nothing.

use rustix::fd::OwnedFd;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The files of one folder, by name. A folder has a dozen of interest, so they are looked for one after the other.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Files>);

#[derive(Default)]
struct Files {
    all: Vec<Entry>,
    /// Where the last one was found: most of the time they are read in the same order.
    last: usize,
}

struct Entry {
    name: Box<str>,
    /// Absent when it was read once.
    file: Option<Arc<OwnedFd>>,
    reads: usize,
}

/// After so many reads a file is opened anew: another may have taken its name. On a real machine none does.
const ANEW: usize = 100;

impl Files {
    fn find(&mut self, name: &str) -> Option<&mut Entry> {
        let (next, len) = (self.last + 1, self.all.len());
        let mut places = (next..len).chain(0..next.min(len));
        self.last = places.find(|place| *self.all[*place].name == *name)?;
        Some(&mut self.all[self.last])
    }
}

impl Kept {
    /// The open file, to be read from its start. Nobody else waits while it is read.
    pub fn get(&self, name: &str) -> Option<Arc<OwnedFd>> {
        let mut files = self.lock();
        let entry = files.find(name)?;
        entry.reads += 1;
        if entry.reads.is_multiple_of(ANEW) {
            entry.file = None;
        }
        entry.file.clone()
    }

    /// Keeps a file that has been read, if it was read before and there is room.
    pub fn offer(&self, name: &str, file: OwnedFd) {
        let mut files = self.lock();
        // Not all of them in the same sample.
        let reads = files.all.len();
        match files.find(name) {
            // The kernel gives the lowest free number, so the number tells how many are in use.
            Some(entry) if file.as_raw_fd() < most() => entry.file = Some(Arc::new(file)),
            Some(_) => {}
            None => files.all.push(Entry { name: name.into(), file: None, reads }),
        }
    }

    /// Closes a file that does not answer as it should.
    pub fn forget(&self, name: &str) {
        if let Some(entry) = self.lock().find(name) {
            entry.file = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

static MOST: OnceLock<i32> = OnceLock::new();

/// Half of what this process may open is for what is kept; the rest is for everything else.
fn most() -> i32 {
    *MOST.get_or_init(|| getrlimit(Resource::Nofile).current.map_or(ROOM, |limit| limit.min(ROOM as u64) as i32) / 2)
}

/// Enough for a hundred devices.
const ROOM: i32 = 8192;

/// Lets this process open as many files as 32 devices and their processes have, where it may. To be called before there are
/// other threads: the kernel takes milliseconds to make a table of open files grow that several threads share.
///
/// Children that are started later inherit the limit.
pub fn make_room_for_files() {
    let limit = getrlimit(Resource::Nofile);
    let room = limit.maximum.map_or(ROOM as u64, |maximum| maximum.min(ROOM as u64));
    if limit.current.is_some_and(|current| current < room) {
        // Where this is refused, fewer files stay open.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(room), maximum: limit.maximum });
    }
    // A descriptor with a high number makes the table grow at once.
    let _ = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), (room / 4) as i32 - 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some_file() -> OwnedFd {
        std::fs::File::open("/proc/self/stat").unwrap().into()
    }

    #[test]
    fn what_is_read_once_is_not_kept() {
        let kept = Kept::default();
        kept.offer("tt_aiclk", some_file());
        assert!(kept.get("tt_aiclk").is_none());
        kept.offer("tt_aiclk", some_file());
        assert!(kept.get("tt_aiclk").is_some());
        assert!(kept.get("tt_axiclk").is_none());
        kept.forget("tt_aiclk");
        assert!(kept.get("tt_aiclk").is_none());
        kept.offer("tt_aiclk", some_file());
        assert!(kept.get("tt_aiclk").is_some());
    }

    #[test]
    fn a_file_is_opened_anew_now_and_then() {
        let kept = Kept::default();
        (0..2).for_each(|_| kept.offer("tt_aiclk", some_file()));
        let held = (0..ANEW).filter(|_| kept.get("tt_aiclk").is_some()).count();
        assert_eq!(held, ANEW - 1);
        kept.offer("tt_aiclk", some_file());
        assert!(kept.get("tt_aiclk").is_some());
    }

    #[test]
    fn where_there_is_no_room_nothing_is_kept() {
        let kept = Kept::default();
        kept.offer("tt_aiclk", some_file());
        let high = rustix::io::fcntl_dupfd_cloexec(some_file(), most());
        // The limit may be lower than its half by now only if somebody else changed it.
        kept.offer("tt_aiclk", high.unwrap());
        assert!(kept.get("tt_aiclk").is_none());
    }
}
