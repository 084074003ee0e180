//! Memory of a chip as tt-metal's allocators divide it: banks that are all alike, and buffers that lie across all of them.

use crate::work::{L1_PAGE, PAGE, Work};
use ledger::book::{AllocatorBanks, MemoryKind};
use model::{Arch, Capacity};
use serde::{Deserialize, Serialize};

/// The banks of one chip, and what each of them has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChipBanks {
    /// Channels of the DRAM.
    pub dram: u32,
    /// Cores with L1.
    pub l1: u32,
    dram_bytes: u64,
    l1_bytes: u64,
}

/// A buffer, as much of it as is in each bank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SimBuffer {
    pub address: u64,
    pub bytes: u64,
    pub label: String,
}

/// A part of a bank that one allocator hands out.
#[derive(Debug, Clone, Copy)]
struct BankRegion {
    banks: u32,
    base: u64,
    bytes: u64,
}

/// Where the allocators begin: the firmware has what is below.
const DRAM_BASE: u64 = 64;
const L1_BASE: u64 = 110_592;
/// Of each bank, for traces and for small buffers.
const TRACE_BYTES: u64 = 8 << 20;
const L1_SMALL_BYTES: u64 = 32 << 10;

impl ChipBanks {
    /// The banks of a chip of this generation and size.
    pub fn of(arch: Arch, capacity: Capacity) -> ChipBanks {
        let (channel, core) = match arch {
            Arch::Wormhole => (1 << 30, 1_499_136),
            Arch::Blackhole => (4 << 30, 1_572_864),
        };
        let l1 = capacity.l1.map_or(1, |l1| (l1.0 / core).max(1));
        ChipBanks { dram: (capacity.dram.0 / channel) as u32, l1: l1 as u32, dram_bytes: channel, l1_bytes: core }
    }

    /// At which addresses the DRAM and the L1 of the allocators begin.
    pub fn bases(self) -> [u32; 2] {
        [DRAM_BASE as u32, L1_BASE as u32]
    }

    fn region(self, kind: MemoryKind) -> Option<BankRegion> {
        let region = |banks, base, bytes| Some(BankRegion { banks, base, bytes });
        let (trace_at, small_at) = (self.dram_bytes - TRACE_BYTES, self.l1_bytes - L1_SMALL_BYTES);
        match kind {
            MemoryKind::Dram => region(self.dram, DRAM_BASE, trace_at - DRAM_BASE),
            MemoryKind::Trace => region(self.dram, trace_at, TRACE_BYTES),
            MemoryKind::L1 => region(self.l1, L1_BASE, small_at - L1_BASE),
            MemoryKind::L1Small => region(self.l1, small_at, L1_SMALL_BYTES),
            MemoryKind::Cb | MemoryKind::Kernel => None,
        }
    }

    /// The buffers with which a job has so many bytes of a kind, by address, and what the allocator then says. `None` for a kind
    /// that has no banks. The same bytes are always the same buffers.
    pub fn laid_out(self, work: Work, kind: MemoryKind, bytes: u64) -> Option<(Vec<SimBuffer>, AllocatorBanks)> {
        let region = self.region(kind)?;
        // What the machine asks for may be a little more than the allocator hands out.
        let each = (bytes / u64::from(region.banks)).min(region.bytes / PAGE * PAGE);
        let mut buffers = match kind {
            _ if each == 0 => Vec::new(),
            MemoryKind::Dram => dram(work, each, region),
            MemoryKind::L1 => l1(each, region),
            _ => vec![SimBuffer { address: region.base, bytes: each, label: kind_label(kind).to_owned() }],
        };
        buffers.sort_by_key(|buffer| buffer.address);
        let allocated = buffers.iter().map(|buffer| buffer.bytes).sum();
        let (mut end, mut largest_free) = (region.base, 0);
        for buffer in &buffers {
            largest_free = largest_free.max(buffer.address - end);
            end = buffer.address + buffer.bytes;
        }
        let largest_free = largest_free.max(region.base + region.bytes - end);
        let (banks, allocatable) = (region.banks, region.bytes);
        Some((buffers, AllocatorBanks { banks, allocatable, allocated, free: allocatable - allocated, largest_free }))
    }
}

fn kind_label(kind: MemoryKind) -> &'static str {
    match kind {
        MemoryKind::Trace => "decode trace",
        _ => "semaphores",
    }
}

/// After so many weights there is a hole, which loading them has left.
const WEIGHTS_TO_HOLE: usize = 28;
/// Places for what comes and goes. They are taken out of order: what has come and gone leaves free blocks between.
const PLACES: u64 = 20;
const STRIDE: u64 = 7;

