//! tt-metal's book of device memory, `/dev/shm/tt_device_<number>_memory`, written the way tt-metal writes it (version 3).
//!
//! One file per chip, mode 0600, left behind when its writers are gone. A process gets a line with its first allocation;
//! one that is killed leaves its line, its bytes and its attachment.

use ledger::Mapping;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::SystemTime;

/// Size of the file.
pub const SIZE: usize = 8576;

/// Bytes of each kind of memory.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Amounts {
    pub dram: u64,
    pub l1: u64,
    pub l1_small: u64,
    pub trace: u64,
    pub cb: u64,
}

/// A process attached to a chip's book. Dropped without [`AttachedRegion::detach`], it leaves what a killed process leaves.
#[derive(Debug)]
pub struct AttachedRegion {
    map: Mapping,
    pid: i32,
    name: String,
    slot: Option<usize>,
    amounts: Amounts,
    // tt-metal keeps the descriptor as long as the mapping; that is how the process is found by it.
    _file: File,
}

impl AttachedRegion {
    /// Attaches a process to the chip with this number, which it calls `device`. Makes the file if need be.
    pub fn attach(path: &Path, asic: u64, device: u32, pid: u32, name: &str) -> io::Result<AttachedRegion> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        if file.metadata()?.len() < SIZE as u64 {
            file.set_len(SIZE as u64)?;
        }
        let map = Mapping::of(&file, SIZE)?;
        match map.load_u32(at::VERSION) {
            VERSION => {}
            _ if map.load_u32(at::REFERENCES) == 0 => initialise(&map, asic, device),
            other => return Err(io::Error::new(io::ErrorKind::InvalidData, format!("in use as version {other}"))),
        }
        count(&map, at::REFERENCES, 1);
        map.store_u32(at::DEVICE, device);
        map.store_u64(at::UPDATED, now());
        let name = name.chars().take(15).collect();
        Ok(AttachedRegion { map, pid: pid as i32, name, slot: None, amounts: Amounts::default(), _file: file })
    }

    /// Allocates and frees until the process has these amounts.
    pub fn set(&mut self, amounts: Amounts) {
        for ((kind, from), to) in self.amounts.kinds().into_iter().enumerate().zip(amounts.kinds()) {
            if from != to {
                self.change(kind, from, to);
            }
        }
        self.amounts = amounts;
    }

    /// Closes as a process does that ends by itself.
    pub fn detach(self) {
        if let Some(slot) = self.slot {
            for (kind, amount) in self.amounts.kinds().into_iter().enumerate() {
                // The totals lose what the process had; the figures by chip do not.
                self.map.sub_u64_saturating(at::TOTALS + 8 * kind, amount);
                self.map.store_u64(slot + at::AMOUNTS + 8 * kind, 0);
            }
            // Name and time stay on the line.
            self.map.store_u32(slot, 0);
            count(&self.map, at::PROCESSES, -1);
        }
        if count(&self.map, at::REFERENCES, -1) == 1 {
            for kind in 0..KINDS {
                self.map.store_u64(at::TOTALS + 8 * kind, 0);
                self.map.store_u64(at::CHIPS + at::AMOUNTS + 8 * kind, 0);
            }
        }
    }

    /// Allocates or frees what is between two amounts. With its first allocation a process gets a line.
    fn change(&mut self, kind: usize, from: u64, to: u64) {
        if to > from && self.slot.is_none() {
            self.slot = self.claim();
        }
        let records = [Some(at::TOTALS), Some(at::CHIPS + at::AMOUNTS), self.slot.map(|slot| slot + at::AMOUNTS)];
        for record in records.into_iter().flatten() {
            if to > from {
                self.map.add_u64(record + 8 * kind, to - from);
            } else {
                self.map.sub_u64_saturating(record + 8 * kind, from - to);
            }
        }
        for updated in [Some(at::UPDATED), self.slot.map(|slot| slot + at::SLOT_UPDATED)].into_iter().flatten() {
            self.map.store_u64(updated, now());
        }
    }

    /// The first free line; none when all 64 are taken.
    fn claim(&self) -> Option<usize> {
        let mut slots = (0..SLOTS).map(|i| at::SLOTS + i * SLOT_SIZE);
        let slot = slots.find(|slot| self.map.compare_exchange_i32(*slot, 0, self.pid).is_ok())?;
        let mut name = [0; 64];
        name[..self.name.len()].copy_from_slice(self.name.as_bytes());
        self.map.write_bytes(slot + at::NAME, &name);
        count(&self.map, at::PROCESSES, 1);
        Some(slot)
    }
}

