//! Files in memory, shared with other processes, read and written field by field.
//!
//! Other processes change the bytes at any time, so there are no references into a mapping: every access is atomic.
//! Fields are little-endian. A file that is shortened afterwards takes its pages with it (`SIGBUS`); map only files
//! whose writers never do that.

use memmap2::{Advice, Mmap, MmapOptions, MmapRaw};
use rustix::ioctl;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

/// The first bytes of a regular file, mapped shared, for reading and writing.
///
/// # Panics
/// As with a slice, every access panics that reaches beyond the mapping, and so does one that is not aligned to the
/// field's size: offsets are constants of a layout, and a wrong one is a mistake in the program.
#[derive(Debug)]
pub struct Mapping {
    map: MmapRaw,
}

impl Mapping {
    /// Maps the first `len` bytes. The file must be that long: a page without a file behind it cannot be touched.
    pub fn of(file: &File, len: usize) -> io::Result<Mapping> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "only a regular file can be mapped"));
        }
        if metadata.len() < len as u64 {
            let text = format!("the file has {} bytes, {len} are needed", metadata.len());
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
        }
        Ok(Mapping { map: MmapOptions::new().len(len).map_raw(file)? })
    }

    /// Memory of this process alone, zeroed now and, in a child that it forks, again.
    pub fn zeroed_in_children(len: usize) -> io::Result<Mapping> {
        let map = MmapOptions::new().len(len).map_anon()?;
        let map = MmapRaw::from(map);
        // SAFETY: the whole of a private anonymous mapping that is ours; the advice changes nothing in this process.
        unsafe { rustix::mm::madvise(map.as_mut_ptr().cast(), map.len(), rustix::mm::Advice::LinuxWipeOnFork)? };
        Ok(Mapping { map })
    }

    /// From now on forked children do not have this mapping: not even by mistake can they write to it.
    pub fn keep_from_children(&self) -> io::Result<()> {
        self.map.advise(Advice::DontFork)
    }

    /// How many bytes are mapped.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether none are.
    pub fn is_empty(&self) -> bool {
        self.map.len() == 0
    }

    /// Writes fields in a row, each by itself, in no order that another process could rely on.
    #[inline]
    pub fn store_words(&self, offset: usize, words: &[u64]) {
        let inside = words.len().checked_mul(8).and_then(|size| offset.checked_add(size));
        assert!(inside.is_some_and(|end| end <= self.map.len()) && offset % 8 == 0);
        for (i, word) in words.iter().enumerate() {
            // SAFETY: checked above for all of them; as below otherwise.
            let field = unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(offset + i * 8).cast()) };
            field.store(word.to_le(), Relaxed);
        }
    }

    /// Begins to bring bytes into the processor's cache that are written soon. Those beyond the mapping are left out.
    #[inline]
    pub fn prefetch(&self, offset: usize, len: usize) {
        if offset.checked_add(len).is_some_and(|end| end <= self.map.len()) {
            prefetch(self.map.as_mut_ptr().wrapping_add(offset), len);
        }
    }

    /// Reads a field.
    pub fn load_u32(&self, offset: usize) -> u32 {
        u32::from_le(self.u32_at(offset).load(Acquire))
    }

    /// Writes a field.
    pub fn store_u32(&self, offset: usize, value: u32) {
        self.u32_at(offset).store(value.to_le(), Release);
    }

    /// Writes `new` if the field holds `current`. Answers what it held, as an error if that was something else.
    pub fn compare_exchange_u32(&self, offset: usize, current: u32, new: u32) -> Result<u32, u32> {
        let held = self.u32_at(offset).compare_exchange(current.to_le(), new.to_le(), AcqRel, Acquire);
        held.map(u32::from_le).map_err(u32::from_le)
    }

    /// As [`Mapping::compare_exchange_u32`], for a signed field.
    pub fn compare_exchange_i32(&self, offset: usize, current: i32, new: i32) -> Result<i32, i32> {
        let held = self.compare_exchange_u32(offset, current as u32, new as u32);
        held.map(|held| held as i32).map_err(|held| held as i32)
    }

    /// Reads a field.
    #[inline]
    pub fn load_u64(&self, offset: usize) -> u64 {
        u64::from_le(self.u64_at(offset).load(Acquire))
    }

    /// Writes a field.
    pub fn store_u64(&self, offset: usize, value: u64) {
        self.u64_at(offset).store(value.to_le(), Release);
    }

    /// Adds to a field, around the end if need be, and answers what it held before.
    pub fn add_u64(&self, offset: usize, n: u64) -> u64 {
        self.change_u64(offset, |value| value.wrapping_add(n))
    }

    /// Subtracts from a field, down to zero at most, and answers what it held before.
    pub fn sub_u64_saturating(&self, offset: usize, n: u64) -> u64 {
        self.change_u64(offset, |value| value.saturating_sub(n))
    }

    /// Copies bytes out, each by itself: a concurrent write may be seen half done.
    pub fn read_bytes(&self, offset: usize, into: &mut [u8]) {
        for (i, byte) in into.iter_mut().enumerate() {
            *byte = self.u8_at(offset, i).load(Relaxed);
        }
    }

    /// Copies bytes in, each by itself.
    pub fn write_bytes(&self, offset: usize, bytes: &[u8]) {
        for (i, byte) in bytes.iter().enumerate() {
            self.u8_at(offset, i).store(*byte, Relaxed);
        }
    }

    fn change_u64(&self, offset: usize, change: impl Fn(u64) -> u64) -> u64 {
        let field = self.u64_at(offset);
        let mut held = field.load(Acquire);
        loop {
            match field.compare_exchange_weak(held, change(u64::from_le(held)).to_le(), AcqRel, Acquire) {
                Ok(before) => return u64::from_le(before),
                Err(now) => held = now,
            }
        }
    }

    fn u8_at(&self, offset: usize, i: usize) -> &AtomicU8 {
        let at = self.checked(offset.saturating_add(i), 1);
        // SAFETY: the byte is inside the mapping, which lives as long as `self`, and nothing in this process reaches it
        // other than through atomics.
        unsafe { AtomicU8::from_ptr(self.map.as_mut_ptr().add(at)) }
    }

    fn u32_at(&self, offset: usize) -> &AtomicU32 {
        let at = self.checked(offset, 4);
        // SAFETY: as above; a mapping begins on a page, so what is aligned in the file is aligned in memory.
        unsafe { AtomicU32::from_ptr(self.map.as_mut_ptr().add(at).cast()) }
    }

    #[inline]
    fn u64_at(&self, offset: usize) -> &AtomicU64 {
        let at = self.checked(offset, 8);
        // SAFETY: as above.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(at).cast()) }
    }

    #[inline]
    fn checked(&self, offset: usize, size: usize) -> usize {
        let inside = offset.checked_add(size).is_some_and(|end| end <= self.map.len());
        assert!(inside, "{size} bytes at {offset} are beyond the {} mapped", self.map.len());
        assert!(offset % size == 0, "{offset} is not a multiple of {size}");
        offset
    }
}