/// Weights and the like from the beginning of each bank, and behind them what comes and goes.
fn dram(work: Work, each: u64, region: BankRegion) -> Vec<SimBuffer> {
    let percent = |percent: f64| (region.bytes as f64 * percent / 100.0) as u64 / PAGE * PAGE;
    let kept = each.min(percent(work.kept_percent()));
    let page = percent(1.5).max(PAGE);
    let (layers, rest) = (weights(work), each - kept);
    let holes = (layers.len() / WEIGHTS_TO_HOLE) as u64;
    // Where memory is short there are no holes, and all places are taken.
    let spare = region.bytes.saturating_sub(kept + rest.max(PLACES * page) + page);
    let hole = percent(1.7).min(spare / holes.max(1) / PAGE * PAGE);
    let (mut buffers, mut address, mut left) = (Vec::new(), region.base, kept);
    for (number, (label, share)) in layers.iter().enumerate() {
        let is_last = number + 1 == layers.len();
        let bytes = if is_last { left } else { ((kept as f64 * share) as u64 / PAGE * PAGE).min(left) };
        if bytes > 0 {
            buffers.push(SimBuffer { address, bytes, label: label.clone() });
        }
        (address, left) = (address + bytes, left - bytes);
        if (number + 1) % WEIGHTS_TO_HOLE == 0 {
            address += hole;
        }
    }
    let name = if work == Work::Serving { "kv_cache" } else { "activations" };
    for number in 0..rest.div_ceil(page) {
        let place = if number < PLACES { number * STRIDE % PLACES } else { number };
        let bytes = page.min(rest - number * page);
        buffers.push(SimBuffer { address: address + place * page, bytes, label: format!("{name}.{number}") });
    }
    buffers
}

/// Names of weights, and the share that each has of all. The last one gets what is left.
fn weights(work: Work) -> Vec<(String, f64)> {
    let (parts, layers): (&[(&str, f64)], usize) = match work {
        Work::Training => (&[("weights", 0.34), ("adam.m", 0.33), ("adam.v", 0.33)], 12),
        _ => (&[("attention.wqkv", 0.16), ("attention.wo", 0.11), ("mlp.w1_w3", 0.49), ("mlp.w2", 0.24)], 32),
    };
    let of_layer = |layer: usize| {
        parts.iter().map(move |(part, share)| (format!("layers.{layer}.{part}"), share * 0.92 / layers as f64))
    };
    let ends = [("tok_embeddings".to_owned(), 0.04), ("lm_head".to_owned(), 0.04)];
    ends[..1].iter().cloned().chain((0..layers).flat_map(of_layer)).chain(ends[1..].iter().cloned()).collect()
}

/// A few buffers from the end of each bank downwards, with a hole.
fn l1(each: u64, region: BankRegion) -> Vec<SimBuffer> {
    const SHARES: [u64; 6] = [30, 25, 20, 12, 8, 5];
    let hole = (region.bytes - each).min(24 * L1_PAGE) / L1_PAGE * L1_PAGE;
    let (mut buffers, mut end, mut left) = (Vec::new(), region.base + region.bytes, each);
    for (number, share) in SHARES.iter().enumerate() {
        let is_last = number + 1 == SHARES.len();
        let bytes = if is_last { left } else { (each * share / 100 / L1_PAGE * L1_PAGE).min(left) };
        if bytes > 0 {
            end -= bytes;
            buffers.push(SimBuffer { address: end, bytes, label: format!("sharded.{number}") });
        }
        left -= bytes;
        if number == 2 {
            end -= hole;
        }
    }
    buffers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan;
    use model::Board;

    const BANKED: [MemoryKind; 4] = [MemoryKind::Dram, MemoryKind::L1, MemoryKind::L1Small, MemoryKind::Trace];

    #[test]
    fn buffers_never_overlap_and_add_up_however_much_is_used() {
        for (board, arch) in [(Board::N150, Arch::Wormhole), (Board::P100a, Arch::Blackhole)] {
            let banks = ChipBanks::of(arch, board.capacity(None).unwrap());
            for (work, kind) in [Work::Serving, Work::Training, Work::Waiting]
                .into_iter()
                .flat_map(|work| BANKED.map(|kind| (work, kind)))
            {
                let region = banks.region(kind).unwrap();
                for thousandth in (0..=1000).step_by(7) {
                    let each = region.bytes * thousandth / 1000 / PAGE * PAGE;
                    let (buffers, said) = banks.laid_out(work, kind, each * u64::from(region.banks)).unwrap();
                    let mut end = region.base;
                    for buffer in &buffers {
                        assert!(
                            buffer.address >= end && buffer.bytes > 0,
                            "{work:?} {kind:?} {thousandth}: {buffer:?}"
                        );
                        end = buffer.address + buffer.bytes;
                    }
                    assert!(end <= region.base + region.bytes, "{work:?} {kind:?} {thousandth}");
                    assert_eq!(said.allocated, each, "{work:?} {kind:?} {thousandth}");
                    assert!(said.largest_free <= said.free && said.free + said.allocated == region.bytes);
                }
            }
            assert_eq!(banks.laid_out(Work::Serving, MemoryKind::Cb, 1 << 20), None);
        }
    }

    #[test]
    fn what_comes_and_goes_leaves_the_memory_fragmented() {
        let capacity = Board::P150.capacity(model::Version::parse("19.6.0.0")).unwrap();
        let banks = ChipBanks::of(Arch::Blackhole, capacity);
        assert_eq!((banks.dram, banks.l1), (8, 120));
        let amounts = plan::memory(Work::Serving, capacity, banks, 300, 0.9);
        let (buffers, said) = banks.laid_out(Work::Serving, MemoryKind::Dram, amounts.dram).unwrap();
        assert!(buffers.len() > 130, "{}", buffers.len());
        assert!(said.largest_free < said.free * 9 / 10, "{said:?}");
        assert!(buffers.iter().any(|buffer| buffer.label == "layers.12.mlp.w2"));
    }
}
