//! Whether a machine is healthy, decided from a snapshot and the alerts that fire: no clock, no files.

use super::require::Required;
use model::{Alert, AlertState, Celsius, Device, DeviceId, PciAddress, SCHEMA, Selector, Severity, Snapshot, State};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the command line asks for.
#[derive(Debug, Default)]
pub struct Demands {
    pub devices: Vec<Selector>,
    pub required: Vec<Required>,
    pub max_temp: Option<Celsius>,
    /// Why the service that was named does not answer; absent where it does, or where none was named.
    pub silent_service: Option<String>,
}

/// The answer, in the form of its JSON.
#[derive(Debug, Serialize)]
pub struct HealthVerdict {
    pub schema: u32,
    pub healthy: bool,
    pub host: Option<String>,
    pub devices: Vec<JudgedDevice>,
    pub checks: Vec<HealthCheck>,
    /// What is no fault, and is good to know.
    pub notes: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct JudgedDevice {
    #[serde(flatten)]
    pub id: DeviceId,
    pub pci_address: Option<PciAddress>,
    pub board: Option<Arc<str>>,
    pub state: State,
    pub heartbeat_verified: Option<bool>,
    pub asic_temp_celsius: Option<Celsius>,
}

#[derive(Debug, Serialize)]
pub struct HealthCheck {
    pub name: &'static str,
    pub ok: bool,
    /// What is wrong: one sentence, with all devices that it is about.
    pub reason: Option<String>,
}

/// Judges a snapshot that was read twice, with the alerts of the service where there is one.
pub fn judge(snapshot: &Snapshot, alerts: &[Alert], demands: &Demands) -> HealthVerdict {
    let is_chosen =
        |device: &&Device| demands.devices.is_empty() || demands.devices.iter().any(|selector| selector.names(device));
    let devices: Vec<Device> = snapshot.devices.iter().filter(is_chosen).cloned().collect();
    let states: Vec<String> = devices.iter().filter_map(|device| state_fault(device, snapshot)).collect();
    let mut checks = vec![
        check("states", states),
        check("heartbeats", devices.iter().filter_map(heartbeat_fault).collect()),
        check("devices", missing(&devices, demands)),
    ];
    if let Some(limit) = demands.max_temp {
        checks.push(check("temperature", devices.iter().filter_map(|device| heat_fault(device, limit)).collect()));
    }
    checks.push(check("alerts", alert_faults(alerts, &devices, demands)));
    checks.extend(demands.silent_service.clone().map(|why| check("service", vec![why])));
    let judged = |device: &Device| JudgedDevice {
        id: device.id.clone(),
        pci_address: device.pci_address.clone(),
        board: device.board.clone(),
        state: device.state,
        heartbeat_verified: device.heartbeat_verified,
        asic_temp_celsius: device.asic_temp,
    };
    let untold = |device: &&Device| device.state == State::NoTelemetry;
    HealthVerdict {
        schema: SCHEMA,
        healthy: checks.iter().all(|check| check.ok),
        host: snapshot.host.name.clone(),
        devices: devices.iter().map(judged).collect(),
        notes: devices.iter().filter(untold).map(|device| format!("{} has no telemetry", called(device))).collect(),
        checks,
    }
}

impl HealthVerdict {
    /// One line for people: `healthy: 4 × p150a, 41–52 °C`, or what is wrong.
    pub fn line(&self, unicode: bool) -> String {
        let reasons: Vec<&str> = self.checks.iter().filter_map(|check| check.reason.as_deref()).collect();
        let text = if self.healthy {
            let parts = [self.boards()].into_iter().chain(self.temperatures());
            format!("healthy: {}", parts.chain(self.notes.clone()).collect::<Vec<_>>().join(", "))
        } else {
            format!("not healthy: {}", reasons.join("; "))
        };
        if unicode { text } else { text.replace('×', "x").replace('–', "-").replace("°C", "C") }
    }

    /// How many of which boards, in the order of their numbers.
    fn boards(&self) -> String {
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for device in self.devices.iter().filter(|device| device.state != State::Remote) {
            let board = device.board.as_deref().unwrap_or("unknown board");
            match counts.iter_mut().find(|(name, _)| *name == board) {
                Some((_, count)) => *count += 1,
                None => counts.push((board, 1)),
            }
        }
        counts.iter().map(|(board, count)| format!("{count} × {board}")).collect::<Vec<_>>().join(", ")
    }

