//! The devices that the command line names.

use crate::exit::{Exit, Failure};
use model::{Selector, Snapshot};

/// The snapshot with only the devices that were named, and the processes on them.
pub fn selected(mut snapshot: Snapshot, names: &[String]) -> anyhow::Result<Snapshot> {
    if names.is_empty() {
        return Ok(snapshot);
    }
    let selectors: Vec<Selector> = names.iter().cloned().map(Selector).collect();
    if let Some(missing) = selectors.iter().find(|selector| !snapshot.devices.iter().any(|d| selector.names(d))) {
        let there: Vec<String> = snapshot.devices.iter().map(|device| device.id.to_string()).collect();
        let there = match &there[..] {
            [] => "there is none".into(),
            [one] => format!("there is {one}"),
            several => format!("there are {}", several.join(", ")),
        };
        return Err(Failure::error(Exit::NoDevice, format!("no device is called {:?}: {there}", missing.0)));
    }
    snapshot.devices.retain(|device| selectors.iter().any(|selector| selector.names(device)));
    for process in &mut snapshot.processes {
        process.devices.retain(|held| snapshot.devices.iter().any(|device| device.id == held.id));
    }
    snapshot.processes.retain(|process| !process.devices.is_empty());
    let is_there = |id: &String| snapshot.devices.iter().any(|device| device.id.to_string() == *id);
    snapshot.alerts.retain(|alert| alert.device.as_ref().is_none_or(is_there));
    Ok(snapshot)
}
