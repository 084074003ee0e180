//! The processes that keep a book, whether they hold a device or not: a child that inherited one is in no list of the driver.
//!
//! Reads `/proc/locks`, lines of `n: POSIX ADVISORY WRITE pid major:minor:inode start end`. A process locks its book, which is a
//! memfd, and so a file of the kernel's own file system `00:01`. Whether it is a book shows the map of the process.

use crate::dir::Root;
use std::collections::BTreeSet;

/// The pids of this namespace that have locked a memfd, but not this process.
pub(crate) fn find(root: &Root) -> BTreeSet<u32> {
    let mut bytes = Vec::new();
    // A machine whose kernel has no such file has its books where the driver's lists point.
    let read = root.open(&root.proc).and_then(|proc| proc.read_all("locks", &mut bytes));
    let mut owners = if read.is_ok() { parse(&bytes) } else { BTreeSet::new() };
    owners.remove(&std::process::id());
    owners
}

fn parse(bytes: &[u8]) -> BTreeSet<u32> {
    let owner = |line: &[u8]| {
        let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace().skip(1);
        let is_lock = [words.next()?, words.next()?, words.next()?] == ["POSIX", "ADVISORY", "WRITE"];
        let pid = words.next()?.parse().ok()?;
        (is_lock && words.next()?.starts_with("00:01:")).then_some(pid)
    };
    bytes.split(|&b| b == b'\n').filter_map(owner).take(MOST).collect()
}

/// As many are looked at in one sample.
const MOST: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_locked_a_memfd_may_keep_a_book() {
        let locks = "\
1: POSIX  ADVISORY  WRITE 4711 00:01:2059 0 EOF
1: -> POSIX  ADVISORY  WRITE 4713 00:01:2059 0 EOF
2: FLOCK  ADVISORY  WRITE 12 00:01:2060 0 EOF
3: POSIX  ADVISORY  READ 13 00:01:2061 0 EOF
4: POSIX  ADVISORY  WRITE 14 fe:00:2062 0 EOF
5: OFDLCK ADVISORY  WRITE -1 00:01:2063 0 EOF
6: POSIX  ADVISORY  WRITE 4712 00:01:2064 0 EOF
";
        assert_eq!(parse(locks.as_bytes()), [4711, 4712].into());
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_locks(bytes: Vec<u8>) {
            let _ = parse(&bytes);
        }
    }
}
