//! Checks of what only a deep read knows. They are made with `--deep` alone.

use super::Findings;
use super::check::DoctorCheck;
use model::{Arch, Deep, DeepUnavailable, Device};
use show::text::count;

/// Whether the firmware's telemetry could be read.
pub fn deep_reads(found: &Findings) -> DoctorCheck {
    const NAME: &str = "deep reads";
    let (read, not_read): (Vec<_>, Vec<_>) = known(found).partition(|(_, deep)| !deep.tags.is_empty());
    let why = |device: &Device, deep: &Deep| {
        let reason = deep.unavailable.map_or("no answer in time", DeepUnavailable::name);
        format!("device {}: {reason}", device.id)
    };
    let failed: Vec<_> = not_read.iter().filter(|(_, deep)| !is_left_alone(deep.unavailable)).collect();
    let said = |all: &mut dyn Iterator<Item = String>| all.collect::<Vec<_>>().join("; ");
    match (&failed[..], read.len(), not_read.len()) {
        ([], 0, 0) => DoctorCheck::not_applicable(NAME, "there is no device with a driver"),
        ([], 0, _) => {
            DoctorCheck::not_applicable(NAME, said(&mut not_read.iter().map(|(device, deep)| why(device, deep))))
        }
        ([], all, _) => DoctorCheck::ok(NAME, format!("{} answered", count(all as u64, "device", "devices"))),
        _ => {
            let fix = fix(failed[0]);
            DoctorCheck::warning(NAME, said(&mut failed.iter().map(|(device, deep)| why(device, deep))), fix)
                .at("/dev/tenstorrent")
        }
    }
}

fn fix((device, deep): &(&Device, &Deep)) -> String {
    match deep.unavailable {
        Some(DeepUnavailable::NotPermitted) => {
            "sudo udevadm trigger --action=add --subsystem-match=tenstorrent".to_owned()
        }
        Some(DeepUnavailable::NoTable | DeepUnavailable::BadTable) => format!("tt-smi -r {}", device.id),
        _ => format!("ttmon deep-reader --print {} {}", device.id, device.arch.map_or("blackhole", Arch::name)),
    }
}

/// Whether every memory channel is trained, and no error was left uncorrected.
pub fn memory_health(found: &Findings) -> DoctorCheck {
    const NAME: &str = "memory health";
    let mut sick = Vec::new();
    let mut channels = 0;
    for (device, deep) in known(found) {
        channels += deep.gddr_trained.iter().flatten().count();
        let untrained = places(&deep.gddr_trained, false);
        let failed = places(&deep.gddr_training_failed, true);
        let uncorrected =
            [places(&deep.gddr_uncorrected_read, true), places(&deep.gddr_uncorrected_write, true)].concat();
        for (which, what) in
            [(untrained, "not trained"), (failed, "training failed"), (uncorrected, "uncorrected errors")]
        {
            if !which.is_empty() {
                sick.push((device, format!("device {}, channel {}: {what}", device.id, which.join(", "))));
            }
        }
    }
    match sick.first() {
        Some((device, _)) => {
            let what: Vec<_> = sick.iter().map(|(_, what)| what.as_str()).collect();
            let fix =
                format!("tt-smi -r {}   # a channel that fails again is damaged: ask for a replacement", device.id);
            DoctorCheck::problem(NAME, what.join("; "), fix)
        }
        None if channels == 0 => DoctorCheck::not_applicable(NAME, "no device was read"),
        None => DoctorCheck::ok(NAME, format!("{} trained", count(channels as u64, "channel is", "channels are"))),
    }
}

/// The devices with a deep read, or with a reason why there is none.
fn known(found: &Findings) -> impl Iterator<Item = (&Device, &Deep)> {
    let devices = found.snapshot.devices.iter();
    devices.filter(|device| device.id.index().is_some()).filter_map(|device| Some((device, device.deep.as_deref()?)))
}

/// Whether it was not tried, for a reason that is no fault.
fn is_left_alone(why: Option<DeepUnavailable>) -> bool {
    use DeepUnavailable::{Exclusive, JustClosed, NotHeld, NotReady, Remote};
    matches!(why, Some(NotHeld | JustClosed | Exclusive | NotReady | Remote))
}

fn places(values: &[Option<bool>], wanted: bool) -> Vec<String> {
    let found = values.iter().enumerate().filter(|(_, value)| **value == Some(wanted));
    found.map(|(place, _)| place.to_string()).collect()
}
