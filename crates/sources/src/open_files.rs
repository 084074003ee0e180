//! Files that stay open between samples.
//!
//! Of the three system calls that a small file costs, opening and closing are the dear ones. A file that is read a second
//! time will be read a third time: from then on it stays open and one `pread` from its start is enough, for which sysfs and
//! procfs make a new text. A file that is read once is not kept.

use rustix::fd::OwnedFd;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The files of one folder, by name. A folder has a dozen of interest, so they are looked for one after the other.
pub(crate) struct OpenFiles(Option<Mutex<Files>>);

impl Default for OpenFiles {
    fn default() -> OpenFiles {
        OpenFiles(Some(Mutex::default()))
    }
}

#[derive(Default)]
struct Files {
    all: Vec<Entry>,
    /// Where the last one was found: most of the time they are read in the same order.
    last: usize,
}

struct Entry {
    name: Box<str>,
    /// Where the name was that it was last looked for by: most are written in the program, and always the same.
    asked_at: usize,
    state: CachedFile,
    reads: usize,
}

#[derive(Clone)]
pub(crate) enum CachedFile {
    /// Nothing that would spare opening it.
    Unknown,
    /// It is open, to be read from its start.
    Open(Arc<OwnedFd>),
    /// There was none the last time.
    Missing,
}

/// After so many reads a file is opened again: another may have taken its name. On a real machine none does.
const REOPEN_AFTER: usize = 100;
/// After so many reads a file that was missing is looked for again. Those of sysfs come with their folder or never.
const RETRY_MISSING_AFTER: usize = 10;

impl Entry {
    fn new(name: &str, reads: usize) -> Entry {
        Entry { name: name.into(), asked_at: name.as_ptr() as usize, state: CachedFile::Unknown, reads }
    }
}

impl Files {
    fn find(&mut self, name: &str) -> Option<&mut Entry> {
        let (next, len, asked_at) = (self.last + 1, self.all.len(), name.as_ptr() as usize);
        let places = || (next..len).chain(0..next.min(len));
        let quick = places().find(|place| self.all[*place].asked_at == asked_at);
        let is_it = |place: &usize| *self.all[*place].name == *name;
        self.last = quick.filter(is_it).or_else(|| places().find(is_it))?;
        let entry = &mut self.all[self.last];
        entry.asked_at = asked_at;
        Some(entry)
    }
}

impl OpenFiles {
    /// Where there is no next sample, nothing is kept.
    pub fn none() -> OpenFiles {
        OpenFiles(None)
    }

    pub fn are_kept(&self) -> bool {
        self.0.is_some()
    }

    /// Of a folder below this one, which is read as often.
    pub fn of_subfolder(&self) -> OpenFiles {
        OpenFiles(self.0.as_ref().map(|_| Mutex::default()))
    }

    /// What is known of a file that is about to be read. No other thread waits while it is read.
    pub fn get(&self, name: &str) -> CachedFile {
        let Some(mut files) = self.lock() else { return CachedFile::Unknown };
        let Some(entry) = files.find(name) else { return CachedFile::Unknown };
        entry.reads += 1;
        let patience = if matches!(entry.state, CachedFile::Missing) { RETRY_MISSING_AFTER } else { REOPEN_AFTER };
        if entry.reads % patience == 0 {
            entry.state = CachedFile::Unknown;
        }
        entry.state.clone()
    }

    /// Keeps a file that has been read, if it was read before and there is room.
    pub fn offer(&self, name: &str, file: OwnedFd) {
        // The kernel gives the lowest free number, so the number shows how many are in use.
        let has_room = file.as_raw_fd() < limit();
        self.set(name, || if has_room { CachedFile::Open(Arc::new(file)) } else { CachedFile::Unknown });
    }

    /// Remembers that there is no such file.
    pub fn miss(&self, name: &str) {
        self.set(name, || CachedFile::Missing);
    }

    /// Sets the state of a file that was read before, and remembers that this one was.
    fn set(&self, name: &str, state: impl FnOnce() -> CachedFile) {
        let Some(mut files) = self.lock() else { return };
        // Not all of them in the same sample.
        let reads = files.all.len();
        match files.find(name) {
            Some(entry) => entry.state = state(),
            None => files.all.push(Entry::new(name, reads)),
        }
    }

    /// Closes a file that does not answer as it should.
    pub fn forget(&self, name: &str) {
        if let Some(entry) = self.lock().as_mut().and_then(|files| files.find(name)) {
            entry.state = CachedFile::Unknown;
        }
    }

    /// Forgets that there was no such file.
    pub fn forget_missing(&self, name: &str) {
        let mut files = self.lock();
        let entry = files.as_mut().and_then(|files| files.find(name));
        if let Some(entry) = entry.filter(|entry| matches!(entry.state, CachedFile::Missing)) {
            entry.state = CachedFile::Unknown;
        }
    }

    fn lock(&self) -> Option<MutexGuard<'_, Files>> {
        self.0.as_ref().map(|files| files.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

static LIMIT: OnceLock<i32> = OnceLock::new();

/// Half of what this process may open is for what is kept; the rest is for everything else.
pub(crate) fn limit() -> i32 {
    *LIMIT.get_or_init(|| getrlimit(Resource::Nofile).current.map_or(ROOM, |limit| limit.min(ROOM as u64) as i32) / 2)
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

    fn is_open(files: &OpenFiles, name: &str) -> bool {
        matches!(files.get(name), CachedFile::Open(_))
    }

    fn is_missing(files: &OpenFiles, name: &str) -> bool {
        matches!(files.get(name), CachedFile::Missing)
    }

    #[test]
    fn what_is_read_once_is_not_kept() {
        let files = OpenFiles::default();
        files.offer("tt_aiclk", some_file());
        assert!(!is_open(&files, "tt_aiclk"));
        files.offer("tt_aiclk", some_file());
        assert!(is_open(&files, "tt_aiclk"));
        assert!(!is_open(&files, "tt_axiclk"));
        files.forget("tt_aiclk");
        assert!(!is_open(&files, "tt_aiclk"));
        files.offer("tt_aiclk", some_file());
        assert!(is_open(&files, "tt_aiclk"));
    }

    #[test]
    fn what_was_missing_twice_is_looked_for_every_tenth_time() {
        let files = OpenFiles::default();
        files.miss("fan1_input");
        assert!(!is_missing(&files, "fan1_input"));
        files.miss("fan1_input");
        let looked = (0..100)
            .filter(|_| {
                !is_missing(&files, "fan1_input") && {
                    files.miss("fan1_input");
                    true
                }
            })
            .count();
        assert_eq!(looked, 10);
        files.offer("fan1_input", some_file());
        assert!(is_open(&files, "fan1_input"));
    }

    #[test]
    fn a_file_is_opened_again_now_and_then() {
        let files = OpenFiles::default();
        (0..2).for_each(|_| files.offer("tt_aiclk", some_file()));
        let held = (0..REOPEN_AFTER).filter(|_| is_open(&files, "tt_aiclk")).count();
        assert_eq!(held, REOPEN_AFTER - 1);
        files.offer("tt_aiclk", some_file());
        assert!(is_open(&files, "tt_aiclk"));
    }

    #[test]
    fn where_there_is_no_room_nothing_is_kept() {
        let files = OpenFiles::default();
        files.offer("tt_aiclk", some_file());
        let high = rustix::io::fcntl_dupfd_cloexec(some_file(), limit());
        // The limit may be lower than its half by now only if it was changed elsewhere.
        files.offer("tt_aiclk", high.unwrap());
        assert!(!is_open(&files, "tt_aiclk"));
    }
}
