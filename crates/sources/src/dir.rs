//! How files are read: every read of a source goes through [`Dir`], and tests can put faults in its way.
//!
//! A directory is opened once and its files relative to it, which spares the kernel the long walk through sysfs. What is read
//! again and again stays open ([`OpenFiles`]).

use crate::open_files::{CachedFile, OpenFiles};
use model::Fault;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Called with the path before each read. Returns the error to answer with, sleeps to be slow, never returns to hang.
pub type Inject = Arc<dyn Fn(&Path) -> Option<io::Error> + Send + Sync>;

/// Where a machine's files are: the real ones, or a folder that holds `sys`, `proc/driver` and `dev`.
#[derive(Clone)]
pub struct Root {
    /// What all these folders are below.
    pub(crate) top: PathBuf,
    pub(crate) sys: PathBuf,
    /// Where the open files of processes are, and maybe their cgroups. All else about them comes from the real `/proc`.
    pub(crate) proc: PathBuf,
    pub(crate) proc_driver: PathBuf,
    pub(crate) dev: PathBuf,
    pub(crate) inject: Option<Inject>,
    /// Whether files stay open for the next sample.
    pub(crate) keeps_files: bool,
}

impl Root {
    /// This machine.
    pub fn machine() -> Root {
        Root::under(Path::new("/"))
    }

    /// The machine whose files lie below a folder. Process details come from the real `/proc`, all but what the driver counts for
    /// their open files, and their cgroups where the folder has those.
    pub fn under(folder: &Path) -> Root {
        let (sys, proc, dev) = (folder.join("sys"), folder.join("proc"), folder.join("dev"));
        Root {
            top: folder.to_owned(),
            sys,
            proc_driver: proc.join("driver"),
            proc,
            dev,
            inject: None,
            keeps_files: true,
        }
    }

    /// The same with faults in the way of reads.
    pub fn with_faults(self, inject: Inject) -> Root {
        Root { inject: Some(inject), ..self }
    }

    /// Whether these are the real files.
    pub(crate) fn is_machine(&self) -> bool {
        self.sys == Path::new("/sys")
    }

    pub(crate) fn open(&self, path: &Path) -> rustix::io::Result<Dir> {
        let mut folder = Dir::open(path, self.inject.clone())?;
        if !self.keeps_files {
            folder.open_files = OpenFiles::none();
        }
        Ok(folder)
    }
}

/// The one place where a file is opened to be read. Never blocks on a FIFO in its place, never follows
/// a link elsewhere, and leaves no trace, where the file is ours or everything is.
fn open_file(folder: impl AsFd, name: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    if TRACELESS.load(Relaxed) {
        match rustix::fs::openat(&folder, name, flags | OFlags::NOATIME, Mode::empty()) {
            Err(Errno::PERM) => TRACELESS.store(false, Relaxed),
            answer => return answer,
        }
    }
    rustix::fs::openat(&folder, name, flags, Mode::empty())
}

/// Whether the time of access may be left as it is. If it was refused once, it will be for the next file too.
static TRACELESS: AtomicBool = AtomicBool::new(true);

/// The longest file that is read.
const MOST: usize = 16 << 20;

/// Fills a buffer until a read gives less than `least`, which is then the end of the file.
fn fill(
    into: &mut Vec<u8>,
    least: usize,
    read: impl Fn(&mut Vec<u8>) -> rustix::io::Result<usize>,
) -> rustix::io::Result<()> {
    into.clear();
    while into.len() < MOST {
        into.reserve(4096);
        if rustix::io::retry_on_intr(|| read(into))? < least {
            break;
        }
    }
    Ok(())
}

/// Reads a file from its start to its end, of which no record is longer than half a page: then less than that is the end.
fn read_again(file: &OwnedFd, into: &mut Vec<u8>) -> rustix::io::Result<()> {
    fill(into, 2048, |into| {
        let offset = into.len() as u64;
        rustix::io::pread(file, rustix::buffer::spare_capacity(into), offset)
    })
}

pub(crate) struct Dir {
    fd: OwnedFd,
    path: PathBuf,
    inject: Option<Inject>,
    open_files: OpenFiles,
}