/// Begins to bring a value into the processor's cache that is needed soon.
#[inline]
pub fn prefetch_value<T>(value: &T) {
    prefetch(std::ptr::from_ref(value).cast(), size_of::<T>());
}

/// Changes nothing but the time that later accesses take. The address may be any.
#[inline]
#[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
fn prefetch(at: *const u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..len).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every processor of this architecture has it, and it reads nothing, not even from an invalid address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(line).cast()) };
    }
}

/// A file that this process keeps mapped, read-only.
#[derive(Debug)]
pub struct HeldMapping {
    _map: Mmap,
}

/// Maps a file for nothing but to be seen in `/proc/self/maps`.
pub fn hold(file: &File) -> io::Result<HeldMapping> {
    // SAFETY: the bytes are never looked at, so it does not matter who changes them.
    Ok(HeldMapping { _map: unsafe { Mmap::map(file)? } })
}

/// How a process ended that was waited for already, as `waitpid` spells it, by a pidfd that was opened before. Linux 6.15 and later
/// remember it.
pub fn exit_status(pidfd: impl AsFd) -> Option<i32> {
    /// `struct pidfd_info`.
    #[repr(C)]
    #[derive(Default)]
    struct PidfdInfo {
        mask: u64,
        cgroup: u64,
        ids: [u32; 11],
        exit_code: i32,
    }
    const EXIT: u64 = 1 << 3;
    const GET_INFO: ioctl::Opcode = ioctl::opcode::read_write::<PidfdInfo>(0xFF, 11);
    let mut info = PidfdInfo { mask: EXIT, ..PidfdInfo::default() };
    // SAFETY: this is the request's number and the first version of its structure, whose length is part of the number.
    let asked = unsafe { ioctl::ioctl(pidfd, ioctl::Updater::<GET_INFO, PidfdInfo>::new(&mut info)) };
    asked.ok().filter(|()| info.mask & EXIT != 0).map(|()| info.exit_code)
}

