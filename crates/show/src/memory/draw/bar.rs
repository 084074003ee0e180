//! A bar of several parts: what is used, by kind; what is free, in one piece or not; what is reserved.

use crate::figures::part_tone;
use crate::memory::view::{Area, Kind};
use crate::style::{Line, Style, Tone};
use model::Bytes;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// Buffers of the area's own kind.
    Buffers,
    /// Traces in DRAM, circular buffers in L1.
    Second,
    Third,
    /// Free, as far as a single buffer can have it.
    Free,
    /// Free, but in smaller pieces.
    Pieces,
    KernelRing,
    /// What no allocator hands out.
    Reserved,
    /// Reported by a process that does not hold the chip.
    Unverified,
    /// Where the peak was.
    Peak,
}

impl Fill {
    pub fn of_kind(kind: &str) -> Fill {
        match kind {
            "trace" | "cb" => Fill::Second,
            "l1_small" => Fill::Third,
            _ => Fill::Buffers,
        }
    }

    pub fn glyph(self, style: &Style) -> char {
        let [unicode, ascii] = match self {
            Fill::Buffers => ['█', '#'],
            Fill::Second => ['▓', '%'],
            Fill::Third => ['▒', '+'],
            Fill::Free => ['░', '.'],
            Fill::Pieces => ['·', ':'],
            Fill::KernelRing => ['▚', 'k'],
            Fill::Reserved => ['╱', '/'],
            Fill::Unverified => ['▞', '?'],
            Fill::Peak => ['┃', '|'],
        };
        if style.unicode { unicode } else { ascii }
    }

    /// Its tone, where what is used has this one.
    pub fn tone(self, used: Tone) -> Tone {
        match self {
            Fill::Buffers => used,
            Fill::Second => Tone::Second,
            Fill::Third => Tone::Third,
            Fill::Peak => Tone::Strong,
            Fill::Free | Fill::Pieces => Tone::Free,
            Fill::KernelRing | Fill::Reserved => Tone::Reserved,
            Fill::Unverified => Tone::Warning,
        }
    }
}

/// The sizes that a bar is drawn from: of the whole chip, or of one bank where only that is known.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Sizes {
    pub total: u64,
    pub used: Vec<(Fill, u64)>,
    /// Free, but not for a single buffer.
    pub pieces: u64,
    pub ring: u64,
    /// What no allocator hands out.
    pub reserved: u64,
    /// Not part of what is used, and drawn over what is free.
    pub unverified: u64,
    pub peak: Option<u64>,
    pub is_of_bank: bool,
}

