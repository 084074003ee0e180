//! The PCIe link, and the flit counters of the chip's PCIe tile.
//!
//! Reads `current_link_*` and `max_link_*` of the PCI function, and `tenstorrent!<N>/pcie_perf_counters/`: twelve 32-bit
//! counters of NoC flits since reset. The suffixes 0 and 1 are the two NoCs, not two halves of a number.

use crate::dir::{Dir, Trouble};
use model::{Counters, Link};

/// What the link runs at now.
pub(crate) fn current(pci: &Dir, link: &mut Link, trouble: &mut Trouble) {
    link.generation = generation(pci, "current_link_speed", trouble);
    link.width = width(pci, "current_link_width", trouble);
}

/// What slot and card could do together. The slot, which is the bridge above, matters only where the card does less than it
/// could; that it does now must have been read before.
pub(crate) fn best(pci: &Dir, link: &mut Link, trouble: &mut Trouble) {
    link.max_generation = generation(pci, "max_link_speed", trouble);
    link.max_width = width(pci, "max_link_width", trouble);
    let lesser = |card: Option<u8>, slot: Option<u8>| card.map(|card| slot.map_or(card, |slot| slot.min(card)));
    if link.generation != link.max_generation {
        link.max_generation = lesser(link.max_generation, generation(pci, "../max_link_speed", trouble));
    }
    if link.width != link.max_width {
        link.max_width = lesser(link.max_width, width(pci, "../max_link_width", trouble));
    }
}

fn generation(pci: &Dir, name: &str, trouble: &mut Trouble) -> Option<u8> {
    let mut buffer = [0; 256];
    let text = pci.text(name, &mut buffer, trouble)?;
    // "16.0 GT/s PCIe", on old kernels "16 GT/s"; "Unknown" when the link is down.
    match text.split_once(" GT/s")?.0.trim_end_matches(".0") {
        "2.5" => Some(1),
        "5" => Some(2),
        "8" => Some(3),
        "16" => Some(4),
        "32" => Some(5),
        "64" => Some(6),
        _ => {
            trouble.add(&pci.path_of(name), format_args!("not a PCIe speed: {text:?}"));
            None
        }
    }
}

fn width(pci: &Dir, name: &str, trouble: &mut Trouble) -> Option<u8> {
    // 0 and 63 are what the kernel prints for a link that is down.
    let value = pci.number(name, None, 0..=63, trouble)?;
    [1, 2, 4, 8, 12, 16, 32].contains(&value).then_some(value as u8)
}

/// All twelve counters, or none: a rate needs them all.
pub(crate) fn counters(folder: &Dir, heartbeat: Option<u32>, trouble: &mut Trouble) -> Option<Counters> {
    let mut read = |names: [&str; 6]| -> Option<[u32; 6]> {
        let mut values = [0; 6];
        for (value, name) in values.iter_mut().zip(names) {
            *value = folder.number(name, None, 0..=u64::from(u32::MAX), trouble)? as u32;
        }
        Some(values)
    };
    Some(Counters { host_to_device: read(HOST_TO_DEVICE)?, device_to_host: read(DEVICE_TO_HOST)?, heartbeat })
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
