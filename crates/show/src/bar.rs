//! The bars of `smi`, `mem` and `top`: what is used, by kind; what is still attributed to exited processes; what is free, in one
//! piece or not; what is reserved. One function draws them all, each part proportional within half a cell.

use crate::figures::part_tone;
use crate::style::{Line, Style, Tone};
use model::{Bytes, Memory, Unverified};

/// The parts of a bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// Buffers of the area's own kind, or all that is used.
    Buffers,
    /// Traces in DRAM, circular buffers in L1.
    Second,
    /// L1_SMALL in L1.
    Third,
    /// Used, but less than half a cell.
    Little,
    /// Still attributed to exited processes.
    Stale,
    /// The same, but less than half a cell.
    LittleStale,
    /// Free, as far as a single buffer can have it.
    Free,
    /// Free, but in smaller pieces.
    Pieces,
    /// The reservation of each core for kernel code.
    KernelRing,
    /// What no allocator hands out.
    Reserved,
    /// Reported by a process that does not hold the chip.
    Unverified,
    /// Where the peak was.
    Peak,
}

impl Fill {
    /// The part that a memory kind is drawn as.
    pub fn of_kind(kind: &str) -> Fill {
        match kind {
            "trace" | "cb" => Fill::Second,
            "l1_small" => Fill::Third,
            _ => Fill::Buffers,
        }
    }

    /// The character of this part.
    pub fn glyph(self, style: &Style) -> char {
        let glyphs = style.glyphs();
        let [unicode, ascii] = match self {
            Fill::Buffers => return glyphs.full,
            Fill::Little => return glyphs.sliver,
            Fill::Free => return glyphs.empty,
            Fill::Second => ['▓', '%'],
            Fill::Third => ['▒', '+'],
            Fill::Stale => ['╳', 'x'],
            Fill::LittleStale => ['┊', ','],
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
            Fill::Buffers | Fill::Little => used,
            Fill::Second => Tone::Second,
            Fill::Third => Tone::Third,
            Fill::Peak => Tone::Strong,
            Fill::Free | Fill::Pieces => Tone::Free,
            Fill::KernelRing | Fill::Reserved => Tone::Reserved,
            Fill::Stale | Fill::LittleStale | Fill::Unverified => Tone::Warning,
        }
    }
}

/// The sizes that a bar is drawn from: of the whole chip, or of one bank where only that is known.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Sizes {
    /// Size of the whole, in bytes.
    pub total: u64,
    /// Bytes in use, part by part.
    pub used: Vec<(Fill, u64)>,
    /// Not part of what is used, and drawn behind it.
    pub stale: u64,
    /// The same.
    pub unverified: u64,
    /// Free, but not for a single buffer.
    pub pieces: u64,
    /// The reservation for kernel code.
    pub ring: u64,
    /// What no allocator hands out.
    pub reserved: u64,
    /// The most that is known to have been used at one time.
    pub peak: Option<u64>,
    /// True if all sizes are of one bank.
    pub is_of_bank: bool,
}

/// So finely a share is divided.
const SHARE: f64 = (1u64 << 32) as f64;

impl Sizes {
    /// Something that is filled to a part of one.
    pub fn of_share(share: f64) -> Sizes {
        let filled = (share.clamp(0.0, 1.0) * SHARE) as u64;
        // Something stays something.
        let filled = filled.max(u64::from(share > 0.0));
        Sizes { total: SHARE as u64, used: vec![(Fill::Buffers, filled)], ..Sizes::default() }
    }

    /// Of a memory of which only the sums are known.
    pub fn of_sums(used: Option<Bytes>, total: Option<Bytes>, stale: Bytes) -> Option<Sizes> {
        let total = total.filter(|total| total.0 > 0)?.0;
        Some(Sizes { total, used: vec![(Fill::Buffers, used?.0)], stale: stale.0, ..Sizes::default() })
    }

    /// The DRAM of a device, all that is used as one part.
    pub fn of_dram(memory: &Memory) -> Option<Sizes> {
        let unverified = unverified(memory, |all| all.dram_bytes);
        let used = memory.dram_used.or(unverified.map(|_| Bytes(0)));
        let sizes = Sizes::of_sums(used, memory.dram_total, memory.stale_dram())?;
        Some(Sizes { unverified: unverified.map_or(0, |bytes| bytes.0), ..sizes })
    }

    /// The L1 of a device, likewise.
    pub fn of_l1(memory: &Memory) -> Option<Sizes> {
        let unverified = unverified(memory, |all| all.l1_bytes);
        let used = memory.l1_used.or(unverified.map(|_| Bytes(0)));
        let sizes = Sizes::of_sums(used, memory.l1_total, memory.stale_l1.unwrap_or_default())?;
        Some(Sizes { unverified: unverified.map_or(0, |bytes| bytes.0), ..sizes })
    }

    /// The sum of all parts in use.
    pub fn all_used(&self) -> u64 {
        self.used.iter().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }

    /// The share in use, from 0 to 1.
    pub fn part(&self) -> f64 {
        self.all_used() as f64 / self.total as f64
    }
}

