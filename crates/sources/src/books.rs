//! The book that a process keeps of its device memory, where an agent is in it.
//!
//! A book is a memfd that its process has mapped and open. The map shows that there is one, `/proc/<pid>/fd` leads to it.
//! It is another process's word: whatever does not add up is a reason, never a number.

use crate::activity::ProcessActivity;
use crate::dir::{Dir, reason};
use crate::maps::{self, BOOK, Inode, Maps};
use crate::shm::{inode, inode_of};
use ledger::book::{self, BankReading, Book, BookChip, BookError, BufferTable, MemoryKind};
use model::{BankFigures, Bytes, Exact, KindFigures};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub(crate) struct FoundBook {
    pub path: PathBuf,
    inode: Inode,
    /// Absent when the process has closed it.
    file: Option<Arc<File>>,
    /// What is in it, or why that cannot be said.
    pub book: Result<Book, String>,
    /// What the process did on its chips. Absent where its agent does not record that.
    pub activity: Result<Option<ProcessActivity>, String>,
}

/// Who a process is in its own PID namespace: its number, and when it began in clock ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessId {
    pub pid: u32,
    pub start_ticks: u64,
}

/// The book that the process keeps, if its map shows one. `Err` when it may not be looked for.
pub(crate) fn find(
    process: &Dir,
    maps: &Maps,
    who: ProcessId,
    earlier: Option<&FoundBook>,
) -> Result<Option<FoundBook>, Errno> {
    if maps.books.is_empty() {
        return Ok(None);
    }
    if let Some(earlier) = earlier.filter(|earlier| maps.books.contains_key(&earlier.inode)) {
        return Ok(Some(earlier.again()));
    }
    // One that it keeps for itself; a book that it inherited or was handed is another's.
    let own = |found: &FoundBook| !matches!(&found.book, Ok(book) if !is_of(book, who));
    let found = search(process, |inode| maps.books.contains_key(&inode), own)?;
    let closed = || FoundBook {
        path: process.path_of("fd"),
        inode: Inode { device: (0, 0), inode: 0 },
        file: None,
        book: Err("the process has closed the file of its memory book: only root can read it".into()),
        activity: Ok(None),
    };
    let found = found.or_else(|| mapped(process, maps).filter(own)).unwrap_or_else(closed);
    Ok((found.book.is_ok() || !found.is_being_made()).then_some(found))
}

/// The book of a process that has closed its file, through the mapping. Only root may open that.
fn mapped(process: &Dir, maps: &Maps) -> Option<FoundBook> {
    let folder = process.open_dir("map_files").ok()?;
    maps.books.iter().take(LOOKS).find_map(|(book, range)| {
        let file = folder.open_linked(range.as_ref(), |stat| inode(stat) == *book).ok()?;
        let file = Arc::new(File::from(file));
        Some(FoundBook::read_now(folder.path_of(range), *book, file))
    })
}

/// The whole book of one process, for who asks about that one.
pub(crate) fn whole(process: &Dir, who: ProcessId) -> Result<Option<(Book, BufferTable)>, String> {
    let path = process.path().display();
    // One that is not exact is his to judge.
    let own = |found: &FoundBook| found.read().is_ok_and(|book| is_of(&book, who));
    let found = search(process, |_| true, own).map_err(|error| format!("{path}/fd: {}", reason(error)))?;
    let found = found.or_else(|| by_map(process).filter(own));
    let Some((found, file)) = found.and_then(|found| Some((found.path.clone(), found.file?))) else { return Ok(None) };
    book::whole(book::of_file(&file)).map(Some).map_err(|why| format!("{}: {why}", found.display()))
}

pub(crate) fn open(process: &Dir, who: ProcessId) -> Option<Arc<File>> {
    let own = |found: &FoundBook| found.book.as_ref().is_ok_and(|book| is_of(book, who));
    search(process, |_| true, own).ok()?.or_else(|| by_map(process).filter(own))?.file
}

/// As [`mapped`], for who has not read the map.
fn by_map(process: &Dir) -> Option<FoundBook> {
    let mut bytes = Vec::new();
    process.read_all("maps", &mut bytes).ok()?;
    mapped(process, &maps::parse(&bytes))
}

