//! What the driver counts as used on a whole device, where it does.
//!
//! Reads `/sys/class/tenstorrent/tenstorrent!<N>/memory/{dram_used,l1_used}`, and what is missing there in `…/memory_stats/`: one decimal
//! number of bytes a file. No driver has these folders yet: they are looked for when a device is first read, and again after a minute.
//!
//! The driver counts all processes: also those that do not report, and those in other PID namespaces. So its figure is the device's used
//! figure, as the driver says, and not a lower bound: where it counts both DRAM and L1, no process is untracked. The parts by kind and the
//! figures of processes still come from their own sources, and may add up to less.

use crate::dir::{Dir, Trouble};
use model::{Bytes, DriverUsed, Memory};
use std::time::{Duration, Instant};

/// The folders, in the order in which they are asked.
const FOLDERS: [&str; 2] = ["memory", "memory_stats"];

/// One device's counts of memory, remembered between samples.
#[derive(Default)]
pub(crate) struct DeviceMemory([RareFolder; 2]);

impl DeviceMemory {
    /// Whether the device has none of the folders, as far as they were looked for.
    pub fn is_missing(&self) -> bool {
        self.0.iter().all(RareFolder::is_missing)
    }

    /// What is in use on a device with this much memory. More than there is cannot be right.
    pub fn read(&mut self, class: &Dir, memory: &Memory, trouble: &mut Trouble) -> DriverUsed {
        let mut used = DriverUsed::default();
        for (folder, name) in self.0.iter_mut().zip(FOLDERS) {
            let Some(folder) = folder.get(class, name) else { continue };
            let mut number = |file: &str, total: Option<Bytes>| {
                folder.number(file, total.map_or(u64::MAX, |total| total.0), trouble).map(Bytes)
            };
            used.dram = used.dram.or_else(|| number("dram_used", memory.dram_total));
            used.l1 = used.l1.or_else(|| number("l1_used", memory.l1_total));
        }
        used
    }
}

/// After this time a folder that was missing is looked for again.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// A folder that is looked for when its device is first read, and again after a minute.
#[derive(Default)]
pub(crate) struct RareFolder {
    folder: Option<Dir>,
    looked: Option<Instant>,
}

impl RareFolder {
    /// Whether there was none, or it was not looked for.
    pub fn is_missing(&self) -> bool {
        self.folder.is_none()
    }

    /// The folder, where there is one.
    pub fn get(&mut self, class: &Dir, name: &str) -> Option<&Dir> {
        if self.folder.is_none() && self.looked.is_none_or(|when| when.elapsed() >= RETRY_AFTER) {
            self.looked = Some(Instant::now());
            self.folder = class.open_dir(name).ok();
        }
        self.folder.as_ref()
    }
}