impl Amounts {
    fn kinds(self) -> [u64; KINDS] {
        [self.dram, self.l1, self.l1_small, self.trace, self.cb]
    }
}

const VERSION: u32 = 3;
const KINDS: usize = 5;
const CHIPS: usize = 16;
const CHIP_SIZE: usize = 48;
const SLOTS: usize = 64;
const SLOT_SIZE: usize = 120;
const NO_CHIP: u32 = u32::MAX;

/// Offsets. A chip's record and a process' line both have their amounts at the same place.
mod at {
    pub const VERSION: usize = 0;
    pub const PROCESSES: usize = 4;
    pub const UPDATED: usize = 8;
    pub const REFERENCES: usize = 16;
    pub const ASIC: usize = 32;
    pub const DEVICE: usize = 40;
    pub const TOTALS: usize = 48;
    pub const CHIPS: usize = 88;
    pub const SLOTS: usize = 856;
    pub const AMOUNTS: usize = 8;
    pub const SLOT_UPDATED: usize = 48;
    pub const NAME: usize = 56;
}

fn initialise(map: &Mapping, asic: u64, device: u32) {
    map.write_bytes(0, &[0; SIZE]);
    map.store_u64(at::ASIC, asic);
    for chip in 0..CHIPS {
        map.store_u32(at::CHIPS + chip * CHIP_SIZE, if chip == 0 { device } else { NO_CHIP });
    }
    map.store_u32(at::VERSION, VERSION);
}

