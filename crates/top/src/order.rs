//! The order in which devices are listed, and which of them is selected.

use super::state::TopState;
use model::Device;
use show::machine::is_troubled;

/// Places of the devices of a snapshot: those with a problem first. Computed for every sample, not for every frame.
#[derive(Debug, Default)]
pub struct DeviceOrder(Vec<usize>);

impl DeviceOrder {
    pub fn update(&mut self, devices: &[Device]) {
        self.0.clear();
        self.0.extend(0..devices.len());
        self.0.sort_by_key(|at| !is_troubled(&devices[*at]));
    }
}

impl TopState {
    /// The devices as they are listed.
    pub fn listed(&self) -> impl Iterator<Item = &Device> {
        let devices = self.devices();
        self.order.0.iter().filter_map(|at| devices.get(*at))
    }

    pub fn selected_device(&self) -> Option<&Device> {
        let id = self.device.as_ref()?;
        self.devices().iter().find(|device| device.id == *id)
    }

    /// Where the selected device is listed.
    pub fn selected_place(&self) -> Option<usize> {
        let id = self.device.as_ref()?;
        self.listed().position(|device| device.id == *id)
    }

    /// Selects another device, so many places further, and round the ends.
    pub fn step_device(&mut self, steps: isize) {
        let count = self.order.0.len();
        if count == 0 {
            return;
        }
        let to = self.selected_place().map_or(0, |at| (at as isize + steps).rem_euclid(count as isize) as usize);
        let to = self.listed().nth(to).map(|device| device.id.clone());
        self.device = to.or(self.device.take());
    }
}