/// Gives back the pages of this program's code and constants that are mapped now. What is used again comes back from the page cache at
/// its first use: less of it than was mapped, since reading the command line and the configuration is over.
pub fn forget_code() {
    // SAFETY: plain calls. The function that is called for every loaded object gets what it expects.
    let found = unsafe {
        let page = libc::sysconf(libc::_SC_PAGESIZE);
        let mut found = UnwrittenPages { page: usize::try_from(page).unwrap_or(4096), count: 0, all: [(0, 0); 24] };
        libc::dl_iterate_phdr(Some(find_unwritten), (&raw mut found).cast());
        found
    };
    // All were found before: to look for more would bring back what was given back already.
    for &(start, length) in &found.all[..found.count] {
        let start = std::ptr::with_exposed_provenance_mut(start);
        // SAFETY: nothing has written to these private mappings of files, so their pages are those of the file, and the kernel reads
        // them again when they are needed.
        let _ = unsafe { rustix::mm::madvise(start, length, rustix::mm::Advice::LinuxDontNeed) };
    }
}

/// Start and length of what nothing has written to, of the program and its libraries.
struct UnwrittenPages {
    page: usize,
    count: usize,
    all: [(usize, usize); 24],
}

/// Adds what nothing has written to of one object, as far as there is room.
unsafe extern "C" fn find_unwritten(
    object: *mut libc::dl_phdr_info,
    _: usize,
    found: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: the loader describes an object that is loaded, with all its segments. The rest is what `forget_code` has passed.
    let (base, segments, found) = unsafe {
        let libc::dl_phdr_info { dlpi_addr, dlpi_phdr, dlpi_phnum, .. } = *object;
        let segments = std::slice::from_raw_parts(dlpi_phdr, dlpi_phnum.into());
        (dlpi_addr as usize, segments, &mut *found.cast::<UnwrittenPages>())
    };
    let unwritten = segments.iter().filter_map(|segment| unwritten_pages(base, segment, found.page));
    for (place, pages) in found.all[found.count..].iter_mut().zip(unwritten) {
        *place = pages;
        found.count += 1;
    }
    0
}