    fn temperatures(&self) -> Option<String> {
        let all = || self.devices.iter().filter_map(|device| device.asic_temp_celsius).map(|temp| temp.0.round());
        let (least, most) = (all().reduce(f64::min)?, all().reduce(f64::max)?);
        Some(if least == most { format!("{most} °C") } else { format!("{least}–{most} °C") })
    }
}

fn check(name: &'static str, faults: Vec<String>) -> HealthCheck {
    HealthCheck { name, ok: faults.is_empty(), reason: (!faults.is_empty()).then(|| faults.join("; ")) }
}

/// `device 2 (0000:c1:00.0)`.
fn called(device: &Device) -> String {
    match (&device.id, &device.pci_address) {
        (DeviceId::NoDriver(address), _) => format!("device {address}"),
        (id, Some(address)) => format!("device {id} ({address})"),
        (id, None) => format!("device {id}"),
    }
}

fn state_fault(device: &Device, snapshot: &Snapshot) -> Option<String> {
    let name = called(device);
    // The fault that has the reason is about the driver's folder of the device.
    let folder = format!("/tenstorrent!{}", device.id);
    let reason = || snapshot.faults.iter().find(|fault| fault.path.ends_with(&folder)).map(|fault| &fault.reason);
    let because = || reason().map_or_else(String::new, |reason| format!(": {reason}"));
    match device.state {
        // A chip without PCIe is what the chip before it is.
        _ if matches!(device.id, DeviceId::Remote(_)) => None,
        State::Ok | State::Remote | State::NoTelemetry => None,
        State::Hung => Some(format!("{name} is hung{}", because())),
        State::Lost => Some(format!("{name} is lost")),
        State::Resetting => Some(format!("{name} is being reset")),
        State::Silent => Some(format!("{name} does not answer")),
        State::NoDriver => Some(format!("{name} has no driver")),
    }
}

/// A heartbeat that was read twice and did not change. A hung device has its fault already.
fn heartbeat_fault(device: &Device) -> Option<String> {
    let is_still = device.state == State::Ok && device.heartbeat_verified == Some(false);
    is_still.then(|| format!("the firmware heartbeat of {} does not change", called(device)))
}

fn heat_fault(device: &Device, limit: Celsius) -> Option<String> {
    match device.asic_temp {
        _ if !matches!(device.state, State::Ok | State::NoTelemetry) => None,
        Some(temp) if temp.0 > limit.0 => Some(format!("{} has {temp}, more than {limit}", called(device))),
        Some(_) => None,
        None => Some(format!("the temperature of {} is unknown", called(device))),
    }
}

fn missing(devices: &[Device], demands: &Demands) -> Vec<String> {
    let is_there = |selector: &&Selector| devices.iter().any(|device| selector.names(device));
    let unknown = demands.devices.iter().filter(|selector| !is_there(selector));
    let mut faults: Vec<String> = unknown.map(|selector| format!("device {} was not found", selector.0)).collect();
    faults.extend(demands.required.iter().filter_map(|required| required.missing(devices)));
    if devices.is_empty() && faults.is_empty() {
        faults.push("no device was found".into());
    }
    faults
}

/// Alerts that somebody should look at, once each. Those of a device whose state is a fault say the same again.
fn alert_faults(alerts: &[Alert], devices: &[Device], demands: &Demands) -> Vec<String> {
    let device = |alert: &Alert| devices.iter().find(|device| alert.device == Some(device.id.to_string()));
    let is_chosen = |alert: &&Alert| alert.device.is_none() || demands.devices.is_empty() || device(alert).is_some();
    let says_more = |alert: &&Alert| device(alert).is_none_or(|device| is_usable(device.state));
    let matters = |alert: &&Alert| alert.state == AlertState::Firing && alert.severity >= Severity::Warning;
    let wanted = alerts.iter().filter(matters).filter(is_chosen).filter(says_more);
    // The same rule may be the service's and the user's.
    let texts: BTreeMap<_, _> = wanted.map(|alert| ((&alert.device, alert.process, &alert.name), alert)).collect();
    texts.values().map(|alert| format!("alert {}: {}", alert.name, alert.text)).collect()
}

fn is_usable(state: State) -> bool {
    matches!(state, State::Ok | State::NoTelemetry | State::Remote)
}
