//! What the machine has: the driver's folders, the devices in them, devices without a driver, and the host itself.
//!
//! Reads `/sys/class/tenstorrent`, `/proc/driver/tenstorrent` and `/sys/bus/pci/devices`: names and links, no device is asked. None of it
//! changes from one second to the next: relaxed sampling takes it again every few seconds, or when a device has come or gone.

use crate::devices::{self, Links};
use crate::dir::{Dir, Root, Trouble};
use crate::pids;
use crate::telemetry::FEW;
use model::{Device, Host};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) struct Inventory {
    taken: Instant,
    /// The folder of the devices.
    pub class: Option<Arc<Dir>>,
    /// The folder of the lists of their holders. Absent where the driver keeps none.
    pub lists: Option<Arc<Dir>>,
    pub host: Host,
    /// The devices that the driver has.
    pub links: Arc<Links>,
    /// When they were listed.
    listed: Instant,
    /// Whether all of them were well in the last sample.
    pub all_are_well: bool,
    unbound: Option<Vec<Device>>,
}

/// How long relaxed sampling reuses it.
const REUSED_FOR: Duration = Duration::from_secs(5);

/// How often relaxed sampling lists devices that are well, where these are few, and processes that keep a book. When a device goes away,
/// reading its files fails; what is new can wait.
pub(crate) const LISTED_FOR: Duration = Duration::from_millis(1900);

impl Inventory {
    /// What the machine has now. In relaxed sampling the previous one is reused for a while, as long as the devices are the same.
    pub fn take(mut previous: Option<Inventory>, relaxed: bool, root: &Root, trouble: &mut Trouble) -> Inventory {
        let links = previous.as_ref().map(|previous| previous.links.clone()).unwrap_or_default();
        if let Some(current) = previous.take_if(|previous| relaxed && previous.is_current(trouble)) {
            return current;
        }
        let class = devices::class_dir(root, trouble).map(Arc::new);
        let now = Instant::now();
        Inventory {
            taken: now,
            links: Arc::new(list(class.as_deref(), &links, trouble)),
            class,
            lists: pids::lists(root).map(Arc::new),
            host: host(root),
            listed: now,
            all_are_well: false,
            unbound: None,
        }
    }

    /// Whether it still holds, which may take another look at the list of devices.
    fn is_current(&mut self, trouble: &mut Trouble) -> bool {
        if self.taken.elapsed() >= REUSED_FOR {
            return false;
        }
        if self.all_are_well && (self.links.len() > FEW || self.listed.elapsed() < LISTED_FOR) {
            return true;
        }
        let mut found = Trouble::default();
        if list(self.class.as_deref(), &self.links, &mut found) != *self.links {
            return false;
        }
        trouble.faults.append(&mut found.faults);
        self.listed = Instant::now();
        true
    }

    /// The devices that no driver is bound to.
    pub fn without_driver(&mut self, root: &Root, trouble: &mut Trouble) -> Vec<Device> {
        if let Some(unbound) = &self.unbound {
            return unbound.clone();
        }
        let faults = trouble.faults.len();
        let unbound = devices::without_driver(root, &self.links, trouble);
        // What went wrong is tried, and reported, every time.
        self.unbound = (trouble.faults.len() == faults).then(|| unbound.clone());
        unbound
    }
}

/// The machine itself: name and kernel from `uname`, the driver's version from `/sys/module/tenstorrent/version`.
fn host(root: &Root) -> Host {
    let uname = rustix::system::uname();
    let text = |text: &std::ffi::CStr| Some(text.to_string_lossy().into_owned());
    let (name, kernel) = (text(uname.nodename()), text(uname.release()));
    Host { name, kernel, driver_version: devices::driver_version(root), ..Host::default() }
}

fn list(class: Option<&Dir>, before: &Links, trouble: &mut Trouble) -> Links {
    class.map(|class| devices::with_driver(class, before, trouble)).unwrap_or_default()
}
