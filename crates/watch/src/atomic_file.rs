//! A file is replaced whole, or not at all.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Written beside it and moved there whole, so that a full disk costs nothing and no reader sees half of it. A link stays one; a device
/// or a pipe is written to.
pub fn replace_file(path: &Path, contents: &[u8]) -> io::Result<()> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if path.metadata().is_ok_and(|there| !there.is_file()) {
        return File::options().write(true).open(&path)?.write_all(contents);
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let written = File::options()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(&beside)
        .and_then(|mut file| file.write_all(contents).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&beside, &path));
    // One that another program has put there is not ours to remove.
    if written.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::AlreadyExists) {
        let _ = std::fs::remove_file(&beside);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{FileTypeExt, symlink};

    #[test]
    fn a_link_stays_one_and_its_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "before").unwrap();
        symlink(&file, &link).unwrap();
        replace_file(&link, b"after").unwrap();
        assert_eq!(fs::read_link(&link).unwrap(), file);
        assert_eq!(fs::read_to_string(&file).unwrap(), "after");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside it");
    }

    #[test]
    fn a_pipe_is_written_to_and_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        replace_file(&pipe, b"through it").unwrap();
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        assert_eq!(reader.join().unwrap(), "through it");
    }

    #[test]
    fn a_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(replace_file(folder.path(), b"x").is_err());
        assert!(folder.path().is_dir());
    }
}
