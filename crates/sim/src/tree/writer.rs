//! Writes files so that whoever reads one sees a whole value: the old one or the new one.
//!
//! A reader may keep a file open, as it may in sysfs. So a new value goes into the old one's file, with one write of what is
//! short against a page. A value that is shorter is padded with newlines first, then the file is cut. Only a reader on another
//! processor in the few nanoseconds of the copy itself could see parts of both.

use super::files::File;
use std::collections::HashMap;
use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Remembers what it wrote, and writes only what is new.
pub(crate) struct TreeWriter {
    root: PathBuf,
    written: HashMap<String, Vec<u8>>,
}

impl TreeWriter {
    pub fn new(root: &Path) -> io::Result<TreeWriter> {
        fs::create_dir_all(root)?;
        Ok(TreeWriter { root: root.into(), written: HashMap::new() })
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
        let path = self.root.join(&file.path);
        match write_over(&path, file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                path.parent().map(fs::create_dir_all).transpose()?;
                create(&self.root, &path, file)?;
            }
            result => result?,
        }
        self.written.insert(file.path.clone(), file.bytes.clone());
        Ok(())
    }
}

/// Writes into the file that is there.
fn write_over(path: &Path, file: &File) -> io::Result<()> {
    let open = || OpenOptions::new().write(true).open(path);
    let there = open().or_else(|error| {
        if error.kind() != io::ErrorKind::PermissionDenied {
            return Err(error);
        }
        // Not even its owner may write to most files, unless the owner is root.
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        let opened = open();
        fs::set_permissions(path, Permissions::from_mode(file.mode))?;
        opened
    })?;
    let length = there.metadata()?.len() as usize;
    let padding = length.saturating_sub(file.bytes.len());
    if padding == 0 {
        return there.write_all_at(&file.bytes, 0);
    }
    let mut bytes = file.bytes.clone();
    bytes.resize(length, b'\n');
    there.write_all_at(&bytes, 0)?;
    there.set_len(file.bytes.len() as u64)
}

/// Makes a new file, which appears with its value.
fn create(root: &Path, path: &Path, file: &File) -> io::Result<()> {
    let hidden = root.join(HIDDEN);
    let new = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&hidden)?;
    new.write_all_at(&file.bytes, 0)?;
    new.set_permissions(Permissions::from_mode(file.mode))?;
    fs::rename(hidden, path)
}

/// On the same filesystem, and where no reader looks for a device.
const HIDDEN: &str = ".next";

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn file(text: &str) -> File {
        File { path: "sys/value".into(), mode: 0o444, bytes: text.into() }
    }

    #[test]
    fn a_value_goes_into_the_file_of_the_one_before() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("sys/value");
        let put = |text: &str, writer: &mut TreeWriter| {
            writer.file(&file(text)).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            let metadata = fs::metadata(&path).unwrap();
            assert_eq!(metadata.permissions().mode() & 0o777, 0o444);
            metadata.ino()
        };
        let mut writer = TreeWriter::new(root.path()).unwrap();
        let first = put("1000000\n", &mut writer);
        for text in ["1000001\n", "0\n", "0\n", "", "12\n13\n"] {
            assert_eq!(put(text, &mut writer), first, "{text:?}");
        }
        assert_eq!(put("another writer\n", &mut TreeWriter::new(root.path()).unwrap()), first);
    }

    #[test]
    fn a_reader_who_keeps_the_file_open_sees_whole_values_only() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let root = tempfile::tempdir().unwrap();
        let mut writer = TreeWriter::new(root.path()).unwrap();
        let texts = ["7\n", "55555\n", "333\n", "4444\n"];
        writer.file(&file(texts[0])).unwrap();
        let open = fs::File::open(root.path().join("sys/value")).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for text in texts.iter().cycle().take(4000) {
                    writer.file(&file(text)).unwrap();
                }
                done.store(true, Ordering::Relaxed);
            });
            while !done.load(Ordering::Relaxed) {
                let mut buffer = [0; 64];
                let length = open.read_at(&mut buffer, 0).unwrap();
                // Without its newline it is not whole yet, and read again.
                let Some(end) = buffer[..length].iter().position(|&b| b == b'\n') else { continue };
                let line = std::str::from_utf8(&buffer[..end]).unwrap();
                assert!(line.bytes().all(|b| b == line.as_bytes()[0]), "{line:?}");
            }
        });
    }
}
