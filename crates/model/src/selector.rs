//! How people name a device on a command line.

use crate::{Device, DeviceId};

/// What a person types to mean a device: `0`, `/dev/tenstorrent/0`, `2R`, `0000:01:00.0`, `01:00.0`, a serial, an ASIC id or a `TT-…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector(pub String);

impl Selector {
    /// Whether this names the device. A card's ordinal, PCI address or serial means all its chips.
    pub fn names(&self, device: &Device) -> bool {
        let text = self.0.trim();
        let text = text.strip_prefix("/dev/tenstorrent/").unwrap_or(text);
        if let Ok(n) = text.parse::<u32>() {
            if text.len() < 8 {
                return device.id.gateway() == Some(n);
            }
        }
        let same = |other: Option<&str>, text: &str| other.is_some_and(|other| other.eq_ignore_ascii_case(text));
        let hex = text.strip_prefix("0x").unwrap_or(text);
        same(Some(&device.id.to_string()), text)
            || device.pci_address.as_ref().is_some_and(|address| address_is(&address.0, text))
            || same(device.serial.as_deref(), hex)
            || same(device.asic_id.as_deref(), hex)
            || same(device.uuid().as_deref(), text)
    }
}

/// A number for each chip, as scripts count: N of `/dev/tenstorrent/N`; chips without PCIe come after all others, in their order.
pub fn chip_numbers(devices: &[Device]) -> Vec<(DeviceId, u32)> {
    let mut next = devices.iter().filter_map(|device| device.id.index()).max().map_or(0, |last| last + 1);
    let number = |device: &Device| match device.id {
        DeviceId::Local(n) => Some((device.id.clone(), n)),
        DeviceId::Remote(_) => {
            next += 1;
            Some((device.id.clone(), next - 1))
        }
        DeviceId::NoDriver(_) => None,
    };
    devices.iter().filter_map(number).collect()
}

/// The domain may be left out, or written with eight digits as nvidia-smi does.
fn address_is(address: &str, text: &str) -> bool {
    let text = text.strip_prefix("0000").filter(|rest| rest.len() == 12).unwrap_or(text);
    address.eq_ignore_ascii_case(text) || address.strip_prefix("0000:").is_some_and(|a| a.eq_ignore_ascii_case(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PciAddress;

    fn n300() -> (Device, Device) {
        let mut left = Device::new(DeviceId::Local(2));
        left.pci_address = Some(PciAddress("0000:81:00.0".into()));
        left.serial = Some("010001451170C0C4".into());
        left.asic_id = Some("1A2B3C4D5E6F7081".into());
        let mut right = Device::new(DeviceId::Remote(2));
        right.pci_address.clone_from(&left.pci_address);
        right.serial.clone_from(&left.serial);
        right.state = crate::State::Remote;
        (left, right)
    }

    #[test]
    fn every_chip_has_a_number_of_its_own() {
        let ids = ["0", "0R", "3", "3R", "0000:81:00.0"];
        let devices: Vec<Device> = ids.iter().map(|id| Device::new(DeviceId::named(id))).collect();
        let numbers: Vec<String> = chip_numbers(&devices).iter().map(|(id, n)| format!("{id}={n}")).collect();
        assert_eq!(numbers, ["0=0", "0R=4", "3=3", "3R=5"]);
    }

    #[test]
    fn a_device_answers_to_all_its_names() {
        let (left, right) = n300();
        for (text, is_left, is_right) in [
            ("2", true, true),
            ("/dev/tenstorrent/2", true, true),
            ("/dev/tenstorrent/", false, false),
            ("2R", false, true),
            ("2r", false, true),
            ("12", false, false),
            ("0000:81:00.0", true, true),
            ("81:00.0", true, true),
            ("00000000:81:00.0", true, true),
            ("010001451170c0c4", true, true),
            ("1A2B3C4D5E6F7081", true, false),
            ("0x1a2b3c4d5e6f7081", true, false),
            ("TT-1A2B3C4D5E6F7081", true, false),
            ("TT-010001451170C0C4-R", false, true),
            ("", false, false),
            ("nonsense", false, false),
        ] {
            let selector = Selector(text.into());
            assert_eq!((selector.names(&left), selector.names(&right)), (is_left, is_right), "{text}");
        }
    }
}
