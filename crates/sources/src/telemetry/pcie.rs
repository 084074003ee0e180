//! What slot and card can do together, and the flit counters of the chip's PCIe tile.
//!
//! Reads `max_link_*` of the PCI function and of the bridge above it, and `tenstorrent!<N>/pcie_perf_counters/`: twelve 32-bit
//! counters of NoC flits since reset. The suffixes 0 and 1 are the two NoCs, not two halves of a number.

use super::parse::{self, Parsed};
use crate::dir::{Dir, Trouble};
use model::figure::Value;
use model::{Counters, Device};
use std::time::Instant;

/// The best PCIe generation of slot and card.
pub(crate) fn max_generation(pci: &Dir, device: &Device, trouble: &mut Trouble) -> Option<Value<'static>> {
    best(pci, ["max_link_speed", "../max_link_speed"], parse::link_speed, device.pcie.generation, trouble)
}

/// The most lanes of slot and card.
pub(crate) fn max_width(pci: &Dir, device: &Device, trouble: &mut Trouble) -> Option<Value<'static>> {
    best(pci, ["max_link_width", "../max_link_width"], parse::link_width, device.pcie.width, trouble)
}

/// The slot, which is the bridge above, matters only where the link does less now than the card could.
fn best(
    pci: &Dir,
    [card, slot]: [&'static str; 2],
    parse: fn(&str) -> Parsed<'_>,
    now: Option<u8>,
    trouble: &mut Trouble,
) -> Option<Value<'static>> {
    let mut read = |file| match parse::read(pci, file, parse, &mut [0; 256], trouble) {
        Some(Value::Whole(number)) => Some(number),
        _ => None,
    };
    let card = read(card)?;
    let slot = if now.map(u64::from) == Some(card) { None } else { read(slot) };
    Some(Value::Whole(slot.map_or(card, |slot| slot.min(card))))
}

/// All twelve counters, or none: a rate needs them all.
pub(crate) fn counters(
    folder: &Dir,
    began: Instant,
    heartbeat: Option<u32>,
    trouble: &mut Trouble,
) -> Option<Counters> {
    let mut counters = Counters { heartbeat, ..Counters::default() };
    let Counters { host_to_device, device_to_host, delays, .. } = &mut counters;
    let values = host_to_device.iter_mut().chain(device_to_host).zip(delays.as_flattened_mut());
    for ((value, delay), name) in values.zip(HOST_TO_DEVICE.into_iter().chain(DEVICE_TO_HOST)) {
        *value = folder.number(name, u32::MAX.into(), trouble)? as u32;
        *delay = began.elapsed();
    }
    Some(counters)
}

// "mst": the PCIe tile acts for the host. "slv": a core of the chip reads or writes host memory.
const HOST_TO_DEVICE: [&str; 6] = [
    "mst_posted_wr_data_word_sent0",
    "mst_posted_wr_data_word_sent1",
    "mst_nonposted_wr_data_word_sent0",
    "mst_nonposted_wr_data_word_sent1",
    "slv_rd_data_word_sent0",
    "slv_rd_data_word_sent1",
];
const DEVICE_TO_HOST: [&str; 6] = [
    "mst_rd_data_word_received0",
    "mst_rd_data_word_received1",
    "slv_posted_wr_data_word_received0",
    "slv_posted_wr_data_word_received1",
    "slv_nonposted_wr_data_word_received0",
    "slv_nonposted_wr_data_word_received1",
];
