//! What a plain file cannot do: fail as a device does that is being reset, and hold its reader as one that is stuck.

use crate::tree::Chip;
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// To be asked before each read of a file, with its full path: the error to take instead. It may not return at all.
pub type Inject = Arc<dyn Fn(&Path) -> Option<io::Error> + Send + Sync>;

/// The devices that do not answer, shared between the machine and its readers.
#[derive(Default)]
pub(crate) struct InjectedFaults {
    any: AtomicBool,
    devices: Mutex<Vec<(Chip, InjectedFault)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InjectedFault {
    Resetting,
    Stuck,
}

impl InjectedFaults {
    pub fn set(&self, devices: Vec<(Chip, InjectedFault)>) {
        let any = !devices.is_empty();
        *self.devices.lock().unwrap_or_else(PoisonError::into_inner) = devices;
        self.any.store(any, Ordering::Release);
    }

    pub fn inject(self: &Arc<InjectedFaults>, root: &Path) -> Inject {
        let (troubles, root) = (Arc::clone(self), PathBuf::from(root));
        Arc::new(move |path| {
            // Nearly always there is nothing wrong, and that must cost nothing.
            if !troubles.any.load(Ordering::Acquire) {
                return None;
            }
            match troubles.at(path.strip_prefix(&root).ok()?)? {
                InjectedFault::Resetting => Some(Errno::NODATA.into()),
                InjectedFault::Stuck => loop {
                    std::thread::park();
                },
            }
        })
    }

    fn at(&self, path: &Path) -> Option<InjectedFault> {
        let devices = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        let met = |(chip, trouble): &&(Chip, InjectedFault)| {
            concerns(path, chip) && (*trouble == InjectedFault::Stuck || is_telemetry(path))
        };
        devices.iter().find(met).map(|(_, trouble)| *trouble)
    }
}

/// Whether a path from the root leads to the chip, on whichever way.
fn concerns(path: &Path, chip: &Chip) -> bool {
    let class = format!("tenstorrent!{}", chip.index);
    let is_hwmon = |name: &str| {
        name.strip_prefix("hwmon").is_some_and(|number| chip.hwmon.iter().any(|h| h.number.to_string() == number))
    };
    let mut names = path.iter().filter_map(|name| name.to_str());
    path.starts_with(chip.proc_folder()) || names.any(|name| name == class || name == chip.address || is_hwmon(name))
}

/// What the driver asks the firmware for. The counters are read from the chip's registers, and labels from nowhere.
fn is_telemetry(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    let parts: Vec<&str> = path.iter().filter_map(|name| name.to_str()).collect();
    let in_hwmon = parts.iter().rev().nth(1).is_some_and(|folder| folder.starts_with("hwmon"));
    name.starts_with("tt_") || in_hwmon && (name.ends_with("_input") || name.ends_with("_max"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str, trouble: InjectedFault) -> Option<InjectedFault> {
        let troubles = InjectedFaults::default();
        troubles.set(vec![(Chip::p150a(1), trouble)]);
        troubles.at(Path::new(path))
    }

    #[test]
    fn a_device_is_met_on_all_ways() {
        let address = Chip::p150a(1).address;
        for path in [
            "sys/class/tenstorrent/tenstorrent!1/tt_aiclk",
            "sys/class/tenstorrent/tenstorrent!1/device/hwmon/hwmon3/temp1_input",
            "sys/class/hwmon/hwmon3/power1_max",
            &format!("sys/bus/pci/devices/{address}/tenstorrent/tenstorrent!1/tt_serial"),
            &format!("sys/bus/pci/devices/{address}/hwmon/hwmon3/curr1_input"),
        ] {
            assert_eq!(at(path, InjectedFault::Resetting), Some(InjectedFault::Resetting), "{path}");
            assert_eq!(at(path, InjectedFault::Stuck), Some(InjectedFault::Stuck), "{path}");
        }
        for path in [
            "sys/class/tenstorrent/tenstorrent!11/tt_aiclk",
            "sys/class/tenstorrent/tenstorrent!0/tt_aiclk",
            "sys/class/hwmon/hwmon30/power1_max",
            "proc/driver/tenstorrent/0/pids",
            "sys/module/tenstorrent/version",
        ] {
            assert_eq!(at(path, InjectedFault::Stuck), None, "{path}");
        }
    }

    #[test]
    fn a_reset_spares_what_does_not_come_from_the_firmware() {
        for path in [
            "sys/class/tenstorrent/tenstorrent!1/pcie_perf_counters/slv_rd_data_word_sent0",
            "sys/class/tenstorrent/tenstorrent!1/dev",
            "sys/class/hwmon/hwmon3/name",
            "sys/class/hwmon/hwmon3/temp1_label",
            "sys/class/tenstorrent/tenstorrent!1/device/vendor",
            "proc/driver/tenstorrent/1/pids",
        ] {
            assert_eq!(at(path, InjectedFault::Resetting), None, "{path}");
            assert_eq!(at(path, InjectedFault::Stuck), Some(InjectedFault::Stuck), "{path}");
        }
    }
}