impl fmt::Debug for Dir {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.path.fmt(f)
    }
}

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Dir {
    pub fn open(path: &Path, inject: Option<Inject>) -> rustix::io::Result<Dir> {
        let fd = rustix::fs::open(path, DIRECTORY, Mode::empty())?;
        Ok(Dir { fd, path: path.to_owned(), inject, open_files: OpenFiles::default() })
    }

    pub fn open_dir(&self, name: impl AsRef<OsStr>) -> rustix::io::Result<Dir> {
        self.open_with(name.as_ref(), DIRECTORY)
    }

    fn open_with(&self, name: &OsStr, flags: OFlags) -> rustix::io::Result<Dir> {
        let fd = rustix::fs::openat(&self.fd, name, flags, Mode::empty())?;
        Ok(Dir {
            fd,
            path: self.path.join(name),
            inject: self.inject.clone(),
            open_files: self.open_files.of_subfolder(),
        })
    }

    /// Whether files stay open for the next sample.
    pub fn keeps_files(&self) -> bool {
        self.open_files.are_kept()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn path_of(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.path.join(name.as_ref())
    }

    /// When the folder's list was last changed.
    pub fn changed(&self) -> Option<SystemTime> {
        let stat = rustix::fs::fstat(&self.fd).ok()?;
        UNIX_EPOCH.checked_add(Duration::new(stat.st_mtime.try_into().ok()?, stat.st_mtime_nsec.try_into().ok()?))
    }

    /// Whether the folder was removed. Sysfs never says so, its open files do; those of a simulated machine do not.
    pub fn is_removed(&self) -> bool {
        rustix::fs::fstat(&self.fd).is_ok_and(|stat| stat.st_nlink == 0)
    }

    /// Asks the fault injection, before each read.
    pub fn ask(&self, name: &Path) -> rustix::io::Result<()> {
        let error = self.inject.as_ref().and_then(|inject| inject(&self.path.join(name)));
        error.map_or(Ok(()), |error| Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)))
    }

    /// Opens a file for reading.
    pub fn open_file(&self, name: impl AsRef<Path>) -> rustix::io::Result<OwnedFd> {
        self.ask(name.as_ref())?;
        open_file(&self.fd, name.as_ref())
    }

    /// Opens what a link of `/proc/<pid>/fd` leads to, if it is a file that is `wanted`. Nothing else is opened: a device would
    /// notice.
    pub fn open_linked(&self, name: &OsStr, wanted: impl Fn(&rustix::fs::Stat) -> bool) -> rustix::io::Result<OwnedFd> {
        // A path is not an opened file. What it points to stays the same, whatever the process does meanwhile.
        let path = rustix::fs::openat(&self.fd, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let stat = rustix::fs::fstat(&path)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || !wanted(&stat) {
            return Err(Errno::INVAL);
        }
        let link = format!("/proc/self/fd/{}", path.as_raw_fd());
        rustix::fs::open(link, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())
    }

    /// Reads the start of a file into the buffer, with one system call: an attribute arrives whole.
    pub fn read_start<'a>(&self, name: &str, buffer: &'a mut [u8]) -> rustix::io::Result<&'a [u8]> {
        self.ask(name.as_ref())?;
        match self.open_files.get(name) {
            CachedFile::Open(file) => match rustix::io::retry_on_intr(|| rustix::io::pread(&*file, &mut *buffer, 0)) {
                Ok(length) if buffer[..length].contains(&b'\n') => return Ok(&buffer[..length]),
                // That is the driver's answer during a reset. All other errors may be those of a file that was removed.
                Err(Errno::NODATA) => return Err(Errno::NODATA),
                _ => self.open_files.forget(name),
            },
            CachedFile::Missing => return Err(Errno::NOENT),
            CachedFile::Unknown => {}
        }
        let file = open_file(&self.fd, name.as_ref()).inspect_err(|error| {
            if *error == Errno::NOENT {
                self.open_files.miss(name);
            }
        })?;
        let length = rustix::io::retry_on_intr(|| rustix::io::read(&file, &mut *buffer))?;
        self.open_files.offer(name, file);
        Ok(&buffer[..length])
    }

    /// Looks for a file at its next read, even if it was missing before.
    pub fn look_again(&self, name: &str) {
        self.open_files.forget_missing(name);
    }

    /// Reads a whole file of short records, up to 16 MiB.
    pub fn read_records(&self, name: &str, into: &mut Vec<u8>) -> rustix::io::Result<()> {
        self.ask(name.as_ref())?;
        if let CachedFile::Open(file) = self.open_files.get(name) {
            match read_again(&file, into) {
                Ok(()) => return Ok(()),
                Err(_) => self.open_files.forget(name),
            }
        }
        let file = open_file(&self.fd, name.as_ref())?;
        read_again(&file, into)?;
        self.open_files.offer(name, file);
        Ok(())
    }

    /// Reads a whole file, up to 16 MiB. Of files that the kernel makes up record by record, a short read may not be the last one.
    pub fn read_all(&self, name: &str, into: &mut Vec<u8>) -> rustix::io::Result<()> {
        let file = self.open_file(name)?;
        fill(into, 1, |into| rustix::io::read(&file, rustix::buffer::spare_capacity(into)))
    }

    pub fn read_link(&self, name: impl AsRef<OsStr>) -> rustix::io::Result<Vec<u8>> {
        rustix::fs::readlinkat(&self.fd, name.as_ref(), Vec::with_capacity(256)).map(|link| link.into_bytes())
    }

    pub fn stat(&self, name: impl AsRef<OsStr>) -> rustix::io::Result<rustix::fs::Stat> {
        rustix::fs::statat(&self.fd, name.as_ref(), AtFlags::empty())
    }

    /// Whose an entry is, whatever it leads to.
    pub fn owner(&self, name: impl AsRef<OsStr>) -> rustix::io::Result<u32> {
        rustix::fs::statat(&self.fd, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW).map(|stat| stat.st_uid)
    }

    /// Calls `each` with the name of every entry, in no order.
    pub fn list(&self, mut each: impl FnMut(&OsStr)) -> rustix::io::Result<()> {
        self.list_numbered(|name, _| each(name))
    }

    /// The same with the numbers of the entries' inodes.
    pub fn list_numbered(&self, each: impl FnMut(&OsStr, u64)) -> rustix::io::Result<()> {
        list(self.open_to_list(".")?.fd, false, each)
    }

    /// The same for a folder of sysfs.
    pub fn list_sysfs(&self, each: impl FnMut(&OsStr, u64)) -> rustix::io::Result<()> {
        self.open_to_list(".")?.list_opened(each)
    }

    /// Opens a folder of sysfs below this one for [`Dir::list_opened`].
    pub fn open_to_list(&self, folder: &str) -> rustix::io::Result<Dir> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        self.open_with(folder.as_ref(), flags)
    }

    /// Lists a folder of sysfs that was opened for that, once.
    pub fn list_opened(&self, each: impl FnMut(&OsStr, u64)) -> rustix::io::Result<()> {
        list(&self.fd, true, each)
    }
}

