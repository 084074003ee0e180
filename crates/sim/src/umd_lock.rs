//! tt-umd's mark on a device in use, `/dev/shm/TT_UMD_LOCK.CHIP_IN_USE_<N>_PCIe`.
//!
//! 56 bytes: glibc's mutex, which only glibc uses and which stays zero here, a magic number, thread and process of the
//! owner. A killed owner stays written.

use ledger::Mapping;
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

pub(crate) struct UmdLock {
    map: Mapping,
    _file: File,
}

impl UmdLock {
    /// Takes the lock for a process by its main thread, whose id is the process's.
    pub fn take(path: &Path, pid: u32) -> io::Result<UmdLock> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        file.set_permissions(Permissions::from_mode(0o666))?;
        file.set_len(SIZE as u64)?;
        let map = Mapping::of(&file, SIZE)?;
        map.store_u64(MAGIC_AT, MAGIC);
        map.store_u32(OWNER_TID_AT, pid);
        map.store_u32(OWNER_PID_AT, pid);
        Ok(UmdLock { map, _file: file })
    }

    pub fn release(self) {
        self.map.store_u32(OWNER_TID_AT, 0);
        self.map.store_u32(OWNER_PID_AT, 0);
    }
}

/// Where it is for a device.
pub(crate) fn path(index: u32) -> String {
    format!("dev/shm/TT_UMD_LOCK.CHIP_IN_USE_{index}_PCIe")
}

const SIZE: usize = 56;
const MAGIC: u64 = 0x5454_554D_444D_5458;
const MAGIC_AT: usize = 40;
const OWNER_TID_AT: usize = 48;
const OWNER_PID_AT: usize = 52;
