//! What a rule is about: a device, a process, a process on a device, or a process that has exited.

use model::{Device, DeviceId, DeviceKey, ExitRecord, Held, Process, Timestamp};

/// What a figure is a figure of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    Device,
    Process,
    /// A process on a device.
    Held,
    /// A process that has exited. Only the service knows.
    Exited,
}

/// One device or process of a snapshot, as a rule sees it. Empty when it is not in the snapshot.
#[derive(Clone, Copy, Default)]
pub(crate) struct Subject<'a> {
    pub device: Option<&'a Device>,
    /// Which device it is, whatever its number.
    pub key: Option<DeviceKey>,
    pub process: Option<&'a Process>,
    pub held: Option<&'a Held>,
    pub exited: Option<&'a ExitRecord>,
}

/// What identifies a subject from one snapshot to the next.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SubjectId {
    device: Option<SubjectDevice>,
    /// Pid and start time: a pid may be used again.
    pub process: Option<(u32, Option<Timestamp>)>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum SubjectDevice {
    Known(DeviceKey),
    /// As the record of a process that has exited names it.
    Named(DeviceId),
}

impl Subject<'_> {
    pub fn id(&self) -> SubjectId {
        let device = match self.exited {
            Some(exit) => only_device(exit).cloned().map(SubjectDevice::Named),
            None => self.key.map(SubjectDevice::Known),
        };
        SubjectId { device, process: self.process_id() }
    }

    /// How its device is called now.
    pub fn device_name(&self) -> Option<&DeviceId> {
        match self.exited {
            Some(exit) => only_device(exit),
            None => self.device.map(|device| &device.id),
        }
    }

    fn process_id(&self) -> Option<(u32, Option<Timestamp>)> {
        let of_process = self.process.map(|process| (process.pid, process.started_at));
        of_process.or(self.exited.map(|exit| (exit.pid, exit.started_at)))
    }

    pub fn process_name(&self) -> Option<&String> {
        let of_process = self.process.and_then(|process| process.name.as_ref());
        of_process.or(self.exited.and_then(|exit| exit.name.as_ref()))
    }

    /// For programs: the same for the same rule about the same subject, also when numbers of devices change.
    pub fn fingerprint(&self, rule: &str) -> String {
        let address = self.device.filter(|_| self.exited.is_none()).and_then(|device| device.pci_address.as_ref());
        let device = match (address, self.device_name()) {
            (Some(address), Some(DeviceId::Remote(_))) => format!(" device={address}R"),
            (Some(address), _) => format!(" device={address}"),
            (None, Some(id)) => format!(" device={id}"),
            (None, None) => String::new(),
        };
        let process = self.process_id().map(|(pid, started)| match started {
            Some(time) => format!(" pid={pid} began={time}"),
            None => format!(" pid={pid}"),
        });
        format!("{rule}{device}{}", process.unwrap_or_default())
    }
}

/// The chip of a process that held memory of one alone.
pub(crate) fn only_device(exit: &ExitRecord) -> Option<&DeviceId> {
    exit.devices.first().filter(|_| exit.devices.len() == 1).map(|held| &held.id)
}
