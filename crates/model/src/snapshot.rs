//! The narrow waist: everything that was found out about a machine at one moment.

use crate::{Alert, DeepCounts, Device, DeviceId, HolderAtEvent, KernelMessage, Process, Timestamp, Usage};
use serde::{Deserialize, Serialize};

/// Version of the JSON form. Additions keep the number; a changed meaning raises it.
pub const SCHEMA: u32 = 1;

/// A machine at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Version of this form.
    pub schema: u32,
    /// When it was taken.
    pub taken_at: Timestamp,
    /// The machine.
    pub host: Host,
    /// Its chips in the order of their names.
    pub devices: Vec<Device>,
    /// The processes that use them, by pid.
    pub processes: Vec<Process>,
    /// What was tried and went wrong.
    pub faults: Vec<Fault>,
    /// What the rules of whoever took it say is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alerts: Vec<Alert>,
    /// What the kernel's log said about devices in the last minute. Absent where it is not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_log: Option<Vec<KernelMessage>>,
}

impl Snapshot {
    /// A machine of which nothing is known, at no time.
    pub fn empty() -> Snapshot {
        Snapshot {
            schema: SCHEMA,
            taken_at: Timestamp(0),
            host: Host::default(),
            devices: Vec::new(),
            processes: Vec::new(),
            faults: Vec::new(),
            alerts: Vec::new(),
            kernel_log: None,
        }
    }

    /// The processes that hold a device, or the chip behind it, and how much of it.
    pub fn holders(&self, device: &DeviceId) -> impl Iterator<Item = HolderAtEvent> {
        let gateway = device.gateway();
        self.processes.iter().filter_map(move |process| {
            let mut held = process.devices.iter().filter(|held| gateway.is_some() && held.id.gateway() == gateway);
            let first = held.next()?;
            let usage = held.fold(Usage::default().plus(first.usage), |sum, held| sum.plus(held.usage));
            Some(HolderAtEvent { pid: process.pid, name: process.name.clone(), bytes: usage.total() })
        })
    }
}

/// The machine itself.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Host name.
    pub name: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Version of the tenstorrent module. Absent when it is not loaded.
    pub driver_version: Option<String>,
    /// Whether the devices are made up by `--sim`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
    /// What deep reads have done. Only where they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deep: Option<DeepCounts>,
}

/// Something that was tried and went wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fault {
    /// What was read.
    pub path: String,
    /// Why it gave no value.
    pub reason: String,
}

impl Fault {
    /// A fault at a place.
    pub fn new(path: impl Into<String>, reason: impl ToString) -> Fault {
        Fault { path: path.into(), reason: reason.to_string() }
    }
}
