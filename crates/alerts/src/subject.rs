//! What a rule is about: a device, a process, a process on a device, or a process that has exited.

use model::{Device, DeviceId, ExitRecord, Held, Process, Timestamp};

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
    pub process: Option<&'a Process>,
    pub held: Option<&'a Held>,
    pub exited: Option<&'a ExitRecord>,
}

/// What identifies a subject from one snapshot to the next.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SubjectId {
    pub device: Option<DeviceId>,
    /// Pid and start time: a pid may be used again.
    pub process: Option<(u32, Option<Timestamp>)>,
}

impl Subject<'_> {
    pub fn id(&self) -> SubjectId {
        let of_process = self.process.map(|process| (process.pid, process.started_at));
        let of_exited = self.exited.map(|exit| (exit.pid, exit.started_at));
        let device = match self.exited {
            Some(exit) => only_device(exit),
            None => self.device.map(|device| &device.id),
        };
        SubjectId { device: device.cloned(), process: of_process.or(of_exited) }
    }

    pub fn process_name(&self) -> Option<&String> {
        let of_process = self.process.and_then(|process| process.name.as_ref());
        of_process.or(self.exited.and_then(|exit| exit.name.as_ref()))
    }
}

/// The chip of a process that held memory of one alone.
pub(crate) fn only_device(exit: &ExitRecord) -> Option<&DeviceId> {
    exit.devices.first().filter(|_| exit.devices.len() == 1).map(|held| &held.id)
}

impl SubjectId {
    /// For people: `pid 7 (python3) on device 0`.
    pub fn title(&self, process_name: Option<&str>) -> String {
        let device = self.device.as_ref().map(|id| format!("device {id}"));
        let process = self.process.map(|(pid, _)| match process_name {
            Some(name) => format!("pid {pid} ({name})"),
            None => format!("pid {pid}"),
        });
        match (process, device) {
            (Some(process), Some(device)) => format!("{process} on {device}"),
            (process, device) => process.or(device).unwrap_or_default(),
        }
    }

    /// For programs: the same for the same rule about the same subject.
    pub fn fingerprint(&self, rule: &str) -> String {
        let device = self.device.as_ref().map(|id| format!(" device={id}"));
        let process = self.process.map(|(pid, started)| match started {
            Some(time) => format!(" pid={pid} began={time}"),
            None => format!(" pid={pid}"),
        });
        format!("{rule}{}{}", device.unwrap_or_default(), process.unwrap_or_default())
    }
}
