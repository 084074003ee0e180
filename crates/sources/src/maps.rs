//! What a process has mapped: which of tt-metal's regions, and which libraries.
//!
//! Reads `/proc/<pid>/maps`, lines of `start-end perms offset major:minor inode path`. A region stays mapped for as long as
//! the process has the device open, which shows better than any pid in the region which process its bytes belong to.

use model::Runtime;
use std::collections::{BTreeMap, BTreeSet};

/// A file, whatever its name: device number and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Inode {
    /// Major and minor number of the file system.
    pub device: (u32, u32),
    /// Number in that file system.
    pub inode: u64,
}

/// What was found in a process's map.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Maps {
    /// tt-metal regions, with the chip number of their name.
    pub regions: BTreeSet<(Inode, u64)>,
    /// The highest layer of the stack that is mapped.
    pub runtime: Option<Runtime>,
    /// The books that it keeps, and the name of the mapping in `map_files`. An honest process has one at the most.
    pub books: BTreeMap<Inode, String>,
}

/// How the kernel names a book.
pub(crate) const BOOK: &[u8] = b"/memfd:ttmon-book (deleted)";

/// Decodes a map. Lines that look like nothing of ours are passed over.
pub fn parse(bytes: &[u8]) -> Maps {
    let mut maps = Maps { runtime: Some(Runtime::Other), ..Maps::default() };
    for line in bytes.split(|&b| b == b'\n') {
        // Most lines are anonymous memory or end in a library that is none of ours.
        let Some(slash) = line.iter().position(|&b| b == b'/') else { continue };
        let (head, path) = line.split_at(slash);
        let name = path.rsplit(|&b| b == b'/').next().unwrap_or_default();
        if let Some(number) = region_number(name) {
            maps.regions.extend(inode(head).map(|inode| (inode, number)));
        } else if path == BOOK {
            maps.books.extend(inode(head).zip(range(head)));
        } else if let Some(runtime) = runtime_of(name) {
            maps.runtime = maps.runtime.max(Some(runtime));
        }
    }
    maps
}

/// The chip number in `tt_device_<number>_memory`, also of a file that was removed since.
pub(crate) fn region_number(name: &[u8]) -> Option<u64> {
    let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
    let digits = name.strip_prefix(b"tt_device_")?.strip_suffix(b"_memory")?;
    crate::dir::decimal(std::str::from_utf8(digits).ok()?)
}

/// The addresses as `map_files` has them, without leading zeros.
fn range(head: &[u8]) -> Option<String> {
    let (begin, end) = std::str::from_utf8(head).ok()?.split_ascii_whitespace().next()?.split_once('-')?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    Some(format!("{:x}-{:x}", hex(begin)?, hex(end)?))
}

fn inode(head: &[u8]) -> Option<Inode> {
    let mut fields = std::str::from_utf8(head).ok()?.split_ascii_whitespace().skip(3);
    let (major, minor) = fields.next()?.split_once(':')?;
    let hex = |text| u32::from_str_radix(text, 16).ok();
    Some(Inode { device: (hex(major)?, hex(minor)?), inode: fields.next()?.parse().ok()? })
}

fn runtime_of(name: &[u8]) -> Option<Runtime> {
    let stem = name.split(|&b| b == b'.').next()?;
    match stem {
        b"_ttnn" | b"_ttnncpp" | b"libttnn" | b"libttnncpp" => Some(Runtime::Ttnn),
        b"libtt_metal" => Some(Runtime::TtMetal),
        b"libtt-umd" | b"libtt_umd" | b"libumd" | b"tt_umd" | b"libdevice" => Some(Runtime::Umd),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "\
55d0c0a00000-55d0c0a01000 r-xp 00000000 fe:00 131 /usr/bin/python3.12
7f1200000000-7f1200003000 rw-s 00000000 00:19 42 /dev/shm/tt_device_10320680388634458000_memory
7f1200003000-7f1200006000 rw-s 00000000 00:1a 7 /dev/shm/tt_device_5_memory (deleted)
7f1300000000-7f1300001000 r-xp 00000000 fe:00 99 /opt/ttnn/build/lib/libtt_metal.so
7f1300002000-7f1300003000 r-xp 00000000 fe:00 98 /opt/ttnn/_ttnn.so
7f1300004000-7f1300005000 rw-s 00000000 00:01 2059 /memfd:ttmon-book (deleted)
7f1300006000-7f1300007000 rw-s 00000000 00:01 2060 /tmp/memfd:ttmon-book (deleted)
7f1400000000-7f1400001000 rw-p 00000000 00:00 0
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0 [stack]
";

    #[test]
    fn regions_are_known_by_inode_even_when_removed() {
        let maps = parse(MAP.as_bytes());
        let at = |minor, inode| Inode { device: (0, minor), inode };
        assert_eq!(maps.regions, [(at(0x19, 42), 10_320_680_388_634_458_000), (at(0x1a, 7), 5)].into());
        assert_eq!(maps.runtime, Some(Runtime::Ttnn));
        assert_eq!(maps.books, [(at(1, 2059), "7f1300004000-7f1300005000".to_owned())].into());
    }

    #[test]
    fn the_highest_layer_is_the_runtime() {
        let of = |name: &str| parse(format!("0-1 r-xp 0 fe:00 9 /x/{name}").as_bytes()).runtime;
        assert_eq!(of("_ttnn.cpython-312-x86_64-linux-gnu.so"), Some(Runtime::Ttnn));
        assert_eq!(of("libtt_metal.so"), Some(Runtime::TtMetal));
        assert_eq!(of("libtt-umd.so.0"), Some(Runtime::Umd));
        assert_eq!(of("libc.so.6"), Some(Runtime::Other));
    }

    #[test]
    fn a_name_must_match_in_full() {
        for name in ["tt_device__memory", "tt_device_1_memory2", "xtt_device_1_memory", "tt_device_-1_memory"] {
            assert_eq!(region_number(name.as_bytes()), None, "{name}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_a_map(bytes: Vec<u8>) {
            let _ = parse(&bytes);
        }

        #[test]
        fn any_fields_are_a_map(head in "[0-9a-f: -]{0,60}", number in 0u64..) {
            let _ = parse(format!("{head}/dev/shm/tt_device_{number}_memory\n").as_bytes());
        }
    }
}