/// Reported by processes that do not hold the device, where there is some.
pub fn unverified(memory: &Memory, of: fn(Unverified) -> Bytes) -> Option<Bytes> {
    memory.unverified.map(of).filter(|bytes| bytes.0 > 0)
}

/// The bar. Where nothing is known it is drawn neither full nor empty. What is used has this tone, unless it is nearly all.
pub fn pieces(sizes: Option<&Sizes>, columns: usize, usual: Tone, style: &Style) -> Line {
    let used = sizes.map_or(Tone::Faint, |sizes| part_tone(sizes.part(), usual));
    toned(sizes, columns, |fill| fill.tone(used), style)
}

/// The bar in tones of its own, such as those of something that is out of date.
pub fn toned(sizes: Option<&Sizes>, columns: usize, tone: impl Fn(Fill) -> Tone, style: &Style) -> Line {
    let Some(sizes) = sizes else { return vec![(style.glyphs().unknown.to_string().repeat(columns), Tone::Faint)] };
    let runs = cells(sizes, columns);
    let piece = |run: &[Fill]| (run.iter().map(|fill| fill.glyph(style)).collect(), tone(run[0]));
    runs.chunk_by(|a, b| a == b).map(piece).collect()
}

/// What is drawn in each cell. Parts follow each other, and the end of each is rounded to a cell: so none is more than half a cell
/// too long, however many there are.
pub fn cells(sizes: &Sizes, columns: usize) -> Vec<Fill> {
    let mut cells = parts(sizes, columns);
    // Something is never drawn as nothing.
    let used = cells.iter().take_while(|fill| is_used(**fill)).count();
    if used == 0 && sizes.all_used() > 0 {
        mark(&mut cells, 0, Fill::Little);
    }
    if sizes.stale > 0 && !cells.contains(&Fill::Stale) {
        let behind = used.max(usize::from(cells.first() == Some(&Fill::Little)));
        mark(&mut cells, behind, Fill::LittleStale);
    }
    // A peak that is now needs no mark, and one below what is used now is not the peak of that.
    if let Some(peak) = sizes.peak.filter(|peak| *peak > sizes.all_used()) {
        let at = rounded(peak, sizes.total, columns).saturating_sub(1);
        if let Some(cell) = cells.get_mut(at).filter(|cell| !is_used(**cell) && **cell != Fill::Little) {
            *cell = Fill::Peak;
        }
    }
    cells
}

/// The parts alone, without marks.
fn parts(sizes: &Sizes, columns: usize) -> Vec<Fill> {
    let mut cells = vec![Fill::Free; columns];
    let mut sum: u64 = 0;
    let beyond = [(Fill::Stale, sizes.stale), (Fill::Unverified, sizes.unverified)];
    for (fill, bytes) in sizes.used.iter().copied().chain(beyond) {
        let from = rounded(sum, sizes.total, columns);
        sum = sum.saturating_add(bytes);
        cells[from..rounded(sum, sizes.total, columns)].fill(fill);
    }
    // From the other end, and only where nothing else is.
    let mut sum: u64 = 0;
    for (fill, bytes) in
        [(Fill::Reserved, sizes.reserved), (Fill::KernelRing, sizes.ring), (Fill::Pieces, sizes.pieces)]
    {
        let from = rounded(sum, sizes.total, columns);
        sum = sum.saturating_add(bytes);
        let range = columns - rounded(sum, sizes.total, columns)..columns - from;
        cells[range].iter_mut().filter(|cell| **cell == Fill::Free).for_each(|cell| *cell = fill);
    }
    cells
}

/// So many cells that many bytes take.
fn rounded(bytes: u64, total: u64, columns: usize) -> usize {
    ((bytes as f64 / total.max(1) as f64 * columns as f64).round() as usize).min(columns)
}

fn mark(cells: &mut [Fill], at: usize, fill: Fill) {
    if let Some(cell) = cells.get_mut(at).filter(|cell| matches!(cell, Fill::Free | Fill::Pieces)) {
        *cell = fill;
    }
}