impl Sizes {
    /// Those of an area, where they are known.
    pub fn of(area: &Area) -> Option<Sizes> {
        Sizes::of_chip(area).or_else(|| Sizes::of_bank(area)).filter(|sizes| sizes.total > 0)
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
        Some(Sizes {
            total: total.0,
            used: used_by_kind(area),
            pieces: pieces.unwrap_or(0),
            ring: area.kernel_ring_bytes.map_or(0, |bytes| bytes.0),
            reserved: area.reserved_bytes.map_or(0, |bytes| bytes.0),
            unverified: area.unverified_bytes.map_or(0, |bytes| bytes.0),
            peak: first.peak_bytes.map(|bytes| bytes.0),
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

    pub fn all_used(&self) -> u64 {
        self.used.iter().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }

    pub fn part(&self) -> f64 {
        self.all_used() as f64 / self.total as f64
    }
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

/// The bar. Where nothing is known it is drawn neither full nor empty.
pub fn pieces(sizes: Option<&Sizes>, columns: usize, style: &Style) -> Line {
    let Some(sizes) = sizes else { return vec![(style.glyphs().unknown.to_string().repeat(columns), Tone::Faint)] };
    let used = part_tone(sizes.part(), Tone::Buffers);
    let runs = cells(sizes, columns);
    let piece = |run: &[Fill]| (run.iter().map(|fill| fill.glyph(style)).collect(), run[0].tone(used));
    runs.chunk_by(|a, b| a == b).map(piece).collect()
}

fn cells(sizes: &Sizes, columns: usize) -> Vec<Fill> {
    let width = |bytes: u64| match bytes {
        0 => 0,
        // Something is never drawn as nothing.
        bytes => ((bytes as f64 / sizes.total as f64 * columns as f64).round() as usize).max(1).min(columns),
    };
    let used = sizes.used.iter().map(|(fill, bytes)| (*fill, width(*bytes)));
    let mut parts: Vec<(Fill, usize)> = used.collect();
    let at = parts.len();
    parts.push((Fill::KernelRing, width(sizes.ring)));
    parts.push((Fill::Reserved, width(sizes.reserved)));
    // What rounding up has made too much is taken from the widest.
    let mut taken: usize = parts.iter().map(|(_, width)| width).sum();
    while taken > columns {
        let Some((_, widest)) = parts.iter_mut().max_by_key(|(_, width)| *width) else { break };
        *widest -= 1;
        taken -= 1;
    }
    let free = columns - taken;
    let unverified = width(sizes.unverified).min(free);
    let free = free - unverified;
    let pieces = width(sizes.pieces).min(free);
    parts.splice(at..at, [(Fill::Unverified, unverified), (Fill::Free, free - pieces), (Fill::Pieces, pieces)]);
    let mut cells: Vec<Fill> = parts.into_iter().flat_map(|(fill, width)| std::iter::repeat_n(fill, width)).collect();
    let peak = sizes.peak.filter(|peak| *peak > 0).map(|peak| width(peak).saturating_sub(1));
    // A peak that is now needs no mark.
    if let Some(cell) = peak.and_then(|at| cells.get_mut(at)).filter(|cell| **cell != Fill::Buffers) {
        *cell = Fill::Peak;
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(sizes: Option<&Sizes>, columns: usize, style: &Style) -> String {
        style.painted(&pieces(sizes, columns, style))
    }

    const STYLE: Style = Style { columns: 80, rows: None, color: false, unicode: true };

    fn drawn(sizes: Sizes) -> String {
        bar(Some(&Sizes { total: 100, ..sizes }), 20, &STYLE)
    }

    fn used(bytes: &[u64]) -> Vec<(Fill, u64)> {
        [Fill::Buffers, Fill::Second, Fill::Third].into_iter().cycle().zip(bytes.iter().copied()).collect()
    }

    #[test]
    fn a_bar_shows_kinds_free_pieces_and_what_is_reserved() {
        let sizes = Sizes { used: used(&[30, 10, 5]), pieces: 15, ring: 5, reserved: 10, ..Sizes::default() };
        assert_eq!(drawn(sizes.clone()), "██████▓▓▒░░░░░···▚╱╱");
        assert_eq!(drawn(Sizes { peak: Some(55), ..sizes.clone() }), "██████▓▓▒░┃░░░···▚╱╱");
        assert_eq!(drawn(Sizes { peak: Some(30), ..sizes.clone() }), drawn(sizes.clone()), "it is at its peak");
        assert_eq!(
            bar(Some(&Sizes { total: 100, ..sizes }), 20, &Style { unicode: false, ..STYLE }),
            "######%%+.....:::k//"
        );
    }

    #[test]
    fn what_could_not_be_verified_is_hatched_and_takes_no_room_of_what_is_used() {
        let sizes = Sizes { used: used(&[30]), unverified: 20, ..Sizes::default() };
        assert_eq!(drawn(sizes.clone()), "██████▞▞▞▞░░░░░░░░░░");
        assert_eq!(drawn(Sizes { unverified: 900, ..sizes }), format!("{}{}", "█".repeat(6), "▞".repeat(14)));
    }

    #[test]
    fn a_bar_shows_unknown_nothing_little_and_too_much() {
        assert_eq!(bar(None, 8, &STYLE), "········");
        assert_eq!(drawn(Sizes { used: used(&[0, 0]), ..Sizes::default() }), "░".repeat(20));
        assert_eq!(drawn(Sizes { used: used(&[1, 0]), ..Sizes::default() }), format!("█{}", "░".repeat(19)));
        assert_eq!(
            drawn(Sizes { used: used(&[900, 1]), reserved: 1, ..Sizes::default() }),
            format!("{}▓╱", "█".repeat(18))
        );
    }

    proptest::proptest! {
        #[test]
        fn a_bar_is_as_wide_as_it_was_asked_to_be(total in 1u64.., bytes: Vec<u64>, pieces: u64, reserved: u64, peak: Option<u64>, columns in 0usize..90) {
            let sizes = Sizes { total, used: used(&bytes), pieces, reserved, peak, ..Sizes::default() };
            assert_eq!(crate::text::width(&bar(Some(&sizes), columns, &STYLE)), columns);
        }
    }
}
