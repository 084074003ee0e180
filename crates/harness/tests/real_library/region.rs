//! The bytes of `/dev/shm/tt_device_<id>_memory`.

use std::fs;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// Offset of the first chip (48 bytes each) and of the first process (120 bytes each).
pub const CHIPS: usize = 88;
pub const PROCESSES: usize = 856;
pub const FREE_CHIP: u32 = u32::MAX;

/// A region that no other test uses, removed at the end.
pub struct Region {
    pub asic_id: u64,
    path: PathBuf,
}

impl Region {
    pub fn unused() -> Region {
        let mut asic_id = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()).unwrap();
        loop {
            let path = PathBuf::from(format!("/dev/shm/tt_device_{asic_id}_memory"));
            if !path.exists() {
                return Region { asic_id, path };
            }
            asic_id += 1;
        }
    }

    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    pub fn read(&self) -> Bytes {
        Bytes(fs::read(&self.path).unwrap())
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // Absent if the test failed early.
        let _ = fs::remove_file(&self.path);
    }
}

pub struct Bytes(pub Vec<u8>);

impl Bytes {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn u32(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.0[offset..][..4].try_into().unwrap())
    }

    pub fn u64(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.0[offset..][..8].try_into().unwrap())
    }

    /// DRAM, L1, small L1, trace and circular buffers.
    pub fn counters(&self, offset: usize) -> [u64; 5] {
        [0, 1, 2, 3, 4].map(|n| self.u64(offset + 8 * n))
    }

    pub fn totals(&self) -> [u64; 5] {
        self.counters(48)
    }
}
