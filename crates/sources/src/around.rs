//! Where the devices are found: the driver's folders, the machine, and devices without a driver.
//!
//! None of it changes from one second to the next: whoever is calm looks around every few seconds, or when a device has come or
//! gone.

use crate::devices::{self, DeviceLink};
use crate::dir::{Dir, Root, Trouble};
use crate::{host, pids};
use model::{Device, Host};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is around.
pub(crate) struct Around {
    when: Instant,
    /// The folder of the devices.
    pub class: Option<Arc<Dir>>,
    /// The folder of the lists of their holders.
    pub lists: Option<Arc<Dir>>,
    pub host: Host,
    unbound: Option<Vec<Device>>,
    /// When the devices were listed.
    listed: Instant,
    /// Whether all of them were well the last time.
    pub all_are_well: bool,
}

/// So long it is believed.
const AROUND_FOR: Duration = Duration::from_secs(5);

/// Devices that are well are listed this often. That one of them goes away its own files tell; a new one can wait.
const LISTED_FOR: Duration = Duration::from_millis(1900);

impl Around {
    /// What is around now, and the devices that the driver has. What is known from before is believed for a while, as long as
    /// the devices are the same.
    pub fn now(
        known: Option<Around>,
        root: &Root,
        before: &BTreeMap<u32, DeviceLink>,
        trouble: &mut Trouble,
    ) -> (Around, BTreeMap<u32, DeviceLink>) {
        if let Some(mut around) = known.filter(|around| around.when.elapsed() < AROUND_FOR) {
            if around.all_are_well && around.listed.elapsed() < LISTED_FOR {
                return (around, before.clone());
            }
            let mut found = Trouble::default();
            let listed = around.devices(before, &mut found);
            if listed == *before {
                trouble.faults.append(&mut found.faults);
                around.listed = Instant::now();
                return (around, listed);
            }
        }
        let class = devices::class_dir(root, trouble).map(Arc::new);
        let lists = pids::lists(root).map(Arc::new);
        let (host, now) = (host::host(root), Instant::now());
        let around = Around { when: now, class, lists, host, unbound: None, listed: now, all_are_well: false };
        let listed = around.devices(before, trouble);
        (around, listed)
    }

    fn devices(&self, before: &BTreeMap<u32, DeviceLink>, trouble: &mut Trouble) -> BTreeMap<u32, DeviceLink> {
        self.class.as_ref().map(|class| devices::with_driver(class, before, trouble)).unwrap_or_default()
    }

    /// The devices that no driver is bound to.
    pub fn without_driver(
        &mut self,
        root: &Root,
        listed: &BTreeMap<u32, DeviceLink>,
        trouble: &mut Trouble,
    ) -> Vec<Device> {
        if let Some(unbound) = &self.unbound {
            return unbound.clone();
        }
        let faults = trouble.faults.len();
        let unbound = devices::without_driver(root, listed, trouble);
        // What went wrong is tried, and told, every time.
        self.unbound = (trouble.faults.len() == faults).then(|| unbound.clone());
        unbound
    }
}
