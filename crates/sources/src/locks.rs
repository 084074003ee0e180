//! Who holds tt-umd's lock on a chip.
//!
//! Reads `/dev/shm/TT_UMD_LOCK.CHIP_IN_USE_<N>_PCIe`, where N is the device's ordinal: 56 bytes, of which a magic number at
//! 40, the owner's thread at 48 and process at 52 (0 = free) matter. The lock itself is never touched.

/// Decodes a lock file: the owner as it numbers itself, in its own PID namespace.
pub fn owner_of(bytes: &[u8]) -> Option<u32> {
    const MAGIC: u64 = 0x5454_554D_444D_5458;
    let magic = u64::from_le_bytes(bytes.get(40..48)?.try_into().ok()?);
    let pid = i32::from_le_bytes(bytes.get(52..56)?.try_into().ok()?);
    (magic == MAGIC && pid > 0).then_some(pid as u32)
}

/// The ordinal that a lock file's name is about.
pub(crate) fn ordinal_of(name: &str) -> Option<u32> {
    name.strip_prefix("TT_UMD_LOCK.CHIP_IN_USE_")?.strip_suffix("_PCIe")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_names_its_owner() {
        let mut lock = [0; 56];
        lock[40..48].copy_from_slice(b"XTMDMUTT");
        assert_eq!(owner_of(&lock), None, "free");
        lock[52..56].copy_from_slice(&4711i32.to_le_bytes());
        assert_eq!(owner_of(&lock), Some(4711));
        lock[40] = 0;
        assert_eq!(owner_of(&lock), None, "not a lock of tt-umd");
        assert_eq!(owner_of(&lock[..55]), None, "cut short");
    }

    #[test]
    fn a_lock_file_is_known_by_its_name() {
        assert_eq!(ordinal_of("TT_UMD_LOCK.CHIP_IN_USE_12_PCIe"), Some(12));
        assert_eq!(ordinal_of("TT_UMD_LOCK.ARC_MSG_12_PCIe"), None);
        assert_eq!(ordinal_of("TT_UMD_LOCK.CHIP_IN_USE_x_PCIe"), None);
    }
}
