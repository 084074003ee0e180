//! Ethernet ports, and what of the chip is enabled.

use super::words::{self, ALL_ONES, TableWords};
use model::figure::Dimension;
use model::text::ranges;
use model::{Arch, Deep};
use std::sync::Arc;

pub fn decode(words: &TableWords, deep: &mut Deep) {
    ethernet(words, deep);
    deep.noc_translation = words.within(40, 0..=1).map(|word| word != 0);
    match words.arch() {
        Arch::Blackhole => {
            deep.tensix_enabled = words.mask(34, 14).map(|mask| enabled(mask, 14, " columns"));
            deep.gddr_enabled = words.mask(36, 8).map(|mask| enabled(mask, 8, ""));
            deep.l2cpu_enabled = words.mask(37, 4).map(|mask| enabled(mask, 4, ""));
            deep.pcie_usage = words.within(38, 0..=0xF).and_then(pcie_usage);
        }
        Arch::Wormhole => deep.tensix_enabled = words.mask(59, 10).map(|mask| enabled(mask, 10, " rows")),
    }
}

/// The lower half says whose firmware runs. The upper half is which links are up from firmware 19.9 on. Before that it is which
/// links were trained again on Wormhole, and Blackhole has the whole word zero.
fn ethernet(words: &TableWords, deep: &mut Deep) {
    let arch = words.arch();
    let ports = Dimension::EthernetPort.of_chip(arch);
    let enabled = words.mask(35, 14).filter(|_| arch == Arch::Blackhole);
    if let Some(mask) = enabled {
        deep.eth_enabled = (0..ports).map(|port| Some(mask >> port & 1 != 0)).collect();
    }
    let each = |half: u32| {
        let is_enabled = |port: usize| enabled.is_none_or(|mask| mask >> port & 1 != 0);
        (0..ports).map(|port| is_enabled(port).then_some(half >> port & 1 != 0)).collect()
    };
    // On a Wormhole all 16 ports can run, and all 16 links be up. A Blackhole has 14.
    let status = words.even_all_ones(21).filter(|word| match arch {
        Arch::Wormhole => true,
        Arch::Blackhole => *word != ALL_ONES && (word & 0xFFFF | word >> 16) >> ports == 0,
    });
    let Some(status) = status else { return };
    let since = words.since(19, 9);
    let before = words.before(19, 9) && arch == Arch::Wormhole && status != ALL_ONES;
    if since || before {
        deep.eth_heartbeat = words::at_least_one(each(status & 0xFFFF));
    }
    if since {
        deep.eth_link_up = words::at_least_one(each(status >> 16));
    }
    if before {
        deep.eth_retrained = words::at_least_one(each(status >> 16));
    }
}

/// `13 of 14 columns (off: 3)`
fn enabled(mask: u32, of: u32, what: &str) -> Arc<str> {
    let off = ranges((0..of as usize).filter(|place| mask >> place & 1 == 0));
    let off = if off.is_empty() { off } else { format!(" (off: {off})") };
    format!("{} of {of}{what}{off}", mask.count_ones()).into()
}

/// Two bits for each of the two interfaces.
fn pcie_usage(word: u32) -> Option<Arc<str>> {
    let usage = |bits: u32| ["off", "endpoint", "root"].get(bits as usize).copied();
    let (first, second) = (usage(word & 0b11)?, usage(word >> 2)?);
    Some(format!("0: {first}, 1: {second}").into())
}