/// Start and length of the pages of a segment that nothing may write to, not even the loader when it relocates.
fn unwritten_pages(base: usize, segment: &libc::Elf64_Phdr, page: usize) -> Option<(usize, usize)> {
    let is_unwritten = segment.p_type == libc::PT_LOAD && segment.p_flags & libc::PF_W == 0;
    let start = base.checked_add(usize::try_from(segment.p_vaddr).ok()?)?;
    let end = start.checked_add(usize::try_from(segment.p_memsz).ok()?)?;
    let start = start - start % page;
    is_unwritten.then_some((start, end.checked_next_multiple_of(page)? - start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::FileExt;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn file(len: u64) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(len).unwrap();
        file
    }

    #[test]
    fn two_mappings_of_a_file_are_one_memory() {
        let file = file(64);
        let (a, b) = (Mapping::of(&file, 64).unwrap(), Mapping::of(&file, 64).unwrap());
        a.store_u32(4, 0x0102_0304);
        a.store_u64(8, 1000);
        assert_eq!(b.load_u32(4), 0x0102_0304);
        assert_eq!(b.add_u64(8, 24), 1000);
        assert_eq!(a.load_u64(8), 1024);
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, 4).unwrap();
        assert_eq!(bytes, [4, 3, 2, 1, 0, 4, 0, 0], "little-endian, and in the file too");
    }

    #[test]
    fn counters_stop_at_zero() {
        let map = Mapping::of(&file(16), 16).unwrap();
        map.store_u64(8, 5);
        assert_eq!(map.sub_u64_saturating(8, 3), 5);
        assert_eq!(map.sub_u64_saturating(8, 3), 2);
        assert_eq!(map.load_u64(8), 0);
        assert_eq!(map.load_u64(0), 0, "the neighbour is left alone");
    }

    #[test]
    fn a_field_is_claimed_once() {
        let map = Mapping::of(&file(16), 16).unwrap();
        assert_eq!(map.compare_exchange_i32(0, 0, -7), Ok(0));
        assert_eq!(map.compare_exchange_i32(0, 0, 8), Err(-7));
        assert_eq!(map.compare_exchange_u32(4, 0, 9), Ok(0));
        assert_eq!(map.compare_exchange_u32(4, 0, 10), Err(9));
    }

    #[test]
    fn text_goes_anywhere() {
        let map = Mapping::of(&file(16), 16).unwrap();
        map.write_bytes(3, b"python3\0");
        let mut read = [0; 7];
        map.read_bytes(3, &mut read);
        assert_eq!(&read, b"python3");
    }

    #[test]
    fn many_writers_lose_nothing() {
        let map = Mapping::of(&file(8), 8).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| _ = map.add_u64(0, 3)));
            }
        });
        assert_eq!(map.load_u64(0), 12_000);
    }

    #[test]
    fn only_a_file_that_is_long_enough_is_mapped() {
        assert_eq!(Mapping::of(&file(15), 16).unwrap_err().to_string(), "the file has 15 bytes, 16 are needed");
        let folder = File::open("/").unwrap();
        assert_eq!(Mapping::of(&folder, 16).unwrap_err().to_string(), "only a regular file can be mapped");
    }

    #[test]
    fn reaching_outside_or_across_a_field_panics() {
        // Longer file, shorter mapping: it is the mapping that counts.
        let map = Mapping::of(&file(64), 16).unwrap();
        let panics = |f: &dyn Fn()| catch_unwind(AssertUnwindSafe(f)).is_err();
        assert!(panics(&|| _ = map.load_u64(16)));
        assert!(panics(&|| _ = map.load_u64(12)));
        assert!(panics(&|| map.store_u32(2, 0)));
        assert!(panics(&|| map.write_bytes(15, b"ab")));
        assert!(panics(&|| map.read_bytes(usize::MAX, &mut [0, 0])));
        assert!(!panics(&|| _ = map.load_u32(12)));
    }

    #[test]
    fn a_held_file_is_seen_in_the_maps() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(4096).unwrap();
        let path = file.path().to_str().unwrap();
        let mapped = || fs::read_to_string("/proc/self/maps").unwrap().contains(path);
        let held = hold(file.as_file()).unwrap();
        assert!(mapped());
        drop(held);
        assert!(!mapped());
    }

    #[test]
    fn only_segments_that_nothing_writes_to_are_given_back() {
        let pages = |p_type, p_flags, p_vaddr, p_memsz| {
            let (p_offset, p_paddr, p_filesz, p_align) = (0, 0, 0, 0);
            let segment = libc::Elf64_Phdr { p_type, p_flags, p_offset, p_vaddr, p_paddr, p_filesz, p_memsz, p_align };
            unwritten_pages(0x10_0000, &segment, 0x1000)
        };
        let (read, write, execute) = (libc::PF_R, libc::PF_W, libc::PF_X);
        assert_eq!(pages(libc::PT_LOAD, read, 0, 0x2f00), Some((0x10_0000, 0x3000)));
        assert_eq!(pages(libc::PT_LOAD, read | execute, 0x3490, 0x1b80), Some((0x10_3000, 0x3000)));
        assert_eq!(pages(libc::PT_LOAD, read | write, 0x6cd0, 0x100), None, "it may have been relocated");
        assert_eq!(pages(libc::PT_NOTE, read, 0x340, 0x20), None, "part of another one");
        assert_eq!(pages(libc::PT_LOAD, read, u64::MAX, 1), None);
    }

    #[test]
    fn a_program_goes_on_without_the_code_that_it_gave_back() {
        let resident = || -> u64 {
            let status = fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("RssFile:")).unwrap();
            line.trim().trim_end_matches(" kB").parse().unwrap()
        };
        let before = resident();
        forget_code();
        assert!(resident() < before);
    }
}