/// Adds to a counter and answers what it was, not below zero.
fn count(map: &Mapping, offset: usize, by: i32) -> u32 {
    let mut held = map.load_u32(offset);
    loop {
        match map.compare_exchange_u32(offset, held, held.saturating_add_signed(by)) {
            Ok(before) => return before,
            Err(other) => held = other,
        }
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_nanos().try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// What a reader finds, from the documented offsets rather than from those above. Times are only compared to zero.
    fn decode(bytes: &[u8]) -> String {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let five = |at: usize| [0, 8, 16, 24, 32].map(|i| u64_at(at + i));
        let time = |at: usize| if u64_at(at) > 1_700_000_000_000_000_000 { "now" } else { "never" };
        let mut text = format!("{} bytes, version {}, {} active, ", bytes.len(), u32_at(0), u32_at(4));
        text += &format!("updated {}, {} attached, asic {}, ", time(8), u32_at(16), u64_at(32));
        text += &format!("device {}, total {:?}\n", u32_at(40), five(48));
        for i in (0..16).map(|i| 88 + i * 48).filter(|i| u32_at(*i) != u32::MAX) {
            text += &format!("chip {} remote {} {:?}\n", u32_at(i), u32_at(i + 4), five(i + 8));
        }
        for i in (0..64).map(|i| 856 + i * 120).filter(|i| bytes[*i..*i + 120].iter().any(|b| *b != 0)) {
            let name = String::from_utf8_lossy(&bytes[i + 56..i + 120]);
            let name = name.trim_end_matches('\0');
            text += &format!("pid {} {name:?} {:?} updated {}\n", u32_at(i), five(i + 8), time(i + 48));
        }
        text
    }

    struct Book(tempfile::TempDir);

    impl Book {
        fn new() -> Book {
            Book(tempfile::tempdir().unwrap())
        }

        fn attach(&self, pid: u32) -> AttachedRegion {
            AttachedRegion::attach(&self.0.path().join("book"), 77, 0, pid, "python3").unwrap()
        }

        fn check(&self, expected: Expect) {
            expected.assert_eq(&decode(&fs::read(self.0.path().join("book")).unwrap()));
        }
    }

    const ALL: Amounts = Amounts { dram: 2_097_152, l1: 131_072, l1_small: 4096, trace: 8192, cb: 786_432 };

    #[test]
    fn a_process_gets_its_line_with_its_first_allocation() {
        let book = Book::new();
        let mut region = book.attach(19404);
        book.check(expect![[r#"
            8576 bytes, version 3, 0 active, updated now, 1 attached, asic 77, device 0, total [0, 0, 0, 0, 0]
            chip 0 remote 0 [0, 0, 0, 0, 0]
        "#]]);
        region.set(ALL);
        book.check(expect![[r#"
            8576 bytes, version 3, 1 active, updated now, 1 attached, asic 77, device 0, total [2097152, 131072, 4096, 8192, 786432]
            chip 0 remote 0 [2097152, 131072, 4096, 8192, 786432]
            pid 19404 "python3" [2097152, 131072, 4096, 8192, 786432] updated now
        "#]]);
        region.set(Amounts { l1: 0, ..ALL });
        book.check(expect![[r#"
            8576 bytes, version 3, 1 active, updated now, 1 attached, asic 77, device 0, total [2097152, 0, 4096, 8192, 786432]
            chip 0 remote 0 [2097152, 0, 4096, 8192, 786432]
            pid 19404 "python3" [2097152, 0, 4096, 8192, 786432] updated now
        "#]]);
        let mode = fs::metadata(book.0.path().join("book")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn who_closes_takes_his_bytes_and_leaves_his_name() {
        let book = Book::new();
        let (mut first, mut second) = (book.attach(19404), book.attach(19405));
        first.set(ALL);
        second.set(Amounts { dram: 1_048_576, ..Amounts::default() });
        first.detach();
        book.check(expect![[r#"
            8576 bytes, version 3, 1 active, updated now, 1 attached, asic 77, device 0, total [1048576, 0, 0, 0, 0]
            chip 0 remote 0 [3145728, 131072, 4096, 8192, 786432]
            pid 0 "python3" [0, 0, 0, 0, 0] updated now
            pid 19405 "python3" [1048576, 0, 0, 0, 0] updated now
        "#]]);
        second.detach();
        book.check(expect![[r#"
            8576 bytes, version 3, 0 active, updated now, 0 attached, asic 77, device 0, total [0, 0, 0, 0, 0]
            chip 0 remote 0 [0, 0, 0, 0, 0]
            pid 0 "python3" [0, 0, 0, 0, 0] updated now
            pid 0 "python3" [0, 0, 0, 0, 0] updated now
        "#]]);
    }

    #[test]
    fn who_is_killed_leaves_everything() {
        let book = Book::new();
        let mut killed = book.attach(19404);
        killed.set(ALL);
        drop(killed);
        let mut next = book.attach(19405);
        next.set(Amounts { dram: 1000, ..Amounts::default() });
        next.detach();
        book.check(expect![[r#"
            8576 bytes, version 3, 1 active, updated now, 1 attached, asic 77, device 0, total [2097152, 131072, 4096, 8192, 786432]
            chip 0 remote 0 [2098152, 131072, 4096, 8192, 786432]
            pid 19404 "python3" [2097152, 131072, 4096, 8192, 786432] updated now
            pid 0 "python3" [0, 0, 0, 0, 0] updated now
        "#]]);
    }

    #[test]
    fn the_sixty_fifth_process_is_counted_without_a_line() {
        let book = Book::new();
        let mut regions: Vec<AttachedRegion> = (1..=65).map(|pid| book.attach(pid)).collect();
        regions.iter_mut().for_each(|region| region.set(Amounts { dram: 10, ..Amounts::default() }));
        let bytes = fs::read(book.0.path().join("book")).unwrap();
        let text = decode(&bytes);
        assert_eq!(text.lines().filter(|line| line.starts_with("pid ")).count(), 64);
        assert!(text.contains("64 active") && text.contains("total [650,"), "{text}");
    }

    #[test]
    fn a_book_of_another_version_is_left_alone_while_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("book");
        let mut bytes = vec![0; SIZE];
        (bytes[0], bytes[16]) = (4, 1);
        fs::write(&path, &bytes).unwrap();
        let error = AttachedRegion::attach(&path, 77, 0, 1, "python3").unwrap_err();
        assert_eq!(error.to_string(), "in use as version 4");
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}
