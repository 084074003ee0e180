//! What is asked of a disk when something is written, in one place, so that tests can have it fail.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// What a disk may refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskStep {
    Create,
    Write,
    Sync,
    Rename,
    Remove,
}

/// Makes a file that was not there. Only its owner may read it.
pub fn create(path: &Path) -> io::Result<File> {
    allow(DiskStep::Create, 0)?;
    File::options().write(true).read(true).create_new(true).mode(0o600).open(path)
}

/// Writes all of it at a place. After an error, a part of it may be there.
pub fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let allowed = allow(DiskStep::Write, bytes.len())?;
    file.write_all_at(&bytes[..allowed], offset)?;
    if allowed < bytes.len() {
        return Err(io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error()));
    }
    Ok(())
}

/// Waits until what was written is on the disk.
pub fn sync(file: &File) -> io::Result<()> {
    allow(DiskStep::Sync, 0)?;
    file.sync_data()
}

pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    allow(DiskStep::Rename, 0)?;
    std::fs::rename(from, to)
}

/// Removes a file. One that is not there is no error.
pub fn remove(path: &Path) -> io::Result<()> {
    allow(DiskStep::Remove, 0)?;
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "tests refuse")]
fn allow(_: DiskStep, bytes: usize) -> io::Result<usize> {
    Ok(bytes)
}

#[cfg(test)]
pub use failing::{allow, fail};

#[cfg(test)]
mod failing {
    use super::DiskStep;
    use std::cell::RefCell;
    use std::io;

    type Refuse = Box<dyn FnMut(DiskStep, usize) -> io::Result<usize>>;

    thread_local! {
        static REFUSE: RefCell<Option<Refuse>> = const { RefCell::new(None) };
    }

    /// From now on this thread's disk does what the function says: it fails, or writes so many bytes.
    pub fn fail(refuse: impl FnMut(DiskStep, usize) -> io::Result<usize> + 'static) {
        REFUSE.with_borrow_mut(|kept| *kept = Some(Box::new(refuse)));
    }

    pub fn allow(step: DiskStep, bytes: usize) -> io::Result<usize> {
        REFUSE.with_borrow_mut(|refuse| refuse.as_mut().map_or(Ok(bytes), |refuse| refuse(step, bytes)))
    }
}
