//! The exit code for the state of a machine or of several.

use crate::exit::{Exit, Failure};
use crate::fleet::remote::LONGEST;
use crate::fleet::{Fleet, HostView, Reach};
use crate::machine::Machine;
use model::{Device, DeviceId, Snapshot, State};

/// The exit code for the state of a machine. An error when no device can be read at all.
pub fn of_machine(snapshot: &Snapshot, machine: &Machine) -> anyhow::Result<Exit> {
    let denied = |path: &str| {
        snapshot.faults.iter().any(|fault| fault.path.ends_with(path) && fault.reason.starts_with("permission denied"))
    };
    if let Some(host) = machine.remote().filter(|host| host.snapshot.is_none()) {
        return Err(Failure::error(Exit::Unreachable, no_answer(host)));
    }
    let unbound = snapshot.devices.iter().all(|device| device.state == State::NoDriver);
    if denied("/class/tenstorrent") {
        let why = "/sys/class/tenstorrent may not be read: run as root, or mount /sys readable into the container";
        return Err(Failure::error(Exit::Permission, why));
    }
    if unbound && snapshot.host.driver_version.is_none() && !machine.driver_is_loaded() {
        // A device that has a number was there before: its driver may come back.
        let was_there = snapshot.devices.iter().any(|device| !matches!(device.id, DeviceId::NoDriver(_)));
        return if was_there { Ok(Exit::NoDriver) } else { Err(Failure::error(Exit::NoDriver, no_driver(snapshot))) };
    }
    if snapshot.devices.is_empty() {
        let why = "no Tenstorrent device was found: the driver is loaded, but has none (see lspci -d 1e52:)";
        return Err(Failure::error(Exit::NoDevice, why));
    }
    Ok(if snapshot.devices.iter().any(is_broken) { Exit::DeviceLost } else { Exit::Success })
}

/// One that did not answer in time, or that publishes no telemetry, may be well: a fault says so, and that is all.
fn is_broken(device: &Device) -> bool {
    matches!(device.state, State::Hung | State::Lost)
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

/// The exit code for several machines: that of the worst.
pub fn of_fleet(fleet: &Fleet) -> Exit {
    let devices = || fleet.hosts.iter().flat_map(|host| &host.snapshot).flat_map(|snapshot| &snapshot.devices);
    if devices().any(is_broken) {
        Exit::DeviceLost
    } else if fleet.hosts.iter().any(|host| host.state != Reach::Reached) {
        Exit::Unreachable
    } else if devices().next().is_none() {
        Exit::NoDevice
    } else {
        Exit::Success
    }
}

/// Why there is nothing to show of a machine.
pub fn no_answer(host: &HostView) -> String {
    let why = host.trouble().map_or_else(|| format!("no answer within {} s", LONGEST.as_secs()), str::to_owned);
    format!("{}: {why}", host.place)
}