impl FoundBook {
    fn read_now(path: PathBuf, inode: Inode, file: Arc<File>) -> FoundBook {
        let book = read(&file);
        let activity = book.as_ref().map_or(Ok(None), |book| ProcessActivity::of(book::of_file(&file), book));
        FoundBook { path, inode, book, activity: activity.map_err(|error| error.to_string()), file: Some(file) }
    }

    /// The same book as it is now.
    fn again(&self) -> FoundBook {
        match &self.file {
            Some(file) => FoundBook::read_now(self.path.clone(), self.inode, file.clone()),
            None => self.clone(),
        }
    }

    /// Whether its process has the file and not yet written to it. The next sample finds it.
    fn is_being_made(&self) -> bool {
        self.file.is_some() && matches!(self.read(), Err(BookError::NotYetWritten))
    }

    /// What is in it, exact or not.
    fn read(&self) -> Result<Book, BookError> {
        book::read(|offset, into| self.file.as_ref().map_or(Ok(0), |file| book::of_file(file)(offset, into)))
    }
}

fn is_of(book: &Book, who: ProcessId) -> bool {
    book.pid == who.pid && book.start_ticks.is_none_or(|ticks| ticks == who.start_ticks)
}

/// Looks for a book among the open files of a process. An honest process has one or two, so a few looks are enough.
fn search(
    process: &Dir,
    wanted: impl Fn(Inode) -> bool,
    own: impl Fn(&FoundBook) -> bool,
) -> Result<Option<FoundBook>, Errno> {
    let (mut own_one, mut seen) = (None, BTreeSet::new());
    let folder = process.open_dir("fd")?;
    folder.list(|name| {
        if own_one.is_none() && seen.len() < LOOKS && folder.read_link(name).is_ok_and(|link| link == BOOK) {
            if let Ok(file) = folder.open_linked(name, |stat| wanted(inode(stat))) {
                if let Ok(inode) = inode_of(&file) {
                    if seen.insert(inode) {
                        let file = Arc::new(File::from(file));
                        own_one = Some(FoundBook::read_now(folder.path_of(name), inode, file)).filter(&own);
                    }
                }
            }
        }
    })?;
    Ok(own_one)
}

/// The most books of one process that are looked at.
const LOOKS: usize = 16;

fn read(file: &File) -> Result<Book, String> {
    let book = book::read_with_banks(book::of_file(file)).map_err(|error: BookError| error.to_string())?;
    match &book.remark {
        Some(remark) if book.is_inexact => Err(format!("is not exact: {remark}")),
        None if book.is_inexact => Err("is not exact: an event was lost".into()),
        _ => Ok(book),
    }
}

/// What a book says of one chip, in plain data. `now` is in nanoseconds since 1970.
pub(crate) fn exact(chip: &BookChip, now: u64) -> Exact {
    let figures = |kind: MemoryKind| {
        let counter = chip.counters[kind as usize];
        let banks = chip.banks.get(kind as usize).copied().flatten();
        (counter.allocations > 0 || banks.is_some()).then(|| KindFigures {
            bytes: Bytes(counter.bytes),
            logical_bytes: Bytes(counter.logical),
            buffers: counter.buffers,
            peak_bytes: Bytes(counter.peak),
            allocations: counter.allocations,
            frees: counter.frees,
            banks: banks.map(|bank| bank_figures(&bank, now)),
        })
    };
    Exact {
        dram: figures(MemoryKind::Dram),
        l1: figures(MemoryKind::L1),
        l1_small: figures(MemoryKind::L1Small),
        trace: figures(MemoryKind::Trace),
        cb: figures(MemoryKind::Cb),
        kernel: figures(MemoryKind::Kernel),
    }
}

fn bank_figures(bank: &BankReading, now: u64) -> BankFigures {
    let age = || (now.saturating_sub(bank.time) / 1_000_000) as f64 / 1000.0;
    BankFigures {
        count: bank.banks,
        allocatable_bytes: Bytes(bank.allocatable),
        allocated_bytes: Bytes(bank.allocated),
        free_bytes: Bytes(bank.free),
        largest_free_bytes: bank.largest_free.map(Bytes),
        fragmentation: bank.fragmentation().map(|share| (share * 10_000.0).round() / 10_000.0),
        age_seconds: bank.largest_free.is_none().then(age),
    }
}
