//! Writes files so that whoever opens one sees a whole value: the old one or the new one.

use super::files::File;
use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Remembers what it wrote, and writes only what is new.
pub(crate) struct Writer {
    root: PathBuf,
    written: HashMap<String, Vec<u8>>,
}

impl Writer {
    pub fn new(root: &Path) -> io::Result<Writer> {
        fs::create_dir_all(root.join(NEXT))?;
        Ok(Writer { root: root.into(), written: HashMap::new() })
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
        if self.written.get(&file.path) == Some(&file.bytes) {
            return Ok(());
        }
        // A rename is the only change of a file that happens at once.
        let next = self.root.join(NEXT).join("value");
        let path = self.root.join(&file.path);
        let mut options = fs::OpenOptions::new();
        let mut made = options.write(true).create_new(true).mode(file.mode).open(&next)?;
        made.write_all(&file.bytes)?;
        // The mask of the user is not the driver's.
        made.set_permissions(fs::Permissions::from_mode(file.mode))?;
        if !self.written.contains_key(&file.path) {
            path.parent().map(fs::create_dir_all).transpose()?;
        }
        fs::rename(next, path)?;
        self.written.insert(file.path.clone(), file.bytes.clone());
        Ok(())
    }
}

/// On the same filesystem, and where nobody looks for a device.
const NEXT: &str = ".next";