fn is_used(fill: Fill) -> bool {
    matches!(fill, Fill::Buffers | Fill::Second | Fill::Third)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: Style = Style { columns: 80, rows: None, color: false, unicode: true };

    fn bar(sizes: Option<&Sizes>, columns: usize, style: &Style) -> String {
        style.painted(&pieces(sizes, columns, Tone::Buffers, style))
    }

    fn drawn(sizes: Sizes) -> String {
        bar(Some(&Sizes { total: 100, ..sizes }), 20, &STYLE)
    }

    fn used(bytes: &[u64]) -> Vec<(Fill, u64)> {
        [Fill::Buffers, Fill::Second, Fill::Third].into_iter().cycle().zip(bytes.iter().copied()).collect()
    }

    #[test]
    fn a_bar_shows_kinds_free_pieces_and_what_is_reserved() {
        let sizes = Sizes { used: used(&[30, 10, 5]), pieces: 15, ring: 5, reserved: 10, ..Sizes::default() };
        assert_eq!(drawn(sizes.clone()), "▇▇▇▇▇▇▓▓▒░░░░░···▚╱╱");
        assert_eq!(
            bar(Some(&Sizes { total: 100, ..sizes }), 20, &Style { unicode: false, ..STYLE }),
            "######%%+.....:::k//"
        );
    }

    #[test]
    fn the_peak_is_marked_where_all_that_is_used_once_reached() {
        let sizes = Sizes { used: used(&[30, 10, 5]), pieces: 15, ring: 5, reserved: 10, ..Sizes::default() };
        let with = |peak| drawn(Sizes { peak: Some(peak), ..sizes.clone() });
        assert_eq!(with(55), "▇▇▇▇▇▇▓▓▒░┃░░░···▚╱╱");
        assert_eq!(with(45), drawn(sizes.clone()), "it is at its peak");
        assert_eq!(with(38), drawn(sizes.clone()), "a peak of the buffers alone, below what is used now");
        assert_eq!(with(46), drawn(sizes.clone()), "less than a cell above");
    }

    #[test]
    fn stale_and_unverified_bytes_are_hatched_and_take_no_room_of_what_is_used() {
        let sizes = Sizes { used: used(&[30]), unverified: 20, ..Sizes::default() };
        assert_eq!(drawn(sizes.clone()), "▇▇▇▇▇▇▞▞▞▞░░░░░░░░░░");
        assert_eq!(drawn(Sizes { stale: 15, ..sizes.clone() }), "▇▇▇▇▇▇╳╳╳▞▞▞▞░░░░░░░");
        assert_eq!(drawn(Sizes { unverified: 900, ..sizes.clone() }), format!("{}{}", "▇".repeat(6), "▞".repeat(14)));
        assert_eq!(drawn(Sizes { stale: 900, ..sizes }), format!("{}{}", "▇".repeat(6), "╳".repeat(14)));
    }

    #[test]
    fn a_bar_shows_unknown_nothing_little_and_too_much() {
        assert_eq!(bar(None, 8, &STYLE), "········");
        assert_eq!(drawn(Sizes { used: used(&[0, 0]), ..Sizes::default() }), "░".repeat(20));
        assert_eq!(drawn(Sizes { used: used(&[1, 1]), ..Sizes::default() }), format!("▏{}", "░".repeat(19)));
        assert_eq!(drawn(Sizes { used: used(&[1]), stale: 1, ..Sizes::default() }), format!("▏┊{}", "░".repeat(18)));
        assert_eq!(drawn(Sizes { used: used(&[900, 1]), reserved: 1, ..Sizes::default() }), "▇".repeat(20));
    }

    #[test]
    fn a_share_shows_unknown_empty_little_half_and_full() {
        let bar = |part: f64| bar(Some(&Sizes::of_share(part)), 8, &STYLE);
        assert_eq!(bar(0.0), "░░░░░░░░");
        assert_eq!(bar(0.000_000_000_1), "▏░░░░░░░");
        assert_eq!(bar(0.5), "▇▇▇▇░░░░");
        assert_eq!(bar(7.0), "▇▇▇▇▇▇▇▇");
        assert_eq!(bar(f64::NAN), "░░░░░░░░");
    }

    proptest::proptest! {
        #[test]
        fn a_bar_is_as_wide_as_it_was_asked_to_be(
            total in 1u64.., bytes: Vec<u64>, pieces: u64, reserved: u64, stale: u64, peak: Option<u64>, columns in 0usize..90,
        ) {
            let sizes = Sizes { total, used: used(&bytes), pieces, reserved, stale, peak, ..Sizes::default() };
            assert_eq!(crate::text::width(&bar(Some(&sizes), columns, &STYLE)), columns);
        }

        #[test]
        fn each_part_ends_within_half_a_cell_of_where_it_should(
            bytes in proptest::collection::vec(0u64..400, 1..4), stale in 0u64..400, unverified in 0u64..400, columns in 1usize..90,
        ) {
            let total = 1000;
            let sizes = Sizes { total, used: used(&bytes), stale, unverified, ..Sizes::default() };
            let cells = parts(&sizes, columns);
            let drawn = |fills: &[Fill]| cells.iter().filter(|fill| fills.contains(fill)).count() as f64;
            let exact = |bytes: u64| (bytes.min(total) as f64) * columns as f64 / total as f64;
            let all = sizes.all_used();
            let kinds = [Fill::Buffers, Fill::Second, Fill::Third];
            assert!((drawn(&kinds) - exact(all)).abs() <= 0.5 + 1e-9);
            let hatched = [kinds.as_slice(), &[Fill::Stale]].concat();
            assert!((drawn(&hatched) - exact(all + stale)).abs() <= 0.5 + 1e-9);
            let beyond = [hatched.as_slice(), &[Fill::Unverified]].concat();
            assert!((drawn(&beyond) - exact(all + stale + unverified)).abs() <= 0.5 + 1e-9);
        }
    }
}
