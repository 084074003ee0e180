//! Writes files so that whoever opens one sees a whole value: the old one or the new one.
//!
//! A new value is written to a hidden file, which then changes places with the old one. The old file is kept to be
//! written again: ext4 takes long to make a file where thousands were removed in the last minutes. It rests before, for
//! the sake of those who opened it and have not read it yet.

use super::files::File;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::collections::{HashMap, VecDeque};
use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Remembers what it wrote, and writes only what is new.
pub(crate) struct Writer {
    root: PathBuf,
    written: HashMap<String, Written>,
    /// Hidden files so far.
    hidden: u64,
}

struct Written {
    bytes: Vec<u8>,
    /// Files that had this place, longest ago first.
    spares: VecDeque<Spare>,
}

struct Spare {
    path: PathBuf,
    since: Instant,
}

impl Writer {
    pub fn new(root: &Path) -> io::Result<Writer> {
        fs::create_dir_all(root.join(HIDDEN))?;
        Ok(Writer { root: root.into(), written: HashMap::new(), hidden: 0 })
    }

    pub fn folder(&self, path: &str) -> io::Result<()> {
        fs::create_dir_all(self.root.join(path))
    }

    pub fn link(&self, path: &str, target: &str) -> io::Result<()> {
        let path = self.root.join(path);
        if fs::read_link(&path).is_ok_and(|there| there == Path::new(target)) {
            return Ok(());
        }
        path.parent().map(fs::create_dir_all).transpose()?;
        symlink(target, path)
    }

    pub fn file(&mut self, file: &File) -> io::Result<()> {
        let path = self.root.join(&file.path);
        let Some(written) = self.written.get_mut(&file.path) else {
            path.parent().map(fs::create_dir_all).transpose()?;
            let hidden = write(&mut self.hidden, &self.root, None, file)?;
            fs::rename(hidden, path)?;
            let written = Written { bytes: file.bytes.clone(), spares: VecDeque::new() };
            self.written.insert(file.path.clone(), written);
            return Ok(());
        };
        if written.bytes == file.bytes {
            return Ok(());
        }
        let has_rested = written.spares.front().is_some_and(|spare| spare.since.elapsed() >= REST);
        let rested = has_rested.then(|| written.spares.pop_front()).flatten();
        let hidden = write(&mut self.hidden, &self.root, rested.map(|spare| spare.path), file)?;
        // When a file takes the place of another by a plain rename, ext4 sends it to the disk first.
        match renameat_with(CWD, &hidden, CWD, &path, RenameFlags::EXCHANGE) {
            Ok(()) => written.spares.push_back(Spare { path: hidden, since: Instant::now() }),
            // Not every filesystem can let two files change places.
            Err(_) => fs::rename(&hidden, &path)?,
        }
        written.bytes.clone_from(&file.bytes);
        Ok(())
    }
}

/// On the same filesystem, and where nobody looks for a device.
const HIDDEN: &str = ".next";

/// Longer than anyone is between opening and reading a file.
const REST: Duration = Duration::from_millis(300);

/// Writes a hidden file, a new one if there is none to be used again.
fn write(count: &mut u64, root: &Path, rested: Option<PathBuf>, file: &File) -> io::Result<PathBuf> {
    let path = match rested {
        Some(path) => {
            fs::set_permissions(&path, Permissions::from_mode(0o600))?;
            path
        }
        None => {
            *count += 1;
            root.join(HIDDEN).join(count.to_string())
        }
    };
    let hidden = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path)?;
    hidden.write_all_at(&file.bytes, 0)?;
    hidden.set_len(file.bytes.len() as u64)?;
    hidden.set_permissions(Permissions::from_mode(file.mode))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_used_again_holds_the_new_value_only() {
        let root = tempfile::tempdir().unwrap();
        let mut writer = Writer::new(root.path()).unwrap();
        let mut put = |text: &str| {
            writer.file(&File { path: "sys/value".into(), mode: 0o444, bytes: text.into() }).unwrap();
            let path = root.path().join("sys/value");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o444);
            fs::read_dir(root.path().join(HIDDEN)).unwrap().count()
        };
        put("1000000\n");
        assert_eq!(put("1000001\n"), 1);
        assert_eq!(put("1000002\n"), 2, "the first is too fresh to be used again");
        std::thread::sleep(REST);
        assert_eq!(put("0\n"), 2);
        assert_eq!(put("0\n"), 2);
    }
}
