//! Which device is which, whatever number it has.
//!
//! The driver gives out its numbers again each time it is loaded, and other cards may get them. What follows a device over time
//! asks here:
//!
//! - The same PCI address and the same serial: the same device. A serial that is not known, as of a hung chip, is no other one.
//! - Another address, but the same ASIC id, which no two chips share: the same chip, moved.
//! - Where an address is not known, the number decides.
//!
//! A chip without PCIe has the address, the serial and the ASIC id of its gateway.

use crate::{Device, DeviceId, PciAddress};
use std::sync::Arc;

/// One physical device. Its number may change, this does not.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceKey(u32);

/// The devices of one machine that were ever seen.
#[derive(Debug, Default, Clone)]
pub struct KnownDevices {
    /// Those of the last snapshot, in its order, and behind them those that are gone, the latest first.
    known: Vec<KnownDevice>,
    next: u32,
}

#[derive(Debug, Clone)]
struct KnownDevice {
    key: DeviceKey,
    /// As it was called last.
    id: DeviceId,
    address: Option<PciAddress>,
    serial: Option<u64>,
    asic: Option<u64>,
    /// Both as they were written last, which is compared faster.
    texts: [Option<Arc<str>>; 2],
}

/// How many devices that are gone are remembered.
const GONE: usize = 256;

impl DeviceKey {
    /// How many devices were seen before this one.
    pub fn number(self) -> usize {
        self.0 as usize
    }
}

impl KnownDevices {
    /// Finds the devices of the next snapshot among those that are known, and adds the others. Returns the key of each.
    pub fn meet(&mut self, devices: &[Device]) -> Vec<DeviceKey> {
        if !self.is_unchanged(devices) {
            let mut met = facts_of(devices);
            for (place, device) in places(&self.known, &met).into_iter().zip(&mut met) {
                match place.map(|place| &self.known[place]) {
                    Some(known) => device.continues(known),
                    None => {
                        device.key = DeviceKey(self.next);
                        self.next += 1;
                    }
                }
            }
            let is_gone = |known: &KnownDevice| met.iter().all(|device| device.key != known.key);
            let gone: Vec<KnownDevice> = self.known.drain(..).filter(is_gone).take(GONE).collect();
            self.known = met.into_iter().chain(gone).collect();
        }
        self.known[..devices.len()].iter().map(|known| known.key).collect()
    }

    /// The key of a device of any snapshot.
    pub fn find(&self, device: &Device) -> Option<DeviceKey> {
        let same = self.known.iter().find(|known| known.is_unchanged(device));
        let other = || places(&self.known, &facts_of(std::slice::from_ref(device)))[0].map(|place| &self.known[place]);
        same.or_else(other).map(|known| known.key)
    }

    /// How many bytes it takes.
    pub fn bytes(&self) -> usize {
        self.known.capacity() * size_of::<KnownDevice>()
    }

    /// Whether these are the devices of the last snapshot, in the same order: the usual case, and quick.
    fn is_unchanged(&self, devices: &[Device]) -> bool {
        self.known.len() >= devices.len()
            && self.known.iter().zip(devices).all(|(known, device)| known.is_unchanged(device))
    }
}

/// For each device of a snapshot the same device of an earlier one.
pub fn earlier_devices<'a>(before: &'a [Device], now: &[Device]) -> Vec<Option<&'a Device>> {
    fn identity(device: &Device) -> impl PartialEq + '_ {
        (&device.id, &device.pci_address, &device.serial, &device.asic_id)
    }
    // The usual case, and quick.
    if before.len() == now.len() && before.iter().zip(now).all(|(before, now)| identity(before) == identity(now)) {
        return before.iter().map(Some).collect();
    }
    places(&facts_of(before), &facts_of(now)).into_iter().map(|place| Some(&before[place?])).collect()
}

fn facts_of(devices: &[Device]) -> Vec<KnownDevice> {
    let asic = |device: &Device| match device.id {
        DeviceId::Remote(n) => devices.iter().find(|other| other.id == DeviceId::Local(n))?.asic_number(),
        _ => device.asic_number(),
    };
    let facts = |device: &Device| KnownDevice {
        key: DeviceKey::default(),
        id: device.id.clone(),
        address: device.pci_address.clone(),
        serial: device.serial_number(),
        asic: asic(device),
        texts: [device.serial.clone(), device.asic_id.clone()],
    };
    devices.iter().map(facts).collect()
}

/// The place of each device among those that are known.
fn places(known: &[KnownDevice], met: &[KnownDevice]) -> Vec<Option<usize>> {
    let mut places = vec![None; met.len()];
    let mut claimed = vec![false; known.len()];
    for is_same in [KnownDevice::is_in_place, KnownDevice::has_moved, KnownDevice::is_named_alike] {
        for (place, device) in places.iter_mut().zip(met).filter(|(place, _)| place.is_none()) {
            let free = known.iter().enumerate().filter(|(at, known)| !claimed[*at] && is_same(known, device));
            // Where several could be it, the one that it surely is, then the one of that name, then the latest.
            let best = free.min_by_key(|(_, known)| (known.serial != device.serial, known.id != device.id));
            if let Some((at, _)) = best {
                (*place, claimed[at]) = (Some(at), true);
            }
        }
    }
    places
}

impl KnownDevice {
    /// Whether nothing new is known of it, its number included.
    fn is_unchanged(&self, device: &Device) -> bool {
        self.id == device.id
            && self.address == device.pci_address
            && (device.serial.is_none() || self.texts[0] == device.serial || self.serial == device.serial_number())
            && (device.asic_id.is_none() || self.texts[1] == device.asic_id || self.asic == device.asic_number())
    }

