//! The sizes of an area, from which its bar is drawn.

use crate::bar::{Fill, Sizes};
use crate::memory::view::{Area, Kind};
use model::Bytes;

/// Those of an area, where they are known.
pub fn of(area: &Area) -> Option<Sizes> {
    of_chip(area).or_else(|| of_bank(area)).filter(|sizes| sizes.total > 0)
}

fn of_chip(area: &Area) -> Option<Sizes> {
    area.used_bytes.or(area.unverified_bytes)?;
    let first = area.buffers()?;
    let total = area.total_bytes.or_else(|| {
        first.allocatable()?;
        Some(area.kinds.iter().filter_map(|kind| kind.allocatable()).sum())
    })?;
    let pieces = first.banks.as_ref().and_then(|banks| {
        let pieces = banks.free_bytes?.0.checked_sub(banks.largest_free_bytes?.0)?;
        pieces.checked_mul(u64::from(banks.count?))
    });
    let bytes = |bytes: Option<Bytes>| bytes.map_or(0, |bytes| bytes.0);
    Some(Sizes {
        total: total.0,
        used: used_by_kind(area),
        stale: bytes(area.stale_bytes),
        unverified: bytes(area.unverified_bytes),
        pieces: pieces.unwrap_or(0),
        ring: bytes(area.kernel_ring_bytes),
        reserved: bytes(area.reserved_bytes),
        // All that is used was at least as much as any of its kinds.
        peak: area
            .kinds
            .iter()
            .filter(|kind| kind.is_used())
            .filter_map(|kind| kind.peak_bytes)
            .max()
            .map(|peak| peak.0),
        is_of_bank: false,
    })
}

fn of_bank(area: &Area) -> Option<Sizes> {
    let banks = area.buffers()?.banks.as_ref()?;
    let all = area.kinds.iter().filter_map(|kind| kind.banks.as_ref());
    banks.allocated_bytes?;
    banks.allocatable_bytes?;
    Some(Sizes {
        total: all.filter_map(|banks| banks.allocatable_bytes).fold(0, |sum, bytes| bytes.0.saturating_add(sum)),
        used: by_kind(area, |kind| kind.banks.as_ref()?.allocated_bytes),
        pieces: banks.free_bytes?.0.saturating_sub(banks.largest_free_bytes?.0),
        is_of_bank: true,
        ..Sizes::default()
    })
}

/// What is used by kind. What is used beyond the known kinds is drawn as buffers.
fn used_by_kind(area: &Area) -> Vec<(Fill, u64)> {
    let mut used = by_kind(area, |kind| kind.used_bytes);
    let known: u64 = used.iter().map(|(_, bytes)| bytes).fold(0, |sum, bytes| sum.saturating_add(*bytes));
    let rest = area.used_bytes.map_or(0, |all| all.0.saturating_sub(known));
    match used.first_mut() {
        Some((Fill::Buffers, bytes)) => *bytes = bytes.saturating_add(rest),
        _ if rest > 0 => used.insert(0, (Fill::Buffers, rest)),
        _ => {}
    }
    used
}

fn by_kind(area: &Area, bytes: fn(&Kind) -> Option<Bytes>) -> Vec<(Fill, u64)> {
    let of_kind = |kind: &Kind| (Fill::of_kind(&kind.kind), bytes(kind).map_or(0, |bytes| bytes.0));
    area.kinds.iter().filter(|kind| kind.is_used()).map(of_kind).collect()
}
