//! A book with its table of the same moment, though its process goes on writing.
//!
//! A table takes longer to copy than two events are apart. Its journal says which slots the events since have changed: these are
//! copied again, which takes less time, and so on, until no event has come meanwhile.

use super::{LOOKS, Pages, fill, read_trying};
use crate::book::contents::{Book, BookError, BufferTable};
use crate::book::free_blocks::{BANKED, Span};
use crate::book::layout::{NO_SLOT, SEVERAL_SLOTS, SLOT, TABLE, entry_at, slot_at, unpack};
use crate::book::reader::records::{SlotContent, each_word, entry, words};
use std::collections::BTreeSet;
use std::io;

/// How often a moment is tried for.
const CATCHES: u32 = 256;
/// How often the table is copied as a whole.
const COPIES: u32 = 4;
/// Slots that are copied again, all in all.
const AGAIN: usize = 1 << 16;

/// Copies a book and all its buffers. They are of one moment, unless the table says that it was moved: then the counters are made to
/// agree with the buffers, each of which was there during the copy.
pub fn whole(source: impl Fn(usize, &mut [u8]) -> io::Result<usize>) -> Result<(Book, BufferTable), BookError> {
    let mut buffers = Vec::new();
    let (mut book, table, spans) = copied(&source, |buffer| buffers.push(buffer))?;
    if table.moved {
        book.recount(&buffers);
    } else {
        book.fill_in_blocks(spans);
    }
    Ok((book, BufferTable { buffers, ..table }))
}

/// Copies everything but the table, and takes the largest free blocks from it where the allocator was not asked since.
pub fn read_with_banks(source: impl Fn(usize, &mut [u8]) -> io::Result<usize>) -> Result<Book, BookError> {
    let book = read_trying(&source, super::MOMENTS, super::PATIENCE)?;
    if !book.needs_spans().contains(&true) {
        return Ok(book);
    }
    let (mut caught, table, spans) = copied(&source, drop)?;
    if table.moved {
        return Ok(book);
    }
    caught.fill_in_blocks(spans);
    Ok(caught)
}

/// A book, whether its table is of the same moment, and where the buffers are in the banks that need it.
fn copied(
    source: &impl Fn(usize, &mut [u8]) -> io::Result<usize>,
    mut each: impl FnMut(crate::book::BookBuffer),
) -> Result<(Book, BufferTable, [Vec<Span>; BANKED]), BookError> {
    let (book, copy, moved) = caught(source)?;
    let mut table = BufferTable { moved, ..BufferTable::default() };
    let mut spans: [Vec<Span>; BANKED] = Default::default();
    let needed = book.needs_spans();
    let mut pages = Pages { source, copy: &[], looks: LOOKS, torn: None, total: 0 };
    let (mut total, mut taken) = (0u64, 0);
    for (slot, bytes) in copy.chunks_exact(SLOT).enumerate() {
        let at_first = entry(&words(bytes), slot_at(slot), &book);
        let content = match at_first {
            SlotContent::Torn if moved => pages.slot(slot, &book)?,
            content => content,
        };
        match content {
            SlotContent::Free => {}
            SlotContent::Taken(buffer, sum) => {
                taken += 1;
                total = total.wrapping_add(sum);
                if let Some(spans) = spans.get_mut(buffer.kind as usize).filter(|_| needed[buffer.kind as usize]) {
                    let (address, length) = (buffer.address, buffer.per_bank);
                    spans.push(Span { address, length, chips: buffer.chips, banks: buffer.banks });
                }
                each(buffer);
            }
            SlotContent::Torn => table.unreadable += 1,
        }
    }
    if !moved && taken + table.unreadable != book.tabled {
        return Err(BookError::Impossible(TABLE, "another number of buffers than the book has"));
    }
    if !moved && table.unreadable == 0 && total != book.table {
        return Err(BookError::Impossible(TABLE, "other buffers than the book has"));
    }
    Ok((book, table, spans))
}

