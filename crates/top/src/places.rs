//! Where the chips are. Computed again when the chips or the facts about them change, not for every frame.

use model::topology::{LiveLinks, Topology, TopologyError, from_descriptor, live, of_machine};
use model::{Device, DeviceId, PciAddress};

/// The places of the chips, and what they were made of.
#[derive(Clone)]
pub struct ChipPlaces {
    pub topology: Topology,
    /// Which links are up, of the last sample.
    pub live: LiveLinks,
    /// A cluster descriptor, where one was given.
    descriptor: Option<String>,
    /// By number, the address that it had.
    ids: Vec<(DeviceId, Option<PciAddress>)>,
    /// How many facts about positions were known.
    known: usize,
}

impl Default for ChipPlaces {
    fn default() -> ChipPlaces {
        let (topology, live) = (of_machine(&[]), LiveLinks::default());
        ChipPlaces { topology, live, descriptor: None, ids: Vec::new(), known: 0 }
    }
}

impl ChipPlaces {
    /// Takes places from a cluster descriptor, from the next sample on.
    pub fn described(text: String) -> Result<ChipPlaces, TopologyError> {
        let topology = from_descriptor(&text, &[])?;
        Ok(ChipPlaces { topology, descriptor: Some(text), ..ChipPlaces::default() })
    }

    /// Looks whether the chips are still the same, and which of their links are up.
    pub fn notice(&mut self, devices: &[Device]) {
        self.place(devices);
        let says = |device: &Device| device.deep.as_ref().is_some_and(|deep| !deep.eth_link_up.is_empty());
        self.live = if devices.iter().any(says) { live(&self.topology, devices) } else { LiveLinks::default() };
    }

    fn place(&mut self, devices: &[Device]) {
        let known = devices.iter().map(facts).sum();
        // A sick chip forgets its serial; where it is does not change with that.
        let is_same = |(device, (id, address)): (&Device, &(DeviceId, Option<PciAddress>))| {
            device.id == *id && device.pci_address == *address
        };
        if devices.len() == self.ids.len() && devices.iter().zip(&self.ids).all(is_same) && known <= self.known {
            return;
        }
        self.ids = devices.iter().map(|device| (device.id.clone(), device.pci_address.clone())).collect();
        self.known = known;
        let described = self.descriptor.as_ref().and_then(|text| from_descriptor(text, devices).ok());
        self.topology = described.unwrap_or_else(|| of_machine(devices));
    }
}

fn facts(device: &Device) -> usize {
    let known = [
        device.board.is_some(),
        device.pci_address.is_some(),
        device.serial_number().is_some(),
        device.asic_number().is_some(),
        device.deep.as_ref().is_some_and(|deep| deep.asic_location.is_some()),
        device.deep.as_ref().is_some_and(|deep| !deep.eth_enabled.is_empty()),
    ];
    known.into_iter().filter(|known| *known).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use show::example;

    #[test]
    fn chips_whose_numbers_swap_are_placed_again() {
        let mut devices = example::machine().devices;
        let mut places = ChipPlaces::default();
        places.notice(&devices);
        let (first, second) = (devices[0].clone(), devices[1].clone());
        devices[0] = Device { id: first.id.clone(), ..second.clone() };
        devices[1] = Device { id: second.id, ..first };
        places.notice(&devices);
        assert_eq!(places.topology, of_machine(&devices));
    }

    #[test]
    fn a_chip_that_forgets_its_serial_stays_where_it_is() {
        let mut devices = example::machine().devices;
        let mut places = ChipPlaces::default();
        places.notice(&devices);
        let before = places.topology.clone();
        assert_eq!(before.links.len(), 1);
        devices[2].serial = Some("FFFFFFFFFFFFFFFF".into());
        devices[2].board = None;
        places.notice(&devices);
        assert_eq!(places.topology, before);
        devices.pop();
        places.notice(&devices);
        assert_eq!(places.topology.chips.len(), 3, "another machine has a layout of its own");
        assert_eq!(places.topology.links, []);
        devices[2].board = Some("n300".into());
        devices[2].serial = Some("010001451170C0C4".into());
        places.notice(&devices);
        assert!(places.topology.groups[2].name.contains("010001451170C0C4"), "{:?}", places.topology.groups);
    }
}
