//! A file is replaced whole, or not at all.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Written beside it and moved there whole, so that a full disk costs nothing and no reader sees half of it.
pub fn replace_file(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let written = File::options()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(&beside)
        .and_then(|mut file| file.write_all(contents).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&beside, path));
    // One that another program has put there is not ours to remove.
    if written.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::AlreadyExists) {
        let _ = std::fs::remove_file(&beside);
    }
    written
}
