//! The driver's hwmon node of a device: where it is.
//!
//! Looks for `/sys/class/tenstorrent/tenstorrent!<N>/device/hwmon/hwmon*/`. What is read there is in [`super::attributes`].

use crate::dir::{Dir, decimal};

/// The node of a PCI function. Old drivers leave an unused one behind at each reset: the newest counts.
pub(crate) fn find(pci: &Dir) -> Option<Dir> {
    let mut newest = None;
    let listed = pci.list_in("hwmon", |name| {
        let number = name.to_str().and_then(|name| name.strip_prefix("hwmon")).and_then(decimal);
        newest = newest.max(number);
    });
    listed.ok()?;
    pci.open_dir(format!("hwmon/hwmon{}", newest?)).ok()
}
