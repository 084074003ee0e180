//! tt-metal's shared memory: how much each process has allocated on one chip, as the process itself counts.
//!
//! Reads `/dev/shm/tt_device_<number>_memory`, 8576 bytes, little endian, versions 3 and 4. The file is another program's,
//! written while we read, and it outlives its writers: what it says is checked.

use crate::dir::{Dir, Root, Trouble, reason};
use crate::maps::{Inode, region_number};
use crate::{locks, open_files};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Size of a region.
pub const SIZE: usize = 8576;
const SLOTS: usize = 64;
const FIRST_SLOT: usize = 856;
const SLOT_SIZE: usize = 120;
/// Version 4 sets this when the region is ready.
const READY: u32 = 0x5245_4459;

/// Bytes by kind, in the order of the file: DRAM, L1, L1_SMALL, TRACE, CB.
pub type Kinds = [u64; 5];

/// A decoded region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// The number of the chip, the same as in the file's name.
    pub asic_id: u64,
    /// The chip's logical number in the process that attached last.
    pub device_id: u32,
    /// What the region's header claims, exited processes included.
    pub totals: Kinds,
    /// Processes that have allocated.
    pub slots: Vec<Slot>,
}

/// One process's counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Its place in the region.
    pub index: usize,
    /// As the process numbers itself, in its own PID namespace.
    pub pid: u32,
    /// What it has allocated.
    pub bytes: Kinds,
    /// The last change, in nanoseconds since 1970.
    pub updated: u64,
}

/// Why a region could not be read as one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegionError {
    /// The file has another size than any version that we know.
    #[error("has {0} bytes where tt-metal writes {SIZE}")]
    Size(usize),
    /// A version whose layout we do not know.
    #[error("unknown layout {0}: only versions 3 and 4 are known")]
    Version(u32),
    /// A version-4 region that its creator has not finished.
    #[error("its creator has not finished it yet")]
    NotReady,
}

impl Region {
    /// Whether a process that allocates now finds no slot.
    pub fn is_full(&self) -> bool {
        self.slots.len() == SLOTS
    }
}

/// Decodes a region. One read is enough: each field is written atomically, and of two reads the later would count.
pub fn decode(bytes: &[u8]) -> Result<Region, RegionError> {
    let bytes: &[u8; SIZE] = bytes.try_into().map_err(|_| RegionError::Size(bytes.len()))?;
    let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let u64_at = |at: usize| u64::from(u32_at(at)) | (u64::from(u32_at(at + 4)) << 32);
    let kinds_at = |at: usize| [0, 8, 16, 24, 32].map(|kind| u64_at(at + kind));
    match u32_at(0) {
        3 => {}
        4 if u32_at(8536) == READY => {}
        4 => return Err(RegionError::NotReady),
        version => return Err(RegionError::Version(version)),
    }
    let slots = (0..SLOTS).filter_map(|index| {
        let at = FIRST_SLOT + index * SLOT_SIZE;
        // Zero is free, minus one is being freed.
        let pid = u32_at(at);
        (1..=i32::MAX as u32).contains(&pid).then(|| Slot {
            index,
            pid,
            bytes: kinds_at(at + 8),
            updated: u64_at(at + 48),
        })
    });
    Ok(Region { asic_id: u64_at(32), device_id: u32_at(40), totals: kinds_at(48), slots: slots.collect() })
}

pub(crate) struct FoundRegion {
    pub path: PathBuf,
    /// The number in its name.
    pub number: u64,
    /// What is in it. `None` when it could not be read, which is in the faults.
    pub region: Option<Region>,
}

/// What `/dev/shm` holds of tt-metal and tt-umd.
#[derive(Default)]
pub(crate) struct Shm {
    pub regions: BTreeMap<Inode, FoundRegion>,
    /// By device ordinal, who holds tt-umd's lock, as that process numbers itself.
    pub locks: BTreeMap<u32, u32>,
    /// Whether the folder could be listed.
    pub listed: bool,
}

impl Shm {
    /// The slots of all regions.
    pub fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.regions.values().flat_map(|found| &found.region).flat_map(|region| &region.slots)
    }
}

/// The files of `/dev/shm` that were read, by name. They stay open, so that the next sample only reads them.
#[derive(Default)]
pub(crate) struct ShmFiles {
    files: HashMap<OsString, ShmFile>,
    round: u64,
    /// The folder, and when it was opened.
    folder: Option<(Dir, Instant)>,
    /// When the folder was last changed, if everything in it could be read since.
    changed: Option<SystemTime>,
    /// Whose the locks are, and when they were read.
    locks: Option<(BTreeMap<u32, u32>, Instant)>,
}

struct ShmFile {
    file: OwnedFd,
    /// Absent as long as it was not asked for.
    identity: Option<ShmIdentity>,
    /// As the folder numbers it.
    number: u64,
    /// When it was last there.
    round: u64,
}

#[derive(Clone, Copy)]
struct ShmIdentity {
    inode: Inode,
    owner: u32,
}

