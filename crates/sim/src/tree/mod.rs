//! The files that the driver and the kernel show, as text on disk.
//!
//! A [`Chip`] is one PCI function with all its attributes; [`lay`] writes a machine of them below a root, in the formats of
//! driver 2.10. What is `None` in a chip has no file: so looks an older driver or firmware.

mod chip;
mod files;
mod writer;

pub use chip::{Chip, Hwmon, Link};
pub(crate) use files::{COUNTERS, NO_FAN};
pub(crate) use writer::Writer;

use std::fs;
use std::io;
use std::path::Path;

/// Lays the machine below `root`: `sys`, `proc/driver/tenstorrent`, `dev/tenstorrent` and an empty `dev/shm`.
///
/// Laying again over what is there replaces what changed, each file at once.
pub fn lay(root: &Path, chips: &[Chip], driver_version: &str) -> io::Result<()> {
    lay_with(&mut Writer::new(root)?, chips, driver_version)
}

pub(crate) fn lay_with(writer: &mut Writer, chips: &[Chip], driver_version: &str) -> io::Result<()> {
    for folder in files::FOLDERS {
        writer.folder(folder)?;
    }
    for file in files::module(driver_version) {
        writer.file(&file)?;
    }
    for chip in chips {
        for file in files::of(chip) {
            writer.file(&file)?;
        }
        for (path, target) in files::links(chip) {
            writer.link(&path, &target)?;
        }
    }
    refresh(writer, chips)
}

/// Writes what changed since the last time.
pub(crate) fn refresh(writer: &mut Writer, chips: &[Chip]) -> io::Result<()> {
    writer.file(&files::reference_count(chips))?;
    for file in chips.iter().flat_map(files::of) {
        writer.file(&file)?;
    }
    Ok(())
}

/// Takes a chip off the bus: all its files and links go.
pub fn remove(root: &Path, chip: &Chip) -> io::Result<()> {
    // The links from outside go first, so that nobody who follows one finds half a device.
    for (path, _) in files::links(chip) {
        gone(fs::remove_file(root.join(path)))?;
    }
    gone(fs::remove_file(root.join(chip.node())))?;
    gone(fs::remove_dir_all(root.join(chip.proc_folder())))?;
    gone(fs::remove_dir_all(root.join(chip.pci_folder())))
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}
