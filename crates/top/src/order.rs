//! The order in which devices are listed: those with a problem first.

use model::{Device, DeviceId};
use show::machine::is_troubled;

/// Places of the devices of a snapshot. Computed for every sample, not for every frame.
#[derive(Debug, Default)]
pub struct DeviceOrder(Vec<usize>);

impl DeviceOrder {
    pub fn update(&mut self, devices: &[Device]) {
        self.0.clear();
        self.0.extend(0..devices.len());
        self.0.sort_by_key(|at| !is_troubled(&devices[*at]));
    }

    /// The devices in this order.
    pub fn listed<'a>(&'a self, devices: &'a [Device]) -> impl Iterator<Item = &'a Device> {
        self.0.iter().filter_map(|at| devices.get(*at))
    }

    /// Where a device is listed.
    pub fn place(&self, devices: &[Device], id: Option<&DeviceId>) -> Option<usize> {
        self.listed(devices).position(|device| Some(&device.id) == id)
    }

    /// The device so many places further, and round the ends. From none, it is the first.
    pub fn step(&self, devices: &[Device], from: Option<&DeviceId>, steps: isize) -> Option<DeviceId> {
        let count = self.0.len() as isize;
        let place = self.place(devices, from).map(|at| at as isize + steps);
        let to = place.map_or(0, |to| to.rem_euclid(count.max(1)));
        self.listed(devices).nth(to as usize).map(|device| device.id.clone())
    }
}
