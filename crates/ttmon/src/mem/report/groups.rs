//! The three files of a memory report put together: each program, or each state that was asked for, is shown as a chip.

use super::detailed::{self, DetailedReport};
use super::summary::{self, KINDS};
use model::Bytes;
use show::memory::view::{Area, Banks, Buffer, Chip, Kind, fragmentation};

/// The files of one prefix, as far as there are any.
#[derive(Debug, Default)]
pub struct ReportFiles {
    pub prefix: String,
    pub summary: Vec<summary::SummaryGroup>,
    pub l1: Vec<summary::L1>,
    pub detailed: Vec<detailed::DetailedGroup>,
}

/// The groups as chips, and what is allocated in them.
pub fn chips(files: &ReportFiles) -> Vec<(Chip, Vec<Buffer>)> {
    let mut names: Vec<(Option<&str>, usize)> = Vec::new();
    let summary = numbered(files.summary.iter().map(|group| group.program.as_deref()));
    let l1 = numbered(files.l1.iter().map(|l1| l1.program.as_deref()));
    let detailed = numbered(files.detailed.iter().map(|group| group.program.as_deref()));
    for name in [summary, l1, detailed].concat() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.into_iter().map(|name| chip(files, name)).collect()
}

/// The programs with how often each was there before: a program that was compiled again comes again.
fn numbered<'a>(programs: impl Iterator<Item = Option<&'a str>>) -> Vec<(Option<&'a str>, usize)> {
    let mut before: std::collections::HashMap<Option<&str>, usize> = std::collections::HashMap::new();
    programs
        .map(|program| {
            let nth = before.entry(program).or_default();
            *nth += 1;
            (program, *nth - 1)
        })
        .collect()
}

fn chip(files: &ReportFiles, (program, nth): (Option<&str>, usize)) -> (Chip, Vec<Buffer>) {
    let summary = files.summary.iter().filter(|group| group.program.as_deref() == program).nth(nth);
    let l1 = files.l1.iter().filter(|l1| l1.program.as_deref() == program).nth(nth);
    let detailed = files.detailed.iter().filter(|group| group.program.as_deref() == program).nth(nth);
    let id = name(&files.prefix, program, nth);
    let mut buffers = Vec::new();
    let mut kind = |name: &str| {
        let at = KINDS.iter().position(|kind| *kind == name);
        let banks = at.and_then(|at| summary?.kinds.get(at)).cloned();
        let detailed = detailed.and_then(|group| group.kinds.iter().find(|kind| kind.kind == name));
        let kind = kind_of(name, banks, l1, detailed)?;
        let count = kind.banks.as_ref().and_then(|banks| banks.count);
        let live = detailed.into_iter().flat_map(|detailed| &detailed.blocks).filter(|block| block.is_allocated);
        buffers.extend(live.map(|block| Buffer {
            devices: vec![id.clone()],
            kind: name.into(),
            bytes: count.map(|count| Bytes(block.bytes.saturating_mul(count.into()))),
            bank_bytes: Some(Bytes(block.bytes)),
            banks: count,
            address: block.address,
            address_is_relative: true,
            ..Buffer::default()
        }));
        Some(kind)
    };
    let dram: Vec<Kind> = ["dram", "trace"].into_iter().filter_map(&mut kind).collect();
    let l1: Vec<Kind> = ["l1", "l1_small"].into_iter().filter_map(&mut kind).collect();
    let chip = Chip { id, dram: Area::summed(None, dram), l1: Area::summed(None, l1), ..Chip::default() };
    (chip, buffers)
}

/// One kind, from the three files.
fn kind_of(
    name: &str,
    banks: Option<Banks>,
    l1: Option<&summary::L1>,
    detailed: Option<&DetailedReport>,
) -> Option<Kind> {
    let mut banks = match (banks, l1) {
        (Some(banks), _) => banks,
        (None, Some(l1)) if name == "l1" => {
            Banks { largest_free_bytes: Some(l1.largest_free), allocators: 1, ..Banks::default() }
        }
        (None, _) => Banks { allocators: 1, ..detailed.map(of_blocks)? },
    };
    // L1_SMALL is a part of each L1 bank.
    let of_l1 = l1.filter(|_| name.starts_with("l1")).and_then(|l1| l1.banks);
    let of_total = || -> Option<u32> {
        let (in_all, in_one) = (detailed?.allocatable?, banks.allocatable_bytes?.0);
        (in_all.checked_rem(in_one)? == 0).then(|| (in_all / in_one).try_into().ok())?
    };
    banks.count = detailed.and_then(DetailedReport::banks).or_else(of_total).or(of_l1);
    let in_all = |bytes: Option<Bytes>| Some(Bytes(bytes?.0.saturating_mul(banks.count?.into())));
    let used_bytes = detailed.and_then(|detailed| detailed.allocated).map(Bytes).or(in_all(banks.allocated_bytes));
    let blocks = detailed.map(|detailed| &detailed.blocks).filter(|blocks| !blocks.is_empty());
    let buffers = blocks.map(|blocks| blocks.iter().filter(|block| block.is_allocated).count() as u64);
    Some(Kind { kind: name.into(), used_bytes, buffers, banks: Some(banks), ..Kind::default() })
}

fn of_blocks(detailed: &DetailedReport) -> Banks {
    if detailed.blocks.is_empty() {
        return Banks::default();
    }
    let sum = |allocated: bool| {
        let blocks = detailed.blocks.iter().filter(|block| block.is_allocated == allocated);
        Bytes(blocks.fold(0, |sum, block| block.bytes.saturating_add(sum)))
    };
    let (allocated, free) = (sum(true), sum(false));
    let largest = detailed.blocks.iter().filter(|block| !block.is_allocated).map(|block| block.bytes).max();
    let largest = Bytes(largest.unwrap_or(0));
    Banks {
        allocatable_bytes: Some(allocated + free),
        allocated_bytes: Some(allocated),
        free_bytes: Some(free),
        largest_free_bytes: Some(largest),
        fragmentation: fragmentation(free, largest),
        ..Banks::default()
    }
}

/// `demo`, `program 0`, `program 0 (2)`
fn name(prefix: &str, program: Option<&str>, nth: usize) -> String {
    let prefix = prefix.trim_end_matches('_');
    let mut name = match (prefix, program) {
        ("", None) => "device".to_owned(),
        ("" | "program", Some(program)) => format!("program {program}"),
        (prefix, Some(program)) => format!("{prefix} program {program}"),
        (prefix, None) => prefix.to_owned(),
    };
    if nth > 0 {
        name += &format!(" ({})", nth + 1);
    }
    name
}
