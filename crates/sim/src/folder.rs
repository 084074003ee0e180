//! The folder of a simulated machine, and the removal of folders whose process has ended without it.

use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const PREFIX: &str = "ttmon-sim-";
const MARK: &str = ".simulated";

/// A folder with a mark that is locked for as long as its machine lives. Removed when dropped.
pub(crate) struct MachineFolder {
    folder: TempDir,
    _lock: File,
}

impl MachineFolder {
    /// Lies where `TMPDIR` says, else in memory, as sysfs does: files are written there ten times a second.
    pub fn new() -> io::Result<MachineFolder> {
        let place = match std::env::var_os("TMPDIR") {
            None if Path::new("/dev/shm").is_dir() => PathBuf::from("/dev/shm"),
            _ => std::env::temp_dir(),
        };
        remove_abandoned(&place);
        let new = || tempfile::Builder::new().prefix(PREFIX).tempdir_in(&place);
        let folder = new().or_else(|_| tempfile::Builder::new().prefix(PREFIX).tempdir())?;
        // It appears locked, so that nobody takes it for abandoned.
        let (hidden, mark) = (folder.path().join(".new"), folder.path().join(MARK));
        let mut lock = File::create(&hidden)?;
        lock.write_all(b"made up by ttmon\n")?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        fs::rename(hidden, mark)?;
        Ok(MachineFolder { folder, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes folders of machines whose process was killed. Those of other users stay: they cannot be removed.
fn remove_abandoned(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let Ok(mark) = File::open(entry.path().join(MARK)) else { continue };
        if flock(&mark, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether a folder is that of a simulated machine.
pub fn is_simulated(root: &Path) -> bool {
    root.join(MARK).exists()
}