/// So many regions of one user are read: more chips than a machine has.
pub(crate) const MOST_REGIONS: usize = 128;

/// How long relaxed sampling keeps the folder open, and what it read of the locks.
const KEPT_FOR: Duration = Duration::from_secs(5);

/// The clock of a folder may stand still for some milliseconds: one that changed just now may change again without a sign.
const CHANGES_SHOW_AFTER: Duration = Duration::from_secs(1);

impl ShmFile {
    fn identity(&mut self) -> rustix::io::Result<ShmIdentity> {
        if let Some(known) = self.identity {
            return Ok(known);
        }
        let stat = rustix::fs::fstat(&self.file)?;
        Ok(*self.identity.insert(ShmIdentity { inode: inode(&stat), owner: stat.st_uid }))
    }

    /// Who has this lock.
    fn owner(&self) -> Option<u32> {
        let mut buffer = [0; 64];
        let length = rustix::io::pread(&self.file, &mut buffer, 0).unwrap_or(0);
        locks::owner_of(&buffer[..length])
    }
}

impl ShmFiles {
    /// The file of this name and number. One that was removed is never taken for another that has its name: as long as it is
    /// open, no other file has its number.
    fn open(&mut self, folder: &Dir, name: &OsStr, number: u64) -> rustix::io::Result<&mut ShmFile> {
        folder.ask(name.as_ref())?;
        let round = self.round;
        if self.files.get(name).is_none_or(|file| file.number != number) {
            let file = folder.open_file(name)?;
            self.files.insert(name.to_owned(), ShmFile { file, identity: None, number, round });
        }
        let file = self.files.get_mut(name).ok_or(Errno::NOENT)?;
        file.round = round;
        Ok(file)
    }

    /// Reads the regions that were there the last time.
    fn read_again(&mut self, folder: &Dir, regions: &mut BTreeMap<Inode, FoundRegion>, trouble: &mut Trouble) {
        for (name, file) in &mut self.files {
            if let Some(number) = region_number(name.as_encoded_bytes()) {
                let opened = folder.ask(name.as_ref()).and_then(|()| Ok((file.identity()?, &file.file)));
                add(regions, folder, name.as_ref(), number, opened, trouble);
            }
        }
    }

    /// Whose the file of this name and number is.
    fn owner(&self, folder: &Dir, name: &OsStr, number: u64) -> rustix::io::Result<u32> {
        let known = self.files.get(name).filter(|file| file.number == number).and_then(|file| file.identity);
        known.map_or_else(|| folder.owner(name), |known| Ok(known.owner))
    }

    /// Closes what is not there any more, and what there is no room for. Locks that were not read this time stay open.
    fn close_unused(&mut self, but_locks: bool) {
        let round = self.round;
        let is_lock = |name: &OsStr| name.to_str().and_then(locks::ordinal_of).is_some();
        self.files.retain(|name, file| {
            (file.round == round || (but_locks && is_lock(name))) && file.file.as_raw_fd() < open_files::limit()
        });
        self.round += 1;
    }
}

/// Lists `/dev/shm` and reads what it has of tt-metal and tt-umd. Relaxed sampling reads the locks every few seconds.
pub(crate) fn find(root: &Root, files: &mut ShmFiles, relaxed: bool, trouble: &mut Trouble) -> Shm {
    let mut shm = Shm::default();
    let path = root.dev.join("shm");
    let (folder, opened) = match files.folder.take().filter(|(_, when)| relaxed && when.elapsed() < KEPT_FOR) {
        Some(kept) => (Ok(kept.0), kept.1),
        None => (root.open(&path), Instant::now()),
    };
    let folder = match folder {
        Ok(folder) => folder,
        Err(error) => {
            trouble.note(&path, error);
            return shm;
        }
    };
    let known = files.locks.take().filter(|(_, when)| relaxed && when.elapsed() < KEPT_FOR);
    // Files that come or go change the folder.
    let changed = folder.changed().filter(|when| when.elapsed().is_ok_and(|age| age >= CHANGES_SHOW_AFTER));
    if let Some((locks, _)) = known.as_ref().filter(|_| changed.is_some() && files.changed == changed) {
        shm.locks.clone_from(locks);
        shm.listed = true;
        files.read_again(&folder, &mut shm.regions, trouble);
        (files.locks, files.folder) = (known, Some((folder, opened)));
        return shm;
    }
    let faults = trouble.faults.len();
    let mut owners: BTreeMap<u32, usize> = BTreeMap::new();
    let mut seen = 0;
    let listed = folder.list_numbered(|name, inode| {
        if let Some(number) = region_number(name.as_encoded_bytes()) {
            seen += 1;
            // While there are few, no user can have too many: whose a region is need not be asked before it is opened.
            let are_few = seen <= MOST_REGIONS;
            let mut is_too_much = |owner| {
                let regions = owners.entry(owner).or_default();
                *regions += 1;
                *regions > MOST_REGIONS
            };
            if !are_few && files.owner(&folder, name, inode).map_or(true, &mut is_too_much) {
                return;
            }
            let opened = files.open(&folder, name, inode).and_then(|file| Ok((file.identity()?, &file.file)));
            if are_few {
                let owner = opened.as_ref().map_or_else(|_| folder.owner(name), |(identity, _)| Ok(identity.owner));
                owner.map(is_too_much).ok();
            }
            add(&mut shm.regions, &folder, name.as_ref(), number, opened, trouble);
        } else if let (None, Some(n)) = (&known, name.to_str().and_then(locks::ordinal_of)) {
            let owner = files.open(&folder, name, inode).ok().and_then(|lock| lock.owner());
            shm.locks.extend(owner.map(|pid| (n, pid)));
        }
    });
    for (owner, regions) in owners.into_iter().filter(|(_, regions)| *regions > MOST_REGIONS) {
        let others = regions - MOST_REGIONS;
        trouble.add(&path, format_args!("user {owner} has {regions} regions: {others} of them are not read"));
    }
    files.close_unused(known.is_some());
    let (locks, read) = known.unwrap_or_else(|| (std::mem::take(&mut shm.locks), Instant::now()));
    shm.locks.clone_from(&locks);
    files.locks = Some((locks, read));
    files.changed = None;
    match listed {
        Ok(()) => {
            shm.listed = true;
            // What went wrong is tried, and reported, every time.
            files.changed = changed.filter(|_| trouble.faults.len() == faults);
            files.folder = Some((folder, opened));
        }
        Err(error) => trouble.note(&path, error),
    }
    shm
}

