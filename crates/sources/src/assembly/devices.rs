//! The devices as they are known now: read, silent, lost, remote or without a driver.

use super::Draft;
use crate::telemetry::Reading;
use model::{Board, ChipNumbers, Device, DeviceId, Link, Memory, PciAddress, State};
use std::cmp::Reverse;
use std::time::Instant;

impl Draft<'_> {
    /// Adds all devices, in the order of their names.
    pub(super) fn add_devices(&mut self) {
        let (readings, links) = (&self.collected.readings, self.round.links);
        for (n, link) in links {
            let id = DeviceId::Local(*n);
            match readings.get(&link.address) {
                Some((reading, when)) => self.add_reading(reading, *when, id, false),
                None => {
                    let pci_address = Some(link.address.clone());
                    self.devices.push(Device { pci_address, state: State::Silent, ..Device::new(id) });
                }
            }
        }
        let is_lost = |address: &PciAddress| links.values().all(|link| link.address != *address);
        let mut lost: Vec<_> = readings.iter().filter(|(address, _)| is_lost(address)).collect();
        lost.sort_by_key(|(_, (_, when))| Reverse(*when));
        for (address, (reading, when)) in lost {
            let known = &reading.device.id;
            let is_taken = self.devices.iter().any(|device| device.id == *known);
            // Its number may be another device's now.
            let id = if is_taken { DeviceId::NoDriver(address.clone()) } else { known.clone() };
            let mut unbound = self.round.unbound.iter_mut();
            match unbound.find(|unbound| unbound.pci_address.as_ref() == Some(address)) {
                Some(unbound) => {
                    keep_name_and_totals(unbound, id, &reading.device);
                    unbound.sample_age_seconds = Some((when.elapsed().as_secs_f64() * 1000.0).round() / 1000.0);
                }
                None => self.add_reading(reading, *when, id, true),
            }
        }
        self.devices.append(&mut self.round.unbound);
        let remote: Vec<Device> = self.devices.iter().filter_map(remote_chip).collect();
        self.devices.extend(remote);
        self.devices.sort_by(|a, b| a.id.cmp(&b.id));
        self.numbers = self.devices.iter().map(ChipNumbers::of).collect();
    }

    /// Adds what was read, now or at an earlier time.
    fn add_reading(&mut self, reading: &Reading, when: Instant, id: DeviceId, is_lost: bool) {
        let mut device = Device { id, ..reading.device.clone() };
        let is_fresh = when >= self.round.began;
        let age = if is_fresh { 0.0 } else { when.elapsed().as_secs_f64() };
        device.sample_age_seconds = Some((age * 1000.0).round() / 1000.0);
        if !is_fresh {
            // A rate is of its moment.
            device.pcie.host_to_device = None;
            device.pcie.device_to_host = None;
        }
        if is_lost {
            device.state = State::Lost;
        } else if is_fresh {
            self.trouble.faults.extend(reading.trouble.faults.iter().cloned());
        } else {
            device.state = State::Silent;
        }
        self.devices.push(device);
    }
}

/// A device whose driver was unloaded keeps its number, its name and its totals.
fn keep_name_and_totals(unbound: &mut Device, id: DeviceId, known: &Device) {
    let Link { host_to_device_total, device_to_host_total, .. } = known.pcie.clone();
    unbound.id = id;
    unbound.board = known.board.clone();
    unbound.serial = known.serial.clone();
    unbound.asic_id = known.asic_id.clone();
    unbound.thermal_trips_total = known.thermal_trips_total;
    unbound.energy_total = known.energy_total;
    unbound.pcie = Link { host_to_device_total, device_to_host_total, ..Link::default() };
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
