//! One thing that the data says has happened.

use super::cause::Cause;
use model::{DeviceId, Timestamp};
use serde::{Serialize, Serializer};
use std::collections::BTreeSet;
use std::fmt;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fact {
    /// Kind of the fact.
    pub cause: Cause,
    /// When it was so at the latest: the sample that shows it, or the moment that the source names.
    pub time: Timestamp,
    /// When it was not so yet. The same as the time where the source names the moment.
    pub not_before: Timestamp,
    /// Until when it went on. The same as the time for what happens at once.
    #[serde(skip)]
    pub until: Timestamp,
    /// Device that it is about.
    #[serde(serialize_with = "device_name")]
    pub device: Option<DeviceId>,
    /// Process that it is about.
    pub pid: Option<u32>,
    /// One sentence for people.
    pub text: String,
    /// Source of the fact.
    pub source: FactSource,
    /// The devices and processes that it touches: what a process holds, and who holds a device.
    #[serde(skip)]
    pub touches: Touched,
}

/// Devices and processes that a fact or an incident is about.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Touched {
    /// Devices.
    pub devices: BTreeSet<DeviceId>,
    /// Process ids.
    pub pids: BTreeSet<u32>,
}

/// Where something is known from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FactSource {
    /// Telemetry of a device.
    Telemetry(DeviceId),
    /// A deep read of a device.
    DeepRead(DeviceId),
    /// What processes hold on a device, added up.
    Memory(DeviceId),
    /// A line of the kernel's log.
    KernelLog,
    /// The record of an exited process.
    ExitRecord,
    /// The book of the agent in a process.
    Book(u32),
    /// Who has devices open, and what is known of their memory without an agent.
    Processes,
    /// Events that the service recorded.
    Events,
    /// Whether the module is loaded.
    Module,
}

impl Fact {
    /// One that happened at a moment. What it touches is added later.
    pub fn at(cause: Cause, time: Timestamp, not_before: Timestamp, text: String, source: FactSource) -> Fact {
        let touches = Touched::default();
        Fact { cause, time, not_before, until: time, device: None, pid: None, text, source, touches }
    }

    /// The fact, about this device.
    pub fn on(mut self, device: DeviceId) -> Fact {
        self.touches.devices.insert(device.clone());
        self.device = Some(device);
        self
    }

    /// The fact, about this process.
    pub fn of(mut self, pid: u32) -> Fact {
        self.touches.pids.insert(pid);
        self.pid = Some(pid);
        self
    }

    /// Whether both say the same of the same device or process.
    pub fn is_like(&self, other: &Fact) -> bool {
        (self.cause, &self.device, self.pid) == (other.cause, &other.device, other.pid)
    }
}

impl Touched {
    /// True if a device or a process is in both.
    pub fn meets(&self, other: &Touched) -> bool {
        !self.devices.is_disjoint(&other.devices) || !self.pids.is_disjoint(&other.pids)
    }

    /// Adds all of another one.
    pub fn add(&mut self, other: &Touched) {
        self.devices.extend(other.devices.iter().cloned());
        self.pids.extend(&other.pids);
    }
}

impl fmt::Display for FactSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FactSource::Telemetry(device) => write!(f, "telemetry of device {device}"),
            FactSource::DeepRead(device) => write!(f, "deep read of device {device}"),
            FactSource::Memory(device) => write!(f, "memory in use on device {device}"),
            FactSource::KernelLog => f.write_str("kernel log"),
            FactSource::ExitRecord => f.write_str("exit record"),
            FactSource::Book(pid) => write!(f, "agent's book of pid {pid}"),
            FactSource::Processes => f.write_str("list of processes"),
            FactSource::Events => f.write_str("events"),
            FactSource::Module => f.write_str("driver module"),
        }
    }
}

impl Serialize for FactSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn device_name<S: Serializer>(device: &Option<DeviceId>, serializer: S) -> Result<S::Ok, S::Error> {
    match device {
        Some(id) => serializer.collect_str(id),
        None => serializer.serialize_none(),
    }
}