fn add(
    regions: &mut BTreeMap<Inode, FoundRegion>,
    folder: &Dir,
    name: &Path,
    number: u64,
    opened: rustix::io::Result<(ShmIdentity, &OwnedFd)>,
    trouble: &mut Trouble,
) {
    let path = folder.path_of(name);
    match opened {
        Ok((identity, file)) => {
            let region = read(file, &path, trouble);
            regions.insert(identity.inode, FoundRegion { path, number, region });
        }
        Err(Errno::NOENT) => {}
        Err(error) => {
            trouble.add(&path, unreadable(folder, name, error));
            if let Ok(stat) = folder.stat(name) {
                regions.insert(inode(&stat), FoundRegion { path, number, region: None });
            }
        }
    }
}

fn unreadable(folder: &Dir, name: &Path, error: Errno) -> String {
    match folder.stat(name) {
        Ok(stat) if error == Errno::ACCESS => {
            format!("belongs to user {}: run as that user or as root to see its memory", stat.st_uid)
        }
        _ => reason(error),
    }
}

/// A region that a process has mapped but that is not in our `/dev/shm`: a container's own, or one removed since.
pub(crate) fn find_of_process(pid: u32, wanted: Inode, number: u64, trouble: &mut Trouble) -> Option<FoundRegion> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let shm = process.join("root/dev/shm");
    let name = format!("tt_device_{number}_memory");
    let opened = Dir::open(&shm, None).and_then(|folder| folder.open_file(&name));
    let (file, path) = match opened {
        Ok(file) if inode_of(&file) == Ok(wanted) => (file, shm.join(&name)),
        _ => open_descriptor(&process, wanted, number, trouble)?,
    };
    let region = read(&file, &path, trouble);
    Some(FoundRegion { path, number, region })
}

/// The process's own descriptor of the region. Only one whose name is a region's is opened, so never a device.
fn open_descriptor(process: &Path, wanted: Inode, number: u64, trouble: &mut Trouble) -> Option<(OwnedFd, PathBuf)> {
    let path = process.join("fd");
    let mut found = None;
    let searched = Dir::open(&path, None).and_then(|folder| {
        folder.list(|name| {
            let link = folder.read_link(name).unwrap_or_default();
            let is_region = link.rsplit(|&b| b == b'/').next().and_then(region_number) == Some(number);
            if found.is_none() && is_region && folder.stat(name).is_ok_and(|stat| inode(&stat) == wanted) {
                let path = path.join(name);
                let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
                found = rustix::fs::open(&path, flags, rustix::fs::Mode::empty()).ok().map(|file| (file, path));
            }
        })
    });
    if let Err(error) = searched {
        trouble.add(&path, reason(error));
    }
    found
}

fn read(file: &OwnedFd, path: &Path, trouble: &mut Trouble) -> Option<Region> {
    // One byte more than a region, so that a longer file is noticed.
    let mut bytes = Vec::with_capacity(SIZE + 1);
    let result = rustix::io::retry_on_intr(|| rustix::io::pread(file, rustix::buffer::spare_capacity(&mut bytes), 0));
    let region = result.map_err(reason).and_then(|_| decode(&bytes).map_err(|error| error.to_string()));
    region.map_err(|why| trouble.add(path, why)).ok()
}

pub(crate) fn inode_of(file: &OwnedFd) -> rustix::io::Result<Inode> {
    rustix::fs::fstat(file).map(|stat| inode(&stat))
}

pub(crate) fn inode(stat: &rustix::fs::Stat) -> Inode {
    Inode { device: (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev)), inode: stat.st_ino }
}
