//! A whole book in plain data.

use crate::books::exact;
use ledger::book::{Book, BookBuffer, BufferTable};
use model::{Bytes, ChipMemory, LiveBuffer, ProcessMemory, Timestamp, chip_text};
use std::time::{SystemTime, UNIX_EPOCH};

/// All that a book says now, with its buffers if they were copied.
pub fn process_memory(book: &Book, table: Option<&BufferTable>) -> ProcessMemory {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let chips = book.chips.iter().map(|chip| ChipMemory {
        device_id: chip.device_id,
        unique_id: chip.unique_id.map(chip_text),
        left_bytes: Bytes(chip.left_bytes),
        kinds: exact(chip, now),
    });
    let buffers = table.map(|table| {
        let mut buffers: Vec<LiveBuffer> = table.buffers.iter().map(|buffer| live_buffer(buffer, book)).collect();
        buffers.sort_by_key(|buffer| (std::cmp::Reverse(buffer.bytes), buffer.id));
        buffers
    });
    ProcessMemory {
        pid: book.pid,
        agent: book.producer.clone(),
        exact: !book.is_inexact,
        remark: book.remark.clone(),
        closed: book.is_closed,
        began_at: timestamp(book.created),
        changed_at: timestamp(book.changed),
        events: book.events,
        chips: chips.collect(),
        buffers,
        unlisted_buffers: book.untabled,
    }
}

fn live_buffer(buffer: &BookBuffer, book: &Book) -> LiveBuffer {
    let device_id = |chip: u8| book.chips.get(usize::from(chip)).map(|chip| chip.device_id);
    LiveBuffer {
        id: buffer.id,
        device_ids: buffer.chips.iter().filter_map(device_id).collect(),
        kind: buffer.kind.name().into(),
        bytes: Bytes(buffer.bytes()),
        logical_bytes: Bytes(buffer.logical),
        bank_bytes: Bytes(buffer.per_bank),
        banks: buffer.banks,
        address: buffer.address,
        page_bytes: Bytes(buffer.page),
        layout: buffer.layout,
        allocated_at: timestamp(buffer.time),
        thread: buffer.thread,
        label: buffer.label.as_deref().map(str::to_owned),
    }
}

fn timestamp(nanoseconds: u64) -> Timestamp {
    Timestamp((nanoseconds / 1_000_000) as i64)
}
