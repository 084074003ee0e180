//! Which devices there are.
//!
//! Reads the links in `/sys/class/tenstorrent` and the names in `/sys/bus/pci/devices`: all kept by the kernel, nothing
//! asks the device.

use crate::dir::{Dir, Root, Trouble, decimal};
use model::{Arch, Device, DeviceId, PciAddress, State};
use std::collections::BTreeMap;
use std::ffi::OsStr;

/// Opens the folder of the driver's devices. Absent when the driver is not loaded.
pub(crate) fn class_dir(root: &Root, trouble: &mut Trouble) -> Option<Dir> {
    let path = root.sys.join("class/tenstorrent");
    root.open(&path).map_err(|error| trouble.note(&path, error)).ok()
}

/// The link by which the driver's folder names a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeviceLink {
    pub address: PciAddress,
    /// Its inode. A device that was removed and is back under its name has another.
    number: u64,
}

/// The devices that the driver has, by ordinal.
pub(crate) type Links = BTreeMap<u32, DeviceLink>;

/// Lists the devices that the driver has. A link that was there before leads where it led.
pub(crate) fn with_driver(class: &Dir, before: &Links, trouble: &mut Trouble) -> Links {
    let mut found = BTreeMap::new();
    let listed = class.list_sysfs(|name, number| {
        let Some(n) = name.to_str().and_then(|name| name.strip_prefix("tenstorrent!")).and_then(decimal) else {
            return;
        };
        let same = |link: &&DeviceLink| link.number == number;
        if let Some((n, link)) = u32::try_from(n).ok().and_then(|n| Some((n, before.get(&n).filter(same)?))) {
            found.insert(n, link.clone());
            return;
        }
        if let (Ok(n), Some(address)) = (n.try_into(), linked_address(class, name)) {
            found.insert(n, DeviceLink { address, number });
        } else {
            trouble.add(&class.path_of(name), "does not lead to a PCI function");
        }
    });
    if let Err(error) = listed {
        trouble.note(class.path(), error);
    }
    found
}

/// The PCI function that a link leads to: `…/0000:01:00.0/tenstorrent/tenstorrent!0`.
pub(crate) fn linked_address(class: &Dir, name: impl AsRef<OsStr>) -> Option<PciAddress> {
    let link = class.read_link(name).ok()?;
    let address = std::str::from_utf8(link.rsplit(|&b| b == b'/').nth(2)?).ok()?;
    is_pci_address(address).then(|| PciAddress(address.into()))
}

/// Tenstorrent's PCI functions that no driver is bound to.
pub(crate) fn without_driver(root: &Root, known: &Links, trouble: &mut Trouble) -> Vec<Device> {
    // The kernel keeps one table of all functions; where it counts no more than the driver has, none is left over.
    if root.is_machine() && table_count("/proc/bus/pci/devices").is_some_and(|count| count <= known.len()) {
        return Vec::new();
    }
    let path = root.sys.join("bus/pci/devices");
    let mut names = Vec::new();
    let Ok(bus) = root.open(&path) else { return Vec::new() };
    if let Err(error) = bus.list_sysfs(|name, _| names.extend(name.to_str().map(str::to_owned))) {
        trouble.note(&path, error);
    }
    names.retain(|name| is_pci_address(name) && !known.values().any(|link| *link.address.0 == **name));
    names.sort();
    let unbound = |name: String| {
        let pci = bus.open_dir(&name).ok()?;
        let facts = pci_facts(&pci, trouble);
        if facts.vendor != Some(VENDOR) || facts.arch.is_none() {
            return None;
        }
        let address = PciAddress(name.into());
        let (id, pci_address) = (DeviceId::NoDriver(address.clone()), Some(address));
        Some(Device { pci_address, arch: facts.arch, state: State::NoDriver, ..Device::new(id) })
    };
    names.into_iter().filter_map(unbound).collect()
}

pub(crate) const VENDOR: u16 = 0x1e52;

/// What the kernel keeps about a PCI function.
pub(crate) struct PciFacts {
    pub vendor: Option<u16>,
    pub arch: Option<Arch>,
}

/// From the function's `uevent`, whose `PCI_ID=1E52:B140` names maker and chip in one read.
pub(crate) fn pci_facts(pci: &Dir, trouble: &mut Trouble) -> PciFacts {
    let mut buffer = [0; 1024];
    let read = pci.read_start("uevent", &mut buffer).map_err(|error| trouble.note(&pci.path_of("uevent"), error));
    let bytes = read.unwrap_or_default();
    let id = bytes.split(|&b| b == b'\n').find_map(|line| line.strip_prefix(b"PCI_ID="));
    let id = id.and_then(|id| std::str::from_utf8(id).ok()).and_then(|id| id.split_once(':'));
    let hex = |text: &str| u16::from_str_radix(text, 16).ok();
    let vendor = id.and_then(|(vendor, _)| hex(vendor));
    let arch = match id.and_then(|(_, device)| hex(device)) {
        Some(0x401e) if vendor == Some(VENDOR) => Some(Arch::Wormhole),
        Some(0xb140) if vendor == Some(VENDOR) => Some(Arch::Blackhole),
        _ => None,
    };
    PciFacts { vendor, arch }
}

/// How many of our functions the kernel's table names: lines of `bus+devfn TAB vendor+device TAB …`.
fn table_count(path: &str) -> Option<usize> {
    let table = std::fs::read(path).ok()?;
    let ours = |line: &&[u8]| line.split(|&b| b == b'\t').nth(1).is_some_and(|id| id.starts_with(b"1e52"));
    Some(table.split(|&b| b == b'\n').filter(ours).count())
}

pub(crate) fn is_pci_address(text: &str) -> bool {
    // The domain has four digits, or more behind some bridges.
    let Some((domain, [a, b, b':', c, d, b'.', function])) =
        text.split_once(':').map(|(domain, rest)| (domain, rest.as_bytes()))
    else {
        return false;
    };
    (4..=8).contains(&domain.len())
        && domain.bytes().chain([*a, *b, *c, *d]).all(|digit| digit.is_ascii_hexdigit())
        && function.is_ascii_digit()
}

/// The driver's version, where it is loaded.
pub(crate) fn driver_version(root: &Root) -> Option<String> {
    let dir = root.open(&root.sys.join("module/tenstorrent")).ok()?;
    let mut buffer = [0; 256];
    let text = dir.text("version", &mut buffer, &mut Trouble::default())?;
    (text.len() <= 64).then(|| text.to_owned())
}

/// Whether the driver is loaded, even one that does not give its version.
pub(crate) fn driver_is_loaded(root: &Root) -> bool {
    root.sys.join("module/tenstorrent").is_dir() || root.sys.join("class/tenstorrent").is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pci_address_has_domain_bus_device_and_function() {
        for good in ["0000:01:00.0", "10000:e1:00.0", "0000:C1:1f.7"] {
            assert!(is_pci_address(good), "{good}");
        }
        for bad in
            ["", "01:00.0", "0000:01:00", "0000:01:00.x", "0000-01-00.0", "zzzz:01:00.0", "tenstorrent", "é000:01:0.0"]
        {
            assert!(!is_pci_address(bad), "{bad}");
        }
    }
}
