//! The devices as they are known now: read, silent, lost, remote or without a driver.

use super::Draft;
use model::{Board, Device, DeviceId, Link, Memory, State};

impl Draft<'_> {
    /// Adds all devices, in the order of their names.
    pub(super) fn add_devices(&mut self) {
        let (readings, links) = (&self.collected.readings, self.round.links);
        self.add_readings();
        for (n, link) in links.iter().filter(|(n, _)| !readings.contains_key(n)) {
            let pci_address = Some(link.address.clone());
            self.devices.push(Device { pci_address, state: State::Silent, ..Device::new(DeviceId::Local(*n)) });
        }
        self.devices.append(&mut self.round.unbound);
        let remote: Vec<Device> = self.devices.iter().filter_map(remote_chip).collect();
        self.devices.extend(remote);
        self.devices.sort_by(|a, b| a.id.cmp(&b.id));
    }

    /// Adds what was read, now or at an earlier time.
    fn add_readings(&mut self) {
        for (n, (reading, when)) in &self.collected.readings {
            let mut device = reading.device.clone();
            let is_fresh = *when >= self.round.began;
            let age = if is_fresh { 0.0 } else { when.elapsed().as_secs_f64() };
            device.sample_age_seconds = Some((age * 1000.0).round() / 1000.0);
            if !is_fresh {
                // A rate is of its moment.
                device.pcie.host_to_device = None;
                device.pcie.device_to_host = None;
            }
            if !self.round.links.contains_key(n) {
                let mut unbound = self.round.unbound.iter_mut();
                // Its driver was unloaded. It keeps its number, its name and its totals.
                if let Some(same) = unbound.find(|unbound| unbound.pci_address == device.pci_address) {
                    let Device { id, board, serial, asic_id, sample_age_seconds, thermal_trips_total, pcie, .. } =
                        device;
                    let Link { host_to_device_total, device_to_host_total, .. } = pcie;
                    let pcie = Link { host_to_device_total, device_to_host_total, ..Link::default() };
                    *same = Device {
                        id,
                        board,
                        serial,
                        asic_id,
                        sample_age_seconds,
                        thermal_trips_total,
                        pcie,
                        ..same.clone()
                    };
                    continue;
                }
                device.state = State::Lost;
            } else if is_fresh {
                self.trouble.faults.extend(reading.trouble.faults.iter().cloned());
            } else {
                device.state = State::Silent;
            }
            self.devices.push(device);
        }
    }
}

/// The chip behind this one, of which only its board and the memory of processes are known.
fn remote_chip(device: &Device) -> Option<Device> {
    let (DeviceId::Local(n), board) = (&device.id, Board::named(device.board.as_deref()?)?) else { return None };
    let (dram_total, l1_total) = (device.memory.dram_total, device.memory.l1_total);
    board.has_remote_chip().then(|| Device {
        id: DeviceId::Remote(*n),
        pci_address: device.pci_address.clone(),
        arch: device.arch,
        board: device.board.clone(),
        serial: device.serial.clone(),
        state: if matches!(device.state, State::Lost | State::NoDriver) { device.state } else { State::Remote },
        sample_age_seconds: device.sample_age_seconds,
        numa_node: device.numa_node,
        memory: Memory { dram_total, l1_total, ..Memory::default() },
        ..Device::default()
    })
}