/// A book, its table as bytes, and whether events came between the two.
fn caught(source: &impl Fn(usize, &mut [u8]) -> io::Result<usize>) -> Result<(Book, Vec<u8>, bool), BookError> {
    let mut book = read_trying(source, super::MOMENTS, super::PATIENCE)?;
    let mut copy = TableCopy::of(source, &book)?;
    let (mut copies, mut again) = (1, AGAIN);
    for _ in 0..CATCHES {
        let mut pages = Pages { source, copy: &[], looks: LOOKS, torn: None, total: 0 };
        if book.is_of_one_moment && pages.begun()? == Some(book.events) {
            return Ok((book, copy.bytes, false));
        }
        match read_trying(source, 1, 0) {
            Ok(later) => book = later,
            // The writer was caught twice.
            Err(BookError::Broken(_)) => continue,
            Err(error) => return Err(error),
        }
        if !copy.follow(source, &book, &mut again)? {
            if copies == COPIES {
                break;
            }
            copies += 1;
            copy = TableCopy::of(source, &book)?;
        }
    }
    Ok((book, copy.bytes, true))
}

/// The slots of a table, as of some event or later.
struct TableCopy {
    bytes: Vec<u8>,
    event: u64,
}

impl TableCopy {
    fn of(source: &impl Fn(usize, &mut [u8]) -> io::Result<usize>, book: &Book) -> Result<TableCopy, BookError> {
        let mut copy = TableCopy { bytes: Vec::new(), event: book.events };
        copy.grow(source, book)?;
        Ok(copy)
    }

    /// Copies the slots that the book has and the copy has not.
    fn grow(&mut self, source: &impl Fn(usize, &mut [u8]) -> io::Result<usize>, book: &Book) -> Result<(), BookError> {
        let from = self.bytes.len();
        self.bytes.resize(from.max(book.slots as usize * SLOT), 0);
        let length = fill(source, TABLE + from, &mut self.bytes[from..])?;
        if from + length < self.bytes.len() {
            return Err(BookError::Impossible(TABLE + from + length, "the table ends early"));
        }
        Ok(())
    }

    /// Copies again what has changed up to the last event of a book. `false` when its journal does not say what that is.
    fn follow(
        &mut self,
        source: &impl Fn(usize, &mut [u8]) -> io::Result<usize>,
        book: &Book,
        again: &mut usize,
    ) -> Result<bool, BookError> {
        let Some(count) = book.events.checked_sub(self.event).filter(|count| *count < u64::from(book.journal)) else {
            return Ok(false);
        };
        self.grow(source, book)?;
        let Some(changed) = changed(source, book, self.event, count)? else { return Ok(false) };
        for slot in changed {
            let from = slot as usize * SLOT;
            let Some(into) = self.bytes.get_mut(from..from + SLOT).filter(|_| *again > 0) else { return Ok(false) };
            *again -= 1;
            fill(source, TABLE + from, into)?;
        }
        self.event = book.events;
        Ok(true)
    }
}

/// The slots that so many events after one have changed, if the journal still has all of them.
fn changed(
    source: &impl Fn(usize, &mut [u8]) -> io::Result<usize>,
    book: &Book,
    after: u64,
    count: u64,
) -> Result<Option<BTreeSet<u32>>, BookError> {
    let mut slots = BTreeSet::new();
    let mut event = after + 1;
    while event <= after + count {
        // Up to the end of the journal, where it goes on at its beginning.
        let room = u64::from(book.journal) - event % u64::from(book.journal);
        let entries = room.min(after + count + 1 - event);
        let mut bytes = vec![0; entries as usize * 8];
        if fill(source, entry_at(book.capacity, book.journal, event), &mut bytes)? < bytes.len() {
            return Ok(None);
        }
        for (number, entry) in (event..).zip(each_word(&bytes)) {
            match unpack(entry) {
                (of, SEVERAL_SLOTS) if of == number as u32 => return Ok(None),
                (of, NO_SLOT) if of == number as u32 => {}
                (of, slot) if of == number as u32 => _ = slots.insert(slot),
                _ => return Ok(None),
            }
        }
        event += entries;
    }
    Ok(Some(slots))
}
