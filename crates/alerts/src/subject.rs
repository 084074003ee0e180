//! What a rule is about: a device, a process, a process on a device, or a process that has exited.

use crate::ended::Ended;
use crate::rule::Rule;
use model::{Device, DeviceId, Held, Process, Snapshot, Timestamp};

/// What a figure is a figure of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// A device.
    Device,
    /// A process.
    Process,
    /// A process on a device.
    Held,
    /// A process that has exited. Only the service knows.
    Ended,
}

/// One device or process of a snapshot, as a rule sees it. Empty when it is not in the snapshot.
#[derive(Clone, Copy, Default)]
pub(crate) struct Subject<'a> {
    pub device: Option<&'a Device>,
    pub process: Option<&'a Process>,
    pub held: Option<&'a Held>,
    pub ended: Option<&'a Ended>,
}

/// What identifies a subject from one snapshot to the next.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SubjectId {
    pub device: Option<DeviceId>,
    /// Pid and start time: a pid may be used again.
    pub process: Option<(u32, Option<Timestamp>)>,
}

/// All that a rule is about in a snapshot.
pub(crate) fn subjects<'a>(
    rule: &Rule,
    scope: Scope,
    snapshot: &'a Snapshot,
    ended: &'a [Ended],
) -> Vec<(SubjectId, Subject<'a>)> {
    let found: Vec<Subject> = match scope {
        Scope::Device => devices(rule, snapshot).collect(),
        Scope::Process => processes(rule, snapshot).collect(),
        Scope::Held => held(rule, snapshot).collect(),
        Scope::Ended => ended.iter().filter_map(|ended| exited(rule, snapshot, ended)).collect(),
    };
    found.into_iter().map(|subject| (subject.id(), subject)).collect()
}

fn devices<'a>(rule: &Rule, snapshot: &'a Snapshot) -> impl Iterator<Item = Subject<'a>> {
    let devices = snapshot.devices.iter().filter(|device| rule.is_about_device(device));
    devices.map(|device| Subject { device: Some(device), ..Subject::default() })
}

fn processes<'a>(rule: &Rule, snapshot: &'a Snapshot) -> impl Iterator<Item = Subject<'a>> {
    let uses_one = |process: &&Process| {
        let devices = process.devices.iter().filter_map(|held| device(snapshot, &held.id));
        rule.is_about_process(process) && devices.into_iter().any(|device| rule.is_about_device(device))
    };
    let processes = snapshot.processes.iter().filter(uses_one);
    processes.map(|process| Subject { process: Some(process), ..Subject::default() })
}

fn held<'a>(rule: &Rule, snapshot: &'a Snapshot) -> impl Iterator<Item = Subject<'a>> {
    let processes = snapshot.processes.iter().filter(|process| rule.is_about_process(process));
    let pairs = processes.flat_map(|process| process.devices.iter().map(move |held| (process, held)));
    pairs.filter_map(|(process, held)| {
        let device = device(snapshot, &held.id).filter(|device| rule.is_about_device(device))?;
        Some(Subject { device: Some(device), process: Some(process), held: Some(held), ended: None })
    })
}

fn exited<'a>(rule: &Rule, snapshot: &'a Snapshot, ended: &'a Ended) -> Option<Subject<'a>> {
    let device = ended.device.as_ref().and_then(|id| device(snapshot, id));
    let is_there = rule.devices.is_empty() || device.is_some_and(|device| rule.is_about_device(device));
    let is_about = is_there && rule.is_about(ended.pid, ended.name.as_deref());
    is_about.then_some(Subject { device, ended: Some(ended), ..Subject::default() })
}

fn device<'a>(snapshot: &'a Snapshot, id: &DeviceId) -> Option<&'a Device> {
    snapshot.devices.iter().find(|device| device.id == *id)
}

impl Subject<'_> {
    fn id(&self) -> SubjectId {
        let of_process = self.process.map(|process| (process.pid, process.started_at));
        let of_ended = self.ended.map(|ended| (ended.pid, ended.started_at));
        let device = match self.ended {
            Some(ended) => ended.device.as_ref(),
            None => self.device.map(|device| &device.id),
        };
        SubjectId { device: device.cloned(), process: of_process.or(of_ended) }
    }

    /// The short name of the process.
    pub fn process_name(&self) -> Option<&String> {
        let of_process = self.process.and_then(|process| process.name.as_ref());
        of_process.or(self.ended.and_then(|ended| ended.name.as_ref()))
    }
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
    pub fn fingerprint(&self, rule: &Rule) -> String {
        let device = self.device.as_ref().map(|id| format!(" device={id}"));
        let process = self.process.map(|(pid, started)| match started {
            Some(time) => format!(" pid={pid} began={time}"),
            None => format!(" pid={pid}"),
        });
        format!("{}{}{}", rule.name, device.unwrap_or_default(), process.unwrap_or_default())
    }
}
