//! The devices that were named, and the exit code that their state asks for.

use crate::exit::{Exit, Failure};
use crate::fleet::far::LONGEST;
use crate::fleet::{Fleet, HostView, Reach};
use crate::machine::Machine;
use model::{Selector, Snapshot, State};

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

/// The exit code that the machine's state asks for. An error when no device can be read at all.
pub fn verdict(snapshot: &Snapshot, machine: &Machine) -> anyhow::Result<Exit> {
    let denied = |path: &str| {
        snapshot.faults.iter().any(|fault| fault.path.ends_with(path) && fault.reason.starts_with("permission denied"))
    };
    if let Some(host) = machine.far().filter(|host| host.snapshot.is_none()) {
        return Err(Failure::error(Exit::Unreachable, no_answer(host)));
    }
    let bad = |state: State| matches!(state, State::Hung | State::Lost | State::Silent);
    let unbound = snapshot.devices.iter().all(|device| device.state == State::NoDriver);
    match () {
        () if denied("/class/tenstorrent") => Err(Failure::error(
            Exit::Permission,
            "/sys/class/tenstorrent may not be read: run as root, or mount /sys readable into the container",
        )),
        () if unbound && snapshot.host.driver_version.is_none() && !machine.driver_is_loaded() => {
            Err(Failure::error(Exit::NoDriver, no_driver(snapshot)))
        }
        () if snapshot.devices.is_empty() => Err(Failure::error(
            Exit::NoDevice,
            "no Tenstorrent device was found: the driver is loaded, but has none (see lspci -d 1e52:)",
        )),
        () if snapshot.devices.iter().any(|device| bad(device.state)) => Ok(Exit::DeviceLost),
        () => Ok(Exit::Success),
    }
}

fn no_driver(snapshot: &Snapshot) -> String {
    let hint = "load it with `modprobe tenstorrent` (package tenstorrent-dkms), or try `ttmon --sim`";
    match &snapshot.devices[..] {
        [] => format!("the tenstorrent driver is not loaded, and no Tenstorrent PCI device was found: {hint}"),
        devices => {
            let addresses: Vec<String> = devices.iter().map(|device| device.id.to_string()).collect();
            format!("the tenstorrent driver is not loaded, so {} cannot be read: {hint}", addresses.join(", "))
        }
    }
}

/// The exit code of the worst.
pub fn of_fleet(fleet: &Fleet) -> Exit {
    let devices = || fleet.hosts.iter().flat_map(|host| &host.snapshot).flat_map(|snapshot| &snapshot.devices);
    match () {
        () if devices().any(|device| matches!(device.state, State::Hung | State::Lost | State::Silent)) => {
            Exit::DeviceLost
        }
        () if fleet.hosts.iter().any(|host| host.state != Reach::Reached) => Exit::Unreachable,
        () if devices().next().is_none() => Exit::NoDevice,
        () => Exit::Success,
    }
}

/// Why there is nothing to show of a machine.
pub fn no_answer(host: &HostView) -> String {
    let why = host.trouble().map_or_else(|| format!("no answer within {} s", LONGEST.as_secs()), str::to_owned);
    format!("{}: {why}", host.place)
}