/// So many bytes of a list of files are read with one system call.
const LISTED_AT_ONCE: usize = 8192;

/// Calls `each` with every entry and its inode. Sysfs gives all entries at once where there is room for them, so that it need not be
/// asked for the end.
fn list(folder: impl AsFd, is_sysfs: bool, mut each: impl FnMut(&OsStr, u64)) -> rustix::io::Result<()> {
    let mut buffer = [MaybeUninit::uninit(); LISTED_AT_ONCE];
    let mut entries = RawDir::new(folder, &mut buffer);
    let mut length = 0;
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        // With the name come inode, offset, length and type, and the sum is rounded up.
        length += name.len() + 27;
        if !matches!(name, b"." | b"..") {
            each(OsStr::from_bytes(name), entry.ino());
        }
        if is_sysfs && entries.is_buffer_empty() && length < LISTED_AT_ONCE / 2 {
            break;
        }
    }
    Ok(())
}

/// What went wrong while a device was read, and what that says about its state.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    pub faults: Vec<Fault>,
    /// Attributes that gave a value.
    pub answers: u32,
    /// Attributes that answered `ENODATA`, as all do during a reset.
    pub no_data: u32,
    /// The device was removed while we read.
    pub removed: bool,
    /// Readings of the chip that gave a value.
    pub values: u32,
    /// Readings that were all-ones, which is what the bus answers for a chip that does not respond.
    pub all_ones: u32,
    /// The PCI config space was all-ones, too: nothing answers on the bus.
    pub bus_is_dead: bool,
}

impl Trouble {
    pub fn add(&mut self, path: &Path, reason: impl ToString) {
        self.faults.push(Fault::new(path.to_string_lossy(), reason));
    }

    /// Notes a failed read. A file that is not there is an attribute that this driver or firmware does not have.
    pub fn note(&mut self, path: &Path, error: Errno) {
        match error {
            Errno::NOENT => {}
            Errno::NODATA => self.no_data += 1,
            Errno::NODEV => self.removed = true,
            error => self.add(path, reason(error)),
        }
    }
}

/// An error in words, with what to do about it.
pub(crate) fn reason(error: Errno) -> String {
    match error {
        Errno::ACCESS | Errno::PERM => "permission denied: run as the owner or as root".into(),
        error => io::Error::from(error).to_string(),
    }
}

impl Dir {
    /// An attribute's text without the final newline.
    pub fn text<'a>(&self, name: &str, buffer: &'a mut [u8; 256], trouble: &mut Trouble) -> Option<&'a str> {
        let bytes = self.read_start(name, buffer).map_err(|error| trouble.note(&self.path_of(name), error)).ok()?;
        // A plain file that is cut while it is read ends in zeros.
        let zeros = bytes.iter().rev().take_while(|&&b| b == 0).count();
        let text = std::str::from_utf8(&bytes[..bytes.len() - zeros])
            .ok()
            .filter(|text| text.len() < 256)
            .map(str::trim_ascii);
        match text {
            Some(text) if !text.is_empty() && text.bytes().all(|b| (b' '..=b'~').contains(&b)) => {
                trouble.answers += 1;
                Some(text)
            }
            Some("") => None,
            _ => {
                trouble.add(&self.path_of(name), "not a line of text");
                None
            }
        }
    }

    /// A decimal attribute of at most this value.
    pub fn number(&self, name: &str, most: u64, trouble: &mut Trouble) -> Option<u64> {
        let mut buffer = [0; 256];
        let text = self.text(name, &mut buffer, trouble)?;
        match decimal(text) {
            Some(value) if value <= most => return Some(value),
            Some(value) => trouble.add(&self.path_of(name), format_args!("implausible value {value}")),
            None => trouble.add(&self.path_of(name), format_args!("not a number: {text:?}")),
        }
        None
    }
}

/// Digits only: no sign, no blanks.
pub(crate) fn decimal(text: &str) -> Option<u64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}