    fn is_in_place(&self, now: &KnownDevice) -> bool {
        self.address.is_some() && self.address == now.address && self.may_be(now)
    }

    fn has_moved(&self, now: &KnownDevice) -> bool {
        self.asic.is_some() && self.asic == now.asic && self.may_be(now)
    }

    fn is_named_alike(&self, now: &KnownDevice) -> bool {
        self.id == now.id && (self.address.is_none() || now.address.is_none()) && self.may_be(now)
    }

    /// Whether nothing that is known of both differs.
    fn may_be(&self, now: &KnownDevice) -> bool {
        let is_remote = |device: &KnownDevice| matches!(device.id, DeviceId::Remote(_));
        let differ = |one: Option<u64>, other: Option<u64>| one.zip(other).is_some_and(|(one, other)| one != other);
        is_remote(self) == is_remote(now) && !differ(self.serial, now.serial) && !differ(self.asic, now.asic)
    }

    /// Takes over what is known already.
    fn continues(&mut self, known: &KnownDevice) {
        self.key = known.key;
        self.address = self.address.take().or_else(|| known.address.clone());
        self.serial = self.serial.or(known.serial);
        self.asic = self.asic.or(known.asic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device from `number address serial asic`, where `-` is not known.
    fn device(text: &str) -> Device {
        let [name, address, serial, asic] = text.split(' ').collect::<Vec<_>>()[..] else { panic!("{text}") };
        let known = |text: &str| (text != "-").then(|| text.into());
        let (pci_address, serial, asic_id) = (known(address).map(PciAddress), known(serial), known(asic));
        Device { pci_address, serial, asic_id, ..Device::new(DeviceId::named(name)) }
    }

    /// The keys of the devices of each snapshot.
    fn keys(snapshots: &[&[&str]]) -> Vec<Vec<u32>> {
        let mut known = KnownDevices::default();
        let mut meet = |snapshot: &&[&str]| {
            let devices: Vec<Device> = snapshot.iter().map(|text| device(text)).collect();
            known.meet(&devices).into_iter().map(|key| key.0).collect()
        };
        snapshots.iter().map(&mut meet).collect()
    }

    #[test]
    fn numbers_that_swap_are_the_same_devices() {
        let before = ["0 0000:01:00.0 A1 B1", "1 0000:02:00.0 A2 B2"];
        let after = ["0 0000:02:00.0 A2 B2", "1 0000:01:00.0 A1 B1"];
        assert_eq!(keys(&[&before, &after, &after, &before]), [[0, 1], [1, 0], [1, 0], [0, 1]]);
    }

    #[test]
    fn another_serial_at_an_address_is_another_card() {
        assert_eq!(keys(&[&["0 0000:01:00.0 A1 B1"], &["0 0000:01:00.0 A9 B9"]]), [[0], [1]]);
        assert_eq!(keys(&[&["0 0000:01:00.0 A1 -"], &["0 0000:01:00.0 A1 B1"]]), [[0], [0]], "an old driver");
    }

    #[test]
    fn a_chip_at_another_address_is_known_by_its_asic_id() {
        assert_eq!(keys(&[&["0 0000:01:00.0 A1 B1"], &[], &["3 0000:09:00.0 A1 B1"]]), [vec![0], vec![], vec![0]]);
        let n300 = ["0 0000:01:00.0 A1 B1", "0R 0000:01:00.0 A1 -"];
        assert_eq!(keys(&[&n300, &["4 0000:09:00.0 A1 B1", "4R 0000:09:00.0 A1 -"]]), [[0, 1], [0, 1]]);
        assert_eq!(keys(&[&["0 0000:01:00.0 A1 -"], &["0 0000:09:00.0 A1 -"]]), [[0], [1]], "a serial is of a board");
    }

    #[test]
    fn what_a_sick_device_does_not_say_is_no_difference() {
        let (well, hung) = (["0 0000:01:00.0 A1 B1"], ["0 0000:01:00.0 FFFFFFFFFFFFFFFF FFFFFFFFFFFFFFFF"]);
        assert_eq!(keys(&[&well, &hung, &["0000:01:00.0 0000:01:00.0 - -"], &["5 0000:01:00.0 A1 B1"]]), [[0]; 4]);
        let twice = ["0 0000:01:00.0 A1 B1", "0000:01:00.0 0000:01:00.0 - -"];
        assert_eq!(
            keys(&[&well, &twice, &twice, &["7 0000:01:00.0 A1 B1"]]),
            [vec![0], vec![0, 1], vec![0, 1], vec![0]]
        );
    }

    #[test]
    fn without_an_address_the_number_decides() {
        assert_eq!(
            keys(&[&["0 - - -", "1 - - -"], &["1 0000:02:00.0 A2 -"], &["1 - - -"]]),
            [vec![0, 1], vec![1], vec![1]]
        );
    }

    #[test]
    fn a_device_of_an_earlier_snapshot_can_be_found() {
        let (mut known, one) = (KnownDevices::default(), device("0 0000:01:00.0 A1 B1"));
        let key = known.meet(std::slice::from_ref(&one))[0];
        known.meet(&[device("1 0000:01:00.0 A1 B1"), device("0 0000:02:00.0 A2 B2")]);
        assert_eq!(known.find(&one), Some(key));
        assert_eq!(known.find(&device("0 0000:03:00.0 A3 B3")), None);
    }

    #[test]
    fn a_machine_that_invents_devices_does_not_fill_the_memory() {
        let mut known = KnownDevices::default();
        (1..5000).for_each(|n| drop(known.meet(&[device(&format!("0 0000:01:00.0 {n:x} {n:x}"))])));
        assert_eq!(known.known.len(), 1 + GONE);
    }
}
