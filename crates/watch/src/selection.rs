//! The devices that the command line names.

use crate::exit::{Exit, Failure};
use model::text::did_you_mean;
use model::{Device, DeviceId, Selector, Snapshot, chip_numbers};

/// The snapshot with only the devices that were named, and the processes on them.
pub fn selected(mut snapshot: Snapshot, names: &[String]) -> anyhow::Result<Snapshot> {
    if names.is_empty() {
        return Ok(snapshot);
    }
    let selectors = selectors(&snapshot, names);
    if let Some(missing) = selectors.iter().find(|selector| !snapshot.devices.iter().any(|d| selector.names(d))) {
        let there: Vec<String> = snapshot.devices.iter().map(|device| device.id.to_string()).collect();
        let there = match &there[..] {
            [] => "there is none".into(),
            [one] => format!("there is {one}"),
            several => format!("there are {}", several.join(", ")),
        };
        // Of a short one every other number would be near.
        let names = |device: &Device| {
            let texts = [device.serial.as_deref(), device.asic_id.as_deref()];
            let texts = texts.into_iter().flatten().map(str::to_owned).chain(device.uuid());
            texts.chain(device.pci_address.as_ref().map(|address| address.0.to_string())).collect::<Vec<_>>()
        };
        let names: Vec<String> = snapshot.devices.iter().flat_map(names).collect();
        let near = did_you_mean(&missing.0, names.iter().map(String::as_str).filter(|_| missing.0.len() > 4));
        return Err(Failure::error(Exit::NoDevice, format!("no device is called {:?}: {near}{there}", missing.0)));
    }
    keep(&mut snapshot, &selectors);
    Ok(snapshot)
}

/// The same for a later sample, of which a device may be missing.
pub fn keep_selected(snapshot: &mut Snapshot, names: &[String]) {
    if !names.is_empty() {
        let selectors = selectors(snapshot, names);
        keep(snapshot, &selectors);
    }
}

/// A number that no card has may be that of a chip without PCIe. `all` and ranges of numbers, `0-2`, name several; no card of a range has
/// to be there but the first and the last.
fn selectors(snapshot: &Snapshot, names: &[String]) -> Vec<Selector> {
    let several = |name: &String| match name.trim() {
        "all" => snapshot.devices.iter().map(|device| device.id.to_string()).collect(),
        text => match range(text) {
            Some((first, last)) => {
                let numbers = chip_numbers(&snapshot.devices).into_iter().map(|(_, number)| number);
                let within = numbers.filter(|number| (first + 1..last).contains(number));
                [first].into_iter().chain(within).chain([last]).map(|number| number.to_string()).collect()
            }
            None => vec![name.clone()],
        },
    };
    let names: Vec<String> = names.iter().flat_map(several).collect();
    let selector = |name: &String| {
        let number = name.trim().parse::<u32>().ok();
        let is_card =
            snapshot.devices.iter().any(|device| device.id.gateway().is_some() && device.id.gateway() == number);
        let number = number.filter(|_| !is_card);
        let chip = number.and_then(|n| chip_numbers(&snapshot.devices).into_iter().find(|(_, number)| *number == n));
        Selector(chip.map_or_else(|| name.clone(), |(id, _)| id.to_string()))
    };
    names.iter().map(selector).collect()
}

/// The ends of `0-2`.
fn range(text: &str) -> Option<(u32, u32)> {
    let (first, last) = text.split_once('-')?;
    let number = |text: &str| text.parse::<u32>().ok().filter(|_| text.len() < 8);
    number(first).zip(number(last)).filter(|(first, last)| first < last)
}

fn keep(snapshot: &mut Snapshot, selectors: &[Selector]) {
    snapshot.devices.retain(|device| selectors.iter().any(|selector| selector.names(device)));
    for process in &mut snapshot.processes {
        process.devices.retain(|held| snapshot.devices.iter().any(|device| device.id == held.id));
    }
    snapshot.processes.retain(|process| !process.devices.is_empty());
    let is_there = |id: &String| snapshot.devices.iter().any(|device| device.id.to_string() == *id);
    snapshot.alerts.retain(|alert| alert.device.as_ref().is_none_or(is_there));
    let is_there = |id: &DeviceId| snapshot.devices.iter().any(|device| device.id == *id);
    if let Some(messages) = &mut snapshot.kernel_log {
        messages.retain(|message| message.device.as_ref().is_none_or(is_there));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_named_one_by_one_as_a_range_or_all() {
        let devices = ["0", "1", "1R", "3"].map(|id| Device::new(DeviceId::named(id))).to_vec();
        let snapshot = Snapshot { devices, ..Snapshot::empty() };
        let chosen = |names: &str| {
            let names: Vec<String> = names.split(',').map(str::to_owned).collect();
            match selected(snapshot.clone(), &names) {
                Ok(kept) => kept.devices.iter().map(|device| device.id.to_string()).collect::<Vec<_>>().join(" "),
                Err(error) => error.to_string(),
            }
        };
        assert_eq!(chosen("all"), "0 1 1R 3");
        assert_eq!(chosen("0-3"), "0 1 1R 3");
        assert_eq!(chosen("0-1"), "0 1 1R");
        assert_eq!(chosen("3-4"), "1R 3", "4 is the number of 1R");
        assert_eq!(chosen("/dev/tenstorrent/1"), "1 1R");
        assert_eq!(chosen("0-2"), "no device is called \"2\": there are 0, 1, 1R, 3");
        assert_eq!(chosen("2-0"), "no device is called \"2-0\": there are 0, 1, 1R, 3");
        let none = Snapshot::empty();
        assert!(selected(none, &["all".to_owned()]).unwrap().devices.is_empty());
    }
}
